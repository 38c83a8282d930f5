"""The tester as a user meets it: the library against our own receptionist, a broken agent found
out, two runs compared.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aftercall.cli.main import program
from aftercall.cli.test_run import open_receptionist
from aftercall.clock import SystemClock
from aftercall.errors import DialRefused, UnknownTestName
from aftercall.settings import Settings
from aftercall.tester.library import find_scenarios, list_scenarios
from aftercall.tester.suite import SuiteParts, run_suite
from aftercall.tester.target import CallSetup
from fakes import make_call
from unit.tester.calls import said_by_agent


def aftercall(home: Path, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(program, list(words), env={"AFTERCALL_HOME": str(home)})
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


async def test_the_whole_library_is_run_against_the_receptionist() -> None:
    clock = SystemClock()
    with open_receptionist(CallSetup(clock), Settings()) as target:
        scored = await run_suite(list_scenarios(), target, SuiteParts(clock))
    verdicts = {item.scenario.name: item.verdict for item in scored}
    assert len(verdicts) >= 20
    assert {
        finding.who
        for item in scored
        for finding in item.findings
        if finding.severity != "info"
    } <= {"agent"}
    assert (
        verdicts["memory_across_calls"]
        == verdicts["no_leak_across_callers"]
        == verdicts["edge_prompt_injection"]
        == "passed"
    )
    assert all(item.records[0].outcome == "answered" for item in scored)


async def test_a_caller_is_remembered_and_nobody_else_is_told() -> None:
    clock = SystemClock()
    scenarios = find_scenarios(
        ["memory_across_calls", "no_leak_across_callers"]
    ).scenarios
    with open_receptionist(CallSetup(clock), Settings()) as target:
        memory, leak = await run_suite(scenarios, target, SuiteParts(clock))
    assert "blue folder" in said_by_agent(memory.records[1])
    assert "lantern" in said_by_agent(leak.records[0])
    assert "lantern" not in said_by_agent(leak.records[1])
    assert leak.verdict == "passed"


def test_a_broken_agent_is_found_out_and_two_runs_are_compared(tmp_path: Path) -> None:
    run = (
        "test",
        "run",
        "-s",
        "appointment_scheduling",
        "-s",
        "opening_hours",
        "--runs",
        "2",
    )
    good = json.loads(aftercall(tmp_path, *run, "--agent", "practice", "--json"))
    bad = json.loads(
        aftercall(tmp_path, *run, "--agent", "practice:asks_again", "--json", code=1)
    )
    folder = tmp_path / "tests" / bad["id"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "BUG_REPORT.md",
        "calls",
        "junit.xml",
        "raw.json",
        "report.html",
        "report.json",
    ]
    assert "Shortest list of steps" in (folder / "BUG_REPORT.md").read_text()
    assert (good["passed"], bad["failed"]) == (4, 2)
    assert "undecided" in aftercall(tmp_path, "test", "compare", good["id"], bad["id"])
    call = bad["results"][0]["calls"][0]["id"]
    assert "[name]" in aftercall(tmp_path, "test", "show", call)


def test_a_kept_call_becomes_a_scenario_and_runs(tmp_path: Path) -> None:
    call = make_call(
        [
            ("agent", "Hello!"),
            ("caller", "Please book a table for Tuesday."),
            ("agent", "Done."),
        ]
    )
    file = tmp_path / "call.json"
    file.write_text(call.model_dump_json(by_alias=True))
    aftercall(tmp_path, "ingest", str(file))
    aftercall(tmp_path, "test", "from-call", call.id, "--name", "table", "--save")
    assert "passed" in aftercall(tmp_path, "test", "run", "-s", "table")


def test_wrong_use_is_one_line_and_exit_two(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "name: bad\ngoal: x\nlimits:\n  max_turns: many\n"
    )
    arguments = [sys.executable, "-m", "aftercall", "test", "run", "-s", "bad.yaml"]
    done = subprocess.run(
        arguments,
        env=os.environ | {"AFTERCALL_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "aftercall: bad.yaml:4: limits.max_turns: is not a whole number\n",
    )


def test_a_scenario_that_does_not_exist_is_wrong_use(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        program,
        ["test", "run", "-s", "opening_ours"],
        env={"AFTERCALL_HOME": str(tmp_path)},
    )
    assert isinstance(done.exception, UnknownTestName)
    assert done.exception.exit_code == 2
    assert "did you mean 'opening_hours'?" in str(done.exception)


def test_a_number_that_is_not_on_the_list_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        program,
        ["test", "run", "--agent", "+15550177"],
        env={"AFTERCALL_HOME": str(tmp_path)},
    )
    assert isinstance(done.exception, DialRefused)
    assert "is not on the allow-list" in str(done.exception)


@pytest.mark.parametrize(
    "chosen", [["{folder}/"], ["{folder}/bad.yaml", "{folder}/good.yaml"]]
)
def test_a_broken_file_is_reported_and_the_others_run(
    tmp_path: Path, chosen: list[str]
) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "good.yaml").write_text(
        "name: good\ngoal: x\nturns: [{say: 'So, when are you open?', expect: {said: eight}}]\n"
    )
    (folder / "bad.yaml").write_text("name: bad\nnotes: talk\nlimit: {}\n")
    options = [word for name in chosen for word in ("-s", name.format(folder=folder))]
    words = ["test", "run", *options, "--agent", "practice", "--json"]
    done = CliRunner().invoke(program, words, env={"AFTERCALL_HOME": str(tmp_path)})
    assert done.exit_code == 2, (done.output, done.exception)
    report = json.loads(done.stdout)
    assert (done.exit_code, report["passed"], report["runs"]) == (2, 1, 1)
    assert done.stderr == (
        f"aftercall: {folder / 'bad.yaml'}:3: limit: is not a known field; did you mean 'limits'?\n"
    )
    assert report["refused"][0]["line"] == 3
    listed = CliRunner().invoke(
        program, ["test", "list"], env={"AFTERCALL_HOME": str(tmp_path)}
    )
    assert (
        listed.exit_code,
        "good" in listed.stdout,
        "bad.yaml:3" in listed.stderr,
    ) == (
        2,
        True,
        True,
    )
