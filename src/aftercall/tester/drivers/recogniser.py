"""Ears for lines that carry sound only: what the agent said is recognised when it pauses, and
handed on as words.
"""

import asyncio
from dataclasses import replace
from typing import Protocol

import httpx2
from pydantic import SecretStr

from aftercall.errors import LineFailed
from aftercall.speech.sound import FRAME_S, LoudnessMeter, write_wav
from aftercall.tester.line import (
    AgentConnection,
    AgentTick,
    CallerTick,
    DialedCall,
    Kind,
    Outcome,
    TickPace,
)
from aftercall.tester.whisper import transcribe

QUIET_S = 0.4
MIN_SPEECH_S = 0.1
_QUIET_TICKS = round(QUIET_S / FRAME_S)


class AudioRecogniser(Protocol):
    async def recognise(self, sound: bytes) -> str:
        """The words in this μ-law; LineFailed when nobody can tell."""
        ...


class OpenAIRecogniser:
    def __init__(self, http: httpx2.AsyncClient, base_url: str, key: SecretStr) -> None:
        self._http = http
        self._base_url = base_url
        self._key = key

    async def recognise(self, sound: bytes) -> str:
        return (await transcribe(self._http, self._base_url, self._key, write_wav(sound))).text


class RecognisingConnection:
    """Silence is never sent to a recogniser: some answer it with words that nobody said."""

    def __init__(self, inner: AgentConnection, recogniser: AudioRecogniser, pace: TickPace) -> None:
        self._inner = inner
        self._recogniser = recogniser
        self._pace = pace
        self._gauge = LoudnessMeter()
        self._sound = bytearray()
        self._began_s = 0.0
        self._quiet_ticks = 0
        self._loud_ticks = 0
        self._ideal: list[str] = []
        self._tasks: list[tuple[float, str, asyncio.Task[str]]] = []

    @property
    def kind(self) -> Kind:
        return self._inner.kind

    async def connect(self, dial: DialedCall) -> Outcome:
        return await self._inner.connect(dial)

    async def hang_up(self) -> None:
        for _, _, task in self._tasks:
            task.cancel()
        await self._inner.hang_up()

    async def tick(self, at_s: float, near: CallerTick) -> AgentTick:
        far = await self._inner.tick(at_s, near)
        self._ideal += far.words
        far = replace(far, words=())
        self._collect(at_s, far.frame)
        if self._tasks and not self._pace.is_live:
            await asyncio.wait([task for _, _, task in self._tasks])
        if not self._tasks or not self._tasks[0][2].done():
            return replace(far, has_words_to_come=bool(self._tasks or self._sound))
        return self._tell(far, *self._tasks.pop(0))

    def _collect(self, at_s: float, frame: bytes) -> None:
        loud = self._gauge.is_loud(frame)
        if not loud and not self._sound:
            return
        if not self._sound:
            self._began_s = at_s
        self._sound += frame
        self._loud_ticks += loud
        self._quiet_ticks = 0 if loud else self._quiet_ticks + 1
        if self._quiet_ticks < _QUIET_TICKS:
            return
        if self._loud_ticks * FRAME_S >= MIN_SPEECH_S:
            task = asyncio.ensure_future(self._recogniser.recognise(bytes(self._sound)))
            self._tasks.append((self._began_s, " ".join(self._ideal), task))
            self._ideal = []
        self._sound.clear()
        self._loud_ticks = self._quiet_ticks = 0

    def _tell(
        self, far: AgentTick, began_s: float, ideal: str, task: "asyncio.Task[str]"
    ) -> AgentTick:
        try:
            words = tuple(task.result().split())
        except LineFailed as error:
            return replace(far, events=(*far.events, ("missing_event", str(error))))
        to_come = bool(self._tasks or self._sound)
        return replace(far, words=words, words_at_s=began_s, ideal=ideal, has_words_to_come=to_come)
