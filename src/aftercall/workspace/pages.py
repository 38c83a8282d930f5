"""Pages as rows of the database, for several machines; each machine's folder has copies of them.

A change is a new revision: of two machines that change the same one, the second begins again. A
committed revision is written to the folder at once, those of other machines by `keep_up`. This
machine notes which revision each file had when it was written. A file that differs from its note
was changed by a hand, and is merged with the newest revision line by line.
"""

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Self

from aftercall.clock import Clock, format_instant
from aftercall.db.connect import Database
from aftercall.disk import replace_synced, sync_folder
from aftercall.errors import AftercallError, DatabaseUnreachable
from aftercall.faults import fault_point
from aftercall.log import get_logger
from aftercall.settings import Settings
from aftercall.workspace import files
from aftercall.workspace.files import Change, DatedText
from aftercall.workspace.markdown import MergedText, merge_texts
from aftercall.workspace.paths import CONFLICT_SUFFIX, find_root, make_conflict_path
from aftercall.workspace.revisions import (
    BATCH_SIZE,
    FileNote,
    MissingFiles,
    PageChange,
    PagePlace,
    PageRevision,
    RevisionStore,
    is_noted,
    make_key,
    read_note,
)

FOLLOW_INTERVAL_S = 2.0
SCAN_INTERVAL_S = 7.0  # a hand edit is found within ten seconds
MAX_SCAN_SHARE = 0.02  # of the time, in processor time of looking
OUTAGE_PAUSE_S = 5.0
OVERLAP_ROWS = 300  # rows may be committed in another order than they were numbered in

log = get_logger("workspace")


