"""Getting to know who is on the line of a streamed call, beside the audio: it waits for nothing here.

Words that say that somebody else is calling let the engine's session go, and a new one begins that was told nothing of the
person before: what a model has read it cannot be made to forget.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from aftercall.bridge.minutes import Minutes
from aftercall.bridge.turn_call import Attend, brief_anew, look_closer
from aftercall.clock import Clock
from aftercall.memory.told import TOLD
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.turns import Speaker, Turn
from aftercall.who.attention import Attention, Noticed

Recall = Callable[[LiveCall, str], Awaitable[Sequence[str]]]


class Acquaintance:
    def __init__(self, call: LiveCall, minutes: Minutes, recall: Recall, change: Callable[[], None], clock: Clock) -> None:
        """`change` lets the engine's session go."""
        self._call = call
        self._minutes = minutes
        self._recall = recall
        self._change = change
        self._clock = clock
        self._attention: Attention | None = None
        self._said = ""
        self._looking: set[asyncio.Task[None]] = set()
        self._since = 0
        self._newcomer: Briefing | None = None

    def begin(self, attend: Attend | None, briefing: Briefing) -> None:
        self._attention = attend(self._call, briefing) if attend else None
        self.tell(briefing)

    def tell(self, briefing: Briefing) -> None:
        """Keep with the call which facts it is told."""
        if briefing.facts:
            self._minutes.note(TOLD, {"facts": [fact.id for fact in briefing.facts]})

    def overhear(self, speaker: Speaker, text: str) -> None:
        """What the agent says comes in pieces, what the caller says as one."""
        if self._attention is None:
            return
        if speaker == "agent":
            self._said += text
            return
        self._attention.notice("agent", self._said)
        self._said = ""
        if noticed := self._attention.notice("caller", text):
            looking = asyncio.create_task(self._look(self._attention, noticed, text))
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)

    async def recall(self, call: LiveCall, query: str) -> Sequence[str]:
        """Out of the memory that is open now; words that may still change it are waited for.

        A session that was told of somebody else, and is about to be let go, finds nothing.
        """
        if self._attention is None:
            return await self._recall(call, query)
        await asyncio.gather(*self._looking, return_exceptions=True)
        if self.has_newcomer:
            return ()
        return await asyncio.to_thread(self._attention.recall, query)

    @property
    def has_newcomer(self) -> bool:
        return self._newcomer is not None

    def take_newcomer(self) -> Briefing | None:
        """The briefing for another caller than was thought, once."""
        newcomer, self._newcomer = self._newcomer, None
        return newcomer

    def history(self) -> Sequence[Turn]:
        """What a new session may know of this call: nothing from before its caller said who they are."""
        return [turn for turn in self._minutes.turns if turn.seq >= self._since]

    async def _look(self, attention: Attention, noticed: Noticed, text: str) -> None:
        learned = await look_closer(attention, noticed, self._clock, self._call.id)
        if learned is None:
            return
        for kind, data in learned.events:
            self._minutes.note(kind, data)
        if learned.is_another:
            briefing = await brief_anew(attention, self._clock, "", self._call.id)
            await self._minutes.write_all()
            self._since = max((turn.seq for turn in self._minutes.turns if turn.speaker == "caller" and turn.text == text), default=0)
            self.tell(briefing)
            self._newcomer = briefing
            self._change()
