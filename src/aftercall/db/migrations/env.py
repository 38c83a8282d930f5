"""Alembic's entry point: runs migrations in the transaction of upgrade.py."""

from alembic import context

from aftercall.db.work_tables import corrections

context.configure(
    connection=context.config.attributes["connection"],
    # of all tables: upgrade.py imports the others
    target_metadata=corrections.metadata,
    transactional_ddl=True,
)
context.run_migrations()
