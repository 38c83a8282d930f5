"""A call from a web page, through the server, with the built-in receptionist."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.settings import Settings
from api_client import make_client
from opened_apps import OpenApp


@pytest.fixture
def live(settings: Settings, open_app: OpenApp) -> App:
    return open_app(settings, SystemClock())


@pytest.fixture
def client(live: App) -> Iterator[TestClient]:
    with make_client(live) as client:
        yield client


def until_sealed(client: TestClient, call_id: str) -> dict[str, Any]:
    """The page is gone at once, sealing takes its moment; the suite's time limit is the only
    one.
    """
    while (shown := client.get(f"/api/calls/{call_id}").json())["state"] != "sealed":
        pass
    return dict(shown)


def test_a_caller_is_answered_and_the_call_is_kept(
    client: TestClient, live: App
) -> None:
    with client.websocket_connect("/browser/call?caller=%2B15550100") as socket:
        hello = socket.receive_json()
        socket.send_json(
            {"type": "say", "text": "Please call the plumber.", "confidence": 0.9}
        )
        assert "call the plumber" in socket.receive_json()["text"]
        socket.send_json({"type": "hang_up"})
        ended = socket.receive_json()
    assert (ended["type"], ended["reason"]) == ("ended", "caller_hung_up")
    shown = client.get(f"/api/calls/{hello['call']}").json()
    assert (shown["state"], shown["source"], shown["caller"]) == (
        "sealed",
        "browser",
        "+15550100",
    )
    assert [turn["speaker"] for turn in shown["turns"]] == ["agent", "caller", "agent"]


def test_a_page_that_goes_away_is_a_caller_who_hung_up(
    client: TestClient, live: App
) -> None:
    with client.websocket_connect("/browser/call") as socket:
        call_id = socket.receive_json()["call"]
        socket.send_json({"type": "say", "text": "hello"})
        socket.receive_json()
    shown = until_sealed(client, call_id)
    assert (shown["end_reason"], shown["caller"]) == ("caller_hung_up", None)


BAD_FRAMES = [
    "nonsense",
    "[]",
    '{"type": "fly"}',
    '{"type": "say"}',
    '{"type": "say", "text": 3}',
    '{"type": "say", "text": "x", "confidence": 9}',
]


def test_a_frame_that_does_not_fit_ends_the_call_which_is_kept(
    client: TestClient,
) -> None:
    for frame in BAD_FRAMES:
        with client.websocket_connect("/browser/call") as socket:
            call_id = socket.receive_json()["call"]
            socket.send_text(frame)
            assert socket.receive_json()["type"] == "refused"
        until_sealed(client, call_id)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
        {"Authorization": "Bearer guess"},
        {"Authorization": ""},
    ],
)
def test_other_peoples_pages_and_strangers_cannot_call(
    live: App, headers: dict[str, str]
) -> None:
    with (
        pytest.raises(WebSocketDisconnect),
        make_client(live).websocket_connect("/browser/call", headers=headers),
    ):
        pass


def test_a_caller_that_is_no_number_is_refused(client: TestClient) -> None:
    with client.websocket_connect("/browser/call?caller=Bob") as socket:
        assert socket.receive_json()["reason"].startswith(
            "caller: is not a phone number"
        )
