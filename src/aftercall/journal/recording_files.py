"""Recordings: their files in `<home>/recordings/`, and their rows in the database.

A download goes into a `.part` file, which gets its name when it is complete. With
`archive.encrypt` every piece is encrypted before it touches the disk. With `archive.url` a whole
file moves into the bucket as soon as that answers.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from functools import cache, partial
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, and_, select, update

from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import recordings
from aftercall.disk import replace_synced, sync_folder, translated_errors
from aftercall.encryption import (
    HEADER_BYTES,
    MAX_BLOCK_BYTES,
    BlockEnd,
    FileCipher,
    decrypt_blocks,
    is_encrypted,
    make_header,
    open_cipher,
)
from aftercall.errors import ConfigError, NotFound, RecordingError
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.model.calls import Recording, RecordingState, TranscriptState
from aftercall.model.json_fields import Json, pick_fields
from aftercall.settings import Settings
from aftercall.settings.providers import ArchiveSettings

if TYPE_CHECKING:
    from aftercall.journal.bucket import Bucket

RECORDINGS_FOLDER = "recordings"
TRANSCRIPT_SUFFIX = ".transcript.json"
_disk_errors = partial(
    translated_errors, folder="recordings", error_type=RecordingError
)


@cache
def open_bucket(settings: ArchiveSettings) -> "Bucket | None":
    """The bucket of the settings; one store, and its connections, for the whole process."""
    if not settings.url:
        return None
    try:
        from aftercall.journal.bucket import Bucket  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigError(
            "archive.url needs obstore; run `pip install 'aftercall[s3]'`"
        ) from None
    return Bucket(settings)


class PartialRecording:
    """A download in progress. It survives a crash, and the next attempt continues it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def is_encrypted(self) -> bool:
        if not self.path.exists():
            return False
        with self.path.open("rb") as file:
            return is_encrypted(file.read(HEADER_BYTES))

    def restart(self) -> None:
        self.path.unlink(missing_ok=True)

    def append(self, data: bytes) -> None:
        with _disk_errors(self.path.name), self.path.open("ab") as file:
            file.write(data)

    def close(self) -> None:
        """A clear file needs no end mark."""


class EncryptedPartialRecording:
    """The same, encrypted piece by piece. `size` counts the clear bytes."""

    def __init__(self, path: Path, cipher: FileCipher) -> None:
        self.path = path
        self._cipher = cipher
        self._end = self._find_end()

    @property
    def size(self) -> int:
        return self._end.clear_bytes

    def restart(self) -> None:
        self.path.unlink(missing_ok=True)
        self._end = self._find_end()

    def append(self, data: bytes) -> None:
        for at in range(0, len(data), MAX_BLOCK_BYTES):
            self._append_block(data[at : at + MAX_BLOCK_BYTES])

    def close(self) -> None:
        """Writes the end block: without it the file counts as cut off."""
        self._write(self._cipher.seal_end(self._end.header, self._end.blocks))

    def _append_block(self, data: bytes) -> None:
        end = self._end
        block = self._cipher.seal_block(end.header, end.blocks, data)
        self._write(block)
        self._end = BlockEnd(
            end.header,
            end.blocks + 1,
            end.clear_bytes + len(data),
            end.offset + len(block),
        )

    def _write(self, block: bytes) -> None:
        """Behind the readable blocks, over whatever a crash left there."""
        with _disk_errors(self.path.name):
            is_new = not self.path.exists()
            with self.path.open("wb" if is_new else "r+b") as file:
                if is_new:
                    file.write(self._end.header)
                file.truncate(self._end.offset)
                file.seek(self._end.offset)
                file.write(block)

    def _find_end(self) -> BlockEnd:
        """A part that is not encrypted was begun before the setting: it is fetched anew."""
        with _disk_errors(self.path.name):
            if self.path.exists():
                with self.path.open("rb") as file:
                    found = self._cipher.find_end(file)
                if found is not None:
                    return found
                self.path.unlink()
        return BlockEnd(make_header(), 0, 0, HEADER_BYTES)


