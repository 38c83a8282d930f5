"""One memory, whichever way a caller comes; and what a platform's starts and tools are refused."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from aftercall.lab.exchange import PhoneNetwork, make_agent_number
from aftercall.lab.handset import ring_by_twilio
from aftercall.lab.speech import SoundTranscriber, make_voice
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.providers import TwilioSettings
from aftercall.web.server import make_server
from api_client import bearer
from fakes import VirtualClock
from hosted_platforms import (
    CALLER,
    PUBLIC,
    SECRET,
    Platforms,
    add_platforms,
    connect_platforms,
)
from opened_apps import OpenApp

ACCOUNT = "AC" + "1" * 32


@pytest.fixture
async def platforms(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> AsyncIterator[Platforms]:
    twilio = TwilioSettings(account_sid=ACCOUNT, auth_token=SecretStr(SECRET))
    own = {"twilio": twilio, "public_url": PUBLIC, "reconnect_window_s": 60.0}
    reached = add_platforms(settings).model_copy(update=own)
    found = connect_platforms(open_app(reached, clock))
    yield found
    await found.close()


def finish(platforms: Platforms, clock: VirtualClock) -> str:
    """The work after the newest call; its source."""
    newest = platforms.app.store.list_page(limit=1)[0]
    assert newest.state == "sealed"
    for step in STEPS:
        rerun(platforms.app.step_runner, newest.live.id, step)
    clock.move(3600)
    return newest.live.source


async def test_a_number_a_platform_and_a_live_agent_share_what_the_caller_said(
    platforms: Platforms, clock: VirtualClock
) -> None:
    to_app = httpx2.ASGITransport(make_server(platforms.app))
    network = PhoneNetwork(SECRET, ACCOUNT, transport=to_app)
    transcriber = SoundTranscriber()
    async with network:
        phone = await ring_by_twilio(
            network,
            make_agent_number(PUBLIC),
            CALLER,
            "+15550101",
            make_voice("words"),
            transcriber.transcribe,
        )
        await phone.say("Hi, this is Ann. Please call the plumber tomorrow.")
        await phone.hang_up()
    transcriber.close()
    assert finish(platforms, clock) == "twilio"

    call = await platforms.ring("vapi", "Please also order two chairs.")
    assert call.variables["caller_name"] == "Ann"
    assert "plumber" in call.variables["last_call"]
    clock.move(60)
    await platforms.hang_up(call)
    assert finish(platforms, clock) == "vapi"

    start = {"source": "own", "sid": "1", "caller": CALLER}
    async with httpx2.AsyncClient(transport=to_app, base_url=PUBLIC) as http:
        headers = bearer(platforms.app.settings)
        told = (await http.post("/api/live", json=start, headers=headers)).json()
    assert told["briefing"]["caller_name"] == "Ann"
    assert "chairs" in told["briefing"]["text"]
    assert "plumber" in told["briefing"]["text"]


STARTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("vapi", {"message": {"type": "assistant-request"}}),
    ("vapi", {"message": {"type": "tool-calls", "toolCallList": []}}),
    ("retell", {"event": "call_inbound", "call_inbound": {}}),
    ("retell", {"name": "search_memory", "args": {}, "call": {}}),
    ("elevenlabs/start", {}),
    ("elevenlabs/tools/search_memory", {"query": "plumber"}),
    ("bland/start", {}),
    ("bland/tools/take_request", {"title": "A quote"}),
)


async def test_a_start_or_tool_without_the_secret_is_refused(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    wrong = {
        "Authorization": "Bearer wrong",
        "x-retell-signature": f"v={int(clock.now().timestamp() * 1000)},d={'0' * 64}",
    }
    for reached, status in ((settings, 503), (add_platforms(settings), 403)):
        app = open_app(reached, clock)
        to_app = httpx2.ASGITransport(make_server(app))
        async with httpx2.AsyncClient(transport=to_app, base_url=PUBLIC) as http:
            for path, event in STARTS:
                for headers in ({}, wrong):
                    answer = await http.post(
                        f"/hosted/{path}", json=event, headers=headers
                    )
                    assert answer.status_code == status, path
        assert app.store.list_page(limit=1) == []


async def test_a_call_that_wants_an_assistant_is_told_which_setting_names_one(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    reached = add_platforms(settings)
    vapi = reached.vapi.model_copy(update={"assistant_id": None})
    found = connect_platforms(
        open_app(reached.model_copy(update={"vapi": vapi}), clock)
    )
    call = await found.ring("vapi")
    assert call.refused == [503]
    await found.close()


async def test_odd_tool_calls_are_answered_in_words_or_refused_by_name(
    platforms: Platforms,
) -> None:
    vapi, retell = platforms.by_name["vapi"], platforms.by_name["retell"]
    call = await platforms.ring("vapi")
    assert await vapi.use_tool(call, "end_call", {}) == "There is no such tool."
    told = await vapi.use_tool(call, "search_memory", {"wrong": 1})
    assert told.startswith("That cannot be used")
    function = {
        "name": "search_memory",
        "arguments": {"query": "x"},
    }  # as the docs show it
    event: dict[str, Any] = {"type": "tool-calls", "call": {"id": call.id}}
    event["toolCallList"] = [{"id": "t1", "type": "function", "function": function}]
    answer = await vapi.post(call, "", {"message": event})
    assert answer["results"][0]["toolCallId"] == "t1"
    other = await platforms.ring("retell")
    assert "Nothing" in await retell.use_tool(other, "search_memory", {"query": "x"})
    raw = json.dumps({"name": "search_memory", "args": "x", "call": {}})
    assert await retell.post(other, "", json.loads(raw)) == {"id": None}


async def test_partial_words_and_chats_open_no_call_and_write_no_turn(
    platforms: Platforms,
) -> None:
    vapi = platforms.by_name["vapi"]
    call = await platforms.ring("vapi")
    piece = {
        "type": "transcript[transcriptType='final']",
        "transcript": "Hel",
        "role": "user",
    }
    shown = await vapi.post(call, "", {"message": piece | {"call": {"id": call.id}}})
    row = platforms.app.store.find("vapi", call.id)
    assert row is not None
    assert shown == {"id": row.live.id}
    chat = {"type": "conversation-update", "chat": {"id": "chat_1"}}
    assert await vapi.post(call, "", {"message": chat}) == {"id": None}
    live = platforms.app.phone.remote_calls.find_live("vapi", call.id)
    assert live is not None
    assert live.turns == 0
    assert len(platforms.app.store.list_page(limit=5)) == 1
