"""Calls of agents that run elsewhere and report what is said while it is said.

A sender numbers its turns, so a repeated one is written once. While the sender is heard of, the
call is live; when its lease runs out, the call is sealed as interrupted. A sender that comes back
to a sealed call opens another leg of it, whose numbers go on where the last one ended.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from aftercall.bridge.caller_tracker import briefed_facts
from aftercall.bridge.tools import Toolbox
from aftercall.bridge.turn_call import CallSession, SessionParts
from aftercall.clock import Instant
from aftercall.errors import (
    AftercallError,
    CallElsewhere,
    CallNotLive,
    CallTaken,
    DatabaseUnreachable,
    JournalConflict,
    JournalGap,
    RefusedInput,
)
from aftercall.journal.replay import INTERRUPTED, RESUMABLE_ENDS
from aftercall.journal.store import CallRow
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import (
    MAX_CALL_CHARS,
    MAX_CLOCK_DRIFT,
    MAX_DURATION,
    MAX_TURN_CHARS,
    MAX_TURNS,
    SENDER,
    LiveCall,
    Speaker,
    Turn,
    parse_speaker,
)
from aftercall.model.json_fields import Json
from aftercall.model.plain_json import clean_json
from aftercall.who.identity import NoticedCaller

ENDED_CALL_RETENTION_S = 600.0  # for repeats of a sender that missed the answer
MAX_EVENT_BYTES = 65_536
RESERVED_KINDS = ("briefing.", "caller.", "journal.", "passcode.", "request.")
"""Kinds of events that only we write: they say what we told, learned and took down."""
TAKEOVER_S = 2.0  # a process that has a call hears within a second that its sender left
SENDER_SEQ = "sender_seq"  # in the data of an event: the sender's number of it
# in the metadata of a later leg: turns of the legs before
TURNS_BEFORE = "turns_before"

log = get_logger("remote_call")

Notify = Callable[[str, Json], None]
"""Tells the sender something that it did not ask for: its kind, and what it says."""


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SentTurn(_Sent):
    """A turn as its sender reports it. Without `at` it was said now."""

    seq: int | None = Field(default=None, ge=1)
    speaker: Annotated[Speaker, BeforeValidator(parse_speaker)]
    text: Annotated[str, BeforeValidator(clean_json), Field(max_length=MAX_TURN_CHARS)]
    at: Instant | None = None
    confidence: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)


class SentEvent(_Sent):
    """An event as its sender reports it. One whose `seq` is known is a repeat."""

    seq: int | None = Field(default=None, ge=1)
    kind: str = Field(pattern=r"^[a-z][a-z0-9_.]{0,63}$")
    at: Instant | None = None
    data: Annotated[Json, BeforeValidator(clean_json)] = Field(default_factory=dict)


@dataclass(frozen=True)
class RemoteCallParts(SessionParts):
    lease_s: float = field(kw_only=True)


@dataclass(frozen=True)
class PreviousLeg:
    """The last leg of a call that its sender comes back to."""

    call: LiveCall
    number: int
    turns: int
    """Of this leg and those before."""
    event_seqs: frozenset[int]
    ended_at: datetime
    end_reason: str


class RemoteCall:
    """A call whose agent runs elsewhere. Its turns are journaled as ours are, once each."""

    def __init__(
        self, parts: RemoteCallParts, call: LiveCall, previous: PreviousLeg | None
    ) -> None:
        self._parts = parts
        self._session = CallSession(parts, call)
        self._turns_before = int(call.metadata.get(TURNS_BEFORE, 0))
        self._event_seqs = set(previous.event_seqs if previous else ())
        self._leg = previous.number + 1 if previous else 1
        self._chars = 0
        self._last_at = {"turn": call.started_at, "event": call.started_at}
        self._lock = asyncio.Lock()
        self._identity_lock = asyncio.Lock()
        self._learning: set[asyncio.Task[None]] = set()
        self._sealing: asyncio.Task[None] | None = None
        self.seen_s = parts.clock.monotonic()
        self.briefing = Briefing(parts.greeting)
        self.notify: Notify | None = None
        self.end_reason: str | None = None
        self.ended_at: datetime | None = None

    @property
    def call(self) -> LiveCall:
        return self._session.call

    @property
    def turns(self) -> int:
        """How many of the sender's turns are on disk."""
        return self._turns_before + self._session.recorder.next_turn_seq - 1

    async def open(self) -> None:
        self.briefing = await self._session.open()
        await self._session.join()
        await self._record_briefed_facts()

    def renew(self) -> None:
        """The sender was heard of."""
        self.seen_s = self._parts.clock.monotonic()

    def is_expired(self) -> bool:
        clock = self._parts.clock
        is_silent = clock.monotonic() - self.seen_s > self._parts.lease_s
        return is_silent or clock.now() - self.call.started_at > MAX_DURATION

    async def write_turns(
        self, turns: Sequence[SentTurn], shift: timedelta = timedelta()
    ) -> None:
        """Returns when they are on disk. Those before one that is refused stay written."""
        for sent in turns:
            async with self._lock:
                is_new = await self._write_turn(sent, shift)
            if is_new:
                self._follow_caller(sent)

    async def write_event(
        self, sent: SentEvent, shift: timedelta = timedelta()
    ) -> None:
        if sent.kind.startswith(RESERVED_KINDS):
            raise RefusedInput("kind", f"{sent.kind} is written by Aftercall only")
        if len(json.dumps(sent.data)) > MAX_EVENT_BYTES:
            raise RefusedInput("data", f"is longer than {MAX_EVENT_BYTES:,} bytes")
        self._refuse_ended()
        await self._append_event(sent.kind, sent.data, sent.seq, sent.at, shift)

    async def run_tool(self, name: str, arguments: str, seq: int | None) -> str:
        """The sentence for the agent. A request with a known `seq` is taken down once."""
        self._refuse_ended()
        record = partial(self._append_event, seq=seq)
        tools = Toolbox(self.call, record, self._recall, self._parts.clock)
        return (await tools.run(name, arguments)).text

    async def get_briefing(self) -> Briefing:
        """The briefing of the person it is by now."""
        await self._await_learning()
        return self.briefing

    async def end(self, reason: str, ended_at: datetime | None = None) -> None:
        """Returns when the call is in the archive, or left to recovery. The first end counts."""
        if self.end_reason is None:
            self.end_reason = reason
            self.ended_at = ended_at or self._parts.clock.now()
            self._sealing = asyncio.create_task(self._seal(reason, self.ended_at))
        if self._sealing is not None:
            await asyncio.shield(self._sealing)

    async def interrupt(self) -> None:
        """The sender is gone: the call ended when it was last heard of something."""
        await self.end(INTERRUPTED, max(self._last_at.values()))
        if self.notify is not None:
            self.notify("ended", {"reason": INTERRUPTED})

    def as_previous(self) -> PreviousLeg | None:
        """What another leg continues; None while this one is live."""
        if self.end_reason is None or self.ended_at is None:
            return None
        return PreviousLeg(
            self.call,
            self._leg,
            self.turns,
            frozenset(self._event_seqs),
            self.ended_at,
            self.end_reason,
        )

    async def _write_turn(self, sent: SentTurn, shift: timedelta) -> bool:
        self._refuse_ended()
        next_seq = self.turns + 1
        seq = sent.seq or next_seq
        if seq > next_seq:
            raise JournalGap(f"turn {seq} came where {next_seq} is next")
        if seq < next_seq:
            self._refuse_other_words(seq, sent)
            return False
        self._chars += len(sent.text)
        if next_seq > MAX_TURNS or self._chars > MAX_CALL_CHARS:
            raise RefusedInput(
                "turns",
                f"are more than {MAX_TURNS:,}, or {MAX_CALL_CHARS:,} characters",
            )
        at = self._place_in_time("turn", sent.at, shift)
        await self._session.append_turn(sent.speaker, sent.text, at, sent.confidence)
        return True

    def _refuse_other_words(self, seq: int, sent: SentTurn) -> None:
        """A repeated turn must say the same; its time may differ. Earlier legs are sealed."""
        place = seq - self._turns_before
        if place < 1:
            return
        entry = self._session.recorder.get_entry("turn", place)
        written = Turn.model_validate_json(entry.body)
        if (written.speaker, written.text) != (sent.speaker, sent.text):
            raise JournalConflict(f"turn {seq} is already written, with other words")

    async def _append_event(
        self,
        kind: str,
        data: Json,
        seq: int | None = None,
        at: datetime | None = None,
        shift: timedelta = timedelta(),
    ) -> None:
        async with self._lock:
            if seq is not None and seq in self._event_seqs:
                return
            recorder = self._session.recorder
            if recorder.next_event_seq > MAX_TURNS:
                raise RefusedInput("events", f"are more than {MAX_TURNS:,}")
            numbered = data if seq is None else {**data, SENDER_SEQ: seq}
            when = self._place_in_time("event", at, shift)
            await self._session.append_event(kind, numbered, when)
            if seq is not None:
                self._event_seqs.add(seq)

    def _refuse_ended(self) -> None:
        if self.end_reason is not None:
            raise CallNotLive(f"call {self.call.id} has ended ({self.end_reason})")

    def _place_in_time(
        self, kind: str, at: datetime | None, shift: timedelta
    ) -> datetime:
        """In our time, not in the future, and never before the entry of its kind before.

        A platform reports all turns at the end, after the events of the call.
        """
        now = self._parts.clock.now()
        last_at = self._last_at[kind]
        self._last_at[kind] = max(last_at, min(at + shift, now) if at else now)
        return self._last_at[kind]

    def _follow_caller(self, sent: SentTurn) -> None:
        """Who is calling is found out beside the turns: nobody waits for it."""
        identity = self._session.identity
        noticed = identity.process_turn(sent.speaker, sent.text) if identity else None
        if noticed is not None:
            learning = asyncio.create_task(self._learn_caller(noticed))
            self._learning.add(learning)
            learning.add_done_callback(self._learning.discard)

    async def _learn_caller(self, noticed: NoticedCaller) -> None:
        async with self._identity_lock:
            learned, briefing = await self._session.learn_caller(noticed)
            for kind, data in learned.events if learned else ():
                await self._try_append(kind, data)
            if briefing is None:
                return
            self.briefing = briefing
            await self._record_briefed_facts()
            if self.notify is not None:
                self.notify("briefing", {})

    async def _record_briefed_facts(self) -> None:
        if event := briefed_facts(self.briefing):
            await self._try_append(*event)

    async def _try_append(self, kind: str, data: Json) -> None:
        try:
            await self._append_event(kind, data)
        except AftercallError as error:
            log.error(
                "an entry could not be written", call=self.call.id, error=error.code
            )

    async def _recall(self, call: LiveCall, query: str) -> Sequence[str]:
        await self._await_learning()
        identity = self._session.identity
        if identity is None:
            return ()
        return await asyncio.to_thread(identity.search_memory, query)

    async def _await_learning(self) -> None:
        await asyncio.gather(*self._learning, return_exceptions=True)

    async def _seal(self, reason: str, ended_at: datetime) -> None:
        await self._await_learning()
        await self._session.seal(reason, max(ended_at, *self._last_at.values()))


