"""How well a reader reads labelled calls: what is right, the shares, and two readers compared.

A label without a part says nothing about it: a part that is not labelled is not counted.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aftercall.errors import AftercallError, RefusedInput
from aftercall.labels import LabelledCall
from aftercall.llm.reader import Reader
from aftercall.model.calls import Call
from aftercall.model.json_fields import Json
from aftercall.model.reading import Reading, ReadingTrace
from aftercall.tester.statistics import paired_difference, wilson

FIGURES = {
    "requests, precision": "right, of those found",
    "requests, recall": "found, of those made",
    "kind right": "of found requests",
    "due day right": "of found requests with a day",
    "called off and left out": "of requests called off",
    "promises, precision": "right, of those found",
    "promises, recall": "found, of those made",
    "facts, precision": "told, of those found",
    "facts, recall": "found, of those worth keeping",
    "secrets marked secret": "of secrets found",
    "profile, precision": "right, of names etc. found",
    "profile, recall": "found, of names etc. told",
    "forbidden strings left out": "of misheard or retracted words",
    "forbidden strings told to nobody": "of those found, in secret facts only",
}
"""Each with what its share is of."""
PROFILE = ("name", "call_name", "pronouns", "timezone")
_TEXTS = {
    "requests": ("title", "details", "person", "words"),
    "promises": ("title", "words"),
    "facts": ("text", "summary", "words"),
}
Label = Json


@dataclass(frozen=True)
class ReadingFigure:
    """A share with Wilson's interval. `items` tell item by item what was right."""

    name: str
    items: dict[str, bool] = field(repr=False)

    @property
    def right(self) -> int:
        return sum(self.items.values())

    @property
    def wrong(self) -> int:
        return len(self.items) - self.right

    @property
    def share(self) -> float:
        """Not a number where nothing was counted: no figure may look good on no data."""
        return _share(list(self.items.values()))

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, len(self.items))

    def to_json(self) -> Json:
        low, high = self.interval
        return {
            "right": self.right,
            "of": len(self.items),
            "share": self.share if self.items else None,
            "low": low,
            "high": high,
            "items": self.items,
        }


class Score:
    """Adds up over calls."""

    def __init__(self) -> None:
        self.calls = 0
        self._items: defaultdict[str, dict[str, bool]] = defaultdict(dict)

    def __getitem__(self, name: str) -> ReadingFigure:
        return ReadingFigure(name, self._items[name])

    @property
    def figures(self) -> list[ReadingFigure]:
        return [self[name] for name in FIGURES]

    def f1(self, kind: str) -> float:
        """Twice the hits over all that was told or found: the mean of precision and recall that
        punishes the lower.
        """
        told = self[f"{kind}, recall"]
        found = self[f"{kind}, precision"]
        all_of = len(told.items) + len(found.items)
        return 2 * told.right / all_of if all_of else math.nan

    def add(self, gold: Label, reading: Reading, call: str = "") -> None:
        """`call` names the call in the items; two scores of it can be compared then."""
        self.calls += 1
        call = call or f"call {self.calls}"
        self._add_requests(call, gold, reading)
        self._add_kind(call, gold, reading, "promises")
        self._add_facts(call, gold, reading)
        self._add_profile(call, gold, reading)
        self._add_forbidden(call, gold, reading)

    def _note(self, figure: str, call: str, item: object, is_right: bool) -> None:
        self._items[figure][f"{call} {item}"] = is_right

    def _add_kind(
        self,
        call: str,
        gold: Label,
        reading: Reading,
        kind: str,
        grounds: frozenset[int] = frozenset(),
    ) -> list[tuple[int, Label, Any]]:
        """The labels of a kind, by number, with the items that fit them.

        An item that rests on `grounds` is no invention, even where it is worded otherwise.
        """
        labels = gold.get(kind)
        found = getattr(reading, kind)
        if labels is None:
            return []
        pairs = _pair(labels, kind, found)
        right = {id(item) for item in pairs.values()}
        for number in range(len(labels)):
            self._note(f"{kind}, recall", call, number, number in pairs)
        for number, item in enumerate(found):
            is_right = id(item) in right or not grounds.isdisjoint(item.turns)
            self._note(f"{kind}, precision", call, number, is_right)
        return [(number, labels[number], item) for number, item in pairs.items()]

    def _add_requests(self, call: str, gold: Label, reading: Reading) -> None:
        """Counts requests, their kinds and days, and what was called off."""
        pairs = self._add_kind(call, gold, reading, "requests")
        for number, label, request in pairs:
            if label.get("kind"):
                is_right = request.kind == label["kind"]
                self._note("kind right", call, number, is_right)
            if "due" in label and (label["due"] or request.due):
                is_right = str(request.due or "") == (label["due"] or "")
                self._note("due day right", call, number, is_right)
        matched = [request for _, _, request in pairs]
        others = [item for item in reading.requests if item not in matched]
        texts = [_text("requests", item) for item in others]
        for number, label in enumerate(gold.get("withdrawn") or ()):
            is_there = any(_holds(text, label["words"]) for text in texts)
            self._note("called off and left out", call, number, not is_there)

    def _add_facts(self, call: str, gold: Label, reading: Reading) -> None:
        """Counts facts, and the secrets among them that are marked."""
        labels = [label for kind in _TEXTS for label in gold.get(kind) or ()]
        grounds = frozenset(turn for label in labels for turn in label["turns"])
        for number, label, fact in self._add_kind(
            call, gold, reading, "facts", grounds
        ):
            if label["visibility"] == "secret":
                is_marked = fact.visibility == "secret"
                self._note("secrets marked secret", call, number, is_marked)

    def _add_profile(self, call: str, gold: Label, reading: Reading) -> None:
        """Counts names and the like, of those that the caller told."""
        labels = gold.get("profile") or {}
        for name in (name for name in PROFILE if name in labels):
            told, found = (
                (value or "").strip().lower()
                for value in (labels[name], getattr(reading.profile, name))
            )
            if told:
                self._note("profile, recall", call, name, told == found)
            if found:
                self._note("profile, precision", call, name, told == found)

    def _add_forbidden(self, call: str, gold: Label, reading: Reading) -> None:
        """A fact marked secret is neither acted on nor told: what stands only there is apart."""
        open_facts = [fact for fact in reading.facts if fact.visibility != "secret"]
        told = [_text("requests", item) for item in reading.requests]
        told += [_text("facts", item) for item in open_facts]
        told += [str(getattr(reading.profile, name) or "").lower() for name in PROFILE]
        kept = [_text("facts", item) for item in reading.facts]
        for number, word in enumerate(gold.get("not") or ()):
            is_told = any(word.lower() in text for text in told)
            self._note("forbidden strings left out", call, number, not is_told)
            if is_told or any(word.lower() in text for text in kept):
                figure = "forbidden strings told to nobody"
                self._note(figure, call, number, not is_told)


