"""Text agents behind an address: HTTP with one POST a turn, or a websocket.

Aftercall's own `WS /browser/call` is one of the websockets; any that takes and sends text works.
Sockets have a thread of their own: a tester that is busy with other calls does not read the clock
late, and its waiting for more words does not count.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidStatus,
    WebSocketException,
)

from aftercall.errors import AgentBroke, AgentRefused, LineFailed
from aftercall.ids import new_id
from aftercall.model.json_fields import Json
from aftercall.tester.line import AgentAnswer, AgentAnswers, DialedCall, TextAgent

_Result = TypeVar("_Result")
_TEXTS = (
    *("text", "reply", "message", "response", "content", "output", "say", "speech"),
    *("answer", "utterance", "choices"),
)
_TOOLS = ("tool_calls", "tools", "function_call", "actions", "functions")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "params")
_NO_AGENT = (401, 403, 404, 405, 407)  # a wrong address, or missing credentials
REACH_TIMEOUT_S = 2.0
_ENDS = ("ends_call", "end_call", "end", "hang_up", "done")


@asynccontextmanager
async def open_socket_thread() -> AsyncIterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread that does nothing but read and write sockets."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="sockets", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()


async def run_in_loop(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _Result]
) -> _Result:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


@dataclass(frozen=True)
class SocketThreadAgent:
    """An agent whose socket is used in another thread."""

    agent: TextAgent
    loop: asyncio.AbstractEventLoop

    async def start(self, dial: DialedCall) -> AgentAnswers:
        return await run_in_loop(self.loop, self.agent.start(dial))

    async def respond(self, text: str) -> AgentAnswers:
        return await run_in_loop(self.loop, self.agent.respond(text))

    async def press(self, digits: str) -> AgentAnswers:
        return await run_in_loop(self.loop, self.agent.press(digits))

    async def idle(self, seconds: int) -> AgentAnswers:
        return await run_in_loop(self.loop, self.agent.idle(seconds))

    async def hang_up(self) -> None:
        await run_in_loop(self.loop, self.agent.hang_up())


class HttpAgent(TextAgent):
    """Sends `{"call", "caller", "event", "text"}`; `event` is start, say, keys or end.

    Reads `{"text": …, "ends_call": …}` and similar forms.
    """

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self._url = url
        self._http = http
        self._call = new_id()
        self._caller: str | None = None
        self._has_answered = False

    async def start(self, dial: DialedCall) -> AgentAnswers:
        self._caller = dial.caller
        return await self._post("start", "")

    async def respond(self, text: str) -> AgentAnswers:
        return await self._post("say", text)

    async def press(self, digits: str) -> AgentAnswers:
        return await self._post("keys", digits)

    async def hang_up(self) -> None:
        await self._post("end", "")

    async def _post(self, event: str, text: str) -> AgentAnswers:
        body = {
            "call": self._call,
            "caller": self._caller,
            "event": event,
            "text": text,
        }
        began_s = time.perf_counter()
        try:
            answer = await self._http.post(self._url, json=body)
        except httpx2.HTTPError as error:
            raise await blame_no_answer(
                self._url, error, has_answered=self._has_answered
            ) from None
        took_s = time.perf_counter() - began_s
        status = answer.status_code
        if status in _NO_AGENT:
            raise AgentRefused(f"{self._url}: answered {status}")
        if status >= 400:
            raise AgentBroke(f"{self._url}: answered {status}")
        self._has_answered = True
        is_json = "json" in answer.headers.get("content-type", "")
        if not is_json and not answer.text.lstrip().startswith(("{", "[")):
            replies = [AgentAnswer(answer.text)] if answer.text.strip() else []
        else:
            try:
                replies = read_answer(answer.json())
            except ValueError:
                reason = "the answer is not valid JSON"
                raise AgentBroke(f"{self._url}: {reason}") from None
        return [replace(reply, took_s=took_s) for reply in replies]


async def blame_no_answer(
    url: str, error: httpx2.HTTPError, *, has_answered: bool
) -> LineFailed:
    """A host that is there but does not answer is the agent's; one that is not, the line's."""
    text = f"{url}: no answer ({type(error).__name__})"
    if not has_answered and isinstance(error, httpx2.ConnectError):
        return LineFailed(text)
    return AgentBroke(text) if await is_host_there(url) else LineFailed(text)


async def is_host_there(url: str) -> bool:
    """Whether the host takes or refuses a connection at once; a dead line does neither."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
    try:
        async with asyncio.timeout(REACH_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def read_answer(data: Any) -> list[AgentAnswer]:
    """What an agent said and did, in any of the usual JSON forms."""
    if isinstance(data, str):
        return [AgentAnswer(data)] if data.strip() else []
    if isinstance(data, list):
        return [reply for item in data for reply in read_answer(item)]
    if not isinstance(data, dict):
        return []
    ends = any(data.get(name) is True for name in _ENDS)
    tools = tuple(_read_tools(data))
    for name in _TEXTS:
        if isinstance(data.get(name), str | list | dict):
            replies = read_answer(data[name])
            if replies:
                last = replies[-1]
                tools = (*last.tool_calls, *tools)
                ends = ends or last.ends_call
                return [*replies[:-1], replace(last, ends_call=ends, tool_calls=tools)]
            break
    return [AgentAnswer("", ends, tool_calls=tools)] if ends or tools else []


def _read_tools(data: Json) -> Iterator[str]:
    """Tool calls as the usual interfaces report them."""
    listed = [item for name in _TOOLS for item in _as_list(data.get(name))]
    for item in listed:
        if not isinstance(item, dict):
            continue
        inner = item.get("function")
        called = inner if isinstance(inner, dict) else item
        name = called.get("name") or called.get("tool") or called.get("tool_name")
        if not isinstance(name, str):
            continue
        given: Any = next((called[key] for key in _ARGUMENTS if key in called), {})
        shown = given if isinstance(given, str) else json.dumps(given)
        yield f"{name} {shown}"


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value]
    return value if isinstance(value, list) else []


