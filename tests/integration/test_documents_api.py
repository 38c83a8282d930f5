"""Document memory as clients of Remem see it, on both databases."""

from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercall.app import App
from aftercall.encryption import load_api_token
from aftercall.memory.documents import RememClient
from aftercall.model.passages import Document, make_document_id
from aftercall.settings import Settings
from aftercall.settings.providers import RememSettings
from api_client import ADDRESS, JSON, make_client, make_stranger
from fakes import START, VirtualClock
from opened_apps import OpenApp

KEY = {"Idempotency-Key": "7f1b0a52-5c2f-4b61-9f5c-0d1f8f7c3a11"}


@pytest.fixture
def client(app: App) -> TestClient:
    # no lifespan: no engine is needed
    return make_client(app)


def post(client: TestClient, content: str, **fields: Any) -> str:
    return str(
        client.post(
            "/v1/documents", json={"title": "Note", "content": content, **fields}
        ).json()["id"]
    )


def find(client: TestClient, **query: Any) -> list[str]:
    return [
        result["snippet"]
        for result in client.post("/v1/query", json=query).json()["results"]
    ]


def test_both_dialects_write_and_both_find(client: TestClient) -> None:
    seed = client.post(
        "/v1/documents",
        json={
            "title": "One",
            "content": "About bees",
            "source": "voice-call",
            "tags": "voice-session, x",
        },
    )
    later = client.post(
        "/v1/documents/ingest",
        json={
            "content": "About wasps and bees",
            "metadata": {"tags": ["voice-session"]},
            "return_id": True,
        },
    )
    assert (seed.status_code, later.status_code, later.json()["status"]) == (
        201,
        202,
        "accepted",
    )
    assert find(client, text="bees", limit=3, tags=["voice-session"]) == find(
        client, query="bees", max_results=3
    )
    assert find(client, text="bees", tags=["x"]) == ["About bees"]
    (result,) = client.post("/v1/query", json={"query": "wasps"}).json()["results"]
    assert (result["document_id"], result["chunks"][0]["content"]) == (
        later.json()["document_id"],
        "About wasps and bees",
    )


def test_the_same_key_is_the_same_document(client: TestClient) -> None:
    first = client.post(
        "/v1/documents/ingest", json={"content": "Once"}, headers=KEY
    ).json()
    again = client.post(
        "/v1/documents/ingest", json={"content": "Once, again"}, headers=KEY
    ).json()
    assert first["document_id"] == again["document_id"]
    assert find(client, query="once") == ["Once"]


def test_a_document_is_replaced_or_appended_to(client: TestClient) -> None:
    document = post(client, "First")
    assert (
        client.put(f"/v1/documents/{document}", json={"content": "Second"}).json()[
            "content"
        ]
        == "Second"
    )
    assert (
        client.put(
            f"/v1/documents/{document}", json={"content": "Third", "mode": "append"}
        ).json()["content"]
        == "Second\n\nThird"
    )
    assert (
        client.get(f"/v1/documents/{document}").json()["content"] == "Second\n\nThird"
    )


def test_a_change_of_no_known_kind_changes_nothing(client: TestClient) -> None:
    document = post(client, "First")
    for body in (
        {"content": "Second", "mode": "prepend"},
        {"mode": "append"},
        {"content": "", "mode": "replace"},
    ):
        assert client.put(f"/v1/documents/{document}", json=body).status_code == 422
    assert client.get(f"/v1/documents/{document}").json()["content"] == "First"


@pytest.mark.parametrize(
    "written",
    [
        {"tags": "voice-session, bees"},
        {"tags": ["voice-session", "bees"]},
        {"metadata": {"tags": ["bees"]}},
    ],
)
@pytest.mark.parametrize("asked", ["bees", ["bees"]])
def test_tags_are_found_in_whichever_form_they_were_written(
    client: TestClient, written: dict[str, Any], asked: object
) -> None:
    post(client, "About honey", **written)
    post(client, "Honey of nobody", tags=["beeswax"])
    assert find(client, query="honey", tags=asked) == ["About honey"]
    assert find(client, query="honey", tags=["bees", "wasps"]) == []


