"""What the lab's callers make of an agent's voice: its words where there is a recogniser, else how long it sounded."""

from importlib.util import find_spec

from aftercall.errors import EngineLost
from aftercall.speech.organs import OwnEar
from aftercall.speech.sound import RATE


class Understanding:
    def __init__(self) -> None:
        self._ear: OwnEar | None = None

    async def of(self, sound: bytes) -> str:
        if find_spec("moonshine_voice") is None:
            return _measure(sound)
        self._ear = self._ear or OwnEar(1)
        try:
            return await self._ear.hear(sound) or _measure(sound)
        except EngineLost:
            return _measure(sound)

    def close(self) -> None:
        if self._ear is not None:
            self._ear.close()


def _measure(sound: bytes) -> str:
    return f"({len(sound) / RATE:.1f} s of sound)"
