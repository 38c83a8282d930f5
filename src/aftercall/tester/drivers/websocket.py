"""A text agent behind a websocket.

Aftercall's own `WS /browser/call` is one; so is any that takes and sends text, plain or as
JSON.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from aftercall.errors import LineFailed
from aftercall.tester.drivers.http import read_answer
from aftercall.tester.line import AgentAnswer, DialedCall

OPEN_TIMEOUT_S = 10.0
GREETING_TIMEOUT_S = 3.0
FOLLOW_UP_TIMEOUT_S = 0.1


class WebSocketAgent:
    """Answers in JSON if the agent begins in JSON, else in plain text.

    What comes unasked is taken up when the line is idle.
    """

    def __init__(
        self, url: str, patience_s: float = 30.0, headers: dict[str, str] | None = None
    ) -> None:
        self._url = url
        self._patience_s = patience_s
        self._headers = headers or {}
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
                url, open_timeout=OPEN_TIMEOUT_S, additional_headers=self._headers, proxy=None
            )
        except (OSError, WebSocketException, TimeoutError) as error:
            raise LineFailed(f"{self._url}: no connection ({type(error).__name__})") from None
        return await self._collect(GREETING_TIMEOUT_S)

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        await self._send({"type": "say", "text": text}, text)
        return await self._collect(self._patience_s)

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        """Keys reach a text agent as words: our own route knows no others."""
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

    async def _collect(self, patience_s: float) -> Sequence[AgentAnswer]:
        """The first message within the agent's time, and whatever follows it at once."""
        replies: list[AgentAnswer] = []
        while self._socket is not None and not self._has_ended:
            try:
                async with asyncio.timeout(patience_s):
                    raw = await self._socket.recv()
            except TimeoutError:
                break
            except ConnectionClosed:
                self._has_ended = True
                replies.append(AgentAnswer("", ends_call=True))
                break
            replies += self._read(raw if isinstance(raw, str) else raw.decode("utf-8", "replace"))
            patience_s = FOLLOW_UP_TIMEOUT_S
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
            raise LineFailed(f"{self._url}: refused ({data.get('reason', 'no reason given')})")
        if data.get("type") == "ended":
            self._has_ended = True
            return [AgentAnswer("", ends_call=True)]
        return read_answer(data)
