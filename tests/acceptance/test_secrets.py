"""A canary over a whole run: what was said in confidence stands in the sealed archive, and
nowhere else.
"""

import re
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aftercall.app import build
from aftercall.cli.main import program
from aftercall.log import configure_logs
from aftercall.model.calls import encode_call
from aftercall.model.reading import OPEN_STATES
from aftercall.settings import Settings
from api_client import JSON, make_client
from fakes import make_call

SAID = [
    ("agent", "Hello, this is Wren. What can I do for you?"),
    (
        "caller",
        "Hi, this is Bill Harker. I prefer mornings. My PIN is four eight two one.",
    ),
    ("agent", "4821, thank you."),
    ("caller", "I was diagnosed with lupus last week, and I live in Porto."),
    (
        "caller",
        "My card number is 4111 1111 1111 1111, please book a table for four tomorrow.",
    ),
    ("caller", "The wifi password is sunflowerseven. And I like tea."),
    ("agent", "I will book the table."),
]
CANARIES = (
    "four eight two one",
    "4821",
    "lupus",
    "4111 1111",
    "4111111111111111",
    "sunflowerseven",
)
PATIENCE_S = 60


def sung(text: str) -> list[str]:
    """Those that stand alone: figures of metrics and ids may hold any four digits."""
    return [
        canary
        for canary in CANARIES
        if re.search(rf"(?<![\w.]){re.escape(canary)}(?!\w)", text)
    ]


@pytest.mark.timeout(180)
def test_secrets_are_in_the_archive_and_nowhere_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    configure_logs(level="debug")
    app = build(Settings(home=home))
    call = make_call(SAID)
    with make_client(app) as client:
        posted = client.post("/api/calls", content=encode_call(call), headers=JSON)
        call_id = posted.json()["id"]
        until = time.monotonic() + PATIENCE_S
        while any(
            step["state"] in OPEN_STATES
            for step in client.get(f"/api/calls/{call_id}").json()["steps"]
            or [{"state": "waiting"}]
        ):
            assert time.monotonic() < until
            time.sleep(0.05)
        shown = client.get(f"/api/calls/{call_id}").json()
        facts = client.get("/api/facts").json()["facts"]
        routes = [
            "/api/calls",
            f"/api/calls/{call_id}",
            "/api/facts",
            "/api/briefing?caller=%2B15550100",
            "/",
            "/metrics",
        ]
        answers = [
            client.get(route).text
            for route in (*routes, *(f"/api/facts/{fact['id']}" for fact in facts))
        ]
        assert sung(client.get(f"/api/calls/{call_id}?reveal=true").text) != []
        app.database.truncate_wal()
        assert bytes_with_canaries(home) == {}
    app.close()
    assert {
        step["state"] for step in shown["steps"] if step["name"] in ("summary", "facts")
    } == {"done"}
    secrets = [fact["id"] for fact in facts if fact["visibility"] == "secret"]
    assert (
        len(secrets),
        {fact["content"] for fact in facts if fact["id"] in secrets},
    ) == (
        4,
        {"(secret)"},
    )
    assert "I prefer mornings" in str(facts)
    assert sung("".join(answers)) == []
    monkeypatch.setenv("AFTERCALL_HOME", str(home))
    commands = [
        ["facts", "list"],
        ["facts", "export"],
        ["calls", "show", call_id],
        ["calls", "show", call_id, "--json"],
        ["briefing", "+15550100"],
    ]
    for command in [
        *commands,
        *(["facts", "show", fact] for fact in secrets),
        *(["facts", "history", fact] for fact in secrets),
    ]:
        answer = CliRunner().invoke(program, command)
        assert (answer.exit_code, sung(answer.output)) == (0, []), command
    assert bytes_with_canaries(home) == {}
    revealed = "".join(
        CliRunner().invoke(program, ["facts", "show", fact, "--reveal"]).stdout
        for fact in secrets
    )
    assert set(sung(revealed)) >= {
        "four eight two one",
        "lupus",
        "4111 1111",
        "sunflowerseven",
    }
    assert sung(capfd.readouterr().err) == []
    assert (
        sung("".join(file.read_text() for file in (home / "archive").glob("*.json")))
        != []
    )


def bytes_with_canaries(home: Path) -> dict[str, list[str]]:
    """Every file of the home but the archive: databases with what they write ahead, workspace,
    key.
    """
    files = [
        file
        for file in home.rglob("*")
        if file.is_file() and "archive" not in file.relative_to(home).parts
    ]
    found = {
        str(file.relative_to(home)): sung(file.read_bytes().decode("utf-8", "replace"))
        for file in files
    }
    return {name: canaries for name, canaries in found.items() if canaries}
