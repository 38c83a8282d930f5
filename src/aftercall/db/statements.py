"""SQL that SQLAlchemy Core lacks: columns that differ between the databases, upserts, chunks of
long lists, prepared statements.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Delete,
    Dialect,
    Insert,
    Integer,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeDecorator, TypeEngine

from aftercall.clock import format_instant, to_millisecond

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

Convert = Callable[[Any], Any]
Statement = Select[Any] | Insert | Update | Delete
T = TypeVar("T")
MAX_VALUES_PER_QUERY = 500
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


def chunked(
    values: Sequence[T], size: int = MAX_VALUES_PER_QUERY
) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))")


def lock_name(connection: Connection, *parts: str) -> None:
    """Holds a name until the transaction ends. SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"key": "\n".join(parts)})


def insert_into(table: Table, dialect: str) -> "sqlite.Insert | postgresql.Insert":
    """An INSERT that takes ON CONFLICT. The other database's dialect is not loaded."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def upsert(
    connection: Connection,
    table: Table,
    key: dict[str, Any],
    values: dict[str, Any],
    *,
    changes: dict[str, Any] | None = None,
    only_where: ColumnElement[bool] | None = None,
) -> bool:
    """Inserts a row of `key` and `values`, or updates the row with that key if `only_where` holds.

    The update sets `changes`, or `values` if there are none. One statement, so that two processes
    with the same key both succeed. Returns whether a row was written.
    """
    statement = insert_into(table, connection.dialect.name).values({**key, **values})
    changed = values if changes is None else changes
    if changed:
        statement = statement.on_conflict_do_update(
            index_elements=list(key), set_=dict(changed), where=only_where
        )
    else:
        statement = statement.on_conflict_do_nothing(index_elements=list(key))
    # not rowcount: a driver need not count what an INSERT wrote
    written = connection.execute(statement.returning(*table.primary_key))
    return written.first() is not None


class _ListType(TypeDecorator[Any]):
    """A list as one value: the text of the statement does not depend on its length."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(
            ARRAY(Text()) if dialect.name == "postgresql" else Text()
        )

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return list(value) if dialect.name == "postgresql" else json.dumps(list(value))


class InValues(ColumnElement[bool]):
    """True if the column is in the list that is bound to this name."""

    inherit_cache = False

    def __init__(self, column: Column[Any], name: str) -> None:
        self.column = column
        self.bound_values: BindParameter[Any] = bindparam(name, type_=_ListType)


@compiles(InValues, "postgresql")
def _compile_postgres(element: InValues, compiler: SQLCompiler, **kw: Any) -> str:
    column = compiler.process(element.column, **kw)
    return f"{column} = ANY ({compiler.process(element.bound_values, **kw)})"


@compiles(InValues, "sqlite")
def _compile_sqlite(element: InValues, compiler: SQLCompiler, **kw: Any) -> str:
    column = compiler.process(element.column, **kw)
    values = compiler.process(element.bound_values, **kw)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608 - holds no value


class _CompiledStatement(NamedTuple):
    """The text for one driver, with converters of its values and of result cells."""

    text: str
    values: tuple[tuple[str, Convert | None], ...]
    own: dict[str, Any]
    """Values that are part of the statement."""
    is_named: bool
    """Whether the driver takes values by name, not by position."""
    results: tuple[tuple[int, Convert], ...]

    def bind(self, given: dict[str, Any]) -> Any:
        values = {**given, **self.own} if self.own else given
        bound = [
            convert(values[name]) if convert else values[name]
            for name, convert in self.values
        ]
        if self.is_named:
            return dict(zip([name for name, _ in self.values], bound, strict=True))
        return tuple(bound)


class PreparedStatement:
    """A statement compiled once to the text of the driver, for hot paths.

    SQLAlchemy's execution costs more than such a statement itself. It belongs to the transaction
    of the connection and raises what SQLAlchemy would raise.
    """

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._compiled: dict[str, _CompiledStatement] = {}

    def execute(self, connection: Connection, values: dict[str, Any]) -> int:
        """Returns the number of rows it touched."""
        compiled = self._get_compiled(connection)
        bound = compiled.bind(values)
        if compiled.is_named:
            return connection.exec_driver_sql(compiled.text, bound).rowcount
        with _driver(connection) as driver:
            return driver.execute(compiled.text, bound).rowcount

    def execute_many(
        self, connection: Connection, rows: Sequence[dict[str, Any]]
    ) -> None:
        """Executes it once for each row."""
        compiled = self._get_compiled(connection)
        bound = [compiled.bind(row) for row in rows]
        if compiled.is_named:
            connection.exec_driver_sql(compiled.text, bound)
            return
        with _driver(connection) as driver:
            driver.executemany(compiled.text, bound)

    def fetch(
        self, connection: Connection, values: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        compiled = self._get_compiled(connection)
        bound = compiled.bind(values)
        if compiled.is_named:
            rows = [
                tuple(row) for row in connection.exec_driver_sql(compiled.text, bound)
            ]
        else:
            with _driver(connection) as driver:
                rows = driver.execute(compiled.text, bound).fetchall()
        if not compiled.results:
            return rows
        fetched = []
        for row in rows:
            cells = list(row)
            for at, convert in compiled.results:
                cells[at] = convert(cells[at])
            fetched.append(tuple(cells))
        return fetched

    def _get_compiled(self, connection: Connection) -> _CompiledStatement:
        dialect = connection.dialect
        if dialect.name not in self._compiled:
            self._compiled[dialect.name] = self._compile(dialect)
        return self._compiled[dialect.name]

    def _compile(self, dialect: Dialect) -> _CompiledStatement:
        """Once for each dialect: the text, what binds each value, what reads each column."""
        compiled: Any = self._statement.compile(dialect=dialect)
        binds: dict[str, BindParameter[Any]] = compiled.binds
        is_named = compiled.positiontup is None
        names = binds if is_named else compiled.positiontup
        values = tuple((name, _make_binder(binds[name], dialect)) for name in names)
        own = {name: bound.value for name, bound in binds.items() if not bound.required}
        columns = (
            self._statement.selected_columns
            if isinstance(self._statement, Select)
            else ()
        )
        readers = [
            (at, _make_reader(column.type, dialect))
            for at, column in enumerate(columns)
        ]
        results = tuple((at, convert) for at, convert in readers if convert)
        return _CompiledStatement(str(compiled), values, own, is_named, results)


@contextmanager
def _driver(connection: Connection) -> Iterator[sqlite3.Connection]:
    """The sqlite3 connection, in the same transaction.

    Postgres goes through SQLAlchemy, which tells from an error whether the server is gone.
    """
    if not connection.in_transaction():
        connection.begin()
    try:
        yield cast("sqlite3.Connection", connection.connection.driver_connection)
    except sqlite3.Error as error:  # without the values: they may be speech
        raise DBAPIError.instance(
            None, None, error, sqlite3.Error, dialect=connection.dialect
        ) from error


def _make_binder(bound: BindParameter[Any], dialect: Dialect) -> Convert | None:
    return bound.type.dialect_impl(dialect).bind_processor(dialect)


def _make_reader(kind: TypeEngine[Any], dialect: Dialect) -> Convert | None:
    """The driver of Postgres returns finished values; only our own types convert them."""
    if dialect.name == "postgresql" and not isinstance(kind, TypeDecorator):
        return None
    return kind.dialect_impl(dialect).result_processor(dialect, None)
