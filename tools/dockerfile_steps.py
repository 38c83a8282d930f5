"""Runs the steps of deploy/Dockerfile one by one in a clean folder, without Docker.

For machines on which no image can be built. COPY, RUN, ENV and WORKDIR act below the folder, with
this Python in place of the base image; then the server is started as ENTRYPOINT and CMD say, and
HEALTHCHECK is asked. What a folder cannot show: the base image, the user, the read-only root.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
FOLDERS = ("/opt/aftercall", "/src", "/data")
HEALTH_TIMEOUT_S = 60.0


def read_steps(text: str) -> list[tuple[str, str]]:
    """Instruction and argument, with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    steps = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name, rest.strip()) for name, _, rest in steps]


class Stage:
    """One build: its folder, environment and working folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(root)}
        self.work = root
        self.command: list[str] = []
        self.health: list[str] = []

    def place(self, text: str) -> str:
        """The argument, with the image's folders below ours."""
        for folder in FOLDERS:
            text = re.sub(rf"(?<![\w/]){folder}\b", f"{self.root}{folder}", text)
        return text

    def run(self, name: str, rest: str) -> str:
        """Carries a step out; returns what was done, or why it was left out."""
        match name:
            case "ENV":
                for key, value in re.findall(r"(\w+)=(\S+)", rest):
                    self.environ[key] = os.path.expandvars(
                        self.place(value).replace("$PATH", self.environ["PATH"])
                    )
            case "WORKDIR":
                self.work = Path(self.place(rest))
                self.work.mkdir(parents=True, exist_ok=True)
            case "COPY":
                return self._copy(rest.split())
            case "RUN":
                return self._run(rest)
            case "HEALTHCHECK":
                self.health = json.loads(rest[rest.index("[") :])
            case "ENTRYPOINT" | "CMD":
                self.command += json.loads(rest)
            case _:
                return "left out: only an image has it"
        return "done"

    def _copy(self, words: list[str]) -> str:
        if words[0].startswith("--from="):
            return "done: both stages share the folder"
        *sources, target = words
        for source in sources:
            path = ROOT / source
            into = self.work / target
            into.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, into, dirs_exist_ok=True)
            else:
                shutil.copy2(path, into)
        return "done"

    def _run(self, script: str) -> str:
        if "useradd" in script:
            Path(self.place("/data")).mkdir(mode=0o700)
            return "the folder only: a user needs root"
        subprocess.run(
            ["/bin/sh", "-ec", self.place(script)],
            env=self.environ,
            cwd=self.work,
            check=True,
        )
        return "done"


def serve_and_ask(stage: Stage, port: int) -> None:
    """Starts the server as the image would, and asks its health check."""
    command = [re.sub(r"^0(\.0){3}$", "127.0.0.1", word) for word in stage.command]
    program = Path(stage.place("/opt/aftercall/bin"))
    process = subprocess.Popen(
        [program / command[0], *command[1:], "--port", str(port)],
        env=stage.environ,
        cwd=stage.work,
    )
    check = [word.replace(":8080", f":{port}") for word in stage.health]
    try:
        until = time.monotonic() + HEALTH_TIMEOUT_S
        asked = [str(program / check[0]), *check[1:]]
        while subprocess.run(
            asked, env=stage.environ, capture_output=True, check=False
        ).returncode:
            if time.monotonic() > until or process.poll() is not None:
                sys.exit("the server did not become healthy")
            time.sleep(0.5)
        print("HEALTHCHECK: healthy")
    finally:
        process.terminate()
        process.wait(30)
    home = Path(stage.environ["AFTERCALL_HOME"])
    names = sorted(path.name for path in home.iterdir())
    print(f"stopped with {process.returncode}; home: {names}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=18080)
    port = parser.parse_args().port
    with tempfile.TemporaryDirectory(prefix="aftercall-image-") as folder:
        stage = Stage(Path(folder))
        for name, rest in read_steps(DOCKERFILE.read_text()):
            print(f"{name} {rest[:90]}\n  {stage.run(name, rest)}", flush=True)
        serve_and_ask(stage, port)


if __name__ == "__main__":
    main()
