"""One call over a line of finished turns: a terminal, a browser, a carrier that listens and speaks.

The caller always hears something, whatever fails. The caller's words are on disk before the
engine is asked for an answer.

Carriers that ask over HTTP ask one question a turn. Questions arrive twice and late; a repeated
one gets the same answer. A question about an unknown call (the server was restarted in the
middle of it) opens a new leg that continues the conversation.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aftercall import telemetry
from aftercall.bridge import state
from aftercall.bridge.caller_tracker import (
    WRITE_TIMEOUT_S,
    Brief,
    MakeIdentity,
    briefed_facts,
    fetch_briefing,
    join_call,
    refresh_briefing,
    resolve_caller,
)
from aftercall.bridge.state import NOT_WRITTEN_GOODBYE
from aftercall.clock import Clock, attempt
from aftercall.engine.voice import AgentReply, TurnEngine, TurnSession
from aftercall.errors import AftercallError, CallNotLive, EngineLost
from aftercall.journal.journal import Journal
from aftercall.journal.recorder import CallRecorder, ResumeState, ResumeStates
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.turns import REQUEST_EVENT, Event, Speaker, Turn
from aftercall.who.identity import CallerIdentity, LearnedCaller, NoticedCaller

ANSWER_TIMEOUT_S = 4.0
MAX_ENGINE_FAILURES = 2
SORRY = AgentReply(
    "I'm sorry, something is wrong on my side. I have written down what you said. Could you "
    "say that again?"
)
SORRY_GOODBYE = AgentReply(
    "I'm sorry, I can't help any further right now. What you told me is written down. Goodbye.",
    ends_call=True,
)
NOT_WRITTEN = AgentReply(NOT_WRITTEN_GOODBYE, ends_call=True)

log = get_logger("bridge")


@dataclass(frozen=True)
class SessionParts:
    """What the calls in finished turns share, whoever speaks for the agent."""

    journal: Journal
    resume: ResumeStates
    brief: Brief
    greeting: str
    clock: Clock
    make_identity: MakeIdentity | None = None
    """Identifies callers by their words. If unset, a call belongs to the owner of its number."""


@dataclass(frozen=True)
class TurnCallParts(SessionParts):
    """What the calls of our own engines share."""

    engine: TurnEngine = field(kw_only=True)


class CallSession:
    """A call in finished turns, whoever speaks for the agent: opened, briefed, identified, sealed.

    Its methods raise an AftercallError; `seal` logs it and leaves the call to recovery.
    """

    def __init__(self, parts: SessionParts, call: LiveCall) -> None:
        self._parts = parts
        self._call = call
        self._resumed: ResumeState | None = None
        self._recorder: CallRecorder | None = None
        self.identity: CallerIdentity | None = None

    @property
    def call(self) -> LiveCall:
        return self._recorder.call if self._recorder else self._call

    @property
    def is_open(self) -> bool:
        return self._recorder is not None

    @property
    def recorder(self) -> CallRecorder:
        if self._recorder is None:
            raise CallNotLive(f"call {self._call.id} was never opened")
        return self._recorder

    async def open(self) -> Briefing:
        parts, clock = self._parts, self._parts.clock
        opening = parts.journal.open(self._call)
        self._recorder = await attempt(clock, WRITE_TIMEOUT_S, opening)
        self._resumed, briefing = await fetch_briefing(
            parts.brief, self._call, parts.greeting, clock
        )
        if parts.make_identity:
            self.identity = parts.make_identity(self._call, briefing)
        return briefing

    async def join(self) -> None:
        """The call is connected: it continues the one that its caller dropped, if any."""
        if self._resumed is not None:
            clock = self._parts.clock
            await join_call(self._parts.resume, self._resumed, self.recorder, clock)

    async def learn_caller(
        self, noticed: NoticedCaller
    ) -> tuple[LearnedCaller | None, Briefing | None]:
        """What the words say about the caller, and the briefing of the person it is now.

        The briefing is None unless the caller is another person or spoke the passcode.
        """
        identity, clock, call_id = self.identity, self._parts.clock, self.call.id
        if identity is None:
            return None, None
        learned = await resolve_caller(identity, noticed, clock, call_id)
        if learned is None or not (learned.has_new_party or learned.is_verified):
            return learned, None
        greeting = self._parts.greeting
        return learned, await refresh_briefing(identity, clock, greeting, call_id)

    async def append_turn(
        self,
        speaker: Speaker,
        text: str,
        at: datetime,
        confidence: float | None = None,
    ) -> None:
        """Returns when the turn is on disk. Turns and events are appended one at a time."""
        recorder = self.recorder
        turn = Turn(
            seq=recorder.next_turn_seq,
            speaker=speaker,
            text=text,
            at=at,
            confidence=confidence,
        )
        await recorder.append(turn)

    async def append_event(
        self, kind: str, data: Mapping[str, Any], at: datetime
    ) -> None:
        recorder = self.recorder
        event = Event(seq=recorder.next_event_seq, kind=kind, at=at, data=dict(data))
        await recorder.append(event)

    async def seal(self, reason: str, ended_at: datetime | None = None) -> None:
        journal = self._parts.journal
        try:
            await journal.seal(self.recorder, end_reason=reason, ended_at=ended_at)
        except AftercallError as error:
            log.error(
                "could not seal the call yet", call=self.call.id, error=error.code
            )


class TurnCall:
    def __init__(self, parts: TurnCallParts, call: LiveCall) -> None:
        self._parts = parts
        self._record = CallSession(parts, call)
        self._session: TurnSession | None = None
        self._failures = 0
        self._ending: asyncio.Task[None] | None = None
        self.end_reason: str | None = None

    @property
    def call(self) -> LiveCall:
        return self._record.call

    async def start(self) -> AgentReply:
        """The call is connected. Returns what the caller hears first."""
        parts, clock = self._parts, self._parts.clock
        try:
            briefing = await self._record.open()
        except AftercallError as error:
            log.error("could not open the call", call=self.call.id, error=error.code)
            self.end_reason = "not_written"
            return NOT_WRITTEN
        await self._record_briefed_facts(briefing)
        try:
            connecting = parts.engine.connect(briefing)
            self._session = await attempt(
                clock, ANSWER_TIMEOUT_S, connecting, EngineLost
            )
            reply = await attempt(
                clock, ANSWER_TIMEOUT_S, self._session.greet(), EngineLost
            )
        except AftercallError as error:
            reply = await self._on_engine_error(error)
        await self._record.join()  # only now is the call connected
        waited = clock.now() - self.call.started_at
        telemetry.record("ring", waited.total_seconds(), self.call.id)
        return await self.say(reply)

    async def answer(self, text: str, confidence: float | None = None) -> AgentReply:
        """The caller said something. Returns what they hear in return."""
        with telemetry.timed("answer", self.call.id):
            return await self._answer(text, confidence)

    async def _answer(self, text: str, confidence: float | None) -> AgentReply:
        if not await self._write("caller", text, confidence):
            return await self.say(NOT_WRITTEN)
        try:
            await self._identify_caller(text)
            reply = await self._record_request(await self._ask(text))
        except AftercallError as error:
            reply = await self._on_engine_error(error)
        return await self.say(reply)

    async def say(self, reply: AgentReply) -> AgentReply:
        """Log what the caller hears. After last words the call ends in the background."""
        await self._write("agent", reply.text)
        if self._record.identity is not None:
            self._record.identity.process_turn("agent", reply.text)
        if reply.ends_call:
            self._start_ending(
                "agent_hung_up" if self._failures == 0 else "engine_lost"
            )
        return reply

    async def end(self, reason: str) -> None:
        """End the call. Returns when it is in the archive, or left to recovery."""
        self._start_ending(reason)
        if self._ending is not None:
            await asyncio.shield(self._ending)

    def _start_ending(self, reason: str) -> None:
        if self._record.is_open and self.end_reason is None:
            self.end_reason = reason
            self._ending = asyncio.create_task(self._finish(reason))

    async def _finish(self, reason: str) -> None:
        try:
            if self._session is not None:
                await attempt(
                    self._parts.clock,
                    ANSWER_TIMEOUT_S,
                    self._session.close(),
                    EngineLost,
                )
        except AftercallError as error:
            log.warning("the engine did not close", call=self.call.id, error=error.code)
        await self._record.seal(reason)

    async def _identify_caller(self, text: str) -> None:
        """A caller who is another person, or speaks the passcode, gets that person's briefing."""
        identity = self._record.identity
        noticed = identity.process_turn("caller", text) if identity else None
        if noticed is None:
            return
        learned, briefing = await self._record.learn_caller(noticed)
        for kind, data in learned.events if learned else ():
            await self._record_event(kind, data)
        if learned and briefing is not None and self._session is not None:
            await self._record_briefed_facts(briefing)
            await self._session.update_briefing(
                briefing, is_another=learned.has_new_party
            )

    async def _record_briefed_facts(self, briefing: Briefing) -> None:
        if event := briefed_facts(briefing):
            await self._record_event(*event)

    async def _ask(self, text: str) -> AgentReply:
        if self._session is None:
            raise EngineLost("no engine was connected")
        reply = await attempt(
            self._parts.clock, ANSWER_TIMEOUT_S, self._session.answer(text), EngineLost
        )
        self._failures = 0
        return reply

    async def _record_request(self, reply: AgentReply) -> AgentReply:
        """A request is on disk before the caller hears that it was taken down."""
        request = reply.taken_request
        if request is None or await self._record_event(REQUEST_EVENT, request):
            return reply
        return NOT_WRITTEN

    async def _on_engine_error(self, error: AftercallError) -> AgentReply:
        self._failures += 1
        log.warning(
            "the engine failed",
            call=self.call.id,
            error=error.code,
            times=self._failures,
        )
        await self._record_event("engine.lost", {"error": error.code})
        is_lost = self._failures >= MAX_ENGINE_FAILURES or self._session is None
        return SORRY_GOODBYE if is_lost else SORRY

    async def _write(
        self, speaker: Speaker, text: str, confidence: float | None = None
    ) -> bool:
        at = self._parts.clock.now()
        return await self._append(
            self._record.append_turn, speaker, text, at, confidence
        )

    async def _record_event(self, kind: str, data: Mapping[str, Any]) -> bool:
        at = self._parts.clock.now()
        return await self._append(self._record.append_event, kind, data, at)

    async def _append(
        self, append: Callable[..., Coroutine[Any, Any, None]], *item: object
    ) -> bool:
        """False if it could not be written, or the caller has hung up meanwhile."""
        if not self._record.is_open or self.end_reason is not None:
            return False
        try:
            await attempt(self._parts.clock, WRITE_TIMEOUT_S, append(*item))
        except AftercallError as error:
            log.error(
                "an entry could not be written", call=self.call.id, error=error.code
            )
            return False
        return True


