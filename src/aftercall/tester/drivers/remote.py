"""Text agents behind an address: HTTP with one POST a turn, or a websocket.

Aftercall's own `WS /browser/call` is one of the websockets; any that takes and sends text works.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import httpx2
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from aftercall.errors import LineFailed
from aftercall.ids import new_id
from aftercall.tester.line import AgentAnswer, DialedCall

_TEXTS = ("text", "reply", "message", "response", "content", "output")
_ENDS = ("ends_call", "end_call", "end", "hang_up", "done")


class HttpAgent:
    """Sends `{"call", "caller", "event", "text"}`; `event` is start, say, keys or end.

    Reads `{"text": …, "ends_call": …}` and similar forms.
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
        body = {
            "call": self._call,
            "caller": self._caller,
            "event": event,
            "text": text,
        }
        try:
            answer = await self._http.post(self._url, json=body)
        except httpx2.HTTPError as error:
            raise LineFailed(
                f"{self._url}: no answer ({type(error).__name__})"
            ) from None
        if answer.status_code >= 400:
            raise LineFailed(f"{self._url}: answered {answer.status_code}")
        if "json" not in answer.headers.get("content-type", ""):
            return [AgentAnswer(answer.text)] if answer.text.strip() else []
        try:
            return read_answer(answer.json())
        except ValueError:
            raise LineFailed(f"{self._url}: the answer is not valid JSON") from None


def read_answer(data: Any) -> list[AgentAnswer]:
    """What an agent said, in any of the usual JSON forms."""
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
            if replies:
                return [*replies[:-1], AgentAnswer(replies[-1].text, ends)]
            break
    return [AgentAnswer("", ends)] if ends else []


OPEN_TIMEOUT_S = 10.0
GREETING_TIMEOUT_S = 3.0
FOLLOW_UP_TIMEOUT_S = 0.1


class WebSocketAgent:
    """Speaks JSON if the agent's first message is JSON, else plain text.

    Messages that the agent sends on its own are read when the line is idle.
    """

    def __init__(
        self, url: str, answer_timeout_s: float = 30.0, token: str | None = None
    ) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else None
        self._answer_timeout_s = answer_timeout_s
        self._socket: ClientConnection | None = None
        self._is_plain = False
        self._has_ended = False
        self._ids: set[str] = set()

    async def start(self, dial: DialedCall) -> Sequence[AgentAnswer]:
        url = self._url
        if dial.caller and "caller=" not in url:
            url += ("&" if "?" in url else "?") + f"caller={quote(dial.caller)}"
        try:
            self._socket = await connect(
                url,
                additional_headers=self._headers,
                open_timeout=OPEN_TIMEOUT_S,
                proxy=None,
            )
        except (OSError, WebSocketException, TimeoutError) as error:
            raise LineFailed(
                f"{self._url}: no connection ({type(error).__name__})"
            ) from None
        return await self._collect(GREETING_TIMEOUT_S)

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        await self._send({"type": "say", "text": text}, text)
        return await self._collect(self._answer_timeout_s)

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        """Keys reach a text agent as words."""
        return await self.respond(f"[keys {digits}]")

    async def idle(self, seconds: int) -> Sequence[AgentAnswer]:
        return await self._collect(0.01)

    async def hang_up(self) -> None:
        if self._socket is None:
            return
        with suppress(LineFailed):
            if not self._is_plain and not self._has_ended:
                await self._send({"type": "hang_up"}, "")
                with suppress(TimeoutError):
                    await self._collect(1.0)
        await self._socket.close()

    async def _send(self, data: dict[str, str], plain: str) -> None:
        if self._socket is None or self._has_ended:
            return
        try:
            await self._socket.send(plain if self._is_plain else json.dumps(data))
        except ConnectionClosed:
            raise LineFailed(f"{self._url}: the socket is closed") from None

    async def _collect(self, timeout_s: float) -> Sequence[AgentAnswer]:
        """The first message within the time limit, and those that follow it at once."""
        replies: list[AgentAnswer] = []
        while self._socket is not None and not self._has_ended:
            try:
                async with asyncio.timeout(timeout_s):
                    raw = await self._socket.recv()
            except TimeoutError:
                break
            except ConnectionClosed:
                self._has_ended = True
                replies.append(AgentAnswer("", ends_call=True))
                break
            replies += self._read(
                raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
            )
            timeout_s = FOLLOW_UP_TIMEOUT_S
        return replies

    def _read(self, raw: str) -> list[AgentAnswer]:
        try:
            data: Any = json.loads(raw)
        except ValueError:
            self._is_plain = True
            return [AgentAnswer(raw)]
        if not isinstance(data, dict):
            return read_answer(data)
        identity = data.get("id")
        if isinstance(identity, str):
            if identity in self._ids:
                return [AgentAnswer("", note="duplicate_event")]
            self._ids.add(identity)
        if data.get("type") == "refused":
            raise LineFailed(
                f"{self._url}: refused ({data.get('reason', 'no reason given')})"
            )
        if data.get("type") == "ended":
            self._has_ended = True
            return [AgentAnswer("", ends_call=True)]
        return read_answer(data)
