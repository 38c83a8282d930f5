"""A caller played by hand on a call whose audio is streamed: they talk in a voice, and what they hear is words where it can be."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from aftercall.lab.media import MediaPhone
from aftercall.lab.voices import Speak

Understand = Callable[[bytes], Awaitable[str]]


class StreamedCaller:
    def __init__(self, phone: MediaPhone, speak: Speak, understand: Understand) -> None:
        self._phone = phone
        self._speak = speak
        self._understand = understand
        self._heard: list[str] = []
        self._words = 0
        self._sound = 0

    @property
    def is_over(self) -> bool:
        return self._phone.is_over

    def hear(self) -> list[str]:
        """What was heard since it was last asked for."""
        heard, self._heard = self._heard, []
        return heard

    async def say(self, text: str) -> None:
        audio = await self._speak(text)
        with suppress(AssertionError, TimeoutError):  # the agent has hung up
            await self._phone.sound(audio)
        await self.listen()

    async def listen(self) -> None:
        """Until the agent has spoken and fallen silent, is gone, or says nothing."""
        with suppress(AssertionError, TimeoutError):
            await self._phone.hear_out(self._sound)
        if self._phone.is_over:
            await self._phone.wait_over()
        words, sound = self._phone.heard[self._words :], bytes(self._phone.tape[self._sound :])
        self._words, self._sound = len(self._phone.heard), len(self._phone.tape)
        if words:
            self._heard += words
        elif sound:
            self._heard.append(await self._understand(sound))

    async def hang_up(self) -> None:
        if not self._phone.is_over:
            with suppress(TimeoutError):
                await self._phone.hang_up()
