"""A pooler before Postgres: one that gives each transaction another connection is refused."""

from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from aftercall.app import build
from aftercall.config import LoadedConfig
from aftercall.doctor import run_checks
from aftercall.errors import ConfigError
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from transaction_pooler import pooling


def test_a_pooler_in_transaction_mode_is_refused_at_the_start_and_by_doctor(
    tmp_path: Path, other_postgres: str
) -> None:
    direct = make_url(other_postgres)
    folder = Path(str(direct.query["host"]))
    with pooling(next(folder.glob(".s.PGSQL.*[0-9]"))) as port:
        url = direct.difference_update_query(["host"]).set(host="127.0.0.1", port=port)
        database = DatabaseSettings(url=url.render_as_string(hide_password=False))
        settings = Settings(home=tmp_path / "home", database=database)
        with pytest.raises(ConfigError, match="transaction mode"):
            build(settings)
        checks = run_checks(LoadedConfig(settings, (), ()))
        (found,) = [check for check in checks if check.name == "database"]
    assert found.state == "fail"
    assert "session mode" in found.detail


def test_postgres_itself_is_no_pooler(tmp_path: Path, other_postgres: str) -> None:
    settings = Settings(
        home=tmp_path / "home", database=DatabaseSettings(url=other_postgres)
    )
    build(settings).close()
