"""Every table: calls and memory here, pins and work in files of their own.

Migrations must lead to exactly this; a test compares.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Sequence,
    Table,
    Text,
    false,
    text,
)

from aftercall.db.columns import InstantColumn, Number, attach_full_text
from aftercall.db.columns import metadata as metadata
from aftercall.db.pin_tables import call_topics as call_topics
from aftercall.db.pin_tables import pins as pins
from aftercall.db.work_tables import deliveries as deliveries
from aftercall.db.work_tables import followup_history as followup_history
from aftercall.db.work_tables import followup_runs as followup_runs
from aftercall.db.work_tables import followups as followups

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
    Column(
        "whose",
        Text,
        comment="whose memory it is, `+15550100#anna`; empty is nobody's, null is not decided yet",
    ),
    Column(
        "is_silent",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="sealed, and its caller said nothing",
    ),
    Column(
        "is_handed_in",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="answered elsewhere, not by an agent of ours",
    ),
    Index("ix_calls_source_sid", "source", "sid", unique=True),
    Index("ix_calls_started", "started_at", "id"),
    Index("ix_calls_caller", "caller", "started_at"),
    Index("ix_calls_whose", "whose", "started_at"),
    Index("ix_calls_conversation", "conversation"),
    Index(
        "ix_calls_due",
        "postcall",
        sqlite_where=text("postcall = 'due'"),
        postgresql_where=text("postcall = 'due'"),
    ),
    Index(
        "ix_calls_unsealed",
        "state",
        sqlite_where=text("state <> 'sealed'"),
        postgresql_where=text("state <> 'sealed'"),
    ),
)

# Rows of live calls only, in the order of writing. No index besides the key, on purpose: two
# hundred live calls then share the pages of one commit; with an index by call each would dirty
# a page of its own
# (six times slower). Sealing and recovery scan it, which is short because sealed calls leave
# it.
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
    Index(
        "ix_steps_failed",
        "changed_at",
        sqlite_where=text("state = 'failed'"),
        postgresql_where=text("state = 'failed'"),
    ),
)

# What was erased stays erased: no number, no name, no words, only that this call must not come
# back.
tombstones = Table(
    "tombstones",
    metadata,
    Column("key", Text, primary_key=True, comment="hash of source and sid"),
    Column("call_id", Text, nullable=False),
    Column("erased_at", InstantColumn, nullable=False),
)

# An answer stands here sealed, for it may hold what was told in confidence: see
# postcall/answers/store.py.
answers = Table(
    "answers",
    metadata,
    Column("key", Text, primary_key=True, comment="hash of question, transcript and model"),
    Column("call_id", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost", Float),
    Column("kept_at", InstantColumn, nullable=False),
    Index("ix_answers_call", "call_id"),
)

documents = Table(
    "documents",
    metadata,
    Column("id", Text, primary_key=True, comment="a UUID, as clients of document memories expect"),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text, comment="whose it is, where it came of a call"),
    Column("call_id", Text),
    Column("namespace", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("made_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_documents_made", "made_at", "id"),
    Index("ix_documents_caller", "caller", "made_at"),
    Index("ix_documents_call", "call_id"),
)

audit = Table(
    "audit",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=True),
    Column("at", InstantColumn, nullable=False),
    Column("who", Text, nullable=False),
    Column(
        "deed",
        Text,
        nullable=False,
        comment="revealed, approved, rejected, retried, resent, restored, edited, exported, erased",
    ),
    Column("subject", Text, nullable=False, comment="an id; never a number, a name or words"),
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
    Column(
        "transcript",
        Text,
        nullable=False,
        server_default="none",
        comment="none, waiting, here, failed",
    ),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_recordings_carrier_sid", "carrier", "sid", unique=True),
    Index("ix_recordings_call", "call_id"),
    Index(
        "ix_recordings_due",
        "state",
        sqlite_where=text("state = 'waiting'"),
        postgresql_where=text("state = 'waiting'"),
    ),
)

processes = Table(
    "processes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("started_at", InstantColumn, nullable=False),
    Column("beat_at", InstantColumn, nullable=False),
    Column(
        "failures",
        JSON,
        comment="upkeep that fails in this process: its name, and since when and why",
    ),
)

# One row at most: the home whose archive holds the calls of this database (db/home.py).
home_claim = Table(
    "home_claim",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("home_id", Text, nullable=False),
    Column("claimed_at", InstantColumn, nullable=False),
)

# The unit of search: a turn, a summary or a fact. `terms`, `around` and `shelf` hold terms of
# memory/words.py, in which neither database's tokeniser has anything left to decide. `n` is a
# page (a batch that came in
# together) and a place on it; the turns of a call stand side by side on an odd page, so a
# neighbour is found by counting.
passages = Table(
    "passages",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False, comment="turn, summary, fact"),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column(
        "scope",
        Text,
        nullable=False,
        comment="agent and caller as one token; empty for a withheld number",
    ),
    Column(
        "shelf",
        Text,
        nullable=False,
        comment="the tokens it is found under: caller and agent, apart when retired",
    ),
    Column("call_id", Text),
    Column("ref", Text, comment="the fact it is"),
    Column("seq", Integer, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("at", InstantColumn, nullable=False, comment="when it was said; since when it holds"),
    Column("until", InstantColumn, comment="when it ceased to hold"),
    Column("day", Integer, nullable=False, comment="day of the last mention, counted from year 1"),
    Column("mentions", Integer, nullable=False, server_default="1"),
    Column("marks", Integer, nullable=False, comment="bits: a question, tells of time"),
    Column("category", Text, nullable=False),
    Column("visibility", Text, nullable=False, comment="shared, private; secrets are never here"),
    Column("active", Boolean, nullable=False),
    Column("text", Text, nullable=False),
    Column("terms", Text, nullable=False),
    Column("around", Text, nullable=False),
    Index(
        "ix_passages_place",
        "call_id",
        "kind",
        "seq",
        unique=True,
        sqlite_where=text("ref IS NULL"),
        postgresql_where=text("ref IS NULL"),
    ),
    Index(
        "ix_passages_ref",
        "ref",
        unique=True,
        sqlite_where=text("ref IS NOT NULL"),
        postgresql_where=text("ref IS NOT NULL"),
    ),
    Index("ix_passages_scope", "scope"),
)
passage_pages = Sequence(
    "passage_pages", metadata=metadata
)  # Postgres only: SQLite has one writer, who can count
attach_full_text(passages)

passage_vectors = Table(
    "passage_vectors",
    metadata,
    Column(
        "n",
        Number,
        ForeignKey("passages.n", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("model", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False, comment="32-bit floats of length one"),
)

_ACTIVE = text("is_active")

# Content and summary of a secret stand here encrypted, and `identity` and `matching` are keyed
# hashes: see memory/vault.py.
facts = Table(
    "facts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column(
        "caller",
        Text,
        nullable=False,
        comment="whose memory: a caller, or * where memory is shared",
    ),
    Column("category", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("visibility", Text, nullable=False, comment="shared, private, secret"),
    Column("confidence", Float, nullable=False),
    Column(
        "needs_confirmation",
        Boolean,
        nullable=False,
        comment="heard too badly to be relied on: to be read back",
    ),
    Column("first_seen_at", InstantColumn, nullable=False),
    Column("last_seen_at", InstantColumn, nullable=False),
    Column("valid_from", InstantColumn, nullable=False),
    Column("valid_until", InstantColumn),
    Column(
        "occurrence_count", Integer, nullable=False, comment="always the number of its occurrences"
    ),
    Column(
        "supersedes",
        Text,
        comment="a fact's id; no foreign key, for both ends of a link change in either order",
    ),
    Column("superseded_by", Text),
    Column("is_active", Boolean, nullable=False),
    Column(
        "identity", Text, nullable=False, comment="keyed hash of what it says, however it is worded"
    ),
    Column(
        "matching", Text, comment="subject and attribute; a keyed hash where the fact is secret"
    ),
    Column("reader", Text, nullable=False),
    Column("prompt_hash", Text),
    Column("metadata", JSON, nullable=False),
    Index("ix_facts_memory", "agent_id", "caller", "is_active", "last_seen_at"),
    Index("ix_facts_category", "category", "id"),
    Index("ix_facts_caller", "caller"),
    Index("ix_facts_visibility", "visibility", "id"),
    Index("ix_facts_is_active", "is_active", "id"),
    Index(
        "ix_facts_twins",
        "agent_id",
        "caller",
        "identity",
        unique=True,
        sqlite_where=_ACTIVE,
        postgresql_where=_ACTIVE,
    ),
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
    Column(
        "facts_updated", Integer, nullable=False, comment="new ones that took the place of another"
    ),
    Column("facts_deduplicated", Integer, nullable=False, comment="known ones said again"),
    Column("facts_refused", Integer, nullable=False, comment="their words are not the caller's"),
    Column(
        "facts_dropped", Integer, nullable=False, comment="below the confidence limit, or too many"
    ),
    Column("reason", Text, nullable=False, comment="why nothing was looked for; empty if it was"),
    Column("error", Text),
)

upkeep = Table(
    "upkeep",
    metadata,
    Column("name", Text, primary_key=True),
    Column("at", InstantColumn, nullable=False),
    Column("found", JSON),
)

# What a caller's next call is told, put together ahead. Whatever it rests on empties `body` and
# counts `version` up in its own transaction (db/freshness.py); a row without a body waits to be
# prepared again, and nothing
# out of date is ever in it.
briefings = Table(
    "briefings",
    metadata,
    Column("agent_id", Text, primary_key=True),
    Column("caller", Text, primary_key=True),
    Column("version", Number, nullable=False, server_default="0"),
    Column(
        "rests_on_all",
        Boolean,
        nullable=False,
        comment="memory is shared: any caller's news counts",
    ),
    Column("form", Text, comment="hash of the settings it was composed under"),
    Column("body", Text, comment="JSON; none when out of date"),
    Column("prepared_at", InstantColumn),
    Index(
        "ix_briefings_due",
        "agent_id",
        sqlite_where=text("body IS NULL"),
        postgresql_where=text("body IS NULL"),
    ),
    Index("ix_briefings_shared", "agent_id", "rests_on_all"),
)
