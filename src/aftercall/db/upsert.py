"""Insert or update in one statement: two processes that meet at one key both succeed."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def upsert(
    connection: Connection,
    table: Table,
    key: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    changes: Mapping[str, Any] | None = None,
    only_where: ColumnElement[bool] | None = None,
) -> bool:
    """A new row of `key` and `values`; where the key is known, `changes` (`values` if not given) if `only_where` holds.

    Says whether a row was written.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    fresh = insert(table).values({**key, **values})
    changed = values if changes is None else changes
    if changed:
        statement = fresh.on_conflict_do_update(index_elements=list(key), set_=dict(changed), where=only_where)
    else:
        statement = fresh.on_conflict_do_nothing(index_elements=list(key))
    written = statement.returning(*table.primary_key)  # a driver need not count what an INSERT wrote
    return connection.execute(written).first() is not None