class PageCopies:
    """The files of one machine, and how each is brought together with the rows of its page."""

    def __init__(self, root: Path, rows: RevisionStore, clock: Clock) -> None:
        self.root = root
        self.notes = root / files.LOCK_FOLDER / "pages"
        self.machine = socket.gethostname()
        self.hand = f"hand edit on {self.machine}"
        self._rows = rows
        self._clock = clock

    def locate(self, path: Path) -> PagePlace:
        name = path.relative_to(self.root).as_posix()
        key = make_key(name)
        return PagePlace(name, key, Path(os.path.realpath(path)), self.note_file(key))

    def note_file(self, key: str) -> Path:
        return self.notes / key[:2] / f"{key}.json"

    def list_notes(self) -> dict[str, FileNote]:
        """By the path of the page."""
        found = map(read_note, self.notes.glob("*/*.json"))
        return {note.path: note for note in found if note}

    def find_newest(self, key: str) -> PageRevision:
        return self._rows.find_newest(key, self._clock.now())

    def add(
        self,
        place: PagePlace,
        newest: PageRevision,
        body: bytes | None,
        author: str,
        at: datetime,
        *more: PageRevision,
    ) -> PageRevision | None:
        """None if another process was quicker."""
        number = newest.number + 1
        added = PageRevision(place.key, number, place.path, body, author, at)
        return added if self._rows.add(added, *more) else None

    def settle(
        self, place: PagePlace, known: PageRevision | None = None
    ) -> PageRevision:
        """Brings the newest revision and the file together; the caller holds the file's lock.

        A revision that was just read or added saves a query; `keep_up` writes a newer one.
        """
        for _ in range(files.MAX_ATTEMPTS):
            newest = known or self.find_newest(place.key)
            known = None
            # of a page that the database does not know, a note is of another database
            note = read_note(place.note) if newest.number else None
            body = files.load_bytes(place.file)
            if body is not None and self._is_by_hand(place, body, note, newest):
                merged = self._merge(place, body, note, newest)
                if files.encode(merged.text) != newest.body or merged.left_over:
                    self._take_in(place, merged, newest)
                    fault_point("pages.after_commit")
                    newest = self.find_newest(place.key)
                    if files.encode(merged.text) != newest.body:
                        continue  # another process was quicker
            if self._write_file(place, body, newest, note):
                return newest
        raise files.contended(place.file)

    def _is_by_hand(
        self,
        place: PagePlace,
        body: bytes,
        note: FileNote | None,
        newest: PageRevision,
    ) -> bool:
        """Whether a hand changed the file, and the page was not erased since."""
        if is_noted(body, note) or (newest.is_erased and note is not None):
            return False
        erased_at = self._rows.find_erasure(place.path)
        return erased_at is None or files.date_file(place.file) >= erased_at

    def remove_erased(self, keys: set[str]) -> None:
        """Removes what this machine still has in erased folders, also files that are no pages.

        What was changed after the erasure stays.
        """
        for parent, names, _ in os.walk(self.root):
            for name in names:
                folder = Path(parent, name)
                path = folder.relative_to(self.root).as_posix()
                erased_at = (
                    self._rows.find_erasure(path) if make_key(path) in keys else None
                )
                if erased_at is not None:
                    self._remove_older(folder, erased_at)

    def _remove_older(self, folder: Path, at: datetime) -> None:
        for parent, _, names in os.walk(folder, topdown=False):
            if files.LOCK_FOLDER in Path(parent).parts:
                continue
            for file in (Path(parent, name) for name in names):
                with files.translated_errors(file):
                    is_old = file.lstat().st_mtime < at.timestamp()
                    # a page that was made since may bear an older date
                    if is_old and not self.locate(file).is_as_written():
                        file.unlink(missing_ok=True)
            files.remove_empty_folders(Path(parent), self.root)

    def settle_locked(self, place: PagePlace) -> None:
        file = place.file
        with files.translated_errors(file), files.locked_target(file):
            newest = self.settle(place)
        if newest.body is None:
            files.remove_empty_folders(place.file.parent, self.root)

    def _merge(
        self,
        place: PagePlace,
        body: bytes,
        note: FileNote | None,
        newest: PageRevision,
    ) -> MergedText:
        files.decode(place.file, body)  # refuses what is no text
        own = body.decode("utf-8", "surrogateescape")
        is_current = note is not None and note.revision == newest.number
        if newest.body is None or is_current:
            return MergedText(own)
        base = None
        if note is not None and not place.path.endswith(CONFLICT_SUFFIX):
            base = self._rows.find_body(place.key, note.revision)
        text = None if base is None else base.decode("utf-8", "surrogateescape")
        return merge_texts(text, own, newest.text)

    def _take_in(
        self, place: PagePlace, merged: MergedText, newest: PageRevision
    ) -> None:
        raw = files.encode(merged.text)
        files.refuse_large(place.file, len(raw))
        conflicts = [self._keep_left_over(place, merged)] if merged.left_over else []
        at = files.date_file(place.file)
        self.add(place, newest, raw, self.hand, at, *conflicts)

    def _keep_left_over(self, place: PagePlace, merged: MergedText) -> PageRevision:
        """The next revision of the page beside it that keeps what found no place."""
        path = make_conflict_path(Path(place.path)).as_posix()
        before = self.find_newest(make_key(path))
        name, now = Path(place.path).name, self._clock.now()
        section = (
            before.text.rstrip("\n") or f"# Conflicts of {name}",
            "",
            f"## {format_instant(now)}",
            "",
            f"Written elsewhere while {name} was changed by hand on {self.machine}:",
            "",
            *merged.left_over,
            "",
        )
        body = files.encode("\n".join(section))
        number = before.number + 1
        return PageRevision(before.key, number, path, body, self.machine, now)

    def _write_file(
        self,
        place: PagePlace,
        before: bytes | None,
        newest: PageRevision,
        note: FileNote | None,
    ) -> bool:
        """False if a hand changed the file meanwhile."""
        if newest.body is None:
            if files.load_bytes(place.file) != before:
                return False
            place.file.unlink(missing_ok=True)
            place.note.unlink(missing_ok=True)
            return True
        if before != newest.body:
            at = newest.changed_at
            if not files.swap_bytes(place.file, before, newest.body, at):
                return False
        elif note is not None and note.revision == newest.number:
            return True
        fault_point("pages.after_file")
        files.make_lock_folder(self.root)
        return place.write_note(newest)


