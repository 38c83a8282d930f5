"""A caller played by hand, the same on both emulated carriers: rings your agent, speaks, listens, hangs up."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from aftercall.lab.line import HungUp
from aftercall.lab.media import MediaPhone
from aftercall.lab.numbers import Number
from aftercall.lab.server import Lab
from aftercall.lab.streamed import StreamedCaller
from aftercall.lab.voices import Speak, VoiceName, make_voice

Carrier = Literal["twilio", "telnyx"]
PATIENCE_S = 20.0


@dataclass
class Handset:
    """`hear` gives what the agent has said since it was last asked."""

    hear: Callable[[], list[str]]
    say: Callable[[str], Awaitable[None]]
    hang_up: Callable[[], Awaitable[None]]
    is_over: Callable[[], bool]
    trouble: Callable[[], str]


async def ring_agent(lab: Lab, carrier: Carrier, agent: str, caller: str, callee: str = "+15550101", voice: VoiceName = "words") -> Handset:
    """Ring the webhook of an agent at this address, as `carrier` would; `voice` is for calls whose audio is streamed."""
    speak = make_voice(voice)
    if carrier == "twilio":
        return await _ring_twilio(lab, agent, caller, callee, speak)
    return await _ring_telnyx(lab, agent, caller, callee, speak)


async def _ring_twilio(lab: Lab, agent: str, caller: str, callee: str, speak: Speak) -> Handset:
    lab.exchange.numbers[callee] = Number(f"{agent}/twilio/voice", f"{agent}/twilio/status")
    leg, end, agents_side = lab.exchange.ring_in(caller, callee)
    shown = 0
    is_held = True

    def hear() -> list[str]:
        nonlocal shown
        finished = [said for said in end.other.said if said.ended_s is not None]
        fresh, shown = finished[shown:], len(finished)
        return [" ".join(said.words) for said in fresh if said.words]

    async def listen() -> None:
        try:
            await end.listen(PATIENCE_S)
        except HungUp:
            await hang_up()

    async def say(text: str) -> None:
        try:
            await end.say(text)
        except HungUp:
            await hang_up()
        else:
            await listen()

    async def hang_up() -> None:
        nonlocal is_held
        if is_held:
            is_held = False
            end.hang_up()
            end.timeline.leave()
        await agents_side

    await _first(listen(), leg.streaming.wait())
    if leg.phone is None:
        return Handset(hear, say, hang_up, lambda: not end.is_open, lambda: str(leg.fault or ""))
    return await _stream(lab, leg.phone, speak, hang_up, lambda: str(leg.fault or ""), hear())


async def _first(*works: Coroutine[Any, Any, object]) -> None:
    """Until one of them is done; the others are let go."""
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _stream(
    lab: Lab, phone: MediaPhone, speak: Speak, finish: Callable[[], Awaitable[None]], trouble: Callable[[], str], before: list[str]
) -> Handset:
    """`before` is what was said in words, ahead of the stream."""
    streamed = StreamedCaller(phone, speak, lab.understanding.of)
    await streamed.listen()

    def hear() -> list[str]:
        heard = [*before, *streamed.hear()]
        before.clear()
        return heard

    async def hang_up() -> None:
        await streamed.hang_up()
        await finish()

    return Handset(hear, streamed.say, hang_up, lambda: streamed.is_over, trouble)


async def _ring_telnyx(lab: Lab, agent: str, caller: str, callee: str, speak: Speak) -> Handset:
    call = await lab.telnyx.ring(f"{agent}/telnyx/events", caller=caller, callee=callee, may_stream=True)

    def hear() -> list[str]:
        heard = list(call.heard)
        call.heard.clear()
        return heard

    async def say(text: str) -> None:
        await lab.telnyx.say(call, text)

    async def hang_up() -> None:
        await lab.telnyx.hang_up(call)

    def trouble() -> str:
        if call.refused:
            return f"the webhook answered {call.refused[-1] or 'nothing'}"
        return "" if call.actions else "the agent sent no command: is AFTERCALL_TELNYX_API_URL set to the lab?"

    if call.dialling is not None:
        await call.dialling
    if call.phone is None:
        return Handset(hear, say, hang_up, lambda: call.is_over, trouble)
    return await _stream(lab, call.phone, speak, hang_up, trouble, hear())
