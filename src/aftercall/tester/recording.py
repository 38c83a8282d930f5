"""A carrier's two-channel recording laid over what its webhooks told: the words from there, the times from what is audible."""

from dataclasses import replace

from aftercall.speech.sound import RATE, read_wav
from aftercall.tester.record import CallRecord, LineEvent, Span
from aftercall.tester.segments import Segment, Side, find_segments

GAP_S = 1.2  # what carriers recognise as one turn has pauses of this length in it


def lay_over(record: CallRecord, wav: bytes) -> CallRecord:
    """The record with measured times, where the recording has as many turns as the webhooks told of; else with its sound only."""
    try:
        channels = read_wav(wav)
    except ValueError:
        return replace(record, events=(*record.events, LineEvent(0.0, "missing_event", "the recording cannot be read")))
    if len(channels) < 2:
        return replace(record, agent_sound=channels[0])
    caller, agent = _tell_apart(channels[0], channels[1], record)
    spans = _measure("agent", agent, record) + _measure("caller", caller, record)
    return replace(
        record,
        spans=tuple(sorted(spans, key=lambda span: span.start_s)),
        caller_sound=caller,
        agent_sound=agent,
        duration_s=max(record.duration_s, len(agent) / RATE),
    )


def _tell_apart(first: bytes, second: bytes, record: CallRecord) -> tuple[bytes, bytes]:
    """Which leg is on which channel differs between kinds of calls: the agent's is the one that fits the agent's turns."""

    def fit(sound: bytes) -> float:
        heard = find_segments(sound, GAP_S)
        return sum(segment.overlap_s(span.segment) for segment in heard for span in record.agent_spans)

    return (second, first) if fit(first) > fit(second) else (first, second)


def _measure(who: Side, sound: bytes, record: CallRecord) -> list[Span]:
    spans = [span for span in record.spans if span.who == who]
    heard = find_segments(sound, GAP_S)
    if len(heard) != len(spans):
        heard = [_nearest(span, heard) for span in spans]
    return [replace(span, start_s=segment.start_s, end_s=segment.end_s) for span, segment in zip(spans, heard, strict=True)]


def _nearest(span: Span, heard: list[Segment]) -> Segment:
    """The stretch that this turn overlaps most; its own estimate if there is none."""
    best = max(heard, key=lambda segment: segment.overlap_s(span.segment), default=span.segment)
    return best if best.overlap_s(span.segment) > 0 else span.segment
