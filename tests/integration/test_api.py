"""The HTTP API as a client sees it, on both databases."""

import json
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercall.app import App
from aftercall.model.calls import encode_call
from aftercall.settings import Settings
from aftercall.settings.sections import LimitSettings
from api_client import JSON, make_client, make_stranger
from fakes import VirtualClock, make_call
from opened_apps import OpenApp


@pytest.fixture
def client(app: App) -> Iterator[TestClient]:
    with make_client(app) as client:
        yield client


def test_a_finished_call_is_taken_in_once(client: TestClient) -> None:
    body = encode_call(make_call([("caller", "hello")]))
    first, second = (
        client.post("/api/calls", content=body, headers=JSON),
        client.post("/api/calls", content=body, headers=JSON),
    )
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    shown = client.get(f"/api/calls/{first.json()['id']}").json()
    assert (shown["state"], [turn["text"] for turn in shown["turns"]]) == (
        "sealed",
        ["hello"],
    )


def test_a_call_that_does_not_fit_is_refused_whole_with_its_field_named(
    client: TestClient,
) -> None:
    call = json.loads(encode_call(make_call()))
    call["turns"][0]["at"] = "noon"
    answer = client.post("/api/calls", json=call)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "turns[0].at"
    assert client.get("/api/calls").json() == {"calls": [], "next": None}


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"{", b'"x"'])
def test_bytes_that_are_no_call_are_refused(client: TestClient, body: bytes) -> None:
    assert client.post("/api/calls", content=body, headers=JSON).status_code == 422


def test_ten_megabytes_of_text_are_refused_naming_the_field(client: TestClient) -> None:
    call = json.loads(encode_call(make_call()))
    call["turns"][0]["text"] = "x" * 10_000_000
    answer = client.post("/api/calls", json=call)
    assert (answer.status_code, answer.json()["error"]["field"]) == (
        422,
        "turns[0].text",
    )


def test_a_body_without_end_is_cut_short(client: TestClient) -> None:
    endless = (b"x" * 1_000_000 for _ in range(40))
    answer = client.post("/api/calls", content=endless, headers=JSON)
    assert answer.status_code == 413
    assert "longer than" in answer.json()["error"]["message"]


def test_the_list_goes_on_where_it_stopped(client: TestClient) -> None:
    for _ in range(5):
        client.post("/api/calls", content=encode_call(make_call()), headers=JSON)
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = client.get(
            "/api/calls", params={"limit": 2, **({"before": after} if after else {})}
        ).json()
        seen += [call["id"] for call in page["calls"]]
        after = page["next"]
    assert len(seen) == len(set(seen)) == 5


def test_unknown_calls_and_marks_are_clear_errors(client: TestClient) -> None:
    assert client.get("/api/calls/nope").status_code == 404
    assert (
        client.get("/api/calls", params={"before": "nope"}).json()["error"]["field"]
        == "before"
    )
    assert (
        client.get("/api/calls", params={"caller": "Bob"}).json()["error"]["field"]
        == "caller"
    )


def test_a_briefing_can_be_looked_at(client: TestClient) -> None:
    told = client.get("/api/briefing", params={"caller": "+15550142"}).json()
    assert (told["caller_name"], told["recent"], told["resumes"]) == (None, [], None)
    assert told["greeting"] in told["text"]
    assert client.get("/api/briefing", params={"caller": "Bob"}).status_code == 422


def test_the_front_door_says_where_to_go(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert all(
        f'href="{path}"' in page.text
        for path in ("/calls", "/people", "/phone", "/settings", "/docs")
    )


def test_probes_answer(client: TestClient) -> None:
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/readyz").json() == {"status": "ready"}
    assert "aftercall_live_calls 0" in client.get("/metrics").text


def test_with_a_token_nothing_else_opens(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    app = open_app(
        settings.model_copy(update={"api_token": SecretStr("s3cret")}), clock
    )
    client = make_stranger(app)
    assert client.get("/api/calls").status_code == 401
    assert (
        client.get("/api/calls", headers={"Authorization": "Bearer wrong"}).status_code
        == 401
    )
    assert (
        client.get("/api/calls", headers={"Authorization": "Basic s3cret"}).status_code
        == 401
    )
    assert (
        client.get("/api/calls", headers={"Authorization": "Bearer s3cret"}).status_code
        == 200
    )


def test_a_call_handed_in_while_too_many_wait_is_told_when_to_try_again(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    limits = LimitSettings(queue=1)
    app = open_app(settings.model_copy(update={"limits": limits}), clock)
    client = make_client(app)  # not entered: nothing works off the queue
    app.journal.ingest(make_call())
    body = encode_call(make_call())
    refused = client.post("/api/calls", content=body, headers=JSON)
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "60"
    assert refused.json()["error"]["code"] == "overload"
    assert "limits.queue fails on" in client.get("/api/health").json()["reasons"][0]
