"""Retention: deletes what is older than its setting allows, or moves it to `<home>/retired`.

By default only recordings expire, after ninety days. A copy is on disk before its original goes,
and a row forgets a file only after the file is gone. A run that is cut off anywhere finds the same
items again and finishes them.

A durable workflow runs it, once an hour over all processes.
"""

import json
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from dbos import DBOS, SetWorkflowID
from sqlalchemy import Row, Select, and_, delete, exists, func, null, select, update

from aftercall.clock import Clock, format_instant
from aftercall.db.briefing_cache import invalidate_briefing
from aftercall.db.connect import Database
from aftercall.db.corrections import delete_chains, delete_decisions
from aftercall.db.statements import chunked, upsert
from aftercall.db.tables import (
    answers,
    calls,
    documents,
    fact_occurrences,
    facts,
    followup_runs,
    page_revisions,
    passages,
    recordings,
    steps,
    upkeep,
)
from aftercall.disk import replace_synced
from aftercall.durable import register_queue, run_in_thread, step, workflow
from aftercall.errors import error_code
from aftercall.faults import fault_point
from aftercall.ids import hash_caller
from aftercall.journal.archive import Archive
from aftercall.journal.recording_files import RecordingFolder
from aftercall.log import get_logger
from aftercall.memory.ledger import CORRECTED_BY_KEY
from aftercall.model.facts import SHARED_CALLER
from aftercall.model.json_fields import Json
from aftercall.model.people import split_party
from aftercall.privacy.store import unlink_facts
from aftercall.settings import Settings
from aftercall.settings.sections import RetentionKind
from aftercall.workspace.revisions import is_superseded

RETENTION_INTERVAL_S = 3600.0
BATCH_SIZE = 100
KINDS: tuple[RetentionKind, ...] = get_args(RetentionKind)
EXPIRED_RECORDING_REASON = "older than retention.recordings_days"
NO_CALLER_FOLDER = "nobody"
ANSWERS_MARK = "answers"

log = get_logger("retention")


@dataclass(frozen=True)
class ExpiredItem:
    """`name` is what a listing shows: the file of a recording or transcript, else the id."""

    id: str
    party: str = field(repr=False)
    name: str


