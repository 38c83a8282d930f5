"""Logins of browsers, and links that log a browser in once.

The database holds hashes only: who reads it cannot log in. A row counts while the token and the
password are the ones it was made with.
"""

import secrets
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Literal

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.tables import browser_sessions as table
from aftercall.keys import derive_key, load_api_token, load_key
from aftercall.settings import Settings

LINK_LIFETIME = timedelta(minutes=15)


class SessionStore:
    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._max_age = timedelta(hours=settings.pages.session_hours)
        self._credentials = _hash_credentials(settings)

    def start(self) -> str:
        """Begins a session; returns the secret for its cookie."""
        with self._database.write() as connection:
            return self._add(connection, "session", self._max_age)

    def is_active(self, secret: str) -> bool:
        query = select(table.c.key).where(
            table.c.key == _hash(secret),
            table.c.kind == "session",
            table.c.credentials == self._credentials,
            table.c.ends_at > self._clock.now(),
        )
        with self._database.read() as connection:
            return connection.execute(query).first() is not None

    def end(self, secret: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.key == _hash(secret)))

    def end_all(self) -> None:
        """Ends every session and every unused link."""
        with self._database.write() as connection:
            connection.execute(delete(table))

    def make_link(self) -> str:
        """The code of a link that logs in one browser, once."""
        with self._database.write() as connection:
            return self._add(connection, "link", LINK_LIFETIME)

    def use_link(self, code: str) -> str | None:
        """Begins a session; None if the link was used, is too old or was never made."""
        used = delete(table).where(
            table.c.key == _hash(code),
            table.c.kind == "link",
            table.c.credentials == self._credentials,
            table.c.ends_at > self._clock.now(),
        )
        with self._database.write() as connection:
            if connection.execute(used).rowcount != 1:
                return None
            return self._add(connection, "session", self._max_age)

    def _add(
        self, connection: Connection, kind: Literal["session", "link"], age: timedelta
    ) -> str:
        """Also deletes what has ended, so that the table stays small."""
        now = self._clock.now()
        secret = secrets.token_urlsafe(32)
        row = {
            "key": _hash(secret),
            "kind": kind,
            "credentials": self._credentials,
            "ends_at": now + age,
        }
        connection.execute(delete(table).where(self._has_ended(now)))
        connection.execute(insert(table), row)
        return secret

    def _has_ended(self, now: datetime) -> ColumnElement[bool]:
        return or_(table.c.ends_at <= now, table.c.credentials != self._credentials)


def _hash_credentials(settings: Settings) -> str:
    password = settings.pages.password_hash
    parts = (
        load_api_token(settings).get_secret_value(),
        password.get_secret_value() if password else "",
    )
    key = derive_key(load_key(settings), "sessions")
    return blake2b("\0".join(parts).encode(), key=key, digest_size=16).hexdigest()


def _hash(secret: str) -> str:
    return blake2b(secret.encode(), digest_size=32).hexdigest()
