"""Long lists in pieces: a statement takes only so many values."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
SOME = 500


def in_pieces(values: Sequence[T], size: int = SOME) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
