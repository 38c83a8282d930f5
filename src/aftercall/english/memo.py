"""Answers kept while a call is read, and forgotten with it: no speech outlives its reading."""

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar, cast

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")
_CLEARS: list[Callable[[], None]] = []


def remember(ask: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """Caches a pure function of a text until `clear_caches`."""
    kept = lru_cache(maxsize=4096)(ask)
    _CLEARS.append(kept.cache_clear)
    return cast("Callable[Asked, Answer]", kept)


def clear_caches() -> None:
    for clear in _CLEARS:
        clear()
