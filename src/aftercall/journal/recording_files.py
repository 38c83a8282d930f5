"""Where recordings lie: `<home>/recordings/`.

One is fetched into a part beside its name, and gets the name when it is whole.
"""

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from aftercall.clock import format_instant
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import recordings
from aftercall.disk import sync_folder
from aftercall.errors import NotFound, RecordingError, StorageFull
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.model.calls import Recording, RecordingState, TranscriptState

RECORDINGS_FOLDER = "recordings"
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class PartialRecording:
    """A file that is still being fetched.

    What is there survives a crash, and the next attempt goes on behind it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def restart(self) -> None:
        self.path.unlink(missing_ok=True)

    def append(self, data: bytes) -> None:
        with translated_disk_errors(self.path.name), self.path.open("ab") as file:
            file.write(data)


class RecordingFolder:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = home / RECORDINGS_FOLDER

    def open_part(self, name: str) -> PartialRecording:
        with translated_disk_errors(name):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return PartialRecording(self._folder / f"{name}.part")

    def find(self, name: str) -> Path | None:
        path = self._folder / name
        return path if path.is_file() else None

    def finish(self, part: PartialRecording, name: str) -> Path:
        """The whole file under its name, on disk."""
        path = self._folder / name
        with translated_disk_errors(name):
            with part.path.open("rb") as file:
                os.fsync(file.fileno())
            fault_point("recording.after_part")
            part.path.rename(path)
            sync_folder(self._folder)
        fault_point("recording.after_rename")
        return path

    def write_transcript(self, path: Path, data: Mapping[str, Any]) -> Path:
        """The transcript of a recording, beside it; written whole."""
        beside = path.with_name(f"{path.name}.transcript.json")
        temporary = beside.with_name(f".{beside.name}.tmp")
        with translated_disk_errors(beside.name):
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(data, file, ensure_ascii=False, indent=1)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(beside)
            sync_folder(self._folder)
        return beside

    def to_relative_path(self, path: Path) -> str:
        return str(path.relative_to(self._home))


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def translated_disk_errors(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL_ERRNOS:
            raise StorageFull(
                f"no room for {name} in the recordings; free some space, what is there stays"
            ) from error
        raise RecordingError(
            f"{name} cannot be written in the recordings ({error.strerror})"
        ) from error


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
        """What a carrier tells of a recording; told twice, the first counts."""
        row = {
            "id": new_id(),
            "call_id": call_id,
            "url": url,
            "state": state,
            "reason": reason,
            "changed_at": now,
        }
        with self._database.write() as connection:
            upsert(connection, recordings, {"carrier": carrier, "sid": sid}, row, changes={})
        with self._database.read() as connection:
            found = connection.execute(
                select(recordings).where(recordings.c.carrier == carrier, recordings.c.sid == sid)
            ).one()
        return Recording(**found._asdict())

    def list_due(self, limit: int = 100) -> list[str]:
        """Those whose download nobody has started, oldest first."""
        query = (
            select(recordings.c.id)
            .where(recordings.c.state == "waiting")
            .order_by(recordings.c.id)
            .limit(limit)
        )
        with self._database.read() as connection:
            return [str(row.id) for row in connection.execute(query)]

    def get(self, recording_id: str) -> Recording:
        with self._database.read() as connection:
            row = connection.execute(
                select(recordings).where(recordings.c.id == recording_id)
            ).first()
        if row is None:
            raise NotFound(f"there is no recording {recording_id!r}")
        return Recording(**row._asdict())

    def list_for_call(self, call_id: str) -> list[Recording]:
        query = select(recordings).where(recordings.c.call_id == call_id).order_by(recordings.c.id)
        with self._database.read() as connection:
            return [Recording(**row._asdict()) for row in connection.execute(query)]

    def mark_started(self, recording_id: str, now: datetime) -> None:
        self._update(
            recording_id, {"state": "downloading", "changed_at": now}, only_if_state="waiting"
        )

    def start_attempt(self, recording_id: str, now: datetime) -> Recording:
        """One more attempt."""
        self._update(recording_id, {"attempts": recordings.c.attempts + 1, "changed_at": now})
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
        values = {
            "state": "here",
            "path": path,
            "sha256": sha256,
            "bytes": size,
            "reason": "",
            "transcript": transcript,
        }
        self._update(recording_id, values | {"changed_at": now})

    def set_state(
        self, recording_id: str, state: RecordingState, reason: str, now: datetime
    ) -> None:
        self._update(recording_id, {"state": state, "reason": reason, "changed_at": now})

    def set_transcript_state(
        self, recording_id: str, state: TranscriptState, reason: str, now: datetime
    ) -> None:
        self._update(recording_id, {"transcript": state, "reason": reason, "changed_at": now})

    def _update(
        self, recording_id: str, values: dict[str, Any], only_if_state: str | None = None
    ) -> None:
        statement = update(recordings).where(recordings.c.id == recording_id).values(values)
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
