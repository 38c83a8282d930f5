"""What a command costs: processor time of `aftercall`, and the size of what is installed.

python bench/bench_cli.py [--runs 5]

Each command is a process of its own, in a home with one call. The least of the runs is compared
with the aim, because whatever else the machine does only adds; the median is printed beside it.
Modules are compiled once, before the first run, as an installer compiles them; the compiled files
are in a folder of the bench, whatever PYTHONDONTWRITEBYTECODE says. The last rows are the floor:
what Python and the libraries that a command cannot do without take alone.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aftercall.model.calls import encode_call
from fakes import make_call
from tables import met, print_table

START_AIM_S = 0.25
READ_AIM_S = 0.6
STARTING = ("--version", "--help", "calls --help", "completion")
READING = (
    "calls list",
    "calls show last",
    "followups list",
    "facts list",
    "search hello",
    "health",
    "config",
    "verify",
    "briefing +15550100",
)
FLOOR = (
    ("import typer", "import typer"),
    ("import sqlalchemy", "import sqlalchemy"),
    ("import aftercall.config", "import aftercall.config"),
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "call.json")
        file.write_bytes(encode_call(make_call()))
        environ = make_environ(Path(folder))
        ingest_words = ["-m", "aftercall", "ingest", str(file)]
        warm_home = {"AFTERCALL_HOME": str(Path(folder, "warm"))}
        _run(ingest_words, environ | warm_home)
        ingest_s = [_run(ingest_words, environ)]
        rows = [make_row(name, environ, runs, START_AIM_S) for name in STARTING]
        rows += [make_row(name, environ, runs, READ_AIM_S) for name in READING]
        rows.append(["ingest, the first of a home", *show_cpu(ingest_s), "", ""])
        for name, code in FLOOR:
            alone_s = measure(["-c", code], environ, runs)
            rows.append([f"({name})", *show_cpu(alone_s), "", ""])
    head = ("command", "CPU, least", "median", "aim", "")
    print_table("CPU of a command", head, rows)
    size = sum_bytes(Path(sysconfig.get_path("purelib")))
    print(f"installed in this environment: {size / 1e6:.0f} MB")


def make_environ(folder: Path) -> dict[str, str]:
    environ = os.environ | {
        "AFTERCALL_HOME": str(folder / "home"),
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
    }
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return environ


def make_row(name: str, environ: dict[str, str], runs: int, aim_s: float) -> list[str]:
    if name == "completion":
        environ = environ | {
            "_AFTERCALL_COMPLETE": "complete_bash",
            "COMP_WORDS": "aftercall calls ",
            "COMP_CWORD": "2",
        }
        words = ["-c", "import sys; sys.argv = ['aftercall']\n" + RUN]
    else:
        words = ["-m", "aftercall", *name.split()]
    cpu_s = measure(words, environ, runs)
    return [name, *show_cpu(cpu_s), f"{aim_s:.2f} s", met(min(cpu_s) <= aim_s)]


RUN = "from aftercall.cli.main import run\nrun()"


def measure(words: Sequence[str], environ: dict[str, str], runs: int) -> list[float]:
    """CPU seconds of each run; the one before them compiles what is new."""
    _run(words, environ)
    return [_run(words, environ) for _ in range(runs)]


def show_cpu(cpu_s: Sequence[float]) -> tuple[str, str]:
    return f"{min(cpu_s):.2f} s", f"{statistics.median(cpu_s):.2f} s"


def _run(words: Sequence[str], environ: dict[str, str]) -> float:
    before = _used_s()
    done = subprocess.run(
        [sys.executable, *words], env=environ, capture_output=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return _used_s() - before


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sum_bytes(folder: Path) -> int:
    return sum(
        file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file()
    )


if __name__ == "__main__":
    main()
