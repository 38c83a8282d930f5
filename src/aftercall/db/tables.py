"""Every table, on one page. Migrations must lead to exactly this; a test compares the two."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Column, DateTime, Dialect, ForeignKey, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.types import TypeDecorator, TypeEngine

from aftercall.clock import to_millisecond
from aftercall.model.instants import format_instant, parse_instant

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class InstantColumn(TypeDecorator[datetime]):
    """An instant with its zone: a native one on Postgres, sortable readable text on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return format_instant(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return to_millisecond(value) if dialect.name == "postgresql" else parse_instant(value)


Number = BigInteger().with_variant(Integer(), "sqlite")

calls = Table(
    "calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("sid", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("caller", Text),
    Column("callee", Text),
    Column("verified", Boolean, nullable=False),
    Column("started_at", InstantColumn, nullable=False),
    Column("ended_at", InstantColumn),
    Column("end_reason", Text),
    Column("conversation", Text, nullable=False),
    Column("resumes", Text),
    Column("metadata", JSON, nullable=False),
    Column("state", Text, nullable=False, comment="live, sealing, sealed"),
    Column("owner", Text, nullable=False, comment="the process that keeps or seals it"),
    Column("turn_count", Integer, nullable=False, server_default="0"),
    Column("addenda", Integer, nullable=False, server_default="0"),
    Column("archive_name", Text),
    Column("archive_sha256", Text),
    Column("sealed_at", InstantColumn),
    Column("postcall", Text, comment="due when sealed, then started; the steps tell the rest"),
    Index("ix_calls_source_sid", "source", "sid", unique=True),
    Index("ix_calls_started", "started_at", "id"),
    Index("ix_calls_caller", "caller", "started_at"),
    Index("ix_calls_conversation", "conversation"),
    Index("ix_calls_due", "postcall", sqlite_where=text("postcall = 'due'"), postgresql_where=text("postcall = 'due'")),
    Index("ix_calls_unsealed", "state", sqlite_where=text("state <> 'sealed'"), postgresql_where=text("state <> 'sealed'")),
)

# Rows of live calls only, in the order of writing. No index besides the key, on purpose: two hundred live calls
# then share the pages of one commit; with an index by call each would dirty a page of its own (six times slower).
# Sealing and recovery scan it, which is short because sealed calls leave it.
journal = Table(
    "journal",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=True),
    Column("call_id", Text, ForeignKey("calls.id"), nullable=False),
    Column("kind", Text, nullable=False, comment="turn, event"),
    Column("seq", Integer, nullable=False),
    Column("body", Text, nullable=False),
)

resume_states = Table(
    "resume_states",
    metadata,
    Column("agent_id", Text, primary_key=True),
    Column("caller_hash", Text, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("conversation", Text, nullable=False),
    Column("ended_at", InstantColumn, nullable=False),
)

steps = Table(
    "steps",
    metadata,
    Column("call_id", Text, ForeignKey("calls.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("state", Text, nullable=False, comment="waiting, running, done, failed, skipped"),
    Column("reason", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("result", Text),
    Column("changed_at", InstantColumn, nullable=False),
    Column("trace", JSON, comment="who answered, to which prompt, at what cost"),
)

processes = Table(
    "processes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("started_at", InstantColumn, nullable=False),
    Column("beat_at", InstantColumn, nullable=False),
)

# The outbox and the timer of follow-up work: sealing writes a row, whoever is at work runs it once the window has passed.
followup_runs = Table(
    "followup_runs",
    metadata,
    Column("conversation", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column("ended_at", InstantColumn, nullable=False, comment="the end of the last leg; the reconnect window counts from here"),
    Column("state", Text, nullable=False, comment="due, running, done, failed"),
    Column("reason", Text, nullable=False),
    Column("run", Integer, nullable=False, server_default="0", comment="how often it was started"),
    Column("finished_run", Integer, nullable=False, server_default="0"),
    Column("wrong_passcodes", Integer, nullable=False, server_default="0"),
    Column("legs", JSON, comment="call id: how many turns its caller had"),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_followup_runs_open", "state", sqlite_where=text("state <> 'done'"), postgresql_where=text("state <> 'done'")),
    Index("ix_followup_runs_caller", "caller", "ended_at"),
)

followups = Table(
    "followups",
    metadata,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False, comment="of conversation, kind and title: the same request is the same row"),
    Column("kind", Text, nullable=False, comment="request, promise"),
    Column("request_kind", Text, nullable=False, comment="issue, task, reminder, note, message, booking, other"),
    Column("title", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("person", Text),
    Column("due", Text, comment="a day, or an instant"),
    Column("conversation", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column("turns", JSON, nullable=False, comment="pairs of call id and turn number"),
    Column("words", Text, nullable=False),
    Column("state", Text, nullable=False, comment="open, held, doing, done, failed, refused, withdrawn, expired, broken"),
    Column("reason", Text, nullable=False),
    Column("link", Text),
    Column("trust", Text, nullable=False, comment="verified, known, unknown"),
    Column("sink", Text, nullable=False, comment="names of the sinks, joined by +"),
    Column("fulfilled_by", Text, comment="the follow-up that keeps this promise"),
    Column("round", Integer, nullable=False, server_default="0", comment="how often it was approved or tried again by hand"),
    Column("queued", Text, comment="due when it waits to be done outside its conversation's run, then started"),
    Column("remind_at", InstantColumn),
    Column("reminder", Text, comment="due, then started"),
    Column("created_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_followups_key", "key", unique=True),
    Index("ix_followups_conversation", "conversation"),
    Index("ix_followups_caller", "caller", "created_at"),
    Index("ix_followups_state", "state"),
    Index("ix_followups_queued", "queued", sqlite_where=text("queued = 'due'"), postgresql_where=text("queued = 'due'")),
    Index("ix_followups_reminder", "remind_at", sqlite_where=text("reminder = 'due'"), postgresql_where=text("reminder = 'due'")),
)

followup_history = Table(
    "followup_history",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=True),
    Column("followup_id", Text, ForeignKey("followups.id"), nullable=False),
    Column("at", InstantColumn, nullable=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("note", Text, nullable=False),
    Index("ix_followup_history_followup", "followup_id", "n"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("key", Text, primary_key=True, comment="the idempotency key a sink is given"),
    Column("followup_id", Text, ForeignKey("followups.id")),
    Column("conversation", Text, nullable=False),
    Column("sink", Text, nullable=False),
    Column("purpose", Text, nullable=False, comment="request, reminder, notice, journal"),
    Column("state", Text, nullable=False, comment="sending, waiting, done, rehearsed, dead"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("reason", Text, nullable=False),
    Column("link", Text),
    Column("response", Text, comment="what the sink answered"),
    Column("created_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_deliveries_followup", "followup_id"),
    Index("ix_deliveries_conversation", "conversation"),
    Index("ix_deliveries_state", "state"),
)

upkeep = Table(
    "upkeep",
    metadata,
    Column("name", Text, primary_key=True),
    Column("at", InstantColumn, nullable=False),
    Column("found", JSON),
)
