"""A second transcript of a recorded call, from the OpenAI audio API or a server that speaks
like it.
"""

import httpx2
from pydantic import SecretStr

from aftercall.errors import LineFailed
from aftercall.speech.transcription import TranscribedAudio, make_upload, parse_transcription

MODEL = "whisper-1"


async def transcribe(
    http: httpx2.AsyncClient, base_url: str, key: SecretStr, wav: bytes, model: str = MODEL
) -> TranscribedAudio:
    """The words, and where they stand in the sound."""
    url = base_url.rstrip("/") + "/audio/transcriptions"
    try:
        answer = await http.post(
            url,
            data={"model": model, "response_format": "verbose_json"},
            files={"file": make_upload(wav)},
            headers={"Authorization": f"Bearer {key.get_secret_value()}"},
        )
        return parse_transcription(answer.raise_for_status().json())
    except (httpx2.HTTPError, ValueError) as error:
        raise LineFailed(
            f"the recording could not be transcribed ({type(error).__name__})"
        ) from None
