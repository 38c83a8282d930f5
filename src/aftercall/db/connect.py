"""The one way to the database: SQLite in the home, or Postgres for several machines.

Writing transactions on SQLite take the write lock at once (BEGIN IMMEDIATE), so that two
writers wait for each other instead of failing half-way. Every commit is on disk before it returns.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from aftercall.errors import (
    AftercallError,
    ConfigError,
    DatabaseDamaged,
    DatabaseUnreachable,
    StorageFull,
)

BUSY_TIMEOUT_MS = 30_000
WRITE_LOCK_TIMEOUT_S = (
    1.0  # then SQLite decides: who holds the turn may itself be waiting for another process
)
POSTGRES_TIMEOUTS = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
}  # seconds, milliseconds; a server that is cut off says nothing

BEFORE_COMMIT = "aftercall.parting"

RawQuery = Callable[[str, Sequence[Any]], list[Any]]
"""SQL with question marks, and their values."""


def before_commit(
    connection: Connection, key: tuple[str, ...], action: Callable[[Connection], None]
) -> None:
    """Do this last in a writing transaction, and once for a key, however often it is asked for.

    For rows that many transactions touch: locked last and in the order of their keys, nobody
    who holds one waits for another's.
    """
    connection.info[BEFORE_COMMIT].setdefault(key, action)


class Database:
    """An engine with our rules of reading and writing."""

    def __init__(self, url: str) -> None:
        self.engine = _create_engine(url)
        self.dialect = self.engine.dialect.name
        self._write_lock = Lock()
        driver: Any = self.engine.dialect.loaded_dbapi
        self._driver_error: type[Exception] = driver.Error

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may write; committed at the end, rolled back on any error."""
        with (
            translated_errors(),
            self.write_lock(),
            self.engine.connect() as connection,
            connection.execution_options(aftercall_writes=True).begin(),
        ):
            connection.info[BEFORE_COMMIT] = {}
            try:
                yield connection
            finally:
                parting = connection.info.pop(BEFORE_COMMIT)
            for _, deed in sorted(parting.items(), key=itemgetter(0)):
                deed(connection)

    @contextmanager
    def write_lock(self) -> Iterator[None]:
        """SQLite has one writer, and who waits for it sleeps and looks again: those of one
        process line up here instead.
        """
        is_ours = self.dialect == "sqlite" and self._write_lock.acquire(
            timeout=WRITE_LOCK_TIMEOUT_S
        )
        try:
            yield
        finally:
            if is_ours:
                self._write_lock.release()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with translated_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def raw_query(self) -> Iterator[RawQuery]:
        """The driver's own reading, for what a ringing call waits for: SQLAlchemy's execution
        costs more than such reads do.
        """
        with translated_errors(self._driver_error):
            pooled = self.engine.raw_connection()
            driver: Any = pooled.driver_connection
            mark = "?" if self.dialect == "sqlite" else "%s"
            try:
                yield lambda sql, values: driver.execute(sql.replace("?", mark), values).fetchall()
            finally:
                pooled.close()

    def truncate_wal(self) -> None:
        """Words that were deleted are not to be read in the write-ahead file either.

        Whoever is busy is not waited for.
        """
        if self.dialect == "sqlite":
            with self._no_wait_connection() as driver:
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def is_ready(self) -> bool:
        """Whether it can be written to right now; a program that holds it is not waited for."""
        try:
            with self._no_wait_connection() as driver:
                for statement in (
                    ("BEGIN IMMEDIATE", "ROLLBACK") if self.dialect == "sqlite" else ("SELECT 1",)
                ):
                    driver.execute(statement)
        except AftercallError:
            return False
        return True

    @contextmanager
    def _no_wait_connection(self) -> Iterator[Any]:
        """A driver's connection that waits for nobody."""
        with translated_errors(self._driver_error):
            pooled = self.engine.raw_connection()
            driver: Any = pooled.driver_connection
            try:
                if self.dialect == "sqlite":
                    driver.execute("PRAGMA busy_timeout=0")
                yield driver
                if self.dialect == "sqlite":
                    driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            except BaseException:
                pooled.invalidate()
                raise
            finally:
                pooled.close()

    def close(self) -> None:
        self.engine.dispose()


