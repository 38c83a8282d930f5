"""Long calls are read in a process of their own, short ones in the thread that asks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftercall.llm.long_calls import MIN_LONG_CALL_CHARS, ReadingProcess
from aftercall.llm.rules.reader import RulesReader
from fakes import make_call
from reading_jobs import fail, tell_process

SHORT = make_call([("agent", "Hello!"), ("caller", "Please call the plumber.")])
LONG = make_call(
    [("agent", "Hello!"), ("caller", "Please call the plumber. " + "Well. " * 4_000)]
)
DEADLY = make_call([("caller", "die " * MIN_LONG_CALL_CHARS)])
HERE = os.getpid()


@pytest.fixture
def process() -> Iterator[ReadingProcess]:
    made = ReadingProcess()
    yield made
    made.close()


def test_a_short_call_is_read_here_and_a_long_one_elsewhere(
    process: ReadingProcess,
) -> None:
    assert process.read(tell_process, SHORT).summary == str(HERE)
    elsewhere = process.read(tell_process, LONG).summary
    assert elsewhere != str(HERE)
    assert process.read(tell_process, LONG).summary == elsewhere


def test_a_reading_is_the_same_wherever_it_is_made(process: ReadingProcess) -> None:
    assert RulesReader(process).read(LONG) == RulesReader().read(LONG)


def test_a_failure_is_told_and_the_process_goes_on(process: ReadingProcess) -> None:
    before = process.read(tell_process, LONG)
    with pytest.raises(ValueError, match="2 turns"):
        process.read(fail, LONG)
    assert process.read(tell_process, LONG) == before


def test_a_call_whose_process_dies_is_read_here_and_the_next_gets_a_new_one(
    process: ReadingProcess,
) -> None:
    first = process.read(tell_process, LONG).summary
    assert process.read(tell_process, DEADLY).summary == str(HERE)
    assert process.read(tell_process, LONG).summary not in (str(HERE), first)


def test_the_process_ends_with_its_owner(process: ReadingProcess) -> None:
    pid = int(process.read(tell_process, LONG).summary)
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


PARENT = """
import time
from aftercall.llm.long_calls import ReadingProcess
from fakes import make_call
from reading_jobs import tell_process

if __name__ == "__main__":
    long = make_call([("caller", "well " * 20_000)])
    print(ReadingProcess().read(tell_process, long).summary, flush=True)
    time.sleep(3600)
"""


def test_the_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        assert int(parent.stdout.readline()) != parent.pid
        parent.kill()
        # Both write there: it ends when neither is left.
        assert parent.stdout.read() == b""
