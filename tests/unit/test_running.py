"""Who looks for work, and when."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from aftercall.db.connect import DatabaseChanges
from aftercall.db.tables import upkeep
from aftercall.running import ChangeTrigger
from fakes import START, VirtualClock
from opened_apps import OpenDatabase


class Stone(DatabaseChanges):
    """A database in which something is written when a test says so."""

    def is_snapshot_due(self) -> bool:
        return False

    def __init__(self) -> None:
        self.writes = 0

    def read_version(self) -> object:
        return self.writes


class Looker:
    def __init__(self, lookout: ChangeTrigger) -> None:
        self.looks = 0
        self.answer: object = None
        self.fault: Exception | None = None
        self.once = lookout.wrap(self._look)

    async def _look(self) -> object:
        self.looks += 1
        if self.fault:
            raise self.fault
        return self.answer

    async def look(self) -> bool:
        """Whether there was a reason to."""
        waiting = self.once()
        coroutine = waiting.__await__()
        try:
            next(coroutine)
        except StopIteration:
            return True
        coroutine.close()
        return False


async def test_the_first_look_is_made_and_then_only_what_was_written_is_a_reason() -> (
    None
):
    database = Stone()
    lookout = ChangeTrigger(database, VirtualClock())
    looker, other = Looker(lookout), Looker(lookout)
    assert await looker.look()
    assert await other.look()
    # the first it ever takes: it cannot know what was written before
    await lookout.poll()
    assert await looker.look()
    for _ in range(3):
        await lookout.poll()
        assert not await looker.look()
    database.writes += 1
    await lookout.poll()
    assert await looker.look()
    assert not await looker.look()
    assert await other.look()


async def test_a_moment_that_a_look_named_is_a_reason_when_it_has_come() -> None:
    clock = VirtualClock()
    lookout = ChangeTrigger(Stone(), clock)
    looker = Looker(lookout)
    await lookout.poll()
    looker.answer = clock.now() + timedelta(seconds=300)
    assert await looker.look()
    await lookout.poll()
    assert not await looker.look()
    await clock.advance(300)
    looker.answer = None
    await lookout.poll()
    assert await looker.look()
    await lookout.poll()
    assert not await looker.look()


async def test_a_look_that_fails_is_made_again() -> None:
    lookout = ChangeTrigger(Stone(), VirtualClock())
    looker = Looker(lookout)
    looker.fault = OSError("away")
    for _ in range(2):
        with pytest.raises(OSError, match="away"):
            await looker.look()
    looker.fault = None
    assert await looker.look()
    assert not await looker.look()


def test_what_anybody_commits_changes_the_mark_and_reading_does_not(
    tmp_path: Path, open_database: OpenDatabase
) -> None:
    database, elsewhere = (
        open_database(f"sqlite:///{tmp_path}/x.db"),
        open_database(f"sqlite:///{tmp_path}/x.db"),
    )
    with database.write() as connection:
        connection.execute(text("CREATE TABLE t (x)"))
    changes = DatabaseChanges(database)
    marks = [changes.read_version()]
    for writer in (database, elsewhere):
        with writer.write() as connection:
            connection.execute(text("INSERT INTO t VALUES (1)"))
            assert changes.read_version() == marks[-1]  # not yet committed
        marks.append(changes.read_version())
        with database.read() as connection:
            connection.execute(text("SELECT x FROM t")).all()
        assert changes.read_version() == marks[-1]
    assert len(set(marks)) == 3
    changes.close()


def test_on_postgres_own_commits_are_seen_at_once_and_those_of_others_later(
    other_postgres: str, open_database: OpenDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_s, long_s = 1_000.0, 2_000.0
    monkeypatch.setattr("aftercall.db.connect.MIN_SNAPSHOT_INTERVAL_S", short_s)
    monkeypatch.setattr("aftercall.db.connect.MAX_SNAPSHOT_INTERVAL_S", long_s)
    database, elsewhere = open_database(other_postgres), open_database(other_postgres)
    changes = DatabaseChanges(database)
    assert changes.is_snapshot_due()
    changes.read_snapshot()
    versions = [changes.read_version()]
    for writer in (database, elsewhere):
        with writer.write() as connection:
            added = {"name": f"by {id(writer)}", "at": START}
            connection.execute(insert(upkeep).values(added))
            assert not changes.is_snapshot_due()  # not yet committed
        assert changes.is_snapshot_due() is (writer is database)
        changes.read_snapshot()
        versions.append(changes.read_version())
    assert len(set(versions)) == 3
    assert changes.snapshot_interval_s == long_s  # something was written
    changes.read_snapshot()
    assert changes.snapshot_interval_s == short_s
    changes.close()


def test_whoever_cannot_know_whether_something_was_written_looks(
    tmp_path: Path, open_database: OpenDatabase
) -> None:
    database = open_database(f"sqlite:///{tmp_path}/x.db")
    changes = DatabaseChanges(database)
    changes.read_version()
    (tmp_path / "x.db").write_bytes(b"not a database at all, " * 500)
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"x.db{suffix}").unlink(missing_ok=True)
    changes.close()
    assert changes.read_version() != changes.read_version()
