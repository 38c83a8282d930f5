"""The database: SQLite in the home, or Postgres for several machines.

Writing transactions on SQLite lock at once (BEGIN IMMEDIATE), so that two writers wait for each
other instead of failing half-way. Every commit is on disk before it returns.
"""

import select
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, TypeVarTuple

from sqlalchemy import (
    URL,
    Connection,
    Delete,
    Engine,
    ExceptionContext,
    Insert,
    Pool,
    Row,
    Select,
    Update,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    DisconnectionError,
    NoSuchModuleError,
    PendingRollbackError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from aftercall.errors import (
    AftercallError,
    ConfigError,
    DatabaseDamaged,
    DatabaseUnreachable,
    Overloaded,
    RefusedInput,
    StorageFull,
)
from aftercall.model.json_fields import Json
from aftercall.settings.sections import list_postgres_timeouts

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
BUSY_TIMEOUT_MS = 30_000
DEFAULT_CONNECTIONS = 15
MAX_IDLE_CONNECTIONS = 5
CONNECTION_WAIT_S = 10.0
# then SQLite decides: the holder may wait for another process
WRITE_LOCK_TIMEOUT_S = 1.0
POOLING_PROBES = 3
MIN_SNAPSHOT_INTERVAL_S = 0.5
MAX_SNAPSHOT_INTERVAL_S = 2.0
_SQLITE_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "secure_delete=ON",
)
_UNUSABLE_SIGNS = ("unable to open", "readonly database", "disk I/O error")
_UNDEFINED = ("UndefinedTable", "UndefinedColumn")
_TRANSACTION_POOL = (
    "database.url: leads to a pooler in transaction mode (such as pgbouncer), which breaks "
    "prepared statements and notifications; name Postgres itself, or a pool in session mode"
)
_BEFORE_COMMIT = "aftercall.before_commit"


def before_commit(
    connection: Connection, key: tuple[str, ...], action: Callable[[Connection], object]
) -> None:
    """Runs the action at the end of a writing transaction, once for each key.

    For rows that many transactions touch: they are locked last and in the order of their keys,
    so that two transactions cannot deadlock.
    """
    connection.info[_BEFORE_COMMIT].setdefault(key, action)


