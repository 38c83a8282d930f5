"""Erases one caller everywhere, and searches for what is left.

An erasure that is cut off can be run again: the rows that name the caller's calls go last, in one
transaction with the tombstones that keep those calls from coming back.
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
from aftercall.errors import RefusedInput
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.journal.archive import Archive
from aftercall.journal.spill import SpillFolder
from aftercall.privacy.retention import RetiredFolder, remove_recording
from aftercall.privacy.scan import TraceScan, scan_for_traces
from aftercall.privacy.store import (
    DataSubject,
    add_tombstones,
    erase_rows,
    list_delivery_keys,
    list_followup_ids,
    list_recording_paths,
    load_subject,
    vacuum,
)
from aftercall.settings import Settings
from aftercall.workspace import calls_md, files, user_md
from aftercall.workspace.paths import Workspace

OUT_OF_REACH = (
    "the carrier's and the voice engine's own records",
    "what follow-up work sent out of this machine: issues, e-mails, messages, webhooks",
    "logs that other programs keep, and backups",
)
REMEM_OUT_OF_REACH = "documents in Remem, whose API has no way to remove one"
POSTGRES_OUT_OF_REACH = (
    "the files of the Postgres server, which its administrator has to vacuum"
)
TEXT_SUFFIXES = (".md", ".ics", ".txt")
MIN_NAME_CHARS = 4
MIN_NEEDLE_CHARS = 16
MAX_NEEDLE_CHARS = 60


@dataclass(frozen=True)
class ErasureReceipt:
    """What was removed. Holds no number, no name and nothing that was said."""

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
        subject = load_subject(self.database, number)
        self._refuse_live_calls(subject)
        receipt_id = new_id()
        needles = make_needles(subject, self.archive, self.settings)
        workflows = self._erase_workflows(subject)
        recordings = self._erase_recordings(subject)
        retired_folder = RetiredFolder(self.settings.home)
        retired = retired_folder.erase(number) + retired_folder.erase_shared(
            subject.call_ids
        )
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
            out_of_reach=self._list_out_of_reach(),
        )

    def _refuse_live_calls(self, subject: DataSubject) -> None:
        spilled = SpillFolder(self.settings.home / "spill")
        is_live = any(row.state != "sealed" for row in subject.rows)
        if is_live or not spilled.erase_caller(subject.number):
            raise RefusedInput(
                "caller",
                "is on the phone, or their call is being sealed; erase them when it has ended",
            )

    def _erase_workflows(self, subject: DataSubject) -> int:
        """Workflows hold ids only, and are deleted all the same."""
        followup_ids = list_followup_ids(self.database, subject)
        prefixes = [*subject.call_ids]
        prefixes += [
            f"followup:{conversation}" for conversation in subject.conversations
        ]
        prefixes += [f"reminder:{followup_id}" for followup_id in followup_ids]
        return durable.delete_workflows(self.settings, prefixes)

    def _erase_recordings(self, subject: DataSubject) -> int:
        found = list_recording_paths(self.database, subject)
        durable.delete_workflows(
            self.settings, [recording_id for recording_id, _ in found]
        )
        return sum(
            remove_recording(self.settings.home, path) for _, path in found if path
        )

    def _erase_agent_files(self, subject: DataSubject) -> None:
        """The input and output of the owner's agent command."""
        for key in list_delivery_keys(self.database, subject):
            shutil.rmtree(
                self.settings.home / "agent" / key.replace(":", "-"), ignore_errors=True
            )

    def _scan(self, needles: frozenset[bytes]) -> TraceScan:
        folders = [self.settings.home]
        if self.settings.workspace:
            folders.append(self.settings.workspace)
        retired = RetiredFolder(self.settings.home).root.glob("transcripts/*/*")
        others = {*self.archive.place.list_names(), *(path.name for path in retired)}
        file = (
            self.database.engine.url.database
            if self.database.dialect == "sqlite"
            else None
        )
        return scan_for_traces(
            [Path(folder) for folder in folders],
            needles,
            database=Path(file) if file else None,
            others_files=frozenset(others),
        )

    def _list_out_of_reach(self) -> tuple[str, ...]:
        postgres = (POSTGRES_OUT_OF_REACH,) if self.database.dialect != "sqlite" else ()
        remem = (REMEM_OUT_OF_REACH,) if self.has_remote else ()
        return (*OUT_OF_REACH, *postgres, *remem)


def make_needles(
    subject: DataSubject, archive: Archive, settings: Settings
) -> frozenset[bytes]:
    """Bytes that identify the caller: the number, the names, and long turns of theirs.

    Short turns are left out: "Thanks, bye." identifies no caller.
    """
    person = Workspace.from_settings(settings).find_person(subject.number)
    profile = (
        user_md.parse(files.read(person.user)) if person else user_md.UserProfile()
    )
    needles = [subject.number.removeprefix("+")]
    for name in (profile.name, profile.call_name):
        if name and len(name) >= MIN_NAME_CHARS:
            needles.append(name)
    for call in subject.read_calls(archive):
        for turn in call.turns:
            said = turn.text.strip()
            if turn.speaker == "caller" and len(said) >= MIN_NEEDLE_CHARS:
                needles.append(said[:MAX_NEEDLE_CHARS])
    return frozenset(needle.encode() for needle in needles)


def erase_pages(settings: Settings, subject: DataSubject) -> int:
    """Returns how many workspace files were removed or changed."""
    workspace = Workspace.from_settings(settings)
    changed = sum(_remove(path) for path in _list_own_files(workspace, subject))
    changed += files.edit(
        workspace.calls,
        lambda text: calls_md.remove(text, set(subject.call_ids), subject.number),
    )
    for path in _list_texts(workspace.root):
        changed += files.edit(path, lambda text: _remove_notes(text, subject))
    return changed


def _list_own_files(workspace: Workspace, subject: DataSubject) -> Iterator[Path]:
    person = workspace.find_person(subject.number)
    if person is not None and person.folder != workspace.root:
        yield person.folder
    elif person is not None:
        yield from (person.user, person.greeting, person.folder / "NOTES.md")
        yield workspace.person_folder(subject.number)
    for path in _list_texts(workspace.root / "journal"):
        if any(conversation in path.name for conversation in subject.conversations):
            yield path
    for path in _list_texts(workspace.root / "tasks"):
        if path.suffix == ".md" and _is_own_task(files.read(path) or "", subject):
            yield from (path, path.with_suffix(".ics"))


def _is_own_task(task: str, subject: DataSubject) -> bool:
    """The front matter names the call and the caller of a task."""
    front = task.split("\n---", 1)[0]
    return any(
        f'"{mark}"' in front or f": {mark}\n" in f"{front}\n"
        for mark in (*subject.call_ids, subject.number)
    )


def _remove_notes(text: str | None, subject: DataSubject) -> str | None:
    """Remove the caller's notes from other people's pages: each is a line that names its call."""
    if text is None or not any(call in text for call in subject.call_ids):
        return text
    marks = re.compile(
        "|".join(rf"\(call {re.escape(call)}\)" for call in subject.call_ids)
    )
    return "".join(
        line for line in text.splitlines(keepends=True) if not marks.search(line)
    )


def _list_texts(folder: Path) -> list[Path]:
    paths = (path for path in folder.rglob("*") if path.suffix in TEXT_SUFFIXES)
    return sorted(path for path in paths if path.is_file())


def _remove(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path)
        return True
    is_there = path.exists()
    path.unlink(missing_ok=True)
    return is_there
