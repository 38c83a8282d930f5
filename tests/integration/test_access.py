"""Who may call the API: each attack of a review on a running server, refused."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercall.app import App
from aftercall.model.calls import encode_call
from aftercall.settings import Settings
from aftercall.settings.sections import CallsSettings, WorkSettings
from aftercall.web import auth
from aftercall.web.pages import today
from aftercall.web.server import make_server
from api_client import (
    ADDRESS,
    JSON,
    bearer,
    csrf_of,
    log_in,
    make_client,
    make_stranger,
)
from fakes import VirtualClock, make_call
from followup_work import follow
from opened_apps import OpenApp

OWNER = "+15550100"
SIGNED = ("/twilio/", "/telnyx/", "/hosted/")
PROBES = ("/healthz", "/readyz", "/metrics", "/login", "/openapi.json", "/static")
JSON_ROUTES = [
    ("POST", "/api/calls"),
    ("POST", "/v1/documents"),
    ("POST", "/v1/documents/ingest"),
    ("POST", "/v1/query"),
    ("PUT", "/v1/documents/x"),
]
OTHER_KINDS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "http://127.0.0.1:3000"},
    {"Origin": "http://evil.example:8080"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "iframe",
    },
]


def list_requests(routes: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Method and path of everything unsigned that the server answers over HTTP."""
    for route in routes:
        path = str(getattr(route, "path", ""))
        for method in getattr(route, "methods", None) or ():
            if not path.startswith(SIGNED) and method != "HEAD":
                yield method, path


@pytest.mark.parametrize("name", ["Origin", "Sec-Fetch-Site"])
def test_a_second_header_does_not_hide_behind_our_own(app: App, name: str) -> None:
    client = make_client(app)
    own = {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}[name]
    foreign = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}[name]
    headers = [("Host", "127.0.0.1:8080"), (name, own)]
    assert client.get("/api/calls", headers=headers).status_code == 200
    both = [*headers, (name, foreign)]
    assert client.get("/api/calls", headers=both).status_code == 403


def test_a_foreign_page_reaches_no_route_even_with_the_token(app: App) -> None:
    client = make_client(app, follow_redirects=False)
    requests = list(list_requests(make_server(app).routes))
    assert len(requests) > 40
    reached = [
        (method, path, headers)
        for headers in FOREIGN
        for method, path in requests
        if client.request(method, path, headers=headers).status_code != 403
    ]
    assert reached == []


def test_nothing_is_served_to_this_machine_or_another_without_the_token(
    app: App,
) -> None:
    requests = [
        (method, path)
        for method, path in list_requests(make_server(app).routes)
        if not path.startswith((*PROBES, "/docs/oauth2", "/logout", "/join"))
    ]
    assert len(requests) > 35
    for address, base in (
        ("192.0.2.7", ADDRESS),
        ("127.0.0.1", ADDRESS),
        ("127.0.0.1", "http://testserver"),
        ("testclient", "http://localhost:8080"),
    ):
        client = make_stranger(app, address, base)
        answers = {
            (method, path): client.request(method, path, json={}).status_code
            for method, path in requests
        }
        assert {
            asked: status
            for asked, status in answers.items()
            if status not in (401, 303)
        } == {}


def test_json_routes_take_json_only(app: App) -> None:
    client = make_client(app)
    body = b'{"content": "x", "query": "x"}'
    for method, path in JSON_ROUTES:
        statuses = {
            kind: client.request(
                method, path, content=body, headers={"Content-Type": kind}
            ).status_code
            for kind in OTHER_KINDS
        }
        assert statuses == dict.fromkeys(OTHER_KINDS, 415), path
        assert client.request(method, path, content=body).status_code == 415
        typed = {"Content-Type": "application/json; charset=utf-8"}
        answer = client.request(method, path, content=body, headers=typed)
        assert answer.status_code != 415


def test_a_link_on_another_site_leads_to_a_page(app: App) -> None:
    followed = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    client = make_client(app)
    assert client.get("/calls", headers=followed).status_code == 200
    assert client.post("/login", headers=followed).status_code == 403


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("calls.example", "https://calls.example", 303),
        ("127.0.0.1:8080", "https://calls.example", 303),  # nginx's default
        ("127.0.0.1:8080", "https://127.0.0.1:8080", 303),
        ("127.0.0.1:8080", "http://calls.example", 403),
        ("127.0.0.1:8080", "https://calls.example:8443", 403),
    ],
)
def test_our_own_pages_work_behind_a_proxy(
    settings: Settings, open_app: OpenApp, host: str, origin: str, status: int
) -> None:
    app = open_app(settings.model_copy(update={"public_url": "https://calls.example"}))
    client = make_stranger(app, base_url=f"https://{host}")
    token = bearer(app.settings)["Authorization"].removeprefix("Bearer ")
    assert log_in(client, token, Origin=origin) == status


