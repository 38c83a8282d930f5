"""`aftercall mcp`, asked by the official client."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

from aftercall.app import App, build
from aftercall.cli.work import make_mcp_server
from aftercall.settings import Settings
from aftercall.settings.sections import WorkSettings
from followup_work import follow, hold_call

CALLER = "+15550100"
READING = {"search", "briefing", "list_followups", "show_followup"}


@pytest.fixture
def held(tmp_path: Path) -> Any:
    """A home whose caller asked for things that wait for approval."""
    settings = Settings(
        home=tmp_path / "home", work=WorkSettings(policy={"unknown": "hold"})
    )
    app = build(settings)
    call = hold_call(app, caller=CALLER)
    app.step_runner.run(call.id, "summary")
    app.step_runner.run(call.id, "index")
    follow(app.work, call.conversation)
    yield app
    app.close()


def read_text(result: CallToolResult) -> str:
    (content,) = result.content[:1] or [TextContent(text="")]
    assert isinstance(content, TextContent)
    return content.text


def read_list(result: CallToolResult) -> list[dict[str, Any]]:
    assert result.structured_content is not None
    found: list[dict[str, Any]] = result.structured_content["result"]
    return found


async def test_a_client_searches_briefs_and_approves(held: App) -> None:
    async with Client(make_mcp_server(held)) as client:
        hits = read_list(
            await client.call_tool("search", {"query": "thumbnails", "caller": CALLER})
        )
        assert "thumbnails" in json.dumps(hits)
        briefing = read_text(await client.call_tool("briefing", {"caller": CALLER}))
        assert briefing.startswith("<briefing>")
        waiting = read_list(await client.call_tool("list_followups", {"state": "held"}))
        first = waiting[0]["id"]
        done = await client.call_tool("approve_followup", {"id": first})
        assert not done.is_error
        shown = await client.call_tool("show_followup", {"id": first})
        assert shown.structured_content is not None
        last = shown.structured_content["history"][-1]
        assert (last["what"], "MCP" in last["who"]) == ("open", True)
        other = waiting[1]["id"]
        await client.call_tool("reject_followup", {"id": other})
        assert held.work.followups.get(other).state == "refused"


async def test_what_cannot_be_approved_says_why(held: App) -> None:
    async with Client(make_mcp_server(held)) as client:
        refused = await client.call_tool("approve_followup", {"id": "nothing"})
        assert refused.is_error
        assert "there is no follow-up 'nothing'" in read_text(refused)
        odd = await client.call_tool("briefing", {"caller": "a friend"})
        assert odd.is_error


async def test_tools_say_whether_they_change_anything(held: App) -> None:
    async with Client(make_mcp_server(held)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == READING | {"approve_followup", "reject_followup"}
    for name, tool in tools.items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint == (name in READING)


async def test_the_command_speaks_over_its_pipes_and_can_be_read_only(
    held: App,
) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "aftercall", "mcp", "--read-only"],
        env={**os.environ, "AFTERCALL_HOME": str(held.settings.home)},
    )
    async with Client(command) as client:
        tools = await client.list_tools()
        assert {tool.name for tool in tools.tools} == READING
        rows = read_list(await client.call_tool("list_followups", {"limit": 5}))
        assert rows
