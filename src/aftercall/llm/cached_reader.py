"""Base of readers that read a call once: all questions are answered from the cached reading."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
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

MAX_CACHED_READINGS = 128  # more than the calls that are worked on at once
T = TypeVar("T")


class CachedReader(ABC):
    name: str

    def __init__(self) -> None:
        self._readings: OrderedDict[tuple[str, int], Future[Reading]] = OrderedDict()
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
        titles = [request.title for request in reading.requests]
        return self._answer(
            compose_greeting(name or reading.profile.spoken_name, titles)
        )

    def find_facts(
        self, call: Call, known: Sequence[KnownFact] = ()
    ) -> ReadingResult[tuple[FactDraft, ...]]:
        return self._answer(self._reading(call).facts)

    def find_requests(self, call: Call) -> ReadingResult[RequestsReading]:
        reading = self._reading(call)
        return self._answer(
            RequestsReading(
                requests=reading.requests,
                unclear=reading.unclear,
                withdrawn=reading.withdrawn,
                promises=reading.promises,
            )
        )

    def forget(self, call_id: str) -> None:
        with self._lock:
            for key in [key for key in self._readings if key[0] == call_id]:
                del self._readings[key]

    def _answer(self, value: T) -> ReadingResult[T]:
        return ReadingResult(value, ReadingTrace(self.name))

    def _reading(self, call: Call) -> Reading:
        """The steps of a call start together: the first one reads, the others wait for it.

        Readings of other calls do not wait.
        """
        key = (call.id, len(call.turns))
        with self._lock:
            known = self._readings.get(key)
            reading = self._readings[key] = known or Future()
            while len(self._readings) > MAX_CACHED_READINGS:
                self._readings.popitem(last=False)
        if known is None:
            self._read_into(reading, call)
        return reading.result()

    def _read_into(self, reading: Future[Reading], call: Call) -> None:
        try:
            reading.set_result(self.read(call))
        except BaseException as error:
            self.forget(call.id)  # the next question reads again
            reading.set_exception(error)
            raise


def to_summary(reading: Reading) -> Summary:
    """The reading under headings, without secrets."""
    facts = [fact for fact in reading.facts if fact.visibility != "secret"]
    decisions = [
        as_sentence(fact.text) for fact in facts if fact.category == "decision"
    ]
    others = [
        fact for fact in facts if fact.category not in ("decision", "action_item")
    ]
    titles = [request.title for request in reading.requests]
    promises = [promise.title for promise in reading.promises]
    actions = [_with_due(request.title, request.due) for request in reading.requests]
    return Summary(
        text=reading.summary,
        topics=tuple(titles),
        decisions=tuple(decisions),
        actions=tuple(dict.fromkeys(actions + promises)),
        facts=tuple(fact.summary for fact in others),
        context=_context(reading.profile, titles + promises),
    )


def as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _context(profile: Profile, open_ends: list[str]) -> str:
    name = profile.call_name or profile.name or "The caller"
    return (
        f"{name} may ask about: {'; '.join(dict.fromkeys(open_ends))}."
        if open_ends
        else ""
    )


def _with_due(title: str, due: object) -> str:
    return f"{title} (by {due})" if due else title


def compose_greeting(name: str | None, requests: list[str]) -> str | None:
    """A sentence that shows the caller is remembered; it holds only what they asked for."""
    if not requests:
        return f"Hey {name}, good to hear from you again!" if name else None
    hello = f"Hey {name}" if name else "Welcome back"
    request = phrase_request(requests[0])
    return f"{hello}, last time you asked me {request}; what can I do for you today?"
