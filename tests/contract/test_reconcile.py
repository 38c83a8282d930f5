"""Calls whose webhook never came are brought, once, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from aftercall.errors import ConfigError
from aftercall.hosted import listings
from aftercall.lab import telnyx_rest, twilio_rest
from aftercall.lab.exchange import LabNumber, PhoneNetwork
from aftercall.lab.hosted import LabHostedCall
from aftercall.lab.telnyx import EmulatedTelnyx
from aftercall.model.calls import REQUEST_EVENT
from aftercall.reconcile import ReconcileRun
from aftercall.settings import Settings
from aftercall.settings.providers import TelnyxSettings, TwilioSettings
from aftercall.settings.sections import RecordingsSettings
from aftercall.work.health import report_json
from fakes import VirtualClock
from hosted_platforms import (
    LAB,
    NAMES,
    SECRET,
    Platforms,
    add_platforms,
    connect_platforms,
)
from opened_apps import OpenApp

HOUR_S = 3600.0


@pytest.fixture
async def platforms(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> AsyncIterator[Platforms]:
    found = connect_platforms(open_app(add_platforms(settings), clock))
    yield found
    await found.close()


async def ring_unheard(platforms: Platforms, name: str, *says: str) -> LabHostedCall:
    """A call whose report is dropped."""
    call = await platforms.ring(name, *says)
    platforms.by_name[name].faults.append("drop_webhook")
    await platforms.hang_up(call)
    return call


def add_calls(platforms: Platforms, name: str, count: int) -> None:
    """Calls that the platform never told of."""
    platform = platforms.by_name[name]
    for number in range(count):
        at = platform.clock.now() - timedelta(minutes=10 + number)
        call = LabHostedCall(f"c{number}", "", "+15550100", "+15550101", at)
        call.turns.append(("user", f"Hello {number}", at))
        call.ended_at = at + timedelta(seconds=5)
        platform.calls[call.id] = call


async def run(platforms: Platforms, clock: VirtualClock, **how: object) -> ReconcileRun:
    """Time passes while a service is waited for."""
    task = asyncio.create_task(platforms.app.reconciler.run(**how))  # type: ignore[arg-type]
    while not task.done():
        await asyncio.sleep(0.001)
        await clock.advance(1)
    return await task


@pytest.mark.parametrize("name", NAMES)
async def test_a_dropped_webhook_loses_no_call_and_everything_happens_once(
    platforms: Platforms, clock: VirtualClock, name: str
) -> None:
    call = await ring_unheard(
        platforms, name, "This is Ann.", "Please call the plumber."
    )
    clock.move(HOUR_S)
    tried = await run(platforms, clock, dry_run=True)
    assert tried.sources[name].missing == 1
    row = platforms.app.store.find(name, call.id)
    assert row is not None
    assert row.state == "live"
    for brought in (1, 0):
        made = await run(platforms, clock)
        assert (made.sources[name].brought, made.errors) == (brought, [])
    stored = platforms.read_stored(name, call)
    assert [turn.text for turn in stored.turns] == [text for _, text, _ in call.turns]
    assert sum(event.kind == REQUEST_EVENT for event in stored.events) == 1
    platform = platforms.by_name[name]
    for _, event in platform.make_reports(call):  # the webhook comes after all
        await platform.post(call, "", event)
    assert platforms.app.store.find(name, f"{call.id}.2") is None
    assert len(platforms.app.store.list_page(limit=10)) == 1


async def test_a_busy_service_is_waited_for_and_many_pages_are_read(
    platforms: Platforms, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "PAGE_SIZE", 2)
    for name in NAMES:
        add_calls(platforms, name, 3)
        platforms.by_name[name].faults.extend(["rate_limit", "server_error"])
    made = await run(platforms, clock)
    assert made.errors == []
    found = {name: result.brought for name, result in made.sources.items()}
    assert found == dict.fromkeys(NAMES, 3)
    shown = report_json(platforms.app.report_health())["last_reconcile"]
    assert (shown["listed"], shown["brought"], shown["lost"]) == (12, 12, 0)


async def test_a_run_that_failed_goes_on_where_it_stood(
    platforms: Platforms, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "PAGE_SIZE", 4)
    add_calls(platforms, "retell", 6)
    retell = platforms.by_name["retell"]
    page = retell.list_page

    def fail_at_the_second(asked: dict[str, object]) -> object:
        if asked.get("pagination_key"):
            retell.faults.extend(["server_error"] * 10)
        return page(asked)

    retell.list_page = fail_at_the_second  # type: ignore[method-assign]
    first = await run(platforms, clock)
    assert "retell: answered 500 to a request for calls" in first.errors
    assert first.sources["retell"].listed in (4, 6)
    retell.list_page = page  # type: ignore[method-assign]
    retell.faults.clear()
    second = await run(platforms, clock)
    assert (second.sources["retell"].listed, second.errors) == (6, [])
    assert len(platforms.app.store.list_page(limit=9)) == 6


async def test_what_the_platform_has_deleted_is_named_and_does_not_stop_the_rest(
    platforms: Platforms, clock: VirtualClock
) -> None:
    add_calls(platforms, "vapi", 2)
    vapi = platforms.by_name["vapi"]
    listed = vapi.list_page({})
    del vapi.calls["c1"]
    vapi.list_page = lambda asked: listed  # type: ignore[method-assign]
    made = (await run(platforms, clock, only=["vapi"])).sources["vapi"]
    assert (made.brought, made.lost[0].sid) == (1, "c1")
    assert made.lost[0].reason == "vapi no longer has it"


async def test_a_call_that_goes_on_or_has_just_ended_is_left_to_its_webhook(
    platforms: Platforms, clock: VirtualClock
) -> None:
    await platforms.ring("vapi")
    await ring_unheard(platforms, "retell")
    made = await run(platforms, clock)
    assert [result.missing for result in made.sources.values()] == [0, 0, 0, 0]


async def test_a_call_that_rang_at_a_carrier_and_never_reached_us_is_noted(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    account = "AC" + "1" * 32
    secret = SecretStr(SECRET)
    twilio = TwilioSettings(account_sid=account, auth_token=secret, api_url=LAB)
    telnyx = TelnyxSettings(api_key=secret, api_url=LAB, phone_number="+15550101")
    reached = add_platforms(settings).model_copy(
        update={"twilio": twilio, "telnyx": telnyx}
    )
    numbers = {"+15550101": LabNumber("http://nowhere.invalid/voice")}
    network = PhoneNetwork(SECRET, account, numbers=numbers, clock=clock)
    carrier = EmulatedTelnyx(SECRET, clock=clock)

    def add_carriers(lab: FastAPI) -> None:
        lab.include_router(twilio_rest.make_router(network))
        lab.include_router(telnyx_rest.make_router(carrier))

    platforms = connect_platforms(open_app(reached, clock), add_carriers)
    async with network, carrier:
        leg, end, agent_side = network.start_manual_call("+15550100", "+15550101")
        end.hang_up()
        await agent_side
        rung = await carrier.ring("http://nowhere.invalid", caller="+15550102")
        await carrier.hang_up(rung)
        clock.move(HOUR_S)
        carrier.faults.append("rate_limit")
        only = ["twilio", "telnyx"]
        made = await run(platforms, clock, only=only)
        again = await run(platforms, clock, only=only)
    assert [made.sources[name].brought for name in only] == [1, 1]
    assert [again.sources[name].missing for name in only] == [0, 0]
    assert "keeps no words" in made.sources["twilio"].lost[0].reason
    stored = {row.live.source: row for row in platforms.app.store.list_page(limit=5)}
    assert stored["twilio"].live.sid == leg.sid
    assert stored["telnyx"].live.caller == "+15550102"
    assert str(stored["telnyx"].end_reason).startswith("unanswered")
    await platforms.close()


async def test_without_a_key_there_is_nothing_to_compare_with(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    app = open_app(settings, clock)
    with pytest.raises(ConfigError, match="no carrier or platform is set up"):
        await app.reconciler.run()
    await app.reconciler.run_if_due()
    assert app.reconciler.store.get_last_run() is None


async def test_a_recording_that_nobody_noted_is_noted_by_the_next_run(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    wanted = add_platforms(settings)
    platforms = connect_platforms(open_app(wanted, clock))
    call = await platforms.ring("retell", "This is Ann.")
    await platforms.hang_up(call)
    assert platforms.app.recordings.list_due() == []
    recorded = RecordingsSettings(enabled=True)
    enabled = wanted.model_copy(update={"recordings": recorded})
    clock.move(HOUR_S)
    app = replace(platforms.app, settings=enabled)
    for _ in range(2):
        await run(Platforms(app, platforms.by_name), clock)
        assert len(app.recordings.list_due()) == 1
    await platforms.close()
