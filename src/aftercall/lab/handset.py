"""A caller played by hand, the same on both emulated carriers: rings your agent, speaks, listens, hangs up."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from aftercall.lab.line import HungUp
from aftercall.lab.numbers import Number
from aftercall.lab.server import Lab

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


async def ring_agent(lab: Lab, carrier: Carrier, agent: str, caller: str, callee: str = "+15550101") -> Handset:
    """Ring the webhook of an agent at this address, as `carrier` would."""
    if carrier == "twilio":
        return await _ring_twilio(lab, agent, caller, callee)
    return await _ring_telnyx(lab, agent, caller, callee)


async def _ring_twilio(lab: Lab, agent: str, caller: str, callee: str) -> Handset:
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

    await listen()
    return Handset(hear, say, hang_up, lambda: not end.is_open, lambda: str(leg.fault or ""))


async def _ring_telnyx(lab: Lab, agent: str, caller: str, callee: str) -> Handset:
    call = await lab.telnyx.ring(f"{agent}/telnyx/events", caller=caller, callee=callee)

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

    return Handset(hear, say, hang_up, lambda: call.is_over, trouble)
