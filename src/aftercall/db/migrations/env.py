"""Alembic's entry point: runs migrations in the transaction of upgrade.py."""

from alembic import context

from aftercall.db.audit_log import audit  # noqa: F401 - adds its tables
from aftercall.db.corrections import corrections
from aftercall.db.event_log import events  # noqa: F401

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=corrections.metadata,
    transactional_ddl=True,
)
context.run_migrations()
