"""A carrier's two-channel recording laid over what its webhooks told: the words from there, the
times from what is audible.
"""

from collections.abc import Sequence
from dataclasses import replace

from aftercall.speech.sound import SAMPLE_RATE_HZ, read_wav
from aftercall.tester.alignment import Alignment, Heard, align, length_of
from aftercall.tester.record import CallRecord, LineEvent, Span
from aftercall.tester.segments import Segment, Side, find_segments

GAP_S = 1.2  # what carriers recognise as one turn has pauses of this length in it
MIN_UNRECOGNISED_S = 0.5


def align_recording(record: CallRecord, wav: bytes) -> CallRecord:
    """The record with measured times, and with its sound.

    What cannot be found on the recording keeps its estimate, and says so.
    """
    try:
        channels = read_wav(wav)
    except ValueError:
        return replace(
            record,
            events=(
                *record.events,
                LineEvent(0.0, "missing_event", "the recording cannot be read"),
            ),
        )
    if len(channels) < 2:
        return replace(record, agent_sound=channels[0])
    caller, agent = channels[0], channels[1]
    best, other = (
        align(record.spans, _listen(caller, agent)),
        align(record.spans, _listen(agent, caller)),
    )
    if other.cost_s < best.cost_s:  # which leg is on which channel differs between kinds of calls
        caller, agent, best = agent, caller, other
    return replace(
        record,
        spans=tuple(place(record.spans, best.found)),
        events=tuple(sorted((*record.events, *_unrecognised(best)), key=lambda event: event.at_s)),
        caller_sound=caller,
        agent_sound=agent,
        duration_s=max(record.duration_s, len(agent) / SAMPLE_RATE_HZ),
    )


def place(spans: Sequence[Span], found: Sequence[Segment | None]) -> list[Span]:
    """Measured where there is a measure; else after what came before, for as long as its words
    take.
    """
    placed: list[Span] = []
    for span, segment in zip(spans, found, strict=True):
        if segment is not None:
            placed.append(
                replace(span, start_s=segment.start_s, end_s=segment.end_s, is_estimated=False)
            )
            continue
        start_s = max(
            [span.start_s if not any(found) else 0.0, *(other.end_s for other in placed[-1:])]
        )
        placed.append(
            replace(span, start_s=start_s, end_s=start_s + length_of(span), is_estimated=True)
        )
    return placed


def _listen(caller: bytes, agent: bytes) -> list[Heard]:
    sides: tuple[tuple[Side, bytes], ...] = (("caller", caller), ("agent", agent))
    heard: list[Heard] = [
        (who, segment) for who, sound in sides for segment in find_segments(sound, GAP_S)
    ]
    return sorted(heard, key=lambda item: item[1].start_s)


def _unrecognised(alignment: Alignment) -> list[LineEvent]:
    """Where the agent was heard and the carrier told no words."""
    return [
        LineEvent(segment.start_s, "unrecognised", f"{segment.seconds:.2f}")
        for who, segment in alignment.wordless
        if who == "agent" and segment.seconds >= MIN_UNRECOGNISED_S
    ]
