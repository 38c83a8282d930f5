"""Beside each step: who answered, to which prompt, at what cost."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column(
        "steps",
        sa.Column("trace", sa.JSON(), comment="who answered, to which prompt, at what cost"),
    )


def downgrade() -> None:
    op.drop_column("steps", "trace")
