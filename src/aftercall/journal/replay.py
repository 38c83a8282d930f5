"""Journal entries: how turns and events are encoded in them, and how a call is rebuilt.

While the database is away, two processes may record one call. Their entries have the same numbers
and say different things. What the first record lacks of the second is found by what it says and
when, and becomes a leg of the conversation (`make_leg`).
"""

import json.encoder
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple, TypeVar

from aftercall.ids import new_id
from aftercall.model.calls import Call, Event, LiveCall, Turn

INTERRUPTED = "interrupted"
RESUMABLE_ENDS = (INTERRUPTED, "server_stopped")
"""Ends that are ours, not the caller's: another leg may go on."""

_quote = json.encoder.encode_basestring_ascii

Item = TypeVar("Item", Turn, Event)


class JournalEntry(NamedTuple):
    """One row of the journal: an encoded turn or event."""

    call_id: str
    kind: str
    seq: int
    body: str


@dataclass(frozen=True)
class ReplayFault:
    """Damage in the journal of a call. Our writing never causes it, but the archive shows it."""

    kind: str
    entry: str
    seq: int


@dataclass(frozen=True)
class ReplayedCall:
    turns: tuple[Turn, ...]
    events: tuple[Event, ...]
    faults: tuple[ReplayFault, ...]


def to_entry(call_id: str, item: Turn | Event) -> JournalEntry:
    if isinstance(item, Turn):
        return JournalEntry(call_id, "turn", item.seq, _encode_turn(item))
    return JournalEntry(
        call_id, "event", item.seq, item.model_dump_json(exclude_none=True)
    )


def _encode_turn(turn: Turn) -> str:
    """Encodes by hand, with epoch seconds: half the time of pydantic, for every live turn."""
    confidence = "" if turn.confidence is None else f',"confidence":{turn.confidence!r}'
    delay = "" if turn.delay_ms is None else f',"delay_ms":{turn.delay_ms}'
    return (
        f'{{"seq":{turn.seq},"speaker":"{turn.speaker}","text":{_quote(turn.text)},'
        f'"at":{turn.at.timestamp()!r}{confidence}{delay}}}'
    )


def to_entries(call: Call) -> list[JournalEntry]:
    items: list[Turn | Event] = [*call.turns, *call.events]
    return [to_entry(call.id, item) for item in items]


def replay_entries(entries: Iterable[JournalEntry]) -> ReplayedCall:
    """Turns and events of entries in any order. Of two that differ, the first counts."""
    bodies: dict[tuple[str, int], str] = {}
    faults: list[ReplayFault] = []
    for entry in entries:
        if bodies.setdefault((entry.kind, entry.seq), entry.body) != entry.body:
            faults.append(ReplayFault("journal.conflict", entry.kind, entry.seq))
    ordered = sorted(bodies.items())
    turns = [
        Turn.model_validate_json(body) for (kind, _), body in ordered if kind == "turn"
    ]
    events = [
        Event.model_validate_json(body)
        for (kind, _), body in ordered
        if kind == "event"
    ]
    faults += _find_gaps("turn", turns)
    faults += _find_gaps("event", events)
    return ReplayedCall(tuple(turns), tuple(events), tuple(faults))


def _find_gaps(kind: str, items: Sequence[Turn | Event]) -> list[ReplayFault]:
    present = {item.seq for item in items}
    missing = set(range(1, max(present, default=0))) - present
    return [ReplayFault("journal.gap", kind, seq) for seq in sorted(missing)]


def to_finished_call(
    live: LiveCall,
    ended_at: datetime | None,
    end_reason: str | None,
    replayed: ReplayedCall,
) -> Call:
    """The call for the archive. Faults become events. Without an end, it was interrupted."""
    ended_at = ended_at or _find_last_activity(live, replayed)
    found = [
        Event(
            seq=1,
            kind=fault.kind,
            at=ended_at,
            data={"entry": fault.entry, "seq": fault.seq},
        )
        for fault in replayed.faults
    ]
    return Call.model_construct(
        **{name: getattr(live, name) for name in LiveCall.model_fields},
        schema_=1,
        ended_at=ended_at,
        end_reason=end_reason or INTERRUPTED,
        turns=_renumber(replayed.turns),
        events=_renumber([*replayed.events, *found]),
    )


def find_missing(
    replayed: ReplayedCall, turns: Iterable[Turn], events: Iterable[Event]
) -> list[Turn | Event]:
    """What was replayed and is not among these turns and events, whatever its number.

    A turn is the same if speaker, text and time are the same: a caller who says the same words
    twice is heard twice.
    """
    told = {(turn.speaker, turn.text, turn.at) for turn in turns}
    happened = {(event.kind, event.at) for event in events}
    missing: list[Turn | Event] = []
    for turn in replayed.turns:
        if (turn.speaker, turn.text, turn.at) not in told:
            missing.append(turn)
    for event in replayed.events:
        if (event.kind, event.at) not in happened:
            missing.append(event)
    return missing


def is_place_taken(missing: Iterable[Turn | Event], kept: ReplayedCall | Call) -> bool:
    """Whether other turns have the numbers of these: two processes wrote them.

    Events need no look of their own: each follows a turn of its process.
    """
    numbers = {turn.seq for turn in kept.turns}
    return any(isinstance(item, Turn) and item.seq in numbers for item in missing)


def compare_entries(
    ours: Iterable[JournalEntry], kept: Iterable[JournalEntry]
) -> tuple[list[Turn | Event], bool]:
    """What is only among ours, and whether other turns have its numbers."""
    written = replay_entries(kept)
    missing = find_missing(replay_entries(ours), written.turns, written.events)
    return missing, is_place_taken(missing, written)


def find_turns_behind(given: Sequence[Turn], known: Sequence[Turn]) -> list[Turn]:
    """What follows the known turns in a call that begins with the same words; else nothing."""
    said = [(turn.speaker, turn.text) for turn in given]
    if said[: len(known)] != [(turn.speaker, turn.text) for turn in known]:
        return []
    return list(given[len(known) :])


def make_leg(call: LiveCall, items: Sequence[Turn | Event], key: str = "") -> Call:
    """What another process recorded of a call, as a leg of its conversation.

    The sid is made of `key` or of the first item: a leg that is made again, because the process
    died before it could remove the file, is known by it and stored once.
    """
    named = key or items[0].model_dump_json()
    digest = sha256(named.encode()).hexdigest()[:16]
    changes = {
        "id": new_id(),
        "sid": f"{call.sid}.{digest}",
        "started_at": min(item.at for item in items),
        "resumes": call.id,
        "metadata": {"call_sid": call.sid, **call.metadata},
    }
    replayed = ReplayedCall(
        tuple(item for item in items if isinstance(item, Turn)),
        tuple(item for item in items if isinstance(item, Event)),
        (),
    )
    return to_finished_call(call.model_copy(update=changes), None, None, replayed)


def _find_last_activity(live: LiveCall, replayed: ReplayedCall) -> datetime:
    items: list[Turn | Event] = [*replayed.turns, *replayed.events]
    return max([live.started_at, *(item.at for item in items)])


def _renumber(items: Sequence[Item]) -> tuple[Item, ...]:
    return tuple(
        item if item.seq == seq else item.model_copy(update={"seq": seq})
        for seq, item in enumerate(items, 1)
    )
