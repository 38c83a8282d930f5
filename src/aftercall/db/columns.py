"""What every table is made of: the naming of constraints, instants, and numbers that count up."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Dialect,
    Integer,
    MetaData,
    Table,
    Text,
    event,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from aftercall.clock import format_instant, to_millisecond

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class InstantColumn(TypeDecorator[datetime]):
    """An instant with its zone: a native one on Postgres, sortable readable text on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(
            DateTime(timezone=True) if dialect.name == "postgresql" else Text()
        )

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return _format_cached(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return (
            to_millisecond(value) if dialect.name == "postgresql" else datetime.fromisoformat(value)
        )


_format_cached = lru_cache(maxsize=4096)(
    format_instant
)  # one call's rows name few instants, many times


Number = BigInteger().with_variant(Integer(), "sqlite")


LEXEMES = (
    "array_to_tsvector(array_remove(string_to_array(shelf || ' ' || terms || ' ' || around, ' "
    "'), ''))"
)

_FTS_INSERT = (
    "INSERT INTO passages_fts (rowid, shelf, terms, around) VALUES (new.n, new.shelf, "
    "new.terms, new.around);"
)
_FTS_DELETE = (
    "INSERT INTO passages_fts (passages_fts, rowid, shelf, terms, around) VALUES ('delete', "
    "old.n, old.shelf, old.terms, old.around);"
)
_FTS_COLUMNS = (
    "shelf, terms, around, content='passages', content_rowid='n', tokenize='ascii', "
    "detail=column, columnsize=0"
)

FTS_STATEMENTS = {
    "sqlite": (
        f"CREATE VIRTUAL TABLE passages_fts USING fts5({_FTS_COLUMNS})",
        f"CREATE TRIGGER passages_added AFTER INSERT ON passages BEGIN {_FTS_INSERT} END",
        f"CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN {_FTS_DELETE} END",
        (
            "CREATE TRIGGER passages_changed AFTER UPDATE OF shelf, terms, around ON passages "
            f"BEGIN {_FTS_DELETE} {_FTS_INSERT} END"
        ),
    ),
    "postgresql": (
        (
            f"CREATE INDEX ix_passages_lexemes ON passages USING gin (({LEXEMES})) WITH "
            "(fastupdate = off)"
        ),
    ),
}


def attach_full_text(passages: Table) -> None:
    """Whoever creates or drops the table from tables.py does the same with its full text."""

    def create(_table: Table, connection: Connection, **_rest: object) -> None:
        for statement in FTS_STATEMENTS[connection.dialect.name]:
            connection.exec_driver_sql(statement)

    def drop(_table: Table, connection: Connection, **_rest: object) -> None:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("DROP TABLE passages_fts")

    event.listen(passages, "after_create", create)
    event.listen(passages, "before_drop", drop)
