"""A Telnyx number and the receptionist: signed events in, commands out, through the emulated
Telnyx.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from aftercall.app import App
from aftercall.bridge import turn_call
from aftercall.clock import SystemClock
from aftercall.errors import DatabaseUnreachable
from aftercall.lab.carrier import DeliveryFaults
from aftercall.lab.telnyx import TelnyxCall
from aftercall.model.calls import LiveCall
from aftercall.overload import BUSY
from aftercall.phone.signature import TOKEN_PARAMETER
from aftercall.phone.telnyx import unpack_state
from aftercall.settings import Settings
from aftercall.settings.providers import DeepgramSettings
from aftercall.settings.sections import LimitSettings, RecordingsSettings
from aftercall.web.server import make_server
from fakes import VirtualClock
from opened_apps import OpenApp
from telnyx_setup import (
    EVENTS,
    Line,
    TelnyxTown,
    reach,
    telnyx_settings,
    telnyx_town,
    until,
)

CALLER = "+15550100"


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def live(settings: Settings, line: Line, open_app: OpenApp) -> App:
    return reach(open_app(telnyx_settings(settings), SystemClock()), line)


@pytest.fixture
async def town(live: App, line: Line) -> AsyncIterator[TelnyxTown]:
    async with telnyx_town(live, line) as town:
        yield town


async def sealed(app: App) -> list[tuple[str, str]]:
    """Speakers and words of the only call, once it is sealed."""
    await until(
        lambda: [row.state for row in app.store.list_page(limit=5)] == ["sealed"]
    )
    (row,) = app.store.list_page(limit=5)
    call, _ = app.archive.read(str(row.archive_name))
    return [(turn.speaker, turn.text) for turn in call.turns]


async def test_a_whole_call_is_answered_confirmed_closed_and_kept(
    town: TelnyxTown,
) -> None:
    call = await town.lab.ring(
        EVENTS, caller=CALLER, shaken_stir_attestation="A", shaken_stir_validated=True
    )
    await town.lab.say(call, "Please call the plumber.")
    await town.lab.say(call, "That's all, bye.", confidence=None)
    assert call.is_over
    assert call.actions == [
        "answer",
        "transcription_start",
        "speak",
        "speak",
        "speak",
        "hangup",
    ]
    said = await sealed(town.app)
    assert [text for speaker, text in said if speaker == "agent"] == call.heard
    assert [text for speaker, text in said if speaker == "caller"] == [
        "Please call the plumber.",
        "That's all, bye.",
    ]
    (row,) = town.app.store.list_page(limit=5)
    assert (row.live.source, row.live.sid, row.live.caller, row.live.verified) == (
        "telnyx",
        call.control_id,
        CALLER,
        True,
    )
    assert row.end_reason == "agent_hung_up"
    kept, _ = town.app.archive.read(str(row.archive_name))
    assert [turn.confidence for turn in kept.turns if turn.speaker == "caller"] == [
        0.92,
        None,
    ]
    assert set(town.answers) == {200}


FORGED: dict[str, Any] = {
    "shaken_stir_attestation": "B",
    "shaken_stir_validated": False,
}


async def test_a_forged_number_is_withheld(town: TelnyxTown) -> None:
    call = await town.lab.ring(EVENTS, caller=CALLER, **FORGED)
    await town.lab.hang_up(call)
    await sealed(town.app)
    (row,) = town.app.store.list_page(limit=5)
    assert (row.live.caller, row.live.verified) == (None, False)


async def test_a_forged_number_stays_refused_when_the_server_is_restarted(
    live: App, line: Line
) -> None:
    late = DeliveryFaults(delay_s_by_kind={"call.answered": 0.1})
    async with telnyx_town(live, line, habits=late) as town:
        call = town.lab.open_call(EVENTS, CALLER, "+15550101")
        ring = {"direction": "incoming", "state": "parked"}
        town.lab.queue_event(call, "call.initiated", ring | FORGED)
        await until(lambda: "answer" in call.actions)
        town.to_agent.inner = httpx2.ASGITransport(make_server(live))
        await until(lambda: "speak" in call.actions)
        await town.lab.hang_up(call)
        await sealed(live)
    (row,) = live.store.list_page(limit=5)
    assert row.live.caller is None


async def test_a_caller_who_hangs_up_is_kept_with_what_was_said(
    town: TelnyxTown,
) -> None:
    call = await town.lab.ring(EVENTS, caller=CALLER)
    await town.lab.hang_up(call)
    await town.lab.hang_up(call)
    assert [speaker for speaker, _ in await sealed(town.app)] == ["agent"]
    assert town.app.store.list_page(limit=5)[0].end_reason == "caller_hung_up"


async def test_a_call_that_cannot_be_answered_is_kept_with_nothing_said(
    town: TelnyxTown, line: Line
) -> None:
    line.faults = [422]
    call = await town.lab.ring(EVENTS, caller=CALLER)
    assert (call.heard, call.is_over) == ([], True)
    assert await sealed(town.app) == []


@pytest.mark.parametrize(
    "habits",
    [
        DeliveryFaults(duplicated_kinds=frozenset({"*"})),
        DeliveryFaults(
            delay_s_by_kind={"call.initiated": 0.02}, duplicated_kinds=frozenset({"*"})
        ),
    ],
)
async def test_events_that_come_twice_change_nothing(
    live: App, line: Line, habits: DeliveryFaults
) -> None:
    async with telnyx_town(live, line, habits=habits) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        await town.lab.wait_delivered(call)
        await town.lab.say(call, "Please call the plumber.")
        await town.lab.hang_up(call)
        said = await sealed(live)
    assert [speaker for speaker, _ in said] == ["agent", "caller", "agent"]
    assert call.actions == ["answer", "transcription_start", "speak", "speak"]


async def test_an_answer_told_after_the_hang_up_begins_nothing_and_the_missed_call_is_kept(
    live: App, line: Line
) -> None:
    async with telnyx_town(
        live, line, habits=DeliveryFaults(delay_s_by_kind={"call.answered": 0.1})
    ) as town:
        call = town.lab.open_call(EVENTS, CALLER, "+15550101")
        town.lab.queue_event(
            call, "call.initiated", {"direction": "incoming", "state": "parked"}
        )
        await until(lambda: "answer" in call.actions)
        await town.lab.hang_up(call, "originator_cancel")
        assert await sealed(live) == []
        assert live.store.list_page(limit=5)[0].end_reason == "cancelled"
    assert call.actions == ["answer"]


async def test_a_command_that_does_not_get_through_is_sent_again_when_the_event_is(
    town: TelnyxTown, line: Line
) -> None:
    line.faults = [httpx2.ConnectError("refused")] * 4
    call = await town.lab.ring(EVENTS, caller=CALLER)
    assert call.failed_statuses == [503]  # three tries, then Telnyx delivers again
    assert call.actions == ["answer", "transcription_start", "speak"]
    assert len(call.heard) == 1


async def test_a_call_on_which_nothing_can_be_said_is_hung_up_and_kept(
    town: TelnyxTown, line: Line
) -> None:
    call = await town.lab.ring(EVENTS, caller=CALLER)
    line.faults = [422]
    await town.lab.say(call, "Please call the plumber.")
    assert call.is_over
    assert ("caller", "Please call the plumber.") in await sealed(town.app)
    assert town.app.store.list_page(limit=5)[0].end_reason == "carrier_refused"


async def test_what_is_said_is_in_no_log(
    town: TelnyxTown, line: Line, capsys: pytest.CaptureFixture[str]
) -> None:
    call = await town.lab.ring(EVENTS, caller=CALLER)
    line.faults = [httpx2.ConnectError("x"), 500, 500, 422]
    await town.lab.say(call, "Please tell the canary to sing.")
    await sealed(town.app)
    logged = "".join(capsys.readouterr())
    assert "command not sent" in logged
    assert "command refused" in logged
    assert "canary" not in logged
    assert CALLER not in logged


async def test_a_silent_caller_is_asked_twice_and_then_let_go(
    settings: Settings, line: Line, open_app: OpenApp
) -> None:
    clock = VirtualClock()
    app = reach(open_app(telnyx_settings(settings), clock), line)
    async with telnyx_town(app, line, clock=clock) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        while not call.is_over:
            await until_said(call, clock)
        assert call.heard[1:3] == ["Are you still there?"] * 2
        assert call.heard[3].startswith("I can't hear you")
        assert len(call.heard) == 4
        await town.lab.wait_delivered(call)
        await sealed(app)


async def test_a_caller_who_speaks_for_long_is_not_taken_for_silent(
    settings: Settings, line: Line, open_app: OpenApp
) -> None:
    clock = VirtualClock()
    app = reach(open_app(telnyx_settings(settings), clock), line)
    async with telnyx_town(app, line, clock=clock) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        assert call.has_interim_results
        for words in range(1, 12):
            piece = {
                "transcript": "well " * words,
                "is_final": False,
                "transcription_track": "inbound",
                "confidence": 0.0,
            }
            town.lab.queue_event(
                call, "call.transcription", {"transcription_data": piece}
            )
            await town.lab.wait_delivered(call)
            await clock.advance(5.0)
        assert len(call.heard) == 1
        await town.lab.hang_up(call)
        assert [speaker for speaker, _ in await sealed(app)] == ["agent"]


async def until_said(call: TelnyxCall, clock: VirtualClock) -> None:
    before = len(call.heard)
    while len(call.heard) == before and not call.is_over:
        await clock.advance(1.0)
        await asyncio.sleep(0.01)


async def test_a_call_that_outlives_the_server_goes_on_as_a_new_leg(
    settings: Settings, line: Line, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a second server starts meanwhile, on a machine that may be busy
    monkeypatch.setattr(turn_call, "WRITE_TIMEOUT_S", 30.0)
    before = reach(open_app(telnyx_settings(settings), SystemClock()), line)
    async with telnyx_town(before, line) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        await town.lab.say(call, "Please call the plumber.")
        for record in before.journal.live_recorders:
            await before.journal.seal(record, end_reason="server_stopped")
        after = reach(open_app(telnyx_settings(settings), SystemClock()), line)
        # the same number, another process
        town.to_agent.inner = httpx2.ASGITransport(route_server(after))
        await town.lab.say(call, "And remind me to water the plants.")
        assert "water the plants" in call.heard[-1]
        await town.lab.hang_up(call)
        await until(
            lambda: all(row.state == "sealed" for row in after.store.list_page(limit=5))
        )
        second, first = after.store.list_page(limit=5)
        assert (second.live.resumes, second.live.caller) == (first.live.id, CALLER)
        assert second.live.metadata["call_sid"] == call.control_id
        await after.phone.close()


def route_server(app: App) -> Any:
    from aftercall.web.server import make_server

    return make_server(app)


@pytest.fixture
def streamed(settings: Settings, line: Line, open_app: OpenApp) -> App:
    """An app with a voice engine, which takes its calls by the media socket."""
    engine = {
        "engine": "deepgram",
        "deepgram": DeepgramSettings(api_key=SecretStr("x")),
    }
    return reach(
        open_app(telnyx_settings(settings).model_copy(update=engine), SystemClock()),
        line,
    )


async def test_a_voice_engine_gets_the_stream_with_its_token_and_the_end(
    streamed: App, line: Line
) -> None:
    async with telnyx_town(streamed, line) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        assert call.actions == ["answer"]
        address = str(call.streams[0]["stream_url"])
        assert address.startswith("wss://calls.example/telnyx/media/")
        token = address.rpartition("/")[2]
        assert streamed.phone.pending_calls.tokens.is_address(token)
        assert call.streams[0]["stream_bidirectional_mode"] == "rtp"
        state = unpack_state(call.client_state)
        assert (state["call"], state["stream"]) == (call.control_id, "1")
        assert state[TOKEN_PARAMETER]
        town.lab.queue_event(
            call, "streaming.failed", {"failure_reason": "connection_failed"}
        )
        await town.lab.wait_delivered(call)
        assert call.heard[0].startswith("I'm sorry")
        assert call.is_over
    (row,) = streamed.store.list_page(limit=5)
    assert (row.live.sid, row.live.caller) == (call.control_id, CALLER)
    assert (row.state, row.end_reason) == ("sealed", "stream_failed")


async def test_a_stream_that_cannot_be_registered_leaves_the_call_to_the_receptionist(
    streamed: App, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(call: LiveCall) -> str:
        raise DatabaseUnreachable("gone")

    monkeypatch.setattr(streamed.phone.pending_calls, "register", fail)
    async with telnyx_town(streamed, line) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        assert (call.streams, call.heard) == (
            [],
            [streamed.settings.receptionist.greeting],
        )
        await town.lab.hang_up(call)
        await sealed(streamed)


async def test_recording_is_asked_for_when_it_is_wanted_and_never_in_the_way(
    settings: Settings, line: Line, open_app: OpenApp
) -> None:
    wanted = telnyx_settings(settings).model_copy(
        update={"recordings": RecordingsSettings(enabled=True)}
    )
    app = reach(open_app(wanted, SystemClock()), line)
    async with telnyx_town(app, line) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        assert call.actions == [
            "answer",
            "record_start",
            "transcription_start",
            "speak",
        ]
        await town.lab.hang_up(call)
        await sealed(app)


async def test_what_telnyx_did_not_sign_is_refused(town: TelnyxTown) -> None:
    call = town.lab.open_call(EVENTS, CALLER, "+15550101")
    event = town.lab.make_event(call, "call.initiated", {"direction": "incoming"})
    raw = json.dumps(event).encode()
    signed = town.lab.sign(raw)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(town.server)) as http:
        for body, headers in (
            (raw, {}),
            (raw + b" ", signed),
            (raw, signed | {"telnyx-timestamp": "1700000000"}),
            (json.dumps(event, indent=1).encode(), signed),
        ):
            assert (
                await http.post(EVENTS, content=body, headers=headers)
            ).status_code == 403
        assert (await http.post(EVENTS, content=raw, headers=signed)).status_code == 200
    assert call.actions == ["answer"]


async def test_without_keys_the_route_says_what_is_missing(app: App) -> None:
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(route_server(app))
    ) as http:
        answer = await http.post(EVENTS, content=b"{}")
    assert answer.status_code == 503
    assert "TELNYX_PUBLIC_KEY" in answer.json()["error"]["message"]


async def test_calls_that_we_dial_are_not_answered(town: TelnyxTown) -> None:
    call = town.lab.open_call(EVENTS, CALLER, "+15550101")
    town.lab.queue_event(
        call, "call.initiated", {"direction": "outgoing", "state": "bridging"}
    )
    town.lab.queue_event(call, "call.answered", {"state": "answered"})
    await town.lab.hang_up(call)
    assert call.actions == []
    assert town.app.store.list_page(limit=5) == []


async def test_a_call_too_many_hears_that_all_lines_are_busy_and_is_ended(
    settings: Settings, line: Line, open_app: OpenApp
) -> None:
    limits = LimitSettings(live_calls=1)
    few = telnyx_settings(settings).model_copy(update={"limits": limits})
    app = reach(open_app(few, SystemClock()), line)
    async with telnyx_town(app, line) as town:
        first = await town.lab.ring(EVENTS, caller=CALLER)
        second = await town.lab.ring(EVENTS, caller="+15550101")
        assert (second.actions, second.heard) == (["answer", "speak", "hangup"], [BUSY])
        await town.lab.say(first, "Please call the plumber.")
        assert len(first.heard) == 2
        assert len(app.journal.live_recorders) == 1