class PageTable:
    """Pages in the database, with copies of them in this machine's folder."""

    def __init__(self, root: Path, database: Database, clock: Clock) -> None:
        self.root = root
        self._rows = RevisionStore(database)
        self._copies = PageCopies(root, self._rows, clock)
        self._clock = clock
        self._mark_file = self._copies.notes / "mark"
        self._away_until = 0.0
        self._scan_due_at = 0.0
        self._missing = MissingFiles(root, clock)
        self._unfollowed: list[AftercallError] = []
        self._unscanned: list[AftercallError] = []
        self._handled_rows: set[int] = set()

    @classmethod
    def mount(cls, settings: Settings, database: Database, clock: Clock) -> Self:
        table = cls(find_root(settings), database, clock)
        files.mount(table.root, table)
        return table

    def unmount(self) -> None:
        files.unmount(self.root, self)

    def load(self, path: Path) -> DatedText | None:
        """While the database is away, what the file says."""
        if time.monotonic() >= self._away_until:
            try:
                return self._find_settled(path).to_dated_text(path)
            except DatabaseUnreachable:
                self._away_until = time.monotonic() + OUTAGE_PAUSE_S
        return files.FOLDER.load(path)

    def _find_settled(self, path: Path) -> PageRevision:
        place = self._copies.locate(path)
        with files.translated_errors(path):
            newest = self._copies.find_newest(place.key)
            is_unknown = newest.number == 0 and place.file.exists()
            if is_unknown or not place.is_as_written():
                with files.locked_target(path):
                    newest = self._copies.settle(place, newest)
        return newest

    def edit(
        self, path: Path, change: Change, *, author: str, keeps_history: bool
    ) -> bool:
        def make_body(newest: PageRevision) -> bytes | None:
            text = files.decode(path, newest.body)
            after = change(text)
            is_same = after is None or after == text
            return newest.body if is_same else files.encode(after or "")

        found = self._find_settled(path)
        text = files.decode(path, found.body)
        is_changed = change(text) not in (None, text) and (
            self._replace(path, make_body, author, known=found) is not None
        )
        if not keeps_history:
            self._rows.delete_history(self._copies.locate(path).key)
        return is_changed

    def write(self, path: Path, text: str, at: datetime) -> None:
        self._replace(path, lambda _: files.encode(text), at=at)

    def claim(self, path: Path) -> DatedText | None:
        found = self._find_settled(path)
        if found.body is None:
            return None
        claimed = self._replace(path, lambda _: None, known=found)
        return claimed.to_dated_text(path) if claimed else None

    def remove(self, path: Path) -> bool:
        place = self._copies.locate(path)
        spare = files.make_temporary_path(place.file)
        there = [each for each in (place.file, spare, place.note) if each.exists()]
        if not there and self._copies.find_newest(place.key).path is None:
            return False
        with files.translated_errors(path), files.locked_target(path) as file:
            self._rows.erase(place.key, self._copies.machine, self._clock.now())
            for each in there:
                each.unlink(missing_ok=True)
            sync_folder(file.parent)
        files.remove_empty_folders(place.file.parent, self.root)
        return True

    def remove_folder(self, folder: Path) -> bool:
        name = folder.relative_to(self.root).as_posix()
        machine, now = self._copies.machine, self._clock.now()
        self._rows.erase(make_key(name), machine, now, is_folder=True)
        paths = self._rows.list_paths(name)
        removed = [self.remove(self.root / path) for path in paths]
        return files.FOLDER.remove_folder(folder) or any(removed)

    @property
    def failures(self) -> list[AftercallError]:
        """What is wrong with single files; all others are kept up all the same."""
        loss = self._missing.find_loss()
        found = [*([loss] if loss else []), *self._unfollowed, *self._unscanned]
        by_text = {str(error): error for error in found}
        return list(by_text.values())

    def sync(self) -> None:
        """Takes in what hands changed here, and writes what other machines changed."""
        self._follow()
        self._scan()
        self._follow()

    def keep_up(self) -> float:
        """Writes what other machines changed. Now and then looks for changes by hand.

        Returns in how many seconds it has to look again. A large folder is looked through less
        often; taking in what was found does not count.
        """
        self._follow()
        began = time.monotonic()
        if began >= self._scan_due_at:
            self._scan_due_at = began + SCAN_INTERVAL_S
            looking_s = self._scan()
            pause = max(SCAN_INTERVAL_S, looking_s / MAX_SCAN_SHARE)
            self._scan_due_at = began + pause
        return max(0.0, self._scan_due_at - time.monotonic())

    def _replace(
        self,
        path: Path,
        make_body: Callable[[PageRevision], bytes | None],
        author: str = "",
        at: datetime | None = None,
        known: PageRevision | None = None,
    ) -> PageRevision | None:
        """Adds a revision, if it is dated also the same text; returns the one before it.

        None if there is nothing to change. `known` was the newest just now.
        """
        place = self._copies.locate(path)
        with files.translated_errors(path), files.locked_target(path) as file:
            for _ in range(files.MAX_ATTEMPTS):
                newest = self._copies.settle(place, known)
                known = None
                body = make_body(newest)
                if body == newest.body and at is None:
                    return None
                if body is not None and file.exists():
                    files.refuse_protected(file)
                files.refuse_large(path, len(body or b""))
                author = author or self._copies.machine
                changed_at = at or self._clock.now()
                added = self._copies.add(place, newest, body, author, changed_at)
                if added is not None:
                    self._write_through(place, added)
                    return newest
        raise files.contended(path)

    def _write_through(self, place: PagePlace, added: PageRevision) -> None:
        fault_point("pages.after_commit")
        try:
            with files.translated_errors(place.file):
                self._copies.settle(place, added)
        except AftercallError as error:  # `keep_up` writes it, or reports
            log.warning("a page could not be written to the folder", error=error.code)

    def _follow(self) -> None:
        """A page that fails is tried again the next time, with all that came after it."""
        mark = at = self._read_mark()
        failures: list[AftercallError] = []
        erased: set[str] = set()
        while True:
            changes = self._rows.list_changes(max(0, at - OVERLAP_ROWS))
            last = changes[-1].n if changes else self._rows.find_last_row()
            if last < mark:  # another database, or an older state of it
                shutil.rmtree(self._copies.notes)
                self._handled_rows.clear()
                mark = at = 0
                continue
            for change in changes:
                if change.n not in self._handled_rows:
                    if change.path is None:
                        erased.add(change.key)
                    with _collected(failures):
                        self._follow_change(change)
                        self._handled_rows.add(change.n)
            at = last
            if len(changes) < BATCH_SIZE:
                break
        if erased:
            with _collected(failures):
                self._copies.remove_erased(erased)
        self._unfollowed = failures
        if failures:
            return
        if at != mark:
            self._write_mark(at)
        oldest = at - OVERLAP_ROWS
        self._handled_rows = {row for row in self._handled_rows if row > oldest}

    def _follow_change(self, change: PageChange) -> None:
        """An erased page has no path; the note of its file knows it."""
        note = read_note(self._copies.note_file(change.key))
        path = change.path or (note.path if note else None)
        if path is None or (note and note.revision == change.number):
            return
        self._copies.settle_locked(self._copies.locate(self.root / path))

    def _read_mark(self) -> int:
        try:
            return int(self._mark_file.read_text("ascii"))
        except (FileNotFoundError, ValueError):
            self._handled_rows.clear()
            self._missing.forget_files()
            return 0

    def _write_mark(self, mark: int) -> None:
        with files.translated_errors(self._copies.notes):
            self.root.mkdir(parents=True, exist_ok=True)
            files.make_lock_folder(self.root)
            self._copies.notes.mkdir(exist_ok=True)
            replace_synced(self._mark_file, str(mark).encode())

    def _scan(self) -> float:
        """Finds what hands changed, made and deleted; returns the time it took to look."""
        began = time.thread_time()
        notes = self._copies.list_notes()
        found = dict(files.list_pages(self.root))
        written = {path: note.mtime_ns for path, note in notes.items()}
        changed = [path for path in found if found[path] != written.get(path)]
        unseen = [path for path in notes if path not in found]
        missing = [path for path in unseen if files.is_gone(self.root / path)]
        looking_s = time.thread_time() - began
        failures: list[AftercallError] = []
        for path in changed:
            place = self._copies.locate(self.root / path)
            with _collected(failures), files.translated_errors(place.file):
                if not place.is_as_written():
                    self._copies.settle_locked(place)
        deleted, lost = self._missing.judge(found, missing, len(notes))
        if lost:  # as some notes may be, too: all pages are looked at again
            self._mark_file.unlink(missing_ok=True)
        for path in (*deleted, *lost):
            place = self._copies.locate(self.root / path)
            with _collected(failures):
                if path in deleted:
                    self._take_in_deletion(place)
                self._copies.settle_locked(place)
        self._unscanned = failures
        return looking_s

    def _take_in_deletion(self, place: PagePlace) -> None:
        """A page that nobody else changed is removed; its history stays."""
        newest, note = self._copies.find_newest(place.key), read_note(place.note)
        if note and newest.number == note.revision and newest.body is not None:
            self._copies.add(place, newest, None, self._copies.hand, self._clock.now())


@contextmanager
def _collected(failures: list[AftercallError]) -> Iterator[None]:
    """A page that fails does not keep the others waiting."""
    try:
        yield
    except DatabaseUnreachable:
        raise
    except AftercallError as error:
        failures.append(error)
