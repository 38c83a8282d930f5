"""The sound of a phone line: 20 ms frames of μ-law at 8,000 samples a second, and WAV files.

`Listener` finds by loudness when a caller begins to talk and when they have finished. It is cheap
enough for every live call.
"""

import io
import math
import sys
import wave
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

SAMPLE_RATE_HZ = 8000
BYTES_PER_MS = 8
FRAME_BYTES = 160
FRAME_S = FRAME_BYTES / SAMPLE_RATE_HZ
SILENCE = b"\xff" * FRAME_BYTES
MAX_SAMPLE = 32_635
SILENCE_LEVEL = 120.0  # quieter than this is silence on any line
NOISE_FACTOR = 2.8
MAX_NOISE_LEVEL = 1500.0  # a voice that speaks from the first frame on is no noise
LEAD_FRAMES = 15  # kept from before the onset: the first sound of a word is its softest
WINDOW_FRAMES = 12
ONSET_FRAMES = 4
GUARDED_ONSET_FRAMES = 9
QUIET_FRAMES = 35
MAX_SPEECH_FRAMES = 1_200
_HISTORY_FRAMES = 250
_UPDATE_INTERVAL_FRAMES = 25


def _to_linear(byte: int) -> int:
    bits = ~byte & 0xFF
    magnitude = ((bits & 0x0F) << 3) + 0x84 << (bits >> 4 & 0x07)
    return 0x84 - magnitude if bits & 0x80 else magnitude - 0x84


MULAW_TO_LINEAR = array("h", (_to_linear(byte) for byte in range(256)))
LOUDNESS = array("i", (abs(sample) for sample in MULAW_TO_LINEAR))


def to_mulaw(sample: int) -> int:
    magnitude = min(abs(sample), MAX_SAMPLE) + 0x84
    segment = magnitude.bit_length() - 8
    sign = 0x80 if sample < 0 else 0
    return ~(sign | segment << 4 | magnitude >> segment + 3 & 0x0F) & 0xFF


@cache
def _mulaw_table() -> bytes:
    return bytes(to_mulaw(sample) for sample in range(-32_768, 32_768))


def encode(samples: "array[int]") -> bytes:
    table = _mulaw_table()
    return bytes([table[sample + 32_768] for sample in samples])


def decode(mulaw: bytes) -> "array[int]":
    return array("h", map(MULAW_TO_LINEAR.__getitem__, mulaw))


def measure_loudness(frame: bytes) -> float:
    """The mean of the samples' absolute values, 0 to 32,767."""
    if not frame or frame == SILENCE:
        return 0.0
    return sum(map(LOUDNESS.__getitem__, frame)) / len(frame)


# For voices that repeat their frames. A caller's frames must not be cached.
cached_loudness = lru_cache(maxsize=20_000)(measure_loudness)


def tone(hertz: float, seconds: float, size: int = 6000, *also: float) -> "array[int]":
    pitches = (hertz, *also)
    step = [2 * math.pi * pitch / SAMPLE_RATE_HZ for pitch in pitches]
    return array(
        "h",
        (
            int(size * sum(math.sin(at * width) for width in step) / len(step))
            for at in range(int(seconds * SAMPLE_RATE_HZ))
        ),
    )


