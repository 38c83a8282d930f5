"""Every route with nonsense that its schema allows and nonsense that it forbids: it may be refused,
but nothing fails, nothing hangs, and the lists can still be read.
"""

import hmac
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr
from starlette.routing import Route as ServedRoute

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.lab.telnyx import EmulatedTelnyx
from aftercall.lab.twilio import EmulatedTwilio
from aftercall.model.calls import encode_call
from aftercall.settings import Settings
from aftercall.settings.providers import (
    BlandSettings,
    ElevenLabsSettings,
    RetellSettings,
    TelnyxSettings,
    TwilioSettings,
    VapiSettings,
)
from api_client import make_client
from fakes import make_call
from opened_apps import OpenApp

SECRET, PUBLIC = "a-secret-for-fuzzing", "http://127.0.0.1:8080"
SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
EXAMPLES = 20 if SOAK else 2  # for each route and database
ROUNDS = 60 if SOAK else 12
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
CALLER = "+15550142"
ODD_TEXTS = (
    *("", "\0", "a\ud83d", "😀", "..", "../../etc", "1e999", "NaN", "-1", "9" * 400),
    *("2026-13-45T99:99Z", "' OR 1=1 --", "<script>", "a" * 5_000, CALLER, "{", "%"),
    *("\u202e", "٣", "null", "true", "main", "done", "pinned"),
)
NAMES = (
    *("caller", "topic", "note", "title", "content", "mode", "tags", "metadata"),
    *("namespace", "query", "text", "limit", "namespaces", "source", "max_results"),
)
ODD_NUMBERS = (0, -1, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf"), 0.5)
DEEP = json.loads("[" * 900 + "]" * 900)
ODD_METADATA: tuple[Any, ...] = (
    *({"a": float("nan")}, {"a": float("inf")}, {"a": 10**400}, {"a": DEEP}),
    *({"a": "\0"}, {"\0": 1}, {"a": "half \ud83d"}, {"\udc00": 1}, [], None),
)


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    queries: tuple[str, ...] = ()


class AcceptAll(httpx2.AsyncBaseTransport):
    """A carrier that takes every command."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"data": {"result": "ok"}}, request=request)


@pytest.fixture
def telnyx() -> EmulatedTelnyx:
    return EmulatedTelnyx(signing_key=bytes(range(32)))


@pytest.fixture
def whole(settings: Settings, open_app: OpenApp, telnyx: EmulatedTelnyx) -> App:
    """An app where everything is set up, with a call in it."""
    secret = SecretStr(SECRET)
    update = {
        "public_url": PUBLIC,
        "twilio": TwilioSettings(auth_token=secret),
        "telnyx": TelnyxSettings(api_key=secret, public_key=telnyx.public_key),
        "elevenlabs": ElevenLabsSettings(webhook_secret=secret, start_secret=secret),
        "vapi": VapiSettings(webhook_secret=secret),
        "retell": RetellSettings(api_key=secret),
        "bland": BlandSettings(webhook_secret=secret, start_secret=secret),
    }
    app = open_app(settings.model_copy(update=update), SystemClock())
    app.journal.ingest(make_call([("caller", "I prefer mornings.")]))
    return replace(app, transport=AcceptAll())


@pytest.fixture
def client(whole: App) -> Iterator[TestClient]:
    with make_client(whole, follow_redirects=False) as client:
        yield client


def list_routes(server: FastAPI) -> Iterator[Route]:
    """All of them, with those that the schema leaves out: the pages."""
    described = server.openapi()["paths"]
    for route in server.routes:
        if not isinstance(route, ServedRoute):
            continue
        for method in sorted((route.methods or set()) - {"HEAD"}):
            about = described.get(route.path, {}).get(method.lower(), {})
            known = (item["name"] for item in about.get("parameters", ()))
            yield Route(method, route.path, (*known, "page", "q", "before", "to"))


class Nonsense(Random):
    """The same seed gives the same nonsense."""

    def text(self) -> str:
        if self.random() < 0.7:
            return self.choice(ODD_TEXTS)
        return "".join(chr(self.randrange(sys.maxunicode)) for _ in range(8))

    def value(self, depth: int = 3) -> Any:
        kind = self.randrange(7 if depth else 5)
        if kind == 5:
            return [self.value(depth - 1) for _ in range(self.randrange(4))]
        if kind == 6:
            names = [self.choice((*NAMES, self.text())) for _ in range(4)]
            return {name: self.value(depth - 1) for name in names}
        simple = (None, True, self.choice(ODD_NUMBERS), self.text(), self.text())
        return simple[kind]

    def mutate(self, value: Any) -> Any:
        """The same with one part replaced."""
        if isinstance(value, dict) and value and self.random() < 0.9:
            name = self.choice(sorted(value))
            return value | {name: self.mutate(value[name])}
        if isinstance(value, list) and value and self.random() < 0.9:
            return [self.mutate(value[0]), *value[1:]]
        return DEEP if self.random() < 0.1 else self.value()

    def fill(self, route: Route) -> str:
        """An address of this route."""
        path = re.sub(r"\{[^}]*\}", lambda _: escape(self.text()) or "x", route.path)
        names = self.sample(route.queries, self.randrange(3))
        pairs = [f"{name}={escape(self.text())}" for name in names]
        return f"{path}?{'&'.join(pairs)}" if pairs else path


def escape(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def to_json(value: Any) -> bytes:
    """Also what is no JSON: NaN, and halves of characters."""
    return json.dumps(value).encode()


def check(answer: httpx2.Response, *asked: object) -> None:
    assert answer.status_code < 500, (answer.text, *asked)


@pytest.mark.timeout(300)
def test_no_route_fails_whatever_it_is_asked(client: TestClient) -> None:
    luck = Nonsense(1)
    assert isinstance(client.app, FastAPI)
    routes = [
        route
        for route in list_routes(client.app)
        if not route.path.endswith("/live")  # streams without end
    ]
    assert len(routes) > 50
    for route in routes:
        for _ in range(EXAMPLES):
            address = luck.fill(route)
            fields = [(luck.choice(NAMES), luck.text()) for _ in range(3)]
            form = "&".join(f"{name}={escape(text)}" for name, text in fields)
            for kind, body in ((JSON, to_json(luck.value())), (FORM, form.encode())):
                answer = client.request(
                    route.method, address, content=body, headers={"content-type": kind}
                )
                check(answer, route, address, body)
    check_lists(client)


@pytest.mark.timeout(300)
def test_no_odd_value_in_a_call_or_document_breaks_a_list(client: TestClient) -> None:
    luck = Nonsense(2)
    document = {"title": "t", "content": "c", "tags": [], "metadata": {"a": 1}}
    headers = {"content-type": JSON}
    for _ in range(ROUNDS):
        call = json.loads(encode_call(make_call())) | {"metadata": luck.value()}
        for path, base in (("/api/calls", call), ("/v1/documents", document)):
            body = to_json(luck.mutate(base))
            check(client.post(path, content=body, headers=headers), path, body)
    for metadata in ODD_METADATA:
        call = json.loads(encode_call(make_call())) | {"metadata": metadata}
        for path, base in (("/api/calls", call), ("/v1/documents", document)):
            body = to_json(base | {"metadata": metadata})
            check(client.post(path, content=body, headers=headers), path, metadata)
        check_lists(client)


@pytest.mark.timeout(300)
def test_signed_webhooks_are_taken_or_refused_and_never_fail(
    client: TestClient, telnyx: EmulatedTelnyx
) -> None:
    luck = Nonsense(3)
    for _ in range(ROUNDS):
        for platform, base in EVENTS.items():
            raw = to_json(luck.mutate(base))
            answer = client.post(
                f"/hosted/{platform}", content=raw, headers=sign(platform, raw)
            )
            check(answer, platform, raw)
        event = to_json(luck.mutate(TELNYX_EVENT))
        answer = client.post(
            "/telnyx/events", content=event, headers=telnyx.sign(event)
        )
        check(answer, event)
        ask_twilio(client, luck.mutate(TWILIO_FORM))
    check_lists(client)


def ask_twilio(client: TestClient, form: Any) -> None:
    fields = form if isinstance(form, dict) else {"CallSid": form}
    plain = {
        clean(name): value if isinstance(value, str) else json.dumps(value)
        for name, value in fields.items()
    }
    plain = {name: clean(value) for name, value in plain.items()}
    signature = EmulatedTwilio(SECRET).sign(f"{PUBLIC}/twilio/voice", plain)
    headers = {
        "X-Twilio-Signature": signature,
        "content-type": FORM,
    }
    check(client.post("/twilio/voice", content=urlencode(plain), headers=headers))


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def check_lists(client: TestClient) -> None:
    for path in (
        "/api/calls",
        "/api/facts",
        "/api/followups",
        "/",
        "/calls",
        "/people",
    ):
        assert client.get(path).status_code == 200, path
    found = client.post("/v1/query", json={"query": "c", "limit": 100})
    assert found.status_code == 200


NOW = int(time.time())
EVENTS: dict[str, dict[str, Any]] = {
    "elevenlabs": {
        "type": "post_call_transcription",
        "data": {
            "conversation_id": "conv_1",
            "transcript": [
                {"role": "user", "message": "the plumber", "time_in_call_secs": 1}
            ],
            "metadata": {"start_time_unix_secs": NOW - 60, "call_duration_secs": 30},
            "analysis": {"transcript_summary": "plumber"},
        },
    },
    "vapi": {
        "message": {
            "type": "end-of-call-report",
            "call": {"id": "v1", "type": "inboundPhoneCall"},
            "startedAt": NOW - 60,
            "endedAt": NOW - 30,
            "customer": {"number": CALLER},
            "artifact": {"messages": [{"role": "user", "message": "the plumber"}]},
            "analysis": {"summary": "plumber"},
        }
    },
    "retell": {
        "event": "call_ended",
        "call": {
            "call_id": "r1",
            "start_timestamp": (NOW - 60) * 1000,
            "end_timestamp": (NOW - 30) * 1000,
            "from_number": CALLER,
            "transcript_object": [{"role": "user", "content": "the plumber"}],
        },
    },
    "bland": {
        "call_id": "b1",
        "completed": True,
        "started_at": NOW - 60,
        "end_at": NOW - 30,
        "from": CALLER,
        "transcripts": [
            {"user": "user", "text": "the plumber", "created_at": NOW - 50}
        ],
    },
}
TELNYX_EVENT = {
    "data": {
        "id": "e1",
        "event_type": "call.initiated",
        "payload": {
            "call_control_id": "v3:abc",
            "direction": "incoming",
            "from": CALLER,
            "to": "+15550101",
            "caller_id_name": "Ann",
        },
    }
}
TWILIO_FORM = {
    "CallSid": "CA" + "1" * 32,
    "From": CALLER,
    "To": "+15550101",
    "CallStatus": "ringing",
    "CallerName": "Ann",
}


def sign(platform: str, raw: bytes) -> dict[str, str]:
    now = str(int(time.time()))

    def digest(signed: bytes) -> str:
        return hmac.new(SECRET.encode(), signed, sha256).hexdigest()

    match platform:
        case "elevenlabs":
            signature = digest(f"{now}.".encode() + raw)
            return {"ElevenLabs-Signature": f"t={now},v0={signature}"}
        case "vapi":
            return {"X-Vapi-Secret": SECRET}
        case "retell":
            signature = digest(raw + f"{now}000".encode())
            return {"X-Retell-Signature": f"v={now}000,d={signature}"}
        case _:
            return {"X-Webhook-Signature": digest(raw)}
