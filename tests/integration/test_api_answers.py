"""OpenAPI describes what the API takes and answers, and the API does as it is described."""

import io
import json
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import insert

from aftercall.app import App
from aftercall.db.tables import deliveries
from aftercall.model.calls import Call, Recording, encode_call
from api_client import JSON, make_client
from fakes import make_call
from step_stages import take_call

CALLER = "+15551234567"
OPERATION_IDS = Path(__file__).with_name("operation_ids.txt")
RUN = "01J00000000000000000000000"
LINES = (
    "Hi, this is Bill Harker. I prefer to be called in the evening.",
    "Please open a bug about the broken thumbnails.",
)


@pytest.fixture
def call(app: App) -> Call:
    return take_call(app, CALLER, *LINES)


@pytest.fixture
def client(app: App, call: Call) -> TestClient:
    """A server that knows one call, with what people added to it, and a test run."""
    run = app.settings.home / "tests" / RUN
    run.mkdir(parents=True)
    about = {
        "id": RUN,
        "target": "http://agent",
        "started_at": "2026-02-13T15:41:12.000Z",
    }
    counts = {"runs": 1, "passed": 1, "failed": 0, "seconds": 2.5, "results": []}
    (run / "report.json").write_text(json.dumps(about | counts))
    client = make_client(app)  # no lifespan: no engine is needed
    added = f"/api/calls/{call.id}"
    client.post(f"{added}/requests", json={"title": "Call the plumber"})
    client.post(f"{added}/facts", json={"text": "Has a dog", "turn": 2})
    client.post("/api/pins", json={"caller": CALLER, "topic": "the thumbnails"})
    return client


@pytest.fixture
def schema(client: TestClient) -> dict[str, Any]:
    assert isinstance(client.app, FastAPI)
    return client.app.openapi()


