"""The edge of a request: what is logged, which headers every answer has, what stays private."""

import asyncio

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from aftercall.app import App
from aftercall.errors import RefusedInput
from aftercall.journal.store import CallStore
from aftercall.log import configure_logs
from aftercall.settings import Settings
from aftercall.settings.sections import WebSettings
from aftercall.web.server import make_server
from fakes import VirtualClock
from opened_apps import OpenApp

CALLER, CANARY, TOKEN = "+15550142", "canary", "edge-token"
OWNER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(autouse=True)
def logs_at_info() -> None:
    """Another test of this process may have set a higher level."""
    configure_logs()


@pytest.fixture
def public(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> App:
    """An app that others reach by https."""
    update = {"api_token": SecretStr(TOKEN), "public_url": "https://calls.example"}
    return open_app(settings.model_copy(update=update), clock)


@pytest.fixture
def client(public: App) -> TestClient:
    return TestClient(make_server(public), base_url="https://calls.example")


def test_an_error_is_one_line_without_its_text(
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"{CANARY} {CALLER}")

    monkeypatch.setattr(CallStore, "list_page", fail)
    answer = client.get("/api/calls", headers=OWNER)
    shown = "".join(capfd.readouterr())
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "unexpected")
    (line,) = [line for line in shown.splitlines() if "request failed" in line]
    assert "RuntimeError" in line
    assert "route=/api/calls" in line
    assert not any(
        word in shown + answer.text for word in (CANARY, CALLER, "Traceback")
    )


def test_logs_name_the_route_and_never_the_path(
    client: TestClient, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in (f"/api/calls/{CALLER}", f"/api/facts/{CALLER}", f"/{CALLER}/{CALLER}"):
        assert client.get(path, headers=OWNER).status_code == 404
    shown = "".join(capfd.readouterr())
    assert "route=/api/calls/{call_id}" in shown
    assert "route=/api/facts/{fact_id}" in shown
    assert "route=none" in shown
    assert CALLER not in shown


def test_an_error_of_the_database_does_not_show_what_was_stored(app: App) -> None:
    statement = text("INSERT INTO calls (id) VALUES (:id)")
    with pytest.raises(DBAPIError) as caught, app.database.write() as connection:
        connection.execute(statement, {"id": CANARY})
    shown = str(caught.value)
    assert "hide_parameters" in shown
    assert f"'{CANARY}'" not in shown.partition("[SQL:")[2]


def test_what_a_database_cannot_hold_is_refused_and_no_fault(app: App) -> None:
    statement = text("SELECT id FROM calls WHERE id = :id")
    with pytest.raises(RefusedInput), app.database.read() as connection:
        connection.execute(statement, {"id": "half \ud83d"})
    if app.database.dialect != "sqlite":  # which can hold it
        with pytest.raises(RefusedInput), app.database.read() as connection:
            connection.execute(statement, {"id": "nul \0"})


def test_every_answer_says_that_it_is_private(client: TestClient) -> None:
    answers = [
        client.get("/api/calls", headers=OWNER),
        client.get("/api/calls"),
        client.get("/login"),
        client.get("/nowhere"),
        client.post("/login", content=b"x" * 20_000),
        client.get("/healthz"),
    ]
    assert [answer.status_code for answer in answers] == [200, 401, 200, 404, 413, 200]
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["strict-transport-security"].startswith("max-age=")
    script = client.get("/static/aftercall.js").headers
    assert "no-store" not in script.get("cache-control", "")
    assert script["x-content-type-options"] == "nosniff"


def test_a_server_without_https_does_not_promise_it(app: App) -> None:
    answer = TestClient(make_server(app)).get("/healthz")
    assert "strict-transport-security" not in answer.headers


@pytest.mark.parametrize("path", ["/metrics", "/openapi.json"])
def test_figures_and_schema_need_the_token_unless_they_are_opened(
    public: App, open_app: OpenApp, path: str
) -> None:
    client = TestClient(make_server(public))
    assert client.get(path).status_code == 401
    assert client.get(path, headers=OWNER).status_code == 200
    opened = public.settings.model_copy(
        update={"web": WebSettings.model_validate({"open": path})}
    )
    client = TestClient(make_server(open_app(opened, public.clock)))
    assert client.get(path).status_code == 200


def test_a_refusal_names_the_field_and_does_not_repeat_what_was_sent(
    client: TestClient,
) -> None:
    cases = [
        client.post(
            "/api/pins", json={"caller": CALLER, "tpic": CANARY}, headers=OWNER
        ),
        client.get(f"/api/calls?limit={CANARY}", headers=OWNER),
        client.get(f"/api/facts?category={CANARY}", headers=OWNER),
    ]
    for answer, field in zip(cases, ("topic", "limit", "category"), strict=True):
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == field
        assert CANARY not in answer.text


@pytest.mark.parametrize(
    "metadata",
    ['{"a": NaN}', '{"a": 1e999}', '{"a": ' + "[" * 90 + "]" * 90 + "}"],
    ids=["not a number", "infinite", "deep"],
)
def test_metadata_that_could_not_be_shown_again_is_refused(
    client: TestClient, metadata: str
) -> None:
    body = '{"title": "t", "content": "words", "metadata": ' + metadata + "}"
    headers = OWNER | {"content-type": "application/json"}
    answer = client.post("/v1/documents", content=body, headers=headers)
    assert answer.status_code == 422
    found = client.post("/v1/query", json={"query": "words"}, headers=OWNER)
    assert found.json()["results"] == []


def test_half_an_emoji_in_a_document_is_replaced(client: TestClient) -> None:
    body = r'{"title": "a\u0000b", "content": "Hi \ud83d", "metadata": {"\udc00": "\u0000"}}'
    headers = OWNER | {"content-type": "application/json"}
    made = client.post("/v1/documents", content=body, headers=headers)
    assert made.status_code == 201
    assert (made.json()["title"], made.json()["content"]) == ("a\ufffdb", "Hi \ufffd")
    assert made.json()["metadata"] == {"\ufffd": "\ufffd"}


def test_a_nul_in_the_address_is_refused(client: TestClient) -> None:
    assert client.get("/api/calls/%00", headers=OWNER).status_code == 422
    assert client.get("/api/facts?q=%00", headers=OWNER).status_code == 422


async def test_a_task_that_fails_unseen_does_not_print_what_it_holds(
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure_logs()
    loop = asyncio.get_running_loop()
    error = RuntimeError(f"{CANARY} {CALLER}")
    loop.call_exception_handler(
        {"message": f"Task failed {error!r}", "exception": error}
    )
    shown = "".join(capfd.readouterr())
    assert "RuntimeError" in shown
    assert not any(word in shown for word in (CANARY, CALLER, "Traceback"))