@dataclass(frozen=True)
class Retention:
    """Lets go of what is past its time, as the settings say."""

    settings: Settings
    database: Database
    archive: Archive
    clock: Clock

    def find_expired(self) -> dict[RetentionKind, list[ExpiredItem]]:
        return {kind: self.find_expired_kind(kind) for kind in KINDS}

    def find_expired_kind(self, kind: RetentionKind) -> list[ExpiredItem]:
        cutoff = self._cutoff(kind)
        if cutoff is None:
            return []
        rows = self.database.fetch(_select_expired(kind, cutoff))
        return [ExpiredItem(item_id, party, name) for item_id, party, name in rows]

    def action(self, kind: RetentionKind) -> str:
        return self.settings.retention.action.get(kind, "delete")

    def apply(self) -> dict[RetentionKind, list[ExpiredItem]]:
        return {kind: self.expire(kind) for kind in KINDS}

    def expire(self, kind: RetentionKind) -> list[ExpiredItem]:
        """Delete or retire everything of one kind that has expired by now."""
        expired = self.find_expired_kind(kind)
        action = self.action(kind)
        for batch in chunked(expired, BATCH_SIZE):
            if action == "archive":
                for item in batch:
                    self._retire(kind, item)
                fault_point("retention.after_copy")
            self._remove(kind, batch)
        if expired:
            log.info(
                "removed what has expired", kind=kind, count=len(expired), action=action
            )
        return expired

    def _retire(self, kind: RetentionKind, item: ExpiredItem) -> None:
        retired = RetiredFolder(self.settings.home)
        match kind:
            case "recordings":
                folder = RecordingFolder.from_settings(self.settings)
                path = self.settings.home / item.name
                for name, stored in folder.list_stored(path):
                    retired.save(kind, item.party, name, stored)
            case "transcripts":
                for name in self.archive.list_files(item.name):
                    retired.save(kind, item.party, name, self.archive.place.read(name))
            case "facts":
                retired.save(
                    kind, item.party, f"{item.id}.json", _read_fact(self.database, item)
                )
            case "documents":
                data = _read_document(self.database, item)
                retired.save(kind, item.party, f"{item.id}.json", data)

    def _remove(self, kind: RetentionKind, batch: Sequence[ExpiredItem]) -> None:
        ids = [item.id for item in batch]
        cutoff = self._cutoff(kind) or self.clock.now()
        match kind:
            case "recordings":
                folder = RecordingFolder.from_settings(self.settings)
                for item in batch:
                    folder.remove(self.settings.home / item.name)
                    _forget_recording(self.database, item.id, self.clock.now())
            case "transcripts":
                self.archive.erase_all(ids)
                fault_point("retention.after_files")
                _forget_transcripts(self.database, ids)
            case "facts":
                _forget_facts(self.database, ids, cutoff)
            case "documents":
                _forget_documents(self.database, ids, cutoff)

    def expire_answers(self) -> int:
        """Delete the model's answers and the traces of old calls; returns how many calls.

        A mark says up to which call this is done, so that old calls are not read each time.
        """
        days = self.settings.retention.answers_days
        done = 0
        if not days:
            return done
        cutoff = self.clock.now() - timedelta(days=days)
        while last := self._expire_some_answers(cutoff):
            done += last
        return done

    def expire_page_history(self) -> int:
        """Delete old revisions of pages; the newest stays. Returns how many."""
        days = self.settings.retention.pages_days
        if not days:
            return 0
        is_old = page_revisions.c.changed_at < self.clock.now() - timedelta(days=days)
        query = delete(page_revisions).where(is_old, is_superseded())
        return self.database.execute(query)

    def _expire_some_answers(self, cutoff: datetime) -> int:
        """Removes the answers of the next calls, and marks how far it came."""
        mark = select(upkeep.c.at).where(upkeep.c.name == ANSWERS_MARK)
        query = (
            select(calls.c.id, calls.c.started_at)
            .where(calls.c.started_at < cutoff)
            .order_by(calls.c.started_at)
        )
        with self.database.write() as connection:
            if (since := connection.execute(mark).scalar()) is not None:
                query = query.where(calls.c.started_at > since)
            rows = connection.execute(query.limit(BATCH_SIZE)).all()
            if not rows:
                return 0
            # Calls that began in the same instant must not be divided by the mark.
            last = rows[-1].started_at
            same = select(calls.c.id).where(calls.c.started_at == last)
            ids = {row.id for row in rows} | set(connection.execute(same).scalars())
            connection.execute(delete(answers).where(answers.c.call_id.in_(ids)))
            is_traced = and_(steps.c.call_id.in_(ids), steps.c.trace.is_not(None))
            connection.execute(update(steps).where(is_traced).values(trace=null()))
            upsert(connection, upkeep, {"name": ANSWERS_MARK}, {"at": last})
        return len(ids)

    def _cutoff(self, kind: RetentionKind) -> datetime | None:
        """None where this kind is kept for good."""
        days: int = getattr(self.settings.retention, f"{kind}_days")
        return self.clock.now() - timedelta(days=days) if days else None


def _select_expired(kind: RetentionKind, cutoff: datetime) -> Select[Any, Any, Any]:
    """Id, party and name of each expired item of a kind."""
    party = func.coalesce(calls.c.whose, calls.c.caller, "")
    match kind:
        case "recordings":
            return (
                select(recordings.c.id, party, recordings.c.path)
                .join(calls, calls.c.id == recordings.c.call_id)
                .where(calls.c.started_at < cutoff, recordings.c.path.is_not(None))
                .order_by(recordings.c.id)
            )
        case "transcripts":
            # A call with unfinished work is read again, so its transcript stays.
            has_open_work = exists().where(
                followup_runs.c.conversation == calls.c.conversation,
                followup_runs.c.state != "done",
            )
            is_old = and_(calls.c.state == "sealed", calls.c.ended_at < cutoff)
            return (
                select(calls.c.id, party, calls.c.archive_name)
                .where(is_old, calls.c.archive_name.is_not(None))
                .where(calls.c.postcall == "started", ~has_open_work)
                .order_by(calls.c.id)
            )
        case "facts":
            return (
                select(facts.c.id, facts.c.caller, facts.c.id)
                .where(facts.c.last_seen_at < cutoff)
                .order_by(facts.c.id)
            )
        case "documents":
            owner = func.coalesce(documents.c.caller, "")
            return (
                select(documents.c.id, owner, documents.c.id)
                .where(documents.c.changed_at < cutoff)
                .order_by(documents.c.id)
            )


