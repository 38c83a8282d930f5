"""A database belongs to one home: its calls lie in that home's archive, and another would look
for them in vain.
"""

from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from aftercall.app import build
from aftercall.cli.main import program
from aftercall.config import LoadedConfig
from aftercall.db.upgrade import HOME_ID_FILE, read_archive_claim
from aftercall.doctor import Check, run_checks
from aftercall.encryption import KEY_FILE, load_key
from aftercall.errors import ConfigError, DatabaseOfAnotherHome
from aftercall.settings import Settings
from fakes import make_call


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
    told = check_database(at(settings, tmp_path / "second"))
    assert told.state == "fail"
    assert "belongs to another home" in told.detail
    assert "copy home.id" in told.detail


def check_database(settings: Settings) -> Check:
    """What doctor says about the database."""
    checks = {check.name: check for check in run_checks(LoadedConfig(settings, (), ()))}
    return checks["database"]


def seal_call(settings: Settings) -> None:
    app = build(settings)
    app.journal.ingest(make_call())
    app.close()


def with_key(settings: Settings, key: str) -> Settings:
    return settings.model_copy(update={"secret_key": SecretStr(key)})


def with_bucket(settings: Settings, url: str) -> Settings:
    archive = settings.archive.model_copy(update={"url": url})
    return settings.model_copy(update={"archive": archive})


def test_another_key_is_refused_once_a_call_is_sealed(settings: Settings) -> None:
    first, other = with_key(settings, "first"), with_key(settings, "other")
    seal_call(first)
    with pytest.raises(ConfigError, match="AFTERCALL_SECRET_KEY"):
        build(other)
    assert "secret key is not the one" in check_database(other).detail
    assert check_database(first).state == "ok"
    build(first).close()


def test_a_key_of_the_home_that_was_replaced_is_refused(settings: Settings) -> None:
    seal_call(settings)
    (settings.home / KEY_FILE).write_text(f"{'ab' * 32}\n")
    with pytest.raises(ConfigError, match="secret key is not the one"):
        build(settings)


def test_the_database_keeps_no_key(settings: Settings) -> None:
    app = build(with_key(settings, "first"))
    with app.database.read() as connection:
        claim = read_archive_claim(connection)
    app.close()
    assert claim
    key = load_key(with_key(settings, "first"))
    assert key.hex() not in str(claim)
    assert "first" not in str(claim)


def test_a_rebuild_takes_a_new_key_for_one_that_is_lost(settings: Settings) -> None:
    seal_call(with_key(settings, "lost"))
    app = build(with_key(settings, "new"), purpose="rebuild")
    assert app.rebuilder.rebuild().failed == ()
    app.close()
    build(with_key(settings, "new")).close()


def test_a_slip_of_the_first_start_is_put_right_by_the_next(
    settings: Settings,
) -> None:
    build(with_key(settings, "wrong")).close()
    seal_call(with_key(settings, "right"))


def test_two_processes_with_different_keys_do_not_run_side_by_side(
    settings: Settings,
) -> None:
    app = build(with_key(settings, "first"))
    with pytest.raises(ConfigError, match="secret key is not the one"):
        build(with_key(settings, "other"))
    app.close()


def test_a_folder_is_left_for_a_bucket_by_a_move_only(settings: Settings) -> None:
    seal_call(settings)
    other = with_bucket(settings, "s3://elsewhere/calls")
    with pytest.raises(ConfigError, match="aftercall archive move"):
        build(other)
    assert "the folder `archive` of the home" in check_database(other).detail
