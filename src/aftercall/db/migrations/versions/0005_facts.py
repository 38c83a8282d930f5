"""Facts, each time they were said, and what was looked for in which call."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_facts()
    _create_occurrences()
    _create_log()


def _create_facts() -> None:
    op.create_table(
        "facts",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column(
            "caller",
            sa.Text,
            nullable=False,
            comment="whose memory: a caller, or * where memory is shared",
        ),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("visibility", sa.Text, nullable=False, comment="shared, private, secret"),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column(
            "needs_confirmation",
            sa.Boolean,
            nullable=False,
            comment="heard too badly to be relied on: to be read back",
        ),
        sa.Column("first_seen_at", InstantColumn, nullable=False),
        sa.Column("last_seen_at", InstantColumn, nullable=False),
        sa.Column("valid_from", InstantColumn, nullable=False),
        sa.Column("valid_until", InstantColumn),
        sa.Column(
            "occurrence_count",
            sa.Integer,
            nullable=False,
            comment="always the number of its occurrences",
        ),
        sa.Column(
            "supersedes",
            sa.Text,
            comment="a fact's id; no foreign key, for both ends of a link change in either order",
        ),
        sa.Column("superseded_by", sa.Text),
        sa.Column("is_active", sa.Boolean, nullable=False),
        sa.Column(
            "identity",
            sa.Text,
            nullable=False,
            comment="keyed hash of what it says, however it is worded",
        ),
        sa.Column(
            "matching",
            sa.Text,
            comment="subject and attribute; a keyed hash where the fact is secret",
        ),
        sa.Column("reader", sa.Text, nullable=False),
        sa.Column("prompt_hash", sa.Text),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_facts"),
    )
    op.create_index("ix_facts_memory", "facts", ["agent_id", "caller", "is_active", "last_seen_at"])
    for column in ("category", "caller", "visibility", "is_active"):
        op.create_index(f"ix_facts_{column}", "facts", [column])
    active = sa.text("is_active")
    op.create_index(
        "ix_facts_twins",
        "facts",
        ["agent_id", "caller", "identity"],
        unique=True,
        sqlite_where=active,
        postgresql_where=active,
    )


def _create_occurrences() -> None:
    op.create_table(
        "fact_occurrences",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("fact_id", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("at", InstantColumn, nullable=False),
        sa.Column("first_turn", sa.Integer, nullable=False),
        sa.Column("last_turn", sa.Integer, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("context", sa.Text, nullable=False, comment="what was said around the words"),
        sa.Column("sentiment", sa.Text, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("reader", sa.Text, nullable=False),
        sa.Column("prompt_hash", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_fact_occurrences"),
        sa.ForeignKeyConstraint(
            ["fact_id"], ["facts.id"], name="fk_fact_occurrences_fact_id_facts"
        ),
        sa.ForeignKeyConstraint(
            ["call_id"], ["calls.id"], name="fk_fact_occurrences_call_id_calls"
        ),
    )
    op.create_index(
        "ix_fact_occurrences_once",
        "fact_occurrences",
        ["fact_id", "call_id", "first_turn"],
        unique=True,
    )
    op.create_index("ix_fact_occurrences_call", "fact_occurrences", ["call_id"])


def _create_log() -> None:
    op.create_table(
        "extraction_log",
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("extracted_at", InstantColumn, nullable=False),
        sa.Column("reader", sa.Text, nullable=False),
        sa.Column("prompt_hash", sa.Text),
        sa.Column("facts_extracted", sa.Integer, nullable=False, comment="new ones"),
        sa.Column(
            "facts_updated",
            sa.Integer,
            nullable=False,
            comment="new ones that took the place of another",
        ),
        sa.Column(
            "facts_deduplicated", sa.Integer, nullable=False, comment="known ones said again"
        ),
        sa.Column(
            "facts_refused", sa.Integer, nullable=False, comment="their words are not the caller's"
        ),
        sa.Column(
            "facts_dropped",
            sa.Integer,
            nullable=False,
            comment="below the confidence limit, or too many",
        ),
        sa.Column(
            "reason", sa.Text, nullable=False, comment="why nothing was looked for; empty if it was"
        ),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("call_id", name="pk_extraction_log"),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name="fk_extraction_log_call_id_calls"),
    )


def downgrade() -> None:
    for table in ("extraction_log", "fact_occurrences", "facts"):
        op.drop_table(table)
