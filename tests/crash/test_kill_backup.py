"""kill -9 during a backup and a restore: no half backup, no half home, and the next try works."""

from collections.abc import Callable
from pathlib import Path

import pytest

from aftercall.app import build
from aftercall.journal.verify import verify_archive
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from command_process import spawner
from crash import backup_process
from fakes import make_call


def run(target: Callable[..., None], *args: object) -> int | None:
    process = spawner.Process(target=target, args=args)
    process.start()
    process.join(60)
    return process.exitcode


@pytest.fixture
def backups(settings: Settings, tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    app = build(settings)
    for _ in range(3):
        app.journal.ingest(make_call())
    app.close()
    return folder


def test_a_killed_backup_has_no_name_and_the_next_one_removes_it(
    tmp_path: Path,
) -> None:
    settings, backups = Settings(home=tmp_path / "home"), tmp_path / "backups"
    backups.mkdir()
    for fault in ("backup.after_file:4", "backup.before_rename"):
        assert run(backup_process.back_up, settings, backups, fault) == -9
        assert list(backups.glob("*.tar")) == []
    assert run(backup_process.back_up, settings, backups, "") == 0
    assert [file.suffix for file in backups.iterdir()] == [".tar"]


def test_a_killed_restore_leaves_no_home_and_can_be_started_again(
    settings: Settings, backups: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert run(backup_process.back_up, settings, backups, "") == 0
    (file,) = backups.iterdir()
    home = tmp_path / "elsewhere"
    url = f"sqlite:///{home / 'aftercall.db'}"
    if not settings.database_url.startswith("sqlite"):
        url = request.getfixturevalue("empty_postgres")
    new = Settings(home=home, database=DatabaseSettings(url=url))
    for fault in ("restore.after_file:5", "restore.after_database"):
        assert run(backup_process.restore, new, file, fault) == -9
        assert not home.exists()
    # the last kill comes when home and database are whole
    assert run(backup_process.restore, new, file, "restore.after_rename") == -9
    app = build(new)
    proof = verify_archive(app.archive.place, app.store)
    app.close()
    assert (proof.calls, proof.faults) == (3, ())
    away = new.model_copy(update={"home": tmp_path / "third"})
    assert run(backup_process.restore, away, file, "") == 1  # not over what is there
