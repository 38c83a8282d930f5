"""Patterns that first look whether a text has any of the words without which they cannot match.

Most of what is said matches hardly any pattern. To know the words of a text once, and to ask
each pattern only where one of its own words was said, is several times faster than to search;
which words those are is read off the pattern itself.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final, Generic, TypeVar

from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.needs import PREFIX, needed_words, prefix_of

_WORD = re.compile(r"\w+")
# letters that a pattern takes for plain ones, and lower case does not
_SAME = str.maketrans({"ſ": "s", "ı": "i", "İ": "i"})
Entry = TypeVar("Entry")


@remember
def lowered(text: str) -> str:
    return text.lower()


@remember
def words_of(text: str) -> frozenset[str]:
    """Its words, and the beginnings of those long enough to have one."""
    words = set(
        _WORD.findall(lowered(text if text.isascii() else text.translate(_SAME)))
    )
    words |= {prefix_of(word) for word in words if len(word) >= PREFIX}
    return frozenset(words)


class Cue:
    """A compiled pattern with the few methods the rules use."""

    def __init__(self, pattern: str, flags: int = re.I) -> None:
        self.pattern: Final = pattern
        self.flags: Final = flags
        self._compiled: Final = re.compile(pattern, flags)

    @cached_property
    def needs(self) -> frozenset[str] | None:
        """One of these must be said; None where the pattern does not tell."""
        return needed_words(self.pattern)

    @cached_property
    def _from_start(self) -> frozenset[str] | None:
        return needed_words(self.pattern, at_start=True)

    def search(self, text: str) -> re.Match[str] | None:
        needs = self.needs
        return (
            None
            if needs is not None and needs.isdisjoint(words_of(text))
            else self._compiled.search(text)
        )

    def match(self, text: str) -> re.Match[str] | None:
        needs = self._from_start
        return (
            None
            if needs is not None and needs.isdisjoint(words_of(text))
            else self._compiled.match(text)
        )

    def fullmatch(self, text: str) -> re.Match[str] | None:
        needs = self._from_start
        return (
            None
            if needs is not None and needs.isdisjoint(words_of(text))
            else self._compiled.fullmatch(text)
        )

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        needs = self.needs
        return (
            iter(())
            if needs is not None and needs.isdisjoint(words_of(text))
            else self._compiled.finditer(text)
        )

    def sub(
        self, new: str | Callable[[re.Match[str]], str], text: str, count: int = 0
    ) -> str:
        needs = self.needs
        return (
            text
            if needs is not None and needs.isdisjoint(words_of(text))
            else self._compiled.sub(new, text, count)
        )

    def split(self, text: str) -> list[str]:
        needs = self.needs
        return (
            [text]
            if needs is not None and needs.isdisjoint(words_of(text))
            else self._compiled.split(text)
        )


class Caseless:
    """A pattern written in lower case, for texts in any case.

    It answers yes or no: places in the lowered text may differ.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern: Final = pattern
        self._compiled: Final = re.compile(pattern)

    @cached_property
    def _needs(self) -> frozenset[str] | None:
        return needed_words(self._pattern)

    def occurs(self, text: str) -> bool:
        needs = self._needs
        if needs is not None and needs.isdisjoint(words_of(text)):
            return False
        return self._compiled.search(lowered(text)) is not None


class Table(Generic[Entry]):
    """Many patterns, each with what it stands for, looked up by the words of a text."""

    def __init__(self, entries: Iterable[tuple[Cue, Entry]]) -> None:
        self._entries: Final = tuple(entries)

    @cached_property
    def _by_word(self) -> tuple[dict[str, tuple[int, ...]], frozenset[int]]:
        index: dict[str, tuple[int, ...]] = {}
        untold = frozenset(
            number for number, (cue, _) in enumerate(self._entries) if cue.needs is None
        )
        for number, (cue, _) in enumerate(self._entries):
            for word in cue.needs or ():
                index[word] = (*index.get(word, ()), number)
        return index, untold

    def of(self, text: str) -> list[tuple[Cue, Entry]]:
        """Those that may match the text, in their order."""
        index, untold = self._by_word
        found = set(untold)
        for word in words_of(text):
            if word in index:
                found.update(index[word])
        return [self._entries[number] for number in sorted(found)]
