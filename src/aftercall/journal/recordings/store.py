"""The SQL of recordings."""

from datetime import datetime
from typing import Any

from sqlalchemy import select, update

from aftercall.db.connect import Database
from aftercall.db.tables import recordings
from aftercall.db.upsert import upsert
from aftercall.errors import NotFound
from aftercall.ids import new_id
from aftercall.model.recordings import Recording, RecordingState, TranscriptState


class RecordingStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def note(
        self, call_id: str, carrier: str, sid: str, url: str | None, state: RecordingState, now: datetime, reason: str = ""
    ) -> Recording:
        """What a carrier tells of a recording; told twice, the first counts."""
        row = {"id": new_id(), "call_id": call_id, "url": url, "state": state, "reason": reason, "changed_at": now}
        with self._database.write() as connection:
            upsert(connection, recordings, {"carrier": carrier, "sid": sid}, row, changes={})
        with self._database.read() as connection:
            found = connection.execute(select(recordings).where(recordings.c.carrier == carrier, recordings.c.sid == sid)).one()
        return Recording(**found._asdict())

    def due(self, limit: int = 100) -> list[str]:
        """Those whose download nobody has started, oldest first."""
        query = select(recordings.c.id).where(recordings.c.state == "waiting").order_by(recordings.c.id).limit(limit)
        with self._database.read() as connection:
            return [str(row.id) for row in connection.execute(query)]

    def get(self, recording_id: str) -> Recording:
        with self._database.read() as connection:
            row = connection.execute(select(recordings).where(recordings.c.id == recording_id)).first()
        if row is None:
            raise NotFound(f"there is no recording {recording_id!r}")
        return Recording(**row._asdict())

    def of_call(self, call_id: str) -> list[Recording]:
        query = select(recordings).where(recordings.c.call_id == call_id).order_by(recordings.c.id)
        with self._database.read() as connection:
            return [Recording(**row._asdict()) for row in connection.execute(query)]

    def mark_started(self, recording_id: str, now: datetime) -> None:
        self._change(recording_id, {"state": "downloading", "changed_at": now}, only_from="waiting")

    def begin(self, recording_id: str, now: datetime) -> Recording:
        """One more attempt."""
        self._change(recording_id, {"attempts": recordings.c.attempts + 1, "changed_at": now})
        return self.get(recording_id)

    def move(self, recording_id: str, url: str, now: datetime) -> None:
        self._change(recording_id, {"url": url, "changed_at": now})

    def finish(self, recording_id: str, *, path: str, sha256: str, size: int, now: datetime, transcript: TranscriptState) -> None:
        values = {"state": "here", "path": path, "sha256": sha256, "bytes": size, "reason": "", "transcript": transcript}
        self._change(recording_id, values | {"changed_at": now})

    def end(self, recording_id: str, state: RecordingState, reason: str, now: datetime) -> None:
        self._change(recording_id, {"state": state, "reason": reason, "changed_at": now})

    def end_transcript(self, recording_id: str, state: TranscriptState, reason: str, now: datetime) -> None:
        self._change(recording_id, {"transcript": state, "reason": reason, "changed_at": now})

    def _change(self, recording_id: str, values: dict[str, Any], only_from: str | None = None) -> None:
        statement = update(recordings).where(recordings.c.id == recording_id).values(values)
        if only_from is not None:
            statement = statement.where(recordings.c.state == only_from)
        with self._database.write() as connection:
            connection.execute(statement)
