"""Alembic's entry point: runs migrations in the transaction of upgrade.py."""

from alembic import context

from aftercall.db.corrections import corrections

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=corrections.metadata,
    transactional_ddl=True,
)
context.run_migrations()