def list_operations(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        if path.startswith(("/api/", "/v1/")):
            for method, operation in methods.items():
                yield f"{method.upper()} {path}", operation


def find_fault(schema: dict[str, Any], part: dict[str, Any], value: Any) -> str | None:
    """The first place in an answer that the schema does not describe."""
    if "$ref" in part:
        part = schema["components"]["schemas"][part["$ref"].rpartition("/")[2]]
    for choice in part.get("anyOf", ()):
        if (value is None) == (choice.get("type") == "null"):
            return find_fault(schema, choice, value)
    if isinstance(value, list):
        faults = (find_fault(schema, part["items"], item) for item in value)
        return next((fault for fault in faults if fault), None)
    if isinstance(value, dict) and "properties" in part:
        for name, inner in value.items():
            if name not in part["properties"]:
                return f"{part['title']}.{name}"
            if fault := find_fault(schema, part["properties"][name], inner):
                return fault
    return None


def test_every_operation_has_an_id_of_its_own_and_typed_answers(
    schema: dict[str, Any],
) -> None:
    operations = dict(list_operations(schema))
    ids = [operation["operationId"] for operation in operations.values()]
    assert len(ids) == len(set(ids))
    assert all(name.isidentifier() for name in ids)
    for name, operation in operations.items():
        answers = dict(operation["responses"])
        refusal = answers.pop("default")["content"]["application/json"]["schema"]
        assert refusal["$ref"].endswith("/RefusalAnswer")
        for answer in answers.values():
            for kind, content in answer["content"].items():
                assert kind != "application/json" or "$ref" in content["schema"], name
        if given := operation.get("requestBody"):
            body = given["content"]["application/json"]["schema"]
            assert "$ref" in body or body["properties"], name


def test_operation_ids_stay_as_they_are(schema: dict[str, Any]) -> None:
    """Generated clients name their functions after them. New ones are added to the file."""
    operations = dict(list_operations(schema))
    now = {f"{one['operationId']} {name}" for name, one in operations.items()}
    assert now == set(OPERATION_IDS.read_text().splitlines())


def test_events_are_read_page_by_page_and_sent_again(
    app: App, client: TestClient, call: Call
) -> None:
    app.webhooks.publish()
    first = client.get("/api/events", params={"limit": 1}).json()
    assert [event["type"] for event in first["events"]] == ["call.sealed"]
    assert first["events"][0]["data"]["id"] == call.id
    rest = client.get("/api/events", params={"after": first["next"]}).json()
    assert {"call.summarised", "request.held"} <= {
        event["type"] for event in rest["events"]
    }
    end = client.get("/api/events", params={"after": rest["next"]}).json()
    assert end == {"events": [], "next": rest["next"]}
    refused = client.get("/api/events", params={"after": "yesterday"})
    assert refused.json()["error"]["field"] == "after"
    key = f"{first['next']}:events.crm"
    with app.database.write() as connection:
        row = {"key": key, "conversation": first["next"], "sink": "events.crm"}
        row |= {"purpose": "event", "state": "dead", "reason": "answered 500"}
        times = {"created_at": app.clock.now(), "changed_at": app.clock.now()}
        connection.execute(insert(deliveries), row | times)
    (dead,) = client.get("/api/deliveries").json()["deliveries"]
    assert (dead["key"], dead["reason"]) == (key, "answered 500")
    again = client.post(f"/api/deliveries/{key}/resend").json()
    assert again["state"] == "due"
    assert client.get("/api/deliveries").json() == {"deliveries": []}


def test_answers_hold_nothing_that_is_not_described(
    client: TestClient, schema: dict[str, Any], call: Call
) -> None:
    followup = client.get("/api/followups").json()["followups"][0]["id"]
    fact = client.get("/api/facts").json()["facts"][0]["id"]
    pin = client.get("/api/pins", params={"caller": CALLER}).json()["pins"][0]["id"]
    filled = {
        "{call_id}": call.id,
        "{followup_id}": followup,
        "{fact_id}": fact,
        "{pin_id}": pin,
        "{run_id}": RUN,
        "{caller}": CALLER,
    }
    queries = {"/api/pins": f"caller={CALLER}", "/api/briefing": f"caller={CALLER}"}
    queries["/api/search"] = "q=thumbnails"
    asked = []
    for name, operation in list_operations(schema):
        method, _, path = name.partition(" ")
        address = path
        for mark, value in filled.items():
            address = address.replace(mark, value)
        if method != "GET" or "{" in address or path.startswith("/api/live"):
            continue  # live calls: tests/integration/test_live_api.py
        query = queries.get(path, "").replace("+", "%2B")
        answer = client.get(f"{address}?{query}" if query else address)
        assert answer.status_code == 200, (address, answer.text)
        described = operation["responses"]["200"]["content"]["application/json"][
            "schema"
        ]
        assert find_fault(schema, described, answer.json()) is None
        asked.append(operation["operationId"])
    assert {"get_call", "list_facts", "search", "find_person", "get_test"} <= set(asked)


def test_unknown_query_parameters_are_refused_on_every_route_of_the_api(
    client: TestClient, schema: dict[str, Any]
) -> None:
    for name, _ in list_operations(schema):
        method, _, path = name.partition(" ")
        if path.startswith("/api/"):
            answer = client.request(method, f"{path}?colour=red", json={})
            assert answer.json()["error"]["code"] == "input.refused", name


def test_a_body_that_does_not_fit_is_refused_in_one_shape_on_every_route(
    client: TestClient, schema: dict[str, Any]
) -> None:
    for name, operation in list_operations(schema):
        method, _, path = name.partition(" ")
        if "requestBody" in operation:
            answer = client.request(method, path, json=["no", "object"])
            assert 400 <= answer.status_code < 500, name
            assert set(answer.json()) == {"error"}, name
            assert {"code", "message"} <= set(answer.json()["error"]), name


def test_what_was_said_is_found_by_words(client: TestClient, call: Call) -> None:
    found = client.get("/api/search", params={"q": "thumbnails", "kind": "turn"}).json()
    assert {hit["call"] for hit in found["hits"]} == {call.id}
    assert "thumbnails" in found["hits"][0]["text"]
    other = client.get("/api/search", params={"q": "thumbnails", "caller": "+15550199"})
    assert other.json() == {"hits": []}


def test_people_are_listed_shown_exported_and_erased(client: TestClient) -> None:
    (person,) = client.get("/api/people").json()["people"]
    assert (person["caller"], person["calls"]) == (CALLER, 1)
    packed = client.post(f"/api/people/{CALLER}/export")
    assert packed.headers["content-type"] == "application/zip"
    names = zipfile.ZipFile(io.BytesIO(packed.content)).namelist()
    assert {"README.md", "facts.jsonl", "followups.json"} <= set(names)
    wrong = client.post(f"/api/people/{CALLER}/erase", json={"confirm": "+15550199"})
    assert wrong.json()["error"]["field"] == "confirm"
    assert client.get("/api/people").json()["people"] != []
    receipt = client.post(f"/api/people/{CALLER}/erase", json={"confirm": CALLER})
    assert (receipt.status_code, receipt.json()["calls"]) == (200, 1)
    assert CALLER not in receipt.text
    assert client.get("/api/people").json() == {"people": [], "next": None}


def test_the_list_of_people_goes_on_where_it_stopped(client: TestClient) -> None:
    other = make_call([("caller", "hello")], caller="+15550199")
    client.post("/api/calls", content=encode_call(other), headers=JSON)
    first = client.get("/api/people", params={"limit": 1}).json()
    second = client.get("/api/people", params={"limit": 1, "after": first["next"]})
    seen = {page["people"][0]["caller"] for page in (first, second.json())}
    assert seen == {CALLER, "+15550199"}


def test_statistics_count_the_calls_of_the_span(client: TestClient, call: Call) -> None:
    told = client.get("/api/statistics", params={"days": 366}).json()
    assert (told["calls"], told["callers"]) == (1, 1)
    assert told["by_source"] == {call.source: 1}
    assert sum(told["by_day"].values()) == 1
    assert sum(told["followups"].values()) >= 1
    assert client.get("/api/statistics", params={"days": 0}).status_code == 422


def test_a_recording_is_heard_over_the_api_and_that_is_logged(
    app: App, client: TestClient, call: Call
) -> None:
    recording = keep_recording(app, call, b"RIFF and so on")
    (shown,) = client.get(f"/api/calls/{call.id}/recordings").json()["recordings"]
    assert (shown["id"], shown["state"]) == (recording.id, "here")
    heard = client.get(f"/api/calls/{call.id}/recordings/{recording.id}")
    assert (heard.content, heard.headers["content-type"]) == (
        b"RIFF and so on",
        "audio/x-wav",
    )
    assert app.audit.list_recent()[0].subject == recording.id
    assert client.get(f"/api/calls/{call.id}/recordings/nope").status_code == 404
    assert client.get("/api/calls/nope/recordings").status_code == 404


def keep_recording(app: App, call: Call, sound: bytes) -> Recording:
    now = app.clock.now()
    file = app.settings.home / "recordings" / "one.wav"
    file.parent.mkdir()
    file.write_bytes(app.archive.place.cipher.encode(sound))
    recording = app.recordings.register(call.id, "twilio", "RE1", None, "waiting", now)
    app.recordings.finish(
        recording.id,
        path="recordings/one.wav",
        sha256=sha256(sound).hexdigest(),
        size=len(sound),
        now=now,
        transcript="none",
    )
    return recording
