"""People who log in to the pages, each with a role. The owner, who has the token, is not one.

An invitation is a link. Whoever opens it chooses a password; name and password log in from then
on. The role is read at every request, so a change of it counts at once.

Of logins, links and invitations the database holds hashes only: who reads it cannot log in. A
row counts while the token and the owner's password are the ones it was made with.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from argon2 import PasswordHasher
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from aftercall.clock import Clock
from aftercall.db.audit_log import Deed, write_audit
from aftercall.db.connect import Database
from aftercall.db.tables import browser_sessions as table
from aftercall.db.tables import users
from aftercall.encryption import derive_key, load_api_token, load_key
from aftercall.errors import NotFound, RefusedInput
from aftercall.ids import new_id
from aftercall.settings import Settings

Role = Literal["viewer", "operator", "admin"]
ROLES: dict[Role, str] = {
    "viewer": "reads the pages; secrets and recordings stay closed",
    "operator": "also decides, corrects, calls the agent, opens secrets and recordings",
    "admin": "also exports and erases callers, changes settings, invites people",
}
"""Each may do what those before it may."""
OWNER = "the owner"
API = "the API"
MAX_NAME_CHARS = 60
MIN_PASSWORD_CHARS = 10


def is_enough(role: Role | None, needed: Role) -> bool:
    """Whether somebody with this role may do what needs another.

    A stranger has no role.
    """
    order = list(ROLES)
    return role is not None and order.index(role) >= order.index(needed)


@dataclass(frozen=True)
class PageUser:
    id: str
    name: str
    role: Role
    has_joined: bool
    invited_at: datetime


class UserStore:
    """Every change is in the audit log, by the id of the user."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def list_all(self) -> list[PageUser]:
        """Everybody with access but the owner, by name; those, too, who have not joined yet."""
        query = select(users).order_by(users.c.login)
        return [to_user(row) for row in self._database.fetch(query)]

    def get(self, user_id: str) -> PageUser:
        """Raises NotFound for a user who was removed."""
        query = select(users).where(users.c.id == user_id)
        row = self._database.fetch_first(query)
        if row is None:
            raise NotFound("there is no such user; the settings page lists them")
        return to_user(row)

    def add(self, name: str, role: str, who: str) -> PageUser:
        """A user who cannot log in before they have used an invitation."""
        line = _read_name(name)
        row = {
            "id": new_id(),
            "name": line,
            "login": line.casefold(),
            "role": read_role(role),
            "password_hash": None,
            "invited_at": self._clock.now(),
        }
        try:
            with self._database.write() as connection:
                connection.execute(insert(users), row)
                self._note(connection, who, "invited", str(row["id"]))
        except IntegrityError:
            raise RefusedInput("name", "is taken by another user") from None
        return self.get(str(row["id"]))

    def change_role(self, user_id: str, role: str, who: str) -> PageUser:
        """Counts at the next request of the user. Their logins stay."""
        change = update(users).where(users.c.id == user_id)
        with self._database.write() as connection:
            connection.execute(change.values(role=read_role(role)))
            self._note(connection, who, "changed", user_id)
        return self.get(user_id)

    def remove(self, user_id: str, who: str) -> None:
        """With their logins and invitations. The audit log keeps their name."""
        is_theirs = table.c.user_id == user_id
        with self._database.write() as connection:
            connection.execute(delete(table).where(is_theirs))
            connection.execute(delete(users).where(users.c.id == user_id))
            self._note(connection, who, "removed", user_id)

    def find_password_hash(self, name: str) -> tuple[str, str] | None:
        """The id and the hash of a user who has joined."""
        login = " ".join(name.split()).casefold()
        query = select(users.c.id, users.c.password_hash).where(users.c.login == login)
        row = self._database.fetch_first(query)
        return (row.id, row.password_hash) if row and row.password_hash else None

    def _note(self, connection: Connection, who: str, deed: Deed, user_id: str) -> None:
        """In the transaction of the change."""
        write_audit(connection, self._clock.now(), who, deed, user_id)


def to_user(row: Row[Any]) -> PageUser:
    has_joined = row.password_hash is not None
    return PageUser(row.id, row.name, row.role, has_joined, row.invited_at)


def read_role(role: str) -> Role:
    """Refuses every other word."""
    for known in ROLES:
        if role == known:
            return known
    raise RefusedInput("role", f"is not one of {', '.join(ROLES)}")


def hash_password(password: str) -> str:
    """An Argon2 hash. It takes a tenth of a second and 64 MB, by design."""
    if len(password) < MIN_PASSWORD_CHARS:
        raise RefusedInput(
            "password", f"is shorter than {MIN_PASSWORD_CHARS} characters"
        )
    return PasswordHasher().hash(password)


def _read_name(name: str) -> str:
    """One line. The names of the owner and the API are taken, or the audit log could be misread."""
    line = " ".join(name.split())
    if not line or len(line) > MAX_NAME_CHARS or not line.isprintable():
        raise RefusedInput("name", f"is not a name of 1 to {MAX_NAME_CHARS} characters")
    if line.lower() in (OWNER, API.lower()):
        raise RefusedInput("name", "is not a person's")
    return line


