"""One call over a line of finished turns: a terminal, a browser, a carrier that listens and
speaks for us.

The caller always hears something, whatever fails behind the agent; and what the caller said is
durable before the engine is asked for an answer to it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from aftercall.clock import Clock
from aftercall.engine.session import AgentReply, TurnEngine, TurnSession
from aftercall.errors import AftercallError, EngineLost
from aftercall.journal.record import CallRecorder, Journal
from aftercall.journal.resume import ResumeState, ResumeStates
from aftercall.log import get_logger
from aftercall.memory.extraction import BRIEFED_EVENT
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.turns import REQUEST_EVENT, Event, Speaker, Turn
from aftercall.who.identity import CallerIdentity, LearnedCaller, NoticedCaller

ANSWER_TIMEOUT_S = 4.0
WRITE_TIMEOUT_S = 2.0
BRIEFING_TIMEOUT_S = (
    2.5  # who briefs has a limit of its own (briefing.timeout_ms); this one is for when it breaks
)
MAX_ENGINE_FAILURES = 2
SORRY = AgentReply(
    "I'm sorry, something is wrong on my side. I have written down what you said. Could you "
    "say that again?"
)
SORRY_GOODBYE = AgentReply(
    "I'm sorry, I can't help any further right now. What you told me is written down. Goodbye.",
    ends_call=True,
)
NOT_WRITTEN = AgentReply(
    "I'm sorry, I can't take anything down right now. Please call again later. Goodbye.",
    ends_call=True,
)

log = get_logger("bridge")
T = TypeVar("T")

MakeIdentity = Callable[[LiveCall, Briefing], CallerIdentity]
Brief = Callable[[LiveCall], Awaitable[tuple[ResumeState | None, Briefing]]]
"""The call that this one picks up, if any, and what it is told."""


@dataclass(frozen=True)
class TurnCallParts:
    """What every turn call stands on."""

    journal: Journal
    resume: ResumeStates
    engine: TurnEngine
    brief: Brief
    greeting: str
    clock: Clock
    make_identity: MakeIdentity | None = None
    """Who listens for who is calling; nobody if unset: every call is its number's owner's."""


class TurnCall:
    def __init__(self, parts: TurnCallParts, call: LiveCall) -> None:
        self._parts = parts
        self._call = call
        self._record: CallRecorder | None = None
        self._session: TurnSession | None = None
        self._identity: CallerIdentity | None = None
        self._failures = 0
        self._ending: asyncio.Task[None] | None = None
        self.end_reason: str | None = None

    @property
    def call(self) -> LiveCall:
        return self._record.call if self._record else self._call

    async def start(self) -> AgentReply:
        """The call is connected: what the caller hears first."""
        parts = self._parts
        try:
            self._record = await with_timeout(
                parts.clock, WRITE_TIMEOUT_S, parts.journal.open(self._call)
            )
        except AftercallError as error:
            log.error("could not open the call", call=self._call.id, error=error.code)
            self.end_reason = "not_written"
            return NOT_WRITTEN
        state, briefing = await fetch_briefing(parts.brief, self._call, parts.greeting, parts.clock)
        self._identity = parts.make_identity(self._call, briefing) if parts.make_identity else None
        await self._record_briefed_facts(briefing)
        try:
            self._session = await with_timeout(
                parts.clock, ANSWER_TIMEOUT_S, parts.engine.connect(briefing)
            )
            reply = await with_timeout(parts.clock, ANSWER_TIMEOUT_S, self._session.greet())
        except AftercallError as error:
            reply = await self._on_engine_error(error)
        if state is not None:  # only now is the call really connected
            await self._join(self._record, state)
        return await self.say(reply)

    async def answer(self, text: str, confidence: float | None = None) -> AgentReply:
        """The caller said something: what they hear in return."""
        if not await self._write("caller", text, confidence):
            return await self.say(NOT_WRITTEN)
        try:
            await self._identify_caller(text)
            reply = await self._record_request(await self._ask(text))
        except AftercallError as error:
            reply = await self._on_engine_error(error)
        return await self.say(reply)

    async def say(self, reply: AgentReply) -> AgentReply:
        """Tell the caller something, and hang up if that was the last of it.

        They need not wait for the archive to hear it.
        """
        await self._write("agent", reply.text)
        if self._identity is not None:
            self._identity.process_turn("agent", reply.text)
        if reply.ends_call:
            self._start_ending("agent_hung_up" if self._failures == 0 else "engine_lost")
        return reply

    async def end(self, reason: str) -> None:
        """Hang up, whoever did it; returns when the call is in the archive, or left to recovery."""
        self._start_ending(reason)
        if self._ending is not None:
            await asyncio.shield(self._ending)

    def _start_ending(self, reason: str) -> None:
        if self._record is not None and self.end_reason is None:
            self.end_reason = reason
            self._ending = asyncio.create_task(self._finish(self._record, reason))

    async def _finish(self, record: CallRecorder, reason: str) -> None:
        try:
            if self._session is not None:
                await with_timeout(self._parts.clock, ANSWER_TIMEOUT_S, self._session.close())
        except AftercallError as error:
            log.warning("the engine did not close", call=self.call.id, error=error.code)
        try:
            await self._parts.journal.seal(record, end_reason=reason)
        except AftercallError as error:
            log.error("could not seal the call yet", call=self.call.id, error=error.code)

    async def _identify_caller(self, text: str) -> None:
        """Whoever says that they are somebody else, or speaks the passcode, is answered out of
        the memory that this opens.
        """
        attention = self._identity
        noticed = attention.process_turn("caller", text) if attention else None
        if attention is None or noticed is None:
            return
        learned = await resolve_caller(attention, noticed, self._parts.clock, self.call.id)
        for kind, data in learned.events if learned else ():
            await self._record_event(kind, data)
        if learned and self._session is not None and (learned.has_new_party or learned.is_verified):
            briefing = await refresh_briefing(
                attention, self._parts.clock, self._parts.greeting, self.call.id
            )
            await self._record_briefed_facts(briefing)
            await self._session.update_briefing(briefing, is_another=learned.has_new_party)

    async def _record_briefed_facts(self, briefing: Briefing) -> None:
        if briefing.facts:
            await self._record_event(BRIEFED_EVENT, {"facts": [fact.id for fact in briefing.facts]})

    async def _join(self, record: CallRecorder, state: ResumeState) -> None:
        joining = asyncio.to_thread(self._parts.resume.consume, state, self._call)
        try:
            joined = await with_timeout(self._parts.clock, WRITE_TIMEOUT_S, joining)
        except AftercallError as error:
            log.warning(
                "the call could not be joined to the one before",
                call=self.call.id,
                error=error.code,
            )
        else:
            record.call = joined or self._call

    async def _ask(self, text: str) -> AgentReply:
        if self._session is None:
            raise EngineLost("no engine was connected")
        reply = await with_timeout(self._parts.clock, ANSWER_TIMEOUT_S, self._session.answer(text))
        self._failures = 0
        return reply

    async def _record_request(self, reply: AgentReply) -> AgentReply:
        """A request that the agent claims to have taken down is on disk before the claim is
        heard.
        """
        if reply.taken_request is None or await self._record_event(
            REQUEST_EVENT, dict(reply.taken_request)
        ):
            return reply
        return NOT_WRITTEN

    async def _on_engine_error(self, error: AftercallError) -> AgentReply:
        self._failures += 1
        log.warning("the engine failed", call=self.call.id, error=error.code, times=self._failures)
        await self._record_event("engine.lost", {"error": error.code})
        return (
            SORRY
            if self._failures < MAX_ENGINE_FAILURES and self._session is not None
            else SORRY_GOODBYE
        )

    async def _write(self, speaker: Speaker, text: str, confidence: float | None = None) -> bool:
        record = self._open_record()
        turn = Turn(
            seq=record.next_turn_seq,
            speaker=speaker,
            text=text,
            at=self._parts.clock.now(),
            confidence=confidence,
        )
        return await self._append(turn)

    async def _record_event(self, kind: str, data: dict[str, Any]) -> bool:
        return await self._append(
            Event(
                seq=self._open_record().next_event_seq,
                kind=kind,
                at=self._parts.clock.now(),
                data=data,
            )
        )

    async def _append(self, item: Turn | Event) -> bool:
        try:
            await with_timeout(self._parts.clock, WRITE_TIMEOUT_S, self._open_record().append(item))
        except AftercallError as error:
            log.error("could not write down", call=self.call.id, error=error.code)
            return False
        return True

    def _open_record(self) -> CallRecorder:
        if self._record is None or self.end_reason is not None:
            raise EngineLost("the call is not going on")
        return self._record


async def resolve_caller(
    identity: CallerIdentity, noticed: NoticedCaller, clock: Clock, call_id: str
) -> LearnedCaller | None:
    """What the words say about who is calling.

    Where that cannot be told in time, no memory is open any more.
    """
    try:
        return await with_timeout(
            clock, BRIEFING_TIMEOUT_S, asyncio.to_thread(identity.resolve, noticed)
        )
    except AftercallError as error:
        log.warning("nobody can say who is calling", call=call_id, error=error.code)
        return identity.clear_party()


async def refresh_briefing(
    identity: CallerIdentity, clock: Clock, greeting: str, call_id: str
) -> Briefing:
    try:
        return await with_timeout(
            clock, BRIEFING_TIMEOUT_S, asyncio.to_thread(identity.compose_briefing)
        )
    except AftercallError as error:
        log.warning("the call goes on without a briefing", call=call_id, error=error.code)
        return Briefing(greeting)


async def fetch_briefing(
    brief: Brief, call: LiveCall, greeting: str, clock: Clock
) -> tuple[ResumeState | None, Briefing]:
    """What the call may know. It begins in time with what is there, if that is nothing."""
    try:
        return await with_timeout(clock, BRIEFING_TIMEOUT_S, brief(call))
    except AftercallError as error:
        log.warning("the call begins without a briefing", call=call.id, error=error.code)
        return None, Briefing(greeting)


async def with_timeout(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """The work's result, or EngineLost when it takes too long or breaks.

    On our clock, so that tests need not wait.

    Work that is too late is told to stop, and what cannot stop (an entry on its way to the
    disk) goes on by itself.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(_retrieve)
    alarm = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
        return _result_of(task, seconds)
    finally:
        task.cancel()
        alarm.cancel()


def _retrieve(task: asyncio.Future[T]) -> None:
    """Nobody may be left to ask how late work ended; that is no news."""
    if not task.cancelled():
        task.exception()


def _result_of(task: asyncio.Future[T], seconds: float) -> T:
    if not task.done():
        raise EngineLost(f"no answer within {seconds:g} s")
    try:
        return task.result()
    except AftercallError:
        raise
    except (
        Exception
    ) as error:  # the edge of an engine: whatever breaks there, the caller hears something
        raise EngineLost(f"the engine broke ({type(error).__name__})") from error
