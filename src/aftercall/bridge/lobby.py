"""Calls that a webhook announced: who is calling is known from there and from nowhere else. Their streams come a moment later.

A call that never gets its stream is sealed all the same, when the carrier says that it is over, or after a while.
"""

import asyncio
from dataclasses import dataclass

from aftercall.bridge.turn_call import WRITE_WITHIN_S, Brief, be_briefed, within
from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.journal.record import Journal, Record
from aftercall.journal.store import ResumeState
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.phone.passes import LIFE_S, StreamPasses

KEPT_S = 600.0

log = get_logger("lobby")


@dataclass
class Guest:
    """A call that is known here. `gone` is why it is over, once the carrier has said so."""

    record: Record
    prepared: asyncio.Task[tuple[ResumeState | None, Briefing]]
    since_s: float
    is_streaming: bool = False
    gone: str | None = None
    is_sealed: bool = False
    waiting: asyncio.Task[None] | None = None

    @property
    def call(self) -> LiveCall:
        return self.record.call


class Lobby:
    def __init__(self, journal: Journal, brief: Brief, greeting: str, passes: StreamPasses, clock: Clock) -> None:
        self._journal = journal
        self._brief = brief
        self._greeting = greeting
        self._passes = passes
        self._clock = clock
        self._guests: dict[tuple[str, str], Guest] = {}

    async def announce(self, call: LiveCall) -> str:
        """A webhook says that this call rings: the pass its stream must bring. Announced twice it is one call, with two passes.

        Raises an AftercallError when the call cannot be written down, or is over already.
        """
        self._sweep()
        key = (call.source, call.sid)
        if key in self._guests:
            return self._passes.issue(call.sid)
        record = await within(self._clock, WRITE_WITHIN_S, self._journal.open(call))
        if key not in self._guests:  # the same webhook may have come again meanwhile; a greeting is taken once
            prepared = asyncio.create_task(be_briefed(self._brief, call, self._greeting, self._clock))
            guest = self._guests[key] = Guest(record, prepared, self._clock.monotonic())
            guest.waiting = asyncio.create_task(self._expect(*key, guest))
        return self._passes.issue(call.sid)

    def admit(self, source: str, sid: str, given: str | None, stream_sid: str) -> Guest | None:
        """The call whose stream this is; None for a wrong or used pass, an unknown call, one that is over or has its stream."""
        guest = self._guests.get((source, sid))
        if not self._passes.admit(sid, given) or guest is None or guest.gone or guest.is_streaming:
            return None
        guest.is_streaming = True
        call = guest.call
        guest.record.call = call.model_copy(update={"metadata": {**call.metadata, "stream_sid": stream_sid}})
        return guest

    async def end(self, source: str, sid: str, reason: str) -> None:
        """The carrier says that the call is over; told twice, it is over once."""
        guest = self._guests.get((source, sid))
        if guest is not None and guest.gone is None:
            guest.gone = reason
            if not guest.is_streaming:
                await self._seal(guest, reason)

    async def _seal(self, guest: Guest, reason: str) -> None:
        if guest.is_sealed:
            return
        guest.is_sealed = True
        try:
            await self._journal.seal(guest.record, end_reason=reason)
        except AftercallError as error:
            log.error("could not seal the call yet", call=guest.call.id, error=error.code)  # noqa: TRY400 - recovery tries again

    async def _expect(self, source: str, sid: str, guest: Guest) -> None:
        """A call whose stream has not come while its pass was good is over."""
        await self._clock.sleep(LIFE_S)
        if not guest.is_streaming:
            await self.end(source, sid, "no_stream")

    def _sweep(self) -> None:
        """Calls that are over leave after a while, late echoes of their webhooks included."""
        now_s = self._clock.monotonic()
        for key, guest in list(self._guests.items()):
            if guest.gone and now_s - guest.since_s > KEPT_S:
                del self._guests[key]
