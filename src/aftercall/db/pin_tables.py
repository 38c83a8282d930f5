"""The tables of pinned topics. A part of tables.py, which shows every table."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, Index, Table, Text

from aftercall.db.columns import InstantColumn, metadata

# What one call spoke of: enough to see which topics come back, without reading the archive again.
call_topics = Table(
    "call_topics",
    metadata,
    Column("call_id", Text, ForeignKey("calls.id"), primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column(
        "caller",
        Text,
        nullable=False,
        comment="whose memory: a caller, or * where memory is shared",
    ),
    Column("conversation", Text, nullable=False),
    Column("at", InstantColumn, nullable=False),
    Column("terms", Text, nullable=False, comment="things the caller named, as terms"),
    Column("central", Text, nullable=False, comment="those of the terms that the call was about"),
    Column(
        "settled", Text, nullable=False, comment="those of the terms that the caller called settled"
    ),
    Column(
        "said",
        JSON,
        nullable=False,
        comment="the sentences that name them; never one with a secret",
    ),
    Index("ix_call_topics_memory", "agent_id", "caller", "at"),
    Index("ix_call_topics_newest", "agent_id", "at"),
)

pins = Table(
    "pins",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column(
        "caller",
        Text,
        nullable=False,
        comment="whose memory: a caller, or * where memory is shared",
    ),
    Column(
        "anchor", Text, nullable=False, comment="the term it hangs on: one pin for each in a memory"
    ),
    Column("terms", JSON, nullable=False, comment="all terms that it goes by, the anchor first"),
    Column("title", Text, nullable=False),
    Column("is_titled_by_hand", Boolean, nullable=False),
    Column("state", Text, nullable=False, comment="pinned, unpinned"),
    Column("reason", Text, nullable=False, comment="why it is in this state"),
    Column(
        "is_decided_by_hand",
        Boolean,
        nullable=False,
        comment="a person pinned or unpinned it; the program leaves that alone",
    ),
    Column("note", Text, comment="what a person wrote, as they wrote it"),
    Column(
        "history",
        JSON,
        nullable=False,
        comment="its calls, oldest first: call, conversation, at, words",
    ),
    Column("since", InstantColumn, nullable=False),
    Column("last_at", InstantColumn, nullable=False, comment="when it was last spoken of"),
    Column("changed_at", InstantColumn, nullable=False),
    Index("ix_pins_anchor", "agent_id", "caller", "anchor", unique=True),
    Index("ix_pins_caller", "caller"),
    Index("ix_pins_state", "state", "last_at"),
)