def _pair(labels: list[Label], kind: str, found: Iterable[Any]) -> dict[int, Any]:
    """The item of each label, the most telling label first; of several items the one that rests
    on the same turns.
    """
    left = [(_text(kind, item), item) for item in found]
    pairs = {}
    for number in sorted(
        range(len(labels)), key=lambda number: -len(labels[number]["words"])
    ):
        words = labels[number]["words"]
        turns = set(labels[number]["turns"])
        fits = [pair for pair in left if _holds(pair[0], words)]
        if fits:
            best = max(fits, key=lambda pair: len(turns.intersection(pair[1].turns)))
            left.remove(best)
            pairs[number] = best[1]
    return pairs


def _text(kind: str, item: Any) -> str:
    return " ".join(str(getattr(item, name) or "") for name in _TEXTS[kind]).lower()


def _holds(text: str, words: list[str]) -> bool:
    return all(word.lower() in text for word in words)


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else math.nan


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

    def to_json(self) -> Json:
        figures = {figure.name: figure.to_json() for figure in self.figures}
        return vars(self) | {"figures": figures, "seconds": round(self.seconds, 3)}

    def add_trace(self, trace: ReadingTrace) -> None:
        """A reader that does not name the cost of one answer has no known cost."""
        self.input_tokens += trace.input_tokens
        self.output_tokens += trace.output_tokens
        if trace.cost is None and (trace.input_tokens or trace.output_tokens):
            self.cost = None
        elif self.cost is not None:
            self.cost += trace.cost or 0.0


def evaluate_reader(
    reader: Reader, labelled: Iterable[LabelledCall], *, must_read: bool = False
) -> ReaderResult:
    """With `must_read`, the error of a call that cannot be read is raised."""
    result = ReaderResult(reader.name)
    score = Score()
    seen: Counter[str] = Counter()
    for item in labelled:
        started = time.perf_counter()
        try:
            reading = _read(reader, item.call, result)
        except AftercallError as error:
            if must_read:
                raise
            result.failed.append(f"{item.name}: {error.code}")
            continue
        finally:
            reader.forget(item.call.id)
            result.seconds += time.perf_counter() - started
        name = f"{item.call.source}/{item.call.sid}"
        seen[name] += 1
        again = f" ({seen[name]})" if seen[name] > 1 else ""
        score.add(item.gold, reading, name + again)
    result.calls = score.calls
    result.figures = score.figures
    return result


def _read(reader: Reader, call: Call, result: ReaderResult) -> Reading:
    """The questions that post-call work asks; each answer names its cost."""
    profile = reader.find_profile(call)
    asked = reader.find_requests(call)
    facts = reader.find_facts(call)
    for trace in (profile.trace, asked.trace, facts.trace):
        result.add_trace(trace)
    return Reading(
        language="",
        summary="",
        profile=profile.value,
        requests=asked.value.requests,
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

    @property
    def is_counted(self) -> bool:
        return math.isfinite(self.a) and math.isfinite(self.b)

    def to_json(self) -> Json:
        shown = vars(self) | {"is_sure": self.is_sure}
        return shown if self.is_counted else shown | {"a": None, "b": None}


def parse_results(name: str, data: Any) -> list[ReaderResult]:
    """What `to_json` wrote; RefusedInput if it is something else."""
    try:
        return [_parse_result(result) for result in data["readers"]]
    except (KeyError, TypeError, AttributeError):
        raise RefusedInput(
            name, "is not an answer of `aftercall eval reading --json`"
        ) from None


def _parse_result(result: Json) -> ReaderResult:
    items = {name: dict(result["figures"][name]["items"]) for name in FIGURES}
    figures = [ReadingFigure(*figure) for figure in items.items()]
    return ReaderResult(str(result["reader"]), int(result["calls"]), figures=figures)


def compare_readers(a: ReaderResult, b: ReaderResult) -> list[FigureDifference]:
    pairs = zip(a.figures, b.figures, strict=True)
    return [_compare(one, other) for one, other in pairs]


def _compare(a: ReadingFigure, b: ReadingFigure) -> FigureDifference:
    """Item by item where both readers were asked the same; precision counts what each found."""
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
    (low_a, high_a) = a.interval
    (low_b, high_b) = b.interval
    difference = b.share - a.share
    return (
        difference - math.hypot(b.share - low_b, high_a - a.share),
        difference + math.hypot(high_b - b.share, a.share - low_a),
    )
