"""How well a reading fits the labels of a call: counts that add up over calls, and the shares
that follow from them; and two readers compared.

A label without a part says nothing about it: a part that is not labelled is not counted.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aftercall.errors import AftercallError, RefusedInput
from aftercall.evaluation.labels import LabelledCall
from aftercall.llm.reader import Reader
from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft, Promise, Reading, ReadingTrace, Request
from aftercall.tester.statistics import paired_difference, wilson

PROFILE = ("name", "call_name", "pronouns", "timezone")
Label = dict[str, Any]
T = TypeVar("T", Request, Promise, FactDraft)


@dataclass(frozen=True)
class ReadingFigure:
    """A share with Wilson's interval. `items` tell call by call what was right."""

    name: str
    items: dict[str, bool] = field(repr=False)

    @property
    def right(self) -> int:
        return sum(self.items.values())

    @property
    def share(self) -> float:
        """Not a number where nothing was counted: no figure may look good on no data."""
        return self.right / len(self.items) if self.items else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, len(self.items))

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "right": self.right,
            "of": len(self.items),
            "share": self.share if self.items else None,
            "low": low,
            "high": high,
            "items": self.items,
        }


FIGURES = (
    "requests, precision",
    "requests, recall",
    "due day right",
    "called off and left out",
    "promises, precision",
    "promises, recall",
    "facts, precision",
    "facts, recall",
    "secrets marked secret",
    "profile, precision",
    "profile, recall",
    "forbidden strings left out",
)


