"""The secret key: from the settings, or created at first start and kept in the home."""

import secrets
from hashlib import blake2b

from aftercall.disk import create_once
from aftercall.errors import ConfigError
from aftercall.settings import Settings

KEY_FILE = "secret.key"


def load_key(settings: Settings) -> bytes:
    """Returns 32 bytes, the same ones in processes that start at the same time."""
    if settings.secret_key is not None:
        return blake2b(
            settings.secret_key.get_secret_value().encode(),
            digest_size=32,
            person=b"aftercall",
        ).digest()
    file = settings.home / KEY_FILE
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
