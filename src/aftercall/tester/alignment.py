"""Turns whose words are known, and stretches of sound whose times are: which belongs to which.

Both come in the order of the call, so it is a matter of finding the cheapest way through the
two lists: a turn may have been spoken with pauses in it, may be on no recording, and sound may
have no words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.tester.record import Span
from aftercall.tester.segments import Segment, Side

WORD_S = 0.38
KEY_S = 0.25
MIN_TURN_S = 0.3
MAX_SEGMENTS_PER_TURN = 8  # stretches of one turn
MISSING_S = 1.0  # what it costs to find no sound for a turn, on top of its length

Heard = tuple[Side, Segment]


@dataclass(frozen=True)
class Alignment:
    cost_s: float
    """How many seconds do not fit."""
    found: tuple[Segment | None, ...]
    """For each turn where it was heard, if it was."""
    wordless: tuple[Heard, ...]
    """Sound that belongs to no turn."""


def expected_s(text: str, *, is_keys: bool = False) -> float:
    """How long it takes to say this, or to press it."""
    return max(MIN_TURN_S, KEY_S * len(text) if is_keys else WORD_S * len(text.split()))


def align(spans: Sequence[Span], heard: Sequence[Heard]) -> Alignment:
    """The cheapest way; `best[i][j]` is what the first i turns and j stretches cost, `step` how
    it was come to.
    """
    best = [[float("inf")] * (len(heard) + 1) for _ in range(len(spans) + 1)]
    step = [[(0, 0)] * (len(heard) + 1) for _ in range(len(spans) + 1)]
    best[0][0] = 0.0
    for i in range(len(spans) + 1):
        for j in range(len(heard) + 1):
            for back, cost in _ways(spans, heard, i, j):
                total = best[i - back[0]][j - back[1]] + cost
                if total < best[i][j]:
                    best[i][j], step[i][j] = total, back
    return _walk_back(spans, heard, step, best[-1][-1])


def _ways(
    spans: Sequence[Span], heard: Sequence[Heard], i: int, j: int
) -> list[tuple[tuple[int, int], float]]:
    """How the last turn and the last stretch may belong together: back by so many turns and
    stretches, at this cost.
    """
    ways = []
    if j:
        ways.append(((0, 1), heard[j - 1][1].seconds))
    if i:
        ways.append(((1, 0), length_of(spans[i - 1]) + MISSING_S))
    for width in range(1, min(j, MAX_SEGMENTS_PER_TURN) + 1 if i else 1):
        taken, left = _split(heard[j - width : j], spans[i - 1].who)
        if taken and heard[j - width][0] == spans[i - 1].who == heard[j - 1][0]:
            stretch = taken[-1].end_s - taken[0].start_s
            ways.append(
                (
                    (1, width),
                    abs(stretch - length_of(spans[i - 1]))
                    + sum(segment.seconds for segment in left),
                )
            )
    return ways


def length_of(span: Span) -> float:
    """How long this turn takes to say, or to press."""
    keys = span.text.removeprefix("[keys ").removesuffix("]")
    return expected_s(keys, is_keys=keys != span.text)


def _split(heard: Sequence[Heard], who: Side) -> tuple[list[Segment], list[Segment]]:
    return [segment for side, segment in heard if side == who], [
        segment for side, segment in heard if side != who
    ]


def _walk_back(
    spans: Sequence[Span], heard: Sequence[Heard], step: list[list[tuple[int, int]]], cost_s: float
) -> Alignment:
    found: list[Segment | None] = [None] * len(spans)
    wordless: list[Heard] = []
    i, j = len(spans), len(heard)
    while i or j:
        turns, width = step[i][j]
        group = heard[j - width : j]
        if turns and group:
            taken, _ = _split(group, spans[i - 1].who)
            found[i - 1] = Segment(taken[0].start_s, taken[-1].end_s)
            wordless += [item for item in group if item[0] != spans[i - 1].who]
        else:
            wordless += group
        i, j = i - turns, j - width
    return Alignment(
        cost_s, tuple(found), tuple(sorted(wordless, key=lambda item: item[1].start_s))
    )
