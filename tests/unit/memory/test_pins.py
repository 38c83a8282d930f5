"""Which topics come back is told without a model; everyday words, one call's repetitions and
secrets never are one.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.llm.rules.reader import RulesReader
from aftercall.memory.pins.topics import (
    Topic,
    find_common_terms,
    find_topics,
    is_weak,
    iter_terms,
    name_topic,
    read_topics,
)
from aftercall.model.calls import parse_call
from aftercall.model.facts import SpokenTopic
from aftercall.settings.sections import MemorySettings
from fakes import START, make_call
from recurring_callers import NOT_SETTLED, PASSING, RECURRING, SETTLED

WINDOW = timedelta(days=60)
LABELLED = sorted((Path(__file__).parents[3] / "bench" / "calls").glob("B*.json"))


def hear(
    said: str, day: float = 0, own: Sequence[str] = (), **fields: str
) -> SpokenTopic:
    talk = [
        ("agent", "Hello! I'm the assistant. What can I do for you?"),
        ("caller", said),
        ("agent", "I have noted that."),
    ]
    call = make_call(
        talk, started_at=START + timedelta(days=day), sid=f"s{day}", **fields
    )
    return read_topics(
        call,
        MemorySettings(),
        named=RulesReader().summarise(call).value.topics,
        own_names=own,
    )


def topics_in(
    calls: Sequence[SpokenTopic], common: frozenset[str] = frozenset()
) -> list[Topic]:
    return find_topics(calls, 3, WINDOW, common)


@pytest.mark.parametrize("thing", RECURRING)
def test_what_comes_back_in_three_calls_is_one_topic_named_after_it(thing: str) -> None:
    calls = [hear(said, day) for day, said in enumerate(RECURRING[thing])]
    (topic,) = topics_in(calls)
    assert thing in name_topic(topic.terms, calls).lower()
    assert topic.since.date() == (START + timedelta(days=2)).date()


@pytest.mark.parametrize("thing", PASSING)
def test_what_does_not_come_back_is_no_topic(thing: str) -> None:
    assert (
        topics_in(
            [
                hear(said, day, own=["Ottoline Crabtree"])
                for day, said in enumerate(PASSING[thing])
            ]
        )
        == []
    )


def test_a_dropped_call_and_its_continuation_are_one_conversation() -> None:
    first, second, third = RECURRING["boiler"]
    joined = [
        hear(first, 0, conversation="one"),
        hear(second, 0.01, conversation="one"),
        hear(third, 1),
    ]
    assert topics_in(joined) == []
    assert topics_in([*joined, hear(first, 2)]) != []


def test_what_came_up_too_long_ago_does_not_count() -> None:
    first, second, third = RECURRING["visa"]
    assert topics_in([hear(first, 0), hear(second, 61), hear(third, 62)]) == []
    assert (
        find_topics(
            [hear(first, 0), hear(second, 61), hear(third, 62)], 3, None, frozenset()
        )
        != []
    )


def test_none_is_pinned_where_that_is_switched_off() -> None:
    calls = [hear(said, day) for day, said in enumerate(RECURRING["visa"])]
    assert find_topics(calls, 0, WINDOW, frozenset()) == []


def test_what_other_callers_speak_of_as_well_is_nobodys_topic() -> None:
    clinic = [
        (
            f"caller {n}",
            hear(
                f"I'm calling about my referral. Is the nurse in? Number {n}.", n
            ).terms,
        )
        for n in range(8)
    ]
    common = find_common_terms(clinic)
    assert {"referr", "nurs"} <= common
    mine = [
        hear(f"It's about the nurse and my visa, {word}.", day)
        for day, word in enumerate(("again", "still", "please"))
    ]
    assert [topic.terms for topic in topics_in(mine, common)] == [("visa",)]
    assert find_common_terms(clinic[:1]) == frozenset()


def test_a_word_that_a_few_of_many_callers_use_stays_a_topic() -> None:
    others = [
        (f"caller {n}", frozenset({"visa"} if n < 3 else {"boiler"}))
        for n in range(100)
    ]
    assert find_common_terms(others) == {"boiler"}


@pytest.mark.parametrize("said", SETTLED)
def test_a_caller_says_that_it_is_settled(said: str) -> None:
    assert "boiler" in hear(said).settled


@pytest.mark.parametrize("said", NOT_SETTLED)
def test_asked_wished_denied_or_to_come_is_not_settled(said: str) -> None:
    assert "boiler" not in hear(said).settled


def test_settled_is_what_the_clause_names_not_its_neighbour() -> None:
    assert hear("The visa is done now but the boiler leaks again.").settled == {"visa"}


def test_a_sentence_with_a_secret_leaves_no_trace() -> None:
    spoken = hear(
        "It's about the visa. The password for the portal is swordfish. My diagnosis is gout, "
        "and the prescription ran out."
    )
    assert spoken.terms == {"visa"}
    assert [sentence.text for sentence in spoken.said] == ["It's about the visa."]


def test_secret_words_and_what_was_confided_become_no_topic() -> None:
    call = make_call(
        [
            (
                "caller",
                "It's about project Nightingale. My affair with Robin is over. The visa came.",
            )
        ]
    )
    spoken = read_topics(
        call,
        MemorySettings(secret_words=("Nightingale",)),
        confided=["affair with Robin"],
    )
    assert spoken.terms == {"visa"}


def test_a_model_names_topics_in_other_languages_where_our_words_do_not_reach() -> None:
    call = make_call(
        [
            (
                "caller",
                (
                    "Guten Tag, ich rufe wegen der Heizung an, die Heizung ist nicht warm und das "
                    "Bad ist kalt."
                ),
            )
        ]
    )
    assert read_topics(call, MemorySettings()).central == frozenset()
    assert read_topics(call, MemorySettings(), named=["Heizung"]).central == {"heizung"}


def test_strangers_calls_give_next_to_no_topics_even_as_one_callers() -> None:
    """36 invented calls about 36 things, taken for one caller's with nobody to compare with:
    the worst there is.
    """
    calls = [parse_call(json.loads(file.read_text())["call"]) for file in LABELLED]
    assert len(calls) == 36
    spoken = [
        read_topics(
            call, MemorySettings(), named=RulesReader().summarise(call).value.topics
        )
        for call in calls
    ]
    assert sum(len(each.central) for each in spoken) > 100
    assert len(find_topics(spoken, 3, None, frozenset())) <= 3


def test_strangers_calls_give_none_where_callers_can_be_compared() -> None:
    calls = [parse_call(json.loads(file.read_text())["call"]) for file in LABELLED]
    spoken = [read_topics(call, MemorySettings()) for call in calls]
    for mine in range(12):
        others = [
            (str(number % 12), each.terms)
            for number, each in enumerate(spoken)
            if number % 12 != mine
        ]
        assert find_topics(spoken[mine::12], 3, None, find_common_terms(others)) == []


@given(st.lists(st.text(max_size=80), max_size=5), st.integers(1, 4))
def test_any_words_are_read_and_no_everyday_word_is_a_topic(
    said: list[str], least: int
) -> None:
    calls = [hear(text or "…", day) for day, text in enumerate(said)]
    for topic in find_topics(calls, least, WINDOW, frozenset()):
        assert name_topic(topic.terms, calls)
        assert (
            len({call.conversation for call in calls if topic.terms[0] in call.terms})
            >= least
        )
        assert not any(is_weak(term) for term in topic.terms)


@given(st.permutations(range(3)))
def test_the_order_in_which_calls_are_read_does_not_matter(order: list[int]) -> None:
    calls = {day: hear(said, day) for day, said in enumerate(RECURRING["orlando"])}
    assert [topic.terms[0] for topic in topics_in([calls[day] for day in order])] == [
        "orlando"
    ]


def test_everyday_words_are_no_terms() -> None:
    assert (
        list(
            iter_terms(
                "Hello, could you please call me back on Monday morning, thank you, I'll wait."
            )
        )
        == []
    )
