"""Calls at hosted platforms, from the ring to the report, on both databases."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import update

from aftercall.bridge.hosted_calls import CALL_OVER, REPORT_EVENT
from aftercall.bridge.remote_call import SentTurn
from aftercall.db.tables import calls
from aftercall.hosted.adapters import Vapi
from aftercall.lab.carrier import DeliveryFaults
from aftercall.lab.hosted import EmulatedVapi
from aftercall.model.calls import REQUEST_EVENT, Call
from aftercall.settings import Settings
from aftercall.settings.sections import LimitSettings, RecordingsSettings
from fakes import VirtualClock
from hosted_platforms import NAMES, Platforms, add_platforms, connect_platforms
from opened_apps import OpenApp, crashed

SAID = ("This is Ann.", "Please call the plumber.")


@pytest.fixture
async def platforms(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> AsyncIterator[Platforms]:
    found = connect_platforms(open_app(add_platforms(settings), clock))
    yield found
    await found.close()


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_is_briefed_live_served_by_tools_and_stored_once(
    platforms: Platforms, clock: VirtualClock, name: str
) -> None:
    call = await platforms.ring(name)
    assert call.variables["is_known_caller"] in (False, "false")
    live = platforms.app.store.find(name, call.id)
    assert live is not None
    assert (live.state, live.live.caller) == ("live", "+15550100")
    platform = platforms.by_name[name]
    for text in SAID:
        await platform.say(call, text)
    told = await platform.use_tool(call, "search_memory", {"query": "plumber"})
    assert "Nothing was found" in told
    clock.move(60)
    await platform.hang_up(call)
    assert call.refused == []
    stored = platforms.read_stored(name, call)
    words = [
        ("agent" if turn.speaker == "agent" else "user", turn.text)
        for turn in stored.turns
    ]
    assert words == [(who, text) for who, text, _ in call.turns]
    assert call.ended_at is not None
    assert abs(stored.ended_at - call.ended_at) < timedelta(seconds=1)
    took = [event for event in stored.events if event.kind == REQUEST_EVENT]
    assert [event.data["title"] for event in took] == ["Please call the plumber."]
    platforms.run_steps(name, call)
    again = await platforms.ring(name)
    assert again.variables["caller_name"] == "Ann"
    assert "plumber" in again.variables["last_call"]


async def test_what_a_platform_sends_twice_changes_nothing(
    platforms: Platforms, clock: VirtualClock
) -> None:
    for name in NAMES:
        platform = platforms.by_name[name]
        platform.webhook_sender.delivery_faults = DeliveryFaults(frozenset({"*"}))
        call = await platforms.ring(name, *SAID)
        for _ in range(2):
            await platform.use_tool(call, "take_request", {"title": "Send an invoice"})
        clock.move(60)
        await platforms.hang_up(call)
        stored = platforms.read_stored(name, call)
        assert len(stored.turns) == len(call.turns)
        took = [event for event in stored.events if event.kind == REQUEST_EVENT]
        # of uses without an id the same words are one use
        assert len(took) == (3 if name == "vapi" else 2)
        assert len([e for e in stored.events if e.kind == REPORT_EVENT]) <= 1
        assert platforms.app.store.find(name, f"{call.id}.2") is None


async def test_a_tool_of_a_call_never_seen_opens_it_and_one_after_the_end_does_nothing(
    platforms: Platforms, clock: VirtualClock
) -> None:
    vapi = platforms.by_name["vapi"]
    assert isinstance(vapi, EmulatedVapi)
    call = await platforms.ring("elevenlabs")
    call.id = "00000000-0000-4000-8000-000000000000"
    vapi.calls[call.id] = call
    assert "Taken down" in await vapi.use_tool(
        call, "take_request", {"title": "A quote"}
    )
    row = platforms.app.store.find("vapi", call.id)
    assert row is not None
    assert row.state == "live"
    clock.move(60)
    await vapi.hang_up(call)
    late = await vapi.use_tool(call, "take_request", {"title": "Another"})
    assert late == CALL_OVER


async def test_turns_keep_the_times_that_the_report_gives_them(
    platforms: Platforms, clock: VirtualClock
) -> None:
    call = await platforms.ring("vapi", "Hello.")
    clock.move(120)
    await platforms.by_name["vapi"].use_tool(call, "take_request", {"title": "A quote"})
    await platforms.hang_up(call)
    stored = platforms.read_stored("vapi", call)
    assert [turn.at for turn in stored.turns] == [at for _, _, at in call.turns]
    (took,) = (event for event in stored.events if event.kind == REQUEST_EVENT)
    assert took.at == clock.now()


async def test_a_platform_that_falls_silent_loses_its_lease_but_not_its_words(
    platforms: Platforms, clock: VirtualClock
) -> None:
    call = await platforms.ring("retell", *SAID)
    clock.move(platforms.app.settings.live.platform_lease_s + 1)
    await platforms.app.phone.remote_calls.end_expired()
    row = platforms.app.store.find("retell", call.id)
    assert row is not None
    assert row.end_reason == "interrupted"
    await platforms.hang_up(call)
    second = platforms.app.store.find("retell", f"{call.id}.2")
    assert second is not None
    assert (second.turn_count, second.live.resumes) == (len(call.turns), row.live.id)


async def test_a_report_cut_off_by_a_crash_is_completed_when_it_comes_again(
    platforms: Platforms, clock: VirtualClock
) -> None:
    app = platforms.app
    with crashed(app) as other:
        elsewhere = connect_platforms(other)
        call = await elsewhere.ring("vapi", *SAID)
        report = read_report(elsewhere, call.id, clock)
        live = elsewhere.app.phone.remote_calls.find_live("vapi", call.id)
        assert live is not None
        first = report.turns[0]
        await live.write_turns([SentTurn(speaker=first.speaker, text=first.text)])
        await elsewhere.close()
        await other.journal.close()
    for is_new in (True, False):
        assert (await app.hosted_calls.take_report(report))[1] is is_new
    legs = [app.store.find("vapi", sid) for sid in (call.id, f"{call.id}.2")]
    files = [app.archive.read(str(leg.archive_name))[0] for leg in legs if leg]
    texts = [turn.text for leg in files for turn in leg.turns]
    assert texts == [text for _, text, _ in call.turns]
    assert [len(leg.turns) for leg in files] == [1, len(call.turns) - 1]


def read_report(platforms: Platforms, call_id: str, clock: VirtualClock) -> Call:
    vapi = platforms.by_name["vapi"]
    call = vapi.calls[call_id]
    clock.move(60)
    call.ended_at = call.started_at + timedelta(seconds=30)
    report = Vapi(None).read_call(vapi.make_reports(call)[-1][1], "main")
    assert report is not None
    return report


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_too_many_is_briefed_not_opened_and_stored_by_its_report(
    settings: Settings, clock: VirtualClock, open_app: OpenApp, name: str
) -> None:
    limited = settings.model_copy(update={"limits": LimitSettings(live_calls=1)})
    platforms = connect_platforms(open_app(add_platforms(limited), clock))
    first = await platforms.ring(name)
    second = await platforms.ring(name, caller="+15550107")
    assert second.variables["first_words"]
    assert platforms.app.store.find(name, second.id) is None
    second.refused.clear()
    await platforms.by_name[name].say(second, "Please call the plumber.")
    assert second.refused == [503]
    await platforms.by_name[name].say(first, "Please call the plumber.")
    assert first.refused == []
    clock.move(60)
    for call in (second, first):
        await platforms.hang_up(call)
        assert len(platforms.read_stored(name, call).turns) == len(call.turns)
    await platforms.close()


@pytest.mark.parametrize("name", NAMES)
async def test_a_report_refused_while_too_many_wait_is_brought_by_reconciling(
    settings: Settings, clock: VirtualClock, open_app: OpenApp, name: str
) -> None:
    limited = settings.model_copy(update={"limits": LimitSettings(queue=1)})
    platforms = connect_platforms(open_app(add_platforms(limited), clock))
    shown = await platforms.ring(name)
    unseen = await platforms.ring(name)
    seen = platforms.app.phone.remote_calls.find_live(name, unseen.id)
    assert seen is not None
    await seen.end("interrupted", clock.now())
    clock.move(60)
    await platforms.hang_up(shown)
    assert len(platforms.read_stored(name, shown).turns) == len(shown.turns)
    await platforms.hang_up(unseen)
    assert set(unseen.refused) == {503}
    with platforms.app.database.write() as connection:
        connection.execute(update(calls).values(postcall="started"))
    clock.move(3600)
    made = (await platforms.app.reconciler.run()).sources[name]
    assert made.brought == 1
    assert (await platforms.app.reconciler.run()).sources[name].brought == 0
    await platforms.close()


@pytest.mark.parametrize("name", NAMES)
async def test_a_report_that_names_a_recording_makes_it_due_once(
    settings: Settings, clock: VirtualClock, open_app: OpenApp, name: str
) -> None:
    recorded = RecordingsSettings(enabled=True)
    wanted = add_platforms(settings).model_copy(update={"recordings": recorded})
    platforms = connect_platforms(open_app(wanted, clock))
    platform = platforms.by_name[name]
    platform.webhook_sender.delivery_faults = DeliveryFaults(frozenset({"*"}))
    call = await platforms.ring(name, *SAID)
    clock.move(60)
    await platforms.hang_up(call)
    row = platforms.app.store.find(name, call.id)
    assert row is not None
    (found,) = platforms.app.recordings.list_for_call(row.live.id)
    named = None if name == "elevenlabs" else platform.recordings.find_url(call.id)
    assert (found.state, found.sid, found.url) == ("waiting", call.id, named)
    await platforms.close()


async def test_without_the_setting_no_recording_of_a_platform_is_fetched(
    platforms: Platforms, clock: VirtualClock
) -> None:
    call = await platforms.ring("vapi", *SAID)
    clock.move(60)
    await platforms.hang_up(call)
    assert platforms.app.recordings.list_due() == []
