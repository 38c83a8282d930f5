"""The tester is killed: a call that was paid for counts as spent, spoken turns are on disk, and
the run is resumed.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from aftercall.cli.main import program
from aftercall.clock import SystemClock
from aftercall.tester.drivers.dialer import SpendingLimit

SCRIPT = """
import sys
from pathlib import Path
from aftercall.clock import SystemClock
from aftercall.tester.drivers.dialer import SpendingLimit

SpendingLimit(Path(sys.argv[1]), 1.0, 0.1, SystemClock()).reserve(300)
print("dialled")
"""


def test_a_crash_before_the_call_leaves_it_paid(tmp_path: Path) -> None:
    file = tmp_path / "spent.json"
    environment = os.environ | {"AFTERCALL_FAULT": "tester.after_reserve"}
    killed = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    assert SpendingLimit(file, 1.0, 0.1, SystemClock()).spent == 0.5


SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
SCENARIOS = (
    ["all"]
    if SOAK
    else [
        "appointment_scheduling",
        "cancel_appointment",
        "edge_change_of_mind",
        "edge_two_requests",
        "insurance_question",
        "leave_a_message",
        "memory_across_calls",
        "prescription_refill",
    ]
)
SUITE = (
    "test",
    "run",
    *(word for name in SCENARIOS for word in ("-s", name)),
    "--agent",
    "practice:asks_again",
    "--no-shrink",
    "--parallel",
    "2",
)


def aftercall(home: Path, *words: str) -> str:
    """A command in this process, which has paid for its imports already."""
    return (
        CliRunner()
        .invoke(program, list(words), env={"AFTERCALL_HOME": str(home)})
        .stdout
    )


def content_of(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what differs between any two runs: ids and times of day."""
    kept = {
        key: report[key]
        for key in ("target", "runs", "passed", "failed", "rates", "calibration")
    }
    results = [
        result
        | {
            "calls": [
                {
                    key: value
                    for key, value in call.items()
                    if key not in ("id", "started_at")
                }
                for call in result["calls"]
            ]
        }
        for result in report["results"]
    ]
    return kept | {"results": results}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("undisturbed")
    return content_of(json.loads(aftercall(home, *SUITE, "--json")))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "point",
    [
        "tester.after_turn:60",
        "tester.after_calls:5",
        "tester.after_scenario:5",
        "tester.after_ledger",
    ],
)
def test_a_killed_run_keeps_its_turns_and_is_resumed(
    tmp_path: Path, undisturbed: dict[str, Any], point: str
) -> None:
    environment = os.environ | {
        "AFTERCALL_HOME": str(tmp_path),
        "AFTERCALL_FAULT": point,
    }
    command = [sys.executable, "-m", "aftercall", *SUITE]
    assert (
        subprocess.run(
            command, env=environment, capture_output=True, check=False
        ).returncode
        == -signal.SIGKILL
    )

    cut = json.loads(aftercall(tmp_path, "test", "show", "last", "--json", "--reveal"))
    assert (
        cut["is_finished"],
        "unfinished" in aftercall(tmp_path, "test", "show"),
    ) == (
        False,
        True,
    )
    finished = [call["turns"] for result in cut["results"] for call in result["calls"]]
    if point.startswith("tester.after_turn"):
        turns = sum(map(len, finished)) + sum(
            len(call["turns"]) for call in cut["unfinished_calls"]
        )
        assert turns >= 60
        call = max(cut["unfinished_calls"], key=lambda call: len(call["turns"]))
        shown = aftercall(tmp_path, "test", "show", call["id"], "--reveal")
        assert [
            turn["text"] for turn in call["turns"] if turn["text"] not in shown
        ] == []
    if point.startswith("tester.after_calls"):
        kept = {path.stem for path in tmp_path.glob("tests/*/calls/*.json")}
        done = {call["id"] for result in cut["results"] for call in result["calls"]}
        assert kept - done
        assert kept <= done | {call["id"] for call in cut["unfinished_calls"]}, (
            "a call kept before its line is shown"
        )

    resumed = json.loads(
        aftercall(tmp_path, "test", "run", "--resume", "last", "--json")
    )
    assert resumed["id"] == cut["id"]
    assert content_of(resumed) == undisturbed
    before = {call["id"] for result in cut["results"] for call in result["calls"]}
    assert before <= {
        call["id"] for result in resumed["results"] for call in result["calls"]
    }, "what was finished is kept"
    bugs = json.loads((tmp_path / "tests" / "ledger.json").read_text())["bugs"]
    failed = [
        result
        for result in resumed["results"]
        if "asks_again" in {finding["kind"] for finding in result["findings"]}
    ]
    assert [
        (bug["runs"], bug["seen"]) for bug in bugs if bug["kind"] == "asks_again"
    ] == [(1, len(failed))]
    assert json.loads(aftercall(tmp_path, "test", "show", "last", "--json"))[
        "is_finished"
    ]
