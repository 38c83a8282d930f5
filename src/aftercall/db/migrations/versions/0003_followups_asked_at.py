"""When a follow-up was asked for: calls that are handed in late count on their own day.

Only adds, and replaces an index: a process of the version before leaves the column empty, and
its rows count on the day they were made.
"""

from alembic import op

revision = "0003"
down_revision = "0002"

INSTANT = {"sqlite": "TEXT", "postgresql": "TIMESTAMP WITH TIME ZONE"}
STATEMENTS = (
    "ALTER TABLE followups ADD COLUMN asked_at {instant}",
    """
UPDATE followups SET asked_at =
    (SELECT started_at FROM calls WHERE calls.id = followups.call_id)
""",
    """
CREATE INDEX ix_followups_asked
    ON followups (
        coalesce(asked_at, created_at), kind, state, agent_id, asked_at, created_at
    )
""",
    "DROP INDEX ix_followups_created",
)


def upgrade() -> None:
    connection = op.get_bind()
    for statement in STATEMENTS:
        filled = statement.format(instant=INSTANT[connection.dialect.name])
        connection.exec_driver_sql(filled)