class Database:
    """Connections to SQLite or Postgres: many readers, writers in turn.

    Errors of the driver become ours, so that callers can tell an outage from a fault.
    """

    def __init__(self, url: str, connections: int = DEFAULT_CONNECTIONS) -> None:
        self.engine = _create_engine(url, connections)
        self.dialect = self.engine.dialect.name
        # saves Postgres the begin and the end of a transaction for each query
        self._readers = (
            self.engine
            if self.dialect == "sqlite"
            else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        )
        self._write_lock = Lock()
        self.commits = 0  # of this process
        driver: Any = self.engine.dialect.loaded_dbapi
        self.driver_error: type[Exception] = driver.Error

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A writing transaction: committed at the end, rolled back on any error."""
        with (
            refused_values(),
            translated_errors(),
            self.write_lock(),
            self.engine.connect() as connection,
            connection.execution_options(aftercall_writes=True).begin(),
        ):
            connection.info[_BEFORE_COMMIT] = {}
            try:
                yield connection
            finally:
                actions = connection.info.pop(_BEFORE_COMMIT)
            for key in sorted(actions):
                actions[key](connection)
        self.commits += 1

    @contextmanager
    def write_lock(self) -> Iterator[None]:
        """Queues the writers of this process. SQLite itself makes them poll for its lock."""
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
        """A connection for queries. On Postgres each sees what is committed at its time."""
        with (
            refused_values(),
            translated_errors(),
            self._readers.connect() as connection,
        ):
            yield connection

    def execute(self, statement: Delete | Insert | Update) -> int:
        """Writes in a transaction of its own. Returns the number of rows."""
        with self.write() as connection:
            return connection.execute(statement).rowcount

    def fetch(self, query: Select[*Ts]) -> Sequence[Row[*Ts]]:
        """All rows of one query."""
        with self.read() as connection:
            return connection.execute(query).all()

    def fetch_first(self, query: Select[*Ts]) -> Row[*Ts] | None:
        """The first row, if there is one."""
        with self.read() as connection:
            return connection.execute(query).first()

    def fetch_column(self, query: Select[T]) -> Sequence[T]:
        """The first value of each row."""
        with self.read() as connection:
            return connection.execute(query).scalars().all()

    def fetch_value(self, query: Select[T]) -> T | None:
        """The first value of the first row; None without a row."""
        with self.read() as connection:
            return connection.execute(query).scalar()

    def truncate_wal(self) -> None:
        """Removes deleted words from the write-ahead log, unless another program uses it."""
        if self.dialect == "sqlite":
            with self._no_wait_connection() as driver:
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def is_ready(self) -> bool:
        """Whether it can be written to right now; does not wait for a lock."""
        is_sqlite = self.dialect == "sqlite"
        try:
            with self._no_wait_connection() as driver:
                if is_sqlite:
                    driver.execute("BEGIN IMMEDIATE")
                    driver.execute("ROLLBACK")
                    return True
                return _is_writable(driver)
        except AftercallError:
            return False

    @contextmanager
    def _no_wait_connection(self) -> Iterator[Any]:
        """A connection of the driver that does not wait for locks."""
        with translated_errors(self.driver_error):
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

    def refuse_transaction_pool(self) -> None:
        """Raises ConfigError if a pooler gives each transaction another connection.

        Two connections of Postgres have two processes there, which stay theirs.
        """
        if self.dialect == "sqlite":
            return
        query = text("SELECT pg_backend_pid()")
        with self.read() as first, self.read() as second:
            for _ in range(POOLING_PROBES):
                one, again, other = (
                    connection.execute(query).scalar()
                    for connection in (first, first, second)
                )
                if one != again or again == other:
                    raise ConfigError(_TRANSACTION_POOL)

    def close(self) -> None:
        self.engine.dispose()


@contextmanager
def refused_values() -> Iterator[None]:
    """Refuses what the database cannot hold: NUL, half of an emoji, a number out of range."""
    try:
        yield
    except (DataError, UnicodeEncodeError, OverflowError):
        raise RefusedInput("a value", "cannot be stored as it is") from None


@contextmanager
def translated_errors(driver_error: type[Exception] = sqlite3.Error) -> Iterator[None]:
    """Translates errors that an operator can act on; raises the others as they are."""
    try:
        yield
    except PoolTimeout as error:
        raise Overloaded(
            f"all connections to the database are busy for {CONNECTION_WAIT_S:g} s; "
            "see database.connections",
            CONNECTION_WAIT_S,
        ) from error
    except PendingRollbackError as error:
        raise DatabaseUnreachable("the connection was lost meanwhile") from error
    except (DBAPIError, driver_error, OSError) as error:
        ours = translate_error(error)
        if ours is None:
            raise
        raise ours from error


def translate_error(error: Exception) -> AftercallError | None:
    """Our error for one of SQLAlchemy or of a driver; None if it is a fault in our code."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    said = str(cause).strip().partition("\n")[0]
    name = type(cause).__name__
    if "disk is full" in said or name == "DiskFull" or "No space left" in said:
        return StorageFull(
            f"the database has no room left ({said}); free some space, nothing written is harmed"
        )
    if "disk image is malformed" in said or "file is not a database" in said:
        return DatabaseDamaged(
            f"the database is damaged ({said}); stop Aftercall and restore it from a backup"
        )
    if (
        any(sign in said for sign in ("no such table", "no such column"))
        or name in _UNDEFINED
    ):
        return DatabaseDamaged(
            f"the database is not complete ({said}); stop Aftercall and restore it from a backup"
        )
    if "is locked" in said:
        return DatabaseUnreachable(
            "another program has locked the database; it is tried again"
        )
    if name == "ReadOnlySqlTransaction":
        return DatabaseUnreachable(
            f"the database is a standby or was replaced by another ({said})"
        )
    is_unusable = any(sign in said for sign in _UNUSABLE_SIGNS)
    if is_unusable or _is_connection_lost(cause):
        return DatabaseUnreachable(f"no connection to the database ({said})")
    return None


