"""The SQL of retention: what of each kind is past its time, and letting go of it with
everything that repeats it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, delete, exists, func, select, update

from aftercall.clock import format_instant
from aftercall.db.connect import Database
from aftercall.db.stale_briefings import invalidate_briefing
from aftercall.db.tables import (
    answers,
    calls,
    documents,
    fact_occurrences,
    facts,
    followup_runs,
    passages,
    recordings,
    steps,
)
from aftercall.privacy.store import unlink_facts


@dataclass(frozen=True)
class ExpiredItem:
    """One thing of a kind: its id, whose it is, and how it is called when it is told what would
    go.
    """

    id: str
    party: str = field(repr=False)
    name: str


SOME = 500


def list_expired_recordings(database: Database, before: datetime) -> list[ExpiredItem]:
    """Those of calls that began before then and that are still here."""
    query = select(recordings.c.id, recordings.c.path, _whose).join(
        calls, calls.c.id == recordings.c.call_id
    )
    wanted = query.where(calls.c.started_at < before, recordings.c.path.is_not(None)).order_by(
        recordings.c.id
    )
    with database.read() as connection:
        return [ExpiredItem(row.id, row.whose, row.path) for row in connection.execute(wanted)]


def list_expired_transcripts(database: Database, before: datetime) -> list[ExpiredItem]:
    """Sealed calls whose work is all done; one that still waits for something is read again,
    and stays.
    """
    waits = exists().where(
        followup_runs.c.conversation == calls.c.conversation, followup_runs.c.state != "done"
    )
    is_old = and_(
        calls.c.state == "sealed", calls.c.archive_name.is_not(None), calls.c.ended_at < before
    )
    wanted = (
        select(calls.c.id, calls.c.archive_name, _whose)
        .where(is_old, calls.c.postcall == "started", ~waits)
        .order_by(calls.c.id)
    )
    with database.read() as connection:
        return [
            ExpiredItem(row.id, row.whose, row.archive_name) for row in connection.execute(wanted)
        ]


def list_expired_facts(database: Database, before: datetime) -> list[ExpiredItem]:
    """By when they were last said: what is said again stays."""
    wanted = (
        select(facts.c.id, facts.c.caller).where(facts.c.last_seen_at < before).order_by(facts.c.id)
    )
    with database.read() as connection:
        return [ExpiredItem(row.id, row.caller, row.id) for row in connection.execute(wanted)]


def list_expired_documents(database: Database, before: datetime) -> list[ExpiredItem]:
    wanted = (
        select(documents.c.id, documents.c.caller)
        .where(documents.c.changed_at < before)
        .order_by(documents.c.id)
    )
    with database.read() as connection:
        return [ExpiredItem(row.id, row.caller or "", row.id) for row in connection.execute(wanted)]


def read_fact(database: Database, fact_id: str) -> bytes:
    """As it stands, with every time it was said; secrets stay sealed."""
    with database.read() as connection:
        fact = connection.execute(select(facts).where(facts.c.id == fact_id)).one()
        said = connection.execute(
            select(fact_occurrences).where(fact_occurrences.c.fact_id == fact_id)
        ).all()
    return _to_json(_plain(fact) | {"occurrences": [_plain(row) for row in said]})


def read_document(database: Database, document_id: str) -> bytes:
    with database.read() as connection:
        return _to_json(
            _plain(connection.execute(select(documents).where(documents.c.id == document_id)).one())
        )


def forget_recording(database: Database, recording_id: str, reason: str, now: datetime) -> None:
    gone = {
        "state": "absent",
        "path": None,
        "transcript": "none",
        "reason": reason,
        "changed_at": now,
    }
    with database.write() as connection:
        connection.execute(update(recordings).where(recordings.c.id == recording_id).values(gone))


def forget_transcripts(database: Database, call_ids: Sequence[str]) -> None:
    """The calls stay as rows without words; what could be found of them and what was made of
    them, summaries too, goes.
    """
    gone = {"archive_name": None, "archive_sha256": None, "addenda": 0}
    whose = select(calls.c.agent_id, calls.c.caller, calls.c.whose).where(calls.c.id.in_(call_ids))
    with database.write() as connection:
        for row in connection.execute(whose).all():
            invalidate_briefing(connection, row.agent_id, row.whose or row.caller)
        connection.execute(update(steps).where(steps.c.call_id.in_(call_ids)).values(result=None))
        connection.execute(
            delete(passages).where(passages.c.call_id.in_(call_ids), passages.c.ref.is_(None))
        )
        connection.execute(delete(answers).where(answers.c.call_id.in_(call_ids)))
        connection.execute(update(calls).where(calls.c.id.in_(call_ids)).values(gone))


def forget_facts(database: Database, fact_ids: Sequence[str], before: datetime) -> None:
    """Unless one was said again meanwhile."""
    with database.write() as connection:
        still = select(facts.c.id).where(facts.c.id.in_(fact_ids), facts.c.last_seen_at < before)
        going = [str(row.id) for row in connection.execute(still.with_for_update())]
        unlink_facts(connection, going)
        connection.execute(delete(passages).where(passages.c.ref.in_(going)))
        connection.execute(delete(fact_occurrences).where(fact_occurrences.c.fact_id.in_(going)))
        connection.execute(delete(facts).where(facts.c.id.in_(going)))


def forget_documents(database: Database, document_ids: Sequence[str], before: datetime) -> None:
    going = and_(documents.c.id.in_(document_ids), documents.c.changed_at < before)
    with database.write() as connection:
        for row in connection.execute(
            select(documents.c.agent_id, documents.c.caller).where(going).distinct()
        ).all():
            invalidate_briefing(connection, row.agent_id, row.caller)
        connection.execute(delete(documents).where(going))


_whose = func.coalesce(calls.c.whose, calls.c.caller, "").label("whose")


def _plain(row: Row[Any]) -> dict[str, Any]:
    return {
        name: format_instant(value) if isinstance(value, datetime) else value
        for name, value in row._mapping.items()
    }


def _to_json(data: dict[str, Any]) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode()
