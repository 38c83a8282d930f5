"""Word lists, written as running text."""

from collections.abc import Iterable


def vocabulary(text: str) -> frozenset[str]:
    return frozenset(text.split())


def alternatives(words: Iterable[str]) -> str:
    """A pattern for any of the words, longest first so that none hides behind a shorter one."""
    return "(?:" + "|".join(sorted(words, key=lambda word: (-len(word), word))) + ")"
