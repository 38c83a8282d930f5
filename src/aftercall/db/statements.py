"""Insert or update in one statement: two processes that meet at one key both succeed."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, func, or_, select, true
from sqlalchemy.dialects import postgresql, sqlite

from aftercall.db.tables import calls


def upsert(
    connection: Connection,
    table: Table,
    key: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    changes: Mapping[str, Any] | None = None,
    only_where: ColumnElement[bool] | None = None,
) -> bool:
    """A new row of `key` and `values`; where the key is known, `changes` (`values` if not
    given) if `only_where` holds.

    Says whether a row was written.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    fresh = insert(table).values({**key, **values})
    changed = values if changes is None else changes
    if changed:
        statement = fresh.on_conflict_do_update(
            index_elements=list(key), set_=dict(changed), where=only_where
        )
    else:
        statement = fresh.on_conflict_do_nothing(index_elements=list(key))
    written = statement.returning(
        *table.primary_key
    )  # a driver need not count what an INSERT wrote
    return connection.execute(written).first() is not None


T = TypeVar("T")
CHUNK_SIZE = 500


def chunked(values: Sequence[T], size: int = CHUNK_SIZE) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def belongs_to(party: str) -> ColumnElement[bool]:
    """Calls that were decided to be theirs, by an index that has them in order of time."""
    return calls.c.whose == party


def may_belong_to(party: str | None) -> ColumnElement[bool]:
    """Those, and calls from their number of which nothing is decided yet. None: everybody's."""
    if not party:
        return true()
    return or_(belongs_to(party), and_(calls.c.whose.is_(None), calls.c.caller == party))


def select_last_end(agent_id: str, party: str | None) -> Select[tuple[datetime]]:
    """When their last call ended in which something was said.

    Of one party's few calls the latest; of everybody's the newest, by the index of starts.

    Neither does for the other: a maximum over everybody reads every call, and who looks through
    the newest for one party's may find it last.
    """
    spoken = and_(
        calls.c.agent_id == agent_id,
        calls.c.state == "sealed",
        ~calls.c.is_silent,
        may_belong_to(party),
    )
    if party:
        return select(func.max(calls.c.ended_at)).where(spoken)
    return select(calls.c.ended_at).where(spoken).order_by(calls.c.started_at.desc()).limit(1)
