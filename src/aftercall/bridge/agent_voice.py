"""The agent's voice on the line: plays it, and logs what the caller heard of it.

`Playback` is the model of the carrier's buffer: what was sent, which marks came back, how much
time has passed. Everything sent lies on one scale of bytes, each speech a stretch of it. The
carrier plays it from the front; a `Clear` drops the rest. Between two marks the clock says how
far the carrier is, but never past a mark that is missing, unless that mark is long overdue: some
carriers lose marks.

The pump moves frames between a carrier's socket and its wire, and keeps none. A slow side slows
the other down, so memory stays bounded: audio for a slow carrier waits for `drain`, which stops
reading from the engine. The caller's voice never waits: an engine that cannot take it loses it.
"""

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any

from aftercall.bridge.turn_log import TurnLog
from aftercall.clock import Clock
from aftercall.model.calls import BARGE_IN
from aftercall.phone.wire import (
    MAX_AUDIO_BYTES,
    AudioIn,
    AudioOut,
    Clear,
    Mark,
    Oddity,
    OddMessage,
    StopReason,
    StreamStopped,
    Wire,
    WireCommand,
    WireEvent,
)
from aftercall.sockets.mailbox import MediaSocket, Work, handle_each
from aftercall.speech.sound import BYTES_PER_MS

OnWireEvent = Callable[[WireEvent], Coroutine[Any, Any, None]]


class MediaPump:
    """Moves frames between a carrier's socket and a call."""

    def __init__(self, socket: MediaSocket, wire: Wire, clock: Clock) -> None:
        self._socket = socket
        self._wire = wire
        self._clock = clock
        self._stuck_since_s: float | None = None
        self.oddities: Counter[Oddity] = Counter()
        self.listeners: set[asyncio.Queue[bytes | None]] = set()

    async def run(
        self, on_audio: Callable[[bytes], None], on_event: OnWireEvent
    ) -> None:
        """Pass on the caller's voice and every other event, up to the end of the stream."""

        def handle_event(event: WireEvent) -> Work | None:
            if isinstance(event, AudioIn):
                on_audio(event.payload)
                if self.listeners:
                    self._pass_on(CALLER_SOUND + event.payload)
                return None
            if isinstance(event, OddMessage):
                self.oddities[event.reason] += 1
                return None
            return on_event(event)

        def handle_frame(frame: str | bytes) -> Work | None:
            return handle_each(self._wire.receive(frame), handle_event)

        await self._socket.deliver(handle_frame)
        rest = handle_each(
            self._wire.close() or (StreamStopped(StopReason.LOST),), handle_event
        )
        if rest is not None:
            await rest

    def play(self, payload: bytes, mark: str | None = None) -> None:
        if self.listeners:
            self._pass_on(AGENT_SOUND + payload)
        for start in range(0, len(payload), MAX_AUDIO_BYTES):
            self._send(AudioOut(payload[start : start + MAX_AUDIO_BYTES]))
        if mark:
            self._send(Mark(mark))

    def mark(self, name: str) -> None:
        self._send(Mark(name))

    def clear(self) -> None:
        self._pass_on(AGENT_STOPPED)
        self._send(Clear())

    def wait_if_slow(self) -> Work | None:
        """What to await before more audio is played; None while the carrier keeps up."""
        return None if self._socket.is_writable else self._drain()

    async def close(self) -> None:
        await self._socket.close()

    def stuck_s(self) -> float:
        """For how long the carrier has taken nothing."""
        return (
            0.0
            if self._stuck_since_s is None
            else self._clock.monotonic() - self._stuck_since_s
        )

    def _send(self, command: WireCommand) -> None:
        if self._wire.is_open:  # else the caller hung up a moment ago
            self._socket.write(self._wire.send(command))

    def _pass_on(self, sound: bytes) -> None:
        for queue in list(self.listeners):
            if queue.full():
                self.dismiss(queue)
            else:
                queue.put_nowait(sound)

    def dismiss(self, queue: "asyncio.Queue[bytes | None]") -> None:
        """The listener fell behind, or the call is over."""
        self.listeners.discard(queue)
        if queue.full():
            queue.get_nowait()
        queue.put_nowait(None)

    async def _drain(self) -> None:
        self._stuck_since_s = self._clock.monotonic()
        await self._socket.drain()
        self._stuck_since_s = None


# A frame for a listener: one of these, then μ-law. The agent's sound comes ahead of its time.
CALLER_SOUND = b"\x00"
AGENT_SOUND = b"\x01"
AGENT_STOPPED = b"\x02"
MAX_UNHEARD_FRAMES = 500


