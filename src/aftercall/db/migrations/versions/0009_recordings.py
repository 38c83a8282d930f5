"""Recordings of calls."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "recordings",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("carrier", sa.Text, nullable=False),
        sa.Column("sid", sa.Text, nullable=False),
        sa.Column("url", sa.Text),
        sa.Column(
            "state", sa.Text, nullable=False, comment="waiting, downloading, here, absent, failed"
        ),
        sa.Column("sha256", sa.Text),
        sa.Column("bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite")),
        sa.Column("path", sa.Text, comment="below the home"),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column(
            "transcript",
            sa.Text,
            nullable=False,
            server_default="none",
            comment="none, waiting, here, failed",
        ),
        sa.Column("changed_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_recordings"),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name="fk_recordings_call_id_calls"),
    )
    op.create_index("ix_recordings_carrier_sid", "recordings", ["carrier", "sid"], unique=True)
    op.create_index("ix_recordings_call", "recordings", ["call_id"])
    op.create_index(
        "ix_recordings_due",
        "recordings",
        ["state"],
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
