"""What tables are made of: column types, partial indexes, full text."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Dialect,
    Integer,
    Table,
    Text,
    event,
    text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from aftercall.clock import format_instant, to_millisecond

Number = BigInteger().with_variant(Integer(), "sqlite")


class InstantColumn(TypeDecorator[datetime]):
    """An instant with its zone: native on Postgres, sortable text on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        is_native = dialect.name == "postgresql"
        return dialect.type_descriptor(DateTime(timezone=True) if is_native else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return _format_cached(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if dialect.name == "postgresql":
            return to_millisecond(value)
        return datetime.fromisoformat(value)


# the rows of a call repeat few instants
_format_cached = lru_cache(maxsize=4096)(format_instant)


def only_where(condition: str) -> dict[str, Any]:
    """Options of a partial index."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


LEXEMES = (
    "array_to_tsvector(array_remove("
    "string_to_array(shelf || ' ' || terms || ' ' || around, ' '), ''))"
)
_FTS_COLUMNS = (
    "shelf, terms, around, content='passages', content_rowid='n', tokenize='ascii', "
    "detail=column, columnsize=0"
)
_FTS_INSERT = (
    "INSERT INTO passages_fts (rowid, shelf, terms, around) "
    "VALUES (new.n, new.shelf, new.terms, new.around);"
)
_FTS_DELETE = (
    "INSERT INTO passages_fts (passages_fts, rowid, shelf, terms, around) "
    "VALUES ('delete', old.n, old.shelf, old.terms, old.around);"
)
_FTS_UPDATE = "AFTER UPDATE OF shelf, terms, around ON passages"
_GIN = f"USING gin (({LEXEMES})) WITH (fastupdate = off)"
FTS_STATEMENTS = {
    "sqlite": (
        f"CREATE VIRTUAL TABLE passages_fts USING fts5({_FTS_COLUMNS})",
        f"CREATE TRIGGER passages_added AFTER INSERT ON passages BEGIN {_FTS_INSERT} END",
        f"CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN {_FTS_DELETE} END",
        f"CREATE TRIGGER passages_changed {_FTS_UPDATE} BEGIN {_FTS_DELETE} {_FTS_INSERT} END",
    ),
    "postgresql": (f"CREATE INDEX ix_passages_lexemes ON passages {_GIN}",),
}


def attach_full_text(passages: Table) -> None:
    """Creates and drops the full-text index together with its table."""

    def create(_table: Table, connection: Connection, **_rest: object) -> None:
        for statement in FTS_STATEMENTS[connection.dialect.name]:
            connection.exec_driver_sql(statement)

    def drop(_table: Table, connection: Connection, **_rest: object) -> None:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("DROP TABLE passages_fts")

    event.listen(passages, "after_create", create)
    event.listen(passages, "before_drop", drop)
