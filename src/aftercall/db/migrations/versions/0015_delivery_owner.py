"""Which process has claimed a delivery."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    comment = "the process that has claimed it; nobody else acts while that process is alive"
    op.add_column("deliveries", sa.Column("owner", sa.Text, comment=comment))