def _is_connection_lost(cause: BaseException | None) -> bool:
    """The driver of Postgres raises these when the server is unreachable or shuts down."""
    bases = [
        base for base in type(cause).__mro__ if base.__module__.startswith("psycopg")
    ]
    return any(
        base.__name__ in ("OperationalError", "InterfaceError") for base in bases
    )


def _is_writable(driver: Any) -> bool:
    """False for a standby, and for a primary that another has replaced."""
    return bool(driver.execute("SHOW transaction_read_only").fetchone()[0] == "off")


def _create_engine(url: str, connections: int) -> Engine:
    # Five stay open; the others are closed when they are not needed.
    kept = min(connections, MAX_IDLE_CONNECTIONS)
    pool = {
        "pool_size": kept,
        "max_overflow": connections - kept,
        "pool_timeout": CONNECTION_WAIT_S,
    }
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            return _create_sqlite(url, parsed.database, pool)
        if parsed.get_backend_name() == "postgresql":
            return _create_postgres(parsed, pool)
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


@event.listens_for(Pool, "checkout")
def replace_closed(connection: Any, _record: Any, _proxy: Any) -> None:
    """Of the durable engine's pool, too. A ping would cost as much as a query.

    Postgres says nothing on an idle connection unless it closes it. Connections of other drivers,
    which may belong to a program that runs Aftercall inside it, are left alone.
    """
    if not hasattr(connection, "pgconn"):
        return
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0):
        raise DisconnectionError


def _create_postgres(parsed: URL, pool: Json) -> Engine:
    engine = create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        connect_args=list_postgres_timeouts(parsed.query),
        hide_parameters=True,  # an error's text must not hold what was said
        **pool,
    )

    @event.listens_for(engine, "handle_error")
    def leave_standby(context: ExceptionContext) -> None:
        """After a failover the address may lead elsewhere: all connections are made anew."""
        name = type(context.original_exception).__name__
        if name == "ReadOnlySqlTransaction":
            context.is_disconnect = True

    return engine


def _create_sqlite(url: str, file: str | None, pool: Json) -> Engine:
    if not file or file == ":memory:":
        raise ConfigError(
            "database.url: an in-memory database forgets every call; name a file"
        )
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"database: {Path(file).parent} cannot be used as a folder ({error.strerror})"
        ) from None
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000},
        hide_parameters=True,
        **pool,
    )

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # `begin` below sends BEGIN
        for pragma in _SQLITE_PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("aftercall_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


class DatabaseChanges:
    """Detects writes to the database without waiting, for the thread of the event loop.

    On Postgres they show in the snapshot of the server, which names the transactions that are
    over. It is read after each commit of this process, and now and then for those of others:
    less often while they write all the time, since each of them looks for its own work.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._driver: Any = None
        self._snapshot: object = None
        self._snapshot_due_at = 0.0
        self.snapshot_interval_s = MIN_SNAPSHOT_INTERVAL_S
        self._seen_commits = 0

    def is_snapshot_due(self) -> bool:
        if self._database.dialect == "sqlite":
            return False
        is_ours = self._database.commits != self._seen_commits
        return is_ours or time.monotonic() >= self._snapshot_due_at

    def read_snapshot(self) -> None:
        """Waits for the server, so it is for another thread."""
        query = text("SELECT CAST(pg_current_snapshot() AS TEXT)")
        before = self._snapshot
        self._seen_commits = self._database.commits
        try:
            with self._database.read() as connection:
                self._snapshot = connection.execute(query).scalar()
        except AftercallError:  # the jobs that look for work report it
            self._snapshot = object()
        is_busy = self._snapshot != before
        longer_s = min(2 * self.snapshot_interval_s, MAX_SNAPSHOT_INTERVAL_S)
        self.snapshot_interval_s = longer_s if is_busy else MIN_SNAPSHOT_INTERVAL_S
        self._snapshot_due_at = time.monotonic() + self.snapshot_interval_s

    def read_version(self) -> object:
        """A value that changes with every write; a new one each time where that is unknown."""
        if self._database.dialect != "sqlite":
            return self._snapshot
        try:
            driver = self._driver = self._driver or self._connect()
            return driver.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:  # locked, or the file is gone: the next query reports it
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