@dataclass
class Score:
    counts: Counter[str] = field(default_factory=Counter)
    items: defaultdict[str, dict[str, bool]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    @property
    def figures(self) -> list[ReadingFigure]:
        return [ReadingFigure(name, self.items[name]) for name in FIGURES]

    def add(self, gold: Label, reading: Reading, call: str = "") -> None:
        """`call` names the call in the items; two scores of it can be compared then."""
        call = call or f"call {self.counts['calls']}"
        self.counts["calls"] += 1
        requests = self._pair(call, "requests", gold, reading.requests, _request_text)
        self._pair(call, "promises", gold, reading.promises, _promise_text)
        facts = self._pair(call, "facts", gold, reading.facts, _fact_text)
        self._add_due(call, requests)
        self._add_withdrawn(call, gold, reading, [item for _, item in requests])
        self._add_facts(call, gold, reading, facts)
        self._add_profile(call, gold, reading)
        self._add_forbidden(call, gold, reading)

    def _pair(
        self,
        call: str,
        kind: str,
        gold: Label,
        found: tuple[T, ...],
        text_of: Callable[[T], str],
    ) -> list[tuple[Label, T]]:
        """The labels of a kind with the items that fit them; counts both."""
        labels = gold.get(kind)
        if labels is None:
            return []
        pairs = _pair(labels, [(text_of(item), item.turns, item) for item in found])
        self.counts[f"{kind} hit"] += len(pairs)
        self.counts[f"{kind} told"] += len(labels)
        self.counts[f"{kind} found"] += len(found)
        hit = [id(label) for label, _ in pairs]
        right = [id(item) for _, item in pairs]
        for number, label in enumerate(labels):
            self._note(f"{kind}, recall", call, number, id(label) in hit)
        if kind != "facts":  # whose precision is counted by the turns, too
            for number, item in enumerate(found):
                self._note(f"{kind}, precision", call, number, id(item) in right)
        return pairs

    def _note(self, figure: str, call: str, item: object, is_right: bool) -> None:
        self.items[figure][f"{call} {item}"] = is_right

    def _add_due(self, call: str, pairs: list[tuple[Label, Request]]) -> None:
        for number, (label, request) in enumerate(pairs):
            if "due" in label and (label["due"] or request.due):
                is_right = str(request.due or "") == (label["due"] or "")
                self.counts["due of"] += 1
                self.counts["due right"] += is_right
                self._note("due day right", call, number, is_right)

    def _add_withdrawn(
        self, call: str, gold: Label, reading: Reading, matched: list[Request]
    ) -> None:
        for number, label in enumerate(gold.get("withdrawn") or ()):
            others = [item for item in reading.requests if item not in matched]
            is_leaked = any(
                _holds(_request_text(item), label["words"]) for item in others
            )
            self.counts["withdrawn told"] += 1
            self.counts["withdrawn leaked"] += is_leaked
            self._note("called off and left out", call, number, not is_leaked)

    def _add_facts(
        self,
        call: str,
        gold: Label,
        reading: Reading,
        pairs: list[tuple[Label, FactDraft]],
    ) -> None:
        """A fact that rests on labelled turns is no invention, even where it is worded
        otherwise.
        """
        if gold.get("facts") is None:
            return
        grounds = {
            turn
            for kind in ("facts", "requests", "promises")
            for label in gold.get(kind) or ()
            for turn in label["turns"]
        }
        matched = [fact for _, fact in pairs]
        for number, fact in enumerate(reading.facts):
            is_sound = fact in matched or bool(grounds & set(fact.turns))
            self.counts["facts sound"] += is_sound
            self._note("facts, precision", call, number, is_sound)
        for number, (label, fact) in enumerate(pairs):
            if label["visibility"] == "secret":
                is_marked = fact.visibility == "secret"
                self.counts["secrets told"] += 1
                self.counts["secrets marked"] += is_marked
                self._note("secrets marked secret", call, number, is_marked)

    def _add_profile(self, call: str, gold: Label, reading: Reading) -> None:
        labels = gold.get("profile") or {}
        for name in (name for name in PROFILE if name in labels):
            told, found = labels[name], getattr(reading.profile, name)
            is_hit = bool(
                told and found and told.strip().lower() == found.strip().lower()
            )
            self.counts["profile told"] += bool(told)
            self.counts["profile found"] += bool(found)
            self.counts["profile hit"] += is_hit
            if told:
                self._note("profile, recall", call, name, is_hit)
            if found:
                self._note("profile, precision", call, name, is_hit)

    def _add_forbidden(self, call: str, gold: Label, reading: Reading) -> None:
        said = [*map(_request_text, reading.requests), *map(_fact_text, reading.facts)]
        said += [str(getattr(reading.profile, name) or "").lower() for name in PROFILE]
        for number, word in enumerate(gold.get("not") or ()):
            is_there = any(word.lower() in text for text in said)
            self.counts["forbidden"] += is_there
            self._note("forbidden strings left out", call, number, not is_there)

    def share(self, hit: str, of: str) -> float:
        """Not a number where nothing was counted: no figure may look good on no data."""
        return self.counts[hit] / self.counts[of] if self.counts[of] else math.nan

    def f1(self, kind: str) -> float:
        """Twice the hits over all that was told or found: the mean of precision and recall that
        punishes the lower.
        """
        all_of = self.counts[f"{kind} told"] + self.counts[f"{kind} found"]
        return 2 * self.counts[f"{kind} hit"] / all_of if all_of else math.nan


def _pair(
    labels: list[Label], found: Iterable[tuple[str, tuple[int, ...], T]]
) -> list[tuple[Label, T]]:
    """Each label with one item, the most telling label first; of several items the one that
    rests on the same turns.
    """
    left, pairs = list(found), []
    for label in sorted(labels, key=lambda label: -len(label["words"])):
        fits = [item for item in left if _holds(item[0], label["words"])]
        if fits:
            best = max(fits, key=lambda item: len(set(item[1]) & set(label["turns"])))
            left.remove(best)
            pairs.append((label, best[2]))
    return pairs


def _holds(text: str, words: list[str]) -> bool:
    return all(word.lower() in text for word in words)


def _request_text(item: Request) -> str:
    return f"{item.title} {item.details} {item.person or ''} {item.words}".lower()


def _promise_text(item: Promise) -> str:
    return f"{item.title} {item.words}".lower()


def _fact_text(item: FactDraft) -> str:
    return f"{item.text} {item.summary} {item.words}".lower()


@dataclass
class ReaderResult:
    """One reader on all calls. A call that could not be read is in no figure."""

    reader: str
    calls: int = 0
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    figures: list[ReadingFigure] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "reader": self.reader,
            "calls": self.calls,
            "failed": self.failed,
            "figures": {figure.name: figure.to_json() for figure in self.figures},
            "cost": self.cost,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "seconds": round(self.seconds, 3),
        }

    def add_trace(self, trace: ReadingTrace) -> None:
        """A reader that does not name the cost of one answer has no known cost."""
        self.input_tokens += trace.input_tokens
        self.output_tokens += trace.output_tokens
        is_free = not (trace.input_tokens or trace.output_tokens)
        cost = 0.0 if is_free and trace.cost is None else trace.cost
        known = self.cost is not None and cost is not None
        self.cost = (self.cost or 0.0) + (cost or 0.0) if known else None


