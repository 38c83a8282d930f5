"""Journal rows and the turns and events they stand for."""

import json.encoder
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from aftercall.journal.store import CallRow, JournalEntry
from aftercall.model.calls import Call, LiveCall
from aftercall.model.turns import Event, Turn

INTERRUPTED = "interrupted"

_quote = json.encoder.encode_basestring_ascii

Item = TypeVar("Item", Turn, Event)


@dataclass(frozen=True)
class ReplayFault:
    """Damage in a call's journal: never by our own writing, but it must show."""

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
    return JournalEntry(call_id, "event", item.seq, item.model_dump_json(exclude_none=True))


def _encode_turn(turn: Turn) -> str:
    """By hand, the time in epoch seconds: every turn of every live call passes here, and the
    general way takes twice as long.
    """
    confidence = "" if turn.confidence is None else f',"confidence":{turn.confidence!r}'
    return (
        f'{{"seq":{turn.seq},"speaker":"{turn.speaker}","text":{_quote(turn.text)},'
        f'"at":{turn.at.timestamp()!r}{confidence}}}'
    )


def to_entries(call: Call) -> list[JournalEntry]:
    return [
        *(to_entry(call.id, turn) for turn in call.turns),
        *(to_entry(call.id, event) for event in call.events),
    ]


def replay_entries(entries: Iterable[JournalEntry]) -> ReplayedCall:
    """Entries in any order, repeats allowed, as turns and events in theirs.

    The first of two that differ stands.
    """
    bodies: dict[tuple[str, int], str] = {}
    faults: list[ReplayFault] = []
    for entry in entries:
        if bodies.setdefault((entry.kind, entry.seq), entry.body) != entry.body:
            faults.append(ReplayFault("journal.conflict", entry.kind, entry.seq))
    turns = tuple(
        Turn.model_validate_json(bodies[key]) for key in sorted(bodies) if key[0] == "turn"
    )
    events = tuple(
        Event.model_validate_json(bodies[key]) for key in sorted(bodies) if key[0] == "event"
    )
    for kind, items in (("turn", turns), ("event", events)):
        present = {item.seq for item in items}
        faults += [
            ReplayFault("journal.gap", kind, seq)
            for seq in range(1, max(present, default=0))
            if seq not in present
        ]
    return ReplayedCall(turns, events, tuple(faults))


def to_finished_call(row: CallRow, replayed: ReplayedCall) -> Call:
    """The call as it goes into the archive; damage is written down, not papered over."""
    ended_at = row.ended_at or find_last_activity(row, replayed)
    found = [
        Event(seq=1, kind=fault.kind, at=ended_at, data={"entry": fault.entry, "seq": fault.seq})
        for fault in replayed.faults
    ]
    return Call.model_construct(
        **{name: getattr(row.live, name) for name in LiveCall.model_fields},
        schema_=1,
        ended_at=ended_at,
        end_reason=row.end_reason or INTERRUPTED,
        turns=_renumber(replayed.turns),
        events=_renumber([*replayed.events, *found]),
    )


def find_last_activity(row: CallRow, folded: ReplayedCall) -> datetime:
    """When a call that was cut off was last known to be alive."""
    spoken = [turn.at for turn in folded.turns]
    noted = [event.at for event in folded.events]
    return max([row.live.started_at, *spoken, *noted])


def _renumber(items: Sequence[Item]) -> tuple[Item, ...]:
    return tuple(
        item if item.seq == seq else item.model_copy(update={"seq": seq})
        for seq, item in enumerate(items, 1)
    )
