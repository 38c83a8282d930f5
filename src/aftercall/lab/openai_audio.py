"""An emulated OpenAI transcription route: takes a file, answers with words and their times.

The form is parsed by hand: the usual multipart parser would be a package for one route.
"""

import io
import re
import wave
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from aftercall.lab.rest import Refusal
from aftercall.lab.speech import recognise_words
from aftercall.speech.sound import read_wav

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


def _transcribe(sound: bytes, audio: EmulatedAudio) -> dict[str, Any]:
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


def _make_transcript(
    language: str, text: str, segments: list[dict[str, Any]]
) -> dict[str, Any]:
    transcript = {
        "task": "transcribe",
        "language": language,
        "duration": 2.0 * len(segments),
    }
    return transcript | {"text": text, "segments": segments}


def _make_segment(
    number: int, text: str, *, end: float, logprob: float, no_speech: float
) -> dict[str, Any]:
    segment = {"id": number, "start": 2.0 * number, "end": end, "text": text}
    return segment | {"avg_logprob": logprob, "no_speech_prob": no_speech}
