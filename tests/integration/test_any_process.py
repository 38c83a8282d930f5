"""Three processes on one Postgres: each request of a call may reach any of them."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from pydantic import SecretStr
from sqlalchemy import QueuePool, select

from aftercall.app import App
from aftercall.bridge import switchboard
from aftercall.bridge.remote_call import RemoteStart, SentTurn
from aftercall.bridge.turn_call import NOT_WRITTEN
from aftercall.clock import SystemClock
from aftercall.db.tables import handovers
from aftercall.db.upgrade import HOME_ID_FILE
from aftercall.errors import CallElsewhere, DatabaseUnreachable
from aftercall.journal import spill
from aftercall.journal.journal import DATABASE_TIMEOUT_S, recover
from aftercall.journal.verify import verify_archive
from aftercall.lab.carrier import DeliveryFaults
from aftercall.lab.twilio import EmulatedTwilio
from aftercall.model.calls import LiveCall, encode_call
from aftercall.phone.signature import TOKEN_PARAMETER
from aftercall.settings import Settings
from aftercall.settings.providers import TwilioSettings
from aftercall.settings.sections import BriefingSettings, DatabaseSettings
from aftercall.web import telnyx
from aftercall.web.server import make_server
from api_client import JSON, bearer
from database_switches import Stopped
from fakes import make_call, make_live_call
from hosted_platforms import add_platforms, connect_platforms
from opened_apps import OpenApp, crashed
from s3_server import S3Server
from telnyx_setup import EVENTS, PUBLIC, Line, reach, telnyx_settings, telnyx_town

TOKEN = "twilio-token"
CALLER = "+15550100"
MAX_TWILIO_PARAMETER_CHARS = 500  # name and value


@pytest.fixture
def fleet_settings(other_postgres: str, tmp_path: Path) -> Settings:
    settings = Settings(
        home=tmp_path / "home",
        secret_key=SecretStr("the key of all machines"),
        database=DatabaseSettings(url=other_postgres),
        briefing=BriefingSettings(timeout_ms=10_000),
        twilio=TwilioSettings(auth_token=SecretStr(TOKEN)),
    )
    return telnyx_settings(settings)


@pytest.fixture
def to_telnyx() -> Line:
    return Line()


@pytest.fixture
def fleet(
    fleet_settings: Settings, to_telnyx: Line, open_app: OpenApp
) -> Sequence[App]:
    return [reach(open_app(fleet_settings, SystemClock()), to_telnyx) for _ in range(3)]


class Balancer(httpx2.AsyncBaseTransport):
    """Sends each request to the next process."""

    def __init__(self, fleet: Sequence[App]) -> None:
        self._inner = cycle([httpx2.ASGITransport(make_server(app)) for app in fleet])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await next(self._inner).handle_async_request(request)


def read_sealed(app: App) -> tuple[list[tuple[str, str]], str]:
    """The turns of the only call, and how it ended."""
    (row,) = app.store.list_page(limit=5)
    call, _ = app.archive.read(str(row.archive_name))
    return [(turn.speaker, turn.text) for turn in call.turns], call.end_reason


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.02)


async def test_each_turn_of_a_call_is_answered_by_another_process(
    fleet: Sequence[App],
) -> None:
    async with EmulatedTwilio(TOKEN, transport=Balancer(fleet)) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        await twilio.say(call, "This is Anna. Please call the plumber.")
        await twilio.stay_silent(call)
        await twilio.say(call, "And remind me to water the plants.")
        await twilio.say(call, "No.")
    assert call.is_over
    assert call.heard[0] == fleet[0].settings.receptionist.greeting
    assert "call the plumber" in call.heard[1]
    assert call.heard[2] == "Are you still there?"
    assert "water the plants" in call.heard[3]
    assert "plumber" not in call.heard[3]
    assert "Anna" in call.heard[4]
    await until(lambda: fleet[0].store.list_unsealed() == [])
    turns, reason = read_sealed(fleet[0])
    assert [text for speaker, text in turns if speaker == "agent"] == call.heard
    assert [text for speaker, text in turns if speaker == "caller"] == [
        "This is Anna. Please call the plumber.",
        "And remind me to water the plants.",
        "No.",
    ]
    assert reason == "agent_hung_up"


async def test_a_turn_that_comes_again_elsewhere_gets_the_same_answer(
    fleet: Sequence[App],
) -> None:
    async with EmulatedTwilio(TOKEN, transport=Balancer(fleet)) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        again = await twilio.post(call, f"{PUBLIC}/twilio/voice", {})
        assert call.heard[0] in again.text.replace("&apos;", "'")
        answer_url = call.answer_url
        await twilio.say(call, "Please call the plumber.")
        said = {"SpeechResult": "Please call the plumber."}
        for _ in fleet:
            again = await twilio.post(call, answer_url, said)
            assert "call the plumber" in again.text
    (row,) = fleet[0].store.list_unsealed()
    assert len(fleet[0].store.list_entries(row.live.id)) == 3


async def test_the_end_of_a_call_is_stored_where_it_is_reported(
    fleet: Sequence[App],
) -> None:
    first, _, third = fleet
    async with EmulatedTwilio(TOKEN, transport=Balancer(fleet)) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        await twilio.say(call, "Please call the plumber.")
        status = {"CallStatus": "completed"}
        await twilio.post(call, f"{PUBLIC}/twilio/status", status)
    turns, reason = read_sealed(third)
    assert (len(turns), reason) == (3, "caller_hung_up")
    await first.phone.follow_handovers()
    assert first.journal.live_recorders == []


async def test_telnyx_events_that_come_twice_to_different_processes_count_once(
    fleet: Sequence[App], to_telnyx: Line
) -> None:
    twice = DeliveryFaults(duplicated_kinds=frozenset({"*"}))
    async with telnyx_town(fleet[0], to_telnyx, habits=twice) as town:
        town.to_agent.inner = Balancer(fleet)
        call = await town.lab.ring(EVENTS, caller=CALLER)
        await town.lab.say(call, "Please call the plumber.")
        await town.lab.say(call, "And remind me to water the plants.")
        await town.lab.hang_up(call)
        await until(lambda: fleet[0].store.list_unsealed() == [])
        for app in fleet[1:]:
            await app.phone.close()
    turns, reason = read_sealed(fleet[0])
    assert [text for speaker, text in turns if speaker == "agent"] == call.heard
    assert [text for speaker, text in turns if speaker == "caller"] == [
        "Please call the plumber.",
        "And remind me to water the plants.",
    ]
    assert reason == "caller_hung_up"


async def test_a_stream_takes_its_call_wherever_it_comes_and_once(
    fleet: Sequence[App],
) -> None:
    first, second, third = (app.phone.pending_calls for app in fleet)
    live = make_live_call(source="twilio", started_at=fleet[0].clock.now())
    token = await first.register(live)
    other = await third.register(make_again(live))  # the webhook comes twice
    taken = await second.claim("twilio", live.sid, token, "MZ1")
    assert taken is not None
    assert (taken.call.id, taken.call.caller) == (live.id, live.caller)
    assert (await taken.briefing_task)[1].greeting
    for calls, brought in ((first, token), (third, token), (third, other)):
        assert await calls.claim("twilio", live.sid, brought, "MZ2") is None
    await fleet[0].phone.follow_handovers()
    assert fleet[0].journal.live_recorders == []
    await fleet[2].phone.end_call("twilio", live.sid, "caller_hung_up")
    assert taken.end_reason is None
    await fleet[1].phone.follow_handovers()
    assert taken.end_reason == "caller_hung_up"


async def test_a_call_that_rings_while_the_database_is_away_is_taken_anywhere(
    fleet: Sequence[App],
) -> None:
    live = make_live_call(source="twilio", started_at=fleet[0].clock.now())
    for app in fleet[:2]:
        app.journal.outage.start(DatabaseUnreachable("it is away"))
    token = await fleet[0].phone.pending_calls.register(live)
    assert len(f"{TOKEN_PARAMETER}{token}") < MAX_TWILIO_PARAMETER_CHARS
    assert fleet[0].journal.live_recorders == []
    taken = await fleet[1].phone.pending_calls.claim("twilio", live.sid, token, "MZ1")
    assert taken is not None
    assert (taken.call.id, taken.call.caller) == (live.id, live.caller)
    assert taken.recorder.is_spilling
    await until(lambda: not taken.recorder.is_spilling)
    await fleet[1].journal.seal(taken.recorder, end_reason="agent_hung_up")
    assert read_sealed(fleet[2]) == ([], "agent_hung_up")


async def test_words_on_the_disk_of_a_process_whose_call_was_taken_are_not_left_there(
    fleet: Sequence[App],
) -> None:
    """It learns that the call was taken while the words have not returned to the database."""
    first, second, _ = fleet
    ways = Balancer([first, second, first])
    async with EmulatedTwilio(TOKEN, transport=ways) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        await twilio.say(call, "My name is Walter.")
        first.journal.outage.start(DatabaseUnreachable("it hangs"))
        await twilio.say(call, "Please water the tulips.")
        assert first.journal.spill.list_files() != []
        await first.phone.follow_handovers()
        await until(lambda: first.journal.spill.list_files() == [])
        status = {"CallStatus": "completed"}
        await twilio.post(call, f"{PUBLIC}/twilio/status", status)
    for app in fleet:
        await app.phone.follow_handovers()
    await until(lambda: second.store.list_unsealed() == [])
    assert sorted(list_caller_words(second)) == [
        "My name is Walter.",
        "Please water the tulips.",
    ]


def list_caller_words(app: App) -> list[str]:
    sealed = [str(row.archive_name) for row in app.store.list_page(limit=10)]
    turns = [turn for name in sealed for turn in app.archive.read(name)[0].turns]
    return [turn.text for turn in turns if turn.speaker == "caller"]


async def test_an_end_that_is_reported_while_the_database_is_away_is_stored_later(
    fleet_settings: Settings, stoppable: Stopped, open_app: OpenApp
) -> None:
    stoppable.on()
    stoppable.rename()
    database = DatabaseSettings(url=stoppable.url)
    settings = fleet_settings.model_copy(update={"database": database})
    first, second = (open_app(settings, SystemClock()) for _ in range(2))
    live = make_live_call(source="twilio", started_at=first.clock.now())
    await first.phone.pending_calls.register(live)
    stoppable.off()
    await second.phone.end_call("twilio", live.sid, "caller_hung_up")
    stoppable.on()
    await second.phone.follow_handovers()
    assert second.phone.late_ends == {}
    assert read_sealed(second) == ([], "caller_hung_up")


async def test_an_end_that_comes_before_its_call_is_known_is_stored_with_it(
    fleet: Sequence[App],
) -> None:
    """The process that answered is cut off from the database for a while."""
    live = make_live_call(source="twilio", started_at=fleet[0].clock.now())
    await fleet[1].phone.end_call("twilio", live.sid, "caller_hung_up")
    await fleet[1].phone.follow_handovers()
    await fleet[0].phone.pending_calls.register(live)
    while fleet[1].phone.late_ends:
        await fleet[1].phone.follow_handovers()
        await asyncio.sleep(0.02)
    assert read_sealed(fleet[2]) == ([], "caller_hung_up")


def make_again(live: LiveCall) -> LiveCall:
    return live.model_copy(update={"id": make_live_call().id})


def is_briefed(app: App, live: LiveCall) -> bool:
    """Whether the briefing that its process prepared is there for others."""
    query = select(handovers.c.briefing).where(handovers.c.call_id == live.id)
    with app.database.read() as connection:
        return connection.execute(query).scalar() is not None


async def test_an_announced_call_outlives_its_process_until_its_token_expires(
    fleet_settings: Settings, fleet: Sequence[App]
) -> None:
    live = make_live_call(source="twilio", started_at=fleet[0].clock.now())
    with crashed(fleet[0]) as doomed:
        token = await doomed.phone.pending_calls.register(live)
        pool = cast(QueuePool, doomed.database.engine.pool)
        await until(lambda: is_briefed(fleet[1], live) and not pool.checkedout())
        doomed.phone.pending_calls.forget(live)
    assert recover(fleet[1].journal).sealed == ()
    calls = fleet[1].phone.pending_calls
    taken = await calls.claim("twilio", live.sid, token, "MZ1")
    assert taken is not None
    await fleet[1].journal.seal(taken.recorder, end_reason="agent_hung_up")
    assert read_sealed(fleet[2]) == ([], "agent_hung_up")


async def test_a_process_that_stops_takes_no_new_call_and_answers_the_old_ones(
    fleet: Sequence[App], to_telnyx: Line
) -> None:
    app = fleet[0]
    one = Balancer([app])
    async with (
        EmulatedTwilio(TOKEN, transport=one) as twilio,
        telnyx_town(app, to_telnyx) as town,
        httpx2.AsyncClient(transport=one, base_url=PUBLIC) as http,
    ):
        town.to_agent.inner = one
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        assert (await http.get("/readyz")).status_code == 200
        app.phone.intake.close()
        assert (await http.get("/readyz")).status_code == 503
        refused = await twilio.ring(f"{PUBLIC}/twilio/voice", caller="+15550107")
        assert (refused.state, refused.heard) == ("busy", [])
        ringing = await town.lab.ring(EVENTS, caller="+15550108")
        assert set(ringing.failed_statuses) == {503}
        await twilio.say(call, "Please call the plumber.")
        assert "call the plumber" in call.heard[-1]
        assert not app.phone.intake.is_finished()
        await twilio.say(call, "That's all, bye.")
        await until(app.phone.intake.is_finished)
    assert len(app.store.list_page(limit=5)) == 1


async def test_an_agent_that_moves_to_another_process_goes_on_there_in_another_leg(
    fleet: Sequence[App],
) -> None:
    live = make_live_call(source="mine", started_at=fleet[0].clock.now())
    begun = RemoteStart(live, "agent-1")
    first, second = (app.phone.remote_calls for app in fleet[:2])
    call = await first.start(begun)
    await call.write_turns([SentTurn(seq=1, speaker="caller", text="One.")])
    again = RemoteStart(make_again(live), "agent-1")
    with pytest.raises(CallElsewhere):
        await second.start(again)
    await fleet[0].phone.follow_handovers()
    leg = await second.start(again)
    assert (leg.turns, leg.call.resumes) == (1, live.id)
    await leg.write_turns([SentTurn(seq=2, speaker="caller", text="Two.")])
    await leg.end("completed")
    assert pick_caller(read_conversation(fleet[2])) == ["One.", "Two."]


@pytest.fixture
def machines(
    fleet_settings: Settings,
    stoppable: Stopped,
    s3: S3Server,
    tmp_path: Path,
    open_app: OpenApp,
) -> Sequence[App]:
    """Two homes on one bucket and one Postgres, which the test stops."""
    stoppable.on()
    stoppable.rename()
    shared = {
        "database": DatabaseSettings(url=stoppable.url),
        "archive": s3.make_bucket(),
    }
    first = fleet_settings.model_copy(update=shared)
    other = first.model_copy(update={"home": tmp_path / "other"})
    opened = [open_app(first, SystemClock(), database_timeout_s=DATABASE_TIMEOUT_S)]
    other.home.mkdir()
    shutil.copy(first.home / HOME_ID_FILE, other.home)
    opened.append(open_app(other, SystemClock(), database_timeout_s=DATABASE_TIMEOUT_S))
    return opened


SENTENCES = [
    "This is Anna.",
    "Please call the plumber.",
    "And remind me to water the plants.",
    "The key is under the mat.",
]


async def end_after_outage(
    fleet: Sequence[App], stoppable: Stopped, hang_up: Awaitable[object]
) -> None:
    """The database is back, the caller hangs up, and the call is sealed."""
    stoppable.on()
    await until(lambda: not any(app.journal.outage.is_active for app in fleet))
    await hang_up
    await follow_until_sealed(fleet)
    for app in fleet[1:]:
        await app.phone.close()


async def follow_until_sealed(machines: Sequence[App]) -> None:
    """What a running process does every second, until no call is open anywhere."""
    async with asyncio.timeout(30):
        while True:
            for app in machines:
                await app.phone.follow_handovers()
            is_spilled = any(app.journal.spill.list_files() for app in machines)
            is_live = any(app.journal.live_recorders for app in machines)
            if not (is_spilled or is_live or machines[0].store.list_unsealed()):
                return
            await asyncio.sleep(0.05)


def read_conversation(app: App) -> list[tuple[str, str]]:
    """All legs as one transcript; it must be one conversation."""
    rows = app.store.list_page(limit=20)
    (conversation,) = {row.live.conversation for row in rows}
    return [
        (turn.speaker, turn.text)
        for turn in app.work.read(conversation).merged_call.turns
    ]


def pick_caller(turns: Sequence[tuple[str, str]]) -> list[str]:
    return [text for speaker, text in turns if speaker == "caller"]


async def test_no_word_is_lost_when_turns_meet_two_processes_without_a_database(
    machines: Sequence[App], stoppable: Stopped
) -> None:
    stoppable.off()
    greeting = machines[0].settings.receptionist.greeting
    async with EmulatedTwilio(TOKEN, transport=Balancer(machines)) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        for sentence in SENTENCES:
            await twilio.say(call, sentence)
        stoppable.on()
        status = {"CallStatus": "completed"}
        await twilio.post(call, f"{PUBLIC}/twilio/status", status)
    assert call.heard.count(greeting) == 1
    await follow_until_sealed(machines)
    turns = read_conversation(machines[0])
    assert pick_caller(turns) == SENTENCES
    assert [text for speaker, text in turns if speaker == "agent"] == call.heard
    assert verify_archive(machines[0].archive.place, machines[0].store).faults == ()
    (conversation,) = {
        row.live.conversation for row in machines[0].store.list_page(limit=9)
    }
    machines[0].work.record_followups(conversation, 1)
    asked = machines[0].work.followups.of_conversation(conversation)
    assert len([row for row in asked if "plumber" in row.title]) == 1


@pytest.mark.parametrize("answers_before", [1, 2])
async def test_no_word_is_lost_when_the_database_goes_in_the_middle_and_comes_back(
    machines: Sequence[App], stoppable: Stopped, answers_before: int
) -> None:
    async with EmulatedTwilio(TOKEN, transport=Balancer(machines)) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        for sentence in SENTENCES[:answers_before]:
            await twilio.say(call, sentence)
        stoppable.off()
        for sentence in SENTENCES[answers_before:]:
            await twilio.say(call, sentence)
        stoppable.on()
        await until(lambda: not any(app.journal.outage.is_active for app in machines))
        for app in machines:
            await app.phone.follow_handovers()
        for number in range(3):
            await twilio.say(call, f"My number is {number}.")
        status = {"CallStatus": "completed"}
        await twilio.post(call, f"{PUBLIC}/twilio/status", status)
    await follow_until_sealed(machines)
    turns = read_conversation(machines[0])
    assert pick_caller(turns) == SENTENCES + [f"My number is {n}." for n in range(3)]
    assert call.heard.count(machines[0].settings.receptionist.greeting) == 1


async def test_no_word_to_telnyx_is_lost_when_it_meets_another_process_in_an_outage(
    machines: Sequence[App], to_telnyx: Line, stoppable: Stopped
) -> None:
    fleet = [reach(app, to_telnyx) for app in machines]
    async with telnyx_town(fleet[0], to_telnyx) as town:
        town.to_agent.inner = Balancer(fleet)
        call = await town.lab.ring(EVENTS, caller=CALLER)
        await town.lab.say(call, SENTENCES[0])
        stoppable.off()
        for sentence in SENTENCES[1:]:
            await town.lab.say(call, sentence)
        await end_after_outage(fleet, stoppable, town.lab.hang_up(call))
    turns = read_conversation(fleet[0])
    assert sorted(pick_caller(turns)) == sorted(SENTENCES)


async def test_who_speaks_to_another_process_in_an_outage_is_not_hung_up_on_as_silent(
    machines: Sequence[App],
    to_telnyx: Line,
    stoppable: Stopped,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first process hears nothing and asks; only when the database is back may it hang up."""
    monkeypatch.setattr(telnyx, "SILENCE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(telnyx, "SPOKEN_WORDS_PER_S", 1_000)
    still_there = switchboard.STILL_THERE.text
    first, second = (reach(app, to_telnyx) for app in machines)
    async with telnyx_town(first, to_telnyx) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        stoppable.off()
        town.to_agent.inner = Balancer([second])
        await town.lab.say(call, SENTENCES[1])
        await until(lambda: call.is_over or call.heard.count(still_there) > 5)
        assert not call.is_over
        stoppable.on()
        await until(lambda: not any(app.journal.outage.is_active for app in machines))
        await until(lambda: call.is_over)
        assert call.heard[-1] == switchboard.SILENT_GOODBYE.text
        await follow_until_sealed(machines)
        await second.phone.close()
    assert pick_caller(read_conversation(first)) == [SENTENCES[1]]


async def test_an_erasure_reaches_words_at_a_process_that_did_not_see_telnyx_ring(
    machines: Sequence[App], to_telnyx: Line, stoppable: Stopped
) -> None:
    first, second = (reach(app, to_telnyx) for app in machines)
    stoppable.off()
    async with telnyx_town(first, to_telnyx) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        town.to_agent.inner = Balancer([second])
        for sentence in SENTENCES:
            await town.lab.say(call, sentence)
        stoppable.on()
        await until(lambda: not any(app.journal.outage.is_active for app in machines))
        await town.lab.hang_up(call)
        await follow_until_sealed(machines)
        await second.phone.close()
    assert pick_caller(read_conversation(first)) == SENTENCES
    rows = first.store.list_page(limit=9)
    assert {(row.live.caller, row.live.callee) for row in rows} == {
        (CALLER, rows[0].live.callee)
    }
    receipt = first.eraser.erase(CALLER)
    assert (receipt.calls, receipt.scan.traces) == (2, ())
    assert first.archive.place.list_names() == []
    assert second.store.list_page(limit=9) == []


async def test_an_erased_live_call_does_not_keep_its_process_off_the_database(
    machines: Sequence[App], stoppable: Stopped
) -> None:
    """It began without the database; another machine erases its caller and is back first."""
    first, second = machines
    stoppable.off()
    async with EmulatedTwilio(TOKEN, transport=Balancer([second])) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        await twilio.say(call, SENTENCES[1])
        other = await twilio.ring(f"{PUBLIC}/twilio/voice", caller="+15550107")
        stoppable.on()
        # meanwhile the event loop, and with it the second, stands still
        first.eraser.erase(CALLER)
        await until(lambda: second.journal.spill.list_files() == [])
        (recorder,) = second.journal.live_recorders
        assert recorder.call.caller == "+15550107"
        await until(lambda: not recorder.is_spilling)
        await second.phone.follow_handovers()
        await twilio.say(call, SENTENCES[2])
        assert call.heard[-1] == NOT_WRITTEN.text
        await twilio.say(other, SENTENCES[3])
        for ringing in (call, other):
            status = {"CallStatus": "completed"}
            await twilio.post(ringing, f"{PUBLIC}/twilio/status", status)
    await follow_until_sealed(machines)
    assert [row.live.caller for row in first.store.list_page(limit=9)] == ["+15550107"]
    assert pick_caller(read_conversation(first)) == SENTENCES[3:]


async def test_words_are_kept_when_another_process_does_not_let_go_of_the_call(
    fleet: Sequence[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switchboard, "TAKE_TIMEOUT_S", 0.2)
    async with EmulatedTwilio(TOKEN, transport=Balancer(fleet)) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        with fleet[0].database.write() as connection:
            connection.execute(handovers.delete())  # as if it were answering still
        for _ in range(2):  # the carrier delivers it again
            await twilio.say(call, "Please call the plumber.")
            assert call.heard[-1] == switchboard.SAY_AGAIN.text
        (row,) = fleet[0].store.list_unsealed()
        fleet[0].journal.handovers.offer(row.live.id, 60)
        await twilio.say(call, "I said, please call the plumber.")
        status = {"CallStatus": "completed"}
        await twilio.post(call, f"{PUBLIC}/twilio/status", status)
    await follow_until_sealed(fleet)
    assert pick_caller(read_conversation(fleet[0])) == [
        "Please call the plumber.",
        "I said, please call the plumber.",
    ]


async def test_a_database_that_hangs_holds_up_one_turn_and_no_longer(
    fleet: Sequence[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it answers too late is given back: any process may take the call again."""
    app = fleet[0]
    gate = threading.Event()
    take = app.journal.handovers.take

    def hang(*args: Any, **kwargs: Any) -> Any:
        gate.wait(20)
        return take(*args, **kwargs)

    async with EmulatedTwilio(TOKEN, transport=Balancer(fleet[:1])) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        monkeypatch.setattr(app.journal.handovers, "take", hang)
        monkeypatch.setattr(switchboard, "LATE_TAKE_S", 0.2)
        await twilio.say(call, "Please call the plumber.")
        assert app.journal.outage.is_active
        assert "plumber" in call.heard[-1]
        gate.set()
        await until(lambda: not app.journal.outage.is_active)
        (row,) = fleet[1].store.list_unsealed()
        await until(lambda: bool(app.journal.handovers.list_offered([row.live.id])))
        status = {"CallStatus": "completed"}
        await twilio.post(call, f"{PUBLIC}/twilio/status", status)
    await follow_until_sealed(fleet)
    assert pick_caller(read_conversation(app)) == ["Please call the plumber."]


LATE = "And please order ten chairs."


async def test_words_that_telnyx_delivers_after_the_hang_up_are_added_once(
    fleet: Sequence[App], to_telnyx: Line
) -> None:
    async with telnyx_town(fleet[0], to_telnyx) as town:
        call = await town.lab.ring(EVENTS, caller=CALLER)
        await town.lab.say(call, SENTENCES[0])
        await town.lab.hang_up(call)
        await follow_until_sealed(fleet)
        town.to_agent.inner = Balancer(fleet)
        said = {"transcript": LATE, "is_final": True, "confidence": 0.9}
        for _ in fleet:  # the same words at each process
            late = {"transcription_data": said}
            town.lab.queue_event(call, "call.transcription", late)
            await town.lab.wait_delivered(call)
        for app in fleet[1:]:
            await app.phone.close()
    assert read_late(fleet[0]) == [LATE]


async def test_words_that_twilio_delivers_after_the_end_are_added_once(
    fleet: Sequence[App],
) -> None:
    async with EmulatedTwilio(TOKEN, transport=Balancer(fleet)) as twilio:
        call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=CALLER)
        await twilio.say(call, SENTENCES[0])
        status = {"CallStatus": "completed"}
        await twilio.post(call, f"{PUBLIC}/twilio/status", status)
        await follow_until_sealed(fleet)
        for _ in fleet:
            await twilio.post(call, call.answer_url, {"SpeechResult": LATE})
    assert read_late(fleet[0]) == [LATE]


def read_late(app: App) -> list[str]:
    """What came after the seal of the only call."""
    (row,) = app.store.list_page(limit=5)
    _, late = app.archive.read(str(row.archive_name))
    return [turn.text for turn in late]


def hang_database(app: App, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The database answers nothing until the event is set."""
    gate = threading.Event()

    def hang(job: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any) -> Any:
            gate.wait(20)
            return job(*args)

        return wait

    monkeypatch.setattr(app.store, "find", hang(app.store.find))
    monkeypatch.setattr(app.database, "is_ready", hang(app.database.is_ready))
    monkeypatch.setattr(spill, "CHECK_INTERVAL_S", 0.2)
    monkeypatch.setattr(spill, "CHECK_TIMEOUT_S", 0.2)
    return gate


async def test_a_call_handed_in_to_a_database_that_hangs_is_refused_and_stored_once(
    fleet: Sequence[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = fleet[0]
    gate = hang_database(app, monkeypatch)
    call = encode_call(make_call([("caller", SENTENCES[1])]))
    async with httpx2.AsyncClient(
        transport=Balancer([app]), base_url=PUBLIC, headers=JSON | bearer(app.settings)
    ) as http:
        for _ in range(2):
            refused = await http.post("/api/calls", content=call)
            assert (refused.status_code, "Retry-After" in refused.headers) == (
                503,
                True,
            )
        gate.set()
        await until(lambda: not app.journal.outage.is_active)
        repeated = await http.post("/api/calls", content=call)
        assert repeated.status_code in (200, 201)
        await until(lambda: fleet[1].store.list_unsealed() == [])
    assert read_sealed(fleet[1])[0] == [("caller", SENTENCES[1])]


async def test_a_platforms_report_to_a_database_that_hangs_is_refused_and_stored_once(
    fleet_settings: Settings, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(add_platforms(fleet_settings), SystemClock())
    platforms = connect_platforms(app)
    call = await platforms.ring("vapi", *SENTENCES[:2])
    gate = hang_database(app, monkeypatch)
    for _ in range(2):
        call.ended_at = None
        await platforms.hang_up(call)
    assert set(call.refused) == {503}
    gate.set()
    await until(lambda: not app.journal.outage.is_active)
    call.ended_at = None
    await platforms.hang_up(call)
    await until(lambda: app.store.list_unsealed() == [])
    await platforms.close()
    assert pick_caller(read_conversation(app)) == SENTENCES[:2]


async def test_telnyx_does_once_what_two_processes_want_for_one_event_in_an_outage(
    machines: Sequence[App], to_telnyx: Line, stoppable: Stopped
) -> None:
    """Neither can know of the other: their commands have the same id."""
    fleet = [reach(app, to_telnyx) for app in machines]
    stoppable.off()
    twice = DeliveryFaults(frozenset({"call.answered", "call.transcription"}))
    async with telnyx_town(fleet[0], to_telnyx, habits=twice) as town:
        town.to_agent.inner = Balancer(fleet)
        call = await town.lab.ring(EVENTS, caller=CALLER)
        await town.lab.say(call, SENTENCES[1])
        spoken = call.actions.count("speak")
        await end_after_outage(fleet, stoppable, town.lab.hang_up(call))
    assert spoken == 2  # the greeting and the answer
    assert set(pick_caller(read_conversation(fleet[0]))) == {SENTENCES[1]}
