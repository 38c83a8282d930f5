"""`agent`: a command of the owner's choice does the request. It gets JSON, a time limit and a folder, and nothing else.

Standard input and the file named in AFTERCALL_REQUEST_FILE hold the same JSON. Each line of output that is a JSON object is a
result: `{"state": "done", "link": "…", "note": "…"}` or `{"state": "failed", "reason": "…"}`; the last one counts.
"""

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftercall.errors import SinkRefused, SinkUnavailable
from aftercall.model.followups import Receipt, Work
from aftercall.settings import AgentSettings
from aftercall.work.sinks.webhook import work_json

ALWAYS = ("PATH", "HOME", "LANG")
MOST_OUTPUT = 1_000_000
KEPT_OUTPUT = 4000
LONGEST_LINK = 500


@dataclass(frozen=True)
class Ended:
    """How the command ended. Without a code it was killed because its time was up."""

    code: int | None
    output: str


class AgentSink:
    name = "agent"
    leaves_machine = True
    can_repeat = False  # what a command has done before it was cut off nobody knows

    def __init__(self, settings: AgentSettings, home: Path) -> None:
        self._settings = settings
        self._home = home

    def rehearse(self, work: Work) -> str:
        return f"would run {self._settings.command[0]}"

    def deliver(self, work: Work) -> Receipt:
        folder = self._home / "agent" / work.key.replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        request = json.dumps({"schema": 1, "requests": [work_json(work)], "archives": list(work.archives)}, ensure_ascii=False, indent=1)
        (folder / "request.json").write_text(request, "utf-8")
        ended = self._run(request.encode(), folder)
        (folder / "output.txt").write_text(ended.output, "utf-8")
        (folder / "exit_code").write_text(f"{'timeout' if ended.code is None else ended.code}\n")
        return self._judge(ended)

    def _run(self, request: bytes, folder: Path) -> Ended:
        output = folder / "output.raw"
        environment = {name: os.environ[name] for name in (*ALWAYS, *self._settings.environment) if name in os.environ}
        environment |= {"AFTERCALL_REQUEST_FILE": str(folder / "request.json"), "AFTERCALL_KEY": folder.name}
        with output.open("wb") as sink:
            try:
                process = subprocess.Popen(
                    list(self._settings.command),
                    stdin=subprocess.PIPE,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    cwd=self._settings.folder or folder,
                    env=environment,
                    start_new_session=True,  # with a process group of its own, everything it starts can be ended with it
                )
            except OSError as error:
                raise SinkUnavailable(
                    f"agent: {self._settings.command[0]} cannot be started ({error.strerror}); check agent.command"
                ) from None
            try:
                process.communicate(request, timeout=self._settings.timeout_s)
                code: int | None = process.returncode
            except subprocess.TimeoutExpired:
                _end(process)
                code = None
        with output.open("rb") as made:
            told = made.read(MOST_OUTPUT).decode("utf-8", "replace")
        output.unlink()
        return Ended(code, told)

    def _judge(self, ended: Ended) -> Receipt:
        if ended.code is None:
            raise SinkRefused(f"agent: the command was still running after {self._settings.timeout_s:g} s and was ended")
        result = last_result(ended.output)
        if ended.code != 0:
            raise SinkRefused(f"agent: the command ended with exit code {ended.code}")
        if result is None:
            raise SinkRefused("agent: the command ended without a result line; it must print one JSON object")
        if result.get("state") != "done":
            raise SinkRefused("agent: the command says that it could not be done")
        link = result.get("link")
        note = result.get("note")
        return Receipt(link[:LONGEST_LINK] if isinstance(link, str) else None, note[:KEPT_OUTPUT] if isinstance(note, str) else "")


def last_result(output: str) -> dict[str, Any] | None:
    """The last line that is a result; anything else a command prints is its own affair."""
    for line in reversed(output.splitlines()):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "state" in found:
            return found
    return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The command and everything it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        process.stdin.close()
