"""Calls in which the caller said nothing, and calls that were answered elsewhere."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    comment = "sealed, and its caller said nothing"
    silent = sa.Column(
        "is_silent", sa.Boolean, nullable=False, server_default=sa.false(), comment=comment
    )
    op.add_column("calls", silent)
    comment = "answered elsewhere, not by an agent of ours"
    handed_in = sa.Column(
        "is_handed_in", sa.Boolean, nullable=False, server_default=sa.false(), comment=comment
    )
    op.add_column("calls", handed_in)
    op.execute("UPDATE calls SET is_silent = true WHERE state = 'sealed' AND turn_count = 0")
