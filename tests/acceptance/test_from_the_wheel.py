"""The first minute of someone who has the wheel and an empty folder, and nothing else of ours."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopback_server import listening

ROOT = Path(__file__).parents[2]
REQUEST = "Please open a bug about the broken thumbnails."


class Newcomer:
    """A folder with the installed wheel, and an empty one to work in."""

    def __init__(self, installed: Path, folder: Path) -> None:
        kept = {
            name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ
        }
        self.env = kept | {"HOME": str(folder), "PYTHONPATH": str(installed)}
        self.folder = folder
        self._command = [sys.executable, str(installed / "bin" / "aftercall")]

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._command, *words],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def keep_running(self, *words: str) -> Iterator[str]:
        """The first address that the command prints."""
        process = subprocess.Popen(
            [*self._command, *words],
            env=self.env | {"PYTHONUNBUFFERED": "1"},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        try:
            told = re.search(r"http://[\d.:]+\d", process.stdout.readline())
            assert told
            yield told[0]
        finally:
            process.terminate()
            process.wait(20)
            process.stdout.close()


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    build = ["-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run([sys.executable, *build], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    target = tmp_path / "installed"
    subprocess.run(
        [sys.executable, *pip, "--target", str(target), str(wheel)], check=True
    )
    folder = tmp_path / "empty"
    folder.mkdir()
    return Newcomer(target, folder)


@pytest.mark.timeout(240)
def test_init_serve_a_call_in_the_lab_and_a_follow_up_approved(
    newcomer: Newcomer,
) -> None:
    with listening() as (_, agent):
        pass  # a port that was free just now
    with newcomer.keep_running("lab", "--port", "0", "--agent", agent) as lab:
        options = ["--phone", "lab", "--model", "rules", "--public-url", agent]
        for setting in (
            f"twilio.api_url={lab}",
            f"github.api_url={lab}",
            "reconnect_window_s=0",
        ):
            options += ["--set", setting]
        assert "only you can read it" in newcomer.run("init", *options)
        port = agent.rpartition(":")[2]
        with newcomer.keep_running("serve", "--port", port):
            ring = ["--ring", "+15550100", "--port", lab.rpartition(":")[2]]
            told = newcomer.run("lab", *ring, "--agent", agent, "--say", REQUEST)
            assert "open a bug about the broken thumbnails" in told
            token = newcomer.run("token").strip()
            with httpx2.Client(
                base_url=agent,
                headers={"Authorization": f"Bearer {token}"},
                trust_env=False,
            ) as api:
                held = wait_for(api, "held")
                newcomer.run("followups", "approve", held["id"])
                done = wait_for(api, "done")
    assert done["link"] == "https://github.com/acme/site/issues/41"
    assert (
        json.loads(newcomer.run("calls", "list", "--json"))[0]["caller"] == "+15550100"
    )


def wait_for(api: httpx2.Client, state: str) -> dict[str, Any]:
    """The first follow-up in this state; the suite's time limit is the only one."""
    while True:
        answer = api.get("/api/followups", params={"state": state}).json()
        for found in answer["followups"]:
            return dict(found)
        time.sleep(0.1)
