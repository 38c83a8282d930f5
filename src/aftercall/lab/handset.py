"""A caller played by hand, the same on both emulated carriers: rings your agent, speaks, listens, hangs up."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from aftercall.lab.server import Lab

Carrier = Literal["twilio", "telnyx"]


@dataclass
class Handset:
    """`heard` grows with every word of the agent."""

    heard: list[str]
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
    call = await lab.twilio.ring(f"{agent}/twilio/voice", caller=caller, callee=callee, status_url=f"{agent}/twilio/status")

    async def say(text: str) -> None:
        if call.listening is not None:
            await lab.twilio.say(call, text)

    async def hang_up() -> None:
        await lab.twilio.hang_up(call)

    return Handset(call.heard, say, hang_up, lambda: call.is_over, lambda: str(call.fault or ""))


async def _ring_telnyx(lab: Lab, agent: str, caller: str, callee: str) -> Handset:
    call = await lab.telnyx.ring(f"{agent}/telnyx/events", caller=caller, callee=callee)

    async def say(text: str) -> None:
        await lab.telnyx.say(call, text)

    async def hang_up() -> None:
        await lab.telnyx.hang_up(call)

    def trouble() -> str:
        if call.refused:
            return f"the webhook answered {call.refused[-1] or 'nothing'}"
        return "" if call.actions else "the agent sent no command: is AFTERCALL_TELNYX_API_URL set to the lab?"

    return Handset(call.heard, say, hang_up, lambda: call.is_over, trouble)
