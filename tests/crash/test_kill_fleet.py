"""Three servers on one Postgres behind a load balancer: the webhook of a call meets one, its
stream another, its end a third, and processes are killed in between. No call is lost or doubled.
"""

import asyncio
import os
from pathlib import Path

import httpx2
import pytest

from aftercall.app import App, build
from aftercall.journal.verify import verify_archive
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.telnyx import EmulatedTelnyx
from aftercall.lab.twilio import EmulatedTwilio
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from aftercall.web.twilio import CUT_OFF
from crash.server_fleet import Fleet, running_fleet, speak
from voice_server import KEY, TOKEN, open_stream, telnyx_network, told
from waiting import until

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
ROUNDS = 40 if SOAK else 1
CUT = 2  # the third call of each round
GREETING = "Hello! I'm the assistant. What can I do for you?"


async def run_twilio_call(fleet: Fleet, twilio: EmulatedTwilio, number: int) -> str:
    """The process that took the webhook dies before the stream comes."""
    doomed = fleet.servers[number % 3]
    fleet.route(number % 3, (number + 1) % 3, (number + 2) % 3)

    async def kill_first(path: str) -> None:
        if path.startswith("/twilio/media"):
            await fleet.kill(doomed)

    fleet.balancer.on_route = kill_first
    address = fleet.balancer.address
    call = await twilio.ring(
        f"{address}/twilio/voice",
        caller=f"+1555010{number:04}",
        status_url=f"{address}/twilio/status",
    )
    await speak(call.phone, number)
    await twilio.hang_up(call)
    fleet.balancer.on_route = None
    return call.sid


async def run_telnyx_call(fleet: Fleet, telnyx: EmulatedTelnyx, number: int) -> str:
    """Events reach any process, also the one that knows nothing of the call."""
    fleet.route(number % 3, (number + 1) % 3, 0)
    address = f"{fleet.balancer.address}/telnyx/events"
    call = await telnyx.ring(address, caller=f"+1555010{number:04}")
    phone = await open_stream(call, speed=10.0)
    await speak(phone, number)
    fleet.route((number + 2) % 3, (number + 1) % 3, 0)
    await telnyx.hang_up(call)
    await phone.wait_closed()
    return call.control_id


async def run_cut_call(fleet: Fleet, twilio: EmulatedTwilio, number: int) -> str:
    """The process with the stream dies in the middle of the call."""
    fleet.route(number % 3, (number + 1) % 3, (number + 2) % 3)
    doomed, address = fleet.servers[(number + 1) % 3], fleet.balancer.address
    call = await twilio.ring(
        f"{address}/twilio/voice",
        caller=f"+1555010{number:04}",
        status_url=f"{address}/twilio/status",
    )
    await speak(call.phone, number)
    await fleet.kill(doomed)
    await twilio.wait_for_hang_up(call)
    assert call.heard[-1] == CUT_OFF
    return call.sid


async def run_last_call(fleet: Fleet, twilio: EmulatedTwilio, number: int) -> str:
    """Its process is told to stop in the middle of the call, and stops after it."""
    fleet.route(2, 2, 1)
    server, address = fleet.servers[2], fleet.balancer.address
    call = await twilio.ring(
        f"{address}/twilio/voice",
        caller=f"+1555010{number:04}",
        status_url=f"{address}/twilio/status",
    )
    assert call.phone is not None
    await call.phone.wait_for_words("What can I do")
    server.ask_to_stop()
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
        while (await http.get(f"{server.address}/readyz")).status_code != 503:
            await asyncio.sleep(0.02)
    refused = await twilio.ring(f"{address}/twilio/voice", caller="+15550199")
    assert refused.state == "busy"
    await speak(call.phone, number)
    await twilio.hang_up(call)
    assert await server.wait_stopped() == 0
    return call.sid


def check_sealed(app: App, sids: list[str]) -> None:
    """Each call once, with what was said in it."""
    rows = app.store.list_page(limit=10_000)
    assert sorted(row.live.sid for row in rows) == sorted(sids)
    assert {row.end_reason for row in rows} == {"caller_hung_up"}
    numbers = {sid: number for number, sid in enumerate(sids)}
    for row in rows:
        call, _ = app.archive.read(str(row.archive_name))
        number = numbers[row.live.sid]
        heard = [("agent", GREETING), ("caller", f"Please call plumber {number}.")]
        if number % 3 == CUT:  # the last words may not have been on disk
            heard = heard[: len(told(call))]
        assert told(call)[: len(heard)] == heard != []
    assert verify_archive(app.archive.place, app.store).faults == ()


@pytest.mark.timeout(3600 if SOAK else 180)
async def test_a_call_whose_requests_meet_three_processes_is_sealed_once(
    tmp_path: Path, other_postgres: str
) -> None:
    sids: list[str] = []
    home = tmp_path / "home"
    home.mkdir()
    async with (
        EmulatedDeepgram(KEY, lambda heard: "Taken down.") as engine,
        telnyx_network() as (telnyx, keys),
        EmulatedTwilio(TOKEN, speed=10.0) as twilio,
        running_fleet(
            home,
            [other_postgres] * 3,
            AFTERCALL_ENGINE="deepgram",
            DEEPGRAM_API_KEY=KEY,
            AFTERCALL_DEEPGRAM_URL=engine.url,
            TELNYX_API_KEY=telnyx.api_key,
            TELNYX_PUBLIC_KEY=telnyx.public_key,
            AFTERCALL_TELNYX_API_URL=keys.api_url,
        ) as fleet,
    ):
        for carrier in (twilio, telnyx):
            carrier.http.headers["connection"] = "close"
        for _ in range(ROUNDS):
            await fleet.start_dead()
            sids.append(await run_twilio_call(fleet, twilio, len(sids)))
            await fleet.start_dead()
            sids.append(await run_telnyx_call(fleet, telnyx, len(sids)))
            sids.append(await run_cut_call(fleet, twilio, len(sids)))
        sids.append(await run_last_call(fleet, twilio, len(sids)))
        database = DatabaseSettings(url=other_postgres)
        app = build(Settings(home=home, database=database))
        try:
            await until(lambda: app.store.list_unsealed() == [])
            check_sealed(app, sids)
        finally:
            app.close()
