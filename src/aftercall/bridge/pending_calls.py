"""Calls that a webhook announced: who is calling is known from there and from nowhere else.

Their streams come a moment later.

A call that never gets its stream is sealed all the same, when the carrier says that it is over,
or after a while.
"""

import asyncio
from dataclasses import dataclass

from aftercall.bridge.turn_call import WRITE_TIMEOUT_S, Brief, fetch_briefing, with_timeout
from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.journal.record import CallRecorder, Journal
from aftercall.journal.resume import ResumeState
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.phone.stream_tokens import TOKEN_LIFETIME_S, StreamTokens

ENDED_CALL_RETENTION_S = 600.0

log = get_logger("lobby")


@dataclass
class PendingCall:
    """A call that is known here. `gone` is why it is over, once the carrier has said so."""

    record: CallRecorder
    briefing_task: asyncio.Task[tuple[ResumeState | None, Briefing]]
    registered_s: float
    is_streaming: bool = False
    end_reason: str | None = None
    is_sealed: bool = False
    stream_timeout_task: asyncio.Task[None] | None = None

    @property
    def call(self) -> LiveCall:
        return self.record.call


class PendingCalls:
    def __init__(
        self, journal: Journal, brief: Brief, greeting: str, tokens: StreamTokens, clock: Clock
    ) -> None:
        self._journal = journal
        self._brief = brief
        self._greeting = greeting
        self._tokens = tokens
        self._clock = clock
        self._calls: dict[tuple[str, str], PendingCall] = {}

    async def register(self, call: LiveCall) -> str:
        """A webhook says that this call rings: the pass its stream must bring.

        Announced twice it is one call, with two passes.

        Raises an AftercallError when the call cannot be written down, or is over already.
        """
        self._sweep()
        key = (call.source, call.sid)
        if key in self._calls:
            return self._tokens.issue(call.sid)
        record = await with_timeout(self._clock, WRITE_TIMEOUT_S, self._journal.open(call))
        if (
            key not in self._calls
        ):  # the same webhook may have come again meanwhile; a greeting is taken once
            prepared = asyncio.create_task(
                fetch_briefing(self._brief, call, self._greeting, self._clock)
            )
            guest = self._calls[key] = PendingCall(record, prepared, self._clock.monotonic())
            guest.stream_timeout_task = asyncio.create_task(self._await_stream(*key, guest))
        return self._tokens.issue(call.sid)

    def claim(
        self, source: str, sid: str, token: str | None, stream_sid: str
    ) -> PendingCall | None:
        """The call whose stream this is; None for a wrong or used pass, an unknown call, one
        that is over or has its stream.
        """
        guest = self._calls.get((source, sid))
        if (
            not self._tokens.redeem(sid, token)
            or guest is None
            or guest.end_reason
            or guest.is_streaming
        ):
            return None
        guest.is_streaming = True
        call = guest.call
        guest.record.call = call.model_copy(
            update={"metadata": {**call.metadata, "stream_sid": stream_sid}}
        )
        return guest

    async def end(self, source: str, sid: str, reason: str) -> None:
        """The carrier says that the call is over; told twice, it is over once."""
        guest = self._calls.get((source, sid))
        if guest is not None and guest.end_reason is None:
            guest.end_reason = reason
            if not guest.is_streaming:
                await self._seal(guest, reason)

    async def _seal(self, pending: PendingCall, reason: str) -> None:
        if pending.is_sealed:
            return
        pending.is_sealed = True
        try:
            await self._journal.seal(pending.record, end_reason=reason)
        except AftercallError as error:
            log.error("could not seal the call yet", call=pending.call.id, error=error.code)

    async def _await_stream(self, source: str, sid: str, pending: PendingCall) -> None:
        """A call whose stream has not come while its pass was good is over."""
        await self._clock.sleep(TOKEN_LIFETIME_S)
        if not pending.is_streaming:
            await self.end(source, sid, "no_stream")

    def _sweep(self) -> None:
        """Calls that are over leave after a while, late echoes of their webhooks included."""
        now_s = self._clock.monotonic()
        for key, guest in list(self._calls.items()):
            if guest.end_reason and now_s - guest.registered_s > ENDED_CALL_RETENTION_S:
                del self._calls[key]
