"""Alembic's entry point: runs migrations in the transaction of upgrade.py."""

from alembic import context

from aftercall.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
