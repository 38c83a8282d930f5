"""Erasing one caller everywhere, provably.

The order makes it safe to be cut off at any point and run again: the rows that say which calls
are theirs go last, together with the tombstones that keep the calls from coming back.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from aftercall import durable
from aftercall.clock import Clock, format_instant
from aftercall.db.audit_log import AuditLog
from aftercall.db.connect import Database
from aftercall.durable import delete_workflows
from aftercall.errors import RefusedInput
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.journal.archive import Archive
from aftercall.journal.spill import SpillFolder
from aftercall.privacy.retention import remove_recording
from aftercall.privacy.retired import RetiredFolder
from aftercall.privacy.scan import TraceScan, scan_for_traces
from aftercall.privacy.store import (
    add_tombstones,
    erase_rows,
    list_calls,
    list_delivery_keys,
    list_followup_ids,
    list_recording_paths,
    vacuum,
)
from aftercall.privacy.subject import ErasureSubject, make_needles
from aftercall.settings import Settings
from aftercall.workspace import calls_md, files
from aftercall.workspace.paths import Workspace

OUT_OF_REACH = (
    "the carrier's and the voice engine's own records",
    "what follow-up work sent out of this machine: issues, e-mails, messages, webhooks",
    "logs that other programs keep, and backups",
)
REMEM_OUT_OF_REACH = "documents in Remem, whose API has no way to remove one"
POSTGRES_OUT_OF_REACH = "the files of the Postgres server, which its administrator has to vacuum"


@dataclass(frozen=True)
class ErasureReceipt:
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
    scan: TraceScan
    out_of_reach: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "erased_at": format_instant(self.erased_at),
            "scan": asdict(self.scan),
            "is_clean": not self.scan.traces,
        }


@dataclass(frozen=True)
class Eraser:
    settings: Settings
    database: Database
    archive: Archive
    audit: AuditLog
    clock: Clock
    has_remote: bool = False

    def erase(self, number: str) -> ErasureReceipt:
        subject = ErasureSubject(number, tuple(list_calls(self.database, number)))
        if any(row.state != "sealed" for row in subject.rows) or not SpillFolder(
            self.settings.home / "spill"
        ).erase_caller(number):
            raise RefusedInput(
                "caller",
                "is on the phone, or their call is being sealed; erase them when it has ended",
            )
        receipt_id = new_id()
        needles = make_needles(subject, self.archive, self.settings)
        workflows = self._erase_workflows(subject)
        recordings = self._erase_recordings(subject)
        past = RetiredFolder(self.settings.home)
        retired = past.erase(number) + past.erase_shared(subject.call_ids)
        self._erase_agent_files(subject)
        fault_point("erase.after_recordings")
        archived = sum(len(self.archive.erase(call_id)) for call_id in subject.call_ids)
        fault_point("erase.after_archive")
        pages = erase_pages(self.settings, subject)
        fault_point("erase.after_pages")
        with self.database.write() as connection:
            add_tombstones(connection, subject, self.clock.now())
            rows = erase_rows(connection, subject)
            self.audit.make_writer("erasure", "erased", receipt_id)(connection)
        fault_point("erase.after_rows")
        vacuum(self.database)
        durable.vacuum(self.settings)
        return ErasureReceipt(
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
            out_of_reach=(
                *OUT_OF_REACH,
                *([POSTGRES_OUT_OF_REACH] if self.database.dialect != "sqlite" else []),
                *([REMEM_OUT_OF_REACH] if self.has_remote else []),
            ),
        )

    def _erase_workflows(self, subject: ErasureSubject) -> int:
        """They hold ids only, and go all the same."""
        beginnings = [
            *subject.call_ids,
            *(f"followup:{conversation}" for conversation in subject.conversations),
        ]
        beginnings += [
            f"reminder:{followup}" for followup in list_followup_ids(self.database, subject)
        ]
        return delete_workflows(self.settings, beginnings)

    def _erase_agent_files(self, subject: ErasureSubject) -> None:
        """What the owner's own command was given, and what it answered."""
        for key in list_delivery_keys(self.database, subject):
            shutil.rmtree(self.settings.home / "agent" / key.replace(":", "-"), ignore_errors=True)

    def _erase_recordings(self, subject: ErasureSubject) -> int:
        found = list_recording_paths(self.database, subject)
        delete_workflows(self.settings, [recording_id for recording_id, _ in found])
        return sum(remove_recording(self.settings.home, path) for _, path in found if path)

    def _scan(self, needles: frozenset[bytes]) -> TraceScan:
        folders = [
            self.settings.home,
            *([self.settings.workspace] if self.settings.workspace else []),
        ]
        others = {
            *self.archive.place.list_names(),
            *(path.name for path in RetiredFolder(self.settings.home).root.glob("transcripts/*/*")),
        }
        file = self.database.engine.url.database if self.database.dialect == "sqlite" else None
        return scan_for_traces(
            [Path(folder) for folder in folders],
            needles,
            database=Path(file) if file else None,
            others_files=frozenset(others),
        )


TEXT_SUFFIXES = (".md", ".ics", ".txt")


def erase_pages(settings: Settings, subject: ErasureSubject) -> int:
    """How many files were removed or changed."""
    workspace = Workspace.from_settings(settings)
    changed = sum(_remove(path) for path in _own_files(workspace, subject))
    changed += files.edit(
        workspace.calls, lambda text: calls_md.remove(text, set(subject.call_ids), subject.number)
    )
    for path in _texts(workspace.root):
        changed += files.edit(path, lambda text: _without_notes(text, subject))
    return changed


def _own_files(workspace: Workspace, subject: ErasureSubject) -> Iterator[Path]:
    person = workspace.find_person(subject.number)
    if person is not None and person.folder != workspace.root:
        yield person.folder
    elif person is not None:
        yield from (person.user, person.greeting, person.folder / "NOTES.md")
        yield workspace.person_folder(subject.number)
    for path in _texts(workspace.root / "journal"):
        if any(conversation in path.name for conversation in subject.conversations):
            yield path
    for path in _texts(workspace.root / "tasks"):
        if path.suffix == ".md" and _is_theirs(files.read(path) or "", subject):
            yield from (path, path.with_suffix(".ics"))


def _is_theirs(task: str, subject: ErasureSubject) -> bool:
    """By its front matter: which call it came from, and whose."""
    front = task.split("\n---", 1)[0]
    return any(
        f'"{mark}"' in front or f": {mark}\n" in f"{front}\n"
        for mark in (*subject.call_ids, subject.number)
    )


def _without_notes(text: str | None, subject: ErasureSubject) -> str | None:
    """Notes of theirs on the pages of other people: each stands on a line of its own and names
    its call.
    """
    if text is None or not any(call in text for call in subject.call_ids):
        return text
    marks = re.compile("|".join(rf"\(call {re.escape(call)}\)" for call in subject.call_ids))
    return "".join(line for line in text.splitlines(keepends=True) if not marks.search(line))


def _texts(folder: Path) -> Iterator[Path]:
    yield from sorted(
        path for path in folder.rglob("*") if path.suffix in TEXT_SUFFIXES and path.is_file()
    )


def _remove(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path)
        return True
    is_there = path.exists()
    path.unlink(missing_ok=True)
    return is_there
