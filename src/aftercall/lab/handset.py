"""A caller's handset, the same on all emulated carriers and platforms."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from aftercall.lab.exchange import LabNumber, PhoneNetwork
from aftercall.lab.hosted import EmulatedPlatform, LabHostedCall
from aftercall.lab.leg import Leg
from aftercall.lab.line import HungUp, LineEnd
from aftercall.lab.media import MediaPhone
from aftercall.lab.speech import Speak
from aftercall.lab.telnyx import EmulatedTelnyx, TelnyxCall

REPLY_TIMEOUT_S = 20.0

Transcribe = Callable[[bytes], Awaitable[str]]


class Handset(Protocol):
    @property
    def is_over(self) -> bool: ...

    @property
    def trouble(self) -> str:
        """Why the call failed; empty if it did not."""
        ...

    def pop_heard(self) -> list[str]:
        """What the agent has said since the last time."""
        ...

    async def say(self, text: str) -> None:
        """Speaks, and listens until the agent has answered."""
        ...

    async def hang_up(self) -> None: ...


class TwilioHandset:
    """A caller's phone on emulated Twilio."""

    def __init__(
        self, leg: Leg, end: LineEnd, agent_side: "asyncio.Task[None]"
    ) -> None:
        self._leg = leg
        self._end = end
        self._agent_side = agent_side
        self._heard_count = 0
        self._is_held = True

    @property
    def is_over(self) -> bool:
        return not self._end.is_open

    @property
    def trouble(self) -> str:
        return str(self._leg.fault or "")

    def pop_heard(self) -> list[str]:
        finished = [said for said in self._end.other.said if said.ended_s is not None]
        fresh, self._heard_count = finished[self._heard_count :], len(finished)
        return [" ".join(said.words) for said in fresh if said.words]

    async def say(self, text: str) -> None:
        try:
            await self._end.say(text)
        except HungUp:
            await self.hang_up()
        else:
            await self.listen()

    async def listen(self) -> None:
        try:
            await self._end.listen(REPLY_TIMEOUT_S)
        except HungUp:
            await self.hang_up()

    async def hang_up(self) -> None:
        if self._is_held:
            self._is_held = False
            self._end.hang_up()
            self._end.timeline.leave()
        await self._agent_side


class TelnyxHandset:
    """A caller's phone on emulated Telnyx."""

    def __init__(self, telnyx: EmulatedTelnyx, call: TelnyxCall) -> None:
        self._telnyx = telnyx
        self._call = call

    @property
    def is_over(self) -> bool:
        return self._call.is_over

    @property
    def trouble(self) -> str:
        if self._call.failed_statuses:
            return f"the webhook answered {self._call.failed_statuses[-1] or 'nothing'}"
        if self._call.actions:
            return ""
        return "the agent sent no command: is AFTERCALL_TELNYX_API_URL set to the lab?"

    def pop_heard(self) -> list[str]:
        heard = list(self._call.heard)
        self._call.heard.clear()
        return heard

    async def say(self, text: str) -> None:
        await self._telnyx.say(self._call, text)

    async def hang_up(self) -> None:
        await self._telnyx.hang_up(self._call)


class HostedHandset:
    """A caller of an emulated platform."""

    def __init__(self, platform: EmulatedPlatform, call: LabHostedCall) -> None:
        self._platform = platform
        self._call = call
        self._heard_count = 0

    @property
    def is_over(self) -> bool:
        return self._call.ended_at is not None

    @property
    def trouble(self) -> str:
        if not self._call.refused:
            return ""
        return f"the webhook answered {self._call.refused[-1] or 'nothing'}"

    def pop_heard(self) -> list[str]:
        said = [text for who, text, _ in self._call.turns if who == "agent"]
        fresh, self._heard_count = said[self._heard_count :], len(said)
        return fresh

    async def say(self, text: str) -> None:
        await self._platform.say(self._call, text)

    async def hang_up(self) -> None:
        await self._platform.hang_up(self._call)


class StreamedHandset:
    """Speaks and listens on a media stream; `call` is the handset below it."""

    def __init__(
        self, call: Handset, phone: MediaPhone, speak: Speak, transcribe: Transcribe
    ) -> None:
        self._call = call
        self._phone = phone
        self._speak = speak
        self._transcribe = transcribe
        self._heard = call.pop_heard()
        self._word_count = 0
        self._audio_bytes = 0

    @property
    def is_over(self) -> bool:
        return self._phone.is_over

    @property
    def trouble(self) -> str:
        return self._call.trouble

    def pop_heard(self) -> list[str]:
        heard, self._heard = self._heard, []
        return heard

    async def say(self, text: str) -> None:
        audio = await self._speak(text)
        with suppress(AssertionError, TimeoutError):  # the agent has hung up
            await self._phone.send_audio(audio)
        await self.listen()

    async def listen(self) -> None:
        """Returns when the agent has spoken and falls silent, hangs up, or says nothing."""
        with suppress(AssertionError, TimeoutError):
            await self._phone.wait_for_silence(self._audio_bytes)
        if self._phone.is_over:
            await self._phone.wait_closed()
        words = self._phone.heard[self._word_count :]
        audio = bytes(self._phone.played_audio[self._audio_bytes :])
        self._word_count, self._audio_bytes = (
            len(self._phone.heard),
            self._phone.played_bytes,
        )
        if words:
            self._heard += words
        elif audio:
            self._heard.append(await self._transcribe(audio))

    async def hang_up(self) -> None:
        if not self._phone.is_over:
            with suppress(TimeoutError):
                await self._phone.hang_up()
        await self._call.hang_up()


async def ring_by_twilio(
    exchange: PhoneNetwork,
    number: LabNumber,
    caller: str,
    callee: str,
    speak: Speak,
    transcribe: Transcribe,
) -> Handset:
    """Rings the agent that answers `number`, whoever `callee` is assigned to.

    `speak` and `transcribe` are for a streamed call.
    """
    leg, end, agent_side = exchange.start_manual_call(caller, callee, number)
    handset = TwilioHandset(leg, end, agent_side)
    await _wait_for_first(handset.listen(), leg.stream_opened.wait())
    return await _add_stream(handset, leg.phone, speak, transcribe)


async def ring_by_telnyx(
    telnyx: EmulatedTelnyx,
    agent: str,
    caller: str,
    callee: str,
    speak: Speak,
    transcribe: Transcribe,
) -> Handset:
    url = f"{agent}/telnyx/events"
    call = await telnyx.ring(url, caller=caller, callee=callee, may_stream=True)
    if call.dial_task is not None:
        await call.dial_task
    return await _add_stream(TelnyxHandset(telnyx, call), call.phone, speak, transcribe)


async def _wait_for_first(*works: Coroutine[Any, Any, object]) -> None:
    """Waits until one is done and cancels the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _add_stream(
    handset: Handset, phone: MediaPhone | None, speak: Speak, transcribe: Transcribe
) -> Handset:
    if phone is None:
        return handset
    streamed = StreamedHandset(handset, phone, speak, transcribe)
    await streamed.listen()
    return streamed
