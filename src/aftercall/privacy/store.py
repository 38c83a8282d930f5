"""The rows of one caller in every table, and their erasure.

A test compares `ERASED_TABLES` and `IMPERSONAL_TABLES` with the schema: no table is forgotten.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from sqlalchemy import (
    Column,
    Connection,
    Table,
    and_,
    delete,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.sql.elements import ColumnElement

from aftercall.db.connect import Database
from aftercall.db.conversations import answer_delays
from aftercall.db.corrections import corrections
from aftercall.db.event_log import events, format_event_id
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
    handovers,
    journal,
    page_revisions,
    passage_vectors,
    passages,
    pins,
    recordings,
    resume_states,
    steps,
    upkeep,
)
from aftercall.encryption import FileCipher
from aftercall.ids import hash_caller
from aftercall.journal.archive import Archive
from aftercall.journal.store import (
    ERASED_CALLER,
    CallRow,
    add_tombstone,
    to_call_row,
)
from aftercall.journal.view import read_whole
from aftercall.memory.fact_rows import reindex_facts
from aftercall.memory.pins.store import strip_calls
from aftercall.model.calls import Call
from aftercall.model.people import PERSON_SEPARATOR
from aftercall.workspace.revisions import is_superseded

IMPERSONAL_TABLES = (
    "archive_chain",  # its files are removed with their tombstones
    "audit",
    "browser_sessions",
    "home_claim",
    "processes",
    "tombstones",
    "upkeep",  # the terms of an unfinished erasure are encrypted
    "users",
)
"""Tables that hold no number, no name and no words of a caller."""
ERASED_TABLES: tuple[Table, ...] = (
    briefings,
    corrections,
    passage_vectors,
    passages,
    fact_occurrences,
    facts,
    extraction_log,
    answers,
    answer_delays,
    documents,
    followup_history,
    events,
    deliveries,
    followups,
    followup_runs,
    recordings,
    steps,
    journal,
    handovers,
    resume_states,
    pins,
    call_topics,
    page_revisions,
    calls,
)
"""In an order that the foreign keys allow."""
_BY_CALL = (
    extraction_log,
    answers,
    answer_delays,
    recordings,
    steps,
    journal,
    handovers,
)

Condition = ColumnElement[bool]


@dataclass(frozen=True)
class DataSubject:
    """The person behind a number, with the calls that are theirs."""

    number: str = field(repr=False)
    rows: tuple[CallRow, ...] = field(repr=False)
    erased_calls: tuple[str, ...] = ()
    """Calls whose rows an unfinished erasure has removed."""
    erased_conversations: tuple[str, ...] = ()

    @property
    def call_ids(self) -> tuple[str, ...]:
        found = (row.live.id for row in self.rows)
        return tuple(dict.fromkeys((*found, *self.erased_calls)))

    @property
    def conversations(self) -> tuple[str, ...]:
        found = (row.live.conversation for row in self.rows)
        return tuple(dict.fromkeys((*found, *self.erased_conversations)))

    def read_calls(self, archive: Archive) -> Iterator[Call]:
        """Their archived calls with late turns; calls whose files are gone are skipped."""
        names = set(archive.place.list_names())
        for row in self.rows:
            if row.archive_name in names:
                yield read_whole(archive, row)


def load_subject(database: Database, number: str) -> DataSubject:
    """With the calls from this number, and the outbound calls to it."""
    theirs = or_(
        calls.c.caller == number,
        _is_at_number(calls.c.whose, number),
        (calls.c.direction == "outbound") & (calls.c.callee == number),
    )
    query = select(calls).where(theirs).order_by(calls.c.started_at)
    return DataSubject(number, tuple(to_call_row(row) for row in database.fetch(query)))


@dataclass(frozen=True)
class ErasureTerms:
    """What an erasure looks for: ids, words, names of files, and parts of names."""

    calls: frozenset[str] = field(repr=False)
    conversations: frozenset[str] = field(repr=False)
    needles: frozenset[str] = field(repr=False)
    names: frozenset[str] = field(repr=False)
    name_parts: frozenset[str] = field(repr=False)

    def merge(self, other: "ErasureTerms") -> "ErasureTerms":
        mine = asdict(self)
        theirs = asdict(other)
        return ErasureTerms(**{kind: mine[kind] | theirs[kind] for kind in mine})


def keep_terms(
    database: Database,
    cipher: FileCipher,
    number: str,
    found: ErasureTerms,
    now: datetime,
) -> ErasureTerms:
    """Stores the terms, encrypted, with those of an erasure that was not finished.

    An erasure removes what its terms are made of: a second one would not know them. Raises
    FileUnreadable if they were encrypted with another key.
    """
    name = _make_terms_name(number)
    with database.write() as connection:
        query = select(upkeep.c.found).where(upkeep.c.name == name)
        if before := connection.execute(query).scalar():
            clear = json.loads(cipher.decode(bytes.fromhex(before["terms"])))
            lists = {kind: frozenset(words) for kind, words in clear.items()}
            found = found.merge(ErasureTerms(**lists))
        words = {kind: sorted(words) for kind, words in asdict(found).items()}
        stored = cipher.encrypt(json.dumps(words).encode()).hex()
        values = {"at": now, "found": {"terms": stored}}
        upsert(connection, upkeep, {"name": name}, values)
    return found


def drop_terms(database: Database, number: str) -> None:
    """When nothing is left that they name."""
    with database.write() as connection:
        is_theirs = upkeep.c.name == _make_terms_name(number)
        connection.execute(delete(upkeep).where(is_theirs))


def _make_terms_name(number: str) -> str:
    return f"erasure {hash_caller(number)}"


def erase_rows(connection: Connection, subject: DataSubject) -> dict[str, int]:
    """Delete every row of theirs; returns how many from each table."""
    said = _in(fact_occurrences.c.call_id, subject.call_ids)
    said_fact_ids = _select_ids(connection, fact_occurrences.c.fact_id, said)
    fact_ids = _list_facts_to_erase(connection, subject, said_fact_ids)
    unlink_facts(connection, fact_ids)
    conditions = _make_conditions(connection, subject, fact_ids)
    counts = {}
    for table in ERASED_TABLES:
        deleted = [
            connection.execute(delete(table).where(part)) for part in conditions[table]
        ]
        counts[table.name] = sum(result.rowcount for result in deleted)
    reindex_facts(connection, sorted(set(said_fact_ids).difference(fact_ids)))
    return counts


def _make_conditions(
    connection: Connection, subject: DataSubject, fact_ids: Sequence[str]
) -> dict[Table, list[Condition]]:
    """Which rows of each table are theirs. Ids are read first: the rows they hang on go too."""
    number, call_ids, conversations = (
        subject.number,
        subject.call_ids,
        subject.conversations,
    )
    followup_ids = _select_ids(connection, followups.c.id, _followups_of(subject))
    passages_of = [
        _is_at_number(passages.c.caller, number),
        *_in(passages.c.call_id, call_ids),
        *_in(passages.c.ref, fact_ids),
    ]
    passage_ids = _select_ids(connection, passages.c.n, passages_of)
    pin_ids = strip_calls(connection, call_ids)
    return {
        **{table: _in(table.c.call_id, call_ids) for table in _BY_CALL},
        **{
            table: [
                _is_at_number(table.c.caller, number),
                *_in(table.c.call_id, call_ids),
            ]
            for table in (documents, call_topics, corrections)
        },
        briefings: [
            _is_at_number(briefings.c.caller, number),
            briefings.c.rests_on_all,
        ],
        passage_vectors: _in(passage_vectors.c.n, passage_ids),
        passages: _in(passages.c.n, passage_ids),
        fact_occurrences: [
            *_in(fact_occurrences.c.call_id, call_ids),
            *_in(fact_occurrences.c.fact_id, fact_ids),
        ],
        facts: _in(facts.c.id, fact_ids),
        followup_history: _in(followup_history.c.followup_id, followup_ids),
        events: _events_of(subject),
        deliveries: [
            *_in(deliveries.c.conversation, conversations),
            *_in(deliveries.c.conversation, _list_events(connection, subject)),
            *_in(deliveries.c.followup_id, followup_ids),
        ],
        followups: _in(followups.c.id, followup_ids),
        followup_runs: [
            followup_runs.c.caller == number,
            *_in(followup_runs.c.conversation, conversations),
        ],
        resume_states: [resume_states.c.caller_hash == hash_caller(number)],
        pins: [_is_at_number(pins.c.caller, number), *_in(pins.c.id, pin_ids)],
        # The pages are changed by now. Their history may have the words of anybody.
        page_revisions: [is_superseded()],
        calls: _in(calls.c.id, call_ids),
    }


def _list_facts_to_erase(
    connection: Connection, subject: DataSubject, said_fact_ids: Sequence[str]
) -> list[str]:
    """Facts of their memory, and facts of a shared memory that only their calls said."""
    own = _select_ids(
        connection, facts.c.id, [_is_at_number(facts.c.caller, subject.number)]
    )
    said_by_others = set()
    for part in _in(fact_occurrences.c.fact_id, said_fact_ids):
        query = select(fact_occurrences.c.fact_id, fact_occurrences.c.call_id).where(
            part
        )
        for row in connection.execute(query):
            if row.call_id not in subject.call_ids:
                said_by_others.add(row.fact_id)
    return sorted({*own, *said_fact_ids} - (said_by_others - set(own)))


def unlink_facts(connection: Connection, fact_ids: Sequence[str]) -> None:
    """Remove references to these facts from the facts that stay."""
    for part in _in(facts.c.id, fact_ids):
        disputes = select(facts.c.dispute).where(part, facts.c.dispute.is_not(None))
        disputed = facts.c.dispute.in_(connection.execute(disputes).scalars().all())
        connection.execute(update(facts).where(disputed).values(dispute=None))
    for column in (facts.c.supersedes, facts.c.superseded_by, facts.c.doubt):
        for part in _in(column, fact_ids):
            connection.execute(update(facts).where(part).values({column.name: None}))


def add_tombstones(connection: Connection, subject: DataSubject, now: datetime) -> None:
    for row in subject.rows:
        add_tombstone(connection, row.live.source, row.live.sid, row.live.id, now)
    add_tombstone(connection, ERASED_CALLER, subject.number, "", now)


def vacuum(database: Database) -> None:
    """Deleted rows stay in the pages of a database file until they are overwritten."""
    if database.dialect == "sqlite":
        with database.engine.connect() as connection:
            for statement in (
                "INSERT INTO passages_fts (passages_fts) VALUES ('optimize')",
                "COMMIT",
                "VACUUM",
                "PRAGMA wal_checkpoint(TRUNCATE)",
            ):
                connection.exec_driver_sql(statement)
        return
    with database.engine.connect().execution_options(
        isolation_level="AUTOCOMMIT"
    ) as connection:
        for table in ERASED_TABLES:
            connection.execute(text(f"VACUUM {table.name}"))


def list_delivery_keys(database: Database, subject: DataSubject) -> list[str]:
    theirs = _in(deliveries.c.conversation, subject.conversations)
    with database.read() as connection:
        return _select_ids(connection, deliveries.c.key, theirs)


def list_event_ids(database: Database, subject: DataSubject) -> list[str]:
    with database.read() as connection:
        return _list_events(connection, subject)


def _list_events(connection: Connection, subject: DataSubject) -> list[str]:
    found: set[str] = set()
    for part in _events_of(subject):
        is_theirs = and_(part, events.c.id.is_not(None))
        query = select(events.c.id).where(is_theirs)
        found.update(map(format_event_id, connection.execute(query).scalars()))
    return sorted(found)


def _events_of(subject: DataSubject) -> list[Condition]:
    return [
        _is_at_number(events.c.caller, subject.number),
        *_in(events.c.call_id, subject.call_ids),
    ]


def list_followup_ids(database: Database, subject: DataSubject) -> list[str]:
    with database.read() as connection:
        return _select_ids(connection, followups.c.id, _followups_of(subject))


def list_recordings(database: Database, subject: DataSubject) -> list[tuple[str, str]]:
    """The ids of each recording's call and of the recording itself."""
    columns = (recordings.c.call_id, recordings.c.id)
    return [
        (row.call_id, row.id)
        for part in _in(recordings.c.call_id, subject.call_ids)
        for row in database.fetch(select(*columns).where(part))
    ]


