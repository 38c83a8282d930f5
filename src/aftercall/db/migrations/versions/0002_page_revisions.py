"""The pages of the workspace as rows, for several machines.

Only adds: a process of the version before goes on with its files, whose changes are found.
"""

from alembic import op
from sqlalchemy import text

revision = "0002"
down_revision = "0001"

TYPES = {
    "sqlite": {
        "instant": "TEXT",
        "number": "INTEGER",
        "serial": "INTEGER",
        "bytes": "BLOB",
    },
    "postgresql": {
        "instant": "TIMESTAMP WITH TIME ZONE",
        "number": "BIGINT",
        "serial": "BIGSERIAL",
        "bytes": "BYTEA",
    },
}
STATEMENTS = (
    """
CREATE TABLE page_revisions (
    n {serial} NOT NULL, key TEXT NOT NULL, revision {number} NOT NULL, path TEXT,
    body {bytes}, author TEXT NOT NULL, changed_at {instant} NOT NULL,
    CONSTRAINT pk_page_revisions PRIMARY KEY (n)
)
""",
    "CREATE UNIQUE INDEX ix_page_revisions_key ON page_revisions (key, revision)",
    "CREATE INDEX ix_page_revisions_changed ON page_revisions (changed_at)",
    """
CREATE INDEX ix_page_revisions_conflicts ON page_revisions (key, revision)
    WHERE path LIKE '%.conflict.md'
""",
)


def upgrade() -> None:
    connection = op.get_bind()
    for statement in STATEMENTS:
        filled = statement.format(**TYPES[connection.dialect.name])
        connection.execute(text(filled))  # a driver has its own idea of %
