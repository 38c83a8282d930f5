"""Copies in object storage of what no call tells: what became of requests, and corrections.

Together with the sealed calls they are all that a rebuild needs to give the same briefings.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, Table, func, insert, select

from aftercall.clock import Clock, format_instant, parse_instant
from aftercall.db.briefing_cache import invalidate_briefing
from aftercall.db.connect import Database
from aftercall.db.corrections import NAMES, corrections
from aftercall.db.statements import InstantColumn, chunked, upsert
from aftercall.db.tables import (
    deliveries,
    followup_history,
    followup_runs,
    followups,
    tombstones,
    upkeep,
)
from aftercall.encryption import FileCipher
from aftercall.faults import fault_point
from aftercall.model.json_fields import Json
from aftercall.work.plan import REBUILT, REBUILT_SINK

if TYPE_CHECKING:
    from aftercall.journal.bucket import Bucket  # needs the extra s3

COPIES_FOLDER = COPIES_MARK = "ledger"
CORRECTIONS_FOLDER = CORRECTIONS_MARK = "corrections"
COPY_DELAY = timedelta(seconds=60)  # then no transaction that began before is open
COPY_BATCH = 200


class LedgerCopies:
    """Copies of the ledger in the bucket, for a rebuild: no call tells what became of a request.

    An object holds the rows of one conversation. Its number is that of the lines of their history,
    which only grows: each change is an object of its own, created once like every other.
    """

    def __init__(
        self, bucket: "Bucket", cipher: FileCipher, database: Database, clock: Clock
    ) -> None:
        self._bucket = bucket
        self._cipher = cipher
        self._database = database
        self._clock = clock
        self._copied_corrections: frozenset[str] | None = None

    def copy_changed(self) -> None:
        """Copies what has changed since the last time."""
        if self._copied_corrections is None:  # the first time
            self._remove_erased()
        self._mirror_corrections()
        n = followup_history.c.n
        at = followup_history.c.at
        query = (
            select(n, at, followups.c.conversation)
            .join(followups, followups.c.id == followup_history.c.followup_id)
            .where(at <= self._clock.now() - COPY_DELAY)
            .order_by(n)
            .limit(COPY_BATCH)
        )
        while rows := self._database.fetch(query.where(n > self._find_last_copied())):
            for conversation in {row.conversation for row in rows}:
                self._copy(conversation)
            fault_point("upload.after_copies")
            mark = {"at": rows[-1].at, "found": {"n": rows[-1].n}}
            with self._database.write() as connection:
                upsert(connection, upkeep, {"name": COPIES_MARK}, mark)

    def restore(self, conversation: str) -> dict[str, int] | None:
        """Puts the rows of the newest copy back; returns the legs it knew, None without one.

        What was still to be delivered counts as written down, and nothing of it is queued.
        """
        keys = sorted(self._list_keys(conversation))
        if not keys:
            return None
        copy = self._read(keys[-1])
        now = self._clock.now()
        with self._database.write() as connection:
            for row in _read_rows(followups, copy["followups"]):
                connection.execute(insert(followups), _settle_copied(row, now))
                invalidate_briefing(connection, row["agent_id"], row["caller"])
            for row in _read_rows(followup_history, copy["history"]):
                connection.execute(insert(followup_history), row)
            for row in _read_rows(deliveries, copy["deliveries"]):
                connection.execute(insert(deliveries), row)
        legs: dict[str, int] = copy["legs"]
        return legs

    def restore_corrections(self, *, of_names: bool) -> None:
        """Those of names after calls were read again, all others before. Pages follow later.

        What was written of a caller before their name was put right is known by the old name.
        """
        keys = self._bucket.list_tags(CORRECTIONS_FOLDER)
        known = set(self._database.fetch_column(select(corrections.c.id)))
        copies = [self._read(key) for key in keys]
        with self._database.write() as connection:
            for row in _read_rows(corrections, copies):
                if row["id"] not in known and (row["what"] in NAMES) is of_names:
                    connection.execute(insert(corrections), row | {"state": "due"})
            if of_names:
                self._mark_restored(connection)

    def remove(self, conversations: Iterable[str]) -> None:
        """After their rows, and those of the caller's corrections, were erased."""
        for conversation in conversations:
            for key in self._list_keys(conversation):
                self._bucket.remove(key)
        self._mirror_corrections()

    def _remove_erased(self) -> None:
        """What a process that died has left of callers erased meanwhile."""
        keys = self._bucket.list_tags(COPIES_FOLDER)
        copied = {key.split("/")[1] for key in keys}
        for batch in chunked(sorted(copied), COPY_BATCH):
            is_erased = tombstones.c.call_id.in_(batch)
            erased = self._database.fetch_column(
                select(tombstones.c.call_id).where(is_erased)
            )
            self.remove(erased)

    def _copy(self, conversation: str) -> None:
        with self._database.read() as connection:
            data = _describe_ledger(connection, conversation)
        if data["followups"]:
            key = f"{COPIES_FOLDER}/{conversation}/{len(data['history']):06}.json"
            self._create(key, data)
        fault_point("upload.after_copy")
        query = select(followups.c.id).where(followups.c.conversation == conversation)
        if self._database.fetch_first(query) is None:  # erased meanwhile
            self.remove([conversation])

    def _mirror_corrections(self) -> None:
        """The bucket has those that the database has: they are few.

        None is removed there before a rebuild has read them.
        """
        ids = self._database.fetch_column(select(corrections.c.id))
        rows = frozenset(ids)
        if rows == self._copied_corrections:
            return
        keys = {_name_correction(each): each for each in rows}
        there = self._bucket.list_tags(CORRECTIONS_FOLDER).keys()
        is_marked = upkeep.c.name == CORRECTIONS_MARK
        mark = self._database.fetch_first(select(upkeep).where(is_marked))
        for key in keys.keys() - there:
            self._copy_correction(key, keys[key])
        for key in there - keys.keys() if mark else ():
            self._bucket.remove(key)
        if mark is None and not there:
            with self._database.write() as connection:
                self._mark_restored(connection)
        self._copied_corrections = rows

    def _copy_correction(self, key: str, correction_id: str) -> None:
        query = select(corrections).where(corrections.c.id == correction_id)
        if row := self._database.fetch_first(query):
            self._create(key, _to_json(row))

    def _mark_restored(self, connection: Connection) -> None:
        mark = {"at": self._clock.now()}
        upsert(connection, upkeep, {"name": CORRECTIONS_MARK}, mark)

    def _create(self, key: str, content: Json) -> None:
        body = json.dumps(content, ensure_ascii=False).encode()
        self._bucket.create(key, self._cipher.encode(body))

    def _read(self, key: str) -> Json:
        content: Json = json.loads(self._cipher.decode(self._bucket.read(key)))
        return content

    def _list_keys(self, conversation: str) -> Iterable[str]:
        return self._bucket.list_tags(f"{COPIES_FOLDER}/{conversation}")

    def _find_last_copied(self) -> int:
        """The number of the last line that was copied.

        SQLite gives the number of a line that was erased to another one: then the time decides.
        """
        mark = self._database.fetch_first(
            select(upkeep).where(upkeep.c.name == COPIES_MARK)
        )
        if mark is None:
            return 0
        n = followup_history.c.n
        at = followup_history.c.at
        found = self._database.fetch_value(select(at).where(n == mark.found["n"]))
        if found == mark.at:
            return int(mark.found["n"])
        return self._database.fetch_value(select(func.max(n)).where(at <= mark.at)) or 0


