"""`agent`: a command of the owner's choice does the requests.

It gets JSON, a time limit and a folder, and nothing else.

Standard input and the file named in AFTERCALL_REQUEST_FILE hold the same JSON. The command
reports in lines of JSON, in the file named in AFTERCALL_RESULT_FILE or on standard output:
`{"state": "done", "link": "…", "note": "…"}` or `{"state": "failed", "reason": "…"}`. A line
with the key of a request in `request` counts for that request, one without for all others; the
last one counts.
"""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftercall.errors import SinkRefused, SinkUnavailable
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings import AgentSettings
from aftercall.work.sinks.webhook import work_json

DEFAULT_ENVIRONMENT = ("PATH", "HOME", "LANG")
MAX_OUTPUT_BYTES = 1_000_000
MAX_NOTE_CHARS = 4000
MAX_LINK_CHARS = 500
MAX_REASON_LINES = 5
MAX_REASON_CHARS = 500

Results = dict[str | None, dict[str, Any]]
"""The last result of each request by its key; under None the last one that names no request."""


@dataclass(frozen=True)
class CommandResult:
    """How the command ended. Without a code it was killed because its time was up."""

    code: int | None
    output: str
    errors: str
    results: Results


class AgentSink:
    name = "agent"
    leaves_machine = True
    can_repeat = False  # what a command has done before it was cut off nobody knows

    def __init__(self, settings: AgentSettings, home: Path) -> None:
        self._settings = settings
        self._home = home
        self.per_conversation = settings.per == "conversation"

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would run {self._settings.command[0]}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        (end,) = self.deliver_all([work])
        if isinstance(end, SinkRefused):
            raise end
        return end

    def deliver_all(self, works: Sequence[SinkWork]) -> list[SinkReceipt | SinkRefused]:
        """Run the command once for all of them; says how each ended."""
        folder = self._home / "agent" / works[0].key.replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        archives = list(dict.fromkeys(path for work in works for path in work.archives))
        told = {"schema": 1, "requests": [work_json(work) for work in works], "archives": archives}
        request = json.dumps(told, ensure_ascii=False, indent=1)
        (folder / "request.json").write_text(request, "utf-8")
        ended = self._run(request.encode(), folder)
        return [self._judge(ended, work.key) for work in works]

    def _run(self, request: bytes, folder: Path) -> CommandResult:
        result = folder / "result.jsonl"
        result.unlink(missing_ok=True)  # of an earlier try
        names = (*DEFAULT_ENVIRONMENT, *self._settings.environment)
        environment = {name: os.environ[name] for name in names if name in os.environ} | {
            "AFTERCALL_REQUEST_FILE": str(folder / "request.json"),
            "AFTERCALL_RESULT_FILE": str(result),
            "AFTERCALL_KEY": folder.name,
        }
        output, errors = folder / "output.txt", folder / "errors.txt"
        with output.open("wb") as out, errors.open("wb") as err:
            try:
                process = subprocess.Popen(
                    list(self._settings.command),
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=err,
                    cwd=self._settings.folder or folder,
                    env=environment,
                    # with a process group of its own, everything it starts can be ended with it
                    start_new_session=True,
                )
            except OSError as error:
                raise SinkUnavailable(
                    f"agent: {self._settings.command[0]} cannot be started "
                    f"({error.strerror}); check agent.command"
                ) from None
            try:
                process.communicate(request, timeout=self._settings.timeout_s)
                code: int | None = process.returncode
            except subprocess.TimeoutExpired:
                _end(process)
                code = None
        (folder / "exit_code").write_text(f"{'timeout' if code is None else code}\n")
        said = _trim_to_end(output)
        return CommandResult(
            code, said, _trim_to_end(errors), read_results(f"{said}\n{_trim_to_end(result)}")
        )

    def _judge(self, ended: CommandResult, key: str) -> SinkReceipt | SinkRefused:
        """What was said of this request stands however the command ended; what was said of all
        needs a good end.
        """
        result = ended.results.get(key)
        if result is None and ended.code is None:
            limit = f"{self._settings.timeout_s:g} s"
            return _refuse(
                f"the command was still running after {limit} and was ended", ended.errors
            )
        if result is None and ended.code != 0:
            return _refuse(
                f"the command ended with exit code {ended.code}", ended.errors or ended.output
            )
        result = result or ended.results.get(None)
        if result is None:
            return _refuse(
                "the command ended without a result line; it must write one JSON object",
                ended.errors,
            )
        if result.get("state") != "done":
            return _refuse(
                "the command says that it could not be done", str(result.get("reason") or "")
            )
        link, note = result.get("link"), result.get("note")
        return SinkReceipt(
            link[:MAX_LINK_CHARS] if isinstance(link, str) else None,
            note[:MAX_NOTE_CHARS] if isinstance(note, str) else "",
        )


def read_results(output: str) -> Results:
    """The lines that are results; anything else a command prints is its own affair."""
    results: Results = {}
    for line in output.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "state" in found:
            request = found.get("request")
            results[request if isinstance(request, str) else None] = found
    return results


def _refuse(what: str, told: str) -> SinkRefused:
    """With the last lines the command wrote, for the operator."""
    lines = [" ".join(line.split()) for line in told.splitlines() if line.strip()]
    end = " | ".join(lines[-MAX_REASON_LINES:])[-MAX_REASON_CHARS:]
    return SinkRefused(f"agent: {what}" + (f": {end}" if end else ""))


def _trim_to_end(file: Path) -> str:
    """The end of what was written there; the beginning of what is too long is dropped from the
    file, too.
    """
    if not file.is_file():
        return ""
    with file.open("rb") as written:
        size = written.seek(0, os.SEEK_END)
        written.seek(max(0, size - MAX_OUTPUT_BYTES))
        end = written.read()
    if size > MAX_OUTPUT_BYTES:
        file.write_bytes(end)
    return end.decode("utf-8", "replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The command and everything it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        process.stdin.close()
