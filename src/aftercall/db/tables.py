"""Every table, on one page. Migrations must lead to exactly this; a test compares the two."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Column, DateTime, Dialect, Float, ForeignKey, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.types import TypeDecorator, TypeEngine

from aftercall.clock import to_millisecond
from aftercall.model.instants import format_instant

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
        return to_millisecond(value) if dialect.name == "postgresql" else datetime.fromisoformat(value)


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

_ACTIVE = text("is_active")

# Content and summary of a secret stand here encrypted, and `identity` and `matching` are keyed hashes: see memory/vault.py.
facts = Table(
    "facts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text, nullable=False, comment="whose memory: a caller, or * where memory is shared"),
    Column("category", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("visibility", Text, nullable=False, comment="shared, private, secret"),
    Column("confidence", Float, nullable=False),
    Column("needs_confirmation", Boolean, nullable=False, comment="heard too badly to be relied on: to be read back"),
    Column("first_seen_at", InstantColumn, nullable=False),
    Column("last_seen_at", InstantColumn, nullable=False),
    Column("valid_from", InstantColumn, nullable=False),
    Column("valid_until", InstantColumn),
    Column("occurrence_count", Integer, nullable=False, comment="always the number of its occurrences"),
    Column("supersedes", Text, comment="a fact's id; no foreign key, for both ends of a link change in either order"),
    Column("superseded_by", Text),
    Column("is_active", Boolean, nullable=False),
    Column("identity", Text, nullable=False, comment="keyed hash of what it says, however it is worded"),
    Column("matching", Text, comment="subject and attribute; a keyed hash where the fact is secret"),
    Column("reader", Text, nullable=False),
    Column("prompt_hash", Text),
    Column("metadata", JSON, nullable=False),
    Index("ix_facts_memory", "agent_id", "caller", "is_active", "last_seen_at"),
    Index("ix_facts_category", "category"),
    Index("ix_facts_caller", "caller"),
    Index("ix_facts_visibility", "visibility"),
    Index("ix_facts_is_active", "is_active"),
    Index("ix_facts_twins", "agent_id", "caller", "identity", unique=True, sqlite_where=_ACTIVE, postgresql_where=_ACTIVE),
)

fact_occurrences = Table(
    "fact_occurrences",
    metadata,
    Column("id", Text, primary_key=True),
    Column("fact_id", Text, ForeignKey("facts.id"), nullable=False),
    Column("call_id", Text, ForeignKey("calls.id"), nullable=False),
    Column("at", InstantColumn, nullable=False),
    Column("first_turn", Integer, nullable=False),
    Column("last_turn", Integer, nullable=False),
    Column("words", Text, nullable=False),
    Column("context", Text, nullable=False, comment="what was said around the words"),
    Column("sentiment", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("reader", Text, nullable=False),
    Column("prompt_hash", Text),
    Index("ix_fact_occurrences_once", "fact_id", "call_id", "first_turn", unique=True),
    Index("ix_fact_occurrences_call", "call_id"),
)

extraction_log = Table(
    "extraction_log",
    metadata,
    Column("call_id", Text, ForeignKey("calls.id"), primary_key=True),
    Column("extracted_at", InstantColumn, nullable=False),
    Column("reader", Text, nullable=False),
    Column("prompt_hash", Text),
    Column("facts_extracted", Integer, nullable=False, comment="new ones"),
    Column("facts_updated", Integer, nullable=False, comment="new ones that took the place of another"),
    Column("facts_deduplicated", Integer, nullable=False, comment="known ones said again"),
    Column("facts_refused", Integer, nullable=False, comment="their words are not the caller's"),
    Column("facts_dropped", Integer, nullable=False, comment="below the confidence limit, or too many"),
    Column("reason", Text, nullable=False, comment="why nothing was looked for; empty if it was"),
    Column("error", Text),
)
