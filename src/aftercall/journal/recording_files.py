"""Recordings: their files in `<home>/recordings/`, and their rows in the database.

A download goes into a `.part` file, which gets its name when it is complete. With
`archive.encrypt` every piece is encrypted before it touches the disk.
"""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, and_, select, update

from aftercall.clock import format_instant
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import recordings
from aftercall.disk import replace_synced, sync_folder, translated_errors
from aftercall.encryption import (
    HEADER_BYTES,
    MAX_BLOCK_BYTES,
    BlockEnd,
    FileCipher,
    is_encrypted,
    make_header,
    read_decrypted,
)
from aftercall.errors import NotFound, RecordingError
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.model.calls import Recording, RecordingState, TranscriptState

RECORDINGS_FOLDER = "recordings"
_disk_errors = partial(
    translated_errors, folder="recordings", error_type=RecordingError
)


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
    def __init__(self, home: Path, cipher: FileCipher) -> None:
        self._home = home
        self._folder = home / RECORDINGS_FOLDER
        self._cipher = cipher

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

    def write_transcript(self, path: Path, data: Mapping[str, Any]) -> Path:
        """Writes the transcript of a recording beside it."""
        beside = path.with_name(f"{path.name}.transcript.json")
        text = json.dumps(data, ensure_ascii=False, indent=1)
        with _disk_errors(beside.name):
            replace_synced(beside, self._cipher.encode(text.encode()))
        return beside

    def read(self, path: Path) -> bytes:
        """The clear bytes of a recording. Raises FileUnreadable."""
        return b"".join(read_decrypted(path, self._cipher))

    def to_relative_path(self, path: Path) -> str:
        return str(path.relative_to(self._home))


def make_file_name(call_id: str, recording_id: str) -> str:
    """Our own name: nothing that a carrier sent becomes part of a path."""
    return f"{call_id}-{recording_id}.wav"


def hash_file(path: Path) -> str:
    """Of the bytes as stored."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


class RecordingStore:
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
        with self._database.read() as connection:
            return [str(row.id) for row in connection.execute(query)]

    def get(self, recording_id: str) -> Recording:
        found = self._fetch(recordings.c.id == recording_id)
        if not found:
            raise NotFound(f"there is no recording {recording_id!r}")
        return found[0]

    def list_for_call(self, call_id: str) -> list[Recording]:
        return self._fetch(recordings.c.call_id == call_id)

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
        with self._database.read() as connection:
            return [Recording(**row._asdict()) for row in connection.execute(query)]

    def _update(
        self,
        recording_id: str,
        values: dict[str, Any],
        only_if_state: str | None = None,
    ) -> None:
        statement = (
            update(recordings).where(recordings.c.id == recording_id).values(values)
        )
        if only_if_state is not None:
            statement = statement.where(recordings.c.state == only_if_state)
        with self._database.write() as connection:
            connection.execute(statement)


def recordings_json(found: list[Recording]) -> list[dict[str, Any]]:
    return [
        {
            "id": recording.id,
            "carrier": recording.carrier,
            "state": recording.state,
            "reason": recording.reason,
            "path": recording.path,
            "bytes": recording.bytes,
            "sha256": recording.sha256,
            "attempts": recording.attempts,
            "transcript": recording.transcript,
            "changed_at": format_instant(recording.changed_at),
        }
        for recording in found
    ]
