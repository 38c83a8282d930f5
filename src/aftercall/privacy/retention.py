"""How long things are kept. By default everything stays but recordings, which go after ninety days.

What goes is deleted, or moved to `<home>/retired`. The copy is on disk before the original
goes, and a row lets go of a file only when the file is gone: cut off anywhere, the next run
finds the same and finishes it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import get_args

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import chunked
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive
from aftercall.log import get_logger
from aftercall.privacy import expiry_store
from aftercall.privacy.expiry_store import ExpiredItem
from aftercall.privacy.retired import RetiredFolder
from aftercall.settings import Settings
from aftercall.settings.sections import RetentionKind

RETENTION_INTERVAL_S = 3600.0
BATCH_SIZE = 100
KINDS: tuple[RetentionKind, ...] = get_args(RetentionKind)

log = get_logger("retention")

_FIND: Mapping[RetentionKind, Callable[[Database, datetime], list[ExpiredItem]]] = {
    "recordings": expiry_store.list_expired_recordings,
    "transcripts": expiry_store.list_expired_transcripts,
    "facts": expiry_store.list_expired_facts,
    "documents": expiry_store.list_expired_documents,
}


@dataclass(frozen=True)
class Retention:
    settings: Settings
    database: Database
    archive: Archive
    clock: Clock

    def find_expired(self) -> dict[RetentionKind, list[ExpiredItem]]:
        """What would go now."""
        return {kind: self.find_expired_kind(kind) for kind in KINDS}

    def find_expired_kind(self, kind: RetentionKind) -> list[ExpiredItem]:
        before = self._before(kind)
        return _FIND[kind](self.database, before) if before else []

    def action(self, kind: RetentionKind) -> str:
        return self.settings.retention.action.get(kind, "delete")

    def apply(self) -> dict[RetentionKind, list[ExpiredItem]]:
        return {kind: self.expire(kind) for kind in KINDS}

    def expire(self, kind: RetentionKind) -> list[ExpiredItem]:
        """All of one kind that is past its time now."""
        expired = self.find_expired_kind(kind)
        for some in chunked(expired, BATCH_SIZE):
            if self.action(kind) == "archive":
                for item in some:
                    self._retire(kind, item)
                fault_point("retention.after_copy")
            self._remove(kind, some)
        if expired:
            log.info(
                "past their time and gone", kind=kind, count=len(expired), action=self.action(kind)
            )
        return expired

    def _retire(self, kind: RetentionKind, item: ExpiredItem) -> None:
        retired = RetiredFolder(self.settings.home)
        match kind:
            case "recordings":
                for file in _beside(self.settings.home / item.name):
                    retired.save(kind, item.party, file.name, file.read_bytes())
            case "transcripts":
                for name in self.archive.list_files(item.name):
                    retired.save(kind, item.party, name, self.archive.place.read(name))
            case "facts":
                retired.save(
                    kind,
                    item.party,
                    f"{item.id}.json",
                    expiry_store.read_fact(self.database, item.id),
                )
            case "documents":
                retired.save(
                    kind,
                    item.party,
                    f"{item.id}.json",
                    expiry_store.read_document(self.database, item.id),
                )

    def _remove(self, kind: RetentionKind, some: Sequence[ExpiredItem]) -> None:
        ids, before = [item.id for item in some], self._before(kind) or self.clock.now()
        match kind:
            case "recordings":
                for item in some:
                    remove_recording(self.settings.home, item.name)
                    expiry_store.forget_recording(
                        self.database,
                        item.id,
                        "older than retention.recordings_days",
                        self.clock.now(),
                    )
            case "transcripts":
                self.archive.erase_all(ids)
                fault_point("retention.after_files")
                expiry_store.forget_transcripts(self.database, ids)
            case "facts":
                expiry_store.forget_facts(self.database, ids, before)
            case "documents":
                expiry_store.forget_documents(self.database, ids, before)

    def _before(self, kind: RetentionKind) -> datetime | None:
        days: int = getattr(self.settings.retention, f"{kind}_days")
        return self.clock.now() - timedelta(days=days) if days else None


def remove_recording(home: Path, path: str) -> bool:
    """A recording, and everything that lies beside it under its name: its transcript, a
    download that was cut off.
    """
    beside = _beside(home / path)
    for each in beside:
        each.unlink(missing_ok=True)
    return bool(beside)


def _beside(file: Path) -> list[Path]:
    return (
        [other for other in file.parent.glob(f"{file.stem}*") if other.is_file()]
        if file.parent.is_dir()
        else []
    )
