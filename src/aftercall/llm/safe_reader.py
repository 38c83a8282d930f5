"""A reader that reads a call whole answers every question from one reading, kept for the steps
that come at the same time.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TypeVar

from aftercall.llm.phrases import phrase_request
from aftercall.model.calls import Call
from aftercall.model.reading import (
    FactDraft,
    Identity,
    KnownFact,
    Profile,
    Reading,
    ReadingResult,
    ReadingTrace,
    RequestsReading,
    Summary,
)

# more than the calls that are worked on at once: the urgent step of each comes before the
# others of any
MAX_CACHED_READINGS = 128
T = TypeVar("T")


class SafeReader(ABC):
    name: str

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], Reading] = OrderedDict()
        self._lock = Lock()

    @abstractmethod
    def read(self, call: Call) -> Reading: ...

    def summarise(self, call: Call) -> ReadingResult[Summary]:
        return self._answer(to_summary(self._reading(call)))

    def find_profile(self, call: Call) -> ReadingResult[Profile]:
        return self._answer(self._reading(call).profile)

    def find_identity(self, call: Call) -> ReadingResult[Identity]:
        return self._answer(self._reading(call).identity)

    def find_greeting(self, call: Call, name: str | None) -> ReadingResult[str | None]:
        reading = self._reading(call)
        known = name or reading.profile.spoken_name
        return self._answer(
            compose_greeting(known, [request.title for request in reading.requests])
        )

    def find_facts(
        self, call: Call, known: Sequence[KnownFact] = ()
    ) -> ReadingResult[tuple[FactDraft, ...]]:
        return self._answer(self._reading(call).facts)

    def find_requests(self, call: Call) -> ReadingResult[RequestsReading]:
        reading = self._reading(call)
        return self._answer(
            RequestsReading(
                requests=reading.requests, withdrawn=reading.withdrawn, promises=reading.promises
            )
        )

    def forget(self, call_id: str) -> None:
        with self._lock:
            for key in [key for key in self._kept if key[0] == call_id]:
                del self._kept[key]

    def _answer(self, value: T) -> ReadingResult[T]:
        return ReadingResult(value, ReadingTrace(self.name))

    def _reading(self, call: Call) -> Reading:
        """Under one lock: the steps of a call begin together, and the first one reads for all."""
        key = (call.id, len(call.turns))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self.read(call)
                while len(self._kept) > MAX_CACHED_READINGS:
                    self._kept.popitem(last=False)
            return self._kept[key]


def to_summary(reading: Reading) -> Summary:
    """The reading under headings. A secret stands under none of them."""
    open_facts = [fact for fact in reading.facts if fact.visibility != "secret"]
    decisions = [as_sentence(fact.text) for fact in open_facts if fact.category == "decision"]
    actions = [_with_due(request.title, request.due) for request in reading.requests] + [
        promise.title for promise in reading.promises
    ]
    return Summary(
        text=reading.summary,
        topics=tuple(request.title for request in reading.requests),
        decisions=tuple(decisions),
        actions=tuple(dict.fromkeys(actions)),
        facts=tuple(
            fact.summary for fact in open_facts if fact.category not in ("decision", "action_item")
        ),
        context=_context(reading),
    )


def as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _context(reading: Reading) -> str:
    name = reading.profile.call_name or reading.profile.name or "The caller"
    open_ends = [request.title for request in reading.requests] + [
        promise.title for promise in reading.promises
    ]
    return f"{name} may ask about: {'; '.join(dict.fromkeys(open_ends))}." if open_ends else ""


def _with_due(title: str, due: object) -> str:
    return f"{title} (by {due})" if due else title


def compose_greeting(name: str | None, requests: list[str]) -> str | None:
    """A sentence that shows the caller is remembered; nothing that was not asked for aloud goes
    into it.
    """
    if not requests:
        return f"Hey {name}, good to hear from you again!" if name else None
    hello = f"Hey {name}" if name else "Welcome back"
    return (
        f"{hello}, last time you asked me {phrase_request(requests[0])}; what can I do for "
        "you today?"
    )
