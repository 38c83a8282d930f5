"""The tables of follow-up work: its timer and outbox, the requests and promises, and what was
sent where.
"""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, Table, Text, text

from aftercall.db.columns import InstantColumn, Number, metadata

# The outbox and the timer of follow-up work: sealing writes a row, whoever is at work runs it
# once the window has passed.
followup_runs = Table(
    "followup_runs",
    metadata,
    Column("conversation", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column(
        "ended_at",
        InstantColumn,
        nullable=False,
        comment="the end of the last leg; the reconnect window counts from here",
    ),
    Column("state", Text, nullable=False, comment="due, running, done, failed"),
    Column("reason", Text, nullable=False),
    Column("run", Integer, nullable=False, server_default="0", comment="how often it was started"),
    Column("finished_run", Integer, nullable=False, server_default="0"),
    Column("wrong_passcodes", Integer, nullable=False, server_default="0"),
    Column("legs", JSON, comment="call id: how many turns its caller had"),
    Column("changed_at", InstantColumn, nullable=False),
    Index(
        "ix_followup_runs_open",
        "state",
        sqlite_where=text("state <> 'done'"),
        postgresql_where=text("state <> 'done'"),
    ),
    Index("ix_followup_runs_caller", "caller", "ended_at"),
)

followups = Table(
    "followups",
    metadata,
    Column("id", Text, primary_key=True),
    Column(
        "key",
        Text,
        nullable=False,
        comment="of conversation, kind and title: the same request is the same row",
    ),
    Column("kind", Text, nullable=False, comment="request, promise"),
    Column(
        "request_kind",
        Text,
        nullable=False,
        comment="issue, task, reminder, note, message, booking, other",
    ),
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
    Column(
        "state",
        Text,
        nullable=False,
        comment="open, held, doing, done, failed, refused, withdrawn, expired, unknown, broken",
    ),
    Column("reason", Text, nullable=False),
    Column("link", Text),
    Column("trust", Text, nullable=False, comment="verified, known, unknown"),
    Column("sink", Text, nullable=False, comment="names of the sinks, joined by +"),
    Column("fulfilled_by", Text, comment="the follow-up that keeps this promise"),
    Column(
        "round",
        Integer,
        nullable=False,
        server_default="0",
        comment="how often it was approved or tried again by hand",
    ),
    Column(
        "queued",
        Text,
        comment="due when it waits to be done outside its conversation's run, then started",
    ),
    Column("remind_at", InstantColumn),
    Column("reminder", Text, comment="due, then started"),
    Column("created_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_followups_key", "key", unique=True),
    Index("ix_followups_conversation", "conversation"),
    Index("ix_followups_caller", "caller", "created_at"),
    Index("ix_followups_state", "state", "id"),
    Index(
        "ix_followups_queued",
        "queued",
        sqlite_where=text("queued = 'due'"),
        postgresql_where=text("queued = 'due'"),
    ),
    Index(
        "ix_followups_reminder",
        "remind_at",
        sqlite_where=text("reminder = 'due'"),
        postgresql_where=text("reminder = 'due'"),
    ),
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
    Column(
        "owner",
        Text,
        comment="the process that has claimed it; nobody else acts while that process is alive",
    ),
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
