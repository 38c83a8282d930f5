"""The SQL of erasing one caller: every table that can hold something of theirs, and none
forgotten (a test compares).
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Column, Connection, Table, delete, insert, or_, select, text, update
from sqlalchemy.sql.elements import ColumnElement

from aftercall.db.connect import Database
from aftercall.db.statements import chunked, upsert
from aftercall.db.tables import (
    answers,
    briefings,
    call_topics,
    calls,
    deliveries,
    documents,
    extraction_log,
    fact_occurrences,
    facts,
    followup_history,
    followup_runs,
    followups,
    journal,
    passage_vectors,
    passages,
    pins,
    recordings,
    resume_states,
    steps,
)
from aftercall.ids import hash_caller
from aftercall.journal.store import CallRow, add_tombstone, to_call_row, to_columns
from aftercall.memory.passage_index import PassageIndex
from aftercall.memory.pins.store import clear_pins, strip_calls
from aftercall.memory.store import reindex_facts
from aftercall.model.calls import Call
from aftercall.model.people import PERSON_SEPARATOR
from aftercall.privacy.subject import ErasureSubject

IMPERSONAL_TABLES = ("audit", "home_claim", "processes", "tombstones", "upkeep")
"""Tables without a number, a name or words of anybody."""
ERASED_TABLES: tuple[Table, ...] = (
    briefings,
    passage_vectors,
    passages,
    fact_occurrences,
    facts,
    extraction_log,
    answers,
    documents,
    followup_history,
    deliveries,
    followups,
    followup_runs,
    recordings,
    steps,
    journal,
    resume_states,
    pins,
    call_topics,
    calls,
)
REBUILT_REASON = "rebuilt from the archive; follow-up work is not done again"


def list_calls(database: Database, number: str) -> list[CallRow]:
    """Their own calls, and those in which we rang them."""
    theirs = or_(
        calls.c.caller == number,
        _is_at_number(calls.c.whose, number),
        (calls.c.direction == "outbound") & (calls.c.callee == number),
    )
    with database.read() as connection:
        return [
            to_call_row(row)
            for row in connection.execute(select(calls).where(theirs).order_by(calls.c.started_at))
        ]


def erase_rows(connection: Connection, subject: ErasureSubject) -> dict[str, int]:
    """Take every row of theirs away, in an order that foreign keys allow; how many from each
    table.
    """
    told = _ids(
        connection, fact_occurrences.c.fact_id, _in(fact_occurrences.c.call_id, subject.call_ids)
    )
    condemned = _list_facts_to_erase(connection, subject, told)
    own = _ids(
        connection,
        followups.c.id,
        [
            followups.c.caller == subject.number,
            *_in(followups.c.conversation, subject.conversations),
        ],
    )
    numbers = _ids(
        connection,
        passages.c.n,
        [
            _is_at_number(passages.c.caller, subject.number),
            *_in(passages.c.call_id, subject.call_ids),
            *_in(passages.c.ref, condemned),
        ],
    )
    unlink_facts(connection, condemned)
    wanted: dict[Table, list[ColumnElement[bool]]] = {
        briefings: [_is_at_number(briefings.c.caller, subject.number), briefings.c.rests_on_all],
        passage_vectors: _in(passage_vectors.c.n, numbers),
        passages: _in(passages.c.n, numbers),
        fact_occurrences: [
            *_in(fact_occurrences.c.call_id, subject.call_ids),
            *_in(fact_occurrences.c.fact_id, condemned),
        ],
        facts: _in(facts.c.id, condemned),
        extraction_log: _in(extraction_log.c.call_id, subject.call_ids),
        answers: _in(answers.c.call_id, subject.call_ids),
        documents: [
            _is_at_number(documents.c.caller, subject.number),
            *_in(documents.c.call_id, subject.call_ids),
        ],
        followup_history: _in(followup_history.c.followup_id, own),
        deliveries: [
            *_in(deliveries.c.conversation, subject.conversations),
            *_in(deliveries.c.followup_id, own),
        ],
        followups: _in(followups.c.id, own),
        followup_runs: [
            followup_runs.c.caller == subject.number,
            *_in(followup_runs.c.conversation, subject.conversations),
        ],
        recordings: _in(recordings.c.call_id, subject.call_ids),
        steps: _in(steps.c.call_id, subject.call_ids),
        journal: _in(journal.c.call_id, subject.call_ids),
        resume_states: [resume_states.c.caller_hash == hash_caller(subject.number)],
        pins: [
            _is_at_number(pins.c.caller, subject.number),
            *_in(pins.c.id, strip_calls(connection, subject.call_ids)),
        ],
        call_topics: [
            _is_at_number(call_topics.c.caller, subject.number),
            *_in(call_topics.c.call_id, subject.call_ids),
        ],
        calls: _in(calls.c.id, subject.call_ids),
    }
    counts = {}
    for table in ERASED_TABLES:
        counts[table.name] = sum(
            connection.execute(delete(table).where(part)).rowcount for part in wanted[table]
        )
    reindex_facts(connection, PassageIndex(), sorted(set(told).difference(condemned)))
    return counts


def list_delivery_keys(database: Database, subject: ErasureSubject) -> list[str]:
    with database.read() as connection:
        return _ids(
            connection, deliveries.c.key, _in(deliveries.c.conversation, subject.conversations)
        )


def list_recording_paths(
    database: Database, subject: ErasureSubject
) -> list[tuple[str, str | None]]:
    """Ids, and where each lies below the home, if it does."""
    with database.read() as connection:
        found = [
            row
            for part in _in(recordings.c.call_id, subject.call_ids)
            for row in connection.execute(select(recordings).where(part))
        ]
    return [(row.id, row.path) for row in found]


def list_followup_ids(database: Database, subject: ErasureSubject) -> list[str]:
    with database.read() as connection:
        return _ids(
            connection,
            followups.c.id,
            [
                followups.c.caller == subject.number,
                *_in(followups.c.conversation, subject.conversations),
            ],
        )


def add_tombstones(connection: Connection, subject: ErasureSubject, now: datetime) -> None:
    for row in subject.rows:
        add_tombstone(connection, row.live.source, row.live.sid, row.live.id, now)


def vacuum(database: Database) -> None:
    """Deleted rows linger in the pages of a database until they are written over."""
    with database.engine.connect() as connection:
        if database.dialect == "sqlite":
            for statement in (
                "INSERT INTO passages_fts (passages_fts) VALUES ('optimize')",
                "COMMIT",
                "VACUUM",
                "PRAGMA wal_checkpoint(TRUNCATE)",
            ):
                connection.exec_driver_sql(statement)
            return
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in ERASED_TABLES:
            connection.execute(text(f"VACUUM {table.name}"))


def _list_facts_to_erase(
    connection: Connection, subject: ErasureSubject, told: Sequence[str]
) -> list[str]:
    """Their facts; and of a shared memory, those that nobody else ever said."""
    own = _ids(connection, facts.c.id, [_is_at_number(facts.c.caller, subject.number)])
    others = set()
    for some in _in(fact_occurrences.c.fact_id, told):
        query = select(fact_occurrences.c.fact_id, fact_occurrences.c.call_id).where(some)
        others |= {
            row.fact_id for row in connection.execute(query) if row.call_id not in subject.call_ids
        }
    return sorted({*own, *(fact_id for fact_id in told if fact_id not in others)})


def unlink_facts(connection: Connection, fact_ids: Sequence[str]) -> None:
    """What stays no longer names what goes."""
    for column in (facts.c.supersedes, facts.c.superseded_by):
        for some in _in(column, fact_ids):
            connection.execute(update(facts).where(some).values({column.name: None}))


def _ids(
    connection: Connection, column: Column[str], wanted: Sequence[ColumnElement[bool]]
) -> list[str]:
    return sorted(
        {row[0] for part in wanted for row in connection.execute(select(column).where(part))}
    )


def _is_at_number(column: Column[str], number: str) -> ColumnElement[bool]:
    """The number's owner, and everybody else who speaks from it."""
    return or_(column == number, column.startswith(f"{number}{PERSON_SEPARATOR}", autoescape=True))


