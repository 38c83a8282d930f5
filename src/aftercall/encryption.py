"""The secret key, the API token, encrypted files, and secrets encrypted in the database.

Key and token come from the settings, or are created at first start and kept in the home. An
encrypted file has a header that shows what it is, and blocks behind it. Each file has its own key,
made from the installation's key and the salt in the header. A block is sealed with its number and
with whether it is the last one: a file that was cut, extended or put together from others does not
open.
"""

import base64
import hmac
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b, sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pydantic import SecretStr

from aftercall.disk import create_once
from aftercall.errors import ConfigError, FileUnreadable, SecretUnreadable
from aftercall.settings import Settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_FILE = "secret.key"
CHAIN_FILE = "chain.jsonl"
TOKEN_FILE = "api.token"  # noqa: S105 - the name of the file
MIN_UNGUESSABLE_CHARS = 32


def load_key(settings: Settings) -> bytes:
    """Returns 32 bytes, the same ones in processes that start at the same time."""
    if settings.secret_key is not None:
        return blake2b(
            settings.secret_key.get_secret_value().encode(),
            digest_size=32,
            person=b"aftercall",
        ).digest()
    file = settings.home / KEY_FILE
    if not file.exists() and (settings.home / "archive" / CHAIN_FILE).exists():
        raise ConfigError(
            f"{file}: is missing, but calls of this home were sealed with it; restore it from a "
            "copy or set AFTERCALL_SECRET_KEY. A new key (`openssl rand -hex 32 > "
            f"{file}`) opens no secret and no encrypted file of before"
        )
    try:
        create_once(file, f"{secrets.token_hex(32)}\n".encode())
        key = bytes.fromhex(file.read_text("ascii").strip())
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be used ({error.strerror}); set AFTERCALL_SECRET_KEY"
        ) from None
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ConfigError(
            f"{file}: does not hold 64 hexadecimal digits; restore it from a backup, or set "
            "AFTERCALL_SECRET_KEY"
        )
    return key


def derive_key(key: bytes, purpose: str) -> bytes:
    """Returns a separate key for each purpose."""
    return blake2b(key=key, digest_size=32, person=purpose.encode()[:16]).digest()


def make_fingerprint(settings: Settings) -> str:
    """Tells one key from another, and nothing about either."""
    return derive_key(load_key(settings), "fingerprint").hex()


def load_api_token(settings: Settings) -> SecretStr:
    """The configured token, else the one in the home; it is created if there is none."""
    if found := find_api_token(settings):
        return found
    file = settings.home / TOKEN_FILE
    try:
        create_once(file, f"{secrets.token_urlsafe(32)}\n".encode())
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be written ({error.strerror}); set AFTERCALL_API_TOKEN"
        ) from None
    if found := find_api_token(settings):
        return found
    raise ConfigError(f"{file}: was removed while it was read; start again")


def find_api_token(settings: Settings) -> SecretStr | None:
    """None if there is no token yet. Creates no file."""
    if settings.api_token:
        return settings.api_token
    file = settings.home / TOKEN_FILE
    try:
        token = file.read_text("ascii").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be read ({error.strerror}); set AFTERCALL_API_TOKEN"
        ) from None
    except ValueError:
        token = ""
    if len(token) < MIN_UNGUESSABLE_CHARS:
        raise ConfigError(
            f"{file}: holds no token; delete it to get a new one, or set AFTERCALL_API_TOKEN"
        )
    return SecretStr(token)


MAGIC = b"aftercall-encrypted-1\n"
SALT_BYTES = 16
HEADER_BYTES = len(MAGIC) + SALT_BYTES
MAX_BLOCK_BYTES = 4 * 1024 * 1024
_NONCE_BYTES = 12
_OVERHEAD_BYTES = _NONCE_BYTES + 16  # the cipher's tag
_BLOCK_HEAD = struct.Struct(">?I")  # is it the last one, bytes that follow


def is_encrypted(start: bytes) -> bool:
    """Whether a file that starts like this is an encrypted one."""
    return start.startswith(MAGIC)


def _bind(number: int, head: bytes) -> bytes:
    """What a block is sealed with besides its data: its place in the file, and its head."""
    return number.to_bytes(8) + head


def make_header() -> bytes:
    return MAGIC + secrets.token_bytes(SALT_BYTES)


@dataclass(frozen=True)
class BlockEnd:
    """Where the readable blocks of a growing file end."""

    header: bytes
    blocks: int
    clear_bytes: int
    offset: int


