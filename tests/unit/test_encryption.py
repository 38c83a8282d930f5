"""Encrypted files open whole with their key, or not at all."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from aftercall.encryption import (
    HEADER_BYTES,
    MAGIC,
    MAX_BLOCK_BYTES,
    FileCipher,
    is_encrypted,
    open_cipher,
    read_decrypted,
)
from aftercall.errors import FileUnreadable
from aftercall.settings import Settings
from aftercall.settings.providers import ArchiveSettings

CIPHER = FileCipher(b"k" * 32, is_on=True)
WORDS = b"The heron flies at midnight."


@given(st.binary(max_size=2_000))
def test_what_is_encrypted_is_read_back(data: bytes) -> None:
    stored = CIPHER.encode(data)
    assert is_encrypted(stored)
    assert CIPHER.decode(stored) == data


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_a_large_file_has_several_blocks(extra: int) -> None:
    data = b"x" * (2 * MAX_BLOCK_BYTES + extra)
    stored = CIPHER.encrypt(data)
    assert CIPHER.decode(stored) == data
    assert max(len(part) for part in CIPHER.read(io.BytesIO(stored))) == MAX_BLOCK_BYTES


def test_no_word_is_readable_and_no_two_files_are_alike() -> None:
    first, second = CIPHER.encrypt(WORDS), CIPHER.encrypt(WORDS)
    assert b"heron" not in first
    assert first != second


def test_a_file_shows_itself_whether_it_is_encrypted() -> None:
    off = FileCipher(CIPHER.key)
    assert off.encode(WORDS) == WORDS
    assert off.decode(CIPHER.encrypt(WORDS)) == CIPHER.decode(WORDS) == WORDS


def test_another_key_opens_nothing() -> None:
    with pytest.raises(FileUnreadable, match="another key"):
        FileCipher(b"l" * 32).decode(CIPHER.encrypt(WORDS))


@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    stored = bytearray(CIPHER.encrypt(WORDS))
    at = data.draw(st.integers(len(MAGIC), len(stored) - 1))
    stored[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(FileUnreadable):
        CIPHER.decode(bytes(stored))


@given(st.integers(0, 10_000))
def test_a_file_that_was_cut_is_noticed(cut: int) -> None:
    stored = CIPHER.encrypt(WORDS)
    cut = len(MAGIC) + cut % (len(stored) - len(MAGIC))
    with pytest.raises(FileUnreadable):
        CIPHER.decode(stored[:cut])


def test_blocks_of_two_files_do_not_make_a_third() -> None:
    one, other = CIPHER.encrypt(WORDS), CIPHER.encrypt(WORDS)
    with pytest.raises(FileUnreadable):
        CIPHER.decode(one[:HEADER_BYTES] + other[HEADER_BYTES:])
    with pytest.raises(FileUnreadable):
        CIPHER.decode(one + other[HEADER_BYTES:])


@pytest.mark.parametrize("stored", [WORDS, CIPHER.encrypt(WORDS), b""])
def test_a_file_is_read_in_clear_whichever_it_is(tmp_path: Path, stored: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(stored)
    expected = WORDS if stored else b""
    assert b"".join(read_decrypted(file, CIPHER)) == expected


def test_the_key_of_files_is_made_from_the_secret_key(tmp_path: Path) -> None:
    def cipher_of(secret: str, *, encrypt: bool) -> FileCipher:
        archive = ArchiveSettings(encrypt=encrypt)
        key = SecretStr(secret)
        return open_cipher(Settings(home=tmp_path, secret_key=key, archive=archive))

    sealed = cipher_of("one of 16 letters", encrypt=True).encode(WORDS)
    assert cipher_of("one of 16 letters", encrypt=False).decode(sealed) == WORDS
    with pytest.raises(FileUnreadable):
        cipher_of("another of sixteen", encrypt=True).decode(sealed)
