"""Access to the API and the pages.

The API takes the bearer token. A browser logs in with the token, the password or a link that
works once; its cookie names a session in the database. Every change from a page carries a CSRF
token. `origin.py` refuses what other sites' pages send.
"""

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import blake2b

from anyio import CapacityLimiter, to_thread
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from fastapi import HTTPException, Request, Response
from itsdangerous import BadSignature, URLSafeTimedSerializer
from pydantic import SecretStr
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from aftercall.keys import MIN_UNGUESSABLE_CHARS, derive_key, load_api_token, load_key
from aftercall.settings import Settings
from aftercall.web.guess_limit import GuessLimit, get_client_key
from aftercall.web.session_store import SessionStore

SESSION_COOKIE = "aftercall_session"
BROWSER_COOKIE = "aftercall_browser"
BROWSER_COOKIE_AGE_S = 365 * 24 * 3600
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
MAX_LOGIN_FAILURES = 5  # of one client, in GUESS_WINDOW_S
MAX_PASSWORD_FAILURES = 30  # of all unknown clients together
_ALL_PASSWORDS = "passwords"
_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{32,64}")


class ApiAuth:
    """A FastAPI dependency that lets a request through or refuses it."""

    def __init__(self, token: SecretStr, guesses: GuessLimit) -> None:
        self._token = token.get_secret_value().encode()
        self._guesses = guesses

    async def __call__(self, request: Request) -> None:
        if not self.is_allowed(request):
            raise HTTPException(
                401,
                "a bearer token is needed: Authorization: Bearer …; `aftercall token` shows it",
                {"WWW-Authenticate": "Bearer"},
            )

    def is_allowed(self, connection: HTTPConnection) -> bool:
        """Raises after too many wrong tokens of one client."""
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        bearer = given.strip() if scheme.lower() == "bearer" else ""
        word = bearer or connection.headers.get("x-api-key", "")
        return bool(word) and self.accepts(word, f"token:{get_client_key(connection)}")

    def accepts(self, word: str, client: str) -> bool:
        """Counts a wrong guess. A token too long to guess is accepted whatever others at the
        same address guessed: they cannot lock its owner out.
        """
        is_right = hmac.compare_digest(word.encode(), self._token)
        if is_right and len(self._token) >= MIN_UNGUESSABLE_CHARS:
            return True
        self._guesses.count(client, MAX_LOGIN_FAILURES)
        if is_right:
            self._guesses.take_back(client)
        return is_right


@dataclass(frozen=True)
class BrowserSession:
    id: str
    is_logged_in: bool = False
    is_new: bool = False


class LoginNeeded(Exception):
    """The page needs a login; the server redirects to the login page."""


