"""Calls, the journal of live ones, resume states, post-call steps, and the processes that keep
them.
"""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "calls",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("sid", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("direction", sa.Text, nullable=False),
        sa.Column("caller", sa.Text),
        sa.Column("callee", sa.Text),
        sa.Column("verified", sa.Boolean, nullable=False),
        sa.Column("started_at", InstantColumn, nullable=False),
        sa.Column("ended_at", InstantColumn),
        sa.Column("end_reason", sa.Text),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("resumes", sa.Text),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("state", sa.Text, nullable=False, comment="live, sealing, sealed"),
        sa.Column("owner", sa.Text, nullable=False, comment="the process that keeps or seals it"),
        sa.Column("turn_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("addenda", sa.Integer, nullable=False, server_default="0"),
        sa.Column("archive_name", sa.Text),
        sa.Column("archive_sha256", sa.Text),
        sa.Column("sealed_at", InstantColumn),
        sa.Column(
            "postcall", sa.Text, comment="due when sealed, then started; the steps tell the rest"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_calls"),
    )
    op.create_index("ix_calls_source_sid", "calls", ["source", "sid"], unique=True)
    op.create_index("ix_calls_started", "calls", ["started_at", "id"])
    op.create_index("ix_calls_caller", "calls", ["caller", "started_at"])
    op.create_index("ix_calls_conversation", "calls", ["conversation"])
    due = sa.text("postcall = 'due'")
    op.create_index("ix_calls_due", "calls", ["postcall"], sqlite_where=due, postgresql_where=due)
    unsealed = sa.text("state <> 'sealed'")
    op.create_index(
        "ix_calls_unsealed", "calls", ["state"], sqlite_where=unsealed, postgresql_where=unsealed
    )
    op.create_table(
        "journal",
        sa.Column(
            "n",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False, comment="turn, event"),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("n", name="pk_journal"),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name="fk_journal_call_id_calls"),
    )
    op.create_table(
        "resume_states",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("caller_hash", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("ended_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "caller_hash", name="pk_resume_states"),
    )
    op.create_table(
        "steps",
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column(
            "state", sa.Text, nullable=False, comment="waiting, running, done, failed, skipped"
        ),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("result", sa.Text),
        sa.Column("changed_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("call_id", "name", name="pk_steps"),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name="fk_steps_call_id_calls"),
    )
    op.create_table(
        "processes",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("started_at", InstantColumn, nullable=False),
        sa.Column("beat_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_processes"),
    )


def downgrade() -> None:
    for table in ("processes", "steps", "resume_states", "journal", "calls"):
        op.drop_table(table)
