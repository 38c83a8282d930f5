"""Access to the API and the pages.

The API takes the bearer token. A browser logs in with the token, the password or a link that
works once; its cookie names a session in the database. Every change from a page carries a CSRF
token. `limits.py` refuses what other sites' pages send.
"""

import hmac
import ipaddress
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Annotated

from anyio import CapacityLimiter, to_thread
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from fastapi import Depends, HTTPException, Request, Response
from itsdangerous import BadSignature, URLSafeTimedSerializer
from pydantic import SecretStr
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from aftercall.clock import Clock
from aftercall.encryption import (
    MIN_UNGUESSABLE_CHARS,
    derive_key,
    load_api_token,
    load_key,
)
from aftercall.settings import Settings
from aftercall.web.users import (
    API,
    Login,
    Role,
    SessionStore,
    UserStore,
    is_enough,
)

GUESS_WINDOW_S = 60
MAX_TRACKED_KEYS = 10_000
IPV6_HOME_BITS = 64  # a home or a machine has so long a prefix to itself


class GuessLimit:
    """Counts guesses by a key, such as an address, within a window of time.

    A guess is counted before it is looked at, so that guesses in parallel count, too.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._times: OrderedDict[str, list[float]] = OrderedDict()

    def count(self, key: str, most: int) -> None:
        """Counts a guess; refuses it if there were `most` within the window."""
        now = self._clock.monotonic()
        with self._lock:
            oldest = now - GUESS_WINDOW_S
            recent = [at for at in self._times.pop(key, []) if at > oldest]
            is_refused = len(recent) >= most
            self._times[key] = recent if is_refused else [*recent, now]
            if len(self._times) > MAX_TRACKED_KEYS:
                self._times.popitem(last=False)
        if is_refused:
            raise HTTPException(
                429,
                f"too many wrong tokens or passwords; wait {GUESS_WINDOW_S} seconds",
                {"Retry-After": str(GUESS_WINDOW_S)},
            )

    def take_back(self, key: str) -> None:
        """The last guess was right and does not count."""
        with self._lock:
            if times := self._times.get(key):
                times.pop()

    def forget(self, key: str) -> None:
        with self._lock:
            self._times.pop(key, None)


def get_client_key(connection: HTTPConnection) -> str:
    """The address of the client. uvicorn takes it from `X-Forwarded-For` if a trusted proxy
    sent that.
    """
    host = connection.client.host if connection.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    home = ipaddress.IPv6Network((address.packed, IPV6_HOME_BITS), strict=False)
    return str(home)


SESSION_COOKIE = "aftercall_session"
BROWSER_COOKIE = "aftercall_browser"
BROWSER_COOKIE_AGE_S = 365 * 24 * 3600
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
MAX_LOGIN_FAILURES = 5  # of one client, in GUESS_WINDOW_S
MAX_PASSWORD_FAILURES = 30  # of all unknown clients together
_ALL_PASSWORDS = "passwords"
# Of no user: an unknown name takes as long to refuse as a wrong password.
_UNUSED_HASH = (
    "$argon2id$v=19$m=65536,t=3,p=4$J9buDWUyTmhgMwwouKQBgA"
    "$1a71Q6Doh7PFKv2Q9HSsiUQPv+zjXm37coTdAyLF8d0"
)
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
    """A login of a browser, with the token that its forms carry."""

    id: str
    login: Login | None = None
    is_new: bool = False


class LoginNeeded(Exception):
    """The page needs a login; the server redirects to the login page."""


class RoleCheck:
    """A dependency that lets a request through or refuses it.

    A stranger is led to the login. Somebody with a lower role is refused. A change also needs
    the CSRF token of the session.

    The role is an attribute, so that a test can walk all routes and compare what each asks for
    with what it should.
    """

    def __init__(self, auth: "BrowserAuth", role: Role) -> None:
        self.role = role
        self._auth = auth

    async def __call__(self, request: Request) -> None:
        login = await self._auth.find_login(request)
        if login is None:
            raise LoginNeeded
        if not is_enough(login.role, self.role):
            raise HTTPException(
                403, f"this needs the role {self.role}; you are {login.role}"
            )
        request.state.login = login
        if request.method not in ("GET", "HEAD"):
            await self._auth.check_csrf(request)


class BrowserAuth:
    """Sessions, CSRF tokens and logins of the pages."""

    def __init__(
        self,
        settings: Settings,
        sessions: SessionStore,
        users: UserStore,
        guesses: GuessLimit,
    ) -> None:
        key = load_key(settings)
        self.api = ApiAuth(load_api_token(settings), guesses)
        self.sessions = sessions
        self.users = users
        self._password_hash = settings.pages.password_hash
        self._max_age_s = int(settings.pages.session_hours * 3600)
        self.is_public_https = (settings.public_url or "").startswith("https:")
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
            login = await run_in_threadpool(self.sessions.find_login, cookie)
            session = BrowserSession(cookie, login)
        else:
            session = BrowserSession(secrets.token_urlsafe(32), is_new=True)
        connection.state.session = session
        return session

    async def find_login(self, connection: HTTPConnection) -> Login | None:
        """Who asks, by the cookie or the token; None is a stranger."""
        session = await self.load_session(connection)
        if session.login:
            return session.login
        return Login(API) if self.api.is_allowed(connection) else None

    async def is_allowed(
        self, connection: HTTPConnection, role: Role = "viewer"
    ) -> bool:
        login = await self.find_login(connection)
        return login is not None and is_enough(login.role, role)

    async def is_still_allowed(self, connection: HTTPConnection) -> bool:
        """For streams: a logout ends them, too."""
        connection.state.session = None
        return await self.is_allowed(connection)

    def require(self, role: Role) -> "RoleCheck":
        """A dependency of every route of the pages: the role that it needs."""
        return RoleCheck(self, role)

    async def check_csrf(self, request: Request) -> None:
        """Refuses a form that another page could have sent."""
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

    async def log_in(self, request: Request, secret: str, name: str = "") -> str | None:
        """Begins a session if the secret is right; returns its id. Without a name, it is the
        owner's token or password.

        Guesses of others do not lock a browser out that has logged in before, nor the token:
        strangers share a limit for passwords only.
        """
        browser = self._find_browser(request)
        client = f"browser:{browser}" if browser else f"login:{get_client_key(request)}"
        user_id: str | None = None
        if name.strip():
            self._guesses.count(client, MAX_LOGIN_FAILURES)
            found = await run_in_threadpool(self.users.find_password_hash, name)
            user_id, hashed = found or (None, _UNUSED_HASH)
            is_right = await self._is_password(hashed, secret, browser)
            is_right = is_right and user_id is not None
        else:
            password = self._password_hash
            is_right = self.api.accepts(secret, client) or (
                password is not None
                and await self._is_password(
                    password.get_secret_value(), secret, browser
                )
            )
        if not is_right:
            return None
        self._guesses.forget(client)
        return await run_in_threadpool(self.sessions.start, user_id)

    async def _is_password(self, hashed: str, secret: str, browser: str | None) -> bool:
        """Slow on purpose, so it runs in a thread."""
        is_stranger = browser is None
        if is_stranger:
            self._guesses.count(_ALL_PASSWORDS, MAX_PASSWORD_FAILURES)
        is_right = await to_thread.run_sync(
            _verify, hashed, secret, limiter=self._one_at_a_time
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
        """For this site only, out of reach of scripts."""
        response.set_cookie(
            name,
            value,
            max_age=age_s,
            httponly=True,
            samesite="lax",
            secure=self.is_public_https or request.url.scheme == "https",
        )


def get_session(request: Request) -> BrowserSession:
    """The session that `load_session` found for this request."""
    session = request.state.session
    assert isinstance(session, BrowserSession)  # noqa: S101 - a dependency of every page
    return session


def get_who(request: Request) -> str:
    """Who asks, as the audit log names them."""
    login = request.state.login
    assert isinstance(login, Login)  # noqa: S101 - RoleCheck is a dependency of every page
    return login.name


Who = Annotated[str, Depends(get_who)]


def _verify(hashed: str, secret: str) -> bool:
    try:
        return PasswordHasher().verify(hashed, secret)
    except (Argon2Error, InvalidHashError):
        return False


async def may_open(auth: BrowserAuth, socket: HTTPConnection) -> bool:
    """Whether somebody may speak or listen over a socket: an operator."""
    try:
        return await auth.is_allowed(socket, "operator")
    except HTTPException:  # too many wrong tokens; a socket has no status code
        return False
