"""The tester by phone as a user has it: a lab in one terminal, their agent in another, and
commands in a third.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aftercall.cli.main import program
from command_process import start_command
from loopback_server import listening

pytestmark = pytest.mark.timeout(300)
AFTERCALL = str(Path(sys.executable).with_name("aftercall"))
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("AFTERCALL_", "TWILIO_", "TELNYX_", "OPENAI_"))
}
PHONE = "+15550101"


@contextmanager
def started(*words: str, until: str, **environment: str) -> Iterator[list[str]]:
    """A command that goes on until it is stopped; what it said until it was ready."""
    process, printed = start_command(
        words, CLEAN | {"COLUMNS": "200"} | environment, Path.cwd()
    )
    told: list[str] = []
    try:
        for line in printed:
            told.append(line.rstrip("\n"))
            if until in line:
                break
        yield told
    finally:
        process.terminate()
        process.join(20)
        printed.close()


def free_port() -> str:
    with listening() as (_, address):
        return address.rpartition(":")[2]


@dataclass
class Desk:
    """The third terminal."""

    home: Path
    environment: dict[str, str]

    def run(self, *words: str, code: int = 0) -> str:
        """In this process, which has paid for its imports already."""
        done = CliRunner().invoke(
            program, ["test", *words], env=CLEAN | self.environment
        )
        assert done.exit_code == code, (done.output, done.exception)
        return done.output

    def type(self, *words: str, code: int = 0) -> str:
        """As a command of its own."""
        done = subprocess.run(
            [AFTERCALL, "test", *words],
            env=CLEAN | self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("phone")
    agent, hooks, lab = free_port(), free_port(), free_port()
    numbers = [
        f"--number=+1555019{at}={outcome}"
        for at, outcome in enumerate(("busy", "no-answer", "failed", "voicemail"))
    ]
    with started(
        "lab",
        "--port",
        lab,
        "--agent",
        f"http://127.0.0.1:{agent}",
        *numbers,
        until="Ring it",
    ) as told:
        pairs = [
            line.removeprefix("export ").partition("=")
            for line in told
            if line.startswith("export ")
        ]
        box = {
            name: value.strip("'")
            for name, _, value in pairs
            if "TWILIO" in name or name.startswith("OPENAI")
        }
        ours = {
            "AFTERCALL_HOME": str(folder / "agent"),
            "AFTERCALL_PUBLIC_URL": f"http://127.0.0.1:{agent}",
        }
        ours |= {"AFTERCALL_ENGINE": "receptionist", "AFTERCALL_MODEL": "rules"}
        with started("serve", "--port", agent, until="listens on", **box, **ours):
            home = folder / "tester"
            environment = {
                **box,
                "AFTERCALL_HOME": str(home),
                "AFTERCALL_PUBLIC_URL": f"http://127.0.0.1:{hooks}",
                "AFTERCALL_TESTER_PORT": hooks,
                "AFTERCALL_TESTER_ALLOW_NUMBERS": ",".join(
                    [PHONE, *(f"+1555019{at}" for at in range(4))]
                ),
                "AFTERCALL_TESTER_WHISPER": "true",
                "TWILIO_PHONE_NUMBER": "+15550188",
                "COLUMNS": "200",
            }
            yield Desk(home, environment)


def test_a_caller_interrupts_an_agent_by_phone(tmp_path: Path) -> None:
    agent, hooks, lab = free_port(), free_port(), free_port()
    reply = "--reply=You are booked for Monday at eleven."
    with started(
        "lab",
        "--port",
        lab,
        "--agent",
        f"http://127.0.0.1:{agent}",
        reply,
        # an agent that talks on after a goodbye is at fault
        "--reply=You're welcome. Goodbye!",
        "--reply=Goodbye!",
        until="Ring it",
    ) as told:
        pairs = [
            line.removeprefix("export ").partition("=")
            for line in told
            if line.startswith("export ")
        ]
        box = {name: value.strip("'") for name, _, value in pairs}
        box = {
            name: value
            for name, value in box.items()
            if name.startswith(("TWILIO", "AFTERCALL_TWILIO", "OPENAI"))
        }
        ours = {
            "AFTERCALL_HOME": str(tmp_path / "agent"),
            "AFTERCALL_PUBLIC_URL": f"http://127.0.0.1:{agent}",
        }
        with started(
            "serve",
            "--port",
            agent,
            until="listens on",
            AFTERCALL_ENGINE="openai",
            AFTERCALL_MODEL="rules",
            **box,
            **ours,
        ):
            environment = {
                **box,
                "AFTERCALL_HOME": str(tmp_path / "tester"),
                "AFTERCALL_PUBLIC_URL": f"http://127.0.0.1:{hooks}",
                "AFTERCALL_TESTER_PORT": hooks,
                "AFTERCALL_TESTER_ALLOW_NUMBERS": PHONE,
                "AFTERCALL_TESTER_PHONE_MODE": "media",
                "TWILIO_PHONE_NUMBER": "+15550188",
            }
            desk = Desk(tmp_path / "tester", environment)
            report = json.loads(
                desk.type(
                    "run",
                    "-s",
                    "edge_barge_in",
                    "--agent",
                    PHONE,
                    "--voice",
                    "words",
                    "--json",
                )
            )
            kept = CliRunner().invoke(
                program, ["calls", "list", "--json"], env=CLEAN | ours
            )
            shown = CliRunner().invoke(
                program,
                ["calls", "show", json.loads(kept.output)[0]["id"], "--json"],
                env=CLEAN | ours,
            )
    (result,) = report["results"]
    greeting, interruption, answer = result["calls"][0]["turns"][:3]
    assert result["verdict"] == "passed", result
    assert (
        interruption["text"]
        == "I'd like to book an appointment for Monday at eleven, please."
    )
    assert (
        greeting["start_s"]
        < interruption["start_s"]
        < greeting["end_s"]
        < interruption["end_s"]
    ), "both speak; the agent yields"
    assert answer["text"] == "You are booked for Monday at eleven."
    turns = json.loads(shown.output)["turns"]
    assert turns[1]["text"] == interruption["text"], (
        "the agent heard what was said over its words"
    )
    assert turns[0]["text"].startswith(greeting["text"]), (
        "it knows how far it was heard"
    )


def test_a_caller_with_sound_interrupts_an_agent_that_answers_in_twiml(
    desk: Desk,
) -> None:
    home = desk.home.with_name("sound")
    media = {"AFTERCALL_HOME": str(home), "AFTERCALL_TESTER_PHONE_MODE": "media"}
    with_sound = Desk(home, desk.environment | media)
    report = json.loads(
        with_sound.run("run", "-s", "edge_barge_in", "--agent", PHONE, "--json")
    )
    agents_home = {"AFTERCALL_HOME": str(desk.home.with_name("agent"))}
    kept = CliRunner().invoke(
        program, ["calls", "list", "--json"], env=CLEAN | agents_home
    )
    newest = json.loads(kept.output)[0]["id"]
    shown = CliRunner().invoke(
        program, ["calls", "show", newest, "--json"], env=CLEAN | agents_home
    )
    prompt, understood = (
        turn["text"] for turn in json.loads(shown.output)["turns"][:2]
    )
    (result,) = report["results"]
    (call,) = result["calls"]
    greeting, interruption, answer = call["turns"][:3]
    assert (result["verdict"], call["measures"]["barge_ins"]) == ("passed", 1), result
    assert (
        greeting["start_s"]
        < interruption["start_s"]
        < greeting["end_s"]
        < interruption["end_s"]
    )
    assert prompt.startswith(greeting["text"])
    assert len(greeting["text"]) < len(prompt), "it yields before its end"
    assert understood == interruption["text"], "it heard what was said over its words"
    assert "book an appointment for Monday at eleven" in answer["text"]


def test_a_number_is_dialled_talked_to_recorded_and_shown(desk: Desk) -> None:
    assert "appointment_scheduling" in desk.type("list")
    assert "1 passed" in desk.type(
        "run", "--scenario", "appointment_scheduling", "--agent", PHONE
    )
    (file,) = desk.home.glob("tests/*/calls/*.json")
    call = json.loads(file.read_text())
    turns = call["turns"]
    assert [turn["who"] for turn in turns][:4] == ["agent", "caller", "agent", "caller"]
    assert {turn["confidence"] for turn in turns if turn["who"] == "agent"} == {0.92}
    assert all(
        turn["end_s"] - turn["start_s"] > 0.3 and not turn["is_estimated"]
        for turn in turns
    )
    assert all(
        turn["start_s"] - before["end_s"] >= 1.0 for before, turn in pairwise(turns)
    ), "polite pauses"
    assert call["measures"]["latency_s"] == [1.0]
    assert call["whisper"]["segments"]
    assert file.with_suffix(".wav").read_bytes().startswith(b"RIFF")
    shown = desk.type("show", call["sid"])
    assert "(0.92)" in shown
    assert "second transcript (Whisper: english, 4.0 s)" in shown
    assert str(file.with_suffix(".wav")) in shown
    assert desk.run("show", call["id"]) == shown


@pytest.mark.parametrize(
    ("number", "outcome"),
    [("+15550190", "busy"), ("+15550191", "no-answer"), ("+15550192", "failed")],
)
def test_a_call_that_does_not_come_about_is_nobodys_bug(
    desk: Desk, number: str, outcome: str
) -> None:
    report = json.loads(desk.run("run", "--agent", number, "--json", code=1))
    (result,) = report["results"]
    assert (result["verdict"], result["calls"][0]["outcome"], report["failed"]) == (
        "inconclusive",
        outcome,
        0,
    )


def test_a_mailbox_is_known_by_its_words(desk: Desk) -> None:
    report = json.loads(desk.run("run", "--agent", "+15550193", "--json", code=1))
    assert [
        (result["verdict"], result["calls"][0]["outcome"])
        for result in report["results"]
    ] == [("inconclusive", "voicemail")]


def test_an_interruption_that_this_line_cannot_carry_decides_nothing(
    desk: Desk,
) -> None:
    report = json.loads(
        desk.run("run", "-s", "edge_barge_in", "--agent", PHONE, "--json", code=1)
    )
    (result,) = report["results"]
    assert result["verdict"] == "inconclusive"
    assert "not_interrupted" in {finding["kind"] for finding in result["findings"]}
    assert {finding["who"] for finding in result["findings"]} == {"tester"}
    assert any(
        turn["text"].startswith("I'd like to book")
        for turn in result["calls"][0]["turns"]
    )
