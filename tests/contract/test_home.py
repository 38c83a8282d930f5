"""A database belongs to one home: its calls lie in that home's archive, and another would look
for them in vain.
"""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from aftercall.app import build
from aftercall.cli.main import program
from aftercall.config import LoadedConfig
from aftercall.db.upgrade import HOME_ID_FILE
from aftercall.doctor import run_checks
from aftercall.errors import DatabaseOfAnotherHome
from aftercall.settings import Settings
from aftercall.testing import make_call


def at(settings: Settings, home: Path) -> Settings:
    """The same database from another home."""
    return settings.model_copy(
        update={
            "home": home,
            "database": settings.database.model_copy(
                update={"url": settings.database_url}
            ),
        }
    )


def test_a_second_home_on_the_same_database_is_refused(
    settings: Settings, tmp_path: Path
) -> None:
    build(settings).close()
    with pytest.raises(DatabaseOfAnotherHome, match="AFTERCALL_HOME"):
        build(at(settings, tmp_path / "second"))
    build(settings).close()


def test_a_home_that_others_can_open_is_closed_to_them(settings: Settings) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    settings.home.chmod(0o777)
    build(settings).close()
    assert settings.home.stat().st_mode & 0o777 == 0o700


def test_a_home_that_was_moved_is_still_the_same(
    settings: Settings, tmp_path: Path
) -> None:
    build(settings).close()
    moved = tmp_path / "moved"
    moved.mkdir()
    (settings.home / HOME_ID_FILE).rename(moved / HOME_ID_FILE)
    build(at(settings, moved)).close()


def test_a_lost_home_is_replaced_by_writing_its_id(
    settings: Settings, tmp_path: Path
) -> None:
    build(settings).close()
    claimed = (settings.home / HOME_ID_FILE).read_text().strip()
    second = at(settings, tmp_path / "second")
    with pytest.raises(DatabaseOfAnotherHome, match=f"write {claimed} into"):
        build(second)
    (second.home / HOME_ID_FILE).write_text(claimed)
    build(second).close()


def test_a_home_may_begin_with_a_new_database(
    settings: Settings, tmp_path: Path
) -> None:
    build(settings).close()
    anew = settings.database.model_copy(
        update={"url": f"sqlite:///{tmp_path / 'new.db'}"}
    )
    build(settings.model_copy(update={"database": anew})).close()


def test_rows_are_read_from_anywhere_and_written_at_home(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build(settings)
    call = make_call()
    app.journal.ingest(call)
    app.close()
    monkeypatch.setenv("AFTERCALL_HOME", str(tmp_path / "second"))
    monkeypatch.setenv("AFTERCALL_DATABASE_URL", settings.database_url)
    assert call.id in CliRunner().invoke(program, ["calls", "list"]).output
    assert CliRunner().invoke(program, ["health"]).exit_code in (0, 1)
    for command in (["serve", "--port", "0"], ["worker"], ["verify"], ["rebuild"]):
        assert isinstance(
            CliRunner().invoke(program, command).exception, DatabaseOfAnotherHome
        )


def test_doctor_tells_that_the_database_is_another_homes(
    settings: Settings, tmp_path: Path
) -> None:
    build(settings).close()
    told = {
        check.name: check
        for check in run_checks(LoadedConfig(at(settings, tmp_path / "second"), (), ()))
    }
    assert told["database"].state == "fail"
    assert "belongs to another home" in told["database"].detail
