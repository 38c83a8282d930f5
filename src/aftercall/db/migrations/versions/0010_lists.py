"""Lists that are read a page at a time, whatever stands behind the page."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

BY_ID = {
    "ix_facts_category": "category",
    "ix_facts_visibility": "visibility",
    "ix_facts_is_active": "is_active",
}


def upgrade() -> None:
    failed = sa.text("state = 'failed'")
    op.create_index(
        "ix_steps_failed", "steps", ["changed_at"], sqlite_where=failed, postgresql_where=failed
    )
    for name, column in BY_ID.items():
        op.drop_index(name, "facts")
        op.create_index(name, "facts", [column, "id"])
    op.drop_index("ix_followups_state", "followups")
    op.create_index("ix_followups_state", "followups", ["state", "id"])
