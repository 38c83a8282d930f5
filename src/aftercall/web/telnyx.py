"""Telnyx's webhooks, and the commands that answer them. Only signed events are accepted.

Events arrive twice and out of order. For the receptionist, Telnyx itself speaks and transcribes:
a number needs no other account. With a voice engine, the call's audio goes to the media socket
(`media.py`), and events only begin and end the call.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from fastapi import APIRouter, HTTPException, Request
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.bridge.caller_tracker import WRITE_TIMEOUT_S
from aftercall.bridge.switchboard import SpokenReply
from aftercall.bridge.turn_call import SORRY_GOODBYE
from aftercall.carrier.control import TelnyxRest
from aftercall.clock import Clock, parse_instant
from aftercall.engine.voice import AgentReply
from aftercall.errors import (
    AftercallError,
    CallOver,
    CarrierError,
    CarrierUnreachable,
    DatabaseUnreachable,
)
from aftercall.log import get_logger
from aftercall.model.calls import Call, LiveCall
from aftercall.overload import BUSY
from aftercall.phone.notices import (
    CallProgress,
    CarrierCallState,
    ControlRequest,
    Notice,
    RecordingNotice,
    RingNotice,
    SpeakingEnded,
    SpeechGathered,
    StreamFailed,
)
from aftercall.phone.signature import TOKEN_PARAMETER, TelnyxSignature
from aftercall.phone.telnyx import (
    CALL_STATE_KEY,
    NUMBER_STATE_KEY,
    REFUSED,
    SOURCE,
    TelnyxControl,
    read_event,
)
from aftercall.web.carrier import (
    TELNYX_MEDIA,
    get_stream_url,
    is_refused,
    make_call_factory,
    read_signed_body,
    store_recording_notice,
)
from aftercall.web.routes import add_section

STOPPING = "no new calls here: the process is about to stop"
NOT_SET_UP = "Telnyx is not set up here: set TELNYX_API_KEY and TELNYX_PUBLIC_KEY"
MAX_REMEMBERED_CALLS = 5_000
MAX_REMEMBERED_WEBHOOKS = 20_000
SILENCE_TIMEOUT_S = 8.0
SPOKEN_WORDS_PER_S = 2.0
# Keys of the state that Telnyx sends back with each event of a call.
STREAM_KEY = "stream"
THEN_KEY = "then"
HANG_UP = "hang_up"
BUSY_KEY = "busy"
T = TypeVar("T")

log = get_logger("carrier")


def make_calls(app: App) -> "TelnyxCalls | None":
    """None without a key. Whoever stops the server closes them."""
    return TelnyxCalls(app, app.phone.telnyx) if app.phone.telnyx else None


def add_routes(parent: APIRouter, app: App, calls: "TelnyxCalls | None") -> None:
    signature = TelnyxSignature(app.settings.telnyx.public_key, app.clock)
    router = add_section(parent, "/telnyx", tags=["carriers"])

    @router.post("/events", summary="Telnyx: everything that happens in a call")
    async def post_event(request: Request) -> dict[str, str]:
        if calls is None:
            raise HTTPException(503, NOT_SET_UP)
        body = await read_signed_body(
            request,
            signature,
            carrier="Telnyx",
            not_set_up=NOT_SET_UP,
        )
        notice = read_event(body)
        if isinstance(notice, RingNotice) and not app.phone.intake.is_open:
            raise HTTPException(
                503, STOPPING
            )  # Telnyx asks again, and finds another process
        if notice is not None:
            await calls.process_notice(notice)
        return {"result": "ok"}


@dataclass(frozen=True)
class Command:
    """A request about a call. If a vital one fails, the caller hears nothing."""

    sid: str
    request: ControlRequest
    is_vital: bool = True

    @property
    def action(self) -> str:
        return self.request.path.rpartition("/")[2]


class TelnyxCalls:
    """Turns the events of each call into commands."""

    def __init__(self, app: App, rest: TelnyxRest) -> None:
        self._app = app
        self._switchboard = app.phone.switchboards[SOURCE]
        self._rest = rest
        self._control = TelnyxControl()
        self._dedupe = WebhookDedupe()
        self._silence = SilenceWatch(app.clock, self._on_silence)
        self._rings: OrderedDict[str, RingNotice] = OrderedDict()
        self._ended_sids: OrderedDict[str, None] = OrderedDict()

    async def process_notice(self, notice: Notice) -> None:
        """Raises CarrierUnreachable when a vital command was not sent; when Telnyx delivers the
        event again, the command is sent again.
        """
        await self._dedupe.process_once(
            notice.key, lambda: self._decide(notice), self._send
        )

    async def close(self) -> None:
        await self._silence.close()

    async def _decide(self, notice: Notice) -> list[Command]:
        match notice:
            case RingNotice():
                return await self._answer(notice)
            case CallProgress(state=CarrierCallState.ANSWERED):
                return await self._on_answered(notice)
            case CallProgress(state=state) if state.is_final:
                await self._end(notice)
            case SpeechGathered(text=text) if text.strip():
                return await self._on_speech(notice)
            case SpeakingEnded():
                return self._on_speaking_ended(notice)
            case StreamFailed():
                return await self._apologise(notice)
            case RecordingNotice():
                await run_in_threadpool(
                    store_recording_notice, self._app, SOURCE, notice
                )
            case _:
                pass
        return []

    async def _answer(self, ring: RingNotice) -> list[Command]:
        """Accepts a call that rings; one too many is answered only to say so."""
        sid = ring.sid
        if ring.direction != "inbound" or sid in self._ended_sids:
            return []
        if is_refused(self._app, SOURCE, sid):
            busy = self._control.answer(sid, cause=ring.key, state={BUSY_KEY: "1"})
            return [Command(sid, busy)]
        _remember(self._rings, sid, ring)
        state = {CALL_STATE_KEY: sid}
        stream_url = None
        if ring.is_number_refused:
            state |= {NUMBER_STATE_KEY: REFUSED}
        if token := await self._register_stream(ring):
            state |= {STREAM_KEY: "1", TOKEN_PARAMETER: token}
            address = self._app.phone.pending_calls.tokens.issue_address()
            stream_url = get_stream_url(self._app, f"{TELNYX_MEDIA}/{address}")
        request = self._control.answer(
            sid, cause=ring.key, stream_url=stream_url, state=state
        )
        return [Command(sid, request)]

    async def _register_stream(self, ring: RingNotice) -> str | None:
        """The token of the call's stream; None leaves the call to the receptionist."""
        if self._app.phone.voice_parts is None:
            return None
        call = make_call_factory(self._app, ring)(ring.sid)
        try:
            return await self._app.phone.pending_calls.register(call)
        except AftercallError as error:
            # If the call cannot be stored, the receptionist tells the caller.
            log.error("no stream for the call", error=error.code)
            return None

    async def _on_answered(self, notice: CallProgress) -> list[Command]:
        """The call is ours now: record it, stream it or greet. A busy line says so."""
        sid = notice.sid
        if BUSY_KEY in notice.client_state:
            busy = SpokenReply(AgentReply(BUSY, ends_call=True), 0)
            return [self._speak(sid, busy, notice.key)]
        is_ours = sid in self._rings or notice.client_state.get(CALL_STATE_KEY) == sid
        if not is_ours or sid in self._ended_sids:
            return []
        commands = []
        if self._app.settings.recordings.enabled:
            record = self._control.start_recording(sid, cause=notice.key)
            commands.append(Command(sid, record, is_vital=False))
        if STREAM_KEY in notice.client_state:
            return commands
        make_call = await self._call_factory(sid, notice.ring)
        answer = await self._switchboard.ring(sid, make_call)
        language = self._app.settings.telnyx.language.partition("-")[0]
        listen = self._control.start_transcription(
            sid, cause=notice.key, language=language
        )
        return [*commands, Command(sid, listen), self._speak(sid, answer, notice.key)]

    async def _on_speech(self, notice: SpeechGathered) -> list[Command]:
        sid = notice.sid
        if sid in self._ended_sids:
            if notice.is_final:
                await self._switchboard.keep_words(
                    sid, notice.text, notice.confidence, notice.key
                )
            return []
        is_here = self._switchboard.current_turn(sid) is not None
        if not (is_here or await self._is_ours(sid)):
            return []
        if not notice.is_final:
            # the caller is still speaking: restart the silence timer
            self._silence.restart(sid)
            return []
        make_call = await self._call_factory(sid)
        answer = await self._switchboard.answer_turn(
            sid, None, notice.text, notice.confidence, make_call, notice.key
        )
        return [self._speak(sid, answer, notice.key)]

    def _on_speaking_ended(self, notice: SpeakingEnded) -> list[Command]:
        if notice.client_state.get(THEN_KEY) != HANG_UP:
            self._silence.restart(notice.sid)
            return []
        self._silence.stop(notice.sid)
        return [self._hang_up(notice.sid, notice.key)]

    async def _apologise(self, notice: StreamFailed) -> list[Command]:
        await self._app.phone.end_call(SOURCE, notice.sid, "stream_failed")
        return [self._speak(notice.sid, SpokenReply(SORRY_GOODBYE, 0), notice.key)]

    async def _end(self, notice: CallProgress) -> None:
        """Ends the call; one that was never answered is stored as missed."""
        sid = notice.sid
        reason = notice.state.end_reason
        _remember(self._ended_sids, sid, None)
        self._silence.stop(sid)
        is_known = self._switchboard.current_turn(sid) is not None
        await self._app.phone.end_call(SOURCE, sid, reason)
        ring = self._rings.pop(sid, None)
        if ring is None and notice.client_state.get(CALL_STATE_KEY) == sid:
            ring = notice.ring
        if not is_known and ring is not None:
            await run_in_threadpool(self._store_missed_call, ring, reason)

    def _store_missed_call(self, ring: RingNotice, reason: str) -> None:
        """Stores a call that ended before anyone spoke; a call that was opened is known already."""
        now = self._app.clock.now()
        live = ring.open_call(_started_at(ring, now), self._app.settings.agent_id)
        call = Call(**live.model_dump(), ended_at=now, end_reason=reason, turns=())
        self._app.journal.ingest(call)

    def _hang_up(self, sid: str, cause: str) -> Command:
        return Command(sid, self._control.hang_up(sid, cause=cause), is_vital=False)

    def _speak(self, sid: str, answer: SpokenReply, cause: str) -> Command:
        text = answer.reply.text
        is_last = answer.reply.ends_call
        state = {CALL_STATE_KEY: sid} | ({THEN_KEY: HANG_UP} if is_last else {})
        self._silence.start(
            sid, answer.turn, _estimate_speaking_s(text), is_last=is_last
        )
        telnyx = self._app.settings.telnyx
        request = self._control.speak(
            sid,
            text,
            cause=cause,
            voice=telnyx.voice,
            language=telnyx.language,
            state=state,
        )
        return Command(sid, request)

    async def _on_silence(self, sid: str, turn: int, is_last: bool) -> None:
        """The caller has been silent, or Telnyx never reported that the goodbye was spoken."""
        cause = f"silence {turn}"
        if is_last:
            command = self._hang_up(sid, cause)
        elif self._switchboard.current_turn(sid) == turn:
            make_call = await self._call_factory(sid)
            answer = await self._switchboard.answer_turn(sid, turn, "", None, make_call)
            if answer.turn != turn + 1:  # the caller spoke, to another process
                return
            command = self._speak(sid, answer, cause)
        else:
            return
        try:
            await self._send(command)
        except CarrierUnreachable:  # logged by _send; the next silence tries again
            self._silence.start(sid, turn, 0.0, is_last=is_last)

    async def _send(self, command: Command) -> None:
        try:
            await self._rest.client.send(command.request)
        except CallOver:
            await self._switchboard.end(command.sid, "caller_hung_up")
        except CarrierUnreachable as error:
            log.warning("command not sent", error=error.code, action=command.action)
            if command.is_vital:
                raise
        except CarrierError as error:
            reason = str(error)
            log.error(
                "command refused",
                error=error.code,
                action=command.action,
                reason=reason,
            )
            if command.is_vital:
                await self._give_up(command.sid)

    async def _give_up(self, sid: str) -> None:
        """Ends a call in which the caller would hear nothing. The call is kept."""
        self._silence.stop(sid)
        await self._switchboard.end(sid, "carrier_refused")
        try:
            await self._rest.hang_up(sid)
        except CarrierError as error:
            log.warning("could not hang up", error=error.code)

    async def _call_factory(
        self, sid: str, ring: RingNotice | None = None
    ) -> Callable[[str], LiveCall]:
        known = self._rings.get(sid) or ring or await self._find_ring(sid)
        return make_call_factory(self._app, known)

    async def _is_ours(self, sid: str) -> bool:
        """Without the database, yes: Telnyx transcribes no call unless we tell it to."""
        try:
            return await self._find_call(sid) is not None
        except DatabaseUnreachable:
            return True

    async def _find_call(self, sid: str) -> LiveCall | None:
        find = partial(self._app.store.find, SOURCE, sid)
        row = await self._app.journal.outage.ask(WRITE_TIMEOUT_S, find)
        return row.live if row else None

    async def _find_ring(self, sid: str) -> RingNotice:
        """The ring of a call that another process answered; an unknown caller is withheld."""
        try:
            call = await self._find_call(sid)
        except DatabaseUnreachable:
            call = None
        if call is None:
            return RingNotice("", SOURCE, sid, None, None, "inbound", False, {})
        return RingNotice(
            "",
            SOURCE,
            sid,
            call.caller,
            call.callee,
            call.direction,
            call.verified,
            call.metadata,
        )


