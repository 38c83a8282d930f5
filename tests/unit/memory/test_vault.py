import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from aftercall.errors import ConfigError, SecretUnreadable
from aftercall.memory.vault import KEY_FILE, Vault, is_sealed, open_vault
from aftercall.settings import Settings


@given(st.text())
def test_what_is_sealed_opens_again_and_never_looks_the_same(text: str) -> None:
    vault = Vault(b"k" * 32)
    first, second = vault.seal(text), vault.seal(text)
    assert first != second
    assert is_sealed(first)
    assert vault.open(first) == vault.open(second) == text


def test_another_key_opens_nothing_and_hashes_otherwise() -> None:
    ours, other = Vault(b"a" * 32), Vault(b"b" * 32)
    with pytest.raises(SecretUnreadable, match="AFTERCALL_SECRET_KEY"):
        other.open(ours.seal("4821"))
    assert ours.hash("4821") == ours.hash("4821") != other.hash("4821")
    assert ours.hash("a", "b") != ours.hash("ab")


def test_the_key_file_is_made_once_and_only_for_us(tmp_path: Path) -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(open_vault(Settings(home=tmp_path)).hash("x"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == [KEY_FILE]


def test_a_key_in_the_settings_goes_before_the_file(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, secret_key=SecretStr("from the settings"))
    assert open_vault(settings).hash("x") == Vault(b"from the settings").hash("x")
    assert list(tmp_path.iterdir()) == []


def test_a_spoilt_key_file_is_named(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_text("short")
    with pytest.raises(ConfigError, match=KEY_FILE):
        open_vault(Settings(home=tmp_path))
