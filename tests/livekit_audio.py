"""Voice, loudspeaker, microphone and recogniser without a sound, for LiveKit sessions."""

import asyncio
from typing import Any

from livekit import rtc
from livekit.agents import stt, tts
from livekit.agents.voice.io import (
    AudioInput,
    AudioOutput,
    AudioOutputCapabilities,
)

RATE, WORD_S, FRAME_S = 16_000, 0.04, 0.02


class SilentVoice(tts.TTS):
    def __init__(self) -> None:
        capabilities = tts.TTSCapabilities(streaming=False)
        super().__init__(capabilities=capabilities, sample_rate=RATE, num_channels=1)

    def synthesize(self, text: str, *, conn_options: Any = None) -> tts.ChunkedStream:
        return Silence(tts=self, input_text=text, conn_options=conn_options)


class Silence(tts.ChunkedStream):
    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id="1", sample_rate=RATE, num_channels=1, mime_type="audio/pcm"
        )
        words = len(self._input_text.split())
        output_emitter.push(bytes(2 * round(words * WORD_S * RATE)))
        output_emitter.flush()


class Loudspeaker(AudioOutput):
    """Plays in real time, and tells how far it came when it is cut off."""

    def __init__(self) -> None:
        super().__init__(
            label="test", capabilities=AudioOutputCapabilities(pause=False)
        )
        self._queued_s = 0.0
        self._started_s: float | None = None
        self._ending: asyncio.TimerHandle | None = None

    @property
    def played_s(self) -> float:
        now = asyncio.get_running_loop().time()
        return 0.0 if self._started_s is None else now - self._started_s

    async def reach(self, position_s: float) -> None:
        while self.played_s < position_s:
            await asyncio.sleep(0.02)

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if self._started_s is None:
            self._started_s = asyncio.get_running_loop().time()
            self.on_playback_started(created_at=0)
        self._queued_s += frame.duration

    def flush(self) -> None:
        super().flush()
        if self._started_s is not None:
            rest_s = self._queued_s - self.played_s
            loop = asyncio.get_running_loop()
            self._ending = loop.call_later(max(rest_s, 0), self._finish, False)

    def clear_buffer(self) -> None:
        if self._started_s is not None:
            self._finish(True)

    def _finish(self, is_interrupted: bool) -> None:
        if self._ending is not None:
            self._ending.cancel()
        position = min(self.played_s, self._queued_s)
        self._started_s, self._queued_s, self._ending = None, 0.0, None
        self.on_playback_finished(
            playback_position=position, interrupted=is_interrupted
        )


class Microphone(AudioInput):
    """A line on which nobody is heard, in real time."""

    def __init__(self) -> None:
        super().__init__(label="test")
        self._samples = round(RATE * FRAME_S)

    async def __anext__(self) -> rtc.AudioFrame:
        await asyncio.sleep(FRAME_S)
        silence = bytes(2 * self._samples)
        return rtc.AudioFrame(silence, RATE, 1, self._samples)


class DeafRecogniser(stt.STT):
    """Takes the audio and recognises nothing: tests type the caller's words."""

    def __init__(self) -> None:
        capabilities = stt.STTCapabilities(streaming=True, interim_results=False)
        super().__init__(capabilities=capabilities)

    async def _recognize_impl(self, *_: Any, **__: Any) -> stt.SpeechEvent:
        raise NotImplementedError

    def stream(self, *, conn_options: Any, **_: Any) -> stt.RecognizeStream:
        return DeafStream(stt=self, conn_options=conn_options, sample_rate=RATE)


class DeafStream(stt.RecognizeStream):
    async def _run(self) -> None:
        async for _ in self._input_ch:
            pass
