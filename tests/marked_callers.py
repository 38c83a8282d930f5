"""Callers who each have a word of their own, and engines that remember everything they were
sent: who got whose word?
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from aftercall.app import App
from aftercall.bridge.turn_call import TurnCall, TurnCallParts
from aftercall.briefing.render import make_instructions
from aftercall.engine.voice import (
    AgentReply,
    CallerBegan,
    CallerSaid,
    ToolCall,
    TurnSession,
)
from aftercall.model.briefing import Briefing
from aftercall.postcall.steps import STEPS
from fakes import FakeVoiceEngine, VirtualClock, make_live_call
from voice_rig import Rig

TOM, BEA = "+15550101", "+15550202"
PASSCODE = "blue harbour"
UTC = ZoneInfo("UTC")


@dataclass(frozen=True)
class Who:
    """One person as one agent knows them; `word` is theirs alone."""

    agent_id: str
    number: str | None
    name: str
    word: str

    @property
    def lines(self) -> list[str]:
        return [
            f"My sister {self.word} lives in Porto.",
            f"I prefer {self.word.lower()} tea in the evening.",
            f"Please remind me to buy {self.word.lower()} bread tomorrow.",
            f"My favourite place is the {self.word} market.",
        ]


@dataclass
class Sent:
    """What one session was sent, with those who may be in it."""

    allowed: frozenset[Who]
    texts: list[str] = field(default_factory=list)


class RecordingEngine:
    """A TurnEngine that remembers what it is told, in sessions of one caller each."""

    def __init__(self, allowed: frozenset[Who]) -> None:
        self.sent = [Sent(allowed)]
        self.next_allowed = allowed

    async def connect(self, briefing: Briefing) -> TurnSession:
        self._keep(briefing)
        return self

    async def greet(self) -> AgentReply:
        return AgentReply("Hello.")

    async def answer(self, said: str) -> AgentReply:
        return AgentReply("Noted.")

    async def update_briefing(self, briefing: Briefing, *, is_another: bool) -> None:
        if is_another:
            self.sent.append(Sent(self.next_allowed))
        self._keep(briefing)

    async def close(self) -> None:
        return

    def _keep(self, briefing: Briefing) -> None:
        self.sent[-1].texts += [
            make_instructions(briefing, UTC),
            briefing.first_words,
            repr(briefing),
        ]


@dataclass
class Hall:
    """Where the calls take place: one home, several Aftercalls on it that differ in the scope
    of memory.
    """

    apps: dict[str, App]
    people: list[Who]
    clock: VirtualClock
    dice: random.Random
    sent: list[Sent] = field(default_factory=list)
    ended: dict[tuple[str, str], tuple[Who, datetime]] = field(default_factory=dict)
    tally: Counter[str] = field(default_factory=Counter)
    _due: list[tuple[App, str]] = field(default_factory=list)

    def allowed_at_ring(self, scope: str, who: Who) -> frozenset[Who]:
        """The number's owner.

        Where nobody is remembered, their own dropped call at most; where all share, all of that
        agent.
        """
        if scope == "none" or who.number is None:
            return (
                frozenset(
                    other
                    for other in self._just_ended(who)
                    if other is self.owner_of(who)
                )
                if who.number
                else frozenset()
            )
        if scope == "shared":
            return frozenset(
                other for other in self.people if other.agent_id == who.agent_id
            )
        return frozenset({self.owner_of(who)})

    def _just_ended(self, who: Who) -> list[Who]:
        last = self.ended.get((who.agent_id, who.number or ""))
        return (
            [last[0]]
            if last and (self.clock.now() - last[1]).total_seconds() <= 300
            else []
        )

    def end(self, app: App, who: Who, call_id: str) -> None:
        self.ended[(who.agent_id, who.number or "")] = (who, self.clock.now())
        self._due.append((app, call_id))

    def owner_of(self, who: Who) -> Who:
        """The first of a number's people."""
        return next(
            other
            for other in self.people
            if (other.agent_id, other.number) == (who.agent_id, who.number)
        )

    def work(self, *, is_all: bool = False) -> None:
        """What comes after some of the calls that have ended, in any order."""
        self.dice.shuffle(self._due)
        for _ in range(
            len(self._due) if is_all else self.dice.randint(0, len(self._due))
        ):
            app, call_id = self._due.pop()
            for name in STEPS:
                app.step_runner.run(call_id, name)

    def leaks(self) -> Iterator[tuple[str, str]]:
        """Words that were sent where they do not belong, and what they stood in."""
        for sent in self.sent:
            words = {who.word for who in sent.allowed}
            for text in sent.texts:
                low = text.lower()
                yield from (
                    (who.word, text)
                    for who in self.people
                    if who.word not in words and who.word.lower() in low
                )
                self.tally["own words"] += sum(word.lower() in low for word in words)


