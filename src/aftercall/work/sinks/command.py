"""`agent`: the owner's command does the requests. It gets JSON, a time limit and a folder.

Standard input and the file named in AFTERCALL_REQUEST_FILE hold the same JSON. The command
reports in lines of JSON, in the file named in AFTERCALL_RESULT_FILE or on standard output:
`{"state": "done", "link": "…", "note": "…"}` or `{"state": "failed", "reason": "…"}`. A line
with a request's key in `request` is about that request, one without about all others. The last
line wins.

`mcp`: one tool of a Model Context Protocol server. The owner chooses the tool; the caller's words
only fill its arguments.
"""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aftercall.errors import ConfigError, OutcomeUnknown, SinkRefused, SinkUnavailable
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.model.json_fields import Json
from aftercall.rest import describe_network_error
from aftercall.settings.providers import AgentSettings, McpSettings

if TYPE_CHECKING:
    from mcp import Client

DEFAULT_ENVIRONMENT = ("PATH", "HOME", "LANG")
MAX_OUTPUT_BYTES = 1_000_000
MAX_NOTE_CHARS = 4000
MAX_LINK_CHARS = 500
MAX_REASON_LINES = 5
MAX_REASON_CHARS = 500

Results = dict[str | None, Json]
"""The last result of each request by its key; under None the last one that names no request."""


@dataclass(frozen=True)
class CommandResult:
    """How the command ended; `code` is None if it ran out of time and was killed."""

    code: int | None
    output: str
    errors: str
    results: Results


