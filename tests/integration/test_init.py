"""`aftercall init` asks, tries the keys, and writes a settings file that nobody else can read."""

import os
import pty
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from aftercall.cli.main import program
from aftercall.config import list_settings
from aftercall.errors import ConfigError
from aftercall.lab.exchange import LabNumber
from aftercall.lab.server import Lab, make_exports
from loopback_server import lab_box

INIT = [sys.executable, "-m", "aftercall", "init"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with lab_box() as box:
        yield box


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's current folder, without any key in the environment."""
    monkeypatch.chdir(tmp_path)
    for _, env, _ in list_settings():
        monkeypatch.delenv(env, raising=False)


def init(*options: str, keys: dict[str, str] | None = None) -> Result:
    runner = CliRunner(env=(keys or {}) | {"COLUMNS": "200"})
    return runner.invoke(program, ["init", *options])


def read(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "aftercall.toml").read_text())


def test_a_script_writes_the_file_and_sees_what_each_key_did(
    tmp_path: Path, lab: Lab
) -> None:
    public = lab.address  # something answers there, and it is not Aftercall
    lab.exchange.numbers["+15550101"] = LabNumber(f"{public}/twilio/voice", "")
    exports = make_exports(lab, "+15550101")
    keys = exports["Twilio"] | exports["Anthropic"] | exports["Deepgram"]
    options = ["--phone", "twilio", "--engine", "deepgram", "--model", "anthropic"]
    options += ["--public-url", public, "--set", "timezone=Asia/Tokyo"]
    done = init(*options, keys=keys)
    assert done.exit_code == 0, done.stderr
    written = read(tmp_path)
    assert written["twilio"]["auth_token"] == "lab-token"
    assert (written["engine"], written["timezone"]) == ("deepgram", "Asia/Tokyo")
    assert written["model"].startswith("anthropic:claude")
    assert (tmp_path / "aftercall.toml").stat().st_mode & 0o777 == 0o600
    for told in (
        f"Twilio: a call comes in              {public}/twilio/voice",
        "takes the keys; the account is active",
        f"+15550101 leads to {public}/twilio/voice",
        "takes the key and opens a voice agent",
        "takes the key and knows claude",
    ):
        assert told in done.stdout
    assert "lab-token" not in done.stdout + done.stderr


def test_a_key_that_is_refused_is_written_reported_and_exits_1(
    tmp_path: Path, lab: Lab
) -> None:
    keys = make_exports(lab, "+15550101")["OpenAI"] | {"OPENAI_API_KEY": "wrong"}
    done = init("--phone", "none", "--model", "openai", keys=keys)
    assert done.exit_code == 1
    assert "set OPENAI_API_KEY to a valid one" in done.stdout
    assert read(tmp_path)["openai"]["api_key"] == "wrong"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "--phone: is one of lab, twilio"),
        (["--phone", "twillio"], "--phone: is one of lab, twilio"),
        (
            ["--phone", "vapi"],
            "vapi.webhook_secret: is missing; set VAPI_WEBHOOK_SECRET",
        ),
        (["--phone", "lab", "--model", "gpt"], "--model: is one of rules, anthropic"),
        (
            ["--phone", "lab", "--model", "rules", "--set", "x"],
            "--set x: is SETTING=VALUE",
        ),
        (
            ["--phone", "lab", "--model", "rules", "--set", "timezon=UTC"],
            "unknown setting 'timezon'; did you mean 'timezone'?",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named_and_nothing_is_written(
    tmp_path: Path, options: list[str], told: str
) -> None:
    done = init(*options)
    assert isinstance(done.exception, ConfigError)
    assert told in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_replaced_only_when_asked_to(
    tmp_path: Path,
) -> None:
    file = tmp_path / "aftercall.toml"
    file.write_text('owner = "+15550100"\n')
    done = init("--phone", "lab", "--model", "rules")
    assert "give --force to replace it" in str(done.exception)
    assert read(tmp_path) == {"owner": "+15550100"}
    forced = init("--phone", "lab", "--model", "rules", "--force")
    assert forced.exit_code == 0
    assert (read(tmp_path)["model"], file.stat().st_mode & 0o777) == ("rules", 0o600)


def test_at_a_terminal_it_asks_and_never_shows_a_secret(
    tmp_path: Path,
) -> None:
    answers = [
        ("Phone", "twillio"),
        ("Phone", "twilio"),
        ("TWILIO_ACCOUNT_SID", "AC1"),
        ("TWILIO_AUTH_TOKEN", "very-hidden"),
        ("TWILIO_PHONE_NUMBER", "+15550101"),
        ("Public address", ""),
        ("Engine", ""),
        ("Model", ""),
    ]
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*INIT, "--offline"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    shown = ""
    for prompt, answer in answers:
        shown += read_until(master, re.compile(rf"\n{prompt}[^\n]*: $"))
        os.write(master, f"{answer}\n".encode())
    shown += read_until(master, re.compile(r"Next: aftercall serve"))
    assert process.wait(20) == 0
    os.close(master)
    assert "--phone: is one of lab, twilio" in shown
    assert "No public address yet" in shown
    assert "very-hidden" not in shown
    assert read(tmp_path) == {
        "engine": "receptionist",
        "model": "rules",
        "twilio": {
            "account_sid": "AC1",
            "auth_token": "very-hidden",
            "phone_number": "+15550101",
        },
    }


def read_until(terminal: int, wanted: re.Pattern[str]) -> str:
    shown = ""
    while not wanted.search(shown):
        shown += os.read(terminal, 4096).decode().replace("\r", "")
    return shown
