"""How well a reading fits the labels of a call: counts that add up over calls, and the shares
that follow from them.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from aftercall.model.reading import FactDraft, Promise, Reading, Request

PROFILE = ("name", "call_name", "pronouns", "timezone")
Label = dict[str, Any]


@dataclass
class Score:
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, gold: Label, reading: Reading) -> None:
        requests = _pair(
            gold["requests"],
            [(_request_text(item), item.turns, item) for item in reading.requests],
        )
        promises = _pair(
            gold.get("promises", []),
            [(_promise_text(item), item.turns, item) for item in reading.promises],
        )
        facts = _pair(
            gold["facts"],
            [(_fact_text(item), item.turns, item) for item in reading.facts],
        )
        self._tally("requests", requests, gold["requests"], reading.requests)
        self._tally("promises", promises, gold.get("promises", []), reading.promises)
        self._tally("facts", facts, gold["facts"], reading.facts)
        self._add_due(requests)
        self._add_withdrawn(gold, reading, [item for _, item in requests])
        self._add_facts(gold, reading, facts)
        self._add_profile(gold, reading)
        self._add_forbidden(gold, reading)

    def _tally(
        self, kind: str, pairs: list[Any], labels: list[Label], found: Iterable[Any]
    ) -> None:
        self.counts[f"{kind} hit"] += len(pairs)
        self.counts[f"{kind} told"] += len(labels)
        self.counts[f"{kind} found"] += len(list(found))

    def _add_due(self, pairs: list[tuple[Label, Request]]) -> None:
        for label, request in pairs:
            if label.get("due") or request.due:
                self.counts["due of"] += 1
                self.counts["due right"] += str(request.due or "") == (
                    label.get("due") or ""
                )

    def _add_withdrawn(
        self, gold: Label, reading: Reading, matched: list[Request]
    ) -> None:
        for label in gold.get("withdrawn", []):
            self.counts["withdrawn told"] += 1
            others = [item for item in reading.requests if item not in matched]
            self.counts["withdrawn leaked"] += any(
                _holds(_request_text(item), label["words"]) for item in others
            )

    def _add_facts(
        self, gold: Label, reading: Reading, pairs: list[tuple[Label, FactDraft]]
    ) -> None:
        """A fact that rests on labelled turns is no invention, even where it is worded
        otherwise.
        """
        grounds = {
            turn
            for kind in ("facts", "requests", "promises")
            for label in gold.get(kind, [])
            for turn in label["turns"]
        }
        matched = [fact for _, fact in pairs]
        self.counts["facts sound"] += sum(
            fact in matched or bool(grounds & set(fact.turns)) for fact in reading.facts
        )
        for label, fact in pairs:
            if label["visibility"] == "secret":
                self.counts["secrets told"] += 1
                self.counts["secrets marked"] += fact.visibility == "secret"

    def _add_profile(self, gold: Label, reading: Reading) -> None:
        for name in PROFILE:
            told, found = gold["profile"].get(name), getattr(reading.profile, name)
            self.counts["profile told"] += bool(told)
            self.counts["profile found"] += bool(found)
            self.counts["profile hit"] += bool(
                told and found and told.strip().lower() == found.strip().lower()
            )

    def _add_forbidden(self, gold: Label, reading: Reading) -> None:
        said = [*map(_request_text, reading.requests), *map(_fact_text, reading.facts)]
        said += [str(getattr(reading.profile, name) or "").lower() for name in PROFILE]
        self.counts["forbidden"] += sum(
            any(word.lower() in text for text in said) for word in gold.get("not", [])
        )

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
    labels: list[Label], found: list[tuple[str, tuple[int, ...], Any]]
) -> list[tuple[Label, Any]]:
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