def resample(
    samples: "array[int]", rate: int, wanted: int = SAMPLE_RATE_HZ
) -> "array[int]":
    """Another rate: means of samples for a lower one, interpolation for a higher one."""
    if rate == wanted or not samples:
        return samples
    count = len(samples) * wanted // rate
    ratio = rate / wanted
    if ratio >= 1:
        edges = [int(number * ratio) for number in range(count + 1)]
        return array(
            "h",
            (sum(samples[low:high]) // (high - low) for low, high in pairwise(edges)),
        )
    last = len(samples) - 1
    return array(
        "h", (_between(samples, number * ratio, last) for number in range(count))
    )


def _between(samples: "array[int]", place: float, last: int) -> int:
    low = int(place)
    return int(
        samples[low] + (samples[min(low + 1, last)] - samples[low]) * (place - low)
    )


def to_mono(samples: "array[int]", channels: int) -> "array[int]":
    if channels == 1:
        return samples
    parts = [samples[number::channels] for number in range(channels)]
    return array(
        "h", (sum(together) // channels for together in zip(*parts, strict=False))
    )


def from_pcm(raw: bytes, rate: int, channels: int) -> bytes:
    """16-bit little-endian samples of any rate as μ-law of a phone line."""
    samples = array("h", raw[: len(raw) // 2 * 2])
    if sys.byteorder == "big":
        samples.byteswap()
    return encode(resample(to_mono(samples, channels), rate))


def read_wav(source: Path | bytes) -> list[bytes]:
    """Every channel of a WAV file as μ-law. Raises ValueError if it cannot be read."""
    opened = io.BytesIO(source) if isinstance(source, bytes) else str(source)
    try:
        with wave.open(opened, "rb") as file:
            if file.getsampwidth() != 2:
                raise ValueError("is not a WAV file of 16 bits a sample")
            channels, rate = file.getnchannels(), file.getframerate()
            samples = array("h", file.readframes(file.getnframes()))
    except (wave.Error, EOFError) as error:
        raise ValueError(f"is not a WAV file ({error})") from None
    return [
        encode(resample(samples[number::channels], rate)) for number in range(channels)
    ]


def write_wav(left: bytes, right: bytes | None = None) -> bytes:
    """A WAV file of one or two channels; the shorter one is filled with silence."""
    channels = [left] if right is None else [left, right]
    length = max(len(channel) for channel in channels)
    samples = array("h", bytes(2 * length * len(channels)))
    for number, channel in enumerate(channels):
        samples[number :: len(channels)] = decode(channel.ljust(length, b"\xff"))
    return to_wav(samples, len(channels), SAMPLE_RATE_HZ)


def to_wav(samples: "array[int]", channels: int, rate: int) -> bytes:
    """A WAV file of interleaved 16-bit samples."""
    if sys.byteorder == "big":
        samples.byteswap()
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return written.getvalue()


class LoudnessMeter:
    def __init__(self, measure: Callable[[bytes], float] = cached_loudness) -> None:
        self._measure = measure
        self._levels: deque[float] = deque(maxlen=_HISTORY_FRAMES)
        self._ticks = 0
        self._threshold = SILENCE_LEVEL

    def is_loud(self, frame: bytes) -> bool:
        loud = self._measure(frame)
        self._levels.append(loud)
        self._ticks += 1
        if self._ticks % (_UPDATE_INTERVAL_FRAMES if self._ticks > 50 else 5) == 0:
            level = min(MAX_NOISE_LEVEL, NOISE_FACTOR * _noise_level(self._levels))
            self._threshold = max(SILENCE_LEVEL, level)
        return loud > self._threshold


def _noise_level(levels: deque[float]) -> float:
    """The tenth quietest of a hundred frames: lost frames do not make a noisy line quiet."""
    return sorted(levels)[len(levels) // 10]


@dataclass(frozen=True)
class SpeechBegan:
    """The caller began to talk."""


@dataclass(frozen=True)
class SpeechEnded:
    """What they said, with a little silence around it. With `goes_on` they still talk."""

    sound: bytes = field(repr=False)
    goes_on: bool = False


class Listener:
    """Speech begins when most of a short window was loud, and ends after a longer quiet one.

    While our own voice plays, the caller must be loud for longer: it may be our echo.
    """

    def __init__(self, quiet_frames: int = QUIET_FRAMES) -> None:
        self._meter = LoudnessMeter(measure_loudness)
        self._quiet_frames = quiet_frames
        self._rest = b""
        self._recent: deque[bytes] = deque(maxlen=LEAD_FRAMES + WINDOW_FRAMES)
        self._loud: deque[bool] = deque(maxlen=WINDOW_FRAMES)
        self._sound = bytearray()
        self._quiet = 0
        self.is_in_speech = False

    def receive_audio(
        self, payload: bytes, *, is_guarded: bool = False
    ) -> Iterator[SpeechBegan | SpeechEnded]:
        """Audio in pieces of any size. `is_guarded`: our own voice is playing."""
        audio = self._rest + payload
        whole = len(audio) - len(audio) % FRAME_BYTES
        self._rest = audio[whole:]
        onset = GUARDED_ONSET_FRAMES if is_guarded else ONSET_FRAMES
        for start in range(0, whole, FRAME_BYTES):
            yield from self._receive_frame(audio[start : start + FRAME_BYTES], onset)

    def _receive_frame(
        self, frame: bytes, onset: int
    ) -> Iterator[SpeechBegan | SpeechEnded]:
        is_loud = self._meter.is_loud(frame)
        if self.is_in_speech:
            yield from self._follow(frame, is_loud)
            return
        self._recent.append(frame)
        self._loud.append(is_loud)
        if sum(self._loud) >= onset:
            self.is_in_speech, self._quiet = True, 0
            self._sound += b"".join(self._recent)
            self._recent.clear()
            self._loud.clear()
            yield SpeechBegan()

    def _follow(self, frame: bytes, is_loud: bool) -> Iterator[SpeechEnded]:
        self._sound += frame
        self._quiet = 0 if is_loud else self._quiet + 1
        is_over = self._quiet >= self._quiet_frames
        if is_over or len(self._sound) >= MAX_SPEECH_FRAMES * FRAME_BYTES:
            sound = bytes(self._sound)
            self._sound.clear()
            self.is_in_speech = not is_over
            yield SpeechEnded(sound, goes_on=not is_over)
