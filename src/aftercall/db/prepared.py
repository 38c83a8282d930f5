"""Statements made into the driver's own text once, for what is written so often that
SQLAlchemy's execution costs more than the work.

They are built like any other statement, belong to the connection's transaction, and raise what
it raises.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ARRAY,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Delete,
    Dialect,
    Insert,
    Select,
    Text,
    Update,
    bindparam,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeDecorator, TypeEngine

Convert = Callable[[Any], Any]
Statement = Select[Any] | Insert | Update | Delete


class _ListType(TypeDecorator[Any]):
    """A list as one value: the text of a statement is the same however long it is."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(ARRAY(Text()) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return list(value) if dialect.name == "postgresql" else json.dumps(list(value))


class InValues(ColumnElement[bool]):
    """The column's value is in the list of this name."""

    inherit_cache = False

    def __init__(self, column: Column[Any], name: str) -> None:
        self.column = column
        self.bound_values: BindParameter[Any] = bindparam(name, type_=_ListType)


@compiles(InValues, "postgresql")
def _compile_postgres(element: InValues, compiler: SQLCompiler, **kw: Any) -> str:
    return (
        f"{compiler.process(element.column, **kw)} = ANY "
        f"({compiler.process(element.bound_values, **kw)})"
    )


@compiles(InValues, "sqlite")
def _compile_sqlite(element: InValues, compiler: SQLCompiler, **kw: Any) -> str:
    return (
        f"{compiler.process(element.column, **kw)} IN (SELECT value FROM "  # noqa: S608 - no value is in it
        f"json_each({compiler.process(element.bound_values, **kw)}))"
    )


class _CompiledStatement(NamedTuple):
    """The text for one driver, its values in order (by name where the driver takes names), and
    what a result's cells are made into.

    `own` are the values that the statement itself gives.
    """

    text: str
    values: tuple[tuple[str, Convert | None], ...]
    own: Mapping[str, Any]
    is_named: bool
    results: tuple[tuple[int, Convert], ...]

    def bind(self, values: Mapping[str, Any]) -> Any:
        told = {**values, **self.own} if self.own else values
        if self.is_named:
            return {
                name: convert(told[name]) if convert else told[name]
                for name, convert in self.values
            }
        return tuple(
            [convert(told[name]) if convert else told[name] for name, convert in self.values]
        )

    def fetch_all(self, connection: Connection, given: Any) -> list[tuple[Any, ...]]:
        if self.is_named:
            return list(map(tuple, connection.exec_driver_sql(self.text, given)))
        with _driver(connection) as driver:
            return driver.execute(self.text, given).fetchall()


class PreparedStatement:
    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._compiled: dict[str, _CompiledStatement] = {}

    def execute(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Returns how many rows it touched."""
        made = self._get_compiled(connection)
        if made.is_named:
            return connection.exec_driver_sql(made.text, made.bind(values)).rowcount
        with _driver(connection) as driver:
            return driver.execute(made.text, made.bind(values)).rowcount

    def execute_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Once for each row, in one go."""
        made = self._get_compiled(connection)
        given = [made.bind(row) for row in rows]
        if made.is_named:
            connection.exec_driver_sql(made.text, given)
            return
        with _driver(connection) as driver:
            driver.executemany(made.text, given)

    def fetch(self, connection: Connection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        made = self._get_compiled(connection)
        rows = made.fetch_all(connection, made.bind(values))
        if not made.results:
            return rows
        fetched = []
        for row in rows:
            cells = list(row)
            for at, convert in made.results:
                cells[at] = convert(cells[at])
            fetched.append(tuple(cells))
        return fetched

    def _get_compiled(self, connection: Connection) -> _CompiledStatement:
        dialect = connection.dialect
        if dialect.name not in self._compiled:
            self._compiled[dialect.name] = self._compile(dialect)
        return self._compiled[dialect.name]

    def _compile(self, dialect: Dialect) -> _CompiledStatement:
        compiled: Any = self._statement.compile(dialect=dialect)
        binds: dict[str, BindParameter[Any]] = compiled.binds
        is_named = compiled.positiontup is None
        values = tuple(
            (name, _processor(binds[name], dialect))
            for name in (binds if is_named else compiled.positiontup)
        )
        own = {name: bound.value for name, bound in binds.items() if not bound.required}
        columns = self._statement.selected_columns if isinstance(self._statement, Select) else ()
        made = [(at, _reader(column.type, dialect)) for at, column in enumerate(columns)]
        return _CompiledStatement(
            str(compiled),
            values,
            own,
            is_named,
            tuple((at, convert) for at, convert in made if convert),
        )


@contextmanager
def _driver(connection: Connection) -> Iterator[sqlite3.Connection]:
    """SQLite's own connection, in the same transaction.

    A server's errors tell whether it is gone: Postgres is asked through SQLAlchemy.
    """
    if not connection.in_transaction():
        connection.begin()
    try:
        yield cast("sqlite3.Connection", connection.connection.driver_connection)
    except sqlite3.Error as error:  # the values stay out of it: they may be what somebody said
        raise DBAPIError.instance(
            None, None, error, sqlite3.Error, dialect=connection.dialect
        ) from error


def _processor(bound: BindParameter[Any], dialect: Dialect) -> Convert | None:
    return bound.type.dialect_impl(dialect).bind_processor(dialect)


def _reader(kind: TypeEngine[Any], dialect: Dialect) -> Convert | None:
    """Postgres' driver gives whole values; only what our own columns make of them is left to do."""
    if dialect.name == "postgresql" and not isinstance(kind, TypeDecorator):
        return None
    return kind.dialect_impl(dialect).result_processor(dialect, None)
