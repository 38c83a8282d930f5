"""Taking up what was kept on disk while the database was away. Taken up twice it is there once."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from aftercall.errors import AftercallError, CallErased
from aftercall.faults import reach
from aftercall.journal.archive import Archive
from aftercall.journal.fold import fold
from aftercall.journal.spill import SpillFolder, read
from aftercall.journal.store import CallRow, CallStore, Entry
from aftercall.log import get_logger
from aftercall.model.turns import Event, Turn

log = get_logger("spill")


def take_up_left(spill: SpillFolder, store: CallStore, archive: Archive, owner: str, now: datetime) -> list[str]:
    """Every file that nobody holds: its call is in the journal afterwards, for recovery to seal. One's trouble stops no other."""
    taken: list[str] = []
    for path in spill.files():
        with spill.taken(path) as is_ours:
            if not is_ours:
                continue
            try:
                taken += _take_up(path, store, archive, owner, now)
            except CallErased:
                log.warning("a call that was kept on disk has been erased since; its file goes")
            except AftercallError as error:
                log.warning("a call that was kept on disk cannot be taken up yet", call=path.stem, error=error.code)
                continue
            spill.remove(path)
    return taken


def _take_up(path: Path, store: CallStore, archive: Archive, owner: str, now: datetime) -> list[str]:
    spilled = read(path)
    if spilled is None:
        return []
    row = store.take_up(spilled.call, spilled.entries, owner, spilled.ended)
    reach("spill.after_take_up")
    if row.state == "sealed" and (late := find_late(archive, row, spilled.entries)):
        store.count_addenda(row.live.id, archive.attach(row.live.id, str(row.archive_name), late, now))
    log.warning("took up a call that was kept on disk", call=row.live.id, entries=len(spilled.entries))
    return [row.live.id]


def find_late(archive: Archive, row: CallRow, entries: Sequence[Entry]) -> list[Turn | Event]:
    """What the sealed call lacks of these: somebody sealed it while its own process did not know, or could not."""
    sealed, _ = archive.read(str(row.archive_name))
    folded = fold(entries)
    there = {(event.kind, event.at) for event in sealed.events}
    return [
        *(turn for turn in folded.turns if turn.seq > len(sealed.turns)),
        *(event for event in folded.events if (event.kind, event.at) not in there),
    ]
