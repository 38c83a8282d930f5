"""A recording laid over what webhooks told: every turn finds its sound, and what finds none is
an estimate, never nothing.
"""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.speech.sound import SAMPLE_RATE_HZ, write_wav
from aftercall.tester.alignment import align, align_recording, expected_s
from aftercall.tester.finding import CallView
from aftercall.tester.findings.timing import measure
from aftercall.tester.record import CallRecord, Segment, Side, Span
from aftercall.tester.score import score
from unit.tester.calls import scenario_of

ANY = scenario_of("caller_context: {opening: Hi there.}")


def said(who: Side, text: str) -> Span:
    """As a webhook tells it when its clock stands still."""
    return Span(who, 0.0, expected_s(text), text, is_estimated=True)


def hum(*spans: tuple[float, float], length_s: float = 60.0) -> bytes:
    sound = bytearray(b"\xff" * round(length_s * SAMPLE_RATE_HZ))
    for start_s, end_s in spans:
        sound[round(start_s * SAMPLE_RATE_HZ) : round(end_s * SAMPLE_RATE_HZ)] = (
            b"\x20\xa0" * round((end_s - start_s) * SAMPLE_RATE_HZ / 2)
        )
    return bytes(sound)


def record_of(*spans: Span) -> CallRecord:
    now = datetime(2026, 3, 2, tzinfo=UTC)
    return CallRecord(
        "1",
        ANY.name,
        1,
        1,
        "phone",
        None,
        now,
        20.0,
        "answered",
        "agent",
        "hung up",
        spans,
    )


TALK = (
    said("agent", "Hello, this is the clinic, how can I help you?"),
    said("caller", "I would like to book an appointment, please."),
    said("agent", "Done. Anything else?"),
    said("caller", "No, that is all."),
)
CALLER = ((6.5, 9.5), (16.0, 17.5))
AGENT = ((0.5, 4.2), (10.5, 12.0))


@pytest.mark.parametrize("is_swapped", [False, True])
def test_times_are_the_recordings_whatever_the_webhooks_clock_said(
    is_swapped: bool,
) -> None:
    channels = (hum(*CALLER), hum(*AGENT))
    record = align_recording(
        record_of(*TALK), write_wav(*(reversed(channels) if is_swapped else channels))
    )
    assert [
        (span.who, round(span.start_s, 1), round(span.end_s, 1), span.is_estimated)
        for span in record.spans
    ] == [
        ("agent", 0.5, 4.2, False),
        ("caller", 6.5, 9.5, False),
        ("agent", 10.5, 12.0, False),
        ("caller", 16.0, 17.5, False),
    ]
    assert measure(CallView(record, ANY))["latency_s"] == [1.0]


def test_a_turn_spoken_with_long_pauses_is_one_turn() -> None:
    sound = write_wav(hum(*CALLER), hum((0.5, 1.5), (3.0, 4.6), (10.5, 12.0)))
    record = align_recording(record_of(*TALK), sound)
    assert (round(record.spans[0].start_s, 1), round(record.spans[0].end_s, 1)) == (
        0.5,
        4.6,
    )


def test_a_turn_that_is_on_no_recording_keeps_an_estimate_and_is_not_measured() -> None:
    record = align_recording(record_of(*TALK), write_wav(hum(*CALLER), hum((0.5, 4.2))))
    lost = record.spans[2]
    assert lost.is_estimated
    assert lost.seconds == pytest.approx(expected_s(lost.text))
    assert record.spans[1].end_s <= lost.start_s
    assert measure(CallView(record, ANY))["latency_s"] == []
    assert [
        finding.kind
        for finding in score(ANY, 1, [record]).findings
        if finding.kind in ("no_answer", "slow_answer")
    ] == []


def test_sound_without_words_is_told_and_never_taken_for_silence() -> None:
    record = align_recording(record_of(), write_wav(hum(), hum((1.0, 4.6))))
    assert [(event.kind, event.detail) for event in record.events] == [
        ("unrecognised", "3.60")
    ]
    found = {finding.kind: finding.who for finding in score(ANY, 1, [record]).findings}
    assert found["not_understood"] == "line"
    assert "never_spoke" not in found


def test_without_a_recording_nothing_is_measured_and_nothing_is_blamed() -> None:
    spans = [
        replace(span, start_s=5.0 * at, end_s=5.0 * at + 4)
        for at, span in enumerate(TALK)
    ]
    measured = measure(CallView(record_of(*spans), ANY))
    assert (
        measured["latency_s"],
        measured["first_word_s"],
        measured["silences_s"],
        measured["unmeasured_turns"],
    ) == ([], None, [], 4)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["agent", "caller"]),
            st.integers(1, 20),
            st.floats(0.8, 1.2),
        ),
        min_size=1,
        max_size=12,
    ),
    st.floats(1.5, 6.0),
)
def test_turns_and_sounds_of_any_call_find_each_other_in_order(
    turns: list[tuple[Side, int, float]], gap_s: float
) -> None:
    spans, heard, at_s = [], [], 0.5
    for who, words, pace in turns:
        spans.append(said(who, " ".join(["word"] * words)))
        heard.append((who, Segment(at_s, at_s + spans[-1].seconds * pace)))
        at_s = heard[-1][1].end_s + gap_s
    found = align(spans, heard)
    assert [segment for segment in found.found if segment is None] == []
    assert [segment.start_s for segment in found.found if segment] == [
        segment.start_s for _, segment in heard
    ]
    assert found.wordless == ()
    assert all(
        one.end_s <= other.start_s
        for one, other in pairwise(item for item in found.found if item)
    )
