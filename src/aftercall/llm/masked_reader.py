"""A reader that never sees certain words: they are taken out of every call before it is read,
so no reading can hold them.
"""

from collections.abc import Callable, Sequence

from aftercall.llm.reader import Reader
from aftercall.model.calls import Call
from aftercall.model.reading import (
    FactDraft,
    Identity,
    KnownFact,
    Profile,
    Reading,
    ReadingResult,
    RequestsReading,
    Summary,
)

Mask = Callable[[str], str]


class MaskedReader:
    def __init__(self, reader: Reader, mask: Mask) -> None:
        self._reader = reader
        self._mask = mask

    @property
    def name(self) -> str:
        return self._reader.name

    def summarise(self, call: Call) -> ReadingResult[Summary]:
        return self._reader.summarise(self._hide(call))

    def find_profile(self, call: Call) -> ReadingResult[Profile]:
        return self._reader.find_profile(self._hide(call))

    def find_identity(self, call: Call) -> ReadingResult[Identity]:
        return self._reader.find_identity(self._hide(call))

    def find_greeting(self, call: Call, name: str | None) -> ReadingResult[str | None]:
        return self._reader.find_greeting(self._hide(call), name)

    def find_facts(
        self, call: Call, known: Sequence[KnownFact] = ()
    ) -> ReadingResult[tuple[FactDraft, ...]]:
        return self._reader.find_facts(self._hide(call), known)

    def find_requests(self, call: Call) -> ReadingResult[RequestsReading]:
        return self._reader.find_requests(self._hide(call))

    def read(self, call: Call) -> Reading:
        return self._reader.read(self._hide(call))

    def forget(self, call_id: str) -> None:
        self._reader.forget(call_id)

    def _hide(self, call: Call) -> Call:
        masked = tuple(
            turn.model_copy(update={"text": text})
            if (text := self._mask(turn.text)) != turn.text
            else turn
            for turn in call.turns
        )
        return call if masked == call.turns else call.model_copy(update={"turns": masked})