IDLE_TIMEOUT_S = 600.0
MAX_SILENT_TURNS = 3
STILL_THERE = AgentReply(state.STILL_THERE)
GOODBYE = AgentReply("Goodbye!", ends_call=True)
SILENT_GOODBYE = AgentReply(state.SILENT_GOODBYE, ends_call=True)


@dataclass
class PhoneLine:
    """One call. `turn` is the number of the question that is open."""

    call: TurnCall
    last_used_s: float
    turn: int = 0
    silences: int = 0
    last_reply: AgentReply = STILL_THERE
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True)
class SpokenReply:
    """What the caller hears, and the number that their next words must carry."""

    reply: AgentReply
    turn: int


MakeCall = Callable[[str], LiveCall]


class Switchboard:
    def __init__(self, parts: TurnCallParts, clock: Clock) -> None:
        self._parts = parts
        self._clock = clock
        self._lines: dict[str, PhoneLine] = {}

    async def ring(self, sid: str, make_call: MakeCall) -> SpokenReply:
        """A call begins. A ring that comes twice is answered once."""
        await self._sweep()
        if line := self._lines.get(sid):
            async with line.lock:
                return SpokenReply(line.last_reply, line.turn)
        line = self._add(sid, make_call(sid))
        async with line.lock:
            return self._record_reply(line, await line.call.start())

    def current_turn(self, sid: str) -> int | None:
        """The number of the open question; None for an unknown call."""
        line = self._lines.get(sid)
        return None if line is None else line.turn

    async def answer_turn(
        self,
        sid: str,
        turn: int | None,
        text: str,
        confidence: float | None,
        make_call: MakeCall,
    ) -> SpokenReply:
        """The caller's answer to question `turn`, or to the open one. Silence is an answer."""
        line = self._lines.get(sid)
        if line is None:
            return await self._resume(sid, text, confidence, make_call)
        async with line.lock:
            is_repeated = turn not in (None, line.turn)
            if is_repeated or line.call.end_reason is not None:
                return SpokenReply(line.last_reply, line.turn)
            line.turn += 1
            return self._record_reply(line, await self._answer(line, text, confidence))

    async def end(self, sid: str, reason: str) -> None:
        """The carrier reports that the call is over. A second report changes nothing."""
        if line := self._lines.get(sid):
            await line.call.end(reason)
            line.last_reply = GOODBYE

    async def _resume(
        self, sid: str, text: str, confidence: float | None, make_call: MakeCall
    ) -> SpokenReply:
        log.warning("a call continues that this process does not know")
        line = self._add(sid, make_call(f"{sid}.{int(self._clock.now().timestamp())}"))
        async with line.lock:
            reply = await line.call.start()
            if line.call.end_reason is None and text.strip():
                reply = await line.call.answer(text, confidence)
            return self._record_reply(line, reply)

    async def _answer(
        self, line: PhoneLine, text: str, confidence: float | None
    ) -> AgentReply:
        if text.strip():
            line.silences = 0
            return await line.call.answer(text, confidence)
        line.silences += 1
        is_gone = line.silences >= MAX_SILENT_TURNS
        return await line.call.say(SILENT_GOODBYE if is_gone else STILL_THERE)

    def _add(self, sid: str, call: LiveCall) -> PhoneLine:
        line = self._lines[sid] = PhoneLine(
            TurnCall(self._parts, call), self._clock.monotonic()
        )
        return line

    def _record_reply(self, line: PhoneLine, reply: AgentReply) -> SpokenReply:
        line.last_reply, line.last_used_s = reply, self._clock.monotonic()
        return SpokenReply(reply, line.turn)

    async def _sweep(self) -> None:
        """Ended calls stay for a while, for late repeats of their webhooks.

        A call whose end was never reported is ended.
        """
        now_s = self._clock.monotonic()
        for sid, line in list(self._lines.items()):
            if now_s - line.last_used_s > IDLE_TIMEOUT_S:
                await line.call.end("abandoned")
                self._lines.pop(sid, None)
