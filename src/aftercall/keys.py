"""The secret key of this installation: the one in the settings, or one made at first start and kept in the home."""

import os
import secrets
from functools import partial
from hashlib import blake2b
from pathlib import Path

from aftercall.errors import ConfigError
from aftercall.settings import Settings

FILE = "secret.key"


def load_key(settings: Settings) -> bytes:
    """32 bytes. Two processes that start together end up with the same one."""
    if settings.secret_key is not None:
        return blake2b(settings.secret_key.get_secret_value().encode(), digest_size=32, person=b"aftercall").digest()
    file = settings.home / FILE
    try:
        _make(file)
        key = bytes.fromhex(file.read_text("ascii").strip())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be used ({error.strerror}); set AFTERCALL_SECRET_KEY") from None
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ConfigError(f"{file}: does not hold 64 hexadecimal digits; put it back from a backup, or set AFTERCALL_SECRET_KEY")
    return key


def derive(key: bytes, purpose: str) -> bytes:
    """A key of its own for each purpose."""
    return blake2b(key=key, digest_size=32, person=purpose.encode()[:16]).digest()


def _make(file: Path) -> None:
    """Whole or not at all: linked into place, so that nobody reads half a key and nobody replaces one."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    with open(fresh, "x", encoding="ascii", opener=partial(os.open, mode=0o600)) as opened:
        opened.write(secrets.token_hex(32) + "\n")
        opened.flush()
        os.fsync(opened.fileno())
    try:
        os.link(fresh, file)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
