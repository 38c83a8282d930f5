"""Alembic's door: migrations run on the connection, and inside the transaction, that upgrade.py
hands over.
"""

from alembic import context

from aftercall.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
