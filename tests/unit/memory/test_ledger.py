"""One memory over any sequence of calls, in any order: chains hold together and no two active
facts are twins.
"""

import json
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aftercall.encryption import Vault
from aftercall.memory.candidates import outline_fact
from aftercall.memory.claims import read_claim
from aftercall.memory.evidence import AcceptedDraft, Evidence
from aftercall.memory.ledger import FactLedger
from aftercall.model.facts import Fact, MemoryKey
from aftercall.model.reading import ReadingTrace
from fact_drafts import draft
from fakes import START

KEY = MemoryKey("main", "+15550100")
NOT_REPEATED = json.loads((Path(__file__).parent / "repetitions.json").read_text())[
    "not_a_repetition"
]
SENTENCES = (
    *(
        "I live in Porto",
        "I live in Lisbon",
        "I moved to Braga",
        "I like tea",
        "I don't like tea any more",
        "I like jazz",
    ),
    *(
        "I get up at six",
        "I get up at seven",
        "My son is allergic to nuts",
        "It's Lisbon now, not Porto",
        "Email is best",
        "Text me instead",
    ),
    *(
        "My sister lives in Porto",
        "My sister Ann moved to Lisbon",
        "my sister eva moved to braga",
        "Ann lives in Faro now",
    ),
)


def sifted(text: str, day: float, heard: float = 1.0, **named: str) -> AcceptedDraft:
    ground = Evidence(2, 2, START + timedelta(days=day), "", heard, False)
    return AcceptedDraft(draft(text, **named), ground, "shared", "", read_claim(text))


def note_all(said: list[tuple[str, int, float]]) -> FactLedger:
    ledger = FactLedger(
        KEY, outlines=(), fetch=lambda fact_ids: (), vault=Vault(b"key")
    )
    for number, (text, day, heard) in enumerate(said):
        ledger.record(sifted(text, day, heard), f"call{number}", ReadingTrace("test"))
    return ledger


DOUBTED = [
    ("I moved to Braga", 0, 1.0),
    ("I live in Porto", 1, 0.5),
    ("I live in Lisbon", 0, 1.0),
    ("I live in Porto", 0, 1.0),
]
calls = st.lists(
    st.tuples(
        st.sampled_from(SENTENCES), st.integers(0, 9), st.sampled_from([1.0, 0.5])
    ),
    max_size=14,
)


@example(DOUBTED)
@given(calls)
def test_chains_hold_together_whatever_comes_in_whatever_order(
    said: list[tuple[str, int, float]],
) -> None:
    facts = note_all(said).facts
    for fact in facts.values():
        assert (
            (fact.valid_until is None) == fact.is_active == (fact.superseded_by is None)
        )
        assert fact.valid_until is None or fact.valid_until >= fact.valid_from
        if fact.superseded_by and not fact.never_true:
            assert facts[fact.superseded_by].supersedes == fact.id
        if fact.supersedes:
            assert facts[fact.supersedes].superseded_by == fact.id
    active = [fact.identity for fact in facts.values() if fact.is_active]
    assert len(active) == len(set(active))
    for chain in chains(facts):
        assert len(chain) == len({fact.id for fact in chain})
        assert all(old.valid_from <= new.valid_from for old, new in pairwise(chain))


@given(calls)
def test_nothing_that_was_said_is_lost(said: list[tuple[str, int, float]]) -> None:
    ledger = note_all(said)
    assert len(ledger.occurrences) == len(said)
    assert {item.fact_id for item in ledger.occurrences} == set(ledger.facts)


@given(calls)
def test_a_restored_fact_stands_and_the_chains_still_hold(
    said: list[tuple[str, int, float]],
) -> None:
    ledger = note_all(said)
    for fact in [fact for fact in ledger.facts.values() if not fact.is_active]:
        if not any(
            other.is_active and other.identity == fact.identity
            for other in ledger.facts.values()
        ):
            ledger.restore(fact.id)
            assert ledger.facts[fact.id].is_active
    active = [fact.identity for fact in ledger.facts.values() if fact.is_active]
    assert len(active) == len(set(active))


