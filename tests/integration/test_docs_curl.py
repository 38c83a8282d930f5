"""Every `curl` command in the README and the how-tos works as it is printed."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopback_server import ACCOUNT, TOKEN, lab_box
from server_process import serving

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
]


def find_commands(page: str) -> Iterator[str]:
    """Commands in code blocks; one goes on while a quote is open or a line ends with a
    backslash.
    """
    for block in re.findall(r"^```\w*\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        lines = iter(block.splitlines())
        for line in lines:
            command = line
            while command.startswith("curl ") and not is_whole(command):
                command += "\n" + next(lines)
            if command.startswith("curl "):
                yield command


def is_whole(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return not command.endswith("\\")


COMMANDS = [
    (page.name, command)
    for page in PAGES
    for command in find_commands(page.read_text())
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("docs")


@pytest.fixture(scope="module")
def addresses(home: Path) -> Iterator[dict[str, str]]:
    with (
        serving(home, AFTERCALL_MODEL="rules") as server,
        lab_box() as lab,
    ):
        yield {"http://127.0.0.1:8080": server, "http://127.0.0.1:8090": lab.address}


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_printed_curl_command_works(
    addresses: dict[str, str], home: Path, page: str, command: str
) -> None:
    for printed, real in addresses.items():
        command = command.replace(printed, real)
    environment = os.environ | {
        "TWILIO_ACCOUNT_SID": ACCOUNT,
        "TWILIO_AUTH_TOKEN": TOKEN,
        "AFTERCALL_HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    script = (
        'curl() { command curl --fail-with-body --noproxy "*" --max-time 60 "$@"; }'
        f"\n{command}"
    )
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (page, done.stdout, done.stderr)


def test_there_are_commands_to_try() -> None:
    assert {"keep-a-call.md", "remem.md", "lab.md"} <= {page for page, _ in COMMANDS}
