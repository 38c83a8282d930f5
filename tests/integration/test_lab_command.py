"""`aftercall lab` as a person uses it: rings their agent through either carrier, and says what
is wrong when it cannot.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI, Response
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercall.app import App
from aftercall.cli import lab as command
from aftercall.errors import ConfigError, RefusedInput
from aftercall.lab.exchange import LabNumber, parse_number
from aftercall.lab.server import make_exports, make_router
from aftercall.lab.server import make_server as make_lab_server
from aftercall.settings import Settings
from aftercall.settings.providers import TelnyxSettings, TwilioSettings
from aftercall.web.server import make_server
from loopback_server import listening, serve
from opened_apps import OpenApp

AFTERCALL = str(Path(sys.executable).with_name("aftercall"))


@pytest.fixture
def port() -> int:
    with listening() as (_, address):
        return int(address.rpartition(":")[2])


@pytest.fixture
def agent(tmp_path: Path, port: int, open_app: OpenApp) -> Iterator[tuple[App, str]]:
    """An agent pointed at a lab on `port`, with exactly what the lab says to set."""
    box = command.configure_lab(
        f"http://127.0.0.1:{port}",
        command.LabOptions("http://127.0.0.1:1", [], False, [], [], []),
    )
    told = {
        name: value
        for group in make_exports(box, command.OUR_NUMBER).values()
        for name, value in group.items()
    }
    with listening() as (listener, address):
        settings = Settings(
            home=tmp_path / "home",
            public_url=address,
            twilio=TwilioSettings(
                account_sid=told["TWILIO_ACCOUNT_SID"],
                auth_token=SecretStr(told["TWILIO_AUTH_TOKEN"]),
            ),
            telnyx=TelnyxSettings(
                api_key=SecretStr(told["TELNYX_API_KEY"]),
                public_key=told["TELNYX_PUBLIC_KEY"],
                api_url=told["AFTERCALL_TELNYX_API_URL"],
            ),
        )
        app = open_app(settings)
        for _ in serve(make_server(app), listener, address):
            yield app, address


def run(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [AFTERCALL, "lab", *words],
        capture_output=True,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout + done.stderr


def test_both_carriers_ring_the_agent_and_show_what_is_said(
    agent: tuple[App, str], port: int
) -> None:
    app, address = agent
    for carrier in ("twilio", "telnyx"):
        words = [
            "--port",
            str(port),
            "--agent",
            address,
            "--ring",
            "+15550100",
            "--carrier",
            carrier,
            "--say",
            "Please call the plumber.",
        ]
        code, shown = run(*words, "--say", "That's all, bye!")
        assert code == 0, shown
        assert "caller  Please call the plumber." in shown
        assert "Goodbye!" in shown
    assert sorted(row.live.source for row in app.store.list_page(limit=5)) == [
        "telnyx",
        "twilio",
    ]


def test_an_agent_that_is_not_there_is_a_plain_failure(port: int) -> None:
    code, shown = run(
        "--port",
        str(port),
        "--agent",
        "http://127.0.0.1:9",
        "--ring",
        "+15550100",
        "--say",
        "Hi",
    )
    assert code == 1
    assert shown.splitlines()[-1] == (
        "aftercall: lab: the call failed: 11200: no answer from the webhook "
        "http://127.0.0.1:9/twilio/voice (ConnectError)"
    )


@contextmanager
def hanging_up_agent() -> Iterator[tuple[str, list[str]]]:
    """Its address, and the paths that were asked for: it hangs up on everybody."""
    asked: list[str] = []
    app = FastAPI()

    @app.post("/{path:path}")
    async def hang_up(path: str) -> Response:
        asked.append(path)
        twiml = "<Response><Hangup/></Response>"
        return Response(twiml, media_type="text/xml")

    with listening() as (listener, address):
        for _ in serve(app, listener, address):
            yield address, asked


def test_the_agent_of_one_ring_is_not_kept_for_the_next() -> None:
    with hanging_up_agent() as (usual, usual_paths), hanging_up_agent() as (other, _):
        numbers = [f"{command.OUR_NUMBER}={usual}/voice"]
        options = command.LabOptions(command.AGENT, numbers, False, [], [], [])
        box = command.configure_lab("http://testserver", options)
        app = make_lab_server(box)
        app.include_router(make_router(box))
        with TestClient(app) as client:
            client.post("/lab/calls", json={"agent": other}).raise_for_status()
            assert usual_paths == []
            client.post("/lab/calls", json={}).raise_for_status()
            assert usual_paths[0] == "voice"


def test_wrong_use_is_said(port: int) -> None:
    assert run("--port", str(port), "--carrier", "pigeon") == (
        2,
        "aftercall: lab: --carrier is one of twilio, telnyx, elevenlabs, vapi, retell, bland\n",
    )
    code, shown = run("--port", str(port), "--number", "+15550101=asleep")
    assert (code, shown.count("\n")) == (1, 1)
    assert "busy, no-answer, failed, voicemail" in shown


def test_habits_are_asked_for_by_kind() -> None:
    habits = command.parse_delivery_faults(["completed"], ["initiated=2.5"])
    assert (
        habits.delivery_count("completed"),
        habits.delivery_count("ringing"),
        habits.delay_s("initiated"),
        habits.delay_s("x"),
    ) == (2, 1, 2.5, 0.0)
    for wrong in ("initiated", "initiated=soon"):
        with pytest.raises(ConfigError, match="KIND=SECONDS"):
            command.parse_delivery_faults([], [wrong])


@pytest.mark.parametrize(
    ("spec", "number"),
    [
        (
            "+15550101=http://x.example/twilio/voice",
            LabNumber(
                "http://x.example/twilio/voice", "http://x.example/twilio/status"
            ),
        ),
        ("+15550101=https://x.example/answer", LabNumber("https://x.example/answer")),
        ("+15550101=busy", LabNumber(outcome="busy")),
    ],
)
def test_a_number_is_an_address_or_an_outcome(spec: str, number: LabNumber) -> None:
    assert parse_number(spec) == ("+15550101", number)


@pytest.mark.parametrize(
    "spec",
    [
        "five",
        "5=busy",
        "+15550101",
        "+15550101=",
        "+15550101=asleep",
        "+15550101=ftp://x",
    ],
)
def test_anything_else_is_refused(spec: str) -> None:
    with pytest.raises(RefusedInput, match="--number"):
        parse_number(spec)
