"""An emulated OpenAI audio address: takes a file, gives back words with times; refuses what the
real one refuses; fails on demand.

Multipart is read here by hand: the usual parser would be one more package for one route.
"""

import io
import re
import wave
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from aftercall.lab.speech import ToneDetector, ToneEnded
from aftercall.speech.sound import read_wav

_BOUNDARY = re.compile(r'boundary="?([^";]+)"?')
_NAME = re.compile(rb'name="([^"]*)"')
_FILE = re.compile(rb'name="file"; filename="([^"]*)"')
_KINDS = ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm")
HALLUCINATED_TEXT = "Thank you for watching!"
_FORMATS = ("json", "text", "srt", "verbose_json", "vtt")


@dataclass
class EmulatedAudio:
    """`faults`: statuses for the next requests; 0 is an answer that breaks off in the middle."""

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
            return _refuse(401, "Incorrect API key provided.", "invalid_api_key")
        fault = audio.faults.pop(0) if audio.faults else None
        if fault:
            return _refuse(
                fault,
                "The server had an error while processing your request.",
                None,
                {"Retry-After": "1"},
            )
        body = await request.body()
        fields = parse_multipart(body, request.headers.get("content-type", ""))
        audio.received.append(fields)
        if not fields.get("file") or not fields.get("model"):
            return _refuse(400, "file and model are required.", None)
        if why := _refusal_reason(body, fields["file"]):
            return _refuse(400, why, None)
        wanted = fields.get("response_format", b"json").decode()
        if wanted not in _FORMATS:
            return _refuse(400, f"{wanted} is not a valid response format.", None)
        text = _transcribe(fields["file"]) or audio.text
        heard = (
            _make_hallucination() if _is_silent(fields["file"]) else _verbose(text, audio.language)
        )
        answer = JSONResponse(heard if wanted == "verbose_json" else {"text": heard["text"]})
        return (
            Response(answer.body[: len(answer.body) // 2], media_type="application/json")
            if fault == 0
            else answer
        )

    return router


def parse_multipart(body: bytes, content_type: str) -> dict[str, bytes]:
    """The fields by name; of a file, its bytes."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        return {}
    fields = {}
    for part in body.split(b"--" + found[1].encode())[1:-1]:
        head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
        if name := _NAME.search(head):
            fields[name[1].decode()] = content
    return fields


def _refusal_reason(body: bytes, sound: bytes) -> str:
    """Why the file is not taken, if it is not: its name tells no format, or it is a WAV file of
    other samples than plain ones.
    """
    found = _FILE.search(body)
    if (
        found is None
        or found[1].decode("ascii", "replace").rpartition(".")[2].lower() not in _KINDS
    ):
        return f"Unrecognized file format. Supported formats: {list(_KINDS)}"
    try:
        _read_frames(sound)
    except wave.Error:
        return "Audio file might be corrupted or unsupported"
    return ""


def _read_frames(sound: bytes) -> bytes:
    if sound[:4] != b"RIFF":
        return b"?"
    with wave.open(io.BytesIO(sound), "rb") as file:
        return file.readframes(file.getnframes())


def _is_silent(sound: bytes) -> bool:
    return not any(_read_frames(sound))


def _make_hallucination() -> dict[str, Any]:
    """Where nobody speaks the real one still finds words, and says how little it believes them."""
    made_up = {
        "id": 0,
        "start": 0.0,
        "end": 2.0,
        "text": f" {HALLUCINATED_TEXT}",
        "avg_logprob": -1.4,
        "no_speech_prob": 0.93,
    }
    return {
        "task": "transcribe",
        "language": "english",
        "duration": 2.0,
        "text": HALLUCINATED_TEXT,
        "segments": [made_up],
    }


def _transcribe(sound: bytes) -> str:
    """The words of the lab's own speech, if it is that."""
    try:
        channel = read_wav(sound)[0]
    except ValueError:
        return ""
    ear = ToneDetector()
    heard = [item.text for item in ear.detect(channel) if isinstance(item, ToneEnded)]
    return " ".join(filter(None, [*heard, ear.finish()]))


def _verbose(text: str, language: str) -> dict[str, Any]:
    sentences = [sentence.strip() for sentence in re.split(r"(?<=[.?!])\s", text)]
    segments = [
        {
            "id": number,
            "start": 2.0 * number,
            "end": 2.0 * number + 1.5,
            "text": sentence,
            "avg_logprob": -0.2,
            "no_speech_prob": 0.01,
        }
        for number, sentence in enumerate(sentences)
    ]
    return {
        "task": "transcribe",
        "language": language,
        "duration": 2.0 * len(segments),
        "text": text,
        "segments": segments,
    }


def _refuse(
    status: int, message: str, code: str | None, headers: dict[str, str] | None = None
) -> Response:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return JSONResponse(
        {"error": {"message": message, "type": kind, "param": None, "code": code}}, status, headers
    )