def list_parties(database: Database, agent_id: str, number: str) -> list[str]:
    """Who is remembered at a number, its owner first."""
    remembered = [
        select(table.c.caller)
        .where(table.c.agent_id == agent_id, _is_at_number(table.c.caller, number))
        .distinct()
        for table in (facts, pins)
    ]
    with database.read() as connection:
        return sorted(
            {
                number,
                *(str(row.caller) for query in remembered for row in connection.execute(query)),
            }
        )


def _in(column: Column[str], values: Sequence[object]) -> list[ColumnElement[bool]]:
    """In pieces: a statement takes only so many values."""
    return [column.in_(some) for some in chunked(values)]


def list_documents(database: Database, subject: ErasureSubject) -> list[tuple[str, str]]:
    """Ids and contents, oldest first."""
    wanted = [
        _is_at_number(documents.c.caller, subject.number),
        *_in(documents.c.call_id, subject.call_ids),
    ]
    with database.read() as connection:
        found = {
            row.id: row
            for part in wanted
            for row in connection.execute(select(documents).where(part))
        }
    return [
        (row.id, row.content)
        for row in sorted(found.values(), key=lambda row: (row.made_at, row.id))
    ]


def clear_memory(connection: Connection) -> None:
    """Take away what can be made again from the archive.

    Documents that a client handed in cannot, nor facts of calls that are no
    longer there: both stay.
    """
    gone = select(calls.c.id).where(calls.c.state == "sealed", calls.c.archive_name.is_(None))
    kept = select(fact_occurrences.c.fact_id).where(fact_occurrences.c.call_id.in_(gone))
    made = select(facts.c.id).where(facts.c.id.not_in(kept)).scalar_subquery()
    clear_pins(connection)
    connection.execute(
        delete(passages).where(or_(passages.c.ref.is_(None), passages.c.ref.in_(made)))
    )
    connection.execute(delete(fact_occurrences).where(fact_occurrences.c.fact_id.in_(made)))
    connection.execute(update(facts).values(supersedes=None).where(facts.c.id.in_(made)))
    connection.execute(delete(extraction_log).where(extraction_log.c.call_id.not_in(gone)))
    connection.execute(delete(briefings))
    connection.execute(delete(facts).where(facts.c.id.in_(made)))
    connection.execute(
        delete(documents).where(documents.c.call_id.is_not(None), documents.c.call_id.not_in(gone))
    )


def insert_archived_call(
    connection: Connection, call: Call, name: str, sha256: str, now: datetime
) -> bool:
    """Note a sealed call that the database does not know; whether it was new.

    Its follow-up work counts as done.

    The archive does not say who answered: such a call names no agent, and breaks no promise of
    ours.
    """
    if connection.execute(select(calls.c.id).where(calls.c.id == call.id)).first():
        return False
    sealed = {
        "state": "sealed",
        "owner": "rebuild",
        "postcall": "started",
        "turn_count": len(call.turns),
        "archive_name": name,
    }
    sealed |= {"is_silent": call.is_silent, "is_handed_in": True}
    ended = {
        "ended_at": call.ended_at,
        "end_reason": call.end_reason,
        "archive_sha256": sha256,
        "sealed_at": now,
    }
    connection.execute(insert(calls), to_columns(call) | sealed | ended)
    run = {
        "agent_id": call.agent_id,
        "caller": call.caller,
        "ended_at": call.ended_at,
        "state": "done",
        "changed_at": now,
    }
    upsert(
        connection,
        followup_runs,
        {"conversation": call.conversation},
        run | {"reason": REBUILT_REASON},
        changes={},
    )
    return True