@pytest.mark.parametrize("named", ["", "duplicate_of", "supersedes"])
@pytest.mark.parametrize(
    ("known", "new"), [*NOT_REPEATED, *((new, known) for known, new in NOT_REPEATED)]
)
def test_a_reversed_fact_is_kept_whatever_a_model_says_of_it(
    known: str, new: str, named: str
) -> None:
    ledger = note_all([(known, 0, 1.0)])
    (known_id,) = ledger.facts
    came = ledger.record(
        sifted(new, 1, 1.0, **({named: known_id} if named else {})),
        "later",
        ReadingTrace("test"),
    )
    assert came != "again"
    assert [fact.content for fact in ledger.facts.values()] == [known, new]


def test_a_models_valid_supersedes_is_not_overruled_by_word_overlap() -> None:
    for known, new in (
        ("I prefer emails over phone calls", "I prefer phone calls over emails"),
        ("I eat anything", "I went vegan"),
    ):
        ledger = note_all([(known, 0, 1.0)])
        (known_id,) = ledger.facts
        assert (
            ledger.record(
                sifted(new, 1, supersedes=known_id), "later", ReadingTrace("test")
            )
            == "update"
        )
        assert [fact.content for fact in ledger.facts.values() if fact.is_active] == [
            new
        ]


def open_again(known: dict[str, Fact]) -> FactLedger:
    return FactLedger(
        KEY,
        map(outline_fact, known.values()),
        lambda fact_ids: [known[fact_id] for fact_id in fact_ids],
        Vault(b"key"),
    )


def test_a_ring_of_facts_that_replace_each_other_holds_nothing_up() -> None:
    towns = [("I live in Porto", 5, 1.0), ("I live in Lisbon", 6, 1.0)]
    porto, lisbon = note_all(towns).facts.values()
    ring = {
        porto.id: replace(porto, supersedes=lisbon.id),
        lisbon.id: replace(lisbon, superseded_by=porto.id),
    }
    ledger = open_again(ring)
    trace = ReadingTrace("test")
    assert ledger.record(sifted("I live in Braga", 0), "early", trace) == "update"
    assert ledger.record(sifted("I live in Faro", 9), "late", trace) == "update"
    ledger.restore(porto.id)
    assert ledger.facts[porto.id].is_active


def test_among_very_many_facts_the_one_that_changed_is_found() -> None:
    (fact,) = note_all([("I live in Porto", 0, 1.0)]).facts.values()
    many = {
        f"f{number}": replace(
            fact,
            id=f"f{number}",
            content=f"I met colleague{number} in the garden{number}",
            identity=f"i{number}",
            matching=None,
        )
        for number in range(20_000)
    }
    ledger = open_again(many | {fact.id: fact})
    found = sifted("I moved to Lisbon", 1)
    assert ledger.record(found, "later", ReadingTrace("test")) == "update"
    assert not ledger.facts[fact.id].is_active


def test_a_dispute_goes_on_with_what_replaces_one_of_its_facts() -> None:
    said = [
        ("My sister Ann lives in Porto", 0, 1.0),
        ("My sister lives in Lisbon", 1, 1.0),
        ("My sister Ann moved to Braga", 2, 1.0),
    ]
    ledger = note_all(said)
    states = {fact.content: fact.state for fact in ledger.facts.values()}
    assert states == {
        "My sister Ann lives in Porto": "superseded",
        "My sister lives in Lisbon": "disputed",
        "My sister Ann moved to Braga": "disputed",
    }


def chains(facts: dict[str, Fact]) -> list[list[Fact]]:
    found = []
    for fact in facts.values():
        if fact.supersedes is None:
            chain = [fact]
            while (following := chain[-1].superseded_by) and len(chain) <= len(facts):
                chain.append(facts[following])
            found.append(chain)
    return found
