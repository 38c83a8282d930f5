"""How sure a result is: pass@k, pass^k, Wilson's intervals, and whether B is worse than A.

The running comparison is an e-value: one may look after every pair of calls and stop at any of
them without a higher error rate. It counts pairs in which exactly one of the two passed.

The track record says how often findings were right about agents that strangers wrote; it is
printed with every report. `bench/bench_tester.py --strangers FOLDER… --save` writes it.
"""

import itertools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from aftercall.model.json_fields import Json

DRAWS = 2000
TWO_SIDED_Z = 1.959964  # 95 % between two bounds
ONE_SIDED_Z = 1.644854  # 95 % above one bound
_EXACT = 12
_GRID = 400


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """The chance that at least one of k runs passes."""
    _check(runs, passed, k)
    return 1.0 - math.comb(runs - passed, k) / math.comb(runs, k)


def pass_hat_k(runs: int, passed: int, k: int) -> float:
    """The chance that all of k runs pass."""
    _check(runs, passed, k)
    return math.comb(passed, k) / math.comb(runs, k)


def _check(runs: int, passed: int, k: int) -> None:
    if not 1 <= k <= runs or not 0 <= passed <= runs:
        raise ValueError(
            f"{passed} of {runs} runs passed, {k} at a time: makes no sense"
        )


def wilson(passed: int, runs: int, z: float = TWO_SIDED_Z) -> tuple[float, float]:
    """Wilson's score interval of a rate; it stays wide when all runs passed, or none."""
    if not runs:
        return 0.0, 1.0
    share, extra = passed / runs, z * z / runs
    middle = share + extra / 2
    half = math.sqrt(extra * (share * (1 - share) + extra / 4))
    low = (middle - half) / (1 + extra) if passed else 0.0
    high = (middle + half) / (1 + extra) if passed < runs else 1.0
    return low, high


def speak_rate(passed: int, runs: int) -> str:
    """A rate for people: `100 % (95 %: 87 to 100 %)`."""
    low, high = wilson(passed, runs)
    share = f"{100 * passed / runs:.0f} %" if runs else "unknown"
    return f"{share} (95 %: {100 * low:.0f} to {100 * high:.0f} %)"


def percentile(values: Sequence[float], share: float) -> float | None:
    """The nearest rank, which is always a measured value."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


Passed = tuple[bool, bool]
"""Whether A and B passed the same run."""
Pairs = Sequence[Passed]


def paired_difference(pairs: Pairs, z: float = TWO_SIDED_Z) -> tuple[float, float]:
    """Newcombe's interval for B's rate minus A's in pairs, made of two Wilson intervals."""
    if not pairs:
        return -1.0, 1.0
    count = len(pairs)
    a = sum(a for a, _ in pairs)
    b = sum(b for _, b in pairs)
    both = sum(a and b for a, b in pairs)
    spread = math.sqrt(a * (count - a) * b * (count - b))
    phi = (both * count - a * b) / spread if spread else 0.0
    low_a, high_a = wilson(a, count, z)
    low_b, high_b = wilson(b, count, z)
    rate_a = a / count
    rate_b = b / count

    def reach(of_b: float, of_a: float) -> float:
        return math.sqrt(max(0.0, of_b**2 - 2 * phi * of_b * of_a + of_a**2))

    difference = rate_b - rate_a
    below = reach(rate_b - low_b, high_a - rate_a)
    above = reach(high_b - rate_b, rate_a - low_a)
    return difference - below, difference + above


def sign_flip(differences: Sequence[float]) -> float:
    """The chance of a mean difference this large, either way, if signs were random.

    Exact for few differences, sampled for many.
    """
    real = [value for value in differences if value]
    if not real:
        return 1.0
    seen = abs(sum(real)) - 1e-12
    if len(real) <= _EXACT:
        sums = [
            abs(sum(sign * value for sign, value in zip(signs, real, strict=True)))
            for signs in itertools.product((1, -1), repeat=len(real))
        ]
        return sum(value >= seen for value in sums) / len(sums)
    draw = random.Random(len(real))
    hits = sum(
        abs(sum(value * draw.choice((1, -1)) for value in real)) >= seen
        for _ in range(DRAWS)
    )
    return (hits + 1) / (DRAWS + 1)


def e_value(against: int, favour: int) -> float:
    """Evidence that one side loses more than half of the split pairs, averaged over all rates."""
    steps = [0.5 + 0.5 * (number + 0.5) / _GRID for number in range(_GRID)]
    return sum((2 * p) ** against * (2 * (1 - p)) ** favour for p in steps) / _GRID


Answer = Literal["worse", "not worse", "better", "undecided"]


