"""The secret key and the API token of an installation."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from aftercall.encryption import (
    CHAIN_FILE,
    KEY_FILE,
    TOKEN_FILE,
    derive_key,
    find_api_token,
    load_api_token,
    load_key,
)
from aftercall.errors import ConfigError
from aftercall.settings import Settings


def test_a_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    with ThreadPoolExecutor(8) as many:
        keys = set(many.map(lambda _: load_key(settings), range(16)))
    assert len(keys) == 1
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]


def test_a_key_from_the_settings_needs_no_file(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, secret_key=SecretStr("correct horse battery"))
    assert len(load_key(settings)) == 32
    assert not (tmp_path / KEY_FILE).exists()


@pytest.mark.parametrize("kept", ["", "nonsense", "abcd"])
def test_a_damaged_key_is_not_replaced_but_told(tmp_path: Path, kept: str) -> None:
    (tmp_path / KEY_FILE).write_text(kept)
    with pytest.raises(ConfigError, match="64 hexadecimal digits"):
        load_key(Settings(home=tmp_path))
    assert (tmp_path / KEY_FILE).read_text() == kept


def test_a_key_that_is_missing_beside_sealed_calls_is_not_made_anew(
    tmp_path: Path,
) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / CHAIN_FILE).touch()
    with pytest.raises(ConfigError, match="restore it from a copy"):
        load_key(Settings(home=tmp_path))
    assert not (tmp_path / KEY_FILE).exists()


def test_each_purpose_has_a_key_of_its_own() -> None:
    assert derive_key(b"k" * 32, "cookies") != derive_key(b"k" * 32, "forms")


def test_a_token_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert find_api_token(settings) is None
    assert not list(tmp_path.iterdir())
    with ThreadPoolExecutor(8) as many:
        tokens = set(many.map(lambda _: load_api_token(settings), range(16)))
    assert tokens == {find_api_token(settings)}
    assert len(tokens.pop()) >= 43  # 256 bits
    assert (tmp_path / TOKEN_FILE).stat().st_mode & 0o777 == 0o600


def test_a_configured_token_wins_over_the_made_one(tmp_path: Path) -> None:
    load_api_token(Settings(home=tmp_path))
    settings = Settings(home=tmp_path, api_token=SecretStr("mine-and-nobodys"))
    assert load_api_token(settings).get_secret_value() == "mine-and-nobodys"


@pytest.mark.parametrize("kept", [b"", b"short", b"\xff" * 40])
def test_a_damaged_token_opens_nothing(tmp_path: Path, kept: bytes) -> None:
    (tmp_path / TOKEN_FILE).write_bytes(kept)
    with pytest.raises(ConfigError, match="holds no token"):
        load_api_token(Settings(home=tmp_path))
