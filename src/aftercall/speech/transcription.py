"""What a transcriber of whole recordings is handed, and what counts of its answer.

Sends nothing itself.

It tells a file's format by its name, reads no μ-law, and answers silence with words that nobody
said.
"""

import io
import struct
import sys
import wave
from dataclasses import dataclass
from typing import Any

from aftercall.speech.sound import decode

WAV_FORMAT_MULAW = 7  # the format's number in a WAV file
MAX_NO_SPEECH_PROBABILITY = 0.6  # how sure a recogniser may be that nobody spoke, and
MIN_LOG_PROBABILITY = (
    -1.0
)  # how unlikely its own words may seem to it, before they count as made up
_FORMATS_BY_MAGIC = {
    b"RIFF": ("call.wav", "audio/wav"),
    b"OggS": ("call.ogg", "audio/ogg"),
    b"fLaC": ("call.flac", "audio/flac"),
}


@dataclass(frozen=True)
class TranscribedAudio:
    """The words of a recording, and begin, end and words of each stretch of it."""

    text: str
    language: str = ""
    duration_s: float | None = None
    segments: tuple[tuple[float, float, str], ...] = ()


def parse_transcription(data: Any) -> TranscribedAudio:
    """The answer in its long form, without stretches in which nobody spoke.

    ValueError where it is none.
    """
    try:
        return _read(data)
    except (AttributeError, KeyError, TypeError):
        raise ValueError("is no transcript") from None


def _read(data: Any) -> TranscribedAudio:
    told = data.get("segments") or ()
    spoken = [segment for segment in told if not _is_made_up(segment)]
    words = [str(segment["text"]).strip() for segment in spoken]
    return TranscribedAudio(
        str(data["text"]).strip() if len(spoken) == len(told) else " ".join(words),
        str(data.get("language") or ""),
        float(data["duration"]) if data.get("duration") is not None else None,
        tuple(
            (float(one["start"]), float(one["end"]), text)
            for one, text in zip(spoken, words, strict=True)
        ),
    )


def _is_made_up(segment: dict[str, Any]) -> bool:
    """By both of its own measures: one alone is often wrong.

    A transcriber that tells neither is believed.
    """
    silent, likely = segment.get("no_speech_prob"), segment.get("avg_logprob")
    return (
        silent is not None
        and likely is not None
        and float(silent) > MAX_NO_SPEECH_PROBABILITY
        and float(likely) < MIN_LOG_PROBABILITY
    )


def make_upload(sound: bytes) -> tuple[str, bytes, str]:
    """A recording as a file that can be read there: a name that tells its format by what is in
    it, its bytes, and its kind.
    """
    if (plain := _mulaw_to_pcm(sound)) is not None:
        sound = plain
    name, kind = _FORMATS_BY_MAGIC.get(
        sound[:4], ("call.mp3", "audio/mpeg") if _is_mp3(sound) else _FORMATS_BY_MAGIC[b"RIFF"]
    )
    return name, sound, kind


def _is_mp3(sound: bytes) -> bool:
    return sound[:3] == b"ID3" or (len(sound) > 1 and sound[0] == 0xFF and sound[1] & 0xE0 == 0xE0)


def _mulaw_to_pcm(sound: bytes) -> bytes | None:
    """A WAV file of μ-law as one of 16 bits a sample; None for any other file."""
    chunks = _chunks(sound)
    form = chunks.get(b"fmt ", b"")
    if len(form) < 8 or b"data" not in chunks:
        return None
    number, channels, rate = struct.unpack_from("<HHI", form)
    if number != WAV_FORMAT_MULAW or not channels or not rate:
        return None
    samples = decode(chunks[b"data"])
    if sys.byteorder == "big":
        samples.byteswap()
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return written.getvalue()


def _chunks(sound: bytes) -> dict[bytes, bytes]:
    """The parts of a WAV file by name; none of what is no WAV file, and of a cut-off one as
    much as is there.
    """
    if sound[:4] != b"RIFF" or sound[8:12] != b"WAVE":
        return {}
    found: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= len(sound):
        name, size = struct.unpack_from("<4sI", sound, at)
        found.setdefault(name, sound[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return found