async def ring_by_turns(hall: Hall, scope: str, who: Who, number: int) -> None:
    app, dice = hall.apps[scope], hall.dice
    engine = RecordingEngine(hall.allowed_at_ring(scope, who))
    parts: TurnCallParts = replace(app.phone.turn_parts, engine=engine)
    live = make_live_call(
        caller=who.number,
        agent_id=who.agent_id,
        sid=f"m{number}",
        started_at=hall.clock.now(),
    )
    call = TurnCall(parts, live)
    await call.start()
    # a call of theirs may have ended while this one began
    engine.sent[0].allowed |= hall.allowed_at_ring(scope, who)
    hall.sent += engine.sent
    engine.next_allowed = (
        frozenset({who}) if who.number and scope != "shared" else engine.sent[0].allowed
    )
    for line in _script(hall, who):
        before = len(engine.sent)
        await call.answer(line)
        hall.sent += engine.sent[before:]
        await asyncio.sleep(0)
        if dice.random() < 0.1:
            break
    await call.end("caller_hung_up")
    hall.end(app, who, live.id)


async def ring_by_voice(hall: Hall, scope: str, who: Who, number: int) -> None:
    app = hall.apps[scope]
    allowed = hall.allowed_at_ring(scope, who)
    rig = Rig(app, hall.clock, FakeVoiceEngine(), whole=True, drain_s=0)
    rig.live = make_live_call(
        source="twilio",
        sid=rig.side.call_sid[:-8] + f"{number:08}",
        caller=who.number,
        agent_id=who.agent_id,
        started_at=hall.clock.now(),
    )
    rig.side.call_sid = rig.live.sid
    await rig.answer()
    await rig.greet()
    introduces = frozenset({who}) if who.number and scope != "shared" else allowed
    for turn, line in enumerate(_script(hall, who)):
        rig.engine.session.add_events(
            CallerBegan(f"t{turn}"), CallerSaid(f"t{turn}", line)
        )
        await rig.pass_time(0)
        other = hall.dice.choice(hall.people)
        for query in ("sister remind bread market tea", other.word):
            rig.engine.session.add_events(
                ToolCall(
                    f"q{turn}{query}", "search_memory", json.dumps({"query": query})
                )
            )
            await rig.pass_time(0)
    rig.line.add_frames(rig.side.stop())
    await rig.sealed()
    for at, session in enumerate(rig.engine.sessions):
        texts = [
            session.opening.instructions,
            session.opening.greeting,
            *session.answers,
            *session.said,
        ]
        texts += [said.text for said in session.opening.history]
        hall.sent.append(Sent(allowed if at == 0 else introduces, texts))
        hall.tally["lookups"] += len(session.answers)
    hall.end(app, who, rig.live.id)


def _script(hall: Hall, who: Who) -> list[str]:
    """Guests say who they are at once; owners sometimes do."""
    lines = hall.dice.sample(who.lines, hall.dice.randint(1, 3))
    is_first = (who.agent_id, who.number or "") not in hall.ended
    if hall.owner_of(who) is not who or is_first or hall.dice.random() < 0.3:
        lines.insert(0, f"Hello, this is {who.name}.")
    return lines