@dataclass(frozen=True)
class FileCipher:
    """Reads files that are encrypted and files that are not; encrypts new ones if it is on."""

    key: bytes = field(repr=False)
    is_on: bool = False

    def encode(self, data: bytes) -> bytes:
        """The bytes to store."""
        return self.encrypt(data) if self.is_on else data

    def decode(self, stored: bytes) -> bytes:
        """The clear bytes. Raises FileUnreadable."""
        if not is_encrypted(stored):
            return stored
        return b"".join(self.read(BytesIO(stored)))

    def encrypt(self, data: bytes) -> bytes:
        header = make_header()
        parts = [
            data[at : at + MAX_BLOCK_BYTES]
            for at in range(0, len(data), MAX_BLOCK_BYTES)
        ]
        blocks = [self.seal_block(header, n, part) for n, part in enumerate(parts)]
        return b"".join((header, *blocks, self.seal_end(header, len(parts))))

    def seal_block(self, header: bytes, number: int, data: bytes) -> bytes:
        return self._seal(header, number, data, is_last=False)

    def seal_end(self, header: bytes, number: int) -> bytes:
        """The empty block that ends a file."""
        return self._seal(header, number, b"", is_last=True)

    def read(self, file: BinaryIO) -> Iterator[bytes]:
        """The clear parts of an encrypted file, in order. Raises FileUnreadable."""
        is_whole = False
        for part, is_last, _ in self._blocks(file):
            is_whole = is_last
            yield part
        if not is_whole:
            raise FileUnreadable("an encrypted file is cut off")

    def find_end(self, file: BinaryIO) -> BlockEnd | None:
        """Where a growing file may go on; None if it is not an encrypted file.

        The end block and whatever a crash left behind the readable blocks do not count.
        """
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES or not is_encrypted(header):
            return None
        end = BlockEnd(header, 0, 0, HEADER_BYTES)
        file.seek(0)
        try:
            for part, is_last, offset in self._blocks(file):
                if not is_last:
                    size = end.clear_bytes + len(part)
                    end = BlockEnd(header, end.blocks + 1, size, offset)
        except FileUnreadable:
            return end
        return end

    def _blocks(self, file: BinaryIO) -> Iterator[tuple[bytes, bool, int]]:
        """Each block: clear bytes, whether it is the last, and where it ends in the file."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - slow to load

        cipher = self._cipher(file.read(HEADER_BYTES))
        number = 0
        offset = HEADER_BYTES
        is_last = False
        while head := file.read(_BLOCK_HEAD.size):
            body = b""
            if len(head) == _BLOCK_HEAD.size and not is_last:
                is_last, length = _BLOCK_HEAD.unpack(head)
                body = file.read(min(length, MAX_BLOCK_BYTES + _OVERHEAD_BYTES))
            nonce = body[:_NONCE_BYTES]
            sealed = body[_NONCE_BYTES:]
            try:
                clear = cipher.decrypt(nonce, sealed, _bind(number, head))
            except (InvalidTag, ValueError):
                raise FileUnreadable(
                    "an encrypted file cannot be opened: it was changed, or encrypted with "
                    "another key"
                ) from None
            offset += len(head) + len(body)
            yield clear, is_last, offset
            number += 1

    def _seal(self, header: bytes, number: int, data: bytes, *, is_last: bool) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        head = _BLOCK_HEAD.pack(is_last, len(data) + _OVERHEAD_BYTES)
        sealed = self._cipher(header).encrypt(nonce, data, _bind(number, head))
        return head + nonce + sealed

    def _cipher(self, header: bytes) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415 - slow to load

        return aead.AESGCM(hmac.digest(self.key, header, "sha256"))


def open_cipher(settings: Settings) -> FileCipher:
    key = derive_key(load_key(settings), "files")
    return FileCipher(key, is_on=settings.archive.encrypt)


def read_decrypted(path: Path, cipher: FileCipher) -> Iterator[bytes]:
    """A file's clear bytes in blocks, encrypted or not."""
    with path.open("rb") as file:
        yield from decrypt_blocks(file, cipher)


def decrypt_blocks(file: BinaryIO, cipher: FileCipher) -> Iterator[bytes]:
    start = file.read(len(MAGIC))
    file.seek(0)
    if is_encrypted(start):
        yield from cipher.read(file)
        return
    while block := file.read(MAX_BLOCK_BYTES):
        yield block


_SEALED = "sealed:1:"


class Vault:
    """Encrypts secrets before they are written, and hashes them so that they can be compared."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, text: str) -> str:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, text.encode(), None)
        return _SEALED + base64.urlsafe_b64encode(sealed).decode()

    def open(self, sealed: str) -> str:
        """Raises SecretUnreadable if it was sealed with another key."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - slow to load, seldom used

        raw = base64.urlsafe_b64decode(sealed.removeprefix(_SEALED))
        try:
            return self._cipher.decrypt(
                raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], None
            ).decode()
        except InvalidTag:
            raise SecretUnreadable(
                "a secret was sealed with another key: set AFTERCALL_SECRET_KEY, or restore "
                f"the file {KEY_FILE} in the home"
            ) from None

    def hash(self, *parts: str) -> str:
        """The same words give the same hash; without the key it cannot be guessed."""
        return hmac.digest(self._hash_key, "\0".join(parts).encode(), "sha256").hex()[
            :40
        ]

    @cached_property
    def _hash_key(self) -> bytes:
        return self._derive(b"match")

    @cached_property
    def _cipher(self) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415 - slow to load

        return aead.AESGCM(self._derive(b"seal"))

    def _derive(self, use: bytes) -> bytes:
        return hmac.new(self._key, b"aftercall " + use, sha256).digest()


def is_sealed(text: str) -> bool:
    return text.startswith(_SEALED)


def open_vault(settings: Settings) -> Vault:
    return Vault(load_key(settings))
