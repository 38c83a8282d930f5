"""Writers of one process take turns, and nobody waits for a turn for ever."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from aftercall.app import App
from aftercall.db import connect
from aftercall.db.connect import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'a.db'}")
    with database.write() as connection:
        connection.execute(text("CREATE TABLE t (x INTEGER)"))
    yield database
    database.close()


def write_row(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("INSERT INTO t VALUES (1)"))


def count_rows(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(text("SELECT count(*) FROM t")).scalar_one())


def test_a_writer_waits_for_its_turn(database: Database) -> None:
    second = threading.Thread(target=write_row, args=(database,))
    with database.write_lock():
        second.start()
        second.join(0.05)
        assert count_rows(database) == 0
    second.join(20)
    assert count_rows(database) == 1


def test_whoever_never_gets_a_turn_asks_the_database_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "WRITE_LOCK_TIMEOUT_S", 0.01)
    with database.write_lock():
        write_row(database)
    assert count_rows(database) == 1


def test_a_write_that_breaks_gives_its_turn_back(app: App) -> None:
    with pytest.raises(ZeroDivisionError), app.database.write():
        raise ZeroDivisionError
    with app.database.write() as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1