def test_most_words_first_then_the_newest(app: App, client: TestClient) -> None:
    for content in ("voice call summary one", "voice call summary two", "only a call"):
        post(client, content)
        assert isinstance(app.clock, VirtualClock)
        app.clock.move(1)
    assert find(client, text="voice call summary", limit=3) == [
        "voice call summary two",
        "voice call summary one",
        "only a call",
    ]


@pytest.mark.parametrize(
    "words",
    [
        "follow-up",
        "don't",
        '"',
        "%",
        "_",
        "a OR b",
        "'; DROP TABLE documents; --",
        "\\",
    ],
)
def test_any_words_are_a_valid_query(client: TestClient, words: str) -> None:
    post(client, "We don't follow-up a or b.")
    assert client.post("/v1/query", json={"query": words}).status_code == 200


def test_an_underscore_is_itself(client: TestClient) -> None:
    post(client, "snake_case")
    post(client, "snakeXcase")
    assert find(client, query="snake_case") == ["snake_case"]


def test_namespaces_are_kept_apart(client: TestClient) -> None:
    post(client, "bees of one", namespace="one")
    post(client, "bees of two", namespace="two")
    assert find(client, query="bees", namespaces=["one"]) == ["bees of one"]
    assert len(find(client, query="bees", namespaces=["*"])) == 2


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/v1/documents", {"title": "x"}, 422, "content"),
        ("/v1/documents", {"content": 5}, 422, "content"),
        ("/v1/documents/ingest", {"content": "x", "tags": [1]}, 422, "tags[0]"),
        ("/v1/query", {"limit": 3}, 422, "query"),
        ("/v1/query", {"query": "x", "max_results": 0}, 422, "max_results"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_field_named(
    client: TestClient, path: str, body: dict[str, Any], status: int, field: str
) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)


def test_an_id_that_is_none_is_not_found(client: TestClient) -> None:
    for document in ("..%2f..%2fetc", "nope", "00000000-0000-4000-8000-000000000000"):
        assert (
            client.put(f"/v1/documents/{document}", json={"content": "x"}).status_code
            == 404
        )


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff"])
def test_bytes_that_are_no_document_are_refused(client: TestClient, raw: bytes) -> None:
    assert client.post("/v1/documents", content=raw, headers=JSON).status_code == 422


@pytest.fixture
def guarded(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> TestClient:
    app = open_app(
        settings.model_copy(update={"api_token": SecretStr("s3cret")}), clock
    )
    return make_stranger(app)


def test_either_header_of_a_client_opens_and_nothing_else(guarded: TestClient) -> None:
    body = {"query": "x"}
    assert guarded.post("/v1/query", json=body).status_code == 401
    assert (
        guarded.post("/v1/query", json=body, headers={"X-API-Key": "wrong"}).status_code
        == 401
    )
    assert (
        guarded.post(
            "/v1/query", json=body, headers={"X-API-Key": "s3cret"}
        ).status_code
        == 200
    )
    assert (
        guarded.post(
            "/v1/query", json=body, headers={"Authorization": "Bearer s3cret"}
        ).status_code
        == 200
    )


def test_our_own_client_can_write_here(app: App, client: TestClient) -> None:
    """Two Aftercalls: one keeps the documents of the other."""
    token = load_api_token(app.settings)
    page = Document(
        id=make_document_id("call", "1"),
        title="One",
        content="About bees",
        made_at=START,
        changed_at=START,
    )
    for dialect in ("ingest", "documents"):
        remem = RememClient(
            RememSettings.model_validate(
                {"api_key": token, "api_url": ADDRESS, "dialect": dialect}
            ),
            httpx2.MockTransport(client.send),
        )
        assert remem.send(page) == remem.send(page)
    assert len(find(client, query="bees")) == 1
