"""Answers of models that were paid for, and documents made of calls or handed in."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("key", sa.Text, nullable=False, comment="hash of question, transcript and model"),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float),
        sa.Column("kept_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_answers"),
    )
    op.create_index("ix_answers_call", "answers", ["call_id"])
    op.create_table(
        "documents",
        sa.Column(
            "id", sa.Text, nullable=False, comment="a UUID, as clients of document memories expect"
        ),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("caller", sa.Text, comment="whose it is, where it came of a call"),
        sa.Column("call_id", sa.Text),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("made_at", InstantColumn, nullable=False),
        sa.Column("changed_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
    )
    op.create_index("ix_documents_made", "documents", ["made_at", "id"])
    op.create_index("ix_documents_caller", "documents", ["caller", "made_at"])
    op.create_index("ix_documents_call", "documents", ["call_id"])


def downgrade() -> None:
    op.drop_table("documents")
    op.drop_table("answers")