def evaluate_reader(reader: Reader, labelled: Iterable[LabelledCall]) -> ReaderResult:
    result, score = ReaderResult(reader.name), Score()
    seen: Counter[str] = Counter()
    for item in labelled:
        started = time.perf_counter()
        try:
            reading = _read(reader, item.call, result)
        except AftercallError as error:
            result.failed.append(f"{item.name}: {error.code}")
            continue
        finally:
            reader.forget(item.call.id)
            result.seconds += time.perf_counter() - started
        result.calls += 1
        name = f"{item.call.source}/{item.call.sid}"
        seen[name] += 1
        again = f" ({seen[name]})" if seen[name] > 1 else ""
        score.add(item.gold, reading, name + again)
    result.figures = score.figures
    return result


def _read(reader: Reader, call: Call, result: ReaderResult) -> Reading:
    """The questions that post-call work asks; each answer names its cost."""
    profile, asked = reader.find_profile(call), reader.find_requests(call)
    facts = reader.find_facts(call)
    for trace in (profile.trace, asked.trace, facts.trace):
        result.add_trace(trace)
    return Reading(
        language="",
        summary="",
        profile=profile.value,
        requests=asked.value.requests,
        withdrawn=asked.value.withdrawn,
        promises=asked.value.promises,
        facts=facts.value,
    )


@dataclass(frozen=True)
class FigureDifference:
    """B minus A. What both were asked is compared in pairs; precision counts what each found."""

    name: str
    pairs: int
    a: float
    b: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval of 95 % leaves out zero."""
        return self.low > 0 or self.high < 0

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            name: value if math.isfinite(value) else None
            for name, value in (("a", self.a), ("b", self.b))
        }
        shown |= {"pairs": self.pairs, "low": self.low, "high": self.high}
        return shown | {"is_sure": self.is_sure}


def parse_results(name: str, data: Any) -> list[ReaderResult]:
    """What `to_json` wrote; RefusedInput if it is something else."""
    try:
        return [_parse_result(result) for result in data["readers"]]
    except (KeyError, TypeError, AttributeError):
        raise RefusedInput(
            name, "is not an answer of `aftercall eval reading --json`"
        ) from None


def _parse_result(result: dict[str, Any]) -> ReaderResult:
    figures = [
        ReadingFigure(name, dict(result["figures"][name]["items"])) for name in FIGURES
    ]
    return ReaderResult(str(result["reader"]), int(result["calls"]), figures=figures)


def compare_readers(a: ReaderResult, b: ReaderResult) -> list[FigureDifference]:
    pairs = zip(a.figures, b.figures, strict=True)
    return [_compare(one, other) for one, other in pairs]


def _compare(a: ReadingFigure, b: ReadingFigure) -> FigureDifference:
    if a.name.endswith("precision"):
        low, high = _unpaired_difference(a, b)
        return FigureDifference(a.name, 0, a.share, b.share, low, high)
    shared = sorted(a.items.keys() & b.items.keys())
    pairs = [(a.items[key], b.items[key]) for key in shared]
    low, high = paired_difference(pairs)
    share_a, share_b = (_share([pair[side] for pair in pairs]) for side in (0, 1))
    return FigureDifference(a.name, len(pairs), share_a, share_b, low, high)


def _unpaired_difference(a: ReadingFigure, b: ReadingFigure) -> tuple[float, float]:
    """Newcombe's interval of two shares that were counted apart."""
    if not a.items or not b.items:
        return -1.0, 1.0
    (low_a, high_a), (low_b, high_b) = a.interval, b.interval
    difference = b.share - a.share
    return (
        difference - math.hypot(b.share - low_b, high_a - a.share),
        difference + math.hypot(high_b - b.share, a.share - low_a),
    )


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else math.nan
