from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.encryption import Vault, is_sealed, load_key, open_vault
from aftercall.errors import SecretUnreadable
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


def test_the_vault_opens_with_the_key_of_the_installation(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert open_vault(settings).open(Vault(load_key(settings)).seal("4821")) == "4821"
