"""Tombstones: calls that were erased and must not come back."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "tombstones",
        sa.Column("key", sa.Text, nullable=False, comment="hash of source and sid"),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("erased_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_tombstones"),
    )


def downgrade() -> None:
    op.drop_table("tombstones")