def list_documents(database: Database, subject: DataSubject) -> list[tuple[str, str]]:
    """Ids and contents, oldest first."""
    theirs = [
        _is_at_number(documents.c.caller, subject.number),
        *_in(documents.c.call_id, subject.call_ids),
    ]
    found = {}
    with database.read() as connection:
        for part in theirs:
            for row in connection.execute(select(documents).where(part)):
                found[row.id] = row
    ordered = sorted(found.values(), key=lambda row: (row.made_at, row.id))
    return [(row.id, row.content) for row in ordered]


def list_agents(database: Database) -> list[str]:
    """Every agent that took a call, or has facts or documents."""
    agents: set[str] = set()
    with database.read() as connection:
        for table in (calls, facts, documents):
            agents.update(
                connection.execute(select(table.c.agent_id).distinct()).scalars()
            )
    return sorted(agents)


def list_parties(database: Database, agent_id: str, number: str) -> list[str]:
    """The parties with a memory at a number, its owner first."""
    parties = {number}
    with database.read() as connection:
        for table in (facts, pins):
            theirs = (
                table.c.agent_id == agent_id,
                _is_at_number(table.c.caller, number),
            )
            parties |= set(
                connection.execute(select(table.c.caller).where(*theirs)).scalars()
            )
    return sorted(parties)


def _followups_of(subject: DataSubject) -> list[Condition]:
    by_conversation = _in(followups.c.conversation, subject.conversations)
    return [followups.c.caller == subject.number, *by_conversation]


def _select_ids(
    connection: Connection, column: Column[str], conditions: Sequence[Condition]
) -> list[str]:
    found: set[str] = set()
    for part in conditions:
        found.update(connection.execute(select(column).where(part)).scalars())
    return sorted(found)


def _is_at_number(column: Column[str], number: str) -> Condition:
    """The number's owner, or another person who speaks from it."""
    return or_(
        column == number,
        column.startswith(f"{number}{PERSON_SEPARATOR}", autoescape=True),
    )


def _in(column: Column[str], values: Sequence[object]) -> list[Condition]:
    """One condition for each chunk: a statement takes a limited number of values."""
    return [column.in_(chunk) for chunk in chunked(values)]
