"""Erasing one caller everywhere, provably.

The order makes it safe to be cut off at any point and run again: the rows that say which calls are theirs go last, together
with the tombstones that keep the calls from coming back.
"""

import shutil
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from aftercall import durable
from aftercall.audit.store import AuditLog
from aftercall.clock import Clock
from aftercall.custody.pages import erase_pages
from aftercall.custody.retention import remove_recording
from aftercall.custody.retired import Retired
from aftercall.custody.scan import Scan, scan
from aftercall.custody.store import bury_calls, calls_of, delivery_keys, erase_rows, followup_ids, recording_paths, scrub
from aftercall.custody.subject import Subject, needles_of
from aftercall.db.connect import Database
from aftercall.durable import forget_workflows
from aftercall.errors import RefusedInput
from aftercall.faults import reach
from aftercall.ids import new_id
from aftercall.journal.archive import Archive
from aftercall.journal.spill import SpillFolder
from aftercall.model.instants import format_instant
from aftercall.settings import Settings

BEYOND_US = (
    "the carrier's and the voice engine's own records",
    "what follow-up work sent out of this machine: issues, e-mails, messages, webhooks",
    "logs that other programs keep, and backups",
)
REMOTE = "documents in Remem, whose API has no way to remove one"
POSTGRES = "the files of the Postgres server, which its administrator has to vacuum"


@dataclass(frozen=True)
class Receipt:
    """What was removed. It holds no number, no name and nothing that was said."""

    id: str
    erased_at: datetime
    calls: int
    archive_files: int
    recordings: int
    retired: int
    pages: int
    workflows: int
    rows: dict[str, int]
    scan: Scan
    out_of_reach: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"erased_at": format_instant(self.erased_at), "scan": asdict(self.scan), "is_clean": not self.scan.traces}


@dataclass(frozen=True)
class Eraser:
    settings: Settings
    database: Database
    archive: Archive
    audit: AuditLog
    clock: Clock
    has_remote: bool = False

    def erase(self, number: str) -> Receipt:
        subject = Subject(number, tuple(calls_of(self.database, number)))
        if any(row.state != "sealed" for row in subject.rows) or not SpillFolder(self.settings.home / "spill").forget_caller(number):
            raise RefusedInput("caller", "is on the phone, or their call is being sealed; erase them when it has ended")
        receipt_id = new_id()
        needles = needles_of(subject, self.archive, self.settings)
        workflows = self._erase_workflows(subject)
        recordings = self._erase_recordings(subject)
        past = Retired(self.settings.home)
        retired = past.erase(number) + past.erase_shared(subject.calls)
        self._erase_errands(subject)
        reach("erase.after_recordings")
        archived = sum(len(self.archive.erase(call_id)) for call_id in subject.calls)
        reach("erase.after_archive")
        pages = erase_pages(self.settings, subject)
        reach("erase.after_pages")
        with self.database.write() as connection:
            bury_calls(connection, subject, self.clock.now())
            rows = erase_rows(connection, subject)
            self.audit.entry("erasure", "erased", receipt_id)(connection)
        reach("erase.after_rows")
        scrub(self.database)
        durable.scrub(self.settings)
        return Receipt(
            id=receipt_id,
            erased_at=self.clock.now(),
            calls=len(subject.rows),
            archive_files=archived,
            recordings=recordings,
            retired=retired,
            pages=pages,
            workflows=workflows,
            rows={name: count for name, count in rows.items() if count},
            scan=self._scan(needles),
            out_of_reach=(*BEYOND_US, *([POSTGRES] if self.database.dialect != "sqlite" else []), *([REMOTE] if self.has_remote else [])),
        )

    def _erase_workflows(self, subject: Subject) -> int:
        """They hold ids only, and go all the same."""
        beginnings = [*subject.calls, *(f"followup:{conversation}" for conversation in subject.conversations)]
        beginnings += [f"reminder:{followup}" for followup in followup_ids(self.database, subject)]
        return forget_workflows(self.settings, beginnings)

    def _erase_errands(self, subject: Subject) -> None:
        """What the owner's own command was given, and what it answered."""
        for key in delivery_keys(self.database, subject):
            shutil.rmtree(self.settings.home / "agent" / key.replace(":", "-"), ignore_errors=True)

    def _erase_recordings(self, subject: Subject) -> int:
        found = recording_paths(self.database, subject)
        forget_workflows(self.settings, [recording_id for recording_id, _ in found])
        return sum(remove_recording(self.settings.home, path) for _, path in found if path)

    def _scan(self, needles: frozenset[bytes]) -> Scan:
        folders = [self.settings.home, *([self.settings.workspace] if self.settings.workspace else [])]
        others = {*self.archive.place.names(), *(path.name for path in Retired(self.settings.home).root.glob("transcripts/*/*"))}
        file = self.database.engine.url.database if self.database.dialect == "sqlite" else None
        return scan([Path(folder) for folder in folders], needles, database=Path(file) if file else None, is_others=frozenset(others))
