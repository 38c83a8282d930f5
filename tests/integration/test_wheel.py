"""What is published: a wheel and an sdist, built, installed into a fresh environment and run."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from aftercall import __version__

ROOT = Path(__file__).parents[2]
WHEEL = f"aftercall-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    _run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), cwd=ROOT)
    return folder


def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    held = set(zipfile.ZipFile(built / WHEEL).namelist())
    files = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= held


def test_the_sdist_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / f"aftercall-{__version__}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / f"aftercall-{__version__}"
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", cwd=folder)
    again = zipfile.ZipFile(folder / "dist" / WHEEL)
    first = zipfile.ZipFile(built / WHEEL)
    assert sorted(again.namelist()) == sorted(first.namelist())


def test_the_wheel_runs_in_a_fresh_environment(built: Path, tmp_path: Path) -> None:
    environment, empty = tmp_path / "venv", tmp_path / "empty"
    empty.mkdir()
    venv.create(environment, with_pip=False, symlinks=True)
    python = str(environment / "bin" / "python")
    install = ("install", "--quiet", "--no-deps", "--no-index", "--no-compile")
    _run(sys.executable, "-m", "pip", "--python", python, *install, str(built / WHEEL))
    site = environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    # a path of a .pth file is searched last, and its own .pth files are not read
    libraries = site / "site-packages" / "libraries.pth"
    libraries.write_text(sysconfig.get_path("purelib"))
    aftercall = str(environment / "bin" / "aftercall")
    assert _run(aftercall, "--version", cwd=empty) == f"aftercall {__version__}\n"
    assert "No calls yet" in _run(aftercall, "calls", "list", cwd=empty)
    where = "import aftercall; print(aftercall.__file__)"
    assert _run(python, "-c", where, cwd=empty).startswith(str(environment))


def _run(*words: str, cwd: Path | None = None) -> str:
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AFTERCALL_", "PYTHON"))
    }
    if cwd is not None:
        environ["AFTERCALL_HOME"] = str(cwd / "home")
    done = subprocess.run(
        words, env=environ, cwd=cwd, capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
