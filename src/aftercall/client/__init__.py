"""The client of the live-call API, for an agent that runs elsewhere.

    async with Client().call(caller="+15551234567", source="myagent", sid="42") as call:
        prompt = call.briefing.text
        await call.turn("caller", "Please call the plumber.")

When `turn` returns, the words are on disk: at the server or, while that is away, in a spool on
this machine, from which they are sent later, in order, once. Besides the standard library this
imports `websockets` only.
"""

import asyncio
import json
import logging
import os
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from aftercall import __version__
from aftercall.client.call import (
    CallBriefing,
    CallRefused,
    ClientCall,
    LinkLost,
    SpeakerName,
    make_event,
    make_turn,
)
from aftercall.client.spool import CallInUse, Spool, SpoolFile, SpoolFull

__all__ = [
    "CallBriefing",
    "CallInUse",
    "CallRefused",
    "CallWriter",
    "Client",
    "ClientCall",
    "SpoolFull",
    "SyncCall",
    "SyncClient",
]

DEFAULT_URL = "http://127.0.0.1:8080"
CLOSE_TIMEOUT_S = 5.0
PING_S = 5.0
LEFTOVER_TIMEOUT_S = 10.0  # then the next one is tried as well
RETRY_S = (0.1, 5.0)  # first and longest pause between two tries to connect

log = logging.getLogger("aftercall.client")

T = TypeVar("T")


