"""The secret key and the API token: from the settings, or created at first start and kept in
the home.
"""

import secrets
from hashlib import blake2b

from pydantic import SecretStr

from aftercall.disk import create_once
from aftercall.errors import ConfigError
from aftercall.settings import Settings

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