OPEN_TIMEOUT_S = 10.0
GREETING_TIMEOUT_S = 3.0
FOLLOW_UP_TIMEOUT_S = 0.15
STREAM_TIMEOUT_S = 1.0  # agents that stream send a sentence about this often
_SENTENCE_ENDS = (".", "?", "!", '"', "”")


class WebSocketAgent(TextAgent):
    """Speaks JSON if the agent's first message is JSON, else plain text.

    Messages that the agent sends on its own are read when the line is idle.
    """

    def __init__(
        self, url: str, answer_timeout_s: float = 30.0, token: str | None = None
    ) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else None
        self._answer_timeout_s = answer_timeout_s
        self._greeting_timeout_s = GREETING_TIMEOUT_S
        self._socket: ClientConnection | None = None
        self._is_plain = False
        self._has_ended = False
        self._is_streaming = False
        self._sent_s: float | None = None
        self._ids: set[str] = set()

    async def start(self, dial: DialedCall) -> AgentAnswers:
        url = self._url
        if dial.caller and "caller=" not in url:
            url += ("&" if "?" in url else "?") + f"caller={quote(dial.caller)}"
        await self._open(url)
        return await self._collect(self._greeting_timeout_s)

    async def _open(self, url: str) -> None:
        try:
            self._socket = await connect(
                url,
                additional_headers=self._headers,
                open_timeout=OPEN_TIMEOUT_S,
                proxy=None,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            kind = AgentRefused if status in _NO_AGENT else LineFailed
            raise kind(f"{self._url}: answered {status}") from None
        except (OSError, WebSocketException, TimeoutError) as error:
            raise LineFailed(
                f"{self._url}: no connection ({type(error).__name__})"
            ) from None

    async def respond(self, text: str) -> AgentAnswers:
        await self._send({"type": "say", "text": text}, text)
        return await self._collect(self._answer_timeout_s)

    async def idle(self, seconds: int) -> AgentAnswers:
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

    async def _send(self, data: Json, plain: str) -> None:
        if self._socket is None or self._has_ended:
            return
        try:
            await self._socket.send(plain if self._is_plain else json.dumps(data))
            self._sent_s = time.perf_counter()
        except ConnectionClosed:
            raise LineFailed(f"{self._url}: the socket is closed") from None

    async def _reply(self, data: Json) -> None:
        """What the protocol wants back; no words of the caller."""
        if self._socket is not None:
            with suppress(ConnectionClosed):
                await self._socket.send(json.dumps(data))

    def _blame(self, closed: ConnectionClosed) -> LineFailed:
        return blame_close(self._url, closed)

    async def _collect(self, timeout_s: float) -> AgentAnswers:
        """The first message within the time limit and those that belong to it, as one turn.

        The answer is there when its first sentence is.
        """
        replies: list[AgentAnswer] = []
        sent_s, self._sent_s = self._sent_s, None
        answered_s = 0.0
        while self._socket is not None and not self._has_ended:
            try:
                async with asyncio.timeout(timeout_s):
                    raw = await self._socket.recv()
            except TimeoutError:
                break
            except ConnectionClosed as closed:
                self._has_ended = True
                if replies or is_orderly(closed):
                    replies.append(AgentAnswer("", ends_call=True))
                    break
                raise self._blame(closed) from None
            if not _has_sentence(replies):
                answered_s = time.perf_counter()
            self._is_streaming = self._is_streaming or any(
                item.text for item in replies
            )
            replies += await self._read(
                raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
            )
            if any(item.text for item in replies):
                timeout_s = self._follow_up_s(replies)
        if not replies:
            return []
        return [_join(replies, None if sent_s is None else answered_s - sent_s)]

    def _follow_up_s(self, replies: list[AgentAnswer]) -> float:
        """Longer for an agent that streams, and after half a sentence."""
        is_whole = _has_sentence(replies) and not self._is_streaming
        return FOLLOW_UP_TIMEOUT_S if is_whole else STREAM_TIMEOUT_S

    async def _read(self, raw: str) -> list[AgentAnswer]:
        try:
            data: Any = json.loads(raw)
        except ValueError:
            if raw.lstrip().startswith("{") and not self._is_plain:
                raise AgentBroke(f"{self._url}: a message is not valid JSON") from None
            self._is_plain = True
            return [AgentAnswer(raw)]
        if not isinstance(data, dict):
            return read_answer(data)
        return await self._read_message(data)

    async def _read_message(self, data: Json) -> list[AgentAnswer]:
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


def _has_sentence(replies: list[AgentAnswer]) -> bool:
    """Whether the last words end a sentence."""
    said = " ".join(item.text for item in replies).rstrip()
    return said.endswith(_SENTENCE_ENDS)


def _join(replies: list[AgentAnswer], took_s: float | None) -> AgentAnswer:
    """Pieces of one turn; pieces of a word begin without a space."""
    text = " ".join(item.text.strip() for item in replies if item.text.strip())
    return AgentAnswer(
        text,
        ends_call=any(item.ends_call for item in replies),
        note=next((item.note for item in replies if item.note), ""),
        tool_calls=tuple(call for item in replies for call in item.tool_calls),
        took_s=took_s,
    )


def is_orderly(closed: ConnectionClosed) -> bool:
    return closed.rcvd is not None and closed.rcvd.code in (1000, 1001, 1005)


def blame_close(url: str, closed: ConnectionClosed) -> LineFailed:
    """A close with an error code is the agent's; without any code the line broke."""
    if closed.rcvd is None:
        return LineFailed(f"{url}: the connection was lost")
    return AgentBroke(f"{url}: closed with the error {closed.rcvd.code}")
