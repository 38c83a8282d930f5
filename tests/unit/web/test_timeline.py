"""A call as a timeline: one order, nothing secret, and what each turn led to."""

import itertools
import re
from datetime import timedelta

from aftercall.model.calls import Event
from aftercall.speech.sound import SILENCE, encode, tone, write_wav
from aftercall.web.pages.timeline import (
    MadeItem,
    describe_event,
    draw_lanes,
    draw_waveform,
    make_timeline,
)
from fakes import START, make_call

CALL = make_call(
    [("agent", "We are open until"), ("caller", "Wait, please."), ("agent", "Yes?")]
)


def event(kind: str, second: float, **data: object) -> Event:
    return Event(seq=1, kind=kind, at=START + timedelta(seconds=second), data=data)


def test_events_stand_between_the_turns_they_happened_between() -> None:
    used = event("tool.used", 5, tool="search_memory", ms=41)
    rows = make_timeline(CALL.turns, [used], [], ())
    assert [row.speaker for row in rows] == ["agent", "caller", "event", "agent"]
    assert rows[2].text == "The agent used a tool: search memory, 41 ms"


def test_what_was_said_but_not_heard_is_shown_apart_and_without_secrets() -> None:
    said = "We are open until six, and your PIN is 4471."
    cut = event("barge_in", 4, said=said, heard="We are open until")
    (first, *others) = make_timeline(CALL.turns, [cut], [], ["4471"])
    assert first.text == "We are open until"
    assert first.unheard.startswith("six, and your PIN is")
    assert "4471" not in first.unheard
    assert not any(row.unheard for row in others)


def test_a_request_hangs_on_the_turn_that_asked_for_it() -> None:
    item = MadeItem("request", "Wait", "/followups/1", "held", seq=2)
    elsewhere = MadeItem("request", "Said in another call", "/followups/2")
    rows = make_timeline(CALL.turns, [], [item, elsewhere], ())
    assert [row.made for row in rows] == [(), (item,), ()]


def test_a_pressed_key_is_not_named() -> None:
    assert "7" not in describe_event(event("key.pressed", 1, digit="7"))


def test_bars_of_a_lane_never_overlap_the_next_turn() -> None:
    item = MadeItem("request", "Call the plumber", "/followups/1", "held", 2)
    lanes = draw_lanes(make_timeline(CALL.turns, [], [item], ()), START, 8.0)
    assert list(lanes) == ["agent", "caller", "request"]
    bars = [
        (float(x), float(width))
        for speaker in ("agent", "caller")
        for x, width in re.findall(r"M([\d.]+) \d+h([\d.]+)", lanes[speaker])
    ]
    assert len(bars) == 3
    for (x, width), (after, _) in itertools.pairwise(sorted(bars)):
        assert x + width <= after


def test_a_recording_of_two_sides_has_two_outlines() -> None:
    drawn = draw_waveform(write_wav(encode(tone(440, 1.0)), SILENCE * 50))
    assert drawn is not None
    assert drawn.length_s == 1.0
    loud, silent = drawn.outlines
    assert "16.0" not in loud.split("L")[0]
    assert silent.count("48.0") == 2 * len(silent.split("L")) // 2


def test_a_file_that_is_no_wav_has_no_outline() -> None:
    assert draw_waveform(b"ID3 whatever") is None