@dataclass(frozen=True)
class RemoteStart:
    """A call that a sender begins or comes back to. Its `sid` is the sender's own.

    `turns` is how many of its turns the sender knows to be on disk.
    """

    call: LiveCall
    sender: str = ""
    turns: int = 0
    lease_s: float | None = None
    """How long the sender may be silent; None for the setting."""


class RemoteCalls:
    """The calls of this process whose agents run elsewhere."""

    def __init__(self, parts: RemoteCallParts) -> None:
        self._parts = parts
        self._journal = parts.journal
        self._by_sid: dict[tuple[str, str], RemoteCall] = {}
        self._by_id: dict[str, RemoteCall] = {}
        self._opening: dict[tuple[str, str], asyncio.Task[RemoteCall]] = {}

    async def start(self, start: RemoteStart) -> RemoteCall:
        """Opens the call, or finds the one that its sender began before."""
        key = (start.call.source, start.call.sid)
        if key not in self._opening:
            self._opening[key] = asyncio.create_task(self._open(start))
            self._opening[key].add_done_callback(lambda _: self._opening.pop(key))
        found = await asyncio.shield(self._opening[key])
        _refuse_other_sender(found.call, start)
        found.renew()
        return found

    def find_live(self, source: str, sid: str) -> RemoteCall | None:
        """The call of this process that goes on; its sender was heard of."""
        found = self._by_sid.get((source, sid))
        if found is None or found.end_reason is not None:
            return None
        found.renew()
        return found

    async def get(self, call_id: str, sender: str = "") -> RemoteCall:
        found = self._by_id.get(call_id)
        if found is None:
            row = await asyncio.to_thread(self._journal.store.get, call_id)
            if row.state != "sealed" and self._journal.is_elsewhere(row):
                raise CallElsewhere(
                    f"call {call_id} is live in another process: send all requests of a call "
                    "to one process, or start it again here",
                    TAKEOVER_S,
                )
            raise CallNotLive(f"call {row.live.id} is not live in this process")
        if found.call.metadata.get(SENDER) != sender:
            raise CallTaken(f"call {call_id} belongs to another sender")
        found.renew()
        return found

    def find_by_id(self, call_id: str) -> RemoteCall | None:
        return self._by_id.get(call_id)

    async def end_expired(self) -> None:
        """Ends the calls of senders that are gone; forgets those that ended long ago."""
        now_s = self._parts.clock.monotonic()
        for call_id, call in list(self._by_id.items()):
            if call.end_reason is None and call.is_expired():
                log.warning("a sender is gone; its call is sealed", call=call_id)
                await call.interrupt()
            elif call.end_reason and now_s - call.seen_s > ENDED_CALL_RETENTION_S:
                del self._by_id[call_id]
        for key, call in list(self._by_sid.items()):
            if call.call.id not in self._by_id:
                del self._by_sid[key]

    async def _open(self, start: RemoteStart) -> RemoteCall:
        key = (start.call.source, start.call.sid)
        known = self._by_sid.get(key)
        if known is not None and known.end_reason is None:
            return known
        previous = known.as_previous() if known else None
        if previous is None:
            with suppress(DatabaseUnreachable):  # the call begins without the database
                previous = await asyncio.to_thread(self._find_previous, start)
        if previous is not None:
            _refuse_other_sender(previous.call, start)
            if previous.end_reason not in RESUMABLE_ENDS:
                raise CallNotLive(f"{' call '.join(key)} has ended")
        parts = self._parts
        if start.lease_s is not None:
            parts = replace(parts, lease_s=start.lease_s)
        opened = RemoteCall(parts, self._make_leg(start, previous), previous)
        await opened.open()
        self._by_sid[key] = self._by_id[opened.call.id] = opened
        return opened

    def _make_leg(self, start: RemoteStart, previous: PreviousLeg | None) -> LiveCall:
        call = start.call
        now = self._parts.clock.now()
        fields: Json = {"started_at": min(call.started_at, now)}
        metadata = {**call.metadata, SENDER: start.sender}
        turns = max(start.turns, previous.turns if previous else 0)
        if turns:
            metadata[TURNS_BEFORE] = turns
        if previous is not None:
            fields["sid"] = f"{call.sid}.{previous.number + 1}"
            fields["verified"] = call.verified or previous.call.verified
            metadata["call_sid"] = call.sid
            started_at = max(fields["started_at"], previous.ended_at)
            fields["started_at"] = started_at
            if started_at - previous.ended_at <= self._journal.reconnect_window:
                fields["resumes"] = previous.call.id
                fields["conversation"] = previous.call.conversation
        return call.model_copy(update=fields | {"metadata": metadata})

    def _find_previous(self, start: RemoteStart) -> PreviousLeg | None:
        """The last leg in the database. One that its process left behind is sealed first.

        A process that has the call is asked to end its leg: its sender is here now.
        """
        source, sid = start.call.source, start.call.sid
        handovers = self._journal.handovers
        found = handovers.find_last_leg(source, sid)
        if found is None:
            return None
        row, number = found
        if SENDER not in row.live.metadata:
            raise CallTaken(f"{source} call {sid} is known from elsewhere")
        if row.state != "sealed" and self._journal.is_abandoned(row):
            self._journal.seal_abandoned(row)
            row = self._journal.store.get(row.live.id)
        if row.state != "sealed":
            _refuse_other_sender(row.live, start)
            if handovers.is_shared and self._journal.is_elsewhere(row):
                handovers.ask_to_end(row.live.id, INTERRUPTED)
            told = f"{source} call {sid} is live in another process; try again"
            raise CallElsewhere(told, TAKEOVER_S)
        return self._read_previous(row, number)

    def _read_previous(self, row: CallRow, number: int) -> PreviousLeg:
        events: frozenset[int] = frozenset()
        if row.archive_name is not None:  # else its transcript was removed
            sealed, _ = self._journal.archive.read(row.archive_name)
            numbers = (event.data.get(SENDER_SEQ) for event in sealed.events)
            events = frozenset(seq for seq in numbers if isinstance(seq, int))
        before = int(row.live.metadata.get(TURNS_BEFORE, 0))
        return PreviousLeg(
            row.live,
            number,
            before + row.turn_count,
            events,
            row.ended_at or row.live.started_at,
            row.end_reason or INTERRUPTED,
        )


def _refuse_other_sender(call: LiveCall, start: RemoteStart) -> None:
    """Two agents may not share a sid: their turns would get mixed up."""
    wanted = start.call
    is_same = (call.agent_id, call.caller, call.direction) == (
        wanted.agent_id,
        wanted.caller,
        wanted.direction,
    )
    if not is_same or call.metadata.get(SENDER) != start.sender:
        raise CallTaken(f"{wanted.source} call {wanted.sid} belongs to another sender")


def find_clock_shift(sent_at: datetime | None, now: datetime) -> timedelta:
    """What to add to a sender's times: its clock may be off by a day."""
    off = now - sent_at if sent_at else timedelta()
    return off if abs(off) > MAX_CLOCK_DRIFT else timedelta()
