"""Speech that a program can hear: each 20 ms frame names the word it belongs to, so the lab
needs no recogniser.

It lasts as long as real speech (60 ms a character) and travels as ordinary 8 kHz μ-law bytes.
Frames that are cut out on the way are not heard. Any other audio is silence. A caller may also
speak with espeak-ng or in tones.

The emulated OpenAI transcription route takes a file and answers with words and their times. Its
form is parsed by hand: the usual multipart parser would be a package for one route.
"""

import asyncio
import io
import re
import wave
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from aftercall.errors import EngineLost, RefusedInput
from aftercall.lab.rest import Refusal
from aftercall.model.json_fields import Json
from aftercall.speech.kit import Espeak, LocalRecogniser, SpeechKit, find_espeak
from aftercall.speech.sound import (
    FRAME_BYTES,
    SAMPLE_RATE_HZ,
    SILENCE,
    encode,
    read_wav,
    tone,
)

FRAMES_PER_CHARACTER = 3
MAX_QUIET_FRAMES = 10
_MAGIC = b"\x10\x90\x11\x91"
_HEAD = len(_MAGIC) + 5
MAX_WORD_BYTES = FRAME_BYTES - _HEAD

VoiceName = Literal["words", "espeak", "tones"]
ESPEAK_VOICE = "en-us+m7"  # recognisers understand this one best
TONE_S = 0.3
TONE_GAP = 3 * SILENCE

Speak = Callable[[str], Awaitable[bytes]]


def utter(text: str, frames_per_word: int | None = None) -> bytes:
    """The audio of a sentence; without `frames_per_word` a long word takes longer."""
    return b"".join(_utter_word(word, frames_per_word) for word in text.split())


def _utter_word(word: str, frames: int | None) -> bytes:
    spelled = word.encode()[:MAX_WORD_BYTES]
    count = frames or FRAMES_PER_CHARACTER * (len(word) + 1)
    return b"".join(_make_frame(spelled, number, count) for number in range(count))


def _make_frame(word: bytes, number: int, count: int) -> bytes:
    head = _MAGIC + number.to_bytes(2) + count.to_bytes(2) + len(word).to_bytes(1)
    return (head + word).ljust(FRAME_BYTES, b"\x30")


@dataclass(frozen=True)
class ToneBegan:
    """Speech starts."""


@dataclass(frozen=True)
class ToneEnded:
    """Speech has ended; `text` is what was heard of it."""

    text: str = field(repr=False)


class ToneDetector:
    """Takes audio in pieces of any size. A word counts when more than half of it was heard."""

    def __init__(self) -> None:
        self._rest = b""
        self._quiet_frames = 0
        self._words: list[str] = []
        self._word: tuple[bytes, int] = (b"", 0)
        self._heard_frames = 0
        self._last = -1
        self.is_speech_active = False

    def detect(self, payload: bytes) -> Iterator[ToneBegan | ToneEnded]:
        audio = self._rest + payload
        whole = len(audio) - len(audio) % FRAME_BYTES
        self._rest = audio[whole:]
        for start in range(0, whole, FRAME_BYTES):
            yield from self._read_frame(audio[start : start + FRAME_BYTES])

    def finish(self) -> str:
        """What has been heard so far, finished or not."""
        self._end_word()
        text, self._words = " ".join(self._words), []
        self.is_speech_active = False
        return text

    def _read_frame(self, frame: bytes) -> Iterator[ToneBegan | ToneEnded]:
        if frame.startswith(_MAGIC):
            if not self.is_speech_active:
                self.is_speech_active = True
                yield ToneBegan()
            self._quiet_frames = 0
            self._read_word(frame)
        elif self.is_speech_active:
            self._quiet_frames += 1
            if self._quiet_frames >= MAX_QUIET_FRAMES:
                yield ToneEnded(self.finish())

    def _read_word(self, frame: bytes) -> None:
        number = int.from_bytes(frame[4:6])
        count = int.from_bytes(frame[6:8])
        word = (frame[_HEAD : _HEAD + frame[8]], count)
        if word != self._word or number <= self._last:
            self._end_word()
            self._word = word
        self._heard_frames += 1
        self._last = number

    def _end_word(self) -> None:
        spelled, count = self._word
        if count and self._heard_frames * 2 > count:
            self._words.append(spelled.decode("utf-8", "replace"))
        self._word = (b"", 0)
        self._heard_frames = 0
        self._last = -1


def recognise_words(audio: bytes) -> str:
    """The words in a whole recording of the lab's speech."""
    detector = ToneDetector()
    heard = [
        item.text for item in detector.detect(audio) if isinstance(item, ToneEnded)
    ]
    return " ".join(filter(None, [*heard, detector.finish()]))


class LabRecogniser:
    """A Recogniser of the lab's speech."""

    def __init__(self) -> None:
        self.is_lost = False

    async def recognise(self, sound: bytes) -> str:
        if self.is_lost:
            raise EngineLost("the lab's recogniser is switched off")
        return recognise_words(sound)


class LabSynthesiser:
    async def speak(self, text: str) -> bytes:
        return utter(text)


def make_lab_speech_kit() -> SpeechKit:
    return SpeechKit(LabRecogniser(), LabSynthesiser())


def make_voice(name: VoiceName) -> Speak:
    """How a caller sounds on a streamed call."""
    if name == "words":
        return LabSynthesiser().speak
    if name == "tones":
        return _speak_tones
    command = find_espeak()
    if command is None:
        raise RefusedInput(
            "voice",
            "espeak-ng is not installed; install aftercall[speech], or choose words or tones",
        )
    espeak = Espeak(command, ESPEAK_VOICE, words_per_minute=130, pitch=60)
    return lambda text: asyncio.to_thread(espeak.speak, text)