@dataclass(frozen=True)
class Comparison:
    """Is B worse than A?"""

    answer: Answer
    pairs: int
    worse: int
    better: int
    passed_a: int
    passed_b: int
    difference: float
    interval: tuple[float, float]
    p: float
    """By a paired test over scenarios: how far it holds for other scenarios like these."""
    more_pairs: int | None
    chance: float = 1.0
    """That pairs split like this by luck, however often one looks; early stopping uses it."""

    @property
    def sentence(self) -> str:
        """The comparison in words, for a terminal and for a report."""
        low, high = self.interval
        change = (
            f"B passes {100 * self.difference:+.0f} points against A (95 %: {100 * low:+.0f} "
            f"to {100 * high:+.0f}) in {self.pairs} pairs"
        )
        rate_a = speak_rate(self.passed_a, self.pairs)
        rate_b = speak_rate(self.passed_b, self.pairs)
        rates = f"A {rate_a}, B {rate_b}"
        split = f"{self.worse} went only against B, {self.better} only for it"
        need = (
            f"; about {self.more_pairs} more pairs would decide it"
            if self.more_pairs
            else ""
        )
        luck = f"by luck at most {self.chance:.3f} over pairs, p = {self.p:.3f} over scenarios"
        return f"{self.answer}: {change}; {rates}; {split}; {luck}{need}"


def compare(
    pairs: Mapping[str, Pairs],
    *,
    alpha: float = 0.05,
    margin: float = 0.1,
) -> Comparison:
    """Compares pairs of (A passed, B passed) by scenario.

    `not worse`: the 95 % lower bound of the difference is above the margin.
    """
    flat = [pair for listed in pairs.values() for pair in listed]
    worse, better = sum(a and not b for a, b in flat), sum(b and not a for a, b in flat)
    means = [
        sum(b - a for a, b in listed) / len(listed)
        for listed in pairs.values()
        if listed
    ]
    against, favour = e_value(worse, better), e_value(better, worse)
    low = paired_difference(flat, ONE_SIDED_Z)[0]
    answer = _decide(against >= 1 / alpha, favour >= 1 / alpha, low > -margin)
    return Comparison(
        answer=answer,
        pairs=len(flat),
        worse=worse,
        better=better,
        passed_a=sum(a for a, _ in flat),
        passed_b=sum(b for _, b in flat),
        difference=(better - worse) / len(flat) if flat else 0.0,
        interval=paired_difference(flat),
        p=sign_flip(means),
        more_pairs=_more_pairs(len(flat), worse, better, alpha)
        if answer == "undecided"
        else None,
        chance=min(1.0, 1 / max(against, favour)),
    )


def _decide(is_worse: bool, is_better: bool, is_close: bool) -> Answer:
    if is_worse:
        return "worse"
    if is_better:
        return "better"
    return "not worse" if is_close else "undecided"


def _more_pairs(count: int, worse: int, better: int, alpha: float) -> int | None:
    """How many more pairs would decide it if they split as those so far."""
    if not count or worse == better:
        return None
    high, low = max(worse, better), min(worse, better)
    for times in range(2, 200):
        if e_value(high * times, low * times) >= 1 / alpha:
            return count * (times - 1)
    return None


@dataclass(frozen=True)
class Calibration:
    """The tester's error in milliseconds, and the interruptions and words it invented.

    `is_of_run`: measured in the run itself, on its line.
    """

    line: str
    turns: int
    latency_p50_ms: float
    latency_p95_ms: float
    latency_max_ms: float
    overlap_ms: float = 0.0
    silence_ms: float = 0.0
    false_barge_ins: int = 0
    word_error_rate: float = 0.0
    words: int = 0
    is_of_run: bool = False

    @classmethod
    def of_errors(cls, line: str, errors_ms: Sequence[float]) -> "Calibration":
        """From the error of each latency; the other figures are not measured."""
        p50, p95 = percentile(errors_ms, 0.5) or 0.0, percentile(errors_ms, 0.95) or 0.0
        worst = round(max(errors_ms, default=0.0), 2)
        return cls(line, len(errors_ms), round(p50, 2), round(p95, 2), worst)

    @property
    def false_barge_in_interval(self) -> tuple[float, float]:
        return wilson(min(self.false_barge_ins, self.turns), self.turns)

    @property
    def word_error_interval(self) -> tuple[float, float]:
        return wilson(
            min(round(self.word_error_rate * self.words), self.words), self.words
        )

    def as_json(self) -> Json:
        return asdict(self) | {
            "false_barge_in_interval": self.false_barge_in_interval,
            "word_error_interval": self.word_error_interval,
        }


@dataclass(frozen=True)
class TrackRecord:
    """Counts of agents; `kinds` has for each kind of bug: right, and reported."""

    faults: int
    found: int
    correct: int
    accused: int
    kinds: dict[str, tuple[int, int]]

    @property
    def sentence(self) -> str:
        found = f"{self.found} of {self.faults} faults found"
        accused = f"{self.accused} of {self.correct} correct ones accused"
        return f"on agents that strangers wrote: {found}, {accused}"

    def speak_kind(self, kind: str) -> str:
        """How often such a bug was right."""
        right, reported = self.kinds.get(kind, (0, 0))
        if not reported:
            return "not yet seen in an agent that a stranger wrote"
        agents = f"{right} of {reported} agents that strangers wrote"
        return f"right for {agents}, {speak_rate(right, reported)}"


@cache
def load_track_record() -> TrackRecord:
    path = files("aftercall.tester") / "track_record.json"
    data = json.loads(path.read_text("utf-8"))
    kinds = {name: (right, seen) for name, (right, seen) in data["kinds"].items()}
    counts = {name: data[name] for name in ("faults", "found", "correct", "accused")}
    return TrackRecord(**counts, kinds=kinds)
