"""A second transcript of a recorded call, from the OpenAI audio API or a server that speaks like it."""

from typing import Any

import httpx2
from pydantic import SecretStr

from aftercall.errors import LineFailed
from aftercall.tester.record import Transcript

MODEL = "whisper-1"


async def transcribe(http: httpx2.AsyncClient, base_url: str, key: SecretStr, wav: bytes, model: str = MODEL) -> Transcript:
    """The words, and where they stand in the sound."""
    url = base_url.rstrip("/") + "/audio/transcriptions"
    parts = {"file": ("call.wav", wav, "audio/wav")}
    try:
        answer = await http.post(
            url,
            data={"model": model, "response_format": "verbose_json"},
            files=parts,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"},
        )
        return _read(answer.raise_for_status().json())
    except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
        raise LineFailed(f"the recording could not be transcribed ({type(error).__name__})") from None


def _read(data: dict[str, Any]) -> Transcript:
    segments = tuple((float(part["start"]), float(part["end"]), str(part["text"]).strip()) for part in data.get("segments") or ())
    duration = data.get("duration")
    return Transcript(
        str(data["text"]).strip(),
        str(data.get("language") or ""),
        float(duration) if duration is not None else None,
        segments,
    )
