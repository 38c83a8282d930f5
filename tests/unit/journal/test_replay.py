"""Journal rows back to turns and events."""

import random
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from aftercall.clock import to_millisecond
from aftercall.journal.replay import ReplayFault, replay_entries, to_entry
from aftercall.model.calls import Event, Speaker, Turn
from fakes import START


def turn(seq: int, text: str = "hello") -> Turn:
    return Turn(seq=seq, speaker="caller", text=text, at=START)


@given(st.lists(st.text(max_size=30), max_size=12), st.integers(0, 5), st.integers())
def test_entries_in_any_order_with_any_repeats_are_the_same_turns(
    texts: list[str], events: int, seed: int
) -> None:
    turns = tuple(turn(seq, text) for seq, text in enumerate(texts, 1))
    noted = tuple(Event(seq=seq, kind="tool", at=START) for seq in range(1, events + 1))
    entries = [
        *(to_entry("call", turn) for turn in turns),
        *(to_entry("call", event) for event in noted),
    ] * 2
    random.Random(seed).shuffle(entries)
    folded = replay_entries(entries)
    assert (folded.turns, folded.events, folded.faults) == (turns, noted, ())


@given(st.sets(st.integers(1, 12), min_size=1))
def test_every_missing_number_is_named(present: set[int]) -> None:
    folded = replay_entries([to_entry("call", turn(seq)) for seq in present])
    missing = [seq for seq in range(1, max(present)) if seq not in present]
    assert [fault.seq for fault in folded.faults] == missing


@given(st.datetimes(datetime(2000, 1, 2), datetime(2099, 12, 30)))  # noqa: DTZ001 - the zone is added below
def test_every_millisecond_survives_the_journal(naive: datetime) -> None:
    at = to_millisecond(naive.replace(tzinfo=UTC))
    assert (
        replay_entries([to_entry("call", Turn(seq=1, speaker="agent", text="", at=at))])
        .turns[0]
        .at
        == at
    )


@given(
    st.text(),
    st.none() | st.floats(0, 1),
    st.none() | st.integers(0, 10**6),
    st.sampled_from(["agent", "caller"]),
)
def test_a_turn_is_written_by_hand_as_the_model_would_write_it(
    text: str, confidence: float | None, delay_ms: int | None, speaker: Speaker
) -> None:
    said = Turn(
        seq=7,
        speaker=speaker,
        text=text,
        at=START,
        confidence=confidence,
        delay_ms=delay_ms,
    )
    assert Turn.model_validate_json(to_entry("call", said).body) == said
    assert set(Turn.model_fields) == {
        "seq",
        "speaker",
        "text",
        "at",
        "confidence",
        "delay_ms",
    }  # a new field has to be written, too


def test_of_two_versions_the_first_stands_and_the_conflict_shows() -> None:
    folded = replay_entries(
        [to_entry("call", turn(1, "first")), to_entry("call", turn(1, "second"))]
    )
    assert folded.turns[0].text == "first"
    assert folded.faults == (ReplayFault("journal.conflict", "turn", 1),)
