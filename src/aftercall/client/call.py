"""One call of an agent, as its agent sees it: what is said goes to the server in order, once.

What the server has not stored within a second, or before the connection ended, is written to the
call's spool file; then it is acknowledged all the same. It stays in the queue until the server
has it.
"""

import asyncio
import json
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from aftercall.client.spool import SpoolFile, SpoolFull, UnsentItem

if TYPE_CHECKING:
    from aftercall.client import Client

ANSWER_TIMEOUT_S = 1.0  # then a turn goes to the spool
START_TIMEOUT_S = 3.0  # then a call begins without a briefing
TOOL_TIMEOUT_S = 4.0
END_TIMEOUT_S = 10.0
RETRY_INTERVAL_S = 0.2
MAX_TURN_CHARS = 100_000
MAX_BATCH_CHARS = 200_000
MAX_BATCH_ITEMS = 200
NOT_NOW = "That did not work just now. Say so; you may offer to take it down instead."
TAKEN_DOWN = (
    "Taken down. It will be worked on after the call; do not say that it is done."
)
TAKE_REQUEST = "take_request"
RESERVED_KINDS = ("briefing.", "caller.", "journal.", "passcode.", "request.")
ENDED = "journal.not_live"  # the server's code for a call that is sealed
_KIND = re.compile(r"[a-z][a-z0-9_.]{0,63}")

log = logging.getLogger("aftercall.client")

SpeakerName = Literal["caller", "agent"]


