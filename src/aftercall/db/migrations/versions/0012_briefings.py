"""Briefings that are prepared before the phone rings."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "briefings",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column(
            "version",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
            server_default="0",
        ),
        sa.Column(
            "rests_on_all",
            sa.Boolean,
            nullable=False,
            comment="memory is shared: any caller's news counts",
        ),
        sa.Column("form", sa.Text, comment="hash of the settings it was composed under"),
        sa.Column("body", sa.Text, comment="JSON; none when out of date"),
        sa.Column("prepared_at", InstantColumn),
        sa.PrimaryKeyConstraint("agent_id", "caller", name="pk_briefings"),
    )
    due = sa.text("body IS NULL")
    op.create_index(
        "ix_briefings_due", "briefings", ["agent_id"], sqlite_where=due, postgresql_where=due
    )
    op.create_index("ix_briefings_shared", "briefings", ["agent_id", "rests_on_all"])