class RecordingFolder:
    """The files of recordings. A path in the home names a recording, wherever its file is.

    With a bucket the folder holds downloads, and what waits for the store; everything else is
    read from the bucket.
    """

    def __init__(
        self, home: Path, cipher: FileCipher, bucket: "Bucket | None" = None
    ) -> None:
        self._home = home
        self._folder = home / RECORDINGS_FOLDER
        self._cipher = cipher
        self._bucket = bucket

    @classmethod
    def from_settings(cls, settings: Settings) -> "RecordingFolder":
        bucket = open_bucket(settings.archive)
        return cls(settings.home, open_cipher(settings), bucket)

    def open_part(self, name: str) -> PartialRecording | EncryptedPartialRecording:
        with _disk_errors(name):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{name}.part"
        if self._cipher.is_on:
            return EncryptedPartialRecording(path, self._cipher)
        part = PartialRecording(path)
        if part.is_encrypted():
            part.restart()  # begun before the setting was turned off
        return part

    def locate(self, recording: Recording) -> Path:
        return self._home / (recording.path or "")

    def find(self, name: str) -> Path | None:
        path = self._folder / name
        return path if path.is_file() else None

    def finish(
        self, part: PartialRecording | EncryptedPartialRecording, name: str
    ) -> Path:
        """Gives the complete file its name, synced."""
        path = self._folder / name
        part.close()
        with _disk_errors(name):
            with part.path.open("rb") as file:
                os.fsync(file.fileno())
            fault_point("recording.after_part")
            part.path.rename(path)
            sync_folder(self._folder)
        fault_point("recording.after_rename")
        return path

    def write_transcript(self, path: Path, data: Json) -> Path:
        """Writes the transcript of a recording beside it."""
        beside = path.with_name(f"{path.name}{TRANSCRIPT_SUFFIX}")
        text = json.dumps(data, ensure_ascii=False, indent=1)
        with _disk_errors(beside.name):
            replace_synced(beside, self._cipher.encode(text.encode()))
        return beside

    def has(self, path: Path) -> bool:
        return path.is_file() or bool(self._bucket and self._bucket.has(_key(path)))

    def read(self, path: Path) -> bytes:
        """The clear bytes of a recording. Raises NotFound, FileUnreadable."""
        return b"".join(self.read_blocks(path))

    def read_blocks(self, path: Path) -> Iterator[bytes]:
        """The same, block by block, from the folder or the bucket."""
        try:
            file = path.open("rb")
        except FileNotFoundError:
            if self._bucket is None:
                raise NotFound(f"there is no recording {path.name}") from None
            file = self._bucket.open_object(_key(path))  # type: ignore[assignment]
        with closing(file):
            yield from decrypt_blocks(file, self._cipher)

    def hash_stored(self, path: Path) -> str | None:
        """Of the bytes as stored, in the folder or the bucket; None if they are in neither."""
        try:
            return hash_file(path)
        except FileNotFoundError:
            return self._bucket.hash_object(_key(path)) if self._bucket else None

    def list_tags(self) -> dict[str, str] | None:
        """Names and tags of the files in the bucket; None without a bucket."""
        if self._bucket is None:
            return None
        found = self._bucket.list_tags(RECORDINGS_FOLDER)
        return {key.rpartition("/")[2]: tag for key, tag in found.items()}

    def list_stored(self, path: Path) -> Iterator[tuple[str, bytes]]:
        """The files of a recording, with an unfinished download: names, and bytes as stored."""
        for file in self._list_local(path):
            yield file.name, file.read_bytes()
        for beside in self._list_whole(path):
            if self._bucket is not None and not beside.exists():
                with suppress(NotFound):
                    yield beside.name, self._bucket.read(_key(beside))

    def remove(self, path: Path) -> bool:
        """Deletes a recording with its transcript and any unfinished download of it."""
        found = self._list_local(path)
        for file in found:
            file.unlink(missing_ok=True)
        removed = bool(found)
        if self._bucket is not None:
            removed |= self._bucket.has(_key(path))
            for whole in self._list_whole(path):
                self._bucket.remove(_key(whole))
        return removed

    def list_unmoved(self) -> list[Path]:
        """Whole files that are not in the bucket yet."""
        if self._bucket is None or not self._folder.is_dir():
            return []
        files = (path for path in self._folder.iterdir() if path.suffix != ".part")
        return sorted(path for path in files if not path.name.startswith("."))

    def move(self, path: Path, store: "RecordingStore") -> None:
        """Moves a file into the bucket, once its row says that it is here.

        A crash in between repeats it. A row that is not there any more was erased, perhaps by
        another machine: then the file goes, and so does an object that was just created.
        """
        audio = path.with_name(path.name.removesuffix(TRANSCRIPT_SUFFIX))
        recording_id = audio.stem.rpartition("-")[2]
        state = store.find_state(recording_id)
        if self._bucket is not None and state == "here":
            with suppress(FileNotFoundError):  # moved by another process
                data = path.read_bytes()
                if path == audio:
                    tag = self._bucket.create_same(_key(path), data)
                    store.set_tag(recording_id, tag)
                else:
                    self._bucket.replace(_key(path), data)  # may be written again
                fault_point("upload.after_recording")
                path.unlink()
            state = store.find_state(recording_id)
        if state in (None, "absent"):
            self.remove(audio)

    def _list_local(self, path: Path) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return [file for file in self._folder.glob(f"{path.stem}*") if file.is_file()]

    def _list_whole(self, path: Path) -> tuple[Path, Path]:
        return path, path.with_name(f"{path.name}{TRANSCRIPT_SUFFIX}")

    def to_relative_path(self, path: Path) -> str:
        return str(path.relative_to(self._home))