def _read_fact(database: Database, item: ExpiredItem) -> bytes:
    """The fact with its occurrences; secrets stay sealed."""
    said = select(fact_occurrences).where(fact_occurrences.c.fact_id == item.id)
    with database.read() as connection:
        fact = connection.execute(select(facts).where(facts.c.id == item.id)).one()
        occurrences = [_to_plain(row) for row in connection.execute(said)]
    return _to_json(_to_plain(fact) | {"occurrences": occurrences})


def _read_document(database: Database, item: ExpiredItem) -> bytes:
    query = select(documents).where(documents.c.id == item.id)
    with database.read() as connection:
        return _to_json(_to_plain(connection.execute(query).one()))


def _forget_recording(database: Database, recording_id: str, now: datetime) -> None:
    gone: Json = {"state": "absent", "path": None, "transcript": "none"}
    gone |= {"reason": EXPIRED_RECORDING_REASON, "changed_at": now}
    database.execute(
        update(recordings).where(recordings.c.id == recording_id).values(gone)
    )


def _forget_transcripts(database: Database, call_ids: Sequence[str]) -> None:
    """Keep the calls as rows without words; delete their passages, answers and summaries."""
    gone = {"archive_name": None, "archive_sha256": None, "addenda": 0}
    owners = select(calls.c.agent_id, calls.c.caller, calls.c.whose).where(
        calls.c.id.in_(call_ids)
    )
    with database.write() as connection:
        for row in connection.execute(owners).all():
            invalidate_briefing(connection, row.agent_id, row.whose or row.caller)
        connection.execute(
            update(steps).where(steps.c.call_id.in_(call_ids)).values(result=None)
        )
        connection.execute(
            delete(passages).where(
                passages.c.call_id.in_(call_ids), passages.c.ref.is_(None)
            )
        )
        connection.execute(delete(answers).where(answers.c.call_id.in_(call_ids)))
        connection.execute(update(calls).where(calls.c.id.in_(call_ids)).values(gone))


def _forget_facts(
    database: Database, fact_ids: Sequence[str], cutoff: datetime
) -> None:
    """A fact that was said again since the listing stays."""
    owned = (facts.c.agent_id, facts.c.caller, facts.c.identity)
    still = select(facts.c.id, facts.c.metadata, *owned).where(
        facts.c.id.in_(fact_ids), facts.c.last_seen_at < cutoff
    )
    with database.write() as connection:
        rows = connection.execute(still.with_for_update()).all()
        expired = [str(row.id) for row in rows]
        corrected = [row.metadata.get(CORRECTED_BY_KEY) for row in rows]
        delete_chains(connection, [str(by) for by in corrected if by])
        for row in rows:
            delete_decisions(connection, row.agent_id, row.caller, row.identity)
        unlink_facts(connection, expired)
        connection.execute(delete(passages).where(passages.c.ref.in_(expired)))
        connection.execute(
            delete(fact_occurrences).where(fact_occurrences.c.fact_id.in_(expired))
        )
        connection.execute(delete(facts).where(facts.c.id.in_(expired)))


def _forget_documents(
    database: Database, document_ids: Sequence[str], cutoff: datetime
) -> None:
    """A document that was changed since the listing stays."""
    expired = and_(documents.c.id.in_(document_ids), documents.c.changed_at < cutoff)
    owners = select(documents.c.agent_id, documents.c.caller).where(expired).distinct()
    with database.write() as connection:
        for row in connection.execute(owners).all():
            invalidate_briefing(connection, row.agent_id, row.caller)
        connection.execute(delete(documents).where(expired))


