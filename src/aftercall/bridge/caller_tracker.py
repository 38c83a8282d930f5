"""Who is calling, and what the agent may know about them.

A call starts with the briefing for its number. When a caller says that they are another person,
or speaks a passcode, the briefing changes. `CallerTracker` does this beside the audio of a
streamed call: it ends the engine's session and a new one starts without the old briefing, since
a model cannot be made to forget what it has read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from aftercall.bridge.tools import Recall
from aftercall.bridge.turn_log import TurnLog
from aftercall.clock import Clock, attempt
from aftercall.errors import AftercallError
from aftercall.journal.recorder import (
    CallRecorder,
    PreparedBriefing,
    ResumeState,
    ResumeStates,
)
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import BRIEFED_EVENT, LiveCall, Speaker, Turn
from aftercall.model.json_fields import Json
from aftercall.who.identity import CallerIdentity, LearnedCaller, NoticedCaller

WRITE_TIMEOUT_S = 2.0
BRIEFING_TIMEOUT_S = (
    2.5  # the composer has a limit too (briefing.timeout_ms); this one is a net
)

log = get_logger("bridge")

MakeIdentity = Callable[[LiveCall, Briefing], CallerIdentity]
Brief = Callable[[LiveCall], Awaitable[PreparedBriefing]]
"""The call that this one continues, if any, and the briefing."""


async def fetch_briefing(
    brief: Brief, call: LiveCall, greeting: str, clock: Clock
) -> PreparedBriefing:
    """The briefing of a call that begins. A late or broken one leaves only the greeting."""
    try:
        return await attempt(clock, BRIEFING_TIMEOUT_S, brief(call))
    except AftercallError as error:
        log.warning(
            "the call begins without a briefing", call=call.id, error=error.code
        )
        return None, Briefing(greeting)


async def refresh_briefing(
    identity: CallerIdentity, clock: Clock, greeting: str, call_id: str
) -> Briefing:
    """The briefing of the person who is calling as it turned out."""
    composing = asyncio.to_thread(identity.compose_briefing)
    try:
        return await attempt(clock, BRIEFING_TIMEOUT_S, composing)
    except AftercallError as error:
        log.warning(
            "the call goes on without a briefing", call=call_id, error=error.code
        )
        return Briefing(greeting)


async def resolve_caller(
    identity: CallerIdentity, noticed: NoticedCaller, clock: Clock, call_id: str
) -> LearnedCaller | None:
    """What the words say about who is calling. On failure the memory is closed."""
    resolving = asyncio.to_thread(identity.resolve, noticed)
    try:
        return await attempt(clock, BRIEFING_TIMEOUT_S, resolving)
    except AftercallError as error:
        log.warning(
            "the caller could not be identified", call=call_id, error=error.code
        )
        return identity.clear_party()


async def join_call(
    resume: ResumeStates, state: ResumeState, recorder: CallRecorder, clock: Clock
) -> None:
    """Make the call a leg of the conversation that it continues."""
    joining = asyncio.to_thread(resume.consume, state, recorder.call)
    try:
        joined = await attempt(clock, WRITE_TIMEOUT_S, joining)
    except AftercallError as error:
        call_id = recorder.call.id
        code = error.code
        log.warning(
            "the call could not be joined to the one before", call=call_id, error=code
        )
    else:
        recorder.call = joined or recorder.call


def briefed_facts(briefing: Briefing) -> tuple[str, Json] | None:
    """The event that keeps with the call which facts the agent was told; None without facts."""
    if not briefing.facts:
        return None
    return BRIEFED_EVENT, {"facts": [fact.id for fact in briefing.facts]}


class CallerTracker:
    """Follows who is speaking as the call goes on: names given, passcodes tried."""

    def __init__(
        self,
        call: LiveCall,
        turn_log: TurnLog,
        recall: Recall,
        change_session: Callable[[], None],
        clock: Clock,
    ) -> None:
        """`change_session` ends the engine's session for a new one."""
        self._call = call
        self._turn_log = turn_log
        self._recall = recall
        self._change_session = change_session
        self._clock = clock
        self._identity: CallerIdentity | None = None
        self._said = ""
        self._resolving: set[asyncio.Task[None]] = set()
        self._since_seq = 0
        self._new_caller_briefing: Briefing | None = None

    def start(self, make_identity: MakeIdentity | None, briefing: Briefing) -> None:
        self._identity = make_identity(self._call, briefing) if make_identity else None
        self._record_briefed_facts(briefing)

    def on_speech(self, speaker: Speaker, text: str) -> None:
        """The agent's words come in pieces, the caller's whole."""
        if self._identity is None:
            return
        if speaker == "agent":
            self._said += text
            return
        self._identity.process_turn("agent", self._said)
        self._said = ""
        if noticed := self._identity.process_turn("caller", text):
            resolving = asyncio.create_task(
                self._resolve_caller(self._identity, noticed, text)
            )
            self._resolving.add(resolving)
            resolving.add_done_callback(self._resolving.discard)

    async def recall(self, call: LiveCall, query: str) -> Sequence[str]:
        """Search the caller's memory, after words that may change who the caller is.

        A session that was briefed for another person, and is about to end, finds nothing.
        """
        if self._identity is None:
            return await self._recall(call, query)
        await asyncio.gather(*self._resolving, return_exceptions=True)
        if self.has_new_caller:
            return ()
        return await asyncio.to_thread(self._identity.search_memory, query)

    @property
    def has_new_caller(self) -> bool:
        return self._new_caller_briefing is not None

    def pop_new_caller_briefing(self) -> Briefing | None:
        briefing, self._new_caller_briefing = self._new_caller_briefing, None
        return briefing

    def history(self) -> Sequence[Turn]:
        """The turns a new session may know: those since the caller said who they are."""
        return [turn for turn in self._turn_log.turns if turn.seq >= self._since_seq]

    async def _resolve_caller(
        self, identity: CallerIdentity, noticed: NoticedCaller, text: str
    ) -> None:
        learned = await resolve_caller(identity, noticed, self._clock, self._call.id)
        if learned is None:
            return
        for kind, data in learned.events:
            self._turn_log.add_event(kind, data)
        if not learned.has_new_party:
            return
        briefing = await refresh_briefing(identity, self._clock, "", self._call.id)
        await self._turn_log.flush_all()
        turns = self._turn_log.turns
        same = [
            turn.seq for turn in turns if turn.speaker == "caller" and turn.text == text
        ]
        self._since_seq = max(same, default=0)
        self._record_briefed_facts(briefing)
        self._new_caller_briefing = briefing
        self._change_session()

    def _record_briefed_facts(self, briefing: Briefing) -> None:
        if event := briefed_facts(briefing):
            self._turn_log.add_event(*event)