def _name_correction(correction_id: str) -> str:
    return f"{CORRECTIONS_FOLDER}/{correction_id}.json"


def _describe_ledger(connection: Connection, conversation: str) -> Json:
    """The rows of a conversation as JSON. A delivery that is under way is left out."""
    of_conversation = followups.c.conversation == conversation
    ids = select(followups.c.id).where(of_conversation).scalar_subquery()
    rows = select(followups).where(of_conversation).order_by(followups.c.id)
    lines = select(followup_history).where(followup_history.c.followup_id.in_(ids))
    sent = select(deliveries).where(
        deliveries.c.followup_id.in_(ids), deliveries.c.state.in_(("done", "dead"))
    )
    legs = select(followup_runs.c.legs).where(
        followup_runs.c.conversation == conversation
    )
    found = connection.execute
    history = [_to_json(row) for row in found(lines.order_by(followup_history.c.n))]
    for line in history:
        del line["n"]  # of this database
    return {
        "legs": found(legs).scalar() or {},
        "followups": [_to_json(row) for row in found(rows)],
        "history": history,
        "deliveries": [_to_json(row) for row in found(sent)],
    }


def _to_json(row: Row[Any]) -> Json:
    return {
        name: format_instant(value) if isinstance(value, datetime) else value
        for name, value in row._mapping.items()
    }


def _read_rows(table: Table, rows: Iterable[Json]) -> Iterator[Json]:
    """A column that this version does not know is left out."""
    instants = {
        column.name
        for column in table.columns
        if isinstance(column.type, InstantColumn)
    }
    for row in rows:
        yield {
            name: parse_instant(value) if value and name in instants else value
            for name, value in row.items()
            if name in table.columns
        }


def _settle_copied(row: Json, now: datetime) -> Json:
    """Nothing is done again; a reminder that is still to come is kept."""
    settled = row | {"queued": None}
    if row["state"] in ("open", "doing"):
        settled |= {"state": "done", "reason": REBUILT, "sink": REBUILT_SINK}
    if row["reminder"] == "due" and row["remind_at"] <= now:
        settled |= {"reminder": None, "remind_at": None}
    return settled
