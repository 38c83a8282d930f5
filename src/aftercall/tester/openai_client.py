"""Models at a server of the OpenAI kind: chat plays a caller or judges, audio transcribes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import httpx2
from pydantic import SecretStr

from aftercall.errors import LineFailed
from aftercall.speech.transcription import (
    TranscribedAudio,
    make_upload,
    parse_transcription,
)

OPENAI_URL = "https://api.openai.com/v1"
TRANSCRIPTION_MODEL = "whisper-1"


@dataclass(frozen=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    content: str


Complete = Callable[[Sequence[ChatMessage], int], Awaitable[str]]
"""The model's next words for these messages, at most so many tokens; raises LineFailed."""


class ChatModel:
    """`POST /chat/completions`."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        base_url: str,
        model: str,
        key: SecretStr | None = None,
    ) -> None:
        self._http = http
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = (
            {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        )

    async def complete(self, messages: Sequence[ChatMessage], max_tokens: int) -> str:
        listed = [
            {"role": message.role, "content": message.content} for message in messages
        ]
        body = {
            "model": self._model,
            "messages": listed,
            "max_completion_tokens": max_tokens,
        }
        try:
            answer = await self._http.post(self._url, json=body, headers=self._headers)
            choice = answer.raise_for_status().json()["choices"][0]
            text = choice["message"]["content"]
        except httpx2.HTTPStatusError as error:
            raise LineFailed(
                f"the model answered {error.response.status_code}"
            ) from None
        except (httpx2.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
            raise LineFailed(
                f"the model gave no answer ({type(error).__name__})"
            ) from None
        if isinstance(text, str) and choice.get("finish_reason") == "length":
            # whole sentences count
            text = text[: max(text.rfind(end) for end in ".?!") + 1]
        if not isinstance(text, str) or not text.strip():
            raise LineFailed("the model's answer is empty or cut off")
        return text.strip()


async def transcribe(
    http: httpx2.AsyncClient, base_url: str, key: SecretStr, wav: bytes
) -> TranscribedAudio:
    """The words, and where they are in the sound."""
    try:
        answer = await http.post(
            base_url.rstrip("/") + "/audio/transcriptions",
            data={"model": TRANSCRIPTION_MODEL, "response_format": "verbose_json"},
            files={"file": make_upload(wav)},
            headers={"Authorization": f"Bearer {key.get_secret_value()}"},
        )
        return parse_transcription(answer.raise_for_status().json())
    except (httpx2.HTTPError, ValueError) as error:
        reason = type(error).__name__
        raise LineFailed(f"the recording could not be transcribed ({reason})") from None
