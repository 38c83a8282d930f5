"""Erases one caller everywhere, and searches for what is left.

An erasure that is cut off can be run again: the rows that name the caller's calls go last, in one
transaction with the tombstones that keep those calls from coming back. What it looks for is stored,
encrypted, until nothing is left. A page that cannot be read stops nothing, and is named.
"""

import re
import shutil
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from aftercall import durable
from aftercall.clock import Clock, format_instant
from aftercall.db.audit_log import AuditLog
from aftercall.db.connect import Database
from aftercall.errors import ConfigError, RefusedInput, WorkspaceError
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.journal.archive import Archive
from aftercall.journal.recording_files import (
    RECORDINGS_FOLDER,
    RecordingFolder,
    make_file_name,
)
from aftercall.journal.spill import SpillFolder
from aftercall.log import get_logger
from aftercall.model.json_fields import Json
from aftercall.privacy.retention import RetiredFolder
from aftercall.privacy.scan import TraceScan, scan_for_traces
from aftercall.privacy.store import (
    DataSubject,
    ErasureTerms,
    add_tombstones,
    drop_terms,
    erase_rows,
    keep_terms,
    list_agents,
    list_delivery_keys,
    list_event_ids,
    list_followup_ids,
    list_recordings,
    load_subject,
    vacuum,
)
from aftercall.settings import Settings
from aftercall.work.sinks.markdown import is_empty_page
from aftercall.workspace import calls_md, files, user_md
from aftercall.workspace.paths import Workspace, make_conflict_path, make_folder_name

OUT_OF_REACH = (
    "the carrier's and the voice engine's own records",
    "what follow-up work sent out of this machine: issues, e-mails, messages, webhooks",
    "logs that other programs keep, and backups",
)
REMEM_OUT_OF_REACH = "documents in Remem, whose API has no way to remove one"
POSTGRES_OUT_OF_REACH = (
    "the files of the Postgres server, which its administrator has to vacuum",
    "pages and unfinished calls on other machines, removed within seconds or when they start",
)

MIN_NAME_CHARS = 4
MIN_NAME_PART_CHARS = 5
MIN_NEEDLE_CHARS = 16
MAX_NEEDLE_CHARS = 60

log = get_logger("privacy")


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

    def to_json(self) -> Json:
        return asdict(self) | {
            "erased_at": format_instant(self.erased_at),
            "scan": asdict(self.scan),
            "is_clean": self.scan.is_clean,
        }


