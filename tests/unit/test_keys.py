"""The secret key of an installation."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from aftercall.errors import ConfigError
from aftercall.keys import KEY_FILE, derive_key, load_key
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


def test_each_purpose_has_a_key_of_its_own() -> None:
    assert derive_key(b"k" * 32, "cookies") != derive_key(b"k" * 32, "forms")
