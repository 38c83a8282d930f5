"""Secrets at rest: encrypted, found again by keyed hashes, opened only here.

The key comes from the settings, or from a file made at first start in the home that only this user may read.
"""

import base64
import hmac
import os
import secrets
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from aftercall.disk import sync_folder
from aftercall.errors import ConfigError, SecretUnreadable
from aftercall.ids import new_id
from aftercall.settings import Settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_FILE = "secret.key"
_SEALED = "sealed:1:"
_NONCE = 12


class Vault:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, text: str) -> str:
        nonce = secrets.token_bytes(_NONCE)
        return _SEALED + base64.urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, text.encode(), None)).decode()

    def open(self, sealed: str) -> str:
        """Raises SecretUnreadable for what was sealed with another key."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - most commands never open a secret

        raw = base64.urlsafe_b64decode(sealed.removeprefix(_SEALED))
        try:
            return self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], None).decode()
        except InvalidTag:
            raise SecretUnreadable(
                f"a secret was sealed with another key: set AFTERCALL_SECRET_KEY, or bring back the file {KEY_FILE} of the home"
            ) from None

    def hash(self, *parts: str) -> str:
        """The same words give the same hash, and without the key nobody can try words out."""
        return hmac.new(self._derive(b"match"), "\0".join(parts).encode(), sha256).hexdigest()[:40]

    @cached_property
    def _cipher(self) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - most commands never open a secret

        return AESGCM(self._derive(b"seal"))

    def _derive(self, use: bytes) -> bytes:
        return hmac.new(self._key, b"aftercall " + use, sha256).digest()


def is_sealed(text: str) -> bool:
    return text.startswith(_SEALED)


def open_vault(settings: Settings) -> Vault:
    if settings.secret_key is not None and settings.secret_key.get_secret_value():
        return Vault(settings.secret_key.get_secret_value().encode())
    return Vault(_read_or_make(settings.home / KEY_FILE))


def _read_or_make(file: Path) -> bytes:
    try:
        return _read(file)
    except FileNotFoundError:
        _make(file)
        return _read(file)


def _read(file: Path) -> bytes:
    try:
        key = file.read_bytes().strip()
    except PermissionError:
        raise ConfigError(f"{file}: may not be read by this user; it holds the key of the secrets") from None
    if len(key) < 32:
        raise ConfigError(f"{file}: is not a key; bring the right file back, or remove it and lose the secrets that it sealed")
    return key


def _make(file: Path) -> None:
    """The name appears only when the key is on disk, and whoever comes second takes the first one's."""
    temporary = file.with_name(f".{new_id()}.tmp")
    opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(opened, secrets.token_urlsafe(32).encode() + b"\n")
        os.fsync(opened)
        os.link(temporary, file)
        sync_folder(file.parent)
    except FileExistsError:
        return
    finally:
        os.close(opened)
        temporary.unlink(missing_ok=True)
