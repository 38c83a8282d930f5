"""Marks that are out with the carrier: a mark that comes back after a clear was dropped, not played."""

from collections import deque

from aftercall.phone.wire import MarkDropped, MarkPlayed, Odd, Oddity

OUTSTANDING = 1_000  # a carrier that never returns a mark must not fill the memory


class Marks:
    def __init__(self) -> None:
        self._waiting: deque[str] = deque(maxlen=OUTSTANDING)
        self._cleared: deque[str] = deque(maxlen=OUTSTANDING)

    def add(self, name: str) -> None:
        self._waiting.append(name)

    def clear(self) -> None:
        self._cleared.extend(self._waiting)
        self._waiting.clear()

    def take_back(self, name: str) -> MarkPlayed | MarkDropped | Odd:
        """Of two marks with one name the earlier returns first, so a cleared one counts before a waiting one."""
        if name in self._cleared:
            self._cleared.remove(name)
            return MarkDropped(name)
        if name in self._waiting:
            self._waiting.remove(name)
            return MarkPlayed(name)
        return Odd(Oddity.UNKNOWN_MARK)
