"""What another agent promised is of unknown outcome, not broken."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0016"
branch_labels = None
depends_on = None

COMMENT = "open, held, doing, done, failed, refused, withdrawn, expired, unknown, broken"


def upgrade() -> None:
    op.execute(
        "UPDATE followups SET state = 'unknown' WHERE kind = 'promise' AND state = 'broken' "
        "AND conversation IN "
        "(SELECT conversation FROM calls WHERE source NOT IN "
        "('browser', 'telnyx', 'terminal', 'tester', 'twilio'))"
    )
    if op.get_bind().dialect.name == "postgresql":  # SQLite keeps no comments
        op.alter_column("followups", "state", existing_type=sa.Text, comment=COMMENT)