@dataclass
class _Delivery:
    commands: list[Command] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class WebhookDedupe:
    """Decides each webhook once and sends its commands until the carrier accepts them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Delivery] = OrderedDict()

    async def process_once(
        self,
        key: str,
        decide: Callable[[], Awaitable[list[Command]]],
        send: Callable[[Command], Awaitable[None]],
    ) -> None:
        """An error of `send` makes the carrier deliver again; then only unsent commands are
        sent.
        """
        delivery = self._known.setdefault(key, _Delivery())
        self._known.move_to_end(key)
        while len(self._known) > MAX_REMEMBERED_WEBHOOKS:
            self._known.popitem(last=False)
        async with delivery.lock:
            if delivery.commands is None:
                delivery.commands = await decide()
            while delivery.commands:
                await send(delivery.commands[0])
                delivery.commands.pop(0)


@dataclass
class _Watch:
    turn: int
    is_last: bool
    task: asyncio.Task[None]


class SilenceWatch:
    """A silence timer per call: Telnyx reports speech but not silence.

    `on_silence` gets the call's sid, the turn, and whether it was the last one.
    """

    def __init__(
        self, clock: Clock, on_silence: Callable[[str, int, bool], Awaitable[None]]
    ) -> None:
        self._clock = clock
        self._on_silence = on_silence
        self._watches: dict[str, _Watch] = {}

    def start(self, sid: str, turn: int, speaking_s: float, *, is_last: bool) -> None:
        """Counts from the estimated end of speaking, since that end may never be reported."""
        self.stop(sid)
        task = asyncio.create_task(
            self._wait(sid, turn, speaking_s + SILENCE_TIMEOUT_S, is_last)
        )
        self._watches[sid] = _Watch(turn, is_last, task)

    def restart(self, sid: str) -> None:
        if watch := self._watches.get(sid):
            self.start(sid, watch.turn, 0.0, is_last=watch.is_last)

    def stop(self, sid: str) -> None:
        if watch := self._watches.pop(sid, None):
            watch.task.cancel()

    async def close(self) -> None:
        tasks = [watch.task for watch in self._watches.values()]
        self._watches.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait(self, sid: str, turn: int, seconds: float, is_last: bool) -> None:
        await self._clock.sleep(seconds)
        if (watch := self._watches.get(sid)) and watch.task is asyncio.current_task():
            # The callback may start a new watch, which must not cancel this task.
            del self._watches[sid]
        await self._on_silence(sid, turn, is_last)


def _estimate_speaking_s(text: str) -> float:
    return len(text.split()) / SPOKEN_WORDS_PER_S


def _remember(memory: OrderedDict[str, T], sid: str, value: T) -> None:
    memory[sid] = value
    while len(memory) > MAX_REMEMBERED_CALLS:
        memory.popitem(last=False)


def _started_at(ring: RingNotice, now: datetime) -> datetime:
    """The carrier's start time; now if it is missing or lies in the future."""
    try:
        return min(now, parse_instant(ring.metadata.get("start_time")))
    except ValueError:
        return now