@dataclass(frozen=True)
class RetiredFolder:
    """`<home>/retired`: expired items that are kept outside search and briefings.

    Each kind and number has one folder, so that erasing a caller finds all of theirs.
    """

    home: Path

    @property
    def root(self) -> Path:
        return self.home / "retired"

    def save(self, kind: str, party: str, name: str, data: bytes) -> None:
        """The file is on disk when this returns; saving it again replaces it."""
        owner = hash_caller(split_party(party)[0]) if party else NO_CALLER_FOLDER
        folder = self.root / kind / owner
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_synced(folder / name, data)

    def erase(self, number: str) -> int:
        """Delete everything of a number and all its persons; returns how many files."""
        folders = [
            path for path in self.root.glob(f"*/{hash_caller(number)}") if path.is_dir()
        ]
        count = sum(path.is_file() for folder in folders for path in folder.rglob("*"))
        for folder in folders:
            shutil.rmtree(folder)
        return count

    def erase_shared(self, call_ids: Collection[str]) -> int:
        """Delete what a shared memory kept of these calls; returns how many files changed.

        A fact that other calls said too stays, without the occurrences in these calls.
        """
        folders = [
            self.root / kind / owner
            for kind in ("facts", "documents")
            for owner in (hash_caller(SHARED_CALLER), NO_CALLER_FOLDER)
        ]
        files = [file for folder in folders for file in folder.glob("*.json")]
        return sum(self._remove_calls(file, frozenset(call_ids)) for file in files)

    def _remove_calls(self, file: Path, call_ids: frozenset[str]) -> bool:
        kept = json.loads(file.read_bytes())
        said = kept.get("occurrences", [])
        others = [each for each in said if each["call_id"] not in call_ids]
        if kept.get("call_id") in call_ids or (said and not others):
            file.unlink()
        elif len(others) < len(said):
            left = kept | {"occurrences": others, "occurrence_count": len(others)}
            replace_synced(file, _to_json(left))
        else:
            return False
        return True


def _to_plain(row: Row[Any]) -> Json:
    return {
        name: format_instant(value) if isinstance(value, datetime) else value
        for name, value in row._mapping.items()
    }


def _to_json(data: Json) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode()


QUEUE = "aftercall.retention"
POLL_INTERVAL_S = 10.0
MAX_ATTEMPTS = 5

# One for each process, as the durable engine is.
_retention: Retention | None = None


def opened_retention() -> Retention:
    if _retention is None:
        raise RuntimeError("retention has not been opened")
    return _retention


@workflow("aftercall.retention")
async def expire_all() -> None:
    for kind in KINDS:
        try:
            await expire_kind(kind)
        except Exception as error:  # noqa: BLE001 - the edge of a kind: the others still run
            log.warning("retention failed", kind=kind, error=error_code(error))


@step("aftercall.expire_kind", MAX_ATTEMPTS)
async def expire_kind(kind: RetentionKind) -> int:
    return len(await run_in_thread(opened_retention().expire, kind))


def open_retention(retention: Retention) -> None:
    """Call this before the durable engine starts."""
    global _retention
    _retention = retention
    register_queue(QUEUE, 1, poll_s=POLL_INTERVAL_S)


def close_retention() -> None:
    """Call this after the durable engine has stopped."""
    global _retention
    _retention = None


async def start_retention(retention: Retention) -> bool:
    """Start this hour's run if something has expired; several processes start the same run.

    Answers and ended workflows need no run of their own: one that is cut off goes on later.
    """
    await run_in_thread(retention.expire_answers)
    await run_in_thread(retention.expire_page_history)
    found = await run_in_thread(retention.find_expired)
    if not any(found.values()):
        return False
    with SetWorkflowID(f"retention:{retention.clock.now():%Y%m%dT%H}"):
        await DBOS.enqueue_workflow_async(QUEUE, expire_all)
    return True