@contextmanager
def translated_errors(driver_error: type[Exception] = sqlite3.Error) -> Iterator[None]:
    """Turn errors that a person can act on into ours; let the others through.

    Below SQLAlchemy a driver raises its own.
    """
    try:
        yield
    except (DBAPIError, driver_error, OSError) as error:
        ours = translate_error(error)
        if ours is None:
            raise
        raise ours from error


def translate_error(error: Exception) -> AftercallError | None:
    """Our error for one of SQLAlchemy's or of a driver's own; None if it is a fault of ours,
    not of the circumstances.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error
    said = str(cause).strip().partition("\n")[0]
    name = type(cause).__name__
    if "disk is full" in said or name == "DiskFull" or "No space left" in said:
        return StorageFull(
            f"the database has no room left ({said}); free some space, nothing written is harmed"
        )
    if "disk image is malformed" in said or "file is not a database" in said:
        return DatabaseDamaged(
            f"the database is damaged ({said}); stop Aftercall and put it back from a backup"
        )
    if (
        "no such table" in said
        or "no such column" in said
        or name in ("UndefinedTable", "UndefinedColumn")
    ):
        return DatabaseDamaged(
            f"the database is not whole ({said}); stop Aftercall and put it back from a backup"
        )
    if "is locked" in said:
        return DatabaseUnreachable("another program has locked the database; it is tried again")
    if (
        "unable to open" in said
        or "readonly database" in said
        or "disk I/O error" in said
        or _is_connection_lost(cause)
    ):
        return DatabaseUnreachable(f"no connection to the database ({said})")
    return None


def _is_connection_lost(cause: BaseException | None) -> bool:
    """Postgres' driver has one family of errors for a server that cannot be reached, goes away
    or shuts down.
    """
    family = [
        kind.__name__ for kind in type(cause).__mro__ if kind.__module__.startswith("psycopg")
    ]
    return "OperationalError" in family or "InterfaceError" in family


def _create_engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            return _create_sqlite(url, parsed.database)
        if parsed.get_backend_name() == "postgresql":
            patience = {
                name: value for name, value in POSTGRES_TIMEOUTS.items() if name not in parsed.query
            }
            return create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_pre_ping=True,
                connect_args=patience,
            )
    except (ArgumentError, NoSuchModuleError):
        raise ConfigError(
            "database.url: is not a database address (sqlite:///FILE or postgresql+psycopg://…)"
        ) from None
    except ModuleNotFoundError:
        raise ConfigError(
            "database.url: Postgres needs its driver; install aftercall[postgres]"
        ) from None
    raise ConfigError(
        f"database.url: {parsed.get_backend_name()} is not supported; use sqlite or postgresql"
    )


def _create_sqlite(url: str, file: str | None) -> Engine:
    if not file or file == ":memory:":
        raise ConfigError("database.url: an in-memory database forgets every call; name a file")
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"database: {Path(file).parent} cannot be used as a folder ({error.strerror})"
        ) from None
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("aftercall_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


class TableChanges:
    """For the thread of the event loop: it waits for nobody."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._driver: Any = None

    def read_version(self) -> object:
        """While it equals an earlier one, nothing was written between the two.

        Whoever is in doubt looks.
        """
        if self._database.dialect != "sqlite":
            return object()
        try:
            driver = self._driver = self._driver or self._connect()
            return driver.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:  # locked, or its file is gone: whoever looks will be told
            self.close()
            return object()

    def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            with suppress(sqlite3.Error):
                driver.close()

    def _connect(self) -> Any:
        driver = sqlite3.connect(
            str(self._database.engine.url.database), check_same_thread=False, timeout=0
        )
        driver.execute("PRAGMA query_only=ON")
        return driver
