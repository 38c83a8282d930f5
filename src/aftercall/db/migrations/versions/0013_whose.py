"""Whose memory a call belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    comment = "whose memory it is, `+15550100#anna`; empty is nobody's, null is not decided yet"
    op.add_column("calls", sa.Column("whose", sa.Text, comment=comment))
    op.execute("UPDATE calls SET whose = coalesce(caller, '') WHERE state = 'sealed'")
    op.create_index("ix_calls_whose", "calls", ["whose", "started_at"])