def move_recordings(
    folder: RecordingFolder,
    store: "RecordingStore",
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Moves what is not in the bucket yet; returns how many files.

    Without a bucket there is nothing to move.
    """
    unmoved = folder.list_unmoved()
    for number, path in enumerate(unmoved, 1):
        folder.move(path, store)
        on_progress(number, len(unmoved))
    return len(unmoved)


def make_file_name(call_id: str, recording_id: str) -> str:
    """Our own name: nothing that a carrier sent becomes part of a path."""
    return f"{call_id}-{recording_id}.wav"


def _key(path: Path) -> str:
    return f"{RECORDINGS_FOLDER}/{path.name}"


def hash_file(path: Path) -> str:
    """Of the bytes as stored."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


class RecordingStore:
    """The rows of recordings: what a carrier announced, and how far each is.

    A row is written before its file is fetched, and says `here` once the file is whole.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(
        self,
        call_id: str,
        carrier: str,
        sid: str,
        url: str | None,
        state: RecordingState,
        now: datetime,
        reason: str = "",
    ) -> Recording:
        """Adds a recording that a carrier announces; a repeated announcement changes nothing."""
        row = {
            "id": new_id(),
            "call_id": call_id,
            "url": url,
            "state": state,
            "reason": reason,
            "changed_at": now,
        }
        with self._database.write() as connection:
            upsert(
                connection,
                recordings,
                {"carrier": carrier, "sid": sid},
                row,
                changes={},
            )
        is_same = and_(recordings.c.carrier == carrier, recordings.c.sid == sid)
        return self._fetch(is_same)[0]

    def list_due(self, limit: int = 100) -> list[str]:
        """Recordings whose download has not started, oldest first."""
        query = (
            select(recordings.c.id)
            .where(recordings.c.state == "waiting")
            .order_by(recordings.c.id)
            .limit(limit)
        )
        return [str(row.id) for row in self._database.fetch(query)]

    def get(self, recording_id: str) -> Recording:
        found = self._fetch(recordings.c.id == recording_id)
        if not found:
            raise NotFound(f"there is no recording {recording_id!r}")
        return found[0]

    def find_state(self, recording_id: str) -> str | None:
        found = self._fetch(recordings.c.id == recording_id)
        return found[0].state if found else None

    def list_for_call(self, call_id: str) -> list[Recording]:
        return self._fetch(recordings.c.call_id == call_id)

    def list_here(self) -> list[Recording]:
        return self._fetch(recordings.c.state == "here")

    def set_tag(self, recording_id: str, etag: str) -> None:
        """The object in the bucket is right, and is not fetched again while it has this tag."""
        self._update(recording_id, {"etag": etag})

    def mark_started(self, recording_id: str, now: datetime) -> None:
        self._update(
            recording_id,
            {"state": "downloading", "changed_at": now},
            only_if_state="waiting",
        )

    def start_attempt(self, recording_id: str, now: datetime) -> Recording:
        """Counts an attempt."""
        self._update(
            recording_id, {"attempts": recordings.c.attempts + 1, "changed_at": now}
        )
        return self.get(recording_id)

    def set_url(self, recording_id: str, url: str, now: datetime) -> None:
        self._update(recording_id, {"url": url, "changed_at": now})

    def finish(
        self,
        recording_id: str,
        *,
        path: str,
        sha256: str,
        size: int,
        now: datetime,
        transcript: TranscriptState,
    ) -> None:
        file = {"path": path, "sha256": sha256, "bytes": size}
        state = {
            "state": "here",
            "reason": "",
            "transcript": transcript,
            "changed_at": now,
        }
        self._update(recording_id, file | state)

    def set_state(
        self, recording_id: str, state: RecordingState, reason: str, now: datetime
    ) -> None:
        self._update(
            recording_id, {"state": state, "reason": reason, "changed_at": now}
        )

    def set_transcript_state(
        self, recording_id: str, state: TranscriptState, reason: str, now: datetime
    ) -> None:
        self._update(
            recording_id, {"transcript": state, "reason": reason, "changed_at": now}
        )

    def _fetch(self, condition: ColumnElement[bool]) -> list[Recording]:
        query = select(recordings).where(condition).order_by(recordings.c.id)
        return [Recording(**row._asdict()) for row in self._database.fetch(query)]

    def _update(
        self,
        recording_id: str,
        values: Json,
        only_if_state: str | None = None,
    ) -> None:
        statement = (
            update(recordings).where(recordings.c.id == recording_id).values(values)
        )
        if only_if_state is not None:
            statement = statement.where(recordings.c.state == only_if_state)
        self._database.execute(statement)


def recordings_json(found: list[Recording]) -> list[Json]:
    names = "id carrier state reason path bytes sha256 attempts transcript changed_at"
    return [pick_fields(recording, names) for recording in found]
