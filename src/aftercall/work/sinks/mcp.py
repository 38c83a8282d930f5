"""`mcp`: one tool of a Model Context Protocol server.

The owner chooses the tool; the caller's words only fill its arguments.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from aftercall.errors import (
    ConfigError,
    OutcomeUnknown,
    SinkRefused,
    SinkUnavailable,
    describe_network_error,
)
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings.providers import McpSettings

if TYPE_CHECKING:
    from mcp import Client

MAX_ANSWER_CHARS = 2000


class McpSink:
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

    async def _arguments(self, client: "Client", work: SinkWork) -> dict[str, Any]:
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