class CallRefused(Exception):
    """The server refuses the call, or something of it; `code` says why."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.retryable = retryable


class LinkLost(Exception):
    """The connection ended before the answer came."""


@dataclass(frozen=True)
class CallBriefing:
    """What is known of the caller. Empty while the server is away.

    `text` is for the agent's prompt, `greeting` is what the caller hears first. `data` is the
    whole answer of `GET /api/live/{id}/briefing`.
    """

    greeting: str = ""
    text: str = field(default="", repr=False)
    caller_name: str | None = None
    resumes: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CallBriefing":
        name = data["caller_name"]
        resumes = data["resumes"]
        return cls(data["first_words"], data["text"], name, resumes, data)


class ClientCall:
    """A call that an agent elsewhere reports.

    What the server has not acknowledged waits in the spool and is sent again, in order.
    """

    def __init__(
        self,
        client: "Client",
        info: Mapping[str, Any],
        on_briefing: Callable[[CallBriefing], None] | None = None,
        leftover: SpoolFile | None = None,
    ) -> None:
        """`leftover` is the file of a process that died: it is sent, and nothing is added."""
        self._client = client
        self._is_entered = False
        self._file = leftover
        self._items: deque[UnsentItem] = deque(leftover.items if leftover else ())
        self._turns = self._events = 0
        self._end: UnsentItem | None = None
        self._failure: CallRefused | None = None
        self._delivering: asyncio.Task[None] | None = None
        self._saving = asyncio.Lock()
        self._spool_timer: asyncio.TimerHandle | None = None
        self._spooling: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._started = asyncio.Event()
        self.info = dict(info)
        self.is_leftover = leftover is not None
        self.drained = asyncio.Event()
        """Set while the server has stored everything."""
        self.id: str | None = None
        """The server's id of the call, once it has answered."""
        self.briefing = CallBriefing()
        self.briefing_listeners = [on_briefing] if on_briefing else []
        """Called when the briefing changes during the call, or comes late."""
        self.tools: Sequence[Mapping[str, Any]] = ()
        """Name, description and parameters of what `run_tool` does, as models take them."""

    async def __aenter__(self) -> Self:
        self._file = self._client.attach(self)
        self._file.set_info(self.info | {"started_at": time.time()})
        self.info = self._file.info
        self._items.extend(self._file.items)
        self._turns = _find_last(self._items, "turns", self._file.turns)
        self._events = _find_last(self._items, "events", self._file.events)
        self.deliver()
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._started.wait()
        except TimeoutError:
            log.warning("the server is away; the call begins without a briefing")
        if self._failure is not None:
            raise self._failure
        self._is_entered = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._failure is None:
            await self.end("completed" if kind is None else "agent_failed")

    async def turn(
        self,
        speaker: SpeakerName,
        text: str,
        *,
        at: float | None = None,
        confidence: float | None = None,
    ) -> None:
        """Returns when the turn is on disk, here or there. `at` is in epoch seconds."""
        await self._store("turns", make_turn(speaker, text, at, confidence))

    async def event(
        self,
        kind: str,
        data: Mapping[str, Any] | None = None,
        *,
        at: float | None = None,
    ) -> None:
        """Something besides speech: a tool used, or `barge_in` with the words `heard`."""
        await self._store("events", make_event(kind, data or {}, at))

    def post(self, op: str, fields: dict[str, Any]) -> None:
        """Queues a turn or an event and returns at once. It is on disk about a second later.

        One timer watches over all that is posted: the server mostly answers before it ends.
        """
        self._add(op, fields)
        if self._spool_timer is None:
            wait_s = ANSWER_TIMEOUT_S if self._client.is_connected else 0.0
            loop = asyncio.get_running_loop()
            self._spool_timer = loop.call_later(wait_s, self._spool_posted)

    async def take_request(
        self,
        title: str,
        *,
        kind: str = "other",
        details: str = "",
        person: str = "",
        due: str | None = None,
    ) -> str:
        """Takes down what the caller wants done. Returns the sentence for the agent."""
        if not title.strip():
            raise ValueError("title: is empty")
        fields = {"kind": kind, "title": title, "details": details, "person": person}
        plain = _to_plain(fields | ({"due": due} if due else {}))
        return await self._store("tool", plain, TOOL_TIMEOUT_S) or TAKEN_DOWN

    async def search(self, query: str) -> str:
        """What is known from earlier calls, for the agent. Not while the server is away."""
        return await self.run_tool("search_memory", {"query": query})

    async def run_tool(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Does what the agent's model asks for, by a name in `tools`. Returns its answer."""
        try:
            plain = _to_plain(arguments)
            if name == TAKE_REQUEST:
                return await self._store("tool", plain, TOOL_TIMEOUT_S) or TAKEN_DOWN
            asking = self._client.ask("tool", call=self.id, name=name, arguments=plain)
            answer = await asyncio.wait_for(asking, TOOL_TIMEOUT_S)
        except (LinkLost, CallRefused, SpoolFull, TimeoutError, ValueError):
            return NOT_NOW
        return str(answer["text"])

    async def end(self, reason: str = "completed") -> None:
        """Returns when the call is sealed, or its end is in the spool."""
        if self._end is None:
            fields = {"reason": reason, "ended_at": time.time()}
            await self._store("end", fields, END_TIMEOUT_S)
            await self._client.close_if_unused()

    def deliver(self) -> None:
        """The connection is there: sends what waits."""
        if self._delivering is None or self._delivering.done():
            self._delivering = asyncio.create_task(self._deliver())

    def on_link_lost(self) -> None:
        """What is not stored yet goes to the spool."""
        for item in self._items:
            if item.stored is not None and not item.stored.done():
                item.stored.set_result(None)
        if self._spool_timer is not None:
            self._spool_timer.cancel()
            self._spool_posted()
        self._wake.set()

    def stop(self) -> None:
        if self._delivering is not None:
            self._delivering.cancel()
        if self._file is not None:
            self._file.close()
            self._file = None

    def release_file(self) -> SpoolFile:
        """Hands the file of a leftover to the call that goes on with it."""
        file, self._file = self._file, None
        assert file is not None  # noqa: S101 - a leftover has one until it is sent
        if self._delivering is not None:
            self._delivering.cancel()
        return file

    def receive(self, message: Mapping[str, Any]) -> None:
        """What was not asked for, such as the briefing of another person who is calling."""
        if message["op"] == "briefing":
            before = self.briefing.text
            self.briefing = CallBriefing.from_json(message["briefing"])
            if self._is_entered and self.briefing.text != before:
                for listener in self.briefing_listeners:
                    listener(self.briefing)

    async def _store(
        self, op: str, fields: dict[str, Any], timeout_s: float = ANSWER_TIMEOUT_S
    ) -> str:
        """Returns when it is on disk: what the server answered, or nothing from the spool."""
        item = self._add(op, fields)
        stored = item.stored = asyncio.get_running_loop().create_future()
        answer: str | None = None
        if self._client.is_connected:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    answer = await stored
        if answer is None:
            await self._save_unsent()
        return answer or ""

    def _add(self, op: str, fields: dict[str, Any]) -> UnsentItem:
        if self._failure is not None:
            raise self._failure
        if self._end is not None or self._file is None:
            raise CallRefused(ENDED, "the call has ended")
        if op == "turns":
            self._turns += 1
        elif op in ("events", "tool"):
            self._events += 1
        seq = self._turns if op == "turns" else self._events
        item = UnsentItem(op, seq, fields)
        if op == "end":
            self._end = item
        self._items.append(item)
        self.drained.clear()
        self._wake.set()
        return item

    def _spool_posted(self) -> None:
        self._spool_timer = None
        if any(not item.is_spooled for item in self._items):
            self._spooling = asyncio.create_task(self._save_unsent())
            self._spooling.add_done_callback(_log_failure)

    async def _save_unsent(self) -> None:
        """With everything before it: the file has no gap, wherever the process ends."""
        async with self._saving:
            unsaved = [item for item in self._items if not item.is_spooled]
            if unsaved and self._file is not None:
                await asyncio.to_thread(self._file.append, unsaved)

    async def _deliver(self) -> None:
        while True:
            try:
                await self._start_call()
                while await self._send_next():
                    pass
                return
            except LinkLost:
                return  # the client calls `deliver` when it is connected again
            except CallRefused as error:
                has_end = any(item.op == "end" for item in self._items)
                if error.code == ENDED and self.id is None and has_end:
                    await self._finish()  # the answer to the end was lost
                    return
                # A call that was sealed meanwhile gets another leg.
                is_sealed = error.code == ENDED and self.id is not None
                if not is_sealed and not error.retryable:
                    self._fail(error)
                    return
                await asyncio.sleep(RETRY_INTERVAL_S)

    async def _start_call(self) -> None:
        """Begins the call, or comes back to it: the server tells which turns it has."""
        self.id = None
        stored = self._file.turns if self._file else 0
        info = {name: value for name, value in self.info.items() if value is not None}
        if stored:
            first = self._items[0].fields if self._items else {}
            info["started_at"] = first.get("at", time.time())
        answer = await self._client.ask("start", **info, turns=stored)
        self.id = answer["call"]
        self._client.heartbeat_s = answer["lease_s"] / 3
        self.tools = answer["tools"]
        self.receive({"op": "briefing", "briefing": answer["briefing"]})
        self._turns = max(self._turns, answer["turns"])
        while self._items and self._items[0].op == "turns":
            if self._items[0].seq > answer["turns"]:
                break
            self._acknowledge([self._items[0]])
        self._started.set()

    async def _send_next(self) -> bool:
        """Sends what is first in the queue, or waits for it; False when there is no more."""
        if not self._items:
            async with self._saving:
                if not self._items:
                    if self._file is not None:
                        self._file.clear()
                    self.drained.set()
            if self.is_leftover:
                await self._finish()
                return False
            await self._wake.wait()
        self._wake.clear()
        if not self._client.is_connected:
            raise LinkLost
        batch = _take_batch(self._items)
        if not batch:
            return True
        op, fields = _describe(batch)
        answer = await self._client.ask(op, call=self.id, **fields)
        self._acknowledge(batch, str(answer.get("text", "")))
        if batch[0].op == "end":
            await self._finish()
            return False
        return True

    def _acknowledge(self, batch: list[UnsentItem], answer: str = "") -> None:
        """The server has stored the first items of the queue."""
        for item in batch:
            self._items.popleft()
            if item.stored is not None and not item.stored.done():
                item.stored.set_result(answer)
        if self._file is not None:
            last = {item.op == "turns": item.seq for item in batch}
            self._file.set_counts(last.get(True, 0), last.get(False, 0))

    async def _finish(self) -> None:
        self._acknowledge(list(self._items))
        async with self._saving:
            if self._file is not None:
                self._file.remove()
                self._file = None
        self.drained.set()
        self._client.detach(self)
        await self._client.close_if_unused()

    def _fail(self, error: CallRefused) -> None:
        """What is said from here on raises the error; what was spooled is put aside."""
        log.error("the server refuses the call: %s", error.code)
        self._failure = error
        for item in self._items:
            if item.stored is not None and not item.stored.done():
                item.stored.set_exception(error)
                item.stored.exception()  # it is logged: no task need look at it
        if self._file is not None:
            self._file.refuse()
            self._file = None
        self._started.set()
        self.drained.set()
        self._client.detach(self)


def make_turn(
    speaker: SpeakerName, text: str, at: float | None, confidence: float | None
) -> dict[str, Any]:
    """A turn as it is sent. Raises ValueError."""
    if speaker not in ("caller", "agent"):
        raise ValueError("speaker: is not caller or agent")
    if len(text) > MAX_TURN_CHARS:
        raise ValueError(f"text: is longer than {MAX_TURN_CHARS:,} characters")
    if confidence is not None and not 0 <= confidence <= 1:
        raise ValueError("confidence: is not between 0 and 1")
    fields = {"speaker": speaker, "text": _clean(text), "at": at or time.time()}
    if confidence is not None:
        fields["confidence"] = confidence
    return fields


def make_event(
    kind: str, data: Mapping[str, Any], at: float | None = None
) -> dict[str, Any]:
    """An event as it is sent. Raises ValueError or TypeError."""
    if not _KIND.fullmatch(kind) or kind.startswith(RESERVED_KINDS):
        raise ValueError("kind: is not a name like tool.used, or is Aftercall's")
    return {"kind": kind, "data": _to_plain(data), "at": at or time.time()}


def _find_last(items: Iterable[UnsentItem], op: str, stored: int) -> int:
    """The last number of a kind; requests are numbered among the events."""
    kinds = (op, "tool") if op == "events" else (op,)
    return max([stored, *(item.seq for item in items if item.op in kinds)])


def _take_batch(items: Sequence[UnsentItem]) -> list[UnsentItem]:
    """The first items, as far as one message can hold them: of one kind, not too long."""
    batch: list[UnsentItem] = []
    chars = 0
    for item in items:
        chars += len(str(item.fields)) if len(items) > 1 else 0
        is_full = chars > MAX_BATCH_CHARS or len(batch) == MAX_BATCH_ITEMS
        if batch and (is_full or item.op != batch[0].op):
            break
        batch.append(item)
        if item.op in ("tool", "end"):
            break
    return batch


def _log_failure(saving: "asyncio.Task[None]") -> None:
    """Nobody waits for what was posted."""
    if not saving.cancelled() and saving.exception() is not None:
        log.error("not stored: %s", type(saving.exception()).__name__)


def _describe(batch: list[UnsentItem]) -> tuple[str, dict[str, Any]]:
    """The message that hands the items over."""
    first = batch[0]
    if first.op == "end":
        return "end", first.fields
    if first.op == "tool":
        use = {"name": TAKE_REQUEST, "arguments": first.fields, "seq": first.seq}
        return "tool", use
    return first.op, {first.op: [{"seq": item.seq, **item.fields} for item in batch]}


def _to_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ValueError or TypeError for what is not JSON."""
    text = json.dumps(dict(data), allow_nan=False, ensure_ascii=False)
    plain: dict[str, Any] = json.loads(_clean(text))
    return plain


def _clean(text: str) -> str:
    """Halves of characters cannot be sent."""
    return text.encode("utf-8", "replace").decode()
