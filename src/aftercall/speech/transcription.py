"""What a transcriber of whole recordings gets, and how its answer is read. Sends nothing.

Transcribers tell a file's format by its name, do not read μ-law, and invent words for silence.
"""

import struct
from dataclasses import dataclass
from typing import Any

from aftercall.model.json_fields import Json
from aftercall.speech.sound import decode, to_wav

WAV_FORMAT_MULAW = 7
MAX_NO_SPEECH_PROBABILITY = 0.6  # a segment past both limits counts as invented
MIN_LOG_PROBABILITY = -1.0
_FORMATS_BY_MAGIC = {
    b"RIFF": ("call.wav", "audio/wav"),
    b"OggS": ("call.ogg", "audio/ogg"),
    b"fLaC": ("call.flac", "audio/flac"),
}


@dataclass(frozen=True)
class TranscribedAudio:
    """The words of a recording, and start, end and words of each segment."""

    text: str
    language: str = ""
    duration_s: float | None = None
    segments: tuple[tuple[float, float, str], ...] = ()


def parse_transcription(data: Any) -> TranscribedAudio:
    """The verbose answer, without invented segments. Raises ValueError if it is none."""
    try:
        return _read(data)
    except (AttributeError, KeyError, TypeError):
        raise ValueError("is no transcript") from None


def _read(data: Any) -> TranscribedAudio:
    """The text is made of the segments again when one was invented."""
    given = data.get("segments") or ()
    spoken = [segment for segment in given if not _is_made_up(segment)]
    segments = tuple(
        (float(one["start"]), float(one["end"]), str(one["text"]).strip())
        for one in spoken
    )
    text = str(data["text"]).strip()
    if len(spoken) < len(given):
        text = " ".join(words for _, _, words in segments)
    duration = data.get("duration")
    duration_s = float(duration) if duration is not None else None
    return TranscribedAudio(text, str(data.get("language") or ""), duration_s, segments)


def _is_made_up(segment: Json) -> bool:
    """By both of the transcriber's measures: one alone is often wrong."""
    silent, likely = segment.get("no_speech_prob"), segment.get("avg_logprob")
    if silent is None or likely is None:
        return False
    return (
        float(silent) > MAX_NO_SPEECH_PROBABILITY
        and float(likely) < MIN_LOG_PROBABILITY
    )


def make_upload(sound: bytes) -> tuple[str, bytes, str]:
    """A recording as an upload: a name for its format, its bytes, and its content type."""
    sound = _mulaw_to_pcm(sound) or sound
    name, kind = tell_format(sound)
    return name, sound, kind


def tell_format(sound: bytes) -> tuple[str, str]:
    """A file name and the content type, by the first bytes; WAV if they say nothing."""
    if _is_mp3(sound):
        return "call.mp3", "audio/mpeg"
    return _FORMATS_BY_MAGIC.get(sound[:4], _FORMATS_BY_MAGIC[b"RIFF"])


def _is_mp3(sound: bytes) -> bool:
    return sound[:3] == b"ID3" or (
        len(sound) > 1 and sound[0] == 0xFF and sound[1] & 0xE0 == 0xE0
    )


def _mulaw_to_pcm(sound: bytes) -> bytes | None:
    """A WAV file of μ-law as one of 16-bit samples; None for any other file."""
    chunks = _chunks(sound)
    form = chunks.get(b"fmt ", b"")
    if len(form) < 8 or b"data" not in chunks:
        return None
    number, channels, rate = struct.unpack_from("<HHI", form)
    if number != WAV_FORMAT_MULAW or not channels or not rate:
        return None
    return to_wav(decode(chunks[b"data"]), channels, rate)


def _chunks(sound: bytes) -> dict[bytes, bytes]:
    """The chunks of a WAV file by name. A file that was cut off has the ones that are there."""
    if sound[:4] != b"RIFF" or sound[8:12] != b"WAVE":
        return {}
    found: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= len(sound):
        name, size = struct.unpack_from("<4sI", sound, at)
        found.setdefault(name, sound[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return found