class CallTaps:
    """Lets people listen to the live calls of this process."""

    def __init__(self) -> None:
        self._pumps: dict[str, MediaPump] = {}

    @contextmanager
    def open(self, call_id: str, pump: MediaPump) -> Iterator[None]:
        """While the call goes on."""
        self._pumps[call_id] = pump
        try:
            yield
        finally:
            del self._pumps[call_id]
            for queue in list(pump.listeners):
                pump.dismiss(queue)

    def is_audible(self, call_id: str) -> bool:
        return call_id in self._pumps

    async def listen(self, call_id: str) -> AsyncIterator[bytes]:
        """Both sides from now on, until the call ends or the listener falls behind."""
        pump = self._pumps.get(call_id)
        if pump is None:
            return
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_UNHEARD_FRAMES)
        pump.listeners.add(queue)
        try:
            while (frame := await queue.get()) is not None:
                yield frame
        finally:
            pump.listeners.discard(queue)


MARK_INTERVAL_BYTES = 200 * BYTES_PER_MS
BYTES_PER_S = 1_000 * BYTES_PER_MS
MARK_OVERDUE_BYTES = 2 * BYTES_PER_S
MS_PER_CHARACTER = 60  # speed of speech, for a speech whose end never came
SPEECH_STALL_TIMEOUT_S = 3.0
_WORD = re.compile(r"\S+\s*")
_CLIP_TEXTS = {
    "apology": (
        "I'm sorry, something is wrong on my side. What you told me is written down. Please "
        "call again later. Goodbye."
    ),
    "one_moment": "One moment, please.",
}


@dataclass(frozen=True, slots=True)
class AudioClip:
    text: str
    audio: bytes = field(repr=False)


@cache
def load_clip(name: str) -> AudioClip:
    file = files("aftercall.bridge") / "clips" / f"{name}.ulaw"
    return AudioClip(_CLIP_TEXTS[name], file.read_bytes())


@dataclass(slots=True)
class QueuedSpeech:
    """One speech of the agent on its way to the caller."""

    key: str
    at: datetime
    start_byte: int
    text: str = field(default="", repr=False)
    sent_bytes: int = 0
    is_done: bool = False

    @property
    def end_byte(self) -> int:
        return self.start_byte + self.sent_bytes


@dataclass(frozen=True, slots=True)
class HeardSpeech:
    """A speech that is over for the caller, and how much of it they heard."""

    speech: QueuedSpeech
    heard_ms: int
    was_cut: bool


