"""`/api/live` as its senders meet it: requests, one socket, and input that does not fit."""

import base64
import hmac
import json
import time
from collections.abc import Iterator
from hashlib import sha1
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi.testclient import TestClient
from pydantic import SecretStr
from starlette.websockets import WebSocketDisconnect

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.providers import TelnyxSettings, TwilioSettings
from api_client import make_client, make_stranger
from opened_apps import OpenApp

SID = "CA" + "1" * 32
TWILIO_KEY = "twilio-token-0123456789abcdef0123"
TELNYX_KEY = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="  # of the bytes 0 to 31
VOICE_URL = "https://agent.example/voice?x=1"
RING = {
    "CallSid": SID,
    "From": "+15550100",
    "To": "+15550101",
    "Direction": "inbound",
    "StirVerstat": "TN-Validation-Passed-A",
}


@pytest.fixture
def database_url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path / 'home' / 'aftercall.db'}"


@pytest.fixture
def live(settings: Settings, open_app: OpenApp) -> App:
    keys = {
        "twilio": TwilioSettings(auth_token=SecretStr(TWILIO_KEY)),
        "telnyx": TelnyxSettings(public_key=TELNYX_KEY),
        "reconnect_window_s": 0,
    }
    return open_app(settings.model_copy(update=keys), SystemClock())


@pytest.fixture
def client(live: App) -> Iterator[TestClient]:
    with make_client(live) as client:
        yield client


