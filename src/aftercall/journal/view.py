"""The words of a call, live or sealed, and calls as JSON."""

from collections.abc import Iterable, Sequence

from aftercall.clock import format_instant
from aftercall.db.conversations import PARTIES
from aftercall.journal.archive import Archive
from aftercall.journal.replay import ReplayedCall, replay_entries
from aftercall.journal.store import CallRow, CallStore
from aftercall.model.calls import BARGE_IN, Call, Event, Turn
from aftercall.model.json_fields import Json


def row_json(row: CallRow) -> Json:
    """A call without its words, for lists."""
    return {
        **row.live.model_dump(mode="json"),
        "state": row.state,
        "ended_at": row.ended_at and format_instant(row.ended_at),
        "end_reason": row.end_reason,
        "turn_count": row.turn_count,
        "archive": row.archive_name,
    }


def call_json(store: CallStore, archive: Archive, row: CallRow) -> Json:
    """One call with its turns, late ones marked, and its events."""
    row, call, late = read_words(store, archive, row)
    turns = [_turn_json(turn) for turn in call.turns]
    turns += [_turn_json(turn) | {"late": True} for turn in late]
    events = [event.model_dump(mode="json") for event in call.events]
    return row_json(row) | {"turns": turns, "events": events}


def read_words(
    store: CallStore, archive: Archive, row: CallRow
) -> tuple[CallRow, Call | ReplayedCall, tuple[Turn, ...]]:
    """The call and its late turns; the row anew if the call was sealed since it was read."""
    if row.archive_name is None:
        if entries := store.list_entries(row.live.id):
            return row, replay_entries(entries), ()
        row = store.get(row.live.id)  # sealing has taken the entries away
    if row.archive_name is None:
        return row, replay_entries([]), ()
    return row, *archive.read(row.archive_name)


def read_whole(archive: Archive, row: CallRow) -> Call:
    """A sealed call with the turns of its addenda as its last ones.

    Another record of the call may have told who calls after this one was sealed.
    """
    call, late = archive.read(str(row.archive_name))
    changes: Json = {"turns": (*call.turns, *late)}
    if call.caller is None:
        changes |= {name: getattr(row.live, name) for name in PARTIES}
    return call.model_copy(update=changes)


def read_live_turns(store: CallStore, row: CallRow) -> tuple[Turn, ...]:
    """The turns so far of a call that is not sealed."""
    return replay_entries(store.list_entries(row.live.id)).turns


def find_interruptions(
    turns: Sequence[Turn], events: Iterable[Event]
) -> dict[int, tuple[str, str]]:
    """The agent's turns that the caller interrupted, by number: what was said, what was heard.

    For each interruption, the last turn that had begun and ends with the words heard.
    """
    found = {}
    for event in events:
        if event.kind == BARGE_IN and (heard := str(event.data.get("heard", ""))):
            cut = [
                turn.seq
                for turn in turns
                if turn.speaker == "agent"
                and turn.at <= event.at
                and turn.text.endswith(heard)
            ]
            if cut:
                found[cut[-1]] = (str(event.data.get("said", heard)), heard)
    return found


def _turn_json(turn: Turn) -> Json:
    return turn.model_dump(mode="json", exclude_none=True)