def posted(**fields: Any) -> bytes:
    call = make_call(
        [
            ("agent", "Hello! What is the passcode?"),
            ("caller", "Please open a bug about the broken thumbnails."),
        ],
        **fields,
    )
    data = json.loads(encode_call(call))
    at = data["started_at"]
    events = [
        {"kind": "passcode.right", "at": at},
        {"kind": "mark", "at": at},
    ]
    return json.dumps(data | {"events": events}).encode()


@pytest.mark.parametrize("is_believed", [False, True])
def test_who_posts_a_call_verifies_nobody_unless_a_setting_says_so(
    settings: Settings, clock: VirtualClock, open_app: OpenApp, is_believed: bool
) -> None:
    work = WorkSettings(policy={"known": "hold", "verified": "do"})
    app = open_app(
        settings.model_copy(
            update={
                "owner": OWNER,
                "work": work,
                "calls": CallsSettings(believe_posted=is_believed),
            }
        ),
        clock,
    )
    client = make_client(app)
    body = posted(caller=OWNER, verified=True)
    call_id = client.post("/api/calls", content=body, headers=JSON).json()["id"]
    row = app.store.get(call_id)
    call, _ = app.archive.read(str(row.archive_name))
    (request,) = [
        found
        for found in follow(app.work, row.live.conversation)
        if found.kind == "request"
    ]
    assert (row.live.verified, call.verified) == (is_believed, is_believed)
    assert [(event.seq, event.kind) for event in call.events] == (
        [(1, "passcode.right"), (2, "mark")] if is_believed else [(1, "mark")]
    )
    assert (request.trust, request.state) == (
        ("verified", "done") if is_believed else ("known", "held")
    )


def test_a_passcode_among_posted_words_verifies_nobody(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    work = WorkSettings(
        policy={"unknown": "hold", "known": "hold", "verified": "do"},
        passcode=SecretStr("tulip 7731"),
    )
    app = open_app(settings.model_copy(update={"work": work}), clock)
    call = make_call(
        [
            ("agent", "Hello! What is the passcode?"),
            ("caller", "Tulip 7731. Please open a bug about the thumbnails."),
        ]
    )
    client = make_client(app)
    client.post("/api/calls", content=encode_call(call), headers=JSON)
    row = app.store.find(call.source, call.sid)
    assert row is not None
    (request,) = follow(app.work, row.live.conversation)
    assert (request.trust, request.state) == ("unknown", "held")


def test_a_withheld_caller_is_not_the_owner_because_an_event_says_so(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    work = WorkSettings(passcode=SecretStr("open sesame"))
    app = open_app(settings.model_copy(update={"owner": OWNER, "work": work}), clock)
    body = posted(caller=None)
    client = make_client(app)
    call_id = client.post("/api/calls", content=body, headers=JSON).json()["id"]
    app.step_runner.run(call_id, "summary")
    assert app.store.get(call_id).party is None


async def test_a_stream_ends_with_the_login_that_opened_it(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(today, "KEEP_ALIVE_S", 0.05)
    server = make_server(app)
    token = bearer(app.settings)["Authorization"].removeprefix("Bearer ")
    async with (
        asyncio.timeout(30),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(server), base_url=ADDRESS
        ) as browser,
    ):
        page = await browser.get("/login")
        form = {"csrf": csrf_of(page.text), "secret": token}
        assert (await browser.post("/login", data=form)).status_code == 303
        stream = asyncio.create_task(browser.get("/live"))
        while server.state.feed.is_idle:
            await asyncio.sleep(0.01)
        page = await browser.get("/settings")
        out = {"csrf": csrf_of(page.text)}
        assert (await browser.post("/logout/everywhere", data=out)).status_code == 303
        assert (await stream).status_code == 200


def test_guesses_of_the_token_are_slowed_and_its_owner_is_not_locked_out(
    app: App, clock: VirtualClock
) -> None:
    stranger = make_stranger(app)
    guess = {"Authorization": "Bearer guess"}
    answers = [
        stranger.get("/api/calls", headers=guess).status_code
        for _ in range(auth.MAX_LOGIN_FAILURES + 1)
    ]
    assert answers == [401] * auth.MAX_LOGIN_FAILURES + [429]
    assert stranger.get("/", headers=guess).status_code == 429
    own = bearer(app.settings)
    assert stranger.get("/api/calls", headers=own).status_code == 200
    clock.move(61)
    assert stranger.get("/api/calls", headers=guess).status_code == 401


def test_a_token_that_could_be_guessed_is_refused_after_too_many_guesses(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    app = open_app(settings.model_copy(update={"api_token": SecretStr("short")}), clock)
    stranger = make_stranger(app)
    for number in range(auth.MAX_LOGIN_FAILURES):
        guess = {"X-API-Key": f"guess {number}"}
        assert stranger.get("/api/calls", headers=guess).status_code == 401
    own = bearer(app.settings)
    assert stranger.get("/api/calls", headers=own).status_code == 429
    clock.move(61)
    assert stranger.get("/api/calls", headers=own).status_code == 200


def test_a_client_that_forgot_its_token_does_not_lock_others_out(app: App) -> None:
    stranger: TestClient = make_stranger(app)
    for _ in range(20):
        assert stranger.get("/api/calls").status_code == 401
