"""Calls that a webhook announced and whose stream is still to come, or is running.

Who is calling is known from the webhook alone. A call that never gets its stream is sealed too:
when the carrier reports its end, or when its stream token expires. On Postgres the stream may
come to another process, which takes the call with what was prepared for it. While the database is
away, the token carries the call, and the process that gets the stream opens it.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from aftercall.bridge.caller_tracker import WRITE_TIMEOUT_S, Brief, fetch_briefing
from aftercall.clock import Clock, attempt
from aftercall.errors import (
    AftercallError,
    CallElsewhere,
    CallNotLive,
)
from aftercall.journal.handover import TakenCall
from aftercall.journal.journal import Journal
from aftercall.journal.recorder import CallRecorder, PreparedBriefing
from aftercall.journal.replay import INTERRUPTED
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.phone.signature import TOKEN_LIFETIME_S, StreamTokens

ENDED_CALL_RETENTION_S = 600.0
MAX_CARRIED_BYTES = 280  # carriers pass on parameters of 500 characters

_ADAPTER = TypeAdapter(PreparedBriefing)

log = get_logger("pending_calls")


@dataclass
class PendingCall:
    """`end_reason` is why the call is over, once the carrier reported it."""

    recorder: CallRecorder
    briefing_task: asyncio.Future[PreparedBriefing]
    registered_s: float
    is_streaming: bool = False
    end_reason: str | None = None
    stream_timeout_task: asyncio.Task[None] | None = None
    sharing_task: asyncio.Task[None] | None = None

    @property
    def call(self) -> LiveCall:
        return self.recorder.call


class PendingCalls:
    """Announced calls, and what their streams must prove to get them."""

    def __init__(
        self,
        journal: Journal,
        brief: Brief,
        greeting: str,
        tokens: StreamTokens,
        clock: Clock,
    ) -> None:
        self._journal = journal
        self._handovers = journal.handovers
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
        if self._handovers.is_shared and self._journal.outage.is_active:
            return self.tokens.issue(call.sid, _pack_call(call))
        opening = attempt(self._clock, WRITE_TIMEOUT_S, self._journal.open(call))
        try:
            recorder = await opening
        except CallNotLive:
            if not await self._is_announced_elsewhere(call):
                raise
            return self.tokens.issue(call.sid)
        if key not in self._calls:  # the webhook may have come again meanwhile
            await self._offer(self._add(recorder, self._start_briefing(call)))
        return self.tokens.issue(call.sid)

    async def claim(
        self, source: str, sid: str, token: str | None, stream_sid: str
    ) -> PendingCall | None:
        """The call of this stream. None for a wrong or used token, and for a call that is
        unknown, over, or has its stream already.
        """
        if not self.tokens.redeem(sid, token):
            return None
        pending = self._calls.get((source, sid))
        if pending is not None and (pending.end_reason or pending.is_streaming):
            return None
        if self._is_shared(pending):
            pending = await self._take(source, sid, pending)
        carried = self.tokens.read_carried(sid, token)
        if pending is None and carried:
            pending = await self._open_carried(carried)
        if pending is None:
            return None
        pending.is_streaming = True
        call = pending.call
        metadata = {**call.metadata, "stream_sid": stream_sid}
        pending.recorder.call = call.model_copy(update={"metadata": metadata})
        return pending

    async def end(self, source: str, sid: str, reason: str) -> bool:
        """The carrier reports that the call is over. A second report changes nothing.

        False if the call is unknown here, or another process has its stream.
        """
        pending = self._calls.get((source, sid))
        if pending is None or pending.end_reason is not None:
            return pending is not None
        pending.end_reason = reason
        if pending.is_streaming:
            return True
        try:
            await self._journal.seal(pending.recorder, end_reason=reason)
        except CallNotLive:
            return False
        except AftercallError as error:
            log.error(
                "could not seal the call yet", call=pending.call.id, error=error.code
            )
        return True

    async def is_cut_off(self, source: str, sid: str) -> bool:
        """Whether the stream ended without a goodbye: it never opened, or its process died."""
        pending = self._calls.get((source, sid))
        if pending is not None and pending.is_streaming:
            return False
        row = await asyncio.to_thread(self._journal.store.find, source, sid)
        if row is None or row.state != "live":
            return row is None or row.end_reason == INTERRUPTED
        presence = self._journal.presence
        if row.owner == presence.process:
            return True
        return not await asyncio.to_thread(
            presence.is_alive, row.owner, self._clock.now()
        )

    def forget(self, call: LiveCall) -> None:
        """Another process has the call now."""
        pending = self._calls.get((call.source, call.sid))
        if pending is not None and pending.call.id == call.id:
            del self._calls[call.source, call.sid]
            for task in (pending.stream_timeout_task, pending.sharing_task):
                if task is not None:
                    task.cancel()

    def _is_shared(self, pending: PendingCall | None) -> bool:
        """Whether the database decides who gets the stream. A spilled call is in no database."""
        is_away = self._journal.outage.is_active
        is_spilling = pending is not None and pending.recorder.is_spilling
        return self._handovers.is_shared and not is_away and not is_spilling

    def _start_briefing(self, call: LiveCall) -> asyncio.Task[PreparedBriefing]:
        return asyncio.create_task(
            fetch_briefing(self._brief, call, self._greeting, self._clock)
        )

    async def _offer(self, pending: PendingCall) -> None:
        """From here on the stream may come to any process."""
        if not self._is_shared(pending):
            return
        call_id = pending.call.id
        offering = asyncio.to_thread(
            self._handovers.offer, call_id, float(TOKEN_LIFETIME_S)
        )
        if await self._try(call_id, offering):
            pending.sharing_task = asyncio.create_task(self._share_briefing(pending))

    async def _share_briefing(self, pending: PendingCall) -> None:
        prepared = _ADAPTER.dump_json(await pending.briefing_task).decode()
        call_id = pending.call.id
        adding = asyncio.to_thread(self._handovers.add_briefing, call_id, prepared)
        await self._try(call_id, adding)

    async def _try(self, call_id: str, work: Awaitable[object]) -> bool:
        try:
            await attempt(self._clock, WRITE_TIMEOUT_S, work)
        except AftercallError as error:
            log.warning(
                "only this process can take the stream", call=call_id, error=error.code
            )
            return False
        return True

    async def _is_announced_elsewhere(self, call: LiveCall) -> bool:
        """Whether another process had the same webhook, and its call still waits."""
        if not self._is_shared(None):
            return False
        row = await asyncio.to_thread(self._journal.store.find, call.source, call.sid)
        ids = [row.live.id] if row else []
        return bool(await asyncio.to_thread(self._handovers.list_offered, ids))

    async def _take(
        self, source: str, sid: str, pending: PendingCall | None
    ) -> PendingCall | None:
        """Goes on when it is late: a call that was taken is kept, and ends without a stream."""
        taking = asyncio.create_task(self._take_offered(source, sid, pending))
        try:
            return await attempt(self._clock, WRITE_TIMEOUT_S, asyncio.shield(taking))
        except CallElsewhere:
            return None
        except AftercallError as error:
            log.warning("the database did not answer a stream", error=error.code)
            return (
                pending  # the stream came to the process that announced it, or to none
            )

    async def _take_offered(
        self, source: str, sid: str, pending: PendingCall | None
    ) -> PendingCall | None:
        taken = await asyncio.to_thread(
            self._handovers.take, source, sid, is_stream=True
        )
        if taken is None:
            return None
        if pending is not None and taken.row.owner == self._handovers.process:
            return pending
        recorder = await asyncio.to_thread(self._journal.adopt, taken.row.live)
        adopted = self._add(recorder, self._load_briefing(taken))
        if taken.row.end_reason is not None:
            await self.end(source, sid, taken.row.end_reason)
            return None
        return adopted

    async def _open_carried(self, carried: str) -> PendingCall | None:
        """Opens a call that was announced while the database was away."""
        call = LiveCall.model_validate_json(carried)
        opening = attempt(self._clock, WRITE_TIMEOUT_S, self._journal.open(call))
        try:
            recorder = await opening
        except AftercallError as error:
            log.error("could not open the call", call=call.id, error=error.code)
            return None
        return self._add(recorder, self._start_briefing(call))

    def _add(
        self, recorder: CallRecorder, briefing: asyncio.Future[PreparedBriefing]
    ) -> PendingCall:
        """A call of this process, which ends if its stream does not come."""
        key = (recorder.call.source, recorder.call.sid)
        pending = PendingCall(recorder, briefing, self._clock.monotonic())
        self._calls[key] = pending
        pending.stream_timeout_task = asyncio.create_task(
            self._await_stream(*key, pending)
        )
        return pending

    def _load_briefing(self, taken: TakenCall) -> asyncio.Future[PreparedBriefing]:
        try:
            prepared = _ADAPTER.validate_json(taken.briefing or "")
        except ValidationError:  # not ready yet, or written by another version
            return self._start_briefing(taken.row.live)
        loaded = asyncio.get_running_loop().create_future()
        loaded.set_result(prepared)
        return loaded

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


def _pack_call(call: LiveCall) -> str:
    """As JSON, for a token; without its details where they are too long."""
    left_out = {"conversation"}  # its own: it rings
    packed = call.model_dump_json(exclude_defaults=True, exclude=left_out)
    if len(packed) > MAX_CARRIED_BYTES:
        left_out.add("metadata")
        packed = call.model_dump_json(exclude_defaults=True, exclude=left_out)
    return packed
