"""Pinned topics, and what each call spoke of."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "call_topics",
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column(
            "caller",
            sa.Text,
            nullable=False,
            comment="whose memory: a caller, or * where memory is shared",
        ),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("at", InstantColumn, nullable=False),
        sa.Column("terms", sa.Text, nullable=False, comment="things the caller named, as terms"),
        sa.Column(
            "central", sa.Text, nullable=False, comment="those of the terms that the call was about"
        ),
        sa.Column(
            "settled",
            sa.Text,
            nullable=False,
            comment="those of the terms that the caller called settled",
        ),
        sa.Column(
            "said",
            sa.JSON,
            nullable=False,
            comment="the sentences that name them; never one with a secret",
        ),
        sa.PrimaryKeyConstraint("call_id", name="pk_call_topics"),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name="fk_call_topics_call_id_calls"),
    )
    op.create_index("ix_call_topics_memory", "call_topics", ["agent_id", "caller", "at"])
    op.create_index("ix_call_topics_newest", "call_topics", ["agent_id", "at"])
    op.create_table(
        "pins",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column(
            "caller",
            sa.Text,
            nullable=False,
            comment="whose memory: a caller, or * where memory is shared",
        ),
        sa.Column(
            "anchor",
            sa.Text,
            nullable=False,
            comment="the term it hangs on: one pin for each in a memory",
        ),
        sa.Column(
            "terms", sa.JSON, nullable=False, comment="all terms that it goes by, the anchor first"
        ),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("is_titled_by_hand", sa.Boolean, nullable=False),
        sa.Column("state", sa.Text, nullable=False, comment="pinned, unpinned"),
        sa.Column("reason", sa.Text, nullable=False, comment="why it is in this state"),
        sa.Column(
            "is_decided_by_hand",
            sa.Boolean,
            nullable=False,
            comment="a person pinned or unpinned it; the program leaves that alone",
        ),
        sa.Column("note", sa.Text, comment="what a person wrote, as they wrote it"),
        sa.Column(
            "history",
            sa.JSON,
            nullable=False,
            comment="its calls, oldest first: call, conversation, at, words",
        ),
        sa.Column("since", InstantColumn, nullable=False),
        sa.Column("last_at", InstantColumn, nullable=False, comment="when it was last spoken of"),
        sa.Column("changed_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pins"),
    )
    op.create_index("ix_pins_anchor", "pins", ["agent_id", "caller", "anchor"], unique=True)
    op.create_index("ix_pins_caller", "pins", ["caller"])
    op.create_index("ix_pins_state", "pins", ["state", "last_at"])


def downgrade() -> None:
    op.drop_table("pins")
    op.drop_table("call_topics")