class Client:
    """One connection to the server, for any number of calls. It is opened with the first call.

    `url` and `token` default to `AFTERCALL_URL` and `AFTERCALL_API_TOKEN`, `spool` (a folder) to
    `AFTERCALL_SPOOL` and `~/.aftercall-client`.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        spool: Path | str | None = None,
    ) -> None:
        given = url or os.environ.get("AFTERCALL_URL") or DEFAULT_URL
        self._url = f"ws{given.removeprefix('http').rstrip('/')}/api/live"
        self._token = token or os.environ.get("AFTERCALL_API_TOKEN", "")
        folder = spool or os.environ.get("AFTERCALL_SPOOL") or "~/.aftercall-client"
        self._spool = Spool(Path(folder).expanduser())
        self._calls: dict[tuple[str, str], ClientCall] = {}
        self._answers: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._refs = 0
        self._link: ClientConnection | None = None
        self._running: asyncio.Task[None] | None = None
        self._is_kept = False
        self.heartbeat_s = 20.0

    async def __aenter__(self) -> Self:
        """Kept open until the block ends, and sends what a dead process left behind."""
        self._is_kept = True
        self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def call(
        self,
        *,
        source: str,
        sid: str,
        caller: str | None = None,
        callee: str | None = None,
        agent: str | None = None,
        direction: Literal["inbound", "outbound"] = "inbound",
        verified: bool = False,
        carrier: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        on_briefing: Callable[[CallBriefing], None] | None = None,
    ) -> ClientCall:
        """A call to enter with `async with`. `on_briefing` hears when another person is calling."""
        info = {
            "source": source,
            "sid": sid,
            "caller": caller,
            "callee": callee,
            "agent": agent,
            "direction": direction,
            "verified": verified,
            "carrier": dict(carrier) if carrier else None,
            "metadata": dict(metadata or {}),
        }
        return ClientCall(self, info, on_briefing)

    async def close(self) -> None:
        """Gives what is unsent a moment; what is left is sent by the next client."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S if self.is_connected else 0):
                for call in list(self._calls.values()):
                    await call.drained.wait()
        self._is_kept = False
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def attach(self, call: ClientCall) -> SpoolFile:
        """The call's file, and its place on the connection."""
        key = (call.info["source"], call.info["sid"])
        left = self._calls.get(key)
        if left is not None and left.is_leftover:
            file = left.release_file()
        elif left is not None:
            raise CallInUse(f"{key[0]} call {key[1]} is running already")
        else:
            file = self._spool.open(*key)
        self._calls[key] = call
        self._start()
        return file

    def detach(self, call: ClientCall) -> None:
        self._calls.pop((call.info["source"], call.info["sid"]), None)

    async def close_if_unused(self) -> None:
        if not self._is_kept and not self._calls:
            await self.close()

    @property
    def sender(self) -> str:
        return self._spool.sender

    @property
    def is_connected(self) -> bool:
        return self._link is not None

    async def ask(self, op: str, **fields: Any) -> Mapping[str, Any]:
        """The server's answer. Raises CallRefused, or LinkLost if there is none."""
        link = self._link
        if link is None:
            raise LinkLost
        self._refs += 1
        ref = self._refs
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.Future()
        self._answers[ref] = answer
        message = {"ref": ref, "op": op, "sender": self.sender, "sent_at": time.time()}
        try:
            await link.send(json.dumps(message | fields, ensure_ascii=False))
            return await answer
        except WebSocketException:
            raise LinkLost from None
        finally:
            self._answers.pop(ref, None)

    def _start(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Connects, and again after each loss, until the client is closed or its loop ends."""
        self._adopt_leftovers()
        pause_s = RETRY_S[0]
        try:
            while True:
                if await self._try_connection():
                    pause_s = RETRY_S[0]
                await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - spreads load
                pause_s = min(pause_s * 2, RETRY_S[1])
        finally:
            for call in self._calls.values():
                call.stop()
            self._calls.clear()

    async def _try_connection(self) -> bool:
        """Serves the calls while there is a connection; False if there was none."""
        connecting = connect(
            self._url,
            additional_headers={"Authorization": f"Bearer {self._token}"},
            user_agent_header=f"aftercall-client/{__version__}",
            compression=None,
            max_size=None,
            ping_interval=PING_S,
            ping_timeout=PING_S,
        )
        is_connected = False
        try:
            async with connecting as link:
                is_connected = True
                await self._use(link)
        except InvalidStatus as error:
            log.warning("the server refuses: HTTP %s", error.response.status_code)
        except (WebSocketException, OSError, TimeoutError) as error:
            log.info("the server is away (%s)", type(error).__name__)
        return is_connected

    async def _use(self, link: ClientConnection) -> None:
        self._link = link
        beating = asyncio.create_task(self._beat())
        catching_up = asyncio.create_task(self._deliver_leftovers())
        try:
            for call in list(self._calls.values()):
                if not call.is_leftover:
                    call.deliver()
            async for message in link:
                self._receive(json.loads(message))
        finally:
            beating.cancel()
            catching_up.cancel()
            self._link = None
            for call in self._calls.values():
                call.on_link_lost()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(LinkLost())

    async def _deliver_leftovers(self) -> None:
        """One after the other: a process that dies too leaves one leg without an end, not many."""
        for call in [call for call in self._calls.values() if call.is_leftover]:
            if call not in self._calls.values():
                continue  # its agent has come back to it
            call.deliver()
            with suppress(TimeoutError):
                async with asyncio.timeout(LEFTOVER_TIMEOUT_S):
                    await call.drained.wait()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat_s)
            with suppress(LinkLost, CallRefused):
                await self.ask("heartbeat")

    def _receive(self, message: Mapping[str, Any]) -> None:
        answer = self._answers.get(message.get("ref", 0))
        if answer is None:
            for call in self._calls.values():
                if call.id == message.get("call"):
                    call.receive(message)
        elif not answer.done() and "error" in message:
            answer.set_exception(CallRefused(**message["error"]))
        elif not answer.done():
            answer.set_result(message["result"])

    def _adopt_leftovers(self) -> None:
        for file in self._spool.open_leftovers():
            key = (file.info["source"], file.info["sid"])
            if key not in self._calls:
                self._calls[key] = ClientCall(self, file.info, None, file)


class CallWriter:
    """Stores what an agent framework reports, in its order, while the agent goes on."""

    def __init__(self, call: ClientCall) -> None:
        self._call = call

    def add_turn(
        self,
        speaker: SpeakerName,
        text: str,
        at: float,
        *,
        confidence: float | None = None,
        is_interrupted: bool = False,
    ) -> None:
        """`text` is what was heard, also of an agent that was interrupted."""
        text = text.strip()
        if not text:
            return
        with _logged_refusals():
            self._call.post("turns", make_turn(speaker, text, at, confidence))
            if is_interrupted:
                self._call.post("events", make_event("barge_in", {"heard": text}))

    def add_tool_use(self, name: str, ms: float, arguments: object) -> None:
        """Our own tools leave their traces at the server."""
        if name in [tool["name"] for tool in self._call.tools]:
            return
        used = {"tool": name, "ms": round(ms), "arguments": arguments}
        with _logged_refusals():
            self._call.post("events", make_event("tool.used", used))

    async def end(self, reason: str) -> None:
        """Returns when everything is on disk, the end too."""
        with _logged_refusals():
            await self._call.end(reason)


@contextmanager
def _logged_refusals() -> Iterator[None]:
    """The agent goes on talking, whatever becomes of its notes."""
    try:
        yield
    except (CallRefused, SpoolFull, TypeError, ValueError) as error:
        log.error("not stored: %s", getattr(error, "code", type(error).__name__))


def check_framework(package: str, lowest: tuple[int, int], below: int) -> None:
    """Raises ImportError unless `package` is there in a version from `lowest` to `below`."""
    wanted = f"{package} >= {lowest[0]}.{lowest[1]}, < {below}"
    try:
        found = version(package)
    except PackageNotFoundError:
        raise ImportError(f"{wanted} is needed, and it is not installed") from None
    major, minor = (int(part) for part in found.split(".")[:2])
    if not lowest <= (major, minor) < (below, 0):
        raise ImportError(f"{wanted} is needed; {found} is installed")


class SyncClient:
    """The same for an agent without an event loop: calls run on a thread of their own."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        spool: Path | str | None = None,
    ) -> None:
        self._client = Client(url, token, spool=spool)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self._client.__aenter__())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, **fields: Any) -> "SyncCall":
        """Takes what `Client.call` takes; enter it with `with`."""
        return SyncCall(self, self._client.call(**fields))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self.run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncCall:
    """A `ClientCall` whose methods wait."""

    def __init__(self, client: SyncClient, call: ClientCall) -> None:
        self._client = client
        self._call = call

    def __enter__(self) -> Self:
        self._client.run(self._call.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.run(self._call.__aexit__(kind, error, trace))

    @property
    def id(self) -> str | None:
        return self._call.id

    @property
    def briefing(self) -> CallBriefing:
        return self._call.briefing

    def turn(self, speaker: SpeakerName, text: str, **fields: Any) -> None:
        self._client.run(self._call.turn(speaker, text, **fields))

    def event(self, kind: str, data: Mapping[str, Any] | None = None) -> None:
        self._client.run(self._call.event(kind, data))

    def take_request(self, title: str, **fields: Any) -> str:
        return self._client.run(self._call.take_request(title, **fields))

    def search(self, query: str) -> str:
        return self._client.run(self._call.search(query))

    def end(self, reason: str = "completed") -> None:
        self._client.run(self._call.end(reason))