@dataclass(frozen=True)
class Eraser:
    """Erases a person everywhere.

    A tombstone is written first, so that a crash cannot bring anything back.
    """

    settings: Settings
    database: Database
    archive: Archive
    audit: AuditLog
    clock: Clock
    has_remote: bool = False
    remove_copies: Callable[[Sequence[str]], None] | None = None
    """Of the ledger, in object storage."""

    def erase(self, number: str, who: str = "erasure") -> ErasureReceipt:
        subject = load_subject(self.database, number)
        self._refuse_live_calls(subject)
        receipt_id = new_id()
        workspaces = self._list_workspaces()
        for workspace in workspaces:
            files.sync(workspace.root)
        unreadable: set[Path] = set()
        found = find_terms(subject, self.archive, workspaces, unreadable)
        cipher = self.archive.place.cipher
        terms = keep_terms(self.database, cipher, number, found, self.clock.now())
        fault_point("erase.after_terms")
        subject = replace(
            subject,
            erased_calls=tuple(sorted(terms.calls)),
            erased_conversations=tuple(sorted(terms.conversations)),
        )
        workflows = self._erase_workflows(subject)
        recordings = list_recordings(self.database, subject)
        recorded = self._erase_recordings(recordings)
        folder = RetiredFolder(self.settings.home)
        retired = folder.erase(number) + folder.erase_shared(subject.call_ids)
        self._erase_agent_files(subject)
        fault_point("erase.after_recordings")
        archived = sum(len(self.archive.erase(row.live.id)) for row in subject.rows)
        fault_point("erase.after_archive")
        pages = 0
        for workspace in workspaces:
            pages += erase_pages(workspace, subject, unreadable)
        fault_point("erase.after_pages")
        with self.database.write() as connection:
            add_tombstones(connection, subject, self.clock.now())
            rows = erase_rows(connection, subject)
            self.audit.make_writer(who, "erased", receipt_id)(connection)
        fault_point("erase.after_rows")
        # again: another machine may have moved one into the bucket meanwhile
        self._erase_recordings(recordings)
        if self.remove_copies:
            self.remove_copies(subject.conversations)
        vacuum(self.database)
        durable.vacuum(self.settings)
        scan = self._scan(terms, unreadable, make_folder_name(number))
        if scan.is_clean:
            drop_terms(self.database, number)
        return ErasureReceipt(
            id=receipt_id,
            erased_at=self.clock.now(),
            calls=len(subject.rows),
            archive_files=archived,
            recordings=recorded,
            retired=retired,
            pages=pages,
            workflows=workflows,
            rows={name: count for name, count in rows.items() if count},
            scan=scan,
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
        event_ids = list_event_ids(self.database, subject)
        prefixes += [f"event:{event_id}" for event_id in event_ids]
        return durable.delete_workflows(self.settings, prefixes)

    def _erase_recordings(self, found: Sequence[tuple[str, str]]) -> int:
        """With unfinished downloads, whose rows name no file yet."""
        ids = [recording_id for _, recording_id in found]
        durable.delete_workflows(self.settings, ids)
        folder = RecordingFolder.from_settings(self.settings)
        place = self.settings.home / RECORDINGS_FOLDER
        return sum(folder.remove(place / make_file_name(*names)) for names in found)

    def _erase_agent_files(self, subject: DataSubject) -> None:
        """The input and output of the owner's agent command."""
        for key in list_delivery_keys(self.database, subject):
            shutil.rmtree(
                self.settings.home / "agent" / key.replace(":", "-"), ignore_errors=True
            )

    def _list_workspaces(self) -> list[Workspace]:
        """The workspace of every agent that is configured here or ever took a call."""
        grouped = (agent for group in self.settings.memory.agents for agent in group)
        known = {self.settings.agent_id, *grouped, *list_agents(self.database)}
        found = []
        for agent_id in sorted(known):
            with suppress(ConfigError):  # an agent whose name is no folder has no pages
                found.append(Workspace.from_settings(self.settings, agent_id))
        return found

    def _scan(
        self, terms: ErasureTerms, unreadable: Iterable[Path], own_folder: str
    ) -> TraceScan:
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
        scan = scan_for_traces(
            [Path(folder) for folder in folders],
            frozenset(needle.encode() for needle in terms.needles),
            name_parts=frozenset(part.encode() for part in terms.name_parts),
            names=terms.names,
            database=Path(file) if file else None,
            others_files=frozenset(others),
            own_folder=own_folder,
            key=self.archive.place.cipher.key,
        )
        pages = sorted(path.name for path in unreadable)
        return replace(scan, unreadable=(*scan.unreadable, *pages))

    def _list_out_of_reach(self) -> tuple[str, ...]:
        postgres = POSTGRES_OUT_OF_REACH if self.database.dialect != "sqlite" else ()
        remem = (REMEM_OUT_OF_REACH,) if self.has_remote else ()
        bucket = self.archive.place.list_out_of_reach()
        return (*OUT_OF_REACH, *postgres, *remem, *bucket)


def find_terms(
    subject: DataSubject,
    archive: Archive,
    workspaces: Sequence[Workspace],
    unreadable: set[Path],
) -> ErasureTerms:
    """What identifies the caller: the number, the names, and long turns of theirs.

    Short turns are left out: "Thanks, bye." identifies no caller.
    """
    names = set(_list_names(subject, workspaces, unreadable))
    needles = {subject.number.removeprefix("+"), *names}
    for call in subject.read_calls(archive):
        for turn in call.turns:
            said = turn.text.strip()
            if turn.speaker == "caller" and len(said) >= MIN_NEEDLE_CHARS:
                needles.add(said[:MAX_NEEDLE_CHARS])
    parts = {part for name in names for part in name.split()}
    in_names = {make_folder_name(subject.number), *needles}
    for workspace in workspaces:
        in_names |= {path.stem for path in _list_tasks(workspace, subject, unreadable)}
    return ErasureTerms(
        calls=frozenset(subject.call_ids),
        conversations=frozenset(subject.conversations),
        needles=frozenset(needles),
        names=frozenset(in_names),
        name_parts=frozenset(
            part for part in parts if len(part) >= MIN_NAME_PART_CHARS
        ),
    )


def _list_names(
    subject: DataSubject, workspaces: Sequence[Workspace], unreadable: set[Path]
) -> Iterator[str]:
    """The names of the number's owner on the pages of every agent, also on one that is no page."""
    for workspace in workspaces:
        person = workspace.find_person(subject.number)
        if person is None:
            continue
        text = _read_page(person.user, unreadable)
        if person.user in unreadable:
            text = _decode_roughly(person.user)
        profile = user_md.parse(text)
        for name in (profile.name, profile.call_name):
            if name and len(name) >= MIN_NAME_CHARS:
                yield name


def _read_page(path: Path, unreadable: set[Path]) -> str | None:
    try:
        return files.read(path)
    except WorkspaceError as error:
        _note_page(path, error, unreadable)
        return None


def _decode_roughly(path: Path) -> str:
    """The start of a file that is no page: UTF-16, or too large."""
    with suppress(OSError), path.open("rb") as file:
        raw = file.read(files.MAX_BYTES)
        is_wide = raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        return raw.decode("utf-16" if is_wide else "utf-8", "replace")
    return ""


@contextmanager
def _noted(path: Path, unreadable: set[Path]) -> Iterator[None]:
    """A page that cannot be read or changed keeps nothing else from being erased."""
    try:
        yield
    except WorkspaceError as error:
        _note_page(path, error, unreadable)


def _note_page(path: Path, error: WorkspaceError, unreadable: set[Path]) -> None:
    log.warning("a page could not be searched", error=error.code, reason=str(error))
    unreadable.add(path)


def erase_pages(
    workspace: Workspace, subject: DataSubject, unreadable: set[Path]
) -> int:
    """Returns how many files of one agent's workspace were removed or changed."""
    changed = 0
    for folder in _list_own_folders(workspace, subject):
        with _noted(folder.parent, unreadable):  # its own name is the number
            changed += files.remove_folder(folder)
    for path in list(_list_own_files(workspace, subject, unreadable)):
        with _noted(path, unreadable):
            changed += files.remove(path)
    with _noted(workspace.calls, unreadable):
        changed += files.edit(
            workspace.calls,
            lambda text: calls_md.remove(text, set(subject.call_ids), subject.number),
        )
    for path in _list_texts(workspace.root):
        with _noted(path, unreadable):
            if files.edit(path, lambda text: _remove_notes(text, subject)):
                changed += 1
                if is_empty_page(files.read(path)):
                    files.remove(path)  # its name is that of a person they spoke of
    with _noted(workspace.root, unreadable):
        files.discard_unfinished(workspace.root)
        files.remove_named_locks(workspace.root)
    unreadable.difference_update([path for path in unreadable if not path.exists()])
    return changed


def _list_own_folders(workspace: Workspace, subject: DataSubject) -> Iterator[Path]:
    person = workspace.find_person(subject.number)
    if person is not None and person.folder != workspace.root:
        yield person.folder
    elif person is not None:
        yield workspace.person_folder(subject.number)


def _list_own_files(
    workspace: Workspace, subject: DataSubject, unreadable: set[Path]
) -> Iterator[Path]:
    person = workspace.find_person(subject.number)
    if person is not None and person.folder == workspace.root:
        for path in (person.user, person.greeting, person.folder / "NOTES.md"):
            yield from (path, make_conflict_path(path))
    yield make_conflict_path(workspace.calls)  # whose lines are whose is not known
    for path in _list_texts(workspace.root / "journal"):
        if any(conversation in path.name for conversation in subject.conversations):
            yield path
    for path in _list_tasks(workspace, subject, unreadable):
        yield from (path, path.with_suffix(".ics"))


def _list_tasks(
    workspace: Workspace, subject: DataSubject, unreadable: set[Path]
) -> Iterator[Path]:
    """The caller's tasks. Their file names are made of the caller's words."""
    for path in _list_texts(workspace.root / "tasks"):
        if path.suffix != ".md":
            continue
        if _is_own_task(_read_page(path, unreadable) or "", subject):
            yield path


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
    paths = (path for path in folder.rglob("*") if path.suffix in files.PAGE_SUFFIXES)
    return sorted(path for path in paths if path.is_file())
