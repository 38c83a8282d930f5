"""Journal rows and the turns and events they stand for."""

import json.encoder
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from aftercall.journal.store import CallRow, Entry
from aftercall.model.calls import Call, LiveCall
from aftercall.model.turns import Event, Turn

INTERRUPTED = "interrupted"

_quote = json.encoder.encode_basestring_ascii

Item = TypeVar("Item", Turn, Event)


@dataclass(frozen=True)
class Fault:
    """Damage in a call's journal: never by our own writing, but it must show."""

    kind: str
    entry: str
    seq: int


@dataclass(frozen=True)
class Folded:
    turns: tuple[Turn, ...]
    events: tuple[Event, ...]
    faults: tuple[Fault, ...]


def entry_of(call_id: str, item: Turn | Event) -> Entry:
    if isinstance(item, Turn):
        return Entry(call_id, "turn", item.seq, _encode_turn(item))
    return Entry(call_id, "event", item.seq, item.model_dump_json(exclude_none=True))


def _encode_turn(turn: Turn) -> str:
    """By hand, the time in epoch seconds: every turn of every live call passes here, and the general way takes twice as long."""
    confidence = "" if turn.confidence is None else f',"confidence":{turn.confidence!r}'
    return f'{{"seq":{turn.seq},"speaker":"{turn.speaker}","text":{_quote(turn.text)},"at":{turn.at.timestamp()!r}{confidence}}}'


def entries_of(call: Call) -> list[Entry]:
    return [*(entry_of(call.id, turn) for turn in call.turns), *(entry_of(call.id, event) for event in call.events)]


def fold(entries: Iterable[Entry]) -> Folded:
    """Entries in any order, repeats allowed, as turns and events in theirs. The first of two that differ stands."""
    bodies: dict[tuple[str, int], str] = {}
    faults: list[Fault] = []
    for entry in entries:
        if bodies.setdefault((entry.kind, entry.seq), entry.body) != entry.body:
            faults.append(Fault("journal.conflict", entry.kind, entry.seq))
    turns = tuple(Turn.model_validate_json(bodies[key]) for key in sorted(bodies) if key[0] == "turn")
    events = tuple(Event.model_validate_json(bodies[key]) for key in sorted(bodies) if key[0] == "event")
    for kind, items in (("turn", turns), ("event", events)):
        present = {item.seq for item in items}
        faults += [Fault("journal.gap", kind, seq) for seq in range(1, max(present, default=0)) if seq not in present]
    return Folded(turns, events, tuple(faults))


def finished_call(row: CallRow, folded: Folded) -> Call:
    """The call as it goes into the archive; damage is written down, not papered over."""
    ended_at = row.ended_at or last_sign(row, folded)
    found = [Event(seq=1, kind=fault.kind, at=ended_at, data={"entry": fault.entry, "seq": fault.seq}) for fault in folded.faults]
    return Call.model_construct(
        **{name: getattr(row.live, name) for name in LiveCall.model_fields},
        schema_=1,
        ended_at=ended_at,
        end_reason=row.end_reason or INTERRUPTED,
        turns=_renumber(folded.turns),
        events=_renumber([*folded.events, *found]),
    )


def last_sign(row: CallRow, folded: Folded) -> datetime:
    """When a call that was cut off was last known to be alive."""
    spoken = [turn.at for turn in folded.turns]
    noted = [event.at for event in folded.events]
    return max([row.live.started_at, *spoken, *noted])


def _renumber(items: Sequence[Item]) -> tuple[Item, ...]:
    return tuple(item if item.seq == seq else item.model_copy(update={"seq": seq}) for seq, item in enumerate(items, 1))
