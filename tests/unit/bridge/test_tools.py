"""Mid-call tools: as engines see them, and what the agent is told when they fail."""

import asyncio
from collections.abc import Sequence

from aftercall.bridge.tools import (
    NOT_NOW,
    NOT_WRITTEN,
    TOOL_TIMEOUT_S,
    Toolbox,
    list_tools,
)
from aftercall.bridge.turn_log import TurnLog
from aftercall.journal.recorder import CallRecorder
from aftercall.journal.replay import JournalEntry
from aftercall.model.calls import LiveCall
from fakes import VirtualClock, make_live_call


def test_the_forms_are_plain_enough_for_every_engine() -> None:
    forms = {tool.name: tool.parameters for tool in list_tools()}
    assert set(forms) == {"search_memory", "take_request", "end_call"}
    assert forms["take_request"]["required"] == ["title"]
    assert forms["take_request"]["properties"]["due"] == {
        "type": "string",
        "format": "date",
        "default": None,
        "description": "by which day",
    }
    for form in forms.values():
        assert "$defs" not in form
        assert all(
            "anyOf" not in field and "title" not in field
            for field in form["properties"].values()
        )


async def test_the_agent_promises_nothing_that_could_not_be_written_down() -> None:
    clock, call, disk = VirtualClock(), make_live_call(), asyncio.Event()

    async def write(recorder: CallRecorder, entry: JournalEntry) -> None:
        await disk.wait()

    async def recall(call: LiveCall, query: str) -> Sequence[str]:
        await disk.wait()
        return []

    turn_log = TurnLog(CallRecorder(call, write), clock)
    tools = Toolbox(call, turn_log.write_event, recall, clock)
    told = []
    for name, arguments in (
        ("take_request", '{"title": "Call the plumber"}'),
        ("search_memory", '{"query": "plumber"}'),
    ):
        running = asyncio.create_task(tools.run(name, arguments))
        await clock.until_asleep()
        await clock.advance(TOOL_TIMEOUT_S)
        told.append((await running).text)
    assert told == [NOT_WRITTEN, NOT_NOW]
    disk.set()
    await turn_log.close()
