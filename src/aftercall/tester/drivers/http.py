"""A text agent behind an HTTP address: one POST a turn, JSON or plain text in return."""

from collections.abc import Sequence
from typing import Any

import httpx2

from aftercall.errors import LineFailed
from aftercall.ids import new_id
from aftercall.tester.line import AgentAnswer, DialedCall

_TEXTS = ("text", "reply", "message", "response", "content", "output")
_ENDS = ("ends_call", "end_call", "end", "hang_up", "done")


class HttpAgent:
    """Sends `{"call", "caller", "event", "text"}`; `event` is start, say, keys or end.

    Takes `{"text": …, "ends_call": …}` and its kin.
    """

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self._url = url
        self._http = http
        self._call = new_id()
        self._caller: str | None = None

    async def start(self, dial: DialedCall) -> Sequence[AgentAnswer]:
        self._caller = dial.caller
        return await self._post("start", "")

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        return await self._post("say", text)

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        return await self._post("keys", digits)

    async def idle(self, seconds: int) -> Sequence[AgentAnswer]:
        return ()

    async def hang_up(self) -> None:
        await self._post("end", "")

    async def _post(self, event: str, text: str) -> Sequence[AgentAnswer]:
        body = {"call": self._call, "caller": self._caller, "event": event, "text": text}
        try:
            answer = await self._http.post(self._url, json=body)
        except httpx2.HTTPError as error:
            raise LineFailed(f"{self._url}: no answer ({type(error).__name__})") from None
        if answer.status_code >= 400:
            raise LineFailed(f"{self._url}: answered {answer.status_code}")
        if "json" not in answer.headers.get("content-type", ""):
            return [AgentAnswer(answer.text)] if answer.text.strip() else []
        try:
            return read_answer(answer.json())
        except ValueError:
            raise LineFailed(f"{self._url}: the answer is not valid JSON") from None


def read_answer(data: Any) -> list[AgentAnswer]:
    """What an agent said, in any of the usual forms."""
    if isinstance(data, str):
        return [AgentAnswer(data)] if data.strip() else []
    if isinstance(data, list):
        return [reply for item in data for reply in read_answer(item)]
    if not isinstance(data, dict):
        return []
    ends = any(data.get(name) is True for name in _ENDS)
    for name in _TEXTS:
        if isinstance(data.get(name), str | list):
            replies = read_answer(data[name])
            return (
                [*replies[:-1], AgentAnswer(replies[-1].text, ends)]
                if replies
                else [AgentAnswer("", ends)]
                if ends
                else []
            )
    return [AgentAnswer("", ends)] if ends else []
