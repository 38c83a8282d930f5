"""The agent's command: what it is given, and what is made of how it ends."""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import SinkRefused, SinkUnavailable
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings.providers import AgentSettings
from aftercall.work.sinks.command import AgentSink, read_results

WORK = SinkWork(
    key="abc:agent",
    purpose="request",
    kind="task",
    title="Order xylophones",
    archives=("/archive/one.json", "/archive/two.json"),
)


def run(home: Path, program: str, **settings: object) -> str | None:
    command = (sys.executable, "-c", program)
    return (
        AgentSink(AgentSettings.model_validate({"command": command, **settings}), home)
        .deliver(WORK)
        .link
    )


def kept(home: Path) -> Path:
    return home / "agent" / "abc-agent"


def test_it_gets_the_request_and_the_archives_but_not_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both come on its input and in a file."""
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
        ("raise SystemExit(3)", "exit code 3$", "3"),
        ("raise SystemExit('no such printer')", "exit code 1: no such printer$", "1"),
        ("print('at line 7'); raise SystemExit(2)", "exit code 2: at line 7$", "2"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9", "-9"),
        (
            "print('{\"state\": ]]] garbage'); print(b'\\xff')",
            "without a result line",
            "0",
        ),
        ("pass", "without a result line", "0"),
        (
            'print(\'{"state": "failed", "reason": "xylophones are sold out"}\')',
            "could not be done: xylophones are sold out$",
            "0",
        ),
        ("print('[' * 100000)", "without a result line", "0"),
    ],
)
def test_a_command_that_crashes_or_prints_garbage_fails_with_its_reason(
    tmp_path: Path, program: str, said: str, code: str
) -> None:
    """Its exit code is kept."""
    with pytest.raises(SinkRefused, match=said):
        run(tmp_path, program)
    assert (kept(tmp_path) / "exit_code").read_text() == f"{code}\n"


def test_a_command_that_hangs_is_ended_with_everything_it_started(
    tmp_path: Path,
) -> None:
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


def test_a_reason_holds_the_last_lines_of_standard_error_and_no_more(
    tmp_path: Path,
) -> None:
    program = (
        "import sys; [print(f'{number:04} ' + 'x' * 50, file=sys.stderr) for number in "
        "range(1000)]; sys.exit(9)"
    )
    with pytest.raises(SinkRefused) as wrong:
        run(tmp_path, program)
    assert "0999" in str(wrong.value)
    assert "0900" not in str(wrong.value)
    assert len(str(wrong.value)) < 600
    assert "0000" in (kept(tmp_path) / "errors.txt").read_text()


def test_a_result_may_be_written_into_a_file_and_an_old_one_does_not_count(
    tmp_path: Path,
) -> None:
    program = """
import os
print('{"state": "done", "link": ' + chr(10) + '"https://wrapped.example"}')
open(os.environ["AFTERCALL_RESULT_FILE"], "w").write('{"state": "done", "link": "https://x.example/8"}')
"""
    assert run(tmp_path, program) == "https://x.example/8"
    with pytest.raises(SinkRefused, match="without a result line"):
        run(tmp_path, "pass")


def test_the_last_result_counts_however_much_was_printed_before_it(
    tmp_path: Path,
) -> None:
    program = 'print(\'x\' * 3_000_000); print(\'{"state": "done", "link": "https://x.example/9"}\')'
    assert run(tmp_path, program) == "https://x.example/9"
    assert (kept(tmp_path) / "output.txt").stat().st_size <= 1_000_000


@pytest.mark.parametrize("end", ["", "raise SystemExit('gone')", "time.sleep(600)"])
def test_one_run_ends_each_request_by_itself(tmp_path: Path, end: str) -> None:
    program = f"""
import json, sys, time
asked = json.load(sys.stdin)
assert asked["archives"] == ["/archive/one.json", "/archive/two.json"]
paper, chairs, _ = (request["key"] for request in asked["requests"])
print(json.dumps({{"request": paper, "state": "done", "link": "https://x.example/paper"}}))
print(json.dumps({{"request": chairs, "state": "failed", "reason": "no chairs"}}))
print(json.dumps({{"state": "done", "note": "the rest"}}), flush=True)
{end}
"""
    sink = AgentSink(
        AgentSettings(command=(sys.executable, "-c", program), timeout_s=5), tmp_path
    )
    paper, chairs, lamp = sink.deliver_all(
        [replace(WORK, key=f"{key}:agent") for key in ("a", "b", "c")]
    )
    assert paper == SinkReceipt("https://x.example/paper")
    assert str(chairs) == "agent: the command says that it could not be done: no chairs"
    if end:
        assert isinstance(lamp, SinkRefused), (
            "what is said of all counts only if the command ends well"
        )
    else:
        assert lamp == SinkReceipt(None, "the rest")


@given(
    st.lists(
        st.text(max_size=30)
        | st.dictionaries(st.text(max_size=5), st.integers(), max_size=2).map(
            json.dumps
        ),
        max_size=5,
    )
)
def test_any_output_is_read_without_trouble(lines: list[str]) -> None:
    assert not read_results("\n".join(lines)) or any(
        '"state"' in line for line in lines
    )
    assert read_results("\n".join([*lines, '{"state": "done"}', "bye"]))[None] == {
        "state": "done"
    }
