"""Word lists, written as running text."""

from collections.abc import Iterable, Mapping


def vocabulary(text: str) -> frozenset[str]:
    return frozenset(text.split())


def alternatives(words: Iterable[str]) -> str:
    """A pattern for any of the words, longest first so that none hides behind a shorter one."""
    return "(?:" + "|".join(sorted(words, key=lambda word: (-len(word), word))) + ")"


def by_form(forms: Mapping[str, str]) -> dict[str, str]:
    """Each form of a word, and the word it stands for; written the other way round, a word and
    all its forms.
    """
    return {form: word for word, others in forms.items() for form in others.split()}
