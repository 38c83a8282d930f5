"""What is learnt in calls, on both databases: once, with its evidence, in its place in time,
and nobody else's.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from aftercall.app import App
from aftercall.db.tables import fact_occurrences, facts
from aftercall.encryption import Vault
from aftercall.errors import NotFound, RefusedInput, SecretUnreadable, WorkspaceBusy
from aftercall.journal.view import call_json
from aftercall.memory.extraction import Extractor
from aftercall.memory.fact_store import FactFilter, FactStore
from aftercall.memory.visibility import redact_call
from aftercall.model.calls import BRIEFED_EVENT, Call, Event
from aftercall.model.facts import Extraction, Fact, MemoryKey
from aftercall.model.passages import SearchScope
from aftercall.settings.sections import ExtractionSettings
from fact_drafts import draft, each, on, reader_of, say
from fakes import FakeReader

BILL = MemoryKey("main", "+15550100")


def learn(
    app: App, call: Call, reader: FakeReader | None = None, **fields: Any
) -> Extraction:
    row, _ = app.journal.ingest(call)
    entry, _ = Extractor(app.settings, app.facts, app.clock).extract(
        call.model_copy(update={"id": row.live.id}), reader or each(call, **fields)
    )
    return entry


def believed(app: App, day: float | None = None, key: MemoryKey = BILL) -> list[str]:
    as_of = None if day is None else on(day)
    return [fact.content for fact in app.facts.page(FactFilter(key=key, as_of=as_of))]


def only(app: App, **wanted: Any) -> Fact:
    (fact,) = app.facts.page(FactFilter(key=BILL, **wanted))
    return fact


def counts_agree(app: App) -> bool:
    with app.database.read() as connection:
        rows = connection.execute(select(facts.c.id, facts.c.occurrence_count)).all()
        said: dict[str, int] = dict(
            connection.execute(
                select(fact_occurrences.c.fact_id, func.count()).group_by(
                    fact_occurrences.c.fact_id
                )
            ).all()
        )
    return all(said.get(row.id) == row.occurrence_count for row in rows)


def test_the_same_fact_in_three_calls_is_one_fact_with_three_occurrences(
    app: App,
) -> None:
    for day, words in enumerate(
        (
            "I prefer mornings",
            "Mornings work best for me",
            "mornings are best for me, I said",
        )
    ):
        learn(app, say(words, f"That was call {day}", day=day), reader_of(draft(words)))
    fact = only(app)
    occurrences = app.facts.list_occurrences(fact.id)
    assert (fact.occurrence_count, fact.first_seen_at, fact.last_seen_at) == (
        3,
        occurrences[0].at,
        occurrences[2].at,
    )
    assert len({item.context for item in occurrences}) == 3
    assert [item.words for item in occurrences] == [
        "I prefer mornings",
        "Mornings work best for me",
        "mornings are best for me, I said",
    ]
    assert counts_agree(app)


def test_a_change_of_mind_makes_a_chain_and_each_day_has_its_answer(app: App) -> None:
    learn(
        app,
        say("I live in Porto", "Yes"),
        reader_of(draft("I live in Porto", category="person")),
    )
    entry = learn(
        app,
        say("I moved to Lisbon", "Yes", day=10),
        reader_of(draft("I moved to Lisbon", category="person")),
    )
    assert (entry.facts_extracted, entry.facts_updated) == (0, 1)
    assert (believed(app), believed(app, 5), believed(app, 11), believed(app, -1)) == (
        ["I moved to Lisbon"],
        ["I live in Porto"],
        ["I moved to Lisbon"],
        [],
    )
    old, new = app.facts.get_history(only(app).id)
    assert (old.superseded_by, new.supersedes, old.valid_until, old.is_active) == (
        new.id,
        old.id,
        new.valid_from,
        False,
    )
    assert app.facts.list_occurrences(new.id)[0].sentiment == "correction"


def test_calls_read_in_any_order_lead_to_the_same_chain(app: App) -> None:
    for day, place in ((10, "Lisbon"), (0, "Porto"), (5, "Braga")):
        learn(
            app,
            say(f"I live in {place}", "Yes", day=day),
            reader_of(draft(f"I live in {place}", category="person")),
        )
    chain = app.facts.get_history(only(app).id)
    assert [fact.content for fact in chain] == [
        "I live in Porto",
        "I live in Braga",
        "I live in Lisbon",
    ]
    assert [fact.valid_until for fact in chain] == [
        chain[1].valid_from,
        chain[2].valid_from,
        None,
    ]
    assert [believed(app, day) for day in (1, 6, 11)] == [
        ["I live in Porto"],
        ["I live in Braga"],
        ["I live in Lisbon"],
    ]


def test_going_back_to_an_old_value_is_a_new_link(app: App) -> None:
    for day, place in enumerate(("Porto", "Lisbon", "Porto")):
        learn(
            app,
            say(f"I live in {place}", "Yes", day=day),
            reader_of(draft(f"I live in {place}")),
        )
    assert [fact.content for fact in app.facts.get_history(only(app).id)] == [
        "I live in Porto",
        "I live in Lisbon",
        "I live in Porto",
    ]


def test_reading_a_call_again_adds_nothing(app: App) -> None:
    calls = [
        say(f"I live in {place}", "I like tea", day=day)
        for day, place in enumerate(("Porto", "Lisbon"))
    ]
    for call in calls:
        learn(app, call)
    before = [
        app.facts.page(FactFilter(include_retired=True)),
        [
            app.facts.list_occurrences(fact.id)
            for fact in app.facts.page(FactFilter(include_retired=True))
        ],
    ]
    for call in calls:
        assert learn(app, call).facts_extracted == 0
    after = [
        app.facts.page(FactFilter(include_retired=True)),
        [
            app.facts.list_occurrences(fact.id)
            for fact in app.facts.page(FactFilter(include_retired=True))
        ],
    ]
    assert after == before


def test_a_retirement_can_be_undone_and_is_not_done_again(app: App) -> None:
    learn(app, say("I live in Porto", "Yes"), reader_of(draft("I live in Porto")))
    moved = say("I live in Lisbon", "Yes", day=1)
    learn(app, moved, reader_of(draft("I live in Lisbon")))
    old = app.facts.get_history(only(app).id)[0]
    app.corrections.restore(old.id, "me")
    learn(app, moved, reader_of(draft("I live in Lisbon")))
    assert believed(app) == ["I live in Porto", "I live in Lisbon"]
    with pytest.raises(RefusedInput, match="is not retired"):
        app.corrections.restore(old.id, "me")
    with pytest.raises(NotFound):
        app.corrections.restore("nobody", "me")


@pytest.mark.parametrize("name", ["supersedes", "duplicate_of"])
def test_ids_that_are_unknown_anothers_or_retired_lose_nothing_and_retire_nobody(
    app: App, name: str
) -> None:
    learn(
        app,
        say("I like tea", "Yes", caller="+15550199"),
        reader_of(draft("I like tea")),
    )
    learn(app, say("I live in Porto", "Yes"), reader_of(draft("I live in Porto")))
    learn(
        app, say("I live in Lisbon", "Yes", day=1), reader_of(draft("I live in Lisbon"))
    )
    (other,) = app.facts.page(FactFilter(key=MemoryKey("main", "+15550199")))
    retired = app.facts.get_history(only(app).id)[0]
    for day, bad in enumerate(("01UNKNOWN", other.id, retired.id), 2):
        words = f"My favourite number is {day} thousand"
        assert (
            learn(
                app, say(words, "Yes", day=day), reader_of(draft(words, **{name: bad}))
            ).facts_refused
            == 0
        )
    assert len(believed(app)) == 2
    assert believed(app, key=other.key) == ["I like tea"]


def test_a_model_may_point_out_a_duplicate_and_a_replacement_in_other_words(
    app: App,
) -> None:
    learn(
        app,
        say("I am a morning person", "Yes"),
        reader_of(draft("I am a morning person")),
    )
    learn(
        app,
        say("early hours suit this morning person", "Yes", day=1),
        reader_of(
            draft("early hours suit this morning person", duplicate_of=only(app).id)
        ),
    )
    assert only(app).occurrence_count == 2
    words = "that morning person business is over, late it is"
    learn(
        app, say(words, "Yes", day=2), reader_of(draft(words, supersedes=only(app).id))
    )
    assert believed(app) == [words]


def test_a_model_cannot_retire_what_has_nothing_to_do_with_it(app: App) -> None:
    learn(
        app,
        say("My son is allergic to nuts", "Yes"),
        reader_of(draft("My son is allergic to nuts", category="person")),
    )
    learn(
        app,
        say("I like jazz", "Yes", day=1),
        reader_of(draft("I like jazz", supersedes=only(app).id)),
    )
    assert believed(app) == ["My son is allergic to nuts", "I like jazz"]


def test_several_facts_that_replace_the_same_one_follow_each_other(
    app: App,
) -> None:
    learn(app, say("I live in Porto"))
    porto = only(app).id
    call = say("I live in Lisbon", "I live in Braga", "I live in Braga", day=1)
    towns = ("I live in Lisbon", "I live in Braga", "I live in Braga")
    drafts = [
        draft(town, turns=(seq,), supersedes=porto, duplicate_of=porto)
        for seq, town in enumerate(towns, 2)
    ]
    entry = learn(app, call, reader_of(*drafts))
    assert (entry.facts_updated, entry.facts_deduplicated, believed(app)) == (
        2,
        1,
        ["I live in Braga"],
    )
    assert [fact.content for fact in app.facts.get_history(porto)] == [
        "I live in Porto",
        "I live in Lisbon",
        "I live in Braga",
    ]
    assert counts_agree(app)


def test_facts_that_replace_each_other_end_in_one_chain_without_a_ring(
    app: App,
) -> None:
    learn(app, say("I live in Porto", "Yes"), reader_of(draft("I live in Porto")))
    known = only(app).id
    call = say("I live in Lisbon", "I live in Braga", day=1)
    learn(
        app,
        call,
        reader_of(
            draft("I live in Lisbon", supersedes=known),
            draft("I live in Braga", turns=(3,), supersedes=known),
        ),
    )
    chain = app.facts.get_history(known)
    assert [fact.content for fact in chain] == [
        "I live in Porto",
        "I live in Lisbon",
        "I live in Braga",
    ]
    assert believed(app) == ["I live in Braga"]


def test_drafts_without_ground_or_certainty_are_counted_not_kept(app: App) -> None:
    call = say("I like tea", "I like jazz")
    entry = learn(
        app,
        call,
        reader_of(
            draft("I own a yacht"),
            draft("I like tea", confidence=0.5),
            draft("I like jazz", turns=(3,)),
        ),
    )
    assert (entry.facts_extracted, entry.facts_refused, entry.facts_dropped) == (
        1,
        1,
        1,
    )
    assert app.facts.find_extraction(call.id) == entry
    assert believed(app) == ["I like jazz"]


def test_five_thousand_facts_are_cut_to_the_limit(app: App) -> None:
    call = say("I like tea", "I like jazz")
    entry = learn(app, call, reader_of(*[draft("I like tea")] * 5_000))
    assert (entry.facts_extracted, entry.facts_deduplicated, entry.facts_dropped) == (
        1,
        99,
        4_900,
    )
    assert only(app).occurrence_count == 1


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (say(), "fewer than 3 turns"),
        (say("I like tea", "Yes", caller=None), "this caller has no memory"),
    ],
)
def test_a_call_that_is_not_searched_says_why(
    app: App, call: Call, reason: str
) -> None:
    assert learn(app, call).reason == reason
    entry = app.facts.find_extraction(call.id)
    assert entry is not None
    assert entry.reason == reason


def test_a_reader_that_fails_is_logged_and_the_next_try_replaces_it(app: App) -> None:
    call = say("I like tea", "Yes")
    reader = FakeReader(None, WorkspaceBusy("held"))
    with pytest.raises(WorkspaceBusy):
        learn(app, call, reader)
    failed = app.facts.find_extraction(call.id)
    assert failed is not None
    assert failed.error == "workspace.busy"
    learn(app, call)
    again = app.facts.find_extraction(call.id)
    assert again is not None
    assert (again.error, again.facts_extracted) == (None, 2)


def test_readers_are_told_what_is_known_but_no_secret_and_no_more_than_the_limit(
    app: App,
) -> None:
    learn(app, say("I like tea", "I like jazz", "My PIN is 4821"))
    told: list[Sequence[str]] = []

    class Curious(FakeReader):
        def find_facts(self, call: Call, known: Any = ()) -> Any:
            told.append([fact.text for fact in known])
            return super().find_facts(call, known)

    learn(app, say("Hello", "Bye", day=1), Curious())
    limited = replace(
        app,
        settings=app.settings.model_copy(
            update={"extraction": ExtractionSettings(known_facts=1)}
        ),
    )
    learn(limited, say("Hello", "Bye", day=2), Curious())
    assert (sorted(told[0]), len(told[1])) == (["I like jazz", "I like tea"], 1)


def test_a_secret_is_sealed_matched_and_opened_only_by_name(app: App) -> None:
    learn(
        app,
        say("My PIN is 4821", "Yes"),
        reader_of(draft("My PIN is 4821", category="technical")),
    )
    learn(
        app,
        say("the pin is four eight two one", "Yes", day=1),
        reader_of(draft("the pin is four eight two one", category="technical")),
    )
    learn(
        app,
        say("My PIN is 7730", "Yes", day=2),
        reader_of(draft("My PIN is 7730", category="technical")),
    )
    old, new = app.facts.get_history(only(app).id)
    assert (old.visibility, old.occurrence_count, new.occurrence_count) == (
        "secret",
        2,
        1,
    )
    assert "4821" not in repr((old, app.facts.list_occurrences(old.id)))
    assert app.facts.reveal(old).content == "My PIN is 4821"
    assert [
        app.facts.reveal(item).words for item in app.facts.list_occurrences(old.id)
    ] == [
        "My PIN is 4821",
        "the pin is four eight two one",
    ]


def test_without_its_key_a_secret_stays_shut_and_learning_goes_on(app: App) -> None:
    learn(app, say("My PIN is 4821", "Yes"), reader_of(draft("My PIN is 4821")))
    other = replace(
        app,
        facts=FactStore(app.database, Vault(b"another key"), lambda _: (), app.clock),
    )
    with pytest.raises(SecretUnreadable):
        other.facts.reveal(only(other))
    assert (
        learn(
            other, say("I like tea", "Yes", day=1), reader_of(draft("I like tea"))
        ).facts_extracted
        == 1
    )


def find_texts(app: App, query: str, day: int | None = None) -> set[str]:
    """What a search finds now, or as of a day."""
    as_of = on(day + 0.5) if day is not None else None
    scope = SearchScope(*BILL, kinds=("fact",), as_of=as_of)
    return {hit.passage.text for hit in app.search.find(query, scope)}


def test_search_follows_every_change_and_never_finds_a_secret(app: App) -> None:
    learn(app, say("I live in Porto", "My PIN is 4821"))
    assert find_texts(app, "Porto") == {"I live in Porto"}
    learn(
        app, say("I live in Lisbon", "Yes", day=1), reader_of(draft("I live in Lisbon"))
    )
    assert find_texts(app, "live") == {"I live in Lisbon"}
    assert find_texts(app, "live", day=0) == {"I live in Porto"}
    lisbon = next(
        fact
        for fact in app.facts.page(FactFilter())
        if fact.content == "I live in Lisbon"
    )
    learn(
        app,
        say("I live in Lisbon", "Yes", day=2),
        reader_of(draft("I live in Lisbon", visibility="secret")),
    )
    assert find_texts(app, "live") == set()
    assert find_texts(app, "PIN 4821") == set()
    raised = app.facts.get(lisbon.id)
    assert "Lisbon" not in repr((raised, app.facts.list_occurrences(lisbon.id)))
    assert app.facts.reveal(raised).content == "I live in Lisbon"
    assert lisbon.matching == "caller|residence"
    assert raised.matching == app.facts.vault.hash("matching", "caller|residence")


def test_search_follows_facts_of_the_past_and_a_restoration(app: App) -> None:
    for day, place in ((10, "Lisbon"), (0, "Porto")):
        learn(
            app,
            say(f"I live in {place}", "Yes", day=day),
            reader_of(draft(f"I live in {place}")),
        )
    porto = app.facts.get_history(only(app).id)[0]
    assert find_texts(app, "live") == {"I live in Lisbon"}
    assert find_texts(app, "live", day=5) == {"I live in Porto"}
    app.corrections.restore(porto.id, "me")
    assert find_texts(app, "live") == {"I live in Lisbon", "I live in Porto"}


def test_what_only_a_reader_took_for_a_secret_is_hidden_in_the_call_too(
    app: App,
) -> None:
    call = say("the heron flies at midnight on the pier", "I like tea")
    learn(
        app,
        call,
        reader_of(
            draft("the heron flies at midnight on the pier", visibility="secret")
        ),
    )
    shown = redact_call(
        call_json(app.store, app.archive, app.store.get(call.id)),
        app.facts.list_confided_words(call.id),
    )
    assert [turn["text"] for turn in shown["turns"]] == [
        "Hello!",
        "•••",
        "I like tea",
        "Noted.",
    ]


def test_badly_heard_words_replace_nothing_until_they_are_heard_well(app: App) -> None:
    learn(app, say("I live in Porto", "Yes"), reader_of(draft("I live in Porto")))
    heard = say("I live in Lisbon", "Yes", day=1)
    badly = heard.model_copy(
        update={
            "turns": tuple(
                turn.model_copy(update={"confidence": 0.4}) for turn in heard.turns
            )
        }
    )
    learn(app, badly, reader_of(draft("I live in Lisbon")))
    porto, lisbon = app.facts.page(FactFilter(key=BILL))
    assert (porto.needs_confirmation, lisbon.needs_confirmation, lisbon.confidence) == (
        False,
        True,
        0.4,
    )
    learn(
        app, say("I live in Lisbon", "Yes", day=2), reader_of(draft("I live in Lisbon"))
    )
    assert [
        (fact.id, fact.needs_confirmation, fact.confidence)
        for fact in app.facts.page(FactFilter(key=BILL))
    ] == [(lisbon.id, False, 0.9)]
    assert [fact.id for fact in app.facts.get_history(lisbon.id)] == [
        porto.id,
        lisbon.id,
    ]


def test_two_who_extract_at_once_never_make_twins(app: App) -> None:
    calls = [say("I live in Porto", "I like tea", f"call {n}", day=n) for n in range(8)]
    for call in calls:
        app.journal.ingest(call)
    ready = threading.Barrier(len(calls))
    trouble: list[BaseException] = []

    def work(call: Call) -> None:
        ready.wait()
        try:
            Extractor(app.settings, app.facts, app.clock).extract(
                call,
                reader_of(draft("I live in Porto"), draft("I like tea", turns=(3,))),
            )
        except BaseException as error:  # noqa: BLE001 - the thread's edge: the test shows it
            trouble.append(error)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trouble == []
    assert {
        (fact.content, fact.occurrence_count) for fact in app.facts.page(FactFilter())
    } == {
        ("I live in Porto", 8),
        ("I like tea", 8),
    }
    assert len(app.facts.page(FactFilter(include_retired=True))) == 2
    assert counts_agree(app)


# the examples only add to one app
@hypothesis_settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    said=st.lists(
        st.tuples(
            st.sampled_from(["+15550100", "+15550101", None]),
            st.sampled_from(["main", "desk"]),
            st.integers(0, 9),
        ),
        max_size=6,
    )
)
def test_one_callers_facts_never_appear_for_another(
    app: App, said: list[tuple[str | None, str, int]]
) -> None:
    for caller, agent_id, number in said:
        words = f"My favourite number is {caller} {agent_id} {number}"
        learn(
            app,
            say(words, "Yes", caller=caller, agent_id=agent_id),
            reader_of(draft(words)),
        )
    for fact in app.facts.page(FactFilter(include_retired=True, limit=10_000)):
        assert fact.content.startswith(
            f"My favourite number is {fact.key.caller} {fact.key.agent_id} "
        )
        calls = {item.call_id for item in app.facts.list_occurrences(fact.id)}
        assert {
            (app.store.get(call).live.caller, app.store.get(call).live.agent_id)
            for call in calls
        } == {(fact.key.caller, fact.key.agent_id)}


def learn_each(app: App, *said: tuple[str, float], **fields: Any) -> None:
    for words, day in said:
        learn(app, say(words, "Yes", day=day), reader_of(draft(words, **fields)))


DISPUTED = (
    ("My daughter Noor wants the pink cake", 0),
    ("Noor changed her mind, the green cake it is", 1),
)


def states(app: App) -> dict[str, str]:
    every = app.facts.page(FactFilter(key=BILL, include_retired=True))
    return {fact.content: fact.state for fact in every}


def test_what_may_have_changed_is_disputed_and_both_facts_stay(app: App) -> None:
    learn_each(app, *DISPUTED)
    pink, green = app.facts.page(FactFilter(key=BILL))
    assert (pink.state, green.state, pink.dispute) == (
        "disputed",
        "disputed",
        green.dispute,
    )
    assert [fact.id for fact in app.facts.list_dispute(pink)] == [green.id, pink.id]
    learn_each(app, *DISPUTED)
    assert states(app) == dict.fromkeys((words for words, _ in DISPUTED), "disputed")


def test_a_person_settles_a_dispute_for_either_or_both(app: App) -> None:
    learn_each(app, *DISPUTED)
    pink, green = app.facts.page(FactFilter(key=BILL))
    app.corrections.settle(green.id, "me")
    assert list(states(app).values()) == ["superseded", "active"]
    assert [fact.id for fact in app.facts.get_history(green.id)] == [pink.id, green.id]
    assert (believed(app, 0.5), believed(app, 2)) == ([pink.content], [green.content])
    with pytest.raises(RefusedInput, match="is not disputed"):
        app.corrections.settle(green.id, "me")
    with pytest.raises(NotFound):
        app.corrections.settle("nobody", "me")


def test_settled_for_the_earlier_one_the_later_one_never_held(app: App) -> None:
    learn_each(app, *DISPUTED)
    pink, green = app.facts.page(FactFilter(key=BILL))
    app.corrections.settle(pink.id, "me")
    assert states(app) == {pink.content: "active", green.content: "wrong"}
    assert believed(app, 2) == [pink.content]
    assert find_texts(app, "cake") == {pink.content}


def test_settled_for_both_nothing_is_retired(app: App) -> None:
    learn_each(app, *DISPUTED)
    app.corrections.settle(app.facts.page(FactFilter(key=BILL))[0].id, "me", both=True)
    learn_each(app, *DISPUTED)
    assert set(states(app).values()) == {"active"}


def test_a_models_supersedes_settles_a_dispute(app: App) -> None:
    learn_each(app, *DISPUTED)
    pink, green = app.facts.page(FactFilter(key=BILL))
    learn_each(app, (green.content, 2), supersedes=pink.id)
    assert states(app) == {pink.content: "superseded", green.content: "active"}


@pytest.mark.parametrize("is_asked", [True, False])
def test_the_caller_settles_a_dispute_that_the_briefing_asked_about(
    app: App, is_asked: bool
) -> None:
    learn_each(app, *DISPUTED)
    pink, green = app.facts.page(FactFilter(key=BILL))
    briefed = Event(
        seq=1, kind=BRIEFED_EVENT, at=on(5), data={"facts": [pink.id, green.id]}
    )
    call = say(green.content, "Yes", day=5)
    if is_asked:
        call = call.model_copy(update={"events": (briefed,)})
    learn(app, call, reader_of(draft(green.content)))
    expected = ["superseded", "active"] if is_asked else ["disputed", "disputed"]
    assert list(states(app).values()) == expected


def test_what_was_never_true_is_told_from_what_was_true_until_then(app: App) -> None:
    learn_each(app, ("I live at 14 Quarry Lane", 0), category="person")
    learn_each(app, ("Sorry, I live at 41 Quarry Lane, not 14", 10), category="person")
    assert list(states(app).values()) == ["wrong", "active"]
    assert believed(app, 5) == ["Sorry, I live at 41 Quarry Lane, not 14"]
    assert find_texts(app, "Quarry", day=5) == {
        "Sorry, I live at 41 Quarry Lane, not 14"
    }
    wrong = app.facts.get_history(only(app).id)[0]
    app.corrections.restore(wrong.id, "me")
    assert believed(app, 5) == ["I live at 14 Quarry Lane"]


def test_what_hangs_on_a_retired_fact_is_doubtful_until_it_is_restored(
    app: App,
) -> None:
    learn_each(
        app,
        ("I live in Porto", 0),
        ("My commute takes twenty minutes", 1),
        ("I swim at the baths in Porto", 2),
        ("My sister Ann lives in Porto", 3),
        ("I like jazz", 4),
        ("I moved to Lisbon", 5),
        category="person",
    )
    doubtful = {
        content for content, state in states(app).items() if state == "doubtful"
    }
    assert doubtful == {
        "My commute takes twenty minutes",
        "I swim at the baths in Porto",
    }
    porto = app.facts.get_history(app.facts.page(FactFilter(key=BILL))[-1].id)[0]
    assert {fact.doubt for fact in app.facts.page(FactFilter(key=BILL))} == {
        None,
        porto.id,
    }
    app.corrections.restore(porto.id, "me")
    assert set(states(app).values()) == {"active"}


def test_an_appointment_hangs_on_who_it_is_with(app: App) -> None:
    learn_each(
        app,
        ("My dentist is Dr Patel", 0),
        ("My appointment with Dr Patel is on Friday", 1),
        ("I was born in Patel Street", 2),
        ("My dentist is Dr Novak now", 3),
        category="person",
    )
    doubtful = [
        content for content, state in states(app).items() if state == "doubtful"
    ]
    assert doubtful == ["My appointment with Dr Patel is on Friday"]
