"""A model that speaks: plays a caller, or judges a transcript.

One small interface, and one adapter for servers of the OpenAI kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import httpx2
from pydantic import SecretStr

from aftercall.errors import LineFailed

MAX_TOKENS = 300


@dataclass(frozen=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    content: str


class Speaker(Protocol):
    async def complete(self, messages: Sequence[ChatMessage], max_tokens: int = MAX_TOKENS) -> str:
        """The next words; LineFailed when there are none to be had."""
        ...


class ChatSpeaker:
    """`POST /chat/completions` at any server that has it."""

    def __init__(
        self, http: httpx2.AsyncClient, base_url: str, model: str, key: SecretStr | None = None
    ) -> None:
        self._http = http
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}

    async def complete(self, messages: Sequence[ChatMessage], max_tokens: int = MAX_TOKENS) -> str:
        body = {
            "model": self._model,
            "messages": [
                {"role": message.role, "content": message.content} for message in messages
            ],
            "max_completion_tokens": max_tokens,
        }
        try:
            answer = await self._http.post(self._url, json=body, headers=self._headers)
            choice = answer.raise_for_status().json()["choices"][0]
            text = choice["message"]["content"]
        except httpx2.HTTPStatusError as error:
            raise LineFailed(f"the model answered {error.response.status_code}") from None
        except (httpx2.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
            raise LineFailed(f"the model gave no answer ({type(error).__name__})") from None
        if (
            isinstance(text, str) and choice.get("finish_reason") == "length"
        ):  # what was finished of it still counts
            text = text[: max(text.rfind(end) for end in ".?!") + 1]
        if not isinstance(text, str) or not text.strip():
            raise LineFailed("the model's answer is empty or cut off")
        return text.strip()
