"""Encrypts secrets at rest and hashes them with a key, so that they can be compared.

The key is the installation's: see keys.py.
"""

import base64
import hmac
import secrets
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from aftercall.encryption import KEY_FILE, load_key
from aftercall.errors import SecretUnreadable
from aftercall.settings import Settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_SEALED = "sealed:1:"
_NONCE_BYTES = 12


class Vault:
    """Seals secrets before they are written."""

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
