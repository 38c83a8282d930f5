"""Who is let in to the pages, and what they may change.

The API takes the bearer token. A browser logs in with the token or the password and then carries a signed cookie; without
a token configured, this machine is let in without a login. Every change carries a token that only our own pages know, and
must come from our own origin.
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
from aftercall.keys import derive
from aftercall.settings import Settings
from aftercall.web.auth import Guard, is_same_origin

COOKIE = "aftercall_session"
FIELD = "csrf"
HEADER = "x-csrf-token"
TRIES = 5
PAUSE_S = 60.0
MOST_VISITORS = 10_000


@dataclass(frozen=True)
class Visit:
    """One browser: who it is to us, and whether it has logged in."""

    id: str
    is_logged_in: bool = False


class LoginNeeded(Exception):
    """A page was asked for by somebody who has to log in first; the server sends them to the login page."""


class Door:
    def __init__(self, settings: Settings, key: bytes, clock: Clock) -> None:
        self._settings = settings
        self._guard = Guard(settings.api_token)
        self._signer = URLSafeTimedSerializer(derive(key, "cookies"), salt="visit", signer_kwargs={"digest_method": blake2b})
        self._forms = derive(key, "forms")
        self._clock = clock
        self._failures: dict[str, list[float]] = {}

    def visit(self, connection: HTTPConnection) -> Visit:
        """The visit that the cookie tells of, or a new one."""
        try:
            told = self._signer.loads(connection.cookies.get(COOKIE, ""), max_age=self._age_s)
            return Visit(str(told["id"]), bool(told["in"]))
        except (BadSignature, KeyError, TypeError):
            return Visit(secrets.token_urlsafe(18))

    def lets_in(self, connection: HTTPConnection) -> bool:
        return self._guard.allows(connection) or (self._needs_login and self.visit(connection).is_logged_in)

    def admit(self, request: Request) -> None:
        """A dependency of pages."""
        if self.lets_in(request):
            return
        if not self._needs_login:
            raise HTTPException(403, "without AFTERCALL_API_TOKEN only this machine is served")
        raise LoginNeeded

    async def admit_change(self, request: Request) -> None:
        """A dependency of everything a page changes: let in, from our own page."""
        self.admit(request)
        await self.check_form(request)

    async def check_form(self, request: Request) -> None:
        given = request.headers.get(HEADER) or str((await request.form()).get(FIELD, ""))
        expected = self.form_token(self.visit(request))
        if not hmac.compare_digest(given.encode(), expected.encode()) or not is_same_origin(request):
            raise HTTPException(403, "this form is too old, or not ours; load the page again")

    def form_token(self, visit: Visit) -> str:
        return blake2b(visit.id.encode(), key=self._forms, digest_size=24).hexdigest()

    def remember(self, response: Response, visit: Visit, *, is_https: bool) -> None:
        told = self._signer.dumps({"id": visit.id, "in": visit.is_logged_in})
        response.set_cookie(COOKIE, told, max_age=self._age_s, httponly=True, samesite="lax", secure=is_https)

    def log_in(self, request: Request, secret: str) -> Visit | None:
        """A fresh visit if the secret is the token or the password. Raises when too many were wrong."""
        who = request.client.host if request.client else ""
        self._slow_down(who)
        if not self._is_right(secret):
            self._failures.setdefault(who, []).append(self._clock.monotonic())
            return None
        self._failures.pop(who, None)
        return replace(Visit(secrets.token_urlsafe(18)), is_logged_in=True)

    @property
    def _age_s(self) -> int:
        return int(self._settings.pages.session_hours * 3600)

    @property
    def _needs_login(self) -> bool:
        return self._settings.api_token is not None

    def _is_right(self, secret: str) -> bool:
        token, hashed = self._settings.api_token, self._settings.pages.password_hash
        if token is not None and hmac.compare_digest(secret.encode(), token.get_secret_value().encode()):
            return True
        try:
            return hashed is not None and PasswordHasher().verify(hashed.get_secret_value(), secret)
        except (Argon2Error, InvalidHashError):
            return False

    def _slow_down(self, who: str) -> None:
        now = self._clock.monotonic()
        if len(self._failures) > MOST_VISITORS:
            self._failures.clear()
        recent = self._failures[who] = [at for at in self._failures.get(who, []) if now - at < PAUSE_S]
        if len(recent) >= TRIES:
            raise HTTPException(429, f"too many wrong tries; wait {PAUSE_S:.0f} seconds", {"Retry-After": f"{PAUSE_S:.0f}"})