LINK_LIFETIME = timedelta(minutes=15)


INVITATION_LIFETIME = timedelta(days=7)
SecretKind = Literal["session", "link", "invitation"]


class Login(NamedTuple):
    """Who is logged in; the owner has no id."""

    name: str = OWNER
    role: Role = "admin"
    user_id: str | None = None


class SessionStore:
    """Logins and links in the database, so that every process knows them."""

    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._max_age = timedelta(hours=settings.pages.session_hours)
        self._credentials = _hash_credentials(settings)

    def start(self, user_id: str | None = None) -> str:
        """Begins a session; returns the secret for its cookie."""
        with self._database.write() as connection:
            return self._add(connection, "session", self._max_age, user_id)

    def find_login(self, secret: str, kind: SecretKind = "session") -> Login | None:
        """Whose session or invitation this is; None if it has ended, or its user is gone."""
        query = (
            select(table.c.user_id, users.c.name, users.c.role)
            .join(users, users.c.id == table.c.user_id, isouter=True)
            .where(*self._is_valid(secret, kind))
        )
        row = self._database.fetch_first(query)
        if row is None or (row.user_id and not row.name):
            return None
        return Login(row.name, row.role, row.user_id) if row.user_id else Login()

    def end(self, secret: str) -> None:
        """Ends one login: the others of the same person stay."""
        self._database.execute(delete(table).where(table.c.key == _hash(secret)))

    def end_all(self) -> None:
        """Ends every session, every unused link and every invitation."""
        self._database.execute(delete(table))

    def make_link(self) -> str:
        """The code of a link that logs in one browser of the owner, once."""
        with self._database.write() as connection:
            return self._add(connection, "link", LINK_LIFETIME)

    def use_link(self, code: str) -> str | None:
        """Begins a session; None if the link was used, is too old or was never made."""
        with self._database.write() as connection:
            if not self._use_up(connection, code, "link"):
                return None
            return self._add(connection, "session", self._max_age)

    def make_invitation(self, user_id: str) -> str:
        """The code of a link with which a user chooses a password. Earlier ones end."""
        old = and_(table.c.user_id == user_id, table.c.kind == "invitation")
        with self._database.write() as connection:
            connection.execute(delete(table).where(old))
            return self._add(connection, "invitation", INVITATION_LIFETIME, user_id)

    def use_invitation(self, code: str, password_hash: str) -> str | None:
        """Sets the user's password and begins a session; their other sessions end."""
        login = self.find_login(code, "invitation")
        if login is None or login.user_id is None:
            return None
        is_theirs = users.c.id == login.user_id
        with self._database.write() as connection:
            if not self._use_up(connection, code, "invitation"):
                return None
            connection.execute(delete(table).where(table.c.user_id == login.user_id))
            change = update(users).where(is_theirs).values(password_hash=password_hash)
            if connection.execute(change).rowcount != 1:
                return None
            now = self._clock.now()
            write_audit(connection, now, login.name, "joined", login.user_id)
            return self._add(connection, "session", self._max_age, login.user_id)

    def _is_valid(
        self, secret: str, kind: SecretKind
    ) -> tuple[ColumnElement[bool], ...]:
        """The conditions of a row that counts: of this kind, in time, under these credentials."""
        return (
            table.c.key == _hash(secret),
            table.c.kind == kind,
            table.c.credentials == self._credentials,
            table.c.ends_at > self._clock.now(),
        )

    def _use_up(self, connection: Connection, code: str, kind: SecretKind) -> bool:
        """Deletes the row, so that of several who use a code at once one wins."""
        used = delete(table).where(*self._is_valid(code, kind))
        return connection.execute(used).rowcount == 1

    def _add(
        self,
        connection: Connection,
        kind: SecretKind,
        age: timedelta,
        user_id: str | None = None,
    ) -> str:
        """Also deletes what has ended, so that the table stays small."""
        now = self._clock.now()
        secret = secrets.token_urlsafe(32)
        row = {
            "key": _hash(secret),
            "kind": kind,
            "credentials": self._credentials,
            "ends_at": now + age,
            "user_id": user_id,
        }
        connection.execute(delete(table).where(self._has_ended(now)))
        connection.execute(insert(table), row)
        return secret

    def _has_ended(self, now: datetime) -> ColumnElement[bool]:
        return or_(table.c.ends_at <= now, table.c.credentials != self._credentials)


def _hash_credentials(settings: Settings) -> str:
    """Changes with the token or the password, which ends all logins made before."""
    password = settings.pages.password_hash
    parts = (
        load_api_token(settings).get_secret_value(),
        password.get_secret_value() if password else "",
    )
    key = derive_key(load_key(settings), "sessions")
    return blake2b("\0".join(parts).encode(), key=key, digest_size=16).hexdigest()


def _hash(secret: str) -> str:
    return blake2b(secret.encode(), digest_size=32).hexdigest()
