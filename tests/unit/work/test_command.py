"""The agent's command: what it is given, and what is made of how it ends."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import SinkRefused, SinkUnavailable
from aftercall.model.followups import Work
from aftercall.settings import AgentSettings
from aftercall.work.sinks.command import AgentSink, last_result

WORK = Work(key="abc:agent", purpose="request", kind="task", title="Order xylophones", archives=("/archive/one.json", "/archive/two.json"))


def run(home: Path, program: str, **settings: object) -> str | None:
    command = (sys.executable, "-c", program)
    return AgentSink(AgentSettings.model_validate({"command": command, **settings}), home).deliver(WORK).link


def kept(home: Path) -> Path:
    return home / "agent" / "abc-agent"


def test_it_gets_the_request_and_all_archives_on_input_and_in_a_file_and_nothing_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "canary")
    monkeypatch.setenv("MY_TOOL", "yes")
    program = """
import json, os, sys
asked = json.load(sys.stdin)
assert asked == json.load(open(os.environ["AFTERCALL_REQUEST_FILE"]))
assert asked["archives"] == ["/archive/one.json", "/archive/two.json"]
assert asked["requests"][0]["title"] == "Order xylophones"
assert "GITHUB_TOKEN" not in os.environ and os.environ["MY_TOOL"] == "yes"
assert os.getcwd() == os.path.dirname(os.environ["AFTERCALL_REQUEST_FILE"])
print(json.dumps({"state": "done", "link": "https://x.example/7"}))
"""
    assert run(tmp_path, program, environment=["MY_TOOL"]) == "https://x.example/7"
    assert (kept(tmp_path) / "exit_code").read_text() == "0\n"
    assert "https://x.example/7" in (kept(tmp_path) / "output.txt").read_text()


@pytest.mark.parametrize(
    ("program", "said", "code"),
    [
        ("raise SystemExit(3)", "exit code 3", "3"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9", "-9"),
        ("print('{\"state\": ]]] garbage'); print(b'\\xff')", "without a result line", "0"),
        ("pass", "without a result line", "0"),
        ('print(\'{"state": "failed", "reason": "xylophones are sold out"}\')', "could not be done", "0"),
        ("print('[' * 100000)", "without a result line", "0"),
    ],
)
def test_a_command_that_crashes_or_prints_garbage_fails_with_its_reason_and_its_output_is_kept(
    tmp_path: Path, program: str, said: str, code: str
) -> None:
    with pytest.raises(SinkRefused, match=said) as wrong:
        run(tmp_path, program)
    assert "xylophones" not in str(wrong.value)
    assert (kept(tmp_path) / "exit_code").read_text() == f"{code}\n"


def test_a_command_that_hangs_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    program = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
print("started", flush=True)
time.sleep(600)
"""
    with pytest.raises(SinkRefused, match="was ended"):
        run(tmp_path, program, timeout_s=1.5)
    assert (kept(tmp_path) / "exit_code").read_text() == "timeout\n"
    assert "started" in (kept(tmp_path) / "output.txt").read_text()
    child = int((tmp_path / "child").read_text())
    while is_running(child):  # the system takes a moment to bury it
        time.sleep(0.01)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
        return b" Z " not in Path(f"/proc/{process}/stat").read_bytes()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_command_that_is_not_there_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(SinkUnavailable, match=r"check agent\.command"):
        AgentSink(AgentSettings(command=("/no/such/program",)), tmp_path).deliver(WORK)


@given(st.lists(st.text(max_size=30) | st.dictionaries(st.text(max_size=5), st.integers(), max_size=2).map(json.dumps), max_size=5))
def test_any_output_is_read_without_trouble(lines: list[str]) -> None:
    assert last_result("\n".join(lines)) is None or any('"state"' in line for line in lines)
    assert last_result("\n".join([*lines, '{"state": "done"}', "bye"])) == {"state": "done"}
