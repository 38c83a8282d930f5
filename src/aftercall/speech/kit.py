"""An ear and a mouth for engines that have neither: what they owe an engine, and ours, which
need nobody else.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from aftercall.speech.process import SpeechProcess, find_espeak

INSTALL = "install aftercall[speech]"
MAX_RECOGNISERS = 4  # each takes 200 MB


class Recogniser(Protocol):
    async def recognise(self, sound: bytes) -> str:
        """The words in a piece of 8 kHz μ-law; empty where there are none.

        Raises EngineLost when it cannot be told.
        """
        ...


class Synthesiser(Protocol):
    async def speak(self, text: str) -> bytes:
        """8 kHz μ-law of these words. Raises EngineLost when they cannot be said."""
        ...


class LocalRecogniser:
    """Processes that recognise; the one with the shortest line is asked."""

    def __init__(self, processes: int) -> None:
        self._processes = [SpeechProcess("ear") for _ in range(processes)]

    async def recognise(self, sound: bytes) -> str:
        chosen = min(self._processes, key=lambda process: process.queue_length)
        return (await chosen.ask(sound)).decode("utf-8", "replace")

    def open(self) -> None:
        for process in self._processes:
            process.open()

    def close(self) -> None:
        for process in self._processes:
            process.close()


class LocalSynthesiser:
    def __init__(self, voice: str) -> None:
        self._process = SpeechProcess("mouth", voice)

    async def speak(self, text: str) -> bytes:
        return await self._process.ask(text.encode())

    def open(self) -> None:
        self._process.open()

    def close(self) -> None:
        self._process.close()


@dataclass(frozen=True)
class SpeechKit:
    recogniser: Recogniser
    synthesiser: Synthesiser
    open: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


def make_speech_kit(voice: str) -> SpeechKit:
    """Nothing is started before it is opened, or asked for the first time."""
    ear, mouth = (
        LocalRecogniser(min(MAX_RECOGNISERS, max(1, (os.cpu_count() or 2) // 2))),
        LocalSynthesiser(voice),
    )

    def open_both() -> None:
        mouth.open()
        ear.open()

    def close_both() -> None:
        mouth.close()
        ear.close()

    return SpeechKit(ear, mouth, open_both, close_both)


def find_missing() -> str | None:
    """What has to be installed before we can speak and listen ourselves; None where nothing is
    missing.
    """
    missing = [
        name
        for name, is_there in (
            ("moonshine-voice", find_spec("moonshine_voice")),
            ("espeak-ng", find_espeak()),
        )
        if not is_there
    ]
    return f"{' and '.join(missing)} not installed; {INSTALL}" if missing else None