class BrowserAuth:
    """Sessions, CSRF tokens and logins of the pages."""

    def __init__(
        self, settings: Settings, sessions: SessionStore, guesses: GuessLimit
    ) -> None:
        key = load_key(settings)
        self.api = ApiAuth(load_api_token(settings), guesses)
        self.sessions = sessions
        self._password_hash = settings.pages.password_hash
        self._max_age_s = int(settings.pages.session_hours * 3600)
        self._is_public_https = (settings.public_url or "").startswith("https:")
        self._guesses = guesses
        self._csrf_key = derive_key(key, "forms")
        self._browsers = URLSafeTimedSerializer(
            derive_key(key, "cookies"),
            salt="browser",
            signer_kwargs={"digest_method": blake2b},
        )
        # A hash takes 64 MB or more: parallel logins wait for each other, without a thread.
        self._one_at_a_time = CapacityLimiter(1)

    async def load_session(self, connection: HTTPConnection) -> BrowserSession:
        """A dependency: the session of the cookie, or a new one."""
        found = getattr(connection.state, "session", None)
        if isinstance(found, BrowserSession):
            return found
        cookie = connection.cookies.get(SESSION_COOKIE, "")
        if _SESSION_ID.fullmatch(cookie):
            is_active = await run_in_threadpool(self.sessions.is_active, cookie)
            session = BrowserSession(cookie, is_logged_in=is_active)
        else:
            session = BrowserSession(secrets.token_urlsafe(32), is_new=True)
        connection.state.session = session
        return session

    async def is_allowed(self, connection: HTTPConnection) -> bool:
        session = await self.load_session(connection)
        return session.is_logged_in or self.api.is_allowed(connection)

    async def is_still_allowed(self, connection: HTTPConnection) -> bool:
        """For streams: a logout ends them, too."""
        connection.state.session = None
        return await self.is_allowed(connection)

    async def require_access(self, request: Request) -> None:
        """A dependency of pages."""
        if not await self.is_allowed(request):
            raise LoginNeeded

    async def require_change_access(self, request: Request) -> None:
        """A dependency of everything a page changes."""
        await self.require_access(request)
        await self.check_csrf(request)

    async def check_csrf(self, request: Request) -> None:
        given = request.headers.get(CSRF_HEADER) or str(
            (await request.form()).get(CSRF_FIELD, "")
        )
        expected = self.make_csrf_token(await self.load_session(request))
        if not hmac.compare_digest(given.encode(), expected.encode()):
            raise HTTPException(
                403, "this form is too old, or not ours; load the page again"
            )

    def make_csrf_token(self, session: BrowserSession) -> str:
        return blake2b(
            session.id.encode(), key=self._csrf_key, digest_size=24
        ).hexdigest()

    def set_session_cookie(
        self, request: Request, response: Response, session_id: str
    ) -> None:
        self._set_cookie(request, response, SESSION_COOKIE, session_id, self._max_age_s)

    def set_login_cookies(
        self, request: Request, response: Response, session_id: str
    ) -> None:
        """Besides the session, marks the browser as one that has logged in."""
        self.set_session_cookie(request, response, session_id)
        mark = self._browsers.dumps(secrets.token_urlsafe(9))
        self._set_cookie(
            request, response, BROWSER_COOKIE, str(mark), BROWSER_COOKIE_AGE_S
        )

    async def log_in(self, request: Request, secret: str) -> str | None:
        """Begins a session if the secret is the token or the password; returns its id.

        Guesses of others do not lock a browser out that has logged in before, nor the token:
        strangers share a limit for passwords only.
        """
        browser = self._find_browser(request)
        client = f"browser:{browser}" if browser else f"login:{get_client_key(request)}"
        if not self.api.accepts(secret, client) and not await self._is_password(
            secret, is_stranger=browser is None
        ):
            return None
        self._guesses.forget(client)
        return await run_in_threadpool(self.sessions.start)

    async def _is_password(self, secret: str, *, is_stranger: bool) -> bool:
        if self._password_hash is None:
            return False
        if is_stranger:
            self._guesses.count(_ALL_PASSWORDS, MAX_PASSWORD_FAILURES)
        is_right = await to_thread.run_sync(
            _verify,
            self._password_hash.get_secret_value(),
            secret,
            limiter=self._one_at_a_time,
        )
        if is_right and is_stranger:
            self._guesses.take_back(_ALL_PASSWORDS)
        return is_right

    def _find_browser(self, request: Request) -> str | None:
        """The mark of a browser that has logged in before."""
        cookie = request.cookies.get(BROWSER_COOKIE, "")
        try:
            return str(self._browsers.loads(cookie, max_age=BROWSER_COOKIE_AGE_S))
        except BadSignature:
            return None

    def _set_cookie(
        self, request: Request, response: Response, name: str, value: str, age_s: int
    ) -> None:
        response.set_cookie(
            name,
            value,
            max_age=age_s,
            httponly=True,
            samesite="lax",
            secure=self._is_public_https or request.url.scheme == "https",
        )


def get_session(request: Request) -> BrowserSession:
    """The session that `load_session` found for this request."""
    session = request.state.session
    assert isinstance(session, BrowserSession)  # noqa: S101 - a dependency of every page
    return session


def _verify(hashed: str, secret: str) -> bool:
    try:
        return PasswordHasher().verify(hashed, secret)
    except (Argon2Error, InvalidHashError):
        return False
