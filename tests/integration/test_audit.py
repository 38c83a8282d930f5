"""The audit log tells what happened, and nothing that was only tried; on both databases."""

from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from aftercall.app import App
from aftercall.errors import NotWaiting, RefusedInput
from aftercall.model.followups import FollowUp
from aftercall.work import deliver
from api_client import csrf_of, make_client
from fakes import make_live_call
from followup_work import follow, hold_call

CALLER = "+15550100"
BUG = [
    ("agent", "Hello!"),
    ("caller", "Please open a bug about the broken thumbnails."),
]


@pytest.fixture
def client(app: App) -> TestClient:
    return make_client(app, follow_redirects=False)


def deeds(app: App) -> list[tuple[str, str]]:
    return [(str(line.deed), line.subject) for line in app.audit.list_recent()][::-1]


def hold_request(app: App, caller: str = CALLER) -> FollowUp:
    """A request that waits for approval."""
    careful = app.settings.work.model_copy(
        update={"policy": {"unknown": "hold", "known": "hold"}}
    )
    desk = replace(app.work, settings=app.settings.model_copy(update={"work": careful}))
    call = hold_call(app, BUG, caller=caller)
    (request,) = [
        row for row in follow(desk, call.conversation) if row.kind == "request"
    ]
    assert request.state == "held"
    return request


def test_an_approval_is_recorded_once_it_happened_whoever_gave_it(
    app: App, client: TestClient
) -> None:
    request = hold_request(app)
    csrf = csrf_of(client.get("/followups").text)

    def decide(decision: str, of: str = request.id) -> int:
        form = {"csrf": csrf, "decision": decision, "of": of}
        return client.post("/followups/decide", data=form).status_code

    assert decide("retry") == 409
    assert decide("approve", "none") == 404
    assert deeds(app) == []
    assert decide("approve") == 303
    assert decide("approve") == 409
    assert client.post(f"/api/followups/{request.id}/reject").status_code == 200
    with pytest.raises(NotWaiting):
        deliver.reject(app.work, request.id, "me")
    assert deeds(app) == [("approved", request.id), ("rejected", request.id)]


def test_what_could_not_be_shown_or_changed_is_not_recorded(
    app: App, client: TestClient
) -> None:
    csrf = {"csrf": csrf_of(client.get("/memory").text)}
    assert client.post("/memory/facts/none/reveal", data=csrf).status_code == 404
    assert client.post("/memory/facts/none/restore", data=csrf).status_code == 404
    assert (
        client.post(
            "/followups/deliveries/resend", data=csrf | {"key": "none"}
        ).status_code
        == 404
    )
    assert client.get("/api/calls/none", params={"reveal": True}).status_code == 404
    assert client.post("/api/pins/none/unpin").status_code == 404
    stale = csrf | {"text": "mine", "was": "another"}
    assert client.post(f"/people/{CALLER}/profile", data=stale).status_code == 409
    assert deeds(app) == []


def test_a_call_that_is_revealed_is_recorded(app: App, client: TestClient) -> None:
    call = hold_call(app, BUG)
    assert (
        client.get(f"/api/calls/{call.id}", params={"reveal": True}).status_code == 200
    )
    assert deeds(app) == [("revealed", call.id)]


async def test_an_erasure_is_recorded_with_the_rows_it_removes(
    app: App, client: TestClient
) -> None:
    hold_call(app, BUG)
    record = await app.journal.open(make_live_call(caller=CALLER))
    csrf = {"csrf": csrf_of(client.get("/memory").text), "typed": CALLER}
    assert client.post(f"/people/{CALLER}/erase", data=csrf).status_code == 422
    assert deeds(app) == []
    await app.journal.seal(record, end_reason="caller_hung_up")
    assert client.post(f"/people/{CALLER}/erase", data=csrf).status_code == 200
    assert [deed for deed, _ in deeds(app)] == ["erased"]


def test_an_export_that_fails_is_not_recorded(app: App, tmp_path: Path) -> None:
    hold_call(app, BUG)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(RefusedInput, match="cannot be made"):
        app.exporter.export(CALLER, tmp_path / "file" / "out")
    assert deeds(app) == []
    app.exporter.export(CALLER, tmp_path / "out")
    assert deeds(app) == [("exported", "a caller")]


def test_follow_ups_are_listed_by_caller(app: App, client: TestClient) -> None:
    mine, other = hold_request(app), hold_request(app, "+15550142")
    asked = {
        caller: client.get("/api/followups", params={"caller": caller}).json()
        for caller in (CALLER, "+15550142", "+15550177")
    }
    assert {
        caller: [row["id"] for row in found["followups"]]
        for caller, found in asked.items()
    } == {
        CALLER: [mine.id],
        "+15550142": [other.id],
        "+15550177": [],
    }


@pytest.mark.parametrize(
    "path", ["/api/followups", "/api/calls", "/api/facts", "/api/health"]
)
def test_a_query_that_is_not_known_is_refused_by_name(
    client: TestClient, path: str
) -> None:
    answer = client.get(path, params={"callers": CALLER})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "callers")


@pytest.mark.parametrize("caller", ["Bob", "anonymous", ""])
def test_follow_ups_of_no_known_number_are_refused_not_everybodys(
    client: TestClient, caller: str
) -> None:
    answer = client.get("/api/followups", params={"caller": caller})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "caller")
