"""At start, and then every minute: calls that nobody keeps any more are sealed and go the same
way as any other.
"""

from dataclasses import dataclass

from aftercall.errors import error_code
from aftercall.journal.record import Journal
from aftercall.journal.spill import find_late_items
from aftercall.journal.store import CallRow
from aftercall.log import get_logger

RECOVERY_INTERVAL_S = 60.0

log = get_logger("recover")


@dataclass(frozen=True)
class RecoveryResult:
    sealed: tuple[str, ...]
    failed: tuple[str, ...]


def recover(journal: Journal) -> RecoveryResult:
    """Seal what crashed processes left open. One call's trouble never stops another's recovery."""
    sealed: list[str] = []
    failed: list[str] = []
    journal.import_spilled()
    abandoned = [row for row in journal.store.list_unsealed() if journal.is_abandoned(row)]
    for row in abandoned:
        try:
            if journal.seal_abandoned(row) is not None:
                sealed.append(row.live.id)
                log.warning("recovered a call", call=row.live.id, was=row.state)
        except Exception as error:  # noqa: BLE001 - the edge of one call: the others are recovered all the same
            failed.append(row.live.id)
            log.warning(
                "cannot recover a call yet",
                call=row.live.id,
                error=error_code(error),
            )
    for call_id in journal.store.list_late_calls():
        _attach_late(journal, journal.store.get(call_id))
    journal.presence.remove_dead(in_use={row.owner for row in journal.store.list_unsealed()})
    return RecoveryResult(tuple(sealed), tuple(failed))


def _attach_late(journal: Journal, row: CallRow) -> None:
    """Words written to the journal by a process that did not know the call had been sealed
    without it.
    """
    entries = journal.store.list_entries(row.live.id)
    if late := find_late_items(journal.archive, row, entries):
        journal.add_addendum(row, late)
        log.warning("attached late words", call=row.live.id, entries=len(late))
    journal.store.delete_entries(row.live.id, len(entries))