def start(client: TestClient, **fields: object) -> dict[str, Any]:
    body = {"source": "mine", "sid": "1", "caller": "+15550100"} | fields
    answer = client.post("/api/live", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def turn(seq: int, text: str = "Hi.", speaker: str = "caller") -> dict[str, object]:
    return {"seq": seq, "speaker": speaker, "text": text}


def test_a_call_by_requests_from_its_start_to_its_end(client: TestClient) -> None:
    begun = start(client)
    assert begun["greeting"] == begun["briefing"]["first_words"]
    assert [tool["name"] for tool in begun["tools"]] == [
        "search_memory",
        "take_request",
    ]
    call = f"/api/live/{begun['call']}"

    def post(path: str, **body: object) -> Any:
        return client.post(f"{call}/{path}", json=body).json()

    words = [turn(1, "Hello!", "assistant"), turn(2, "Call the plumber.", "user")]
    assert post("turns", turns=words) == {"turns": 2}
    assert post("turns", turns=words[1:]) == {"turns": 2}
    assert post("events", events=[{"kind": "barge_in", "data": {"heard": "Hel"}}])
    taken = post("tools/take_request", arguments={"title": "Plumber"}, seq=1)
    assert taken["text"].startswith("Taken down.")
    assert "Nothing" in post("tools/search_memory", arguments='{"query": "x"}')["text"]
    assert post("heartbeat") == {"turns": 2}
    assert "<briefing>" in client.get(f"{call}/briefing").json()["text"]
    assert post("end", reason="caller_hung_up")["reason"] == "caller_hung_up"
    shown = client.get(f"/api/calls/{begun['call']}").json()
    assert [said["speaker"] for said in shown["turns"]] == ["agent", "caller"]
    assert [event["kind"] for event in shown["events"]] == ["barge_in", "request.taken"]


def test_what_does_not_fit_is_refused_by_name_and_nothing_of_it_is_kept(
    client: TestClient,
) -> None:
    call = f"/api/live/{start(client)['call']}/turns"
    for body, status, code in (
        ({"turns": [turn(2)]}, 409, "journal.gap"),
        ({"turns": [turn(1)], "sender": "other"}, 409, "live.taken"),
        ({"turns": [turn(1, "x" * 100_001)]}, 422, "input.refused"),
        ({"turns": [turn(1, "x" * 10_000_000)]}, 413, "http.413"),
        ({"turns": [turn(1, speaker="dog")]}, 422, "input.refused"),
        ({"turns": []}, 422, "input.refused"),
        ({"turns": [turn(1)], "fly": 1}, 422, "input.refused"),
    ):
        answer = client.post(call, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert client.post(call, json={"turns": [turn(1)]}).json() == {"turns": 1}
    unknown = client.post("/api/live/unknown/turns", json={"turns": [turn(1)]})
    assert unknown.status_code == 404
    for fields in ({"caller": "Bob"}, {"source": "M!"}, {"sid": "../x"}, {"sid": ""}):
        wrong = {"source": "mine", "sid": "2"} | fields
        assert client.post("/api/live", json=wrong).status_code == 422
    old = {"source": "mine", "sid": "2", "started_at": "2026-01-01T00:00:00Z"}
    assert client.post("/api/live", json=old).status_code == 422


def test_many_calls_over_one_socket_are_answered_by_their_refs(
    client: TestClient,
) -> None:
    with client.websocket_connect("/api/live") as socket:

        def ask(op: str, **fields: object) -> Any:
            socket.send_json({"ref": op, "op": op, **fields})
            answer = socket.receive_json()
            assert answer["ref"] == op
            return answer.get("result", answer.get("error"))

        calls = [
            ask("start", source="mine", sid=sid, caller="+15550100")["call"]
            for sid in ("1", "2")
        ]
        for call in calls:
            assert ask("turns", call=call, turns=[turn(1)]) == {"turns": 1}
        assert ask("turns", call=calls[0], turns=[turn(7)])["code"] == "journal.gap"
        assert ask("heartbeat") == {}
        assert "text" in ask("briefing", call=calls[0])
        use = {"name": "search_memory", "arguments": {"query": "x"}}
        assert "text" in ask("tool", call=calls[0], **use)
        assert ask("tool", call=calls[0], name="fly")["code"] == "input.refused"
        assert ask("fly")["code"] == "input.refused"
        for frame in ("nonsense", "[]", "[" * 9_000):
            socket.send_text(frame)
            assert socket.receive_json()["error"]["code"] == "input.refused"
        socket.send_bytes(b"\x00")
        assert "error" in socket.receive_json()
        for call in calls:
            assert ask("end", call=call)["turns"] == 1


def test_the_socket_tells_the_briefing_of_who_turns_out_to_be_calling(
    client: TestClient, live: App
) -> None:
    with client.websocket_connect("/api/live") as socket:

        def ask(op: str, **fields: object) -> Any:
            socket.send_json({"ref": op, "op": op, **fields})
            answer = socket.receive_json()
            assert answer["ref"] == op
            return answer["result"]

        def begin(sid: str) -> Any:
            return ask("start", source="mine", sid=sid, caller="+15550100")["call"]

        tom = begin("1")
        ask("turns", call=tom, turns=[turn(1, "This is Tom. I live in Porto.")])
        ask("end", call=tom)
        for step in STEPS:
            live.step_runner.run(tom, step)
        anna = begin("2")
        assert "Porto" in ask("briefing", call=anna)["text"]
        ask("turns", call=anna, turns=[turn(1, "This is Anna, not Tom.")])
        told = socket.receive_json()
        assert (told["op"], told["call"]) == ("briefing", anna)
        assert "Porto" not in told["briefing"]["text"]


def test_strangers_get_neither_requests_nor_the_socket(live: App) -> None:
    stranger = make_stranger(live)
    assert stranger.post("/api/live", json={}).status_code == 401
    with (
        pytest.raises(WebSocketDisconnect),
        stranger.websocket_connect("/api/live"),
    ):
        pass


def sign(form: dict[str, str], url: str = VOICE_URL) -> dict[str, object]:
    signed = url + "".join(f"{name}{form[name]}" for name in sorted(form))
    made = hmac.new(TWILIO_KEY.encode(), signed.encode(), sha1).digest()
    headers = {
        "X-Twilio-Signature": base64.b64encode(made).decode(),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return {"url": url, "headers": headers, "body": urlencode(form)}


def test_a_number_is_attested_by_the_carriers_own_signature_only(
    client: TestClient, live: App
) -> None:
    claimed = start(client, verified=True)["call"]
    assert not live.store.get(claimed).live.verified
    carrier = sign(RING)
    proven = start(client, source="twilio", sid=SID, caller=None, carrier=carrier)
    call = live.store.get(proven["call"]).live
    assert (call.caller, call.callee, call.verified) == (
        "+15550100",
        "+15550101",
        True,
    )
    forged = carrier | {"body": urlencode(RING | {"From": "+15550142"})}
    for given, sid, status in (
        (forged, SID, 403),
        (carrier | {"headers": {}}, SID, 403),
        (carrier, "CA" + "2" * 32, 422),
    ):
        body = {"source": "twilio", "sid": sid, "carrier": given}
        assert client.post("/api/live", json=body).status_code == status
    other = {"source": "mine", "sid": SID, "carrier": carrier}
    assert client.post("/api/live", json=other).status_code == 422


def sign_telnyx(sid: str, number: str, signed_at: float) -> dict[str, object]:
    payload = {
        "call_control_id": sid,
        "from": number,
        "to": "+15550101",
        "direction": "incoming",
        "shaken_stir_attestation": "A",
        "shaken_stir_validated": True,
    }
    event = {"id": "e1", "event_type": "call.initiated", "payload": payload}
    body = json.dumps({"data": event})
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    signature = key.sign(f"{signed_at:.0f}|{body}".encode())
    headers = {
        "telnyx-timestamp": f"{signed_at:.0f}",
        "telnyx-signature-ed25519": base64.b64encode(signature).decode(),
    }
    return {"url": VOICE_URL, "headers": headers, "body": body}


def test_telnyx_attests_a_number_by_its_signature_while_that_is_fresh(
    client: TestClient, live: App
) -> None:
    for sid, age_s, is_verified in (("v3:fresh", 0, True), ("v3:stale", 3_600, False)):
        carrier = sign_telnyx(sid, "+15550100", time.time() - age_s)
        begun = start(client, source="telnyx", sid=sid, caller=None, carrier=carrier)
        call = live.store.get(begun["call"]).live
        assert (call.caller, call.verified) == ("+15550100", is_verified)
    forged = carrier | {"body": str(carrier["body"]).replace("+15550100", "+15550142")}
    body = {"source": "telnyx", "sid": "v3:stale", "carrier": forged}
    assert client.post("/api/live", json=body).status_code == 403


def test_a_process_that_stops_takes_no_new_call_and_the_turns_of_known_ones(
    client: TestClient, live: App
) -> None:
    call = start(client)["call"]
    live.phone.intake.close()
    new = client.post("/api/live", json={"source": "mine", "sid": "2"})
    assert (new.status_code, new.json()["error"]["code"]) == (503, "overload")
    assert int(new.headers["retry-after"]) > 0
    again = {"source": "mine", "sid": "1", "caller": "+15550100"}
    assert client.post("/api/live", json=again).status_code == 201
    said = client.post(f"/api/live/{call}/turns", json={"turns": [turn(1)]})
    assert said.json() == {"turns": 1}
    client.post(f"/api/live/{call}/end", json={})
    assert live.phone.intake.is_finished()
