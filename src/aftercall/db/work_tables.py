"""The tables of follow-up work and of what people put right.

The migration must build exactly these; a test compares the two.
"""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, Table, Text

from aftercall.db.columns import InstantColumn, Number, metadata, only_where

# Outbox and timer of follow-up work: sealing writes a row, which is run after the reconnect window.
followup_runs = Table(
    "followup_runs",
    metadata,
    Column("conversation", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column("ended_at", InstantColumn, nullable=False),
    Column("state", Text, nullable=False),  # due, running, done, failed
    Column("reason", Text, nullable=False),
    Column("run", Integer, nullable=False, server_default="0"),  # number of starts
    Column("finished_run", Integer, nullable=False, server_default="0"),
    Column("wrong_passcodes", Integer, nullable=False, server_default="0"),
    Column("legs", JSON),  # call id to number of caller turns
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_followup_runs_open", "state", **only_where("state <> 'done'")),
    Index("ix_followup_runs_caller", "caller", "ended_at"),
)

followups = Table(
    "followups",
    metadata,
    Column("id", Text, primary_key=True),
    # hash of conversation, kind and title: one row a request
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),  # request, promise
    Column("request_kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("person", Text),
    Column("due", Text),  # a day, or an instant
    Column("conversation", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column("turns", JSON, nullable=False),  # pairs of call id and turn number
    Column("words", Text, nullable=False),
    # open, held, doing, done, failed, refused, withdrawn, expired, unknown, broken
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("link", Text),
    Column("trust", Text, nullable=False),  # verified, known, unknown
    Column("sink", Text, nullable=False),  # names of the sinks, joined by +
    Column("fulfilled_by", Text),  # the follow-up that keeps this promise
    Column("round", Integer, nullable=False, server_default="0"),
    # due, then started: delivery outside its conversation's run
    Column("queued", Text),
    Column("remind_at", InstantColumn),
    Column("reminder", Text),  # due, then started
    Column("created_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_followups_key", "key", unique=True),
    Index("ix_followups_conversation", "conversation"),
    Index("ix_followups_caller", "caller", "created_at"),
    Index("ix_followups_state", "state", "id"),
    Index("ix_followups_queued", "queued", **only_where("queued = 'due'")),
    Index("ix_followups_reminder", "remind_at", **only_where("reminder = 'due'")),
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
    Column("key", Text, primary_key=True),  # the idempotency key sent to the sink
    Column("followup_id", Text, ForeignKey("followups.id")),
    Column("conversation", Text, nullable=False),
    Column("sink", Text, nullable=False),
    Column("purpose", Text, nullable=False),  # request, reminder, notice, journal
    Column("state", Text, nullable=False),  # sending, waiting, done, rehearsed, dead
    # the process that claimed it; the only one to act while it is alive
    Column("owner", Text),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("reason", Text, nullable=False),
    Column("link", Text),
    Column("response", Text),  # the sink's answer
    Column("created_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_deliveries_followup", "followup_id"),
    Index("ix_deliveries_conversation", "conversation"),
    Index("ix_deliveries_state", "state"),
)

# What a person put right. The newest of several corrections of one thing counts.
corrections = Table(
    "corrections",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    # a party, * for shared memory, null for a withheld number
    Column("caller", Text),
    Column("call_id", Text),  # the first call it rests on; null for a name
    Column("what", Text, nullable=False),  # request, due, fact, name, call_name
    # what is corrected, by a key that a rerun and a rebuild keep: of a follow-up, a fact's
    # identity, or the party
    Column("key", Text, nullable=False),
    Column("old", Text),  # null: there was nothing; encrypted for a secret
    Column("new", Text),  # null: there is no such thing; encrypted for a secret
    Column("who", Text, nullable=False),
    Column("at", InstantColumn, nullable=False),
    # due while a page is to be written, applied, undone while a page is to be written back
    Column("state", Text, nullable=False),
    Index("ix_corrections_thing", "agent_id", "what", "key", "id"),
    Index("ix_corrections_caller", "caller"),
    Index("ix_corrections_call", "call_id"),
    Index("ix_corrections_due", "id", **only_where("state <> 'applied'")),
)
