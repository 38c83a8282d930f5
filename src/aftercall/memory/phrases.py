"""Patterns made of phrases, so that the words without which they cannot match are known from
the same list.

Most sentences hold none of the phrases, and to know the words of a sentence is cheaper than to
search it.
"""

import re
from collections.abc import Collection, Mapping

_GAP = "…"
_FEW = r"(?: .{0,30})?"


class Phrases:
    """`…` in a phrase stands for a few words or none.

    `unless` tells, by phrase, what may not follow it.
    """

    def __init__(self, *phrases: str, unless: Mapping[str, str] | None = None) -> None:
        refused = unless or {}
        self.words = frozenset(
            max(reversed(phrase.split()), key=len) for phrase in phrases
        )
        """One of these stands in every text that holds a phrase: of each the longest word,
        which is seldom said by chance.
        """
        self.alternatives = "|".join(
            _written(phrase) + (f"(?!{refused[phrase]})" if phrase in refused else "")
            for phrase in sorted(phrases, key=len, reverse=True)
        )
        self.pattern = re.compile(rf"\b(?:{self.alternatives})\b")

    def occur(self, text: str, words: Collection[str]) -> bool:
        """`words` are all the words of the text."""
        return (
            not self.words.isdisjoint(words) and self.pattern.search(text) is not None
        )

    def replace(self, new: str, text: str) -> str:
        return self.pattern.sub(new, text)


def _written(phrase: str) -> str:
    return phrase.replace(f" {_GAP}", _FEW)
