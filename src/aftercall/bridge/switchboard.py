"""Calls of carriers that ask over HTTP, one question a turn: which call a question belongs to,
and what was answered.

Questions come twice and late; the same one gets the same answer. A question about a call that
this process does not know (the server was restarted in the middle of it) opens a new leg, which
picks the conversation up.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aftercall.bridge.turn_call import TurnCall, TurnCallParts
from aftercall.clock import Clock
from aftercall.engine.session import AgentReply
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall

IDLE_TIMEOUT_S = 600.0
MAX_SILENT_TURNS = 3
STILL_THERE = AgentReply("Are you still there?")
GOODBYE = AgentReply("Goodbye!", ends_call=True)
SILENT_GOODBYE = AgentReply(
    "I can't hear you, so I will hang up now. Please call again. Goodbye!", ends_call=True
)

log = get_logger("switchboard")


@dataclass
class PhoneLine:
    """One call on the board. `turn` is the number of the question that is open."""

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
        """A call begins; a ring that comes twice is answered once."""
        await self._sweep()
        if line := self._lines.get(sid):
            async with line.lock:
                return SpokenReply(line.last_reply, line.turn)
        line = self._add(sid, make_call(sid))
        async with line.lock:
            return self._record_reply(line, await line.call.start())

    def current_turn(self, sid: str) -> int | None:
        """The number of the question that is open in this call; None if the board does not know
        the call.
        """
        line = self._lines.get(sid)
        return None if line is None else line.turn

    async def answer_turn(
        self, sid: str, turn: int | None, text: str, confidence: float | None, make_call: MakeCall
    ) -> SpokenReply:
        """The caller said something in answer to question `turn`, or to whichever is open;
        silence is an answer, too.
        """
        line = self._lines.get(sid)
        if line is None:
            return await self._pick_up(sid, text, confidence, make_call)
        async with line.lock:
            if (
                turn not in (None, line.turn) or line.call.end_reason is not None
            ):  # asked twice, or overtaken by what came after
                return SpokenReply(line.last_reply, line.turn)
            line.turn += 1
            return self._record_reply(line, await self._answer(line, text, confidence))

    async def end(self, sid: str, reason: str) -> None:
        """The carrier says that the call is over; told twice, it is over once."""
        if line := self._lines.get(sid):
            await line.call.end(reason)
            line.last_reply = GOODBYE

    async def _pick_up(
        self, sid: str, text: str, confidence: float | None, make_call: MakeCall
    ) -> SpokenReply:
        log.warning("a call that this process does not know goes on")
        line = self._add(sid, make_call(f"{sid}.{int(self._clock.now().timestamp())}"))
        async with line.lock:
            opening = await line.call.start()
            if line.call.end_reason is not None or not text.strip():
                return self._record_reply(line, opening)
            return self._record_reply(line, await line.call.answer(text, confidence))

    async def _answer(self, line: PhoneLine, text: str, confidence: float | None) -> AgentReply:
        if text.strip():
            line.silences = 0
            return await line.call.answer(text, confidence)
        line.silences += 1
        return await line.call.say(
            SILENT_GOODBYE if line.silences >= MAX_SILENT_TURNS else STILL_THERE
        )

    def _add(self, sid: str, call: LiveCall) -> PhoneLine:
        line = self._lines[sid] = PhoneLine(TurnCall(self._parts, call), self._clock.monotonic())
        return line

    def _record_reply(self, line: PhoneLine, reply: AgentReply) -> SpokenReply:
        line.last_reply, line.last_used_s = reply, self._clock.monotonic()
        return SpokenReply(reply, line.turn)

    async def _sweep(self) -> None:
        """Calls that ended leave the board after a while, late echoes of their webhooks
        included; so do those whose end was never told.
        """
        now = self._clock.monotonic()
        for sid, line in [
            (sid, line)
            for sid, line in self._lines.items()
            if now - line.last_used_s > IDLE_TIMEOUT_S
        ]:
            await line.call.end("abandoned")
            self._lines.pop(sid, None)
