"""Commands in processes of their own, forked from one that has imported everything already.

A command that starts from nothing spends most of its time on imports.
"""

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from aftercall.cli.main import run

# What commands import, much of it when it is first needed; a child imports the rest again. Only
# modules that are found without the folders that pytest adds can be named here.
PRELOADED = [
    "aftercall.cli.main",
    "aftercall.cli.admin",
    "aftercall.cli.calls",
    "aftercall.cli.corrections",
    "aftercall.cli.lab",
    "aftercall.cli.privacy",
    "aftercall.cli.server",
    "aftercall.cli.test",
    "aftercall.cli.work",
    "aftercall.lab.server",
    "fakes",
    "aftercall.web.server",
    "alembic.command",
    "psycopg",
]
STREAMS = {"stdin": os.O_RDONLY, "stdout": os.O_WRONLY, "stderr": os.O_WRONLY}

spawner = multiprocessing.get_context("forkserver")
spawner.set_forkserver_preload(PRELOADED)


def run_command(
    words: Sequence[str], env: Mapping[str, str], folder: Path, stdin: bytes = b""
) -> tuple[int, str, str]:
    """Runs `aftercall` with these words in the folder; exit code, output, errors."""
    with TemporaryDirectory() as place:
        files = {name: Path(place) / name for name in STREAMS}
        for file in files.values():
            file.touch()
        files["stdin"].write_bytes(stdin)
        process = spawner.Process(
            target=_run, args=(place, list(words), dict(env), str(folder))
        )
        process.start()
        process.join()
        assert process.exitcode is not None
        said = (files["stdout"].read_text("utf-8"), files["stderr"].read_text("utf-8"))
        return process.exitcode, *said


def start_command(
    words: Sequence[str], env: Mapping[str, str], folder: Path
) -> tuple[ForkServerProcess, TextIO]:
    """Starts `aftercall` with these words in the folder; what it prints can be read.

    Errors go nowhere.
    """
    ours, theirs = spawner.Pipe(duplex=False)
    process = spawner.Process(
        target=_run_printing, args=(theirs, list(words), dict(env), str(folder))
    )
    process.start()
    theirs.close()
    printed = os.fdopen(os.dup(ours.fileno()), encoding="utf-8")
    ours.close()
    return process, printed


def _run(place: str, words: list[str], env: dict[str, str], folder: str) -> None:
    for number, (name, mode) in enumerate(STREAMS.items()):
        os.dup2(os.open(Path(place) / name, mode), number)
    _run_here(words, env, folder)


def _run_printing(
    output: Connection, words: list[str], env: dict[str, str], folder: str
) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, source in enumerate((nothing, output.fileno(), nothing)):
        os.dup2(source, number)
    output.close()
    _run_here(words, env, folder)


def _run_here(words: list[str], env: dict[str, str], folder: str) -> None:
    """Runs the command in this process, on the streams 0 to 2 of the system.

    Another version of the code, on a path of its own, is no copy of this process.
    """
    if env.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
        os.chdir(folder)
        command = [sys.executable, "-m", "aftercall", *words]
        os.execve(sys.executable, command, env)  # noqa: S606 - our own command
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = ["aftercall", *words]
    run()
