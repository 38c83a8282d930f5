"""Patterns asked only whether they occur: lower-casing a text once is several times faster than ignoring case at every letter."""

import re
from collections.abc import Iterable
from typing import Final

from aftercall.llm.rules.memo import remember


@remember
def lowered(text: str) -> str:
    return text.lower()


class Caseless:
    """A pattern written in lower case, for texts in any case. It answers yes or no: places in the lowered text may differ."""

    def __init__(self, pattern: str) -> None:
        self._pattern: Final = re.compile(pattern)

    def occurs(self, text: str) -> bool:
        return self._pattern.search(lowered(text)) is not None


def has_any(low: str, words: Iterable[str]) -> bool:
    for word in words:  # noqa: SIM110 -- a generator costs more than the search itself
        if word in low:
            return True
    return False
