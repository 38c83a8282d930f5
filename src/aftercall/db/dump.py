"""Copies of a whole database, as it is at one moment, while others go on writing to it.

SQLite is copied through its own backup interface, never as a file (decision 30). Postgres is
copied table by table in one transaction that sees a single moment.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from sqlalchemy import Connection, delete, inspect, select, text

from aftercall.db.connect import BUSY_TIMEOUT_MS, Database, translated_errors
from aftercall.db.tables import processes, upkeep
from aftercall.db.upgrade import (
    UNFINISHED_RESTORE,
    current_revision,
    make_alembic_config,
)
from aftercall.errors import BackupRefused, DatabaseDamaged

OWN_DATABASE_FILE = "aftercall.db"
PAGES_PER_STEP = 2_000
TABLES_FILE = "tables.json"
OWN_SCHEMA = "public"


def dump_database(
    database: Database, engine_file: Path, engine_schema: str, folder: Path
) -> AbstractContextManager[Connection]:
    """Copies our database and the durable engine's, as they are at one moment."""
    if database.dialect == "postgresql":
        return _dump_postgres(database, engine_schema, folder)
    files = {OWN_DATABASE_FILE: Path(str(database.engine.url.database))}
    if engine_file.exists():
        files[engine_file.name] = engine_file
    return _dump_sqlite(files, folder)


@contextmanager
def _dump_sqlite(sources: Mapping[str, Path], folder: Path) -> Iterator[Connection]:
    """Copies the databases under these names; yields a connection to the first copy.

    All are locked against writers for the instant in which the readers open, so that the copies
    show one moment. Writers go on while the pages are copied.
    """
    with translated_errors(), ExitStack() as stack:
        locks = [_connect(stack, source) for source in sources.values()]
        readers = {name: _connect(stack, source) for name, source in sources.items()}
        for lock in locks:
            lock.execute("BEGIN IMMEDIATE")
        for reader in readers.values():
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        for lock in locks:
            lock.execute("ROLLBACK")
        for name, reader in readers.items():
            with closing(sqlite3.connect(folder / name)) as copy:
                copy.execute("PRAGMA synchronous=OFF")
                reader.backup(copy, pages=PAGES_PER_STEP)
                _check_pages(copy, name)
    database = Database(f"sqlite:///{folder / next(iter(sources))}")
    try:
        with database.read() as connection:
            yield connection
    finally:
        database.close()


def _connect(stack: ExitStack, file: Path) -> sqlite3.Connection:
    opened = sqlite3.connect(file, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
    return stack.enter_context(closing(opened))


def _check_pages(copy: sqlite3.Connection, name: str) -> None:
    fault = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if fault != "ok":
        raise DatabaseDamaged(
            f"{name} is damaged; stop Aftercall and restore it from an older backup"
        )


@contextmanager
def _dump_postgres(
    database: Database, engine_schema: str, folder: Path
) -> Iterator[Connection]:
    """Copies every table into a file of the folder; yields a connection that sees the moment."""
    snapshot = database.engine.execution_options(isolation_level="REPEATABLE READ")
    with translated_errors(), snapshot.connect() as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        tables = []
        for schema, name, columns in _list_tables(connection, engine_schema):
            file = f"{schema}.{name}.copy"
            tables.append([schema, name, columns, file])
            _copy_out(connection, _copy_target(schema, name, columns), folder / file)
        found = connection.execute(
            text("SELECT schemaname, sequencename, last_value FROM pg_sequences")
        )
        sequences = [list(row) for row in found if row.last_value is not None]
        contents = json.dumps({"tables": tables, "sequences": sequences})
        (folder / TABLES_FILE).write_text(contents, "utf-8")
        yield connection


def _list_tables(
    connection: Connection, engine_schema: str
) -> Iterator[tuple[str, str, list[str]]]:
    """Every table with its columns; one that others refer to comes before them."""
    found = inspect(connection)
    for schema in (OWN_SCHEMA, engine_schema):
        for name, _ in found.get_sorted_table_and_fkc_names(schema):
            if name is not None:
                columns = found.get_columns(name, schema)
                plain = [
                    column["name"] for column in columns if "computed" not in column
                ]
                yield schema, name, plain


def _copy_target(schema: str, name: str, columns: Sequence[str]) -> str:
    quoted = ", ".join(f'"{column}"' for column in columns)
    return f'"{schema}"."{name}" ({quoted})'


def _copy_out(connection: Connection, target: str, path: Path) -> None:
    driver: Any = connection.connection.driver_connection
    with (
        path.open("wb") as file,
        driver.cursor() as cursor,
        cursor.copy(f"COPY {target} TO STDOUT") as rows,
    ):
        for block in rows:
            file.write(block)


def refuse_filled_postgres(database: Database) -> None:
    """Raises BackupRefused unless the database is empty, or holds an unfinished restore."""
    with database.read() as connection:
        if current_revision(connection) is None:
            return
        query = select(upkeep.c.name).where(upkeep.c.name == UNFINISHED_RESTORE)
        if connection.execute(query).first() is None:
            raise BackupRefused(
                "the database is not empty, and a restore never writes over one; name an empty "
                "database (`createdb`) in AFTERCALL_DATABASE_URL"
            )


def load_postgres(database: Database, revision: str, folder: Path, at: str) -> None:
    """Fills the database in one transaction. The engine's tables exist by now.

    It is marked as half restored until its home is in place, see `finish_restore`.
    """
    contents = json.loads((folder / TABLES_FILE).read_text("utf-8"))
    with database.write() as connection:
        if current_revision(connection) is None:
            command.upgrade(make_alembic_config(connection), revision)
        names = [f'"{schema}"."{name}"' for schema, name, *_ in contents["tables"]]
        connection.exec_driver_sql(f"TRUNCATE {', '.join(names)}")
        for schema, name, columns, file in contents["tables"]:
            _copy_in(connection, _copy_target(schema, name, columns), folder / file)
        for schema, name, last in contents["sequences"]:
            connection.execute(
                text("SELECT setval(CAST(:name AS regclass), :last)"),
                {"name": f'"{schema}"."{name}"', "last": last},
            )
        forget_processes(connection)
        connection.execute(
            text("INSERT INTO upkeep (name, at) VALUES (:name, :at)"),
            {"name": UNFINISHED_RESTORE, "at": at},
        )


def _copy_in(connection: Connection, target: str, path: Path) -> None:
    driver: Any = connection.connection.driver_connection
    with (
        path.open("rb") as file,
        driver.cursor() as cursor,
        cursor.copy(f"COPY {target} FROM STDIN") as rows,
    ):
        while block := file.read(1 << 20):
            rows.write(block)


def forget_processes(connection: Connection) -> None:
    """The processes of the backup's time are gone: their live calls are sealed at the start."""
    connection.execute(delete(processes))
