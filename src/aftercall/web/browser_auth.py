"""Who is let in to the pages, and what they may change.

The API takes the bearer token. A browser logs in with the token or the password and then
carries a signed cookie; without a token configured, this machine is let in without a login.
Every change carries a token that only our own pages know, and must come from our own origin.
"""

import hmac
import secrets
from dataclasses import dataclass, replace
from hashlib import blake2b

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from fastapi import HTTPException, Request, Response
from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import HTTPConnection

from aftercall.clock import Clock
from aftercall.keys import derive_key
from aftercall.settings import Settings
from aftercall.web.auth import ApiAuth, is_same_origin

SESSION_COOKIE = "aftercall_session"
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
MAX_LOGIN_FAILURES = 5
LOGIN_FAILURE_WINDOW_S = 60.0
MAX_TRACKED_CLIENTS = 10_000


@dataclass(frozen=True)
class BrowserSession:
    """One browser: who it is to us, and whether it has logged in."""

    id: str
    is_logged_in: bool = False


class LoginNeeded(Exception):
    """A page was asked for by somebody who has to log in first; the server sends them to the
    login page.
    """


class BrowserAuth:
    def __init__(self, settings: Settings, key: bytes, clock: Clock) -> None:
        self._settings = settings
        self._api_auth = ApiAuth(settings.api_token)
        self._signer = URLSafeTimedSerializer(
            derive_key(key, "cookies"), salt="visit", signer_kwargs={"digest_method": blake2b}
        )
        self._forms = derive_key(key, "forms")
        self._clock = clock
        self._failures: dict[str, list[float]] = {}

    def read_session(self, connection: HTTPConnection) -> BrowserSession:
        """The visit that the cookie tells of, or a new one."""
        try:
            told = self._signer.loads(
                connection.cookies.get(SESSION_COOKIE, ""), max_age=self._age_s
            )
            return BrowserSession(str(told["id"]), bool(told["in"]))
        except (BadSignature, KeyError, TypeError):
            return BrowserSession(secrets.token_urlsafe(18))

    def is_allowed(self, connection: HTTPConnection) -> bool:
        return self._api_auth.is_allowed(connection) or (
            self._needs_login and self.read_session(connection).is_logged_in
        )

    def require_access(self, request: Request) -> None:
        """A dependency of pages."""
        if self.is_allowed(request):
            return
        if not self._needs_login:
            raise HTTPException(403, "without AFTERCALL_API_TOKEN only this machine is served")
        raise LoginNeeded

    async def require_change_access(self, request: Request) -> None:
        """A dependency of everything a page changes: let in, from our own page."""
        self.require_access(request)
        await self.check_csrf(request)

    async def check_csrf(self, request: Request) -> None:
        given = request.headers.get(CSRF_HEADER) or str((await request.form()).get(CSRF_FIELD, ""))
        expected = self.make_csrf_token(self.read_session(request))
        if not hmac.compare_digest(given.encode(), expected.encode()) or not is_same_origin(
            request
        ):
            raise HTTPException(403, "this form is too old, or not ours; load the page again")

    def make_csrf_token(self, session: BrowserSession) -> str:
        return blake2b(session.id.encode(), key=self._forms, digest_size=24).hexdigest()

    def set_session_cookie(
        self, response: Response, session: BrowserSession, *, is_https: bool
    ) -> None:
        told = self._signer.dumps({"id": session.id, "in": session.is_logged_in})
        response.set_cookie(
            SESSION_COOKIE,
            told,
            max_age=self._age_s,
            httponly=True,
            samesite="lax",
            secure=is_https,
        )

    def log_in(self, request: Request, secret: str) -> BrowserSession | None:
        """A fresh visit if the secret is the token or the password.

        Raises when too many were wrong.
        """
        who = request.client.host if request.client else ""
        self._check_login_rate(who)
        if not self._is_right(secret):
            self._failures.setdefault(who, []).append(self._clock.monotonic())
            return None
        self._failures.pop(who, None)
        return replace(BrowserSession(secrets.token_urlsafe(18)), is_logged_in=True)

    @property
    def _age_s(self) -> int:
        return int(self._settings.pages.session_hours * 3600)

    @property
    def _needs_login(self) -> bool:
        return self._settings.api_token is not None

    def _is_right(self, secret: str) -> bool:
        token, hashed = self._settings.api_token, self._settings.pages.password_hash
        if token is not None and hmac.compare_digest(
            secret.encode(), token.get_secret_value().encode()
        ):
            return True
        try:
            return hashed is not None and PasswordHasher().verify(hashed.get_secret_value(), secret)
        except (Argon2Error, InvalidHashError):
            return False

    def _check_login_rate(self, who: str) -> None:
        now = self._clock.monotonic()
        if len(self._failures) > MAX_TRACKED_CLIENTS:
            self._failures.clear()
        recent = self._failures[who] = [
            at for at in self._failures.get(who, []) if now - at < LOGIN_FAILURE_WINDOW_S
        ]
        if len(recent) >= MAX_LOGIN_FAILURES:
            raise HTTPException(
                429,
                f"too many wrong tries; wait {LOGIN_FAILURE_WINDOW_S:.0f} seconds",
                {"Retry-After": f"{LOGIN_FAILURE_WINDOW_S:.0f}"},
            )
