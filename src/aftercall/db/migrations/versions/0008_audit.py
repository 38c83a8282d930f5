"""The audit log."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn, Number

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("n", Number, autoincrement=True, nullable=False),
        sa.Column("at", InstantColumn, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column(
            "deed",
            sa.Text,
            nullable=False,
            comment=(
                "revealed, approved, rejected, retried, resent, restored, edited, exported, erased"
            ),
        ),
        sa.Column(
            "subject", sa.Text, nullable=False, comment="an id; never a number, a name or words"
        ),
        sa.PrimaryKeyConstraint("n", name="pk_audit"),
    )


def downgrade() -> None:
    op.drop_table("audit")
