"""Access to the API and the pages.

The API takes the bearer token; without a configured token, only this machine is served. A
browser logs in with the token or the password and then carries a signed cookie. Every change
from a page carries a CSRF token and must come from our origin.
"""

import hmac
import ipaddress
import secrets
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import urlsplit

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from fastapi import HTTPException, Request, Response
from itsdangerous import BadSignature, URLSafeTimedSerializer
from pydantic import SecretStr
from starlette.requests import HTTPConnection

from aftercall.clock import Clock
from aftercall.keys import derive_key
from aftercall.settings import Settings

SESSION_COOKIE = "aftercall_session"
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
MAX_LOGIN_FAILURES = 5
LOGIN_FAILURE_WINDOW_S = 60
MAX_TRACKED_CLIENTS = 10_000
LOCAL_ONLY = "without AFTERCALL_API_TOKEN only this machine is served"
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "testserver"})
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class ApiAuth:
    """A FastAPI dependency that lets a request through or refuses it."""

    def __init__(self, token: SecretStr | None) -> None:
        self._token = token.get_secret_value().encode() if token else None

    def __call__(self, request: Request) -> None:
        if self.is_allowed(request):
            return
        if self._token is None:
            raise HTTPException(403, LOCAL_ONLY)
        raise HTTPException(
            401,
            "a bearer token is needed: Authorization: Bearer …",
            {"WWW-Authenticate": "Bearer"},
        )

    def is_allowed(self, connection: HTTPConnection) -> bool:
        if self._token is None:
            return _is_local(connection)
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        bearer = given.strip() if scheme.lower() == "bearer" else ""
        return any(
            hmac.compare_digest(word.encode(), self._token)
            for word in (bearer, connection.headers.get("x-api-key", ""))
            if word
        )


@dataclass(frozen=True)
class BrowserSession:
    id: str
    is_logged_in: bool = False


class LoginNeeded(Exception):
    """The page needs a login; the server redirects to the login page."""


class BrowserAuth:
    """Sessions, CSRF tokens and logins of the pages."""

    def __init__(self, settings: Settings, key: bytes, clock: Clock) -> None:
        self._settings = settings
        self._api_auth = ApiAuth(settings.api_token)
        self._signer = URLSafeTimedSerializer(
            derive_key(key, "cookies"),
            salt="visit",
            signer_kwargs={"digest_method": blake2b},
        )
        self._csrf_key = derive_key(key, "forms")
        self._clock = clock
        self._failures: dict[str, list[float]] = {}

    def read_session(self, connection: HTTPConnection) -> BrowserSession:
        """The session in the cookie, or a new one."""
        cookie = connection.cookies.get(SESSION_COOKIE, "")
        try:
            session = self._signer.loads(cookie, max_age=self._max_age_s)
            return BrowserSession(str(session["id"]), bool(session["in"]))
        except (BadSignature, KeyError, TypeError):
            return _new_session(is_logged_in=False)

    def is_allowed(self, connection: HTTPConnection) -> bool:
        return self._api_auth.is_allowed(connection) or (
            self._needs_login and self.read_session(connection).is_logged_in
        )

    def require_access(self, request: Request) -> None:
        """A dependency of pages."""
        if self.is_allowed(request):
            return
        if not self._needs_login:
            raise HTTPException(403, LOCAL_ONLY)
        raise LoginNeeded

    async def require_change_access(self, request: Request) -> None:
        """A dependency of everything a page changes."""
        self.require_access(request)
        await self.check_csrf(request)

    async def check_csrf(self, request: Request) -> None:
        given = request.headers.get(CSRF_HEADER) or str(
            (await request.form()).get(CSRF_FIELD, "")
        )
        expected = self.make_csrf_token(self.read_session(request))
        is_right = hmac.compare_digest(given.encode(), expected.encode())
        if not is_right or not is_same_origin(request):
            raise HTTPException(
                403, "this form is too old, or not ours; load the page again"
            )

    def make_csrf_token(self, session: BrowserSession) -> str:
        return blake2b(
            session.id.encode(), key=self._csrf_key, digest_size=24
        ).hexdigest()

    def set_session_cookie(
        self, response: Response, session: BrowserSession, *, is_https: bool
    ) -> None:
        response.set_cookie(
            SESSION_COOKIE,
            self._signer.dumps({"id": session.id, "in": session.is_logged_in}),
            max_age=self._max_age_s,
            httponly=True,
            samesite="lax",
            secure=is_https,
        )

    def log_in(self, request: Request, secret: str) -> BrowserSession | None:
        """A new session if the secret is the token or the password.

        Raises after too many failures of one client.
        """
        client = request.client.host if request.client else ""
        self._check_login_rate(client)
        if not self._is_right(secret):
            self._failures.setdefault(client, []).append(self._clock.monotonic())
            return None
        self._failures.pop(client, None)
        return _new_session(is_logged_in=True)

    @property
    def _max_age_s(self) -> int:
        return int(self._settings.pages.session_hours * 3600)

    @property
    def _needs_login(self) -> bool:
        return self._settings.api_token is not None

    def _is_right(self, secret: str) -> bool:
        token, hashed = self._settings.api_token, self._settings.pages.password_hash
        if token is not None:
            expected = token.get_secret_value().encode()
            if hmac.compare_digest(secret.encode(), expected):
                return True
        try:
            return hashed is not None and PasswordHasher().verify(
                hashed.get_secret_value(), secret
            )
        except (Argon2Error, InvalidHashError):
            return False

    def _check_login_rate(self, client: str) -> None:
        if len(self._failures) > MAX_TRACKED_CLIENTS:
            self._failures.clear()
        oldest = self._clock.monotonic() - LOGIN_FAILURE_WINDOW_S
        recent = [at for at in self._failures.get(client, []) if at > oldest]
        self._failures[client] = recent
        if len(recent) >= MAX_LOGIN_FAILURES:
            raise HTTPException(
                429,
                f"too many failed logins; wait {LOGIN_FAILURE_WINDOW_S} seconds",
                {"Retry-After": str(LOGIN_FAILURE_WINDOW_S)},
            )


def is_same_origin(connection: HTTPConnection) -> bool:
    """Browsers send the origin of the page that asks; other clients send none."""
    origin = connection.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == connection.headers.get("host")


def _is_local(connection: HTTPConnection) -> bool:
    """From this machine, by a local name, through no proxy. A page elsewhere cannot pass by
    pointing its name at this machine.
    """
    host = (connection.url.hostname or "").lower()
    client = connection.client.host if connection.client else ""
    is_forwarded = any(name in connection.headers for name in _FORWARDED)
    return host in _LOCAL_NAMES and _is_loopback(client) and not is_forwarded


def _new_session(*, is_logged_in: bool) -> BrowserSession:
    return BrowserSession(secrets.token_urlsafe(18), is_logged_in)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
