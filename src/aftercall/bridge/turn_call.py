"""One call over a line of finished turns: a terminal, a browser, a carrier that listens and speaks.

The caller always hears something, whatever fails. The caller's words are on disk before the
engine is asked for an answer.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from aftercall import telemetry
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
from aftercall.journal.recorder import (
    CallRecorder,
    PreparedBriefing,
    ResumeState,
    ResumeStates,
)
from aftercall.journal.replay import replay_entries
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing, ResumedCall
from aftercall.model.calls import REQUEST_EVENT, Event, LiveCall, Speaker, Turn
from aftercall.model.json_fields import Json
from aftercall.who.identity import CallerIdentity, LearnedCaller, NoticedCaller
from aftercall.who.register import RIGHT

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
NOT_WRITTEN_END = "not_written"

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
        parts = self._parts
        clock = self._parts.clock
        opening = parts.journal.open(self._call)
        self._recorder = await attempt(clock, WRITE_TIMEOUT_S, opening)
        self._resumed, briefing = await self._fetch_briefing()
        return briefing

    async def restore(self, recorder: CallRecorder, turns: Sequence[Turn]) -> Briefing:
        """Goes on with a call of another process; its caller is who they said they are."""
        self._recorder = recorder
        _, briefing = await self._fetch_briefing()
        if self.identity is None:
            return briefing
        events = replay_entries(recorder.entries).events
        has_passcode = any(event.kind == RIGHT for event in events)
        follow = partial(self.identity.restore, turns, has_passcode=has_passcode)
        if not await asyncio.to_thread(follow):
            return briefing
        greeting = self._parts.greeting
        clock = self._parts.clock
        return await refresh_briefing(self.identity, clock, greeting, self.call.id)

    async def _fetch_briefing(self) -> PreparedBriefing:
        parts = self._parts
        if parts.journal.outage.is_active:  # nobody waits for it again
            resumed = None
            briefing = Briefing(parts.greeting)
        else:
            resumed, briefing = await fetch_briefing(
                parts.brief, self._call, parts.greeting, parts.clock
            )
        if parts.make_identity:
            self.identity = parts.make_identity(self._call, briefing)
        return resumed, briefing

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
        identity = self.identity
        clock = self._parts.clock
        call_id = self.call.id
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
        delay_ms: int | None = None,
    ) -> None:
        """Returns when the turn is on disk. Turns and events are appended one at a time."""
        recorder = self.recorder
        turn = Turn(
            seq=recorder.next_turn_seq,
            speaker=speaker,
            text=text,
            at=at,
            confidence=confidence,
            delay_ms=delay_ms,
        )
        await recorder.append(turn)

    async def append_event(self, kind: str, data: Json, at: datetime) -> None:
        recorder = self.recorder
        event = Event(seq=recorder.next_event_seq, kind=kind, at=at, data=dict(data))
        await recorder.append(event)

    async def seal(self, reason: str, ended_at: datetime | None = None) -> None:
        journal = self._parts.journal
        try:
            await journal.seal(self.recorder, end_reason=reason, ended_at=ended_at)
        except CallNotLive:
            pass  # another process has the call and seals it
        except AftercallError as error:
            log.error(
                "could not seal the call yet", call=self.call.id, error=error.code
            )


class TurnCall:
    """One call held in turns of text: a question comes in, one reply goes out."""

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

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process records the call by now, and this one nothing more."""
        is_released = self._record.is_open and not self._record.recorder.is_open
        return is_released and self.end_reason is None

    @property
    def is_second(self) -> bool:
        """Whether another process recorded the same call while the database was away.

        Then this one is a leg beside it, and ends when the database is back.
        """
        return self._record.is_open and self._record.recorder.is_second

    @property
    def is_spilling(self) -> bool:
        """Whether its words are on disk only, and the call is not left to another process."""
        recorder = self._record.recorder if self._record.is_open else None
        return recorder is not None and recorder.is_open and recorder.is_spilling

    async def start(self) -> AgentReply:
        """The call is connected. Returns what the caller hears first."""
        failure = await self.connect()
        if failure is not None or self._session is None:
            return failure or NOT_WRITTEN
        clock = self._parts.clock
        try:
            greeting = self._session.greet()
            reply = await attempt(clock, ANSWER_TIMEOUT_S, greeting, EngineLost)
        except AftercallError as error:
            reply = await self._on_engine_error(error)
        waited = clock.now() - self.call.started_at
        telemetry.record("ring", waited.total_seconds(), self.call.id)
        return await self.say(reply)

    async def connect(self) -> AgentReply | None:
        """Opens the call without a greeting. Returns what the caller hears if that fails.

        For a caller whom another process has greeted.
        """
        parts = self._parts
        clock = self._parts.clock
        try:
            briefing = await self._record.open()
        except AftercallError as error:
            log.error("could not open the call", call=self.call.id, error=error.code)
            self.end_reason = NOT_WRITTEN_END
            return NOT_WRITTEN
        await self._record_briefed_facts(briefing)
        try:
            connecting = parts.engine.connect(briefing)
            self._session = await attempt(
                clock, ANSWER_TIMEOUT_S, connecting, EngineLost
            )
        except AftercallError as error:
            failure = await self._on_engine_error(error)
            await self._record.join()
            return await self.say(failure)
        await self._record.join()  # only now is the call connected
        return None

    async def restore(self, recorder: CallRecorder) -> tuple[Turn, ...]:
        """The call goes on here with what was said so far in another process."""
        turns = replay_entries(recorder.entries).turns
        clock = self._parts.clock
        try:
            briefing = await self._record.restore(recorder, turns)
            so_far = ResumedCall(self.call.id, clock.now(), turns)
            connecting = self._parts.engine.connect(replace(briefing, pick_up=so_far))
            self._session = await attempt(
                clock, ANSWER_TIMEOUT_S, connecting, EngineLost
            )
        except AftercallError as error:  # the next words get an apology
            log.warning("the engine failed", call=self.call.id, error=error.code)
        return turns

    async def answer(self, text: str, confidence: float | None = None) -> AgentReply:
        """The caller said something. Returns what they hear in return."""
        with telemetry.timed("answer", self.call.id):
            return await self._answer(text, confidence)

    async def _answer(self, text: str, confidence: float | None) -> AgentReply:
        asked_s = self._parts.clock.monotonic()
        if not await self._write("caller", text, confidence):
            return await self.say(NOT_WRITTEN)
        try:
            await self._identify_caller(text)
            reply = await self._record_request(await self._ask(text))
        except AftercallError as error:
            reply = await self._on_engine_error(error)
        delay_s = self._parts.clock.monotonic() - asked_s
        return await self.say(reply, round(delay_s * 1_000))

    async def say(self, reply: AgentReply, delay_ms: int | None = None) -> AgentReply:
        """Log what the caller hears. After last words the call ends in the background."""
        await self._write("agent", reply.text, delay_ms=delay_ms)
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
        self,
        speaker: Speaker,
        text: str,
        confidence: float | None = None,
        delay_ms: int | None = None,
    ) -> bool:
        at = self._parts.clock.now()
        return await self._append(
            self._record.append_turn, speaker, text, at, confidence, delay_ms
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
