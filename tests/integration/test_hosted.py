"""Finished calls from a platform, through the server."""

import hmac
import json
import time
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.errors import DatabaseUnreachable
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.providers import ElevenLabsSettings
from aftercall.web.server import make_server
from fakes import make_call
from opened_apps import OpenApp

SECRET = "wsec_test"
START_SECRET = "a token for starts"


@pytest.fixture
def live(settings: Settings, open_app: OpenApp) -> App:
    elevenlabs = ElevenLabsSettings(
        webhook_secret=SecretStr(SECRET), start_secret=SecretStr(START_SECRET)
    )
    return open_app(
        settings.model_copy(update={"elevenlabs": elevenlabs}), SystemClock()
    )


def post(
    client: TestClient, event: dict[str, object], secret: str = SECRET
) -> tuple[int, dict[str, object]]:
    raw = json.dumps(event).encode()
    now = str(int(time.time()))
    signature = hmac.new(secret.encode(), f"{now}.".encode() + raw, sha256).hexdigest()
    answer = client.post(
        "/hosted/elevenlabs",
        content=raw,
        headers={"ElevenLabs-Signature": f"t={now},v0={signature}"},
    )
    return answer.status_code, answer.json()


def test_a_call_handed_over_is_kept_once_and_a_stranger_is_refused(live: App) -> None:
    event: dict[str, object] = {
        "type": "post_call_transcription",
        "data": {
            "conversation_id": "conv_1",
            "transcript": [
                {
                    "role": "user",
                    "message": "Please call the plumber.",
                    "time_in_call_secs": 1,
                }
            ],
            "metadata": {
                "start_time_unix_secs": int(time.time()) - 60,
                "call_duration_secs": 30,
                "phone_call": {"external_number": "+15550100"},
            },
        },
    }
    client = TestClient(make_server(live), base_url="https://calls.example")
    first, second = post(client, event), post(client, event)
    assert first == second
    assert first[0] == 200
    (row,) = live.store.list_page(limit=5)
    assert (row.live.id, row.live.caller, row.turn_count) == (
        first[1]["id"],
        "+15550100",
        1,
    )
    assert post(client, event, secret="wrong")[0] == 403
    assert post(client, {"type": "post_call_audio", "data": {}}) == (200, {"id": None})
    assert post(client, {"type": "post_call_transcription", "data": {}})[0] == 422
    assert client.post("/hosted/vapi", content=b"{}").status_code == 503


def test_megabytes_of_audio_without_a_length_are_taken_and_left_alone(
    live: App,
) -> None:
    client = TestClient(make_server(live), base_url="https://calls.example")
    raw = json.dumps(
        {
            "type": "post_call_audio",
            "data": {"conversation_id": "conv_1", "full_audio": "A" * 4_000_000},
        }
    ).encode()
    now = str(int(time.time()))
    signature = hmac.new(SECRET.encode(), f"{now}.".encode() + raw, sha256).hexdigest()
    headers = {"ElevenLabs-Signature": f"t={now},v0={signature}"}
    pieces = (raw[start : start + 65_536] for start in range(0, len(raw), 65_536))
    answer = client.post("/hosted/elevenlabs", content=pieces, headers=headers)
    assert "content-length" not in answer.request.headers
    assert (answer.status_code, answer.json()) == (200, {"id": None})


def test_trouble_of_ours_is_never_answered_as_if_the_platform_were_at_fault(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    data: dict[str, object] = {
        "conversation_id": "conv_1",
        "transcript": [],
        "metadata": {"start_time_unix_secs": int(time.time()) - 60},
    }
    client = TestClient(make_server(live), base_url="https://calls.example")

    def fail(*_: object) -> None:
        raise DatabaseUnreachable("no connection to the database")

    with monkeypatch.context() as patched:
        patched.setattr(live.journal.store, "find", fail)
        assert post(client, {"type": "post_call_transcription", "data": data})[0] == 503
    assert post(client, {"type": "post_call_transcription", "data": data})[0] == 200


def test_a_call_that_begins_there_is_told_what_is_known_and_a_stranger_is_refused(
    live: App,
) -> None:
    client = TestClient(make_server(live), base_url="https://calls.example")
    call = make_call(
        [("agent", "Hello!"), ("caller", "This is Ann. Please call the plumber.")],
        started_at=live.clock.now() - timedelta(hours=2),
    )
    live.journal.ingest(call)
    for name in STEPS:
        rerun(live.step_runner, call.id, name)
    body = {
        "caller_id": "+15550100",
        "agent_id": "a1",
        "called_number": "+15550101",
        "call_sid": "CA1",
    }

    def start(
        secret: str, caller: str = "+15550100", sid: str = "CA1"
    ) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {secret}"}
        answer = client.post(
            "/hosted/elevenlabs/start",
            json=body | {"caller_id": caller, "call_sid": sid},
            headers=headers,
        )
        return answer.status_code, answer.json()

    status, told = start(START_SECRET)
    assert (status, told["type"]) == (200, "conversation_initiation_client_data")
    known = told["dynamic_variables"]
    assert (known["caller_name"], known["is_known_caller"]) == ("Ann", True)
    assert "plumber" in known["last_call"]
    assert "plumber" in known["aftercall_briefing"]
    _, stranger = start(START_SECRET, "anonymous")
    assert stranger["dynamic_variables"].keys() == known.keys()
    assert not stranger["dynamic_variables"]["is_known_caller"]
    assert start(START_SECRET, sid="a b")[0] == 200  # an odd id costs no briefing
    assert start("wrong")[0] == 403
    assert start(SECRET)[0] == 403  # it signs webhooks and never travels


def test_a_start_is_not_answered_without_a_secret_of_its_own(
    settings: Settings, open_app: OpenApp
) -> None:
    elevenlabs = ElevenLabsSettings(webhook_secret=SecretStr(SECRET))
    app = open_app(settings.model_copy(update={"elevenlabs": elevenlabs}))
    client = TestClient(make_server(app), base_url="https://calls.example")
    for bearer in (f"Bearer {SECRET}", "Bearer ", "Bearer"):
        headers = {"Authorization": bearer}
        answer = client.post("/hosted/elevenlabs/start", json={}, headers=headers)
        assert answer.status_code == 503
        assert "ELEVENLABS_START_SECRET" in answer.text


def test_a_webhook_that_was_cut_inside_an_emoji_is_taken_in(live: App) -> None:
    data = {
        "conversation_id": "conv_cut",
        "transcript": [{"role": "user", "message": "Hi HERE", "time_in_call_secs": 1}],
        "metadata": {
            "start_time_unix_secs": int(time.time()) - 60,
            "call_duration_secs": 30,
        },
        "analysis": {"transcript_summary": "Said hi ESCAPED"},
    }
    event = json.dumps({"type": "post_call_transcription", "data": data}).encode()
    raw = event.replace(b"HERE", b"\xf0\x9f").replace(b"ESCAPED", b"\\ud83d")
    now = str(int(time.time()))
    signature = hmac.new(SECRET.encode(), f"{now}.".encode() + raw, sha256).hexdigest()
    client = TestClient(make_server(live), base_url="https://calls.example")
    answer = client.post(
        "/hosted/elevenlabs",
        content=raw,
        headers={"ElevenLabs-Signature": f"t={now},v0={signature}"},
    )
    assert answer.status_code == 200
    (row,) = live.store.list_page(limit=5)
    call, _ = live.archive.read(str(row.archive_name))
    assert call.turns[0].text == "Hi \ufffd"
    assert call.metadata["platform_summary"] == "Said hi \ufffd"
