"""Which home a database belongs to, and what upkeep fails in which process."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    comment = "upkeep that fails in this process: its name, and since when and why"
    op.add_column("processes", sa.Column("failures", sa.JSON, comment=comment))
    op.create_table(
        "home_claim",
        sa.Column("only", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("home_id", sa.Text, nullable=False),
        sa.Column("claimed_at", InstantColumn, nullable=False),
    )
