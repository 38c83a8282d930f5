"""A second transcript of a recorded call, from the OpenAI audio API or a server that speaks like it."""

import httpx2
from pydantic import SecretStr

from aftercall.errors import LineFailed

MODEL = "whisper-1"


async def transcribe(http: httpx2.AsyncClient, base_url: str, key: SecretStr, wav: bytes, model: str = MODEL) -> str:
    url = base_url.rstrip("/") + "/audio/transcriptions"
    parts = {"file": ("call.wav", wav, "audio/wav")}
    try:
        answer = await http.post(
            url,
            data={"model": model, "response_format": "json"},
            files=parts,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"},
        )
        text = answer.raise_for_status().json()["text"]
    except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
        raise LineFailed(f"the recording could not be transcribed ({type(error).__name__})") from None
    return str(text).strip()
