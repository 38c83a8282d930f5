"""An ear and a mouth in processes of their own: they die, they fail, they end with whoever
started them.
"""

import asyncio
import io
import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from aftercall.errors import EngineLost
from aftercall.speech import kit
from aftercall.speech.child import serve
from aftercall.speech.kit import (
    Espeak,
    LocalSynthesiser,
    SpeechProcess,
    find_espeak,
    find_missing,
)
from aftercall.speech.sound import SAMPLE_RATE_HZ, measure_loudness

ECHO = """
import os, sys, time
from aftercall.speech.child import serve
def work(body):
    if body == b"die": os._exit(3)
    if body == b"fail": raise ValueError("spoken words")
    if body == b"hang": time.sleep(60)
    return str(os.getpid()).encode() if body == b"who" else body
serve(work, sys.stdin.buffer, sys.stdout.buffer)
"""


@pytest.fixture
def echo() -> Iterator[SpeechProcess]:
    made = SpeechProcess("recogniser", [sys.executable, "-c", ECHO])
    yield made
    made.close()


async def test_answers_come_to_those_who_asked(echo: SpeechProcess) -> None:
    bodies = [bytes([number]) * 50_000 for number in range(20)]
    assert await asyncio.gather(*(echo.ask(body) for body in bodies)) == bodies
    assert echo.queue_length == 0


async def test_a_failure_is_told_without_what_was_spoken_and_the_process_goes_on(
    echo: SpeechProcess,
) -> None:
    before = await echo.ask(b"who")
    with pytest.raises(EngineLost, match=r"the recogniser failed \(ValueError\)"):
        await echo.ask(b"fail")
    assert await echo.ask(b"who") == before


async def test_a_process_that_died_is_replaced_when_the_next_one_asks(
    echo: SpeechProcess,
) -> None:
    before = int(await echo.ask(b"who"))
    with pytest.raises(EngineLost, match="died"):
        await echo.ask(b"die")
    os.kill(int(await echo.ask(b"who")), signal.SIGKILL)
    with suppress(EngineLost):  # this one may meet the dead process
        await echo.ask(b"who")
    assert int(await echo.ask(b"who")) != before


async def test_a_process_found_dead_is_replaced_and_its_pipes_are_closed(
    echo: SpeechProcess,
) -> None:
    before = find_open_pipes()
    process = int(await echo.ask(b"who"))
    pipes = find_open_pipes() - before
    assert len(pipes) == 2
    os.kill(process, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert await echo.ask(b"again") == b"again"
    assert not pipes & find_open_pipes()


def find_open_pipes() -> set[int]:
    """The inodes of the pipes that this process has open."""
    found = set()
    for file in Path("/dev/fd").iterdir():
        with suppress(OSError):  # the one that lists the folder is closed again
            status = os.fstat(int(file.name))
            if stat.S_ISFIFO(status.st_mode):
                found.add(status.st_ino)
    return found


async def test_a_process_that_hangs_is_ended(
    echo: SpeechProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    await echo.ask(b"warm")
    monkeypatch.setattr(kit, "ANSWER_TIMEOUT_S", 0.2)
    with pytest.raises(EngineLost, match="took longer"):
        await echo.ask(b"hang")
    monkeypatch.undo()
    assert await echo.ask(b"again") == b"again"


async def test_closing_ends_what_is_under_way_and_leaves_no_process(
    echo: SpeechProcess,
) -> None:
    number = int(await echo.ask(b"who"))
    asking = asyncio.create_task(echo.ask(b"hang"))
    await asyncio.sleep(0)
    await asyncio.to_thread(echo.close)
    with pytest.raises((EngineLost, asyncio.CancelledError)):
        await asking
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_child_ends_with_its_input() -> None:
    told = io.BytesIO()
    serve(lambda body: body.upper(), io.BytesIO(b"\0\0\0\2hi"), told)
    assert told.getvalue() == b"\1\0\0\0\0" + b"\1\0\0\0\2HI"


async def test_our_mouth_speaks_as_long_as_the_words_are() -> None:
    mouth = LocalSynthesiser("en-us")
    short, long = (
        await mouth.speak("Hello."),
        await mouth.speak("Hello. I have taken that down; is there anything else?"),
    )
    mouth.close()
    assert 0.2 < len(short) / SAMPLE_RATE_HZ < 2 < len(long) / SAMPLE_RATE_HZ < 6
    assert measure_loudness(long) > 300


@pytest.mark.skipif(
    find_spec("espeakng_loader") is None,
    reason="the wheel with espeak-ng's library is not installed",
)
def test_the_library_of_the_wheel_speaks_where_there_is_no_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    command = find_espeak()
    assert command is not None
    assert command[0] == sys.executable
    assert (
        0.5
        < len(Espeak(command, "en").speak("Hello there, how are you?")) / SAMPLE_RATE_HZ
        < 4
    )


def test_what_is_missing_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kit, "find_spec", lambda name: None)
    monkeypatch.setattr(kit, "find_espeak", lambda: None)
    assert (
        find_missing()
        == "moonshine-voice and espeak-ng not installed; install aftercall[speech]"
    )
