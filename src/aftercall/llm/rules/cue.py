"""Patterns that first look whether a text has any of the words without which they cannot match.

Most of what is said matches hardly any pattern. To know the words of a text once, and to ask each pattern only where one of its
own words was said, is several times faster than to search; which words those are is read off the pattern itself.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.needs import needed_words

_WORD = re.compile(r"\w+")


@remember
def words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


class Cue:
    """A compiled pattern with the few methods the rules use."""

    def __init__(self, pattern: str, flags: int = re.I) -> None:
        self.pattern: Final = pattern
        self._compiled: Final = re.compile(pattern, flags)

    @cached_property
    def _anywhere(self) -> frozenset[str] | None:
        """One of these must be said; None where the pattern does not tell."""
        return needed_words(self.pattern)

    @cached_property
    def _from_start(self) -> frozenset[str] | None:
        return needed_words(self.pattern, at_start=True)

    def _may_occur(self, text: str) -> bool:
        needs = self._anywhere
        return needs is None or not needs.isdisjoint(words_of(text))

    def _may_begin(self, text: str) -> bool:
        needs = self._from_start
        return needs is None or not needs.isdisjoint(words_of(text))

    def search(self, text: str) -> re.Match[str] | None:
        return self._compiled.search(text) if self._may_occur(text) else None

    def match(self, text: str) -> re.Match[str] | None:
        return self._compiled.match(text) if self._may_begin(text) else None

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._compiled.fullmatch(text) if self._may_begin(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._compiled.finditer(text) if self._may_occur(text) else iter(())

    def sub(self, new: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        return self._compiled.sub(new, text, count) if self._may_occur(text) else text

    def split(self, text: str) -> list[str]:
        return self._compiled.split(text) if self._may_occur(text) else [text]