class Playback:
    """What was sent to the caller, and how much of it was heard."""

    def __init__(self) -> None:
        self._speeches: deque[QueuedSpeech] = deque()
        self._marks: deque[tuple[str, int]] = deque()
        self._sent = 0
        self._marked = self._played = 0
        self._anchor = (0, 0.0)
        self._number = 0

    @property
    def is_idle(self) -> bool:
        return not self._speeches

    def list_unfinished(self) -> list[QueuedSpeech]:
        """Speeches of which the engine has not sent the end."""
        return [speech for speech in self._speeches if not speech.is_done]

    def find(self, key: str) -> QueuedSpeech | None:
        return next(
            (speech for speech in reversed(self._speeches) if speech.key == key), None
        )

    def start(self, key: str, at: datetime) -> QueuedSpeech:
        speech = QueuedSpeech(key, at, self._sent)
        self._speeches.append(speech)
        return speech

    def record_sent(self, speech: QueuedSpeech, count: int, now_s: float) -> str | None:
        """Count bytes that go out. Returns the name of a mark to send behind them, if due."""
        if self.playhead(now_s) >= self._sent:
            self._anchor = (self._sent, now_s)
        if speech.sent_bytes == 0:
            speech.start_byte = self._sent
        speech.sent_bytes += count
        self._sent += count
        return (
            self._mark()
            if self._sent - self._last_mark() >= MARK_INTERVAL_BYTES
            else None
        )

    def finish(self, speech: QueuedSpeech) -> str | None:
        """The engine has sent all of it. Returns a mark to send, if audio is unmarked."""
        speech.is_done = True
        return self._mark() if self._sent > self._last_mark() else None

    def on_mark_played(self, name: str, now_s: float) -> None:
        """A mark was played, and with it everything before it."""
        if not any(name == known for known, _ in self._marks):
            return
        while self._marks:
            known, position = self._marks.popleft()
            if known == name:
                self._marked = position
                self._anchor = (position, now_s)
                return

    def playhead(self, now_s: float) -> int:
        """How far the carrier has played. Never moves back."""
        anchor, since_s = self._anchor
        guess = min(self._sent, anchor + int((now_s - since_s) * BYTES_PER_S))
        if self._marks and guess - self._marks[0][1] < MARK_OVERDUE_BYTES:
            guess = min(guess, max(self._marks[0][1] - 1, self._marked))
        self._played = max(self._played, guess, self._marked)
        return self._played

    def pop_played(self, now_s: float) -> list[HeardSpeech]:
        """Speeches that were played to their end."""
        played = []
        playhead = self.playhead(now_s)
        while self._speeches:
            first = self._speeches[0]
            if not first.is_done or first.end_byte > playhead:
                break
            self._speeches.popleft()
            played.append(
                HeardSpeech(first, first.sent_bytes // BYTES_PER_MS, was_cut=False)
            )
        return played

    def clear(self, now_s: float) -> list[HeardSpeech]:
        """Drop what is unplayed. Returns what the caller heard of each dropped speech."""
        playhead = self.playhead(now_s)
        cut = [_cut(speech, playhead) for speech in self._speeches]
        self._speeches.clear()
        self._marks.clear()
        self._sent = self._marked = playhead
        self._anchor = (playhead, now_s)
        return cut

    def _mark(self) -> str:
        self._number += 1
        name = f"m{self._number}"
        self._marks.append((name, self._sent))
        return name

    def _last_mark(self) -> int:
        return self._marks[-1][1] if self._marks else self._marked


def _cut(speech: QueuedSpeech, playhead: int) -> HeardSpeech:
    heard = max(0, min(playhead - speech.start_byte, speech.sent_bytes))
    was_cut = not speech.is_done or heard < speech.sent_bytes
    return HeardSpeech(speech, heard // BYTES_PER_MS, was_cut)


class AgentVoice:
    """The agent's sound on its way to the caller."""

    def __init__(self, pump: MediaPump, turn_log: TurnLog, clock: Clock) -> None:
        self._pump = pump
        self._turn_log = turn_log
        self._clock = clock
        self._playback = Playback()
        self._clips = count(1)
        self._audio_at_s = 0.0
        self._silent_since_s = clock.monotonic()

    @property
    def is_idle(self) -> bool:
        return self._playback.is_idle

    def idle_s(self) -> float:
        return (
            self._clock.monotonic() - self._silent_since_s
            if self._playback.is_idle
            else 0.0
        )

    def play(self, key: str, payload: bytes) -> None:
        now_s = self._audio_at_s = self._clock.monotonic()
        mark = self._playback.record_sent(self._find_or_start(key), len(payload), now_s)
        self._pump.play(payload, mark)

    def append_text(self, key: str, text: str) -> None:
        self._find_or_start(key).text += text

    def finish(self, key: str) -> None:
        speech = self._playback.find(key)
        if speech and (mark := self._playback.finish(speech)):
            self._pump.mark(mark)
        self.record_played()

    def play_clip(self, clip: AudioClip) -> None:
        key = f"clip{next(self._clips)}"
        self.append_text(key, clip.text)
        self.play(key, clip.audio)
        self.finish(key)

    def on_mark_played(self, name: str) -> None:
        self._playback.on_mark_played(name, self._clock.monotonic())
        self.record_played()

    def record_played(self) -> None:
        """Log speeches that were played to their end."""
        for heard in self._playback.pop_played(self._clock.monotonic()):
            self._record_heard(heard)

    def interrupt(self) -> list[HeardSpeech]:
        """Stop playing at once. Returns what was cut, for the engine."""
        self.record_played()
        if self._playback.is_idle:
            return []
        cut = self.discard_unplayed()
        self._pump.clear()
        return cut

    def discard_unplayed(self) -> list[HeardSpeech]:
        """Log what was heard of each speech, and forget the rest."""
        cut = self._playback.clear(self._clock.monotonic())
        for heard in cut:
            self._record_heard(heard)
        return cut

    def finish_stalled(self) -> None:
        """A speech without a reported end is over when its audio stopped for a while."""
        if self._clock.monotonic() - self._audio_at_s >= SPEECH_STALL_TIMEOUT_S:
            self.finish_all()

    def finish_all(self) -> None:
        """No more audio comes: each speech ends with what was sent."""
        for speech in self._playback.list_unfinished():
            self.finish(speech.key)

    def _find_or_start(self, key: str) -> QueuedSpeech:
        speech = self._playback.find(key)
        if speech is None:
            self._turn_log.start_turn("agent", key)
            speech = self._playback.start(key, self._clock.now())
        return speech

    def _record_heard(self, heard: HeardSpeech) -> None:
        said = heard.speech.text.strip()
        text = heard_text(heard)
        self._silent_since_s = self._clock.monotonic()
        self._turn_log.set_text("agent", heard.speech.key, text)
        if heard.was_cut and said != text:
            data = {"said": said, "heard": text, "heard_ms": heard.heard_ms}
            self._turn_log.add_event(BARGE_IN, data)


def heard_text(heard: HeardSpeech) -> str:
    """The words that reached the caller. A word counts when more than half of it did."""
    text = heard.speech.text.strip()
    if not heard.was_cut:
        return text
    length_ms = heard.speech.sent_bytes // BYTES_PER_MS
    if not heard.speech.is_done:
        length_ms = max(length_ms, len(text) * MS_PER_CHARACTER)
    return cut_text(text, heard.heard_ms, length_ms)


def cut_text(text: str, heard_ms: int, length_ms: int) -> str:
    if length_ms <= 0 or heard_ms <= 0:
        return ""
    reach = len(text) * heard_ms / length_ms
    end = 0
    for word in _WORD.finditer(text):
        if (word.start() + word.end()) / 2 >= reach:
            break
        end = word.end()
    return text[:end].rstrip()
