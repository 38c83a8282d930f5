"""A caller played by hand, the same on both emulated carriers: rings your agent, speaks,
listens, hangs up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from aftercall.lab.line import HungUp
from aftercall.lab.media import MediaPhone
from aftercall.lab.numbers import LabNumber
from aftercall.lab.server import Lab
from aftercall.lab.voices import Speak, VoiceName, make_voice

Transcribe = Callable[[bytes], Awaitable[str]]


class StreamedCaller:
    def __init__(self, phone: MediaPhone, speak: Speak, transcribe: Transcribe) -> None:
        self._phone = phone
        self._speak = speak
        self._transcribe = transcribe
        self._heard: list[str] = []
        self._words = 0
        self._sound = 0

    @property
    def is_over(self) -> bool:
        return self._phone.is_over

    def pop_heard(self) -> list[str]:
        """What was heard since it was last asked for."""
        heard, self._heard = self._heard, []
        return heard

    async def say(self, text: str) -> None:
        audio = await self._speak(text)
        with suppress(AssertionError, TimeoutError):  # the agent has hung up
            await self._phone.send_audio(audio)
        await self.listen()

    async def listen(self) -> None:
        """Until the agent has spoken and fallen silent, is gone, or says nothing."""
        with suppress(AssertionError, TimeoutError):
            await self._phone.wait_for_silence(self._sound)
        if self._phone.is_over:
            await self._phone.wait_closed()
        words, sound = (
            self._phone.heard[self._words :],
            bytes(self._phone.played_audio[self._sound :]),
        )
        self._words, self._sound = len(self._phone.heard), len(self._phone.played_audio)
        if words:
            self._heard += words
        elif sound:
            self._heard.append(await self._transcribe(sound))

    async def hang_up(self) -> None:
        if not self._phone.is_over:
            with suppress(TimeoutError):
                await self._phone.hang_up()


Carrier = Literal["twilio", "telnyx"]
REPLY_TIMEOUT_S = 20.0


@dataclass
class Handset:
    """`hear` gives what the agent has said since it was last asked."""

    pop_heard: Callable[[], list[str]]
    say: Callable[[str], Awaitable[None]]
    hang_up: Callable[[], Awaitable[None]]
    is_over: Callable[[], bool]
    trouble: Callable[[], str]


async def ring_agent(
    lab: Lab,
    carrier: Carrier,
    agent: str,
    caller: str,
    callee: str = "+15550101",
    voice: VoiceName = "words",
) -> Handset:
    """Ring the webhook of an agent at this address, as `carrier` would; `voice` is for calls
    whose audio is streamed.
    """
    speak = make_voice(voice)
    if carrier == "twilio":
        return await _ring_twilio(lab, agent, caller, callee, speak)
    return await _ring_telnyx(lab, agent, caller, callee, speak)


async def _ring_twilio(lab: Lab, agent: str, caller: str, callee: str, speak: Speak) -> Handset:
    lab.exchange.numbers[callee] = LabNumber(f"{agent}/twilio/voice", f"{agent}/twilio/status")
    leg, end, agents_side = lab.exchange.start_manual_call(caller, callee)
    shown = 0
    is_held = True

    def hear() -> list[str]:
        nonlocal shown
        finished = [said for said in end.other.said if said.ended_s is not None]
        fresh, shown = finished[shown:], len(finished)
        return [" ".join(said.words) for said in fresh if said.words]

    async def listen() -> None:
        try:
            await end.listen(REPLY_TIMEOUT_S)
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

    await _wait_for_first(listen(), leg.stream_opened.wait())
    if leg.phone is None:
        return Handset(hear, say, hang_up, lambda: not end.is_open, lambda: str(leg.fault or ""))
    return await _stream(lab, leg.phone, speak, hang_up, lambda: str(leg.fault or ""), hear())


async def _wait_for_first(*works: Coroutine[Any, Any, object]) -> None:
    """Until one of them is done; the others are let go."""
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _stream(
    lab: Lab,
    phone: MediaPhone,
    speak: Speak,
    finish: Callable[[], Awaitable[None]],
    trouble: Callable[[], str],
    before: list[str],
) -> Handset:
    """`before` is what was said in words, ahead of the stream."""
    streamed = StreamedCaller(phone, speak, lab.transcriber.transcribe)
    await streamed.listen()

    def hear() -> list[str]:
        heard = [*before, *streamed.pop_heard()]
        before.clear()
        return heard

    async def hang_up() -> None:
        await streamed.hang_up()
        await finish()

    return Handset(hear, streamed.say, hang_up, lambda: streamed.is_over, trouble)


async def _ring_telnyx(lab: Lab, agent: str, caller: str, callee: str, speak: Speak) -> Handset:
    call = await lab.telnyx.ring(
        f"{agent}/telnyx/events", caller=caller, callee=callee, may_stream=True
    )

    def hear() -> list[str]:
        heard = list(call.heard)
        call.heard.clear()
        return heard

    async def say(text: str) -> None:
        await lab.telnyx.say(call, text)

    async def hang_up() -> None:
        await lab.telnyx.hang_up(call)

    def trouble() -> str:
        if call.failed_statuses:
            return f"the webhook answered {call.failed_statuses[-1] or 'nothing'}"
        return (
            ""
            if call.actions
            else "the agent sent no command: is AFTERCALL_TELNYX_API_URL set to the lab?"
        )

    if call.dial_task is not None:
        await call.dial_task
    if call.phone is None:
        return Handset(hear, say, hang_up, lambda: call.is_over, trouble)
    return await _stream(lab, call.phone, speak, hang_up, trouble, hear())
