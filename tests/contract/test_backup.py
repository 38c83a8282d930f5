"""Backup and restore: everything, as of one moment, proven, and never over what is there."""

import os
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Connection, insert, select

from aftercall.app import App
from aftercall.backup import make_backup, restore_backup
from aftercall.db.dump import dump_database
from aftercall.db.tables import deliveries, recordings
from aftercall.db.upgrade import NEWEST_REVISION
from aftercall.errors import (
    BackupRefused,
    DatabaseNewer,
    DatabaseOfAnotherHome,
    StorageFull,
)
from aftercall.journal.journal import recover
from aftercall.journal.verify import verify_archive
from aftercall.settings import Settings
from aftercall.settings.providers import ArchiveSettings
from aftercall.settings.sections import DatabaseSettings
from fakes import VirtualClock, make_call, make_live_call
from followup_work import RecordingSink, follow, hold_call, with_sink
from opened_apps import OpenApp
from step_stages import take_call

CALLER = "+15550100"


@pytest.fixture
def to(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder


@pytest.fixture
def elsewhere(
    settings: Settings, tmp_path: Path, request: pytest.FixtureRequest
) -> Settings:
    """Another machine: no home yet, and an empty database of the same kind."""
    home = tmp_path / "elsewhere"
    url = f"sqlite:///{home / 'aftercall.db'}"
    if not settings.database_url.startswith("sqlite"):
        url = request.getfixturevalue("empty_postgres")
    return settings.model_copy(
        update={"home": home, "database": DatabaseSettings(url=url)}
    )


def back_up(app: App, to: Path) -> Path:
    return Path(make_backup(app.settings, app.database, to, app.clock.now()).path)


def add_recording(app: App, call_id: str) -> None:
    path = app.settings.home / "recordings" / "one.mp3"
    path.parent.mkdir()
    path.write_bytes(os.urandom(2_500_000))
    row = {"id": "R1", "call_id": call_id, "carrier": "twilio", "sid": "RE1"}
    kept = {"state": "here", "path": "recordings/one.mp3", "reason": ""}
    with app.database.write() as connection:
        connection.execute(
            insert(recordings), row | kept | {"changed_at": app.clock.now()}
        )


def list_deliveries(app: App) -> list[Any]:
    query = select(deliveries.c.key, deliveries.c.state, deliveries.c.link)
    with app.database.read() as connection:
        return sorted(map(tuple, connection.execute(query)))


def test_a_restored_home_has_everything_and_proves_it(
    app: App, to: Path, elsewhere: Settings, open_app: OpenApp
) -> None:
    call = take_call(app, CALLER, "I prefer juniper tea.", "Yes.", "Thank you.")
    asked = hold_call(app, started_at=app.clock.now())
    follow(with_sink(app, RecordingSink()), asked.conversation)
    add_recording(app, call.id)
    restore_backup(elsewhere, back_up(app, to), app.clock.now())
    restored = open_app(elsewhere, app.clock)
    proof = verify_archive(restored.archive.place, restored.store)
    assert (proof.calls, proof.faults) == (2, ())
    assert "juniper" in str(app.composer.preview(CALLER))
    assert restored.composer.preview(CALLER) == app.composer.preview(CALLER)
    for found in (restored, app):
        assert len(found.work.followups.page(limit=10)) == 3
    assert restored.work.followups.page(limit=10) == app.work.followups.page(limit=10)
    assert list_deliveries(restored) == list_deliveries(app) != []
    assert restored.recall.find("main", CALLER, "verified", "juniper tea")
    for name in ("recordings/one.mp3", "secret.key", "workspace/CALLS.md"):
        copy = elsewhere.home / name
        assert copy.read_bytes() == (app.settings.home / name).read_bytes()
        assert copy.stat().st_mode & 0o077 == 0
    restored.journal.ingest(
        make_call()
    )  # numbers go on behind those that were restored
    take_call(restored, CALLER, "I live in Porto.", "Yes.", "Thanks.")


async def test_a_backup_under_load_is_of_one_moment(
    app: App, clock: VirtualClock, to: Path, elsewhere: Settings, open_app: OpenApp
) -> None:
    """Calls begin and are sealed all the time, and one is live."""
    live = await app.journal.open(make_live_call())
    for _ in range(20):
        app.journal.ingest(make_call())
    stop = Event()

    def load() -> int:
        count = 0
        while not stop.is_set():
            app.journal.ingest(make_call())
            count += 1
        return count

    with ThreadPoolExecutor(2) as pool:
        loads = [pool.submit(load) for _ in range(2)]
        files = []
        for _ in range(3):
            await clock.advance(1)
            files.append(back_up(app, to))
        stop.set()
        assert all(running.result() > 0 for running in loads)
    restore_backup(elsewhere, files[-1], app.clock.now())
    restored = open_app(elsewhere, app.clock)
    assert verify_archive(restored.archive.place, restored.store).faults == ()
    assert live.call.id in recover(restored.journal).sealed
    proof = verify_archive(restored.archive.place, restored.store)
    assert proof.faults == ()
    assert proof.calls > 21


def test_an_encrypted_archive_is_restored_with_its_key(
    tmp_path: Path, to: Path, open_app: OpenApp
) -> None:
    elsewhere = Settings(home=tmp_path / "elsewhere")
    settings = Settings(home=tmp_path / "home", archive=ArchiveSettings(encrypt=True))
    app = open_app(settings, VirtualClock())
    call = make_call([("caller", "The parrot is called Otto.")])
    app.journal.ingest(call)
    file = back_up(app, to)
    assert b"Otto" not in file.read_bytes()
    restore_backup(elsewhere, file, app.clock.now())
    restored = open_app(elsewhere, app.clock)
    name = str(restored.store.get(call.id).archive_name)
    assert restored.archive.read(name)[0].turns[0].text == "The parrot is called Otto."


def test_a_key_from_the_environment_must_be_there_again(
    tmp_path: Path, to: Path, open_app: OpenApp
) -> None:
    elsewhere = Settings(home=tmp_path / "elsewhere")
    key = SecretStr("aftercall-is-here")
    app = open_app(Settings(home=tmp_path / "home", secret_key=key), VirtualClock())
    report = make_backup(app.settings, app.database, to, app.clock.now())
    assert not report.has_key
    file, now = Path(report.path), app.clock.now()
    with pytest.raises(BackupRefused, match="set in the environment"):
        restore_backup(elsewhere, file, now)
    wrong = elsewhere.model_copy(update={"secret_key": SecretStr("another-key-it-is")})
    with pytest.raises(BackupRefused, match="not the key of this backup"):
        restore_backup(wrong, file, now)
    assert not elsewhere.home.exists()
    restore_backup(elsewhere.model_copy(update={"secret_key": key}), file, now)


def test_a_home_or_database_that_is_not_empty_is_refused(
    app: App, to: Path, elsewhere: Settings, open_app: OpenApp
) -> None:
    file = back_up(app, to)
    with pytest.raises(BackupRefused, match="not empty"):
        restore_backup(app.settings, file, app.clock.now())
    elsewhere.home.mkdir()
    restore_backup(elsewhere, file, app.clock.now())
    third = elsewhere.model_copy(update={"home": elsewhere.home.with_name("third")})
    with pytest.raises(BackupRefused, match=r"not empty|of SQLite"):
        restore_backup(third, file, app.clock.now())
    if app.database.dialect == "postgresql":
        with pytest.raises(DatabaseOfAnotherHome):
            open_app(third)


def test_the_backup_of_the_other_kind_of_database_is_refused(
    app: App, to: Path, tmp_path: Path, other_postgres: str
) -> None:
    file, home = back_up(app, to), tmp_path / "elsewhere"
    other = "" if app.database.dialect == "postgresql" else other_postgres
    wrong = Settings(home=home, database=DatabaseSettings(url=other))
    with pytest.raises(BackupRefused, match="the backup is of"):
        restore_backup(wrong, file, app.clock.now())


@pytest.fixture
def rigged_file(rigged: App, to: Path) -> Path:
    rigged.journal.ingest(make_call())
    return back_up(rigged, to)


def refuse(file: Path, tmp_path: Path) -> str:
    settings = Settings(home=tmp_path / "new")
    with pytest.raises(BackupRefused) as raised:
        restore_backup(settings, file, VirtualClock().now())
    assert list(tmp_path.glob("*new*")) == []
    return str(raised.value)


@pytest.mark.parametrize("part", [0.01, 0.3, 0.9, 0.98])
def test_a_backup_that_was_cut_is_refused(
    rigged_file: Path, tmp_path: Path, part: float
) -> None:
    data = rigged_file.read_bytes()
    rigged_file.write_bytes(data[: int(len(data) * part)])
    assert f"{rigged_file} is cut off" in refuse(rigged_file, tmp_path)


def test_a_backup_in_which_a_byte_was_changed_is_refused(
    rigged_file: Path, tmp_path: Path
) -> None:
    data = rigged_file.read_bytes()
    rigged_file.write_bytes(data.replace(b'"Hello!"', b'"Jello!"'))
    assert "is not what was backed up" in refuse(rigged_file, tmp_path)


def test_a_file_that_is_no_backup_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.tar"
    for content in (b"hello", b""):
        file.write_bytes(content)
        assert "not a backup" in refuse(file, tmp_path)
    with tarfile.open(file, "w") as tar:
        tar.add(__file__, "home/x")
    assert "not a backup" in refuse(file, tmp_path)


@pytest.mark.parametrize("name", ["/etc/x", "home/../../x", "../x", "elsewhere/x"])
def test_a_backup_that_writes_outside_its_places_is_refused(
    rigged_file: Path, tmp_path: Path, name: str
) -> None:
    forged = tmp_path / "forged.tar"
    with tarfile.open(rigged_file) as old, tarfile.open(forged, "w") as new:
        first = old.next()
        assert first
        new.addfile(first, old.extractfile(first))
        member = old.next()
        assert member
        member.name = name
        new.addfile(member, old.extractfile(member))
    assert "which no backup has" in refuse(forged, tmp_path)


def test_the_backup_of_a_newer_version_is_refused(
    rigged_file: Path, tmp_path: Path
) -> None:
    data = rigged_file.read_bytes()
    ours = f'"revision": "{NEWEST_REVISION}"'.encode()
    nines = "9" * len(NEWEST_REVISION)  # the header keeps its length
    newer = data.replace(ours, f'"revision": "{nines}"'.encode())
    rigged_file.write_bytes(newer)
    with pytest.raises(DatabaseNewer):
        restore_backup(
            Settings(home=tmp_path / "new"), rigged_file, VirtualClock().now()
        )
    rigged_file.write_bytes(data.replace(b'"format": 1', b'"format": 2'))
    assert "does not know" in refuse(rigged_file, tmp_path)


def test_a_backup_keeps_nobody_who_is_erased_meanwhile(
    rigged: App, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure comes after the database was copied; the next attempt finds it done."""
    rigged.journal.ingest(make_call([("caller", "I am Otto.")], caller="+15550142"))
    rigged.journal.ingest(make_call())
    pauses: list[float] = []

    @contextmanager
    def dump_and_erase(*args: Any) -> Iterator[Connection]:
        with dump_database(*args) as connection:
            yield connection
        if not pauses:
            rigged.eraser.erase("+15550142")

    monkeypatch.setattr("aftercall.backup.dump_database", dump_and_erase)
    monkeypatch.setattr("aftercall.backup.time.sleep", pauses.append)
    assert b"Otto" not in back_up(rigged, to).read_bytes()
    assert len(pauses) == 1


def test_damage_in_the_home_is_told_and_the_rest_is_backed_up(
    rigged: App, to: Path
) -> None:
    rows = [rigged.journal.ingest(make_call())[0] for _ in range(3)]
    archive = rigged.settings.home / "archive"
    (archive / str(rows[0].archive_name)).unlink()
    (archive / str(rows[1].archive_name)).write_text("{}")
    report = make_backup(rigged.settings, rigged.database, to, rigged.clock.now())
    assert [fault.split(":")[0] for fault in report.faults] == [
        f"archive/{row.archive_name}" for row in rows[:2]
    ]
    assert report.calls == 3


def test_a_backup_inside_the_home_or_nowhere_is_refused(
    rigged: App, tmp_path: Path
) -> None:
    for place in (rigged.settings.home / "archive", tmp_path / "none"):
        with pytest.raises(BackupRefused):
            back_up(rigged, place)


def test_a_failed_backup_leaves_nothing_behind(
    rigged: App, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("aftercall.backup.dump_database", fail)
    with pytest.raises(StorageFull):
        back_up(rigged, to)
    assert list(to.iterdir()) == []