class AgentSink:
    """Hands a request to a program of the owner's, once a conversation."""

    name = "agent"
    leaves_machine = True
    can_repeat = False  # a command that was cut off may have acted

    def __init__(self, settings: AgentSettings, home: Path) -> None:
        self._settings = settings
        self._home = home
        self.per_conversation = settings.per == "conversation"

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would run {self._settings.command[0]}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        (outcome,) = self.deliver_all([work])
        if isinstance(outcome, SinkRefused):
            raise outcome
        return outcome

    def deliver_all(self, works: Sequence[SinkWork]) -> list[SinkReceipt | SinkRefused]:
        """Runs the command once for all works; returns how each ended."""
        folder = self._home / "agent" / works[0].key.replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        archives = list(dict.fromkeys(path for work in works for path in work.archives))
        requests = [work.to_json() for work in works]
        content = {"schema": 1, "requests": requests, "archives": archives}
        request = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / "request.json").write_text(request, "utf-8")
        ended = self._run(request.encode(), folder)
        return [self._judge(ended, work.key) for work in works]

    def _run(self, request: bytes, folder: Path) -> CommandResult:
        result = folder / "result.jsonl"
        result.unlink(missing_ok=True)  # left by an earlier attempt
        names = (*DEFAULT_ENVIRONMENT, *self._settings.environment)
        environment = {name: os.environ[name] for name in names if name in os.environ}
        environment |= {
            "AFTERCALL_REQUEST_FILE": str(folder / "request.json"),
            "AFTERCALL_RESULT_FILE": str(result),
            "AFTERCALL_KEY": folder.name,
        }
        output = folder / "output.txt"
        errors = folder / "errors.txt"
        with output.open("wb") as out, errors.open("wb") as err:
            try:
                process = subprocess.Popen(
                    list(self._settings.command),
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=err,
                    cwd=self._settings.folder or folder,
                    env=environment,
                    start_new_session=True,  # a process group: its children die with it
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
                _kill_group(process)
                code = None
        (folder / "exit_code").write_text(f"{'timeout' if code is None else code}\n")
        printed = _trim_to_end(output)
        results = read_results(f"{printed}\n{_trim_to_end(result)}")
        return CommandResult(code, printed, _trim_to_end(errors), results)

    def _judge(self, ended: CommandResult, key: str) -> SinkReceipt | SinkRefused:
        """A line about this request counts however the command ended; others need exit code 0."""
        result = ended.results.get(key)
        if result is None and ended.code is None:
            limit = f"{self._settings.timeout_s:g} s"
            return _refuse(
                f"the command was still running after {limit} and was ended",
                ended.errors,
            )
        if result is None and ended.code != 0:
            reason = f"the command ended with exit code {ended.code}"
            return _refuse(reason, ended.errors or ended.output)
        result = result or ended.results.get(None)
        if result is None:
            reason = (
                "the command ended without a result line; it must write one JSON object"
            )
            return _refuse(reason, ended.errors)
        if result.get("state") != "done":
            reason = "the command says that it could not be done"
            return _refuse(reason, str(result.get("reason") or ""))
        link = result.get("link")
        note = result.get("note")
        return SinkReceipt(
            link[:MAX_LINK_CHARS] if isinstance(link, str) else None,
            note[:MAX_NOTE_CHARS] if isinstance(note, str) else "",
        )


def read_results(output: str) -> Results:
    """The lines that are results; other output is ignored."""
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


def _refuse(reason: str, output: str) -> SinkRefused:
    """The reason and the last lines of output."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    end = " | ".join(lines[-MAX_REASON_LINES:])[-MAX_REASON_CHARS:]
    return SinkRefused(f"agent: {reason}" + (f": {end}" if end else ""))


def _trim_to_end(file: Path) -> str:
    """The end of the file. Cuts the beginning off a file that is too long."""
    if not file.is_file():
        return ""
    with file.open("rb") as written:
        size = written.seek(0, os.SEEK_END)
        written.seek(max(0, size - MAX_OUTPUT_BYTES))
        end = written.read()
    if size > MAX_OUTPUT_BYTES:
        file.write_bytes(end)
    return end.decode("utf-8", "replace")


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        process.stdin.close()


MAX_ANSWER_CHARS = 2000


class McpSink:
    """Hands a request to a tool of an MCP server."""

    name = "mcp"
    leaves_machine = True
    can_repeat = False  # a tool may do anything

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would use the tool {self._settings.tool}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        try:
            return asyncio.run(self._use(work))
        except (SinkRefused, SinkUnavailable, OutcomeUnknown):
            raise
        except Exception:  # noqa: BLE001 - a foreign library: raises exception groups
            raise OutcomeUnknown(
                f"mcp: {self._settings.tool} broke off; check whether it was done"
            ) from None

    async def _use(self, work: SinkWork) -> SinkReceipt:
        client = self._client()
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                await client.__aenter__()
        except Exception as error:  # noqa: BLE001 - a foreign library: nothing done yet
            raise SinkUnavailable(
                f"mcp: the server cannot be reached ({describe_network_error(error)})"
            ) from None
        try:
            arguments = await self._arguments(client, work)
            async with asyncio.timeout(self._settings.timeout_s):
                result = await client.call_tool(self._settings.tool or "", arguments)
        except TimeoutError:
            raise OutcomeUnknown(
                f"mcp: {self._settings.tool} gave no answer within {self._settings.timeout_s:g} s"
            ) from None
        finally:
            await client.__aexit__(None, None, None)
        if result.is_error:
            raise SinkRefused(
                f"mcp: {self._settings.tool} answered with an error; `aftercall followups "
                "show` has its deliveries"
            )
        texts = [
            text for item in result.content if (text := getattr(item, "text", None))
        ]
        return SinkReceipt(response=" ".join(texts)[:MAX_ANSWER_CHARS])

    async def _arguments(self, client: "Client", work: SinkWork) -> Json:
        """The fields of the request that the tool accepts."""
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        tool = tools.get(self._settings.tool or "")
        if tool is None:
            raise SinkRefused(
                f"mcp: the server has no tool {self._settings.tool}; it has "
                f"{', '.join(sorted(tools)) or 'none'}"
            )
        have = {
            name: value for name, value in work.to_json().items() if value is not None
        }
        takes = tool.input_schema.get("properties", {})
        missing = [
            name for name in tool.input_schema.get("required", []) if name not in have
        ]
        if missing:
            raise SinkRefused(
                f"mcp: {tool.name} needs {', '.join(missing)}, which a request does not have"
            )
        return {name: value for name, value in have.items() if name in takes}

    def _client(self) -> "Client":
        try:
            from mcp import Client, StdioServerParameters  # noqa: PLC0415 - an optional extra
        except ImportError:
            raise ConfigError(
                "mcp: its library is missing; install aftercall[mcp]"
            ) from None
        if self._settings.url:
            return Client(
                self._settings.url.get_secret_value(),
                read_timeout_seconds=self._settings.timeout_s,
            )
        command, *arguments = self._settings.command
        return Client(
            StdioServerParameters(command=command, args=arguments),
            read_timeout_seconds=self._settings.timeout_s,
        )
