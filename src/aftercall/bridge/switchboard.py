"""Calls of carriers that ask over HTTP, one question a turn.

Questions arrive twice and late; a repeated one gets the same answer. A question about an unknown
call (the server was restarted in the middle of it) opens a new leg that continues the
conversation.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aftercall.bridge import state
from aftercall.bridge.turn_call import TurnCall, TurnCallParts
from aftercall.clock import Clock
from aftercall.engine.voice import AgentReply
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall

IDLE_TIMEOUT_S = 600.0
MAX_SILENT_TURNS = 3
STILL_THERE = AgentReply(state.STILL_THERE)
GOODBYE = AgentReply("Goodbye!", ends_call=True)
SILENT_GOODBYE = AgentReply(state.SILENT_GOODBYE, ends_call=True)

log = get_logger("switchboard")


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
