"""Three servers, one Postgres, one object store, and everything fails in turn: processes are
killed, Postgres is restarted, the store goes away, a server is cut off from the database.

Callers ring and calls are handed in all the while. What a caller was told is taken down is in the
archive once, and when all is mended nothing waits.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from sqlalchemy.engine import make_url

from aftercall.app import App, build
from aftercall.journal.verify import verify_archive
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.twilio import EmulatedTwilio
from aftercall.settings import Settings
from aftercall.settings.providers import ArchiveSettings
from aftercall.settings.sections import DatabaseSettings
from api_client import JSON, bearer
from crash.killable_server import MortalServer
from crash.server_fleet import Fleet, Link, running_fleet, speak
from database_switches import Stopped
from fakes import make_call
from s3_server import S3Server
from voice_server import KEY, TOKEN

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
ROUNDS = 40 if SOAK else 2
OUTAGE_S = 20.0 if SOAK else 2.0
CALLS_IN_A_ROUND = 4 if SOAK else 2
PATIENCE_S = 15.0 if SOAK else 6.0  # then a caller hangs up
RETRY_S = 0.2
SETTLE_POLL_S = 1.0
CALLS_WHILE_IT_HANGS = 3
READY = {"status": "ready"}
SEED = int(os.environ.get("AFTERCALL_CHAOS_SEED", "24"))

Fault = Callable[[], Awaitable[None]]


@dataclass
class Chaos:
    """What fails, and who notices."""

    fleet: Fleet
    twilio: EmulatedTwilio
    links: Sequence[Link]
    postgres: Stopped
    store: S3Server
    headers: dict[str, str]
    luck: random.Random = field(default_factory=lambda: random.Random(SEED))
    rung: list[str] = field(default_factory=list)
    confirmed: dict[str, str] = field(default_factory=dict)
    """The words of calls whose caller was told that they are taken down, by sid."""
    handed_in: dict[str, str] = field(default_factory=dict)

    async def run_round(self, faults: Sequence[Fault]) -> None:
        """Two things fail at once, while callers ring and calls are handed in."""
        start = len(self.rung) + len(self.handed_in)
        numbers = range(start, start + CALLS_IN_A_ROUND)
        calls = [self._ring(number) for number in numbers]
        calls += [self._hand_in(number) for number in numbers]
        await asyncio.gather(*(fail() for fail in faults), *calls)
        await self.fleet.start_dead()

    def list_servers(self, _path: str) -> list[MortalServer]:
        """Nothing is sticky: each connection goes to any server."""
        return self.luck.sample(self.fleet.servers, len(self.fleet.servers))

    def shuffle_faults(self) -> list[Fault]:
        faults: list[Fault] = [
            self._kill_server,
            self._restart_postgres,
            self._stop_store,
            self._cut_link,
        ]
        return self.luck.sample(faults, len(faults))

    async def _kill_server(self) -> None:
        await asyncio.sleep(self.luck.uniform(0, 2))
        await self.fleet.kill(self.luck.choice(self.fleet.servers))

    async def _restart_postgres(self) -> None:
        await asyncio.to_thread(self.postgres.off)
        await asyncio.sleep(OUTAGE_S)
        await asyncio.to_thread(self.postgres.on)

    async def _stop_store(self) -> None:
        await asyncio.to_thread(self.store.stop)
        await asyncio.sleep(OUTAGE_S)
        await asyncio.to_thread(self.store.start)

    async def _cut_link(self) -> None:
        link = self.luck.choice(self.links)
        link.cut()
        await asyncio.sleep(OUTAGE_S)
        link.mend()

    async def _ring(self, number: int) -> None:
        """A caller who gives up when the line is dead or stays silent."""
        await asyncio.sleep(self.luck.uniform(0, OUTAGE_S))
        address = self.fleet.balancer.address
        call = await self.twilio.ring(
            f"{address}/twilio/voice",
            caller=f"+1555010{number:04}",
            status_url=f"{address}/twilio/status",
        )
        self.rung.append(call.sid)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await speak(call.phone, number)
        except (AssertionError, TimeoutError):
            pass
        else:
            self.confirmed[call.sid] = f"Please call plumber {number}."
        await self.twilio.hang_up(call)

    async def _hand_in(self, number: int) -> None:
        """Repeats it until it is taken, as a client does."""
        words = f"Please call electrician {number}."
        call = make_call(
            [("agent", "Hello!"), ("caller", words)],
            sid=f"handed-in-{number}",
            caller=f"+1555020{number:04}",
            started_at=datetime.now(UTC) - timedelta(minutes=1),
        )
        body = call.model_dump_json(by_alias=True)
        url = f"{self.fleet.balancer.address}/api/calls"
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
            while True:
                try:
                    answer = await http.post(
                        url, content=body, headers=self.headers | JSON
                    )
                except httpx2.HTTPError:
                    answer = None
                if answer is not None and answer.status_code in (200, 201):
                    break
                assert answer is None or answer.status_code == 503, answer.text
                await asyncio.sleep(RETRY_S)
        self.handed_in[call.sid] = words


def find_socket(postgres: Stopped) -> Path:
    folder = Path(str(make_url(postgres.url).query["host"]))
    return next(folder.glob(".s.PGSQL.*[0-9]"))


@asynccontextmanager
async def cuttable_links(postgres: Stopped, count: int) -> AsyncIterator[list[Link]]:
    links = [Link(find_socket(postgres)) for _ in range(count)]
    async with AsyncExitStack() as stack:
        for link in links:
            await stack.enter_async_context(link.listen())
        yield links


def address_of(postgres: Stopped, link: Link) -> str:
    url = make_url(postgres.url).set(host="127.0.0.1", port=link.port)
    return url.difference_update_query(["host"]).render_as_string(hide_password=False)


def name_store(archive: ArchiveSettings) -> dict[str, str]:
    assert archive.endpoint
    assert archive.access_key_id
    assert archive.secret_access_key
    return {
        "AFTERCALL_ARCHIVE_URL": archive.url,
        "AWS_ENDPOINT_URL": archive.endpoint,
        "AWS_ACCESS_KEY_ID": archive.access_key_id,
        "AWS_SECRET_ACCESS_KEY": archive.secret_access_key.get_secret_value(),
    }


def is_settled(app: App) -> bool:
    """Nothing waits: no call, no upload, no work."""
    health = app.report_health()
    return (
        app.store.list_unsealed() == []
        and app.journal.spill.list_files() == []
        and app.archive.place.count_waiting() == 0
        and health.by_state["pending"] == 0
        and health.status == "ok"
    )


def check_calls(app: App, chaos: Chaos) -> None:
    """Each call once, and in it once what was said."""
    rows = app.store.list_page(limit=10_000)
    sids = Counter(str(row.live.metadata.get("call_sid", row.live.sid)) for row in rows)
    assert chaos.confirmed, "no streamed call was answered"
    expected = chaos.confirmed | chaos.handed_in
    assert {sid: sids[sid] for sid in expected} == dict.fromkeys(expected, 1)
    assert set(sids) <= {*chaos.rung, *chaos.handed_in}
    assert set(sids.values()) == {1}
    for row in rows:
        call, late = app.archive.read(str(row.archive_name))
        words = expected.get(row.live.sid)
        if words is None:
            continue
        said = [turn.text for turn in (*call.turns, *late) if hasattr(turn, "text")]
        assert said.count(words) == 1
        requests = app.work.followups.of_conversation(call.conversation)
        assert [request.kind for request in requests].count("request") == 1
    proof = verify_archive(app.archive.place, app.store)
    assert (proof.faults, proof.waiting) == ((), 0)


@pytest.mark.timeout(7200 if SOAK else 240)
async def test_nothing_is_lost_doubled_or_stuck_whatever_fails(
    tmp_path: Path, stoppable: Stopped
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    stoppable.on()
    stoppable.rename()
    store = S3Server()
    archive = store.make_bucket()
    settings = Settings(
        home=home,
        database=DatabaseSettings(url=stoppable.url),
        archive=archive,
        reconnect_window_s=1,
    )
    async with (
        EmulatedDeepgram(KEY, lambda heard: "Taken down.") as engine,
        EmulatedTwilio(TOKEN, speed=10.0) as twilio,
        cuttable_links(stoppable, 3) as links,
        running_fleet(
            home,
            [address_of(stoppable, link) for link in links],
            AFTERCALL_RECONNECT_WINDOW_S="1",
            AFTERCALL_ENGINE="deepgram",
            DEEPGRAM_API_KEY=KEY,
            AFTERCALL_DEEPGRAM_URL=engine.url,
            **name_store(archive),
        ) as fleet,
    ):
        twilio.http.headers["connection"] = "close"
        chaos = Chaos(fleet, twilio, links, stoppable, store, bearer(settings))
        fleet.balancer.list_servers = chaos.list_servers
        faults: list[Fault] = []
        for _ in range(ROUNDS):
            faults = faults or chaos.shuffle_faults()
            await chaos.run_round([faults.pop(), faults.pop()])
        app = build(settings)
        try:
            # A ring that found the database gone, and whose end met another server, lasts until
            # its stream can no longer come (two minutes).
            while not await asyncio.to_thread(is_settled, app):
                await asyncio.sleep(SETTLE_POLL_S)
            check_calls(app, chaos)
        finally:
            app.close()
    store.stop()


@pytest.mark.timeout(240)
async def test_calls_are_answered_while_postgres_hangs_and_stored_once_after(
    tmp_path: Path, stoppable: Stopped
) -> None:
    """It takes what is sent and says nothing, which no limit of the network ends. The first time
    it goes on as if nothing had been, the second time it has forgotten its connections.
    """
    home = tmp_path / "home"
    home.mkdir()
    stoppable.on()
    stoppable.rename()
    settings = Settings(
        home=home, database=DatabaseSettings(url=stoppable.url), reconnect_window_s=1
    )
    async with (
        EmulatedDeepgram(KEY, lambda heard: "Taken down.") as engine,
        EmulatedTwilio(TOKEN, speed=10.0) as twilio,
        cuttable_links(stoppable, 1) as (link,),
        running_fleet(
            home,
            [address_of(stoppable, link)],
            AFTERCALL_RECONNECT_WINDOW_S="1",
            AFTERCALL_ENGINE="deepgram",
            DEEPGRAM_API_KEY=KEY,
            AFTERCALL_DEEPGRAM_URL=engine.url,
        ) as fleet,
        httpx2.AsyncClient(timeout=60, trust_env=False) as http,
    ):
        (server,) = fleet.servers
        fleet.balancer.list_servers = lambda path: [server]
        twilio.http.headers["connection"] = "close"
        sids: list[str] = []
        for end_hang in (link.resume, link.mend):
            while await read_status(http, server) != READY:
                await asyncio.sleep(SETTLE_POLL_S)
            link.cut()
            assert await read_status(http, server) == READY | {"database": "away"}
            for _ in range(CALLS_WHILE_IT_HANGS):
                address = fleet.balancer.address
                call = await twilio.ring(
                    f"{address}/twilio/voice",
                    caller=f"+1555010{len(sids):04}",
                    status_url=f"{address}/twilio/status",
                )
                await speak(call.phone, len(sids))
                await twilio.hang_up(call)
                sids.append(call.sid)
            end_hang()
        app = build(settings)
        try:
            while not await asyncio.to_thread(is_settled, app):
                await asyncio.sleep(SETTLE_POLL_S)
            rows = app.store.list_page(limit=100)
            assert sorted(row.live.sid for row in rows) == sorted(sids)
            assert verify_archive(app.archive.place, app.store).faults == ()
        finally:
            app.close()


async def read_status(http: httpx2.AsyncClient, server: MortalServer) -> dict[str, str]:
    answer = await http.get(f"{server.address}/readyz")
    status: dict[str, str] = answer.json()
    return status