async def _speak_tones(text: str) -> bytes:
    return TONE_GAP.join([encode(tone(250, TONE_S))] * len(text.split()))


class SoundTranscriber:
    """Transcribes an agent's audio where the speech extra is installed; else tells its length."""

    def __init__(self) -> None:
        self._recogniser: LocalRecogniser | None = None

    async def transcribe(self, sound: bytes) -> str:
        length = f"({len(sound) / SAMPLE_RATE_HZ:.1f} s of sound)"
        if find_spec("moonshine_voice") is None:
            return length
        self._recogniser = self._recogniser or LocalRecogniser(1)
        try:
            return await self._recogniser.recognise(sound) or length
        except EngineLost:
            return length

    def close(self) -> None:
        if self._recogniser is not None:
            self._recogniser.close()


_BOUNDARY = re.compile(r'boundary="?([^";]+)"?')
_NAME = re.compile(rb'name="([^"]*)"')
_FILE = re.compile(rb'name="file"; filename="([^"]*)"')
_SUFFIXES = ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm")
_FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
HALLUCINATED_TEXT = "Thank you for watching!"


@dataclass
class EmulatedAudio:
    """`faults` are statuses for the next requests; 0 is an answer that breaks off."""

    api_key: str = "sk-lab"
    text: str = "Hello, how can I help you? Please open a bug."
    language: str = "english"
    faults: list[int] = field(default_factory=list)
    received: list[dict[str, bytes]] = field(default_factory=list)


def make_router(audio: EmulatedAudio) -> APIRouter:
    router = APIRouter(tags=["openai"])

    @router.post("/v1/audio/transcriptions")
    async def transcribe(request: Request) -> Response:
        if request.headers.get("authorization", "") != f"Bearer {audio.api_key}":
            raise _refuse(401, "Incorrect API key provided.", "invalid_api_key")
        fault = audio.faults.pop(0) if audio.faults else None
        if fault:
            raise _refuse(
                fault, "The server had an error while processing your request."
            )
        fields = _read_fields(
            await request.body(), request.headers.get("content-type", "")
        )
        audio.received.append(fields)
        _check_fields(fields)
        heard = _transcribe(fields["file"], audio)
        is_verbose = fields.get("response_format") == b"verbose_json"
        answer = JSONResponse(heard if is_verbose else {"text": heard["text"]})
        if fault == 0:
            return Response(
                answer.body[: len(answer.body) // 2], media_type="application/json"
            )
        return answer

    return router


def _refuse(status: int, message: str, code: str | None = None) -> Refusal:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    headers = {"Retry-After": "1"} if status >= 429 else None
    error = {"message": message, "type": kind, "param": None, "code": code}
    return Refusal(JSONResponse({"error": error}, status, headers))


def _read_fields(body: bytes, content_type: str) -> dict[str, bytes]:
    """The fields of a form by name; `file` is its content, `filename` its name."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        return {}
    fields = {}
    for part in body.split(b"--" + found[1].encode())[1:-1]:
        head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
        if name := _NAME.search(head):
            fields[name[1].decode()] = content
        if file := _FILE.search(head):
            fields["filename"] = file[1]
    return fields


def _check_fields(fields: dict[str, bytes]) -> None:
    if not fields.get("file") or not fields.get("model"):
        raise _refuse(400, "file and model are required.")
    suffix = fields.get("filename", b"").decode("ascii", "replace").rpartition(".")[2]
    if suffix.lower() not in _SUFFIXES:
        raise _refuse(
            400, f"Unrecognized file format. Supported formats: {list(_SUFFIXES)}"
        )
    try:
        _read_samples(fields["file"])
    except wave.Error:
        raise _refuse(400, "Audio file might be corrupted or unsupported") from None
    wanted = fields.get("response_format", b"json").decode()
    if wanted not in _FORMATS:
        raise _refuse(400, f"{wanted} is not a valid response format.")


def _read_samples(sound: bytes) -> bytes:
    """The samples of a WAV file; a placeholder for other formats."""
    if sound[:4] != b"RIFF":
        return b"?"
    with wave.open(io.BytesIO(sound), "rb") as file:
        return file.readframes(file.getnframes())


def _transcribe(sound: bytes, audio: EmulatedAudio) -> Json:
    """The words of the lab's speech, or else the fixed text.

    Like the real one it finds words in silence, with little confidence.
    """
    if not any(_read_samples(sound)):
        made_up = _make_segment(
            0, f" {HALLUCINATED_TEXT}", end=2.0, logprob=-1.4, no_speech=0.93
        )
        return _make_transcript("english", HALLUCINATED_TEXT, [made_up])
    try:
        text = recognise_words(read_wav(sound)[0]) or audio.text
    except ValueError:
        text = audio.text
    sentences = [sentence.strip() for sentence in re.split(r"(?<=[.?!])\s", text)]
    segments = [
        _make_segment(
            number, sentence, end=2.0 * number + 1.5, logprob=-0.2, no_speech=0.01
        )
        for number, sentence in enumerate(sentences)
    ]
    return _make_transcript(audio.language, text, segments)


def _make_transcript(language: str, text: str, segments: list[Json]) -> Json:
    transcript = {
        "task": "transcribe",
        "language": language,
        "duration": 2.0 * len(segments),
    }
    return transcript | {"text": text, "segments": segments}


def _make_segment(
    number: int, text: str, *, end: float, logprob: float, no_speech: float
) -> Json:
    segment = {"id": number, "start": 2.0 * number, "end": end, "text": text}
    return segment | {"avg_logprob": logprob, "no_speech_prob": no_speech}
