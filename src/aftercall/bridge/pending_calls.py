"""Calls that a webhook announced and whose stream is still to come, or is running.

Who is calling is known from the webhook alone. A call that never gets its stream is sealed too:
when the carrier reports its end, or when its stream token expires.
"""

import asyncio
from dataclasses import dataclass

from aftercall.bridge.caller_tracker import WRITE_TIMEOUT_S, Brief, fetch_briefing
from aftercall.clock import Clock, attempt
from aftercall.errors import AftercallError
from aftercall.journal.journal import Journal
from aftercall.journal.recorder import CallRecorder, ResumeState
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.phone.signature import TOKEN_LIFETIME_S, StreamTokens

ENDED_CALL_RETENTION_S = 600.0

log = get_logger("pending_calls")


@dataclass
class PendingCall:
    """`end_reason` is why the call is over, once the carrier reported it."""

    recorder: CallRecorder
    briefing_task: asyncio.Task[tuple[ResumeState | None, Briefing]]
    registered_s: float
    is_streaming: bool = False
    end_reason: str | None = None
    stream_timeout_task: asyncio.Task[None] | None = None

    @property
    def call(self) -> LiveCall:
        return self.recorder.call


class PendingCalls:
    def __init__(
        self,
        journal: Journal,
        brief: Brief,
        greeting: str,
        tokens: StreamTokens,
        clock: Clock,
    ) -> None:
        self._journal = journal
        self._brief = brief
        self._greeting = greeting
        self.tokens = tokens
        self._clock = clock
        self._calls: dict[tuple[str, str], PendingCall] = {}

    async def register(self, call: LiveCall) -> str:
        """A webhook announces a call. Returns the token that its stream must bring.

        Announced twice it is one call with two tokens. Raises an AftercallError when the call
        cannot be written down, or is over already.
        """
        self._sweep()
        key = (call.source, call.sid)
        if key in self._calls:
            return self.tokens.issue(call.sid)
        recorder = await attempt(self._clock, WRITE_TIMEOUT_S, self._journal.open(call))
        if key not in self._calls:  # the webhook may have come again meanwhile
            briefing = asyncio.create_task(
                fetch_briefing(self._brief, call, self._greeting, self._clock)
            )
            pending = self._calls[key] = PendingCall(
                recorder, briefing, self._clock.monotonic()
            )
            pending.stream_timeout_task = asyncio.create_task(
                self._await_stream(*key, pending)
            )
        return self.tokens.issue(call.sid)

    def claim(
        self, source: str, sid: str, token: str | None, stream_sid: str
    ) -> PendingCall | None:
        """The call of this stream. None for a wrong or used token, and for a call that is
        unknown, over, or has its stream already.
        """
        pending = self._calls.get((source, sid))
        if not self.tokens.redeem(sid, token) or pending is None:
            return None
        if pending.end_reason or pending.is_streaming:
            return None
        pending.is_streaming = True
        call = pending.call
        metadata = {**call.metadata, "stream_sid": stream_sid}
        pending.recorder.call = call.model_copy(update={"metadata": metadata})
        return pending

    async def end(self, source: str, sid: str, reason: str) -> None:
        """The carrier reports that the call is over. A second report changes nothing."""
        pending = self._calls.get((source, sid))
        if pending is None or pending.end_reason is not None:
            return
        pending.end_reason = reason
        if pending.is_streaming:
            return
        try:
            await self._journal.seal(pending.recorder, end_reason=reason)
        except AftercallError as error:
            log.error(
                "could not seal the call yet", call=pending.call.id, error=error.code
            )

    async def _await_stream(self, source: str, sid: str, pending: PendingCall) -> None:
        """End a call whose stream has not come before its token expired."""
        await self._clock.sleep(TOKEN_LIFETIME_S)
        if not pending.is_streaming:
            await self.end(source, sid, "no_stream")

    def _sweep(self) -> None:
        """Ended calls stay for a while, for late repeats of their webhooks."""
        now_s = self._clock.monotonic()
        for key, pending in list(self._calls.items()):
            if (
                pending.end_reason
                and now_s - pending.registered_s > ENDED_CALL_RETENTION_S
            ):
                del self._calls[key]
