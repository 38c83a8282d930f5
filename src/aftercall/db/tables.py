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
)

recordings = Table(
    "recordings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("call_id", Text, ForeignKey("calls.id"), nullable=False),
    Column("carrier", Text, nullable=False),
    Column("sid", Text, nullable=False),
    Column("url", Text),
    Column("state", Text, nullable=False, comment="waiting, downloading, here, absent, failed"),
    Column("sha256", Text),
    Column("bytes", Number),
    Column("path", Text, comment="below the home"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("reason", Text, nullable=False),
    Column("transcript", Text, nullable=False, server_default="none", comment="none, waiting, here, failed"),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_recordings_carrier_sid", "carrier", "sid", unique=True),
    Index("ix_recordings_call", "call_id"),
    Index("ix_recordings_due", "state", sqlite_where=text("state = 'waiting'"), postgresql_where=text("state = 'waiting'")),
)

processes = Table(
    "processes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("started_at", InstantColumn, nullable=False),
    Column("beat_at", InstantColumn, nullable=False),
)
