"""Answers kept while one call is read, and forgotten with it: speech must not outlive its
reading in memory.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar, cast

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")
_FORGET: list[Callable[[], None]] = []


def remember(
    ask: Callable[Asked, Answer], max_answers: int = 4096
) -> Callable[Asked, Answer]:
    """For pure questions about a piece of text that several rules put."""
    kept = lru_cache(maxsize=max_answers)(ask)
    _FORGET.append(kept.cache_clear)
    return cast("Callable[Asked, Answer]", kept)


def clear_caches() -> None:
    for clear in _FORGET:
        clear()
