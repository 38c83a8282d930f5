"""Pins as people meet them: on the command line, over the API, on a caller's page."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from aftercall.app import App, build
from aftercall.cli.main import program
from aftercall.settings import Settings
from api_client import make_client
from fakes import START, VirtualClock, make_call
from recurring_callers import RECURRING

CALLER = "+15550142"
EVIL = "<script>alert('x')</script>"


def take_in(app: App) -> None:
    for day, said in enumerate(RECURRING["orlando"]):
        call = make_call(
            [("agent", "Hello!"), ("caller", said)],
            caller=CALLER,
            sid=f"c{day}",
            started_at=START + timedelta(days=day),
        )
        row, _ = app.journal.ingest(call)
        app.step_runner.run(row.live.id, "pins")


@pytest.fixture
def client(app: App) -> TestClient:
    take_in(app)
    return make_client(app, follow_redirects=False)


def test_the_api_lists_pins_edits_unpins_and_pins(client: TestClient, app: App) -> None:
    (pin,) = client.get("/api/pins", params={"caller": CALLER}).json()["pins"]
    assert (pin["title"], pin["state"], len(pin["history"])) == (
        "Orlando sale",
        "pinned",
        3,
    )
    assert (
        client.post(
            f"/api/pins/{pin['id']}/edit", json={"note": "my words\r\n"}
        ).json()["note"]
        == "my words\r\n"
    )
    assert client.post(f"/api/pins/{pin['id']}/unpin").json()["state"] == "unpinned"
    assert (
        client.post(f"/api/pins/{pin['id']}/pin").json()["reason"] == "pinned by hand"
    )
    made = client.post(
        "/api/pins", json={"caller": CALLER, "topic": "Dubai move"}
    ).json()
    assert client.get(f"/api/pins/{made['id']}").json()["title"] == "Dubai move"
    assert client.get("/api/pins/none").status_code == 404
    assert (
        client.post("/api/pins", json={"caller": CALLER, "topic": "the"}).status_code
        == 422
    )
    assert (
        client.post(
            "/api/pins", json={"caller": CALLER, "topic": "roof", "more": 1}
        ).status_code
        == 422
    )
    # a refused one is none
    assert [line.deed for line in app.audit.list_recent()] == ["edited"] * 4


def test_a_callers_page_shows_pins_and_takes_changes_from_our_own_form_only(
    client: TestClient, app: App
) -> None:
    page = client.get(f"/people/{CALLER}").text
    assert "Topics they keep coming back to" in page
    pin_id = client.get("/api/pins", params={"caller": CALLER}).json()["pins"][0]["id"]
    call_id = app.pins.get(pin_id).pin.history[0].call_id
    assert f'href="/calls/{call_id}"' in page
    csrf = re.findall(r'name="csrf" value="([0-9a-f]+)"', page)[0]
    was = re.findall(r'name="was" value="([0-9a-f]+)"', page)[0]
    path = f"/people/{CALLER}/pins/{pin_id}"
    assert client.post(path, data={"note": "no token", "was": was}).status_code == 403
    assert (
        client.post(
            path,
            data={
                "csrf": csrf,
                "note": f"\nmine {EVIL}\r\n",
                "was": was,
                "title": "Orlando sale",
            },
        ).status_code
        == 303
    )
    pin = app.pins.get(pin_id).pin
    assert (pin.note, pin.is_titled_by_hand) == (f"\nmine {EVIL}\n", False)
    assert EVIL not in client.get(f"/people/{CALLER}").text
    late = client.post(path, data={"csrf": csrf, "note": "later words", "was": was})
    assert late.status_code == 409
    assert "later words" in late.text
    assert app.pins.get(pin_id).pin.note == f"\nmine {EVIL}\n"
    assert client.post(f"{path}/unpinned", data={"csrf": csrf}).status_code == 303
    assert app.pins.get(pin_id).pin.state == "unpinned"
    assert client.post(f"{path}/thrown", data={"csrf": csrf}).status_code == 422
    assert (
        client.post(
            f"/people/{CALLER}/pins", data={"csrf": csrf, "topic": "the roof"}
        ).status_code
        == 303
    )
    assert len(app.pins.list_pages(app.pins.get(pin_id).pin.key)) == 2
    assert (
        client.post(
            f"/people/+15550199/pins/{pin_id}/pinned", data={"csrf": csrf}
        ).status_code
        == 422
    )


def test_the_command_line_shows_pins_unpins_and_edits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFTERCALL_HOME", str(tmp_path))
    monkeypatch.setenv("AFTERCALL_MEMORY_PIN_STALE_DAYS", "0")
    app = build(Settings(home=tmp_path), VirtualClock())
    take_in(app)
    app.close()
    runner = CliRunner()

    def run(*arguments: str, given: bytes | None = None) -> str:
        result = runner.invoke(program, ["memory", *arguments], input=given)
        assert result.exit_code == 0, result.output
        return result.stdout

    (pin,) = json.loads(run("pins", CALLER, "--json"))
    listed = run("pins", CALLER)
    assert "Orlando sale  pinned (spoken of in 3 conversations)" in listed
    assert pin["history"][0]["call"] in listed
    note = "  as I wrote it\r\n\tand no otherwise\n\n"
    assert (
        json.loads(run("edit-pin", pin["id"], "--json", given=note.encode()))["note"]
        == note
    )
    assert "is unpinned" in run("unpin", pin["id"])
    assert json.loads(run("pins", CALLER, "--json"))[0]["reason"] == "unpinned by hand"
    assert "Dubai move is pinned" in run("pin", CALLER, "Dubai move")
    assert "No topics" in run("pins", "+15550199")
