"""Logins of browsers: guesses are slowed, the owner gets in, and every login ends."""

import asyncio
import threading
from collections.abc import Callable

import httpx2
import pytest
from argon2 import PasswordHasher
from fastapi.testclient import TestClient
from pydantic import SecretStr
from sqlalchemy import select

from aftercall.app import App
from aftercall.db.tables import browser_sessions
from aftercall.encryption import load_api_token
from aftercall.settings import Settings
from aftercall.settings.sections import PagesSettings
from aftercall.web import auth
from aftercall.web.auth import MAX_LOGIN_FAILURES, MAX_PASSWORD_FAILURES
from aftercall.web.server import make_server
from aftercall.web.users import SessionStore
from aftercall.web.uvicorn_server import make_uvicorn_server
from api_client import ADDRESS, csrf_of, log_in, make_stranger
from fakes import VirtualClock
from opened_apps import OpenApp

PASSWORD = "open sesame"
HASHED = PasswordHasher(1, 8, 1).hash(PASSWORD)
COOKIE = "aftercall_session"
Open = Callable[..., App]


@pytest.fixture
def open_home(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> Open:
    """An app on the test's home, with other settings if some are given."""

    def open_home(password: str = HASHED, **changed: object) -> App:
        pages = PagesSettings(password_hash=SecretStr(password))
        return open_app(settings.model_copy(update={"pages": pages} | changed), clock)

    return open_home


@pytest.fixture
def home(open_home: Open) -> App:
    return open_home()


def token_of(app: App) -> str:
    return load_api_token(app.settings).get_secret_value()


class CountingHasher:
    """Verifies like Argon2; counts how many it did, and how many at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self.most = 0
        self.total = 0

    def verify(self, hashed: str, secret: str) -> bool:
        with self._lock:
            self.total += 1
            self._running += 1
            self.most = max(self.most, self._running)
        try:
            return PasswordHasher().verify(hashed, secret)
        finally:
            with self._lock:
                self._running -= 1


@pytest.fixture
def hasher(monkeypatch: pytest.MonkeyPatch) -> CountingHasher:
    hasher = CountingHasher()
    monkeypatch.setattr(auth, "PasswordHasher", lambda: hasher)
    return hasher


async def guess(server: object, address: str, secret: str) -> int:
    transport = httpx2.ASGITransport(server, client=(address, 1))  # type: ignore[arg-type]
    async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as http:
        page = await http.get("/login")
        form = {"csrf": csrf_of(page.text), "secret": secret}
        return (await http.post("/login", data=form)).status_code


async def test_thirty_guesses_at_once_run_few_hashes_and_one_at_a_time(
    home: App, hasher: CountingHasher
) -> None:
    server = make_server(home)
    answers = await asyncio.gather(
        *(guess(server, "192.0.2.7", f"guess {number}") for number in range(30))
    )
    assert answers.count(401) == MAX_LOGIN_FAILURES
    assert answers.count(429) == 30 - MAX_LOGIN_FAILURES
    assert (hasher.total, hasher.most) == (MAX_LOGIN_FAILURES, 1)


async def test_guesses_from_everywhere_share_a_limit_that_does_not_bind_the_owner(
    home: App, hasher: CountingHasher
) -> None:
    server = make_server(home)
    known = TestClient(server, base_url=ADDRESS, follow_redirects=False)
    assert log_in(known, PASSWORD) == 303
    hasher.total = 0
    answers = [
        await guess(server, f"198.51.100.{number}", "guess") for number in range(60)
    ]
    assert answers.count(429) == 60 - MAX_PASSWORD_FAILURES
    assert hasher.total == MAX_PASSWORD_FAILURES
    assert await guess(server, "203.0.113.1", PASSWORD) == 429
    assert await guess(server, "203.0.113.2", token_of(home)) == 303
    assert log_in(known, PASSWORD) == 303
    code = SessionStore(home.database, home.settings, home.clock).make_link()
    stranger = make_stranger(home)
    assert stranger.get(f"/login?code={code}").status_code == 303


def test_neighbours_of_an_ipv6_address_are_one_client(home: App) -> None:
    server = make_server(home)
    answers = [
        log_in(
            TestClient(server, base_url=ADDRESS, client=(f"2001:db8::{number}", 1)),
            "guess",
        )
        for number in range(1, MAX_LOGIN_FAILURES + 2)
    ]
    assert answers == [401] * MAX_LOGIN_FAILURES + [429]


@pytest.mark.parametrize(("trusted", "last"), [((), 429), (("127.0.0.1",), 401)])
def test_a_forwarded_address_counts_only_from_a_trusted_proxy(
    home: App, trusted: tuple[str, ...], last: int
) -> None:
    config = make_uvicorn_server(make_server(home), trusted_proxies=trusted).config
    config.load()
    proxy = TestClient(config.loaded_app, base_url=ADDRESS, client=("127.0.0.1", 1))
    answers = [
        log_in(proxy, "guess", **{"X-Forwarded-For": f"198.51.100.{number}"})
        for number in range(MAX_LOGIN_FAILURES + 1)
    ]
    assert answers == [401] * MAX_LOGIN_FAILURES + [last]


@pytest.mark.parametrize(
    ("public_url", "is_secure"),
    [("https://calls.example", True), ("http://127.0.0.1:8080", False), (None, False)],
)
def test_cookies_are_secure_whenever_the_public_address_is(
    open_home: Open, public_url: str | None, is_secure: bool
) -> None:
    app = open_home(public_url=public_url)
    client = make_stranger(app)
    code = SessionStore(app.database, app.settings, app.clock).make_link()
    cookies = client.get(f"/login?code={code}").headers.get_list("set-cookie")
    assert len(cookies) == 2
    for cookie in cookies:
        assert ("Secure" in cookie) is is_secure
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie


def logged_in(app: App) -> TestClient:
    client = make_stranger(app)
    assert log_in(client, token_of(app)) == 303
    assert client.get("/").status_code == 200
    return client


def is_open(app: App, cookie: str) -> bool:
    """Whether a browser with this cookie sees the pages."""
    client = make_stranger(app)
    client.cookies.set(COOKIE, cookie)
    return client.get("/").status_code == 200


def test_a_logout_ends_the_session_not_only_its_cookie(home: App) -> None:
    client, other = logged_in(home), logged_in(home)
    cookie, others = client.cookies[COOKIE], other.cookies[COOKIE]
    token = csrf_of(client.get("/").text)
    assert client.post("/logout", data={"csrf": token}).status_code == 303
    assert not is_open(home, cookie)
    assert is_open(home, others)


def test_logging_out_everywhere_ends_all_sessions_and_links(home: App) -> None:
    client, other = logged_in(home), logged_in(home)
    code = SessionStore(home.database, home.settings, home.clock).make_link()
    token = csrf_of(client.get("/settings").text)
    assert client.post("/logout/everywhere", data={"csrf": token}).status_code == 303
    assert other.get("/").status_code == 303
    assert other.get(f"/login?code={code}").status_code == 401


def test_strangers_log_nobody_out(home: App) -> None:
    client, stranger = logged_in(home), make_stranger(home)
    token = csrf_of(stranger.get("/login").text)
    answer = stranger.post("/logout/everywhere", data={"csrf": token})
    assert answer.headers["location"].startswith("/login")
    assert client.post("/logout/everywhere").status_code == 403
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"api_token": SecretStr("another token, as long as one that is made")},
        {"password": PasswordHasher(1, 8, 1).hash("another")},
    ],
)
def test_changing_the_token_or_the_password_ends_every_login(
    home: App, open_home: Open, changed: dict[str, object]
) -> None:
    cookie = logged_in(home).cookies[COOKIE]
    code = SessionStore(home.database, home.settings, home.clock).make_link()
    after = open_home(**changed)
    assert not is_open(after, cookie)
    assert make_stranger(after).get(f"/login?code={code}").status_code == 401
    logged_in(after)
    assert not is_open(home, cookie)  # changed back: what has ended stays so


def test_a_login_ends_at_its_age_however_often_it_is_used(
    home: App, clock: VirtualClock
) -> None:
    client = logged_in(home)
    hours = home.settings.pages.session_hours
    clock.move(hours * 3600 - 1)
    assert client.get("/").status_code == 200
    clock.move(1)
    assert client.get("/").status_code == 303


def test_a_link_logs_in_once_and_not_for_long(home: App, clock: VirtualClock) -> None:
    sessions = SessionStore(home.database, home.settings, home.clock)
    code, late = sessions.make_link(), sessions.make_link()
    client = make_stranger(home)
    assert client.get(f"/login?code={code}&to=/calls").headers["location"] == "/calls"
    assert client.get("/").status_code == 200
    assert make_stranger(home).get(f"/login?code={code}").status_code == 401
    clock.move(15 * 60)
    answer = make_stranger(home).get(f"/login?code={late}")
    assert answer.status_code == 401
    assert "aftercall token --link" in answer.text


async def test_a_link_used_twice_at_once_logs_in_one_browser(home: App) -> None:
    sessions = SessionStore(home.database, home.settings, home.clock)
    code = sessions.make_link()
    used = await asyncio.gather(
        *(asyncio.to_thread(sessions.use_link, code) for _ in range(8))
    )
    assert len([session for session in used if session]) == 1


def test_the_database_holds_no_cookie_and_no_code(home: App) -> None:
    cookie = logged_in(home).cookies[COOKIE]
    code = SessionStore(home.database, home.settings, home.clock).make_link()
    with home.database.read() as connection:
        rows = connection.execute(select(browser_sessions)).all()
    assert {row.kind for row in rows} == {"session", "link"}
    assert cookie not in str(rows)
    assert code not in str(rows)
    assert not is_open(home, code)  # a link's code is no cookie
    assert make_stranger(home).get(f"/login?code={cookie}").status_code == 401


def test_sessions_that_have_ended_are_deleted(home: App, clock: VirtualClock) -> None:
    logged_in(home)
    clock.move(home.settings.pages.session_hours * 3600)
    logged_in(home)
    with home.database.read() as connection:
        assert len(connection.execute(select(browser_sessions)).all()) == 1
