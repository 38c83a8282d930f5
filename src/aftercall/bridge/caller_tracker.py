"""Getting to know who is on the line of a streamed call, beside the audio: it waits for nothing
here.

Words that say that somebody else is calling let the engine's session go, and a new one begins
that was told nothing of the person before: what a model has read it cannot be made to forget.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from aftercall.bridge.turn_call import MakeIdentity, refresh_briefing, resolve_caller
from aftercall.bridge.turn_log import TurnLog
from aftercall.clock import Clock
from aftercall.memory.extraction import BRIEFED_EVENT
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.turns import Speaker, Turn
from aftercall.who.identity import CallerIdentity, NoticedCaller

Recall = Callable[[LiveCall, str], Awaitable[Sequence[str]]]


class CallerTracker:
    def __init__(
        self,
        call: LiveCall,
        turn_log: TurnLog,
        recall: Recall,
        change_session: Callable[[], None],
        clock: Clock,
    ) -> None:
        """`change` lets the engine's session go."""
        self._call = call
        self._turn_log = turn_log
        self._recall = recall
        self._change_session = change_session
        self._clock = clock
        self._identity: CallerIdentity | None = None
        self._said = ""
        self._looking: set[asyncio.Task[None]] = set()
        self._since = 0
        self._new_caller_briefing: Briefing | None = None

    def start(self, make_identity: MakeIdentity | None, briefing: Briefing) -> None:
        self._identity = make_identity(self._call, briefing) if make_identity else None
        self.record_briefed_facts(briefing)

    def record_briefed_facts(self, briefing: Briefing) -> None:
        """Keep with the call which facts it is told."""
        if briefing.facts:
            self._turn_log.add_event(BRIEFED_EVENT, {"facts": [fact.id for fact in briefing.facts]})

    def on_speech(self, speaker: Speaker, text: str) -> None:
        """What the agent says comes in pieces, what the caller says as one."""
        if self._identity is None:
            return
        if speaker == "agent":
            self._said += text
            return
        self._identity.process_turn("agent", self._said)
        self._said = ""
        if noticed := self._identity.process_turn("caller", text):
            looking = asyncio.create_task(self._resolve_caller(self._identity, noticed, text))
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)

    async def recall(self, call: LiveCall, query: str) -> Sequence[str]:
        """Out of the memory that is open now; words that may still change it are waited for.

        A session that was told of somebody else, and is about to be let go, finds nothing.
        """
        if self._identity is None:
            return await self._recall(call, query)
        await asyncio.gather(*self._looking, return_exceptions=True)
        if self.has_new_caller:
            return ()
        return await asyncio.to_thread(self._identity.search_memory, query)

    @property
    def has_new_caller(self) -> bool:
        return self._new_caller_briefing is not None

    def pop_new_caller_briefing(self) -> Briefing | None:
        """The briefing for another caller than was thought, once."""
        newcomer, self._new_caller_briefing = self._new_caller_briefing, None
        return newcomer

    def history(self) -> Sequence[Turn]:
        """What a new session may know of this call: nothing from before its caller said who
        they are.
        """
        return [turn for turn in self._turn_log.turns if turn.seq >= self._since]

    async def _resolve_caller(
        self, attention: CallerIdentity, noticed: NoticedCaller, text: str
    ) -> None:
        learned = await resolve_caller(attention, noticed, self._clock, self._call.id)
        if learned is None:
            return
        for kind, data in learned.events:
            self._turn_log.add_event(kind, data)
        if learned.has_new_party:
            briefing = await refresh_briefing(attention, self._clock, "", self._call.id)
            await self._turn_log.flush_all()
            self._since = max(
                (
                    turn.seq
                    for turn in self._turn_log.turns
                    if turn.speaker == "caller" and turn.text == text
                ),
                default=0,
            )
            self.record_briefed_facts(briefing)
            self._new_caller_briefing = briefing
            self._change_session()
