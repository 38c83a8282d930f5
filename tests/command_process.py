"""Commands in processes of their own, forked from one that has imported everything already.

A command that starts from nothing spends most of its time on imports.
"""

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from aftercall.cli.main import run

PRELOADED = ["aftercall.web.server", "aftercall.testing", "psycopg", __name__]
STREAMS = {"stdin": os.O_RDONLY, "stdout": os.O_WRONLY, "stderr": os.O_WRONLY}

spawner = multiprocessing.get_context("forkserver")


def run_command(
    words: Sequence[str], env: Mapping[str, str], folder: Path, stdin: bytes = b""
) -> tuple[int, str, str]:
    """Runs `aftercall` with these words in the folder; exit code, output, errors."""
    spawner.set_forkserver_preload(PRELOADED)
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


def _run(place: str, words: list[str], env: dict[str, str], folder: str) -> None:
    for number, (name, mode) in enumerate(STREAMS.items()):
        os.dup2(os.open(Path(place) / name, mode), number)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = ["aftercall", *words]
    run()
