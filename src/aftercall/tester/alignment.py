"""Where turns are audible: finds stretches of sound and assigns them to turns with known words.

Turns and stretches are both in the order of the call, so the assignment is the cheapest path
through the two lists: a turn may have pauses in it, may be missing from the recording, and sound
may have no words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aftercall.speech.sound import (
    FRAME_BYTES,
    LOUDNESS,
    SAMPLE_RATE_HZ,
    SILENCE_LEVEL,
    cached_loudness,
    read_wav,
)
from aftercall.tester.record import CallRecord, LineEvent, Segment, Side, Span

HOP_BYTES = FRAME_BYTES // 2
NOISE_FACTOR = (
    2.2  # noise that swells and fades reaches twice the level of its quieter fifth
)
MIN_SEGMENT_S = 0.04
WORD_S = 0.38
KEY_S = 0.25
MIN_TURN_S = 0.3
MAX_SEGMENTS_PER_TURN = 8
MISSING_COST_S = 1.0  # the cost of a turn without sound, on top of its length
RECORDING_GAP_S = (
    1.2  # carriers recognise speech with pauses of this length as one turn
)
MIN_UNRECOGNISED_S = 0.5

Heard = tuple[Side, Segment]


def find_segments(sound: bytes, merge_s: float) -> list[Segment]:
    """Stretches of sound; gaps of up to `merge_s` belong to the speech around them."""
    hops = [
        cached_loudness(sound[at : at + HOP_BYTES])
        for at in range(0, len(sound), HOP_BYTES)
    ]
    threshold = _threshold(hops)
    found: list[Segment] = []
    start: int | None = None
    for number, loud in enumerate([*hops, 0.0]):
        if loud > threshold and start is None:
            start = number
        elif loud <= threshold and start is not None:
            found.append(
                _sharpen(sound, start * HOP_BYTES, number * HOP_BYTES, threshold)
            )
            start = None
    return [
        segment
        for segment in _merge(found, merge_s)
        if segment.seconds >= MIN_SEGMENT_S
    ]


def _threshold(hops: list[float]) -> float:
    """Above the noise, which the quieter fifth of the channel shows; below any speech."""
    if not hops:
        return SILENCE_LEVEL
    ordered = sorted(hops)
    noise, loudest = ordered[len(ordered) // 5], ordered[-1 - len(ordered) // 50]
    return max(SILENCE_LEVEL, min(noise * NOISE_FACTOR, loudest / 3))


def _sharpen(sound: bytes, start: int, end: int, threshold: float) -> Segment:
    """From the first to the last sample that is clearly above the threshold."""
    edge = threshold * 1.2
    first = max(0, start - HOP_BYTES)
    low = next((at for at in range(first, end) if LOUDNESS[sound[at]] > edge), start)
    end = min(end, len(sound))
    high = next(
        (at for at in range(end - 1, low, -1) if LOUDNESS[sound[at]] > edge), end - 1
    )
    return Segment(low / SAMPLE_RATE_HZ, (high + 1) / SAMPLE_RATE_HZ)


def _merge(found: list[Segment], merge_s: float) -> list[Segment]:
    """Speakers pause inside a turn."""
    merged: list[Segment] = []
    for segment in found:
        if merged and segment.start_s - merged[-1].end_s <= merge_s:
            merged[-1] = Segment(merged[-1].start_s, segment.end_s)
        else:
            merged.append(segment)
    return merged


@dataclass(frozen=True)
class Alignment:
    cost_s: float
    """How many seconds do not fit."""
    found: tuple[Segment | None, ...]
    """For each turn, its stretch of sound."""
    wordless: tuple[Heard, ...]
    """Sound that belongs to no turn."""


def expected_s(text: str, *, is_keys: bool = False) -> float:
    """How long it takes to say this, or to press it."""
    return max(MIN_TURN_S, KEY_S * len(text) if is_keys else WORD_S * len(text.split()))


def expected_span_s(span: Span) -> float:
    keys = span.text.removeprefix("[keys ").removesuffix("]")
    return expected_s(keys, is_keys=keys != span.text)


def align(spans: Sequence[Span], heard: Sequence[Heard]) -> Alignment:
    """The cheapest assignment.

    `best[i][j]` is the cost of the first i turns and j stretches, `step` the last move to it.
    """
    best = [[float("inf")] * (len(heard) + 1) for _ in range(len(spans) + 1)]
    step = [[(0, 0)] * (len(heard) + 1) for _ in range(len(spans) + 1)]
    best[0][0] = 0.0
    for i in range(len(spans) + 1):
        for j in range(len(heard) + 1):
            for turns, width, cost in _moves(spans[:i], heard[:j]):
                total = best[i - turns][j - width] + cost
                if total < best[i][j]:
                    best[i][j], step[i][j] = total, (turns, width)
    return _walk_back(spans, heard, step, best[-1][-1])


def _moves(
    spans: Sequence[Span], heard: Sequence[Heard]
) -> Iterator[tuple[int, int, float]]:
    """How the last turn and the last stretches may belong together: their numbers and the cost."""
    if heard:
        yield 0, 1, heard[-1][1].seconds
    if not spans:
        return
    span, length_s = spans[-1], expected_span_s(spans[-1])
    yield 1, 0, length_s + MISSING_COST_S
    for width in range(1, min(len(heard), MAX_SEGMENTS_PER_TURN) + 1):
        group = heard[-width:]
        if group[0][0] == span.who == group[-1][0]:
            stretch_s = group[-1][1].end_s - group[0][1].start_s
            other_s = sum(
                segment.seconds for side, segment in group if side != span.who
            )
            yield 1, width, abs(stretch_s - length_s) + other_s


def _walk_back(
    spans: Sequence[Span],
    heard: Sequence[Heard],
    step: list[list[tuple[int, int]]],
    cost_s: float,
) -> Alignment:
    """Follows the cheapest path from its end to its beginning."""
    found: list[Segment | None] = [None] * len(spans)
    wordless: list[Heard] = []
    i, j = len(spans), len(heard)
    while i or j:
        turns, width = step[i][j]
        group = heard[j - width : j]
        if turns and group:
            found[i - 1] = Segment(group[0][1].start_s, group[-1][1].end_s)
            wordless += [item for item in group if item[0] != spans[i - 1].who]
        else:
            wordless += group
        i, j = i - turns, j - width
    wordless.sort(key=lambda item: item[1].start_s)
    return Alignment(cost_s, tuple(found), tuple(wordless))


def align_recording(record: CallRecord, wav: bytes) -> CallRecord:
    """The record with the sound and the times of the carrier's two-channel recording.

    A turn that is not found there keeps an estimate.
    """
    try:
        channels = read_wav(wav)
    except ValueError:
        event = LineEvent(0.0, "missing_event", "the recording cannot be read")
        return replace(record, events=(*record.events, event))
    if len(channels) < 2:
        return replace(record, agent_sound=channels[0])
    caller, agent = channels[0], channels[1]
    best = align(record.spans, _hear(caller, agent))
    other = align(record.spans, _hear(agent, caller))
    if other.cost_s < best.cost_s:
        # which leg is on which channel differs between kinds of calls
        caller, agent, best = agent, caller, other
    events = sorted(
        (*record.events, *_unrecognised(best)), key=lambda event: event.at_s
    )
    return replace(
        record,
        spans=tuple(place(record.spans, best.found)),
        events=tuple(events),
        caller_sound=caller,
        agent_sound=agent,
        duration_s=max(record.duration_s, len(agent) / SAMPLE_RATE_HZ),
    )


def place(spans: Sequence[Span], found: Sequence[Segment | None]) -> list[Span]:
    """Measured times where there are any; else after the turn before, as long as the words take."""
    placed: list[Span] = []
    for span, segment in zip(spans, found, strict=True):
        is_estimated = segment is None
        if segment is None:
            start_s = 0.0 if any(found) else span.start_s
            if placed:
                start_s = max(start_s, placed[-1].end_s)
            segment = Segment(start_s, start_s + expected_span_s(span))
        start_s, end_s = segment.start_s, segment.end_s
        placed.append(
            replace(span, start_s=start_s, end_s=end_s, is_estimated=is_estimated)
        )
    return placed


def _hear(caller: bytes, agent: bytes) -> list[Heard]:
    sides: tuple[tuple[Side, bytes], ...] = (("caller", caller), ("agent", agent))
    heard: list[Heard] = [
        (who, segment)
        for who, sound in sides
        for segment in find_segments(sound, RECORDING_GAP_S)
    ]
    return sorted(heard, key=lambda item: item[1].start_s)


def _unrecognised(alignment: Alignment) -> list[LineEvent]:
    """Where the agent is audible and the carrier reported no words."""
    return [
        LineEvent(segment.start_s, "unrecognised", f"{segment.seconds:.2f}")
        for who, segment in alignment.wordless
        if who == "agent" and segment.seconds >= MIN_UNRECOGNISED_S
    ]
