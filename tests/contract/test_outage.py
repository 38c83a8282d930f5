"""A database that goes away: calls begin and go on all the same, and are sealed when it is
back. A real Postgres is stopped.
"""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import pytest

from aftercall.app import App
from aftercall.bridge.turn_call import TurnCall
from aftercall.engine.voice import CallerBegan, CallerSaid
from aftercall.errors import RefusedInput
from aftercall.journal.journal import DATABASE_TIMEOUT_S, recover
from aftercall.journal.replay import JournalEntry
from aftercall.journal.spill import (
    SpillFolder,
    call_entry,
    end_entry,
    read_spilled_call,
)
from aftercall.journal.verify import verify_archive
from aftercall.model.calls import Call
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from database_switches import Outlet, Stopped
from fakes import (
    START,
    FakePhone,
    FakeVoiceEngine,
    VirtualClock,
    make_live_call,
)
from opened_apps import OpenApp
from voice_rig import Rig

T = TypeVar("T")


@pytest.fixture
def house(
    outlet: Outlet, tmp_path: Path, clock: VirtualClock, open_app: OpenApp
) -> App:
    return open_app(
        Settings(home=tmp_path / "home", database=DatabaseSettings(url=outlet.url)),
        clock,
        database_timeout_s=DATABASE_TIMEOUT_S,
    )


async def live(clock: VirtualClock, work: Awaitable[T]) -> T:
    """Let time pass until the work is done: whoever waits for the database loses patience by
    this clock.

    Not so fast that a busy machine cannot follow: what is quick in earnest must stay quick.
    """
    task = asyncio.ensure_future(work)
    async with asyncio.timeout(80):
        while not task.done():
            await asyncio.sleep(0.005)
            await clock.advance(0.02)
    return await task


async def sealed(app: App, clock: VirtualClock, call_id: str) -> Call:
    async def wait() -> Call:
        while True:
            found = [
                row
                for row in app.store.list_page(limit=10)
                if row.live.id == call_id and row.state == "sealed"
            ]
            if found:
                return app.archive.read(str(found[0].archive_name))[0]
            await asyncio.sleep(0.01)

    call = await live(clock, wait())
    assert app.journal.spill.list_files() == []
    assert verify_archive(app.archive.place, app.store).faults == ()
    return call


def said(call: Call) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in call.turns]


async def test_a_typed_call_survives_a_database_that_is_away(
    house: App, outlet: Outlet, clock: VirtualClock
) -> None:
    outlet.off()
    began = clock.monotonic()
    call, heard = await live(
        clock,
        FakePhone(house.phone.turn_parts).ring(
            "Please call the plumber.", hangs_up=False
        ),
    )
    assert heard[0] == house.settings.receptionist.greeting
    assert "call the plumber" in heard[1]
    assert clock.monotonic() - began < 4  # one wait for the database, then no more
    await live(clock, call.end("caller_hung_up"))
    await clock.advance(3)  # somebody looks, and it is not back
    (file,) = house.journal.spill.list_files()
    kept = read_spilled_call(file)
    assert kept is not None
    assert [entry.kind for entry in kept.entries] == ["turn", "turn", "turn"]
    assert kept.ended is not None
    outlet.on()
    archived = await sealed(house, clock, call.call.id)
    assert said(archived) == [
        ("agent", heard[0]),
        ("caller", "Please call the plumber."),
        ("agent", heard[1]),
    ]
    assert archived.end_reason == "caller_hung_up"
    assert list(house.steps.list_due()) == [call.call.id]


async def test_a_database_that_comes_and_goes_in_the_middle_of_a_call_costs_no_word(
    house: App, outlet: Outlet, clock: VirtualClock
) -> None:
    call = TurnCall(house.phone.turn_parts, make_live_call(started_at=clock.now()))
    await live(clock, call.start())
    await live(clock, call.answer("One."))
    outlet.off()
    await live(clock, call.answer("Two."))
    assert len(house.journal.spill.list_files()) == 1
    outlet.on()
    async with asyncio.timeout(20):
        while house.journal.spill.list_files():
            await asyncio.sleep(0.01)
            await clock.advance(0.1)
    await live(clock, call.answer("Three."))
    assert len(house.store.list_entries(call.call.id)) >= 7
    await live(clock, call.end("caller_hung_up"))
    archived = await sealed(house, clock, call.call.id)
    assert [text for speaker, text in said(archived) if speaker == "caller"] == [
        "One.",
        "Two.",
        "Three.",
    ]
    assert [turn.seq for turn in archived.turns] == list(range(1, 8))
    assert [event.kind for event in archived.events] == []


async def test_a_streamed_call_is_answered_and_kept_too(
    house: App, outlet: Outlet, clock: VirtualClock
) -> None:
    outlet.off()
    rig = Rig(house, clock, FakeVoiceEngine())
    await live(clock, rig.answer())
    await rig.greet()
    rig.engine.session.add_events(CallerBegan("t1"), CallerSaid("t1", "I am Bill."))
    await rig.pass_time(2)
    rig.line.add_frames(rig.side.stop())
    await live(clock, rig.holding)
    assert len(house.journal.spill.list_files()) == 1
    outlet.on()
    archived = await sealed(house, clock, rig.live.id)
    assert said(archived) == [("agent", "Hello!"), ("caller", "I am Bill.")]


def left_behind(
    app: App,
    *texts: str,
    ended: bool = False,
    sid: str = "S1",
    caller: str | None = "+15550100",
) -> Path:
    """What a process that died while the database was away leaves."""
    call = make_live_call(sid=sid, caller=caller)
    folder = SpillFolder(app.settings.home / "spill")
    bodies = [
        f'{{"seq":{n},"speaker":"caller","text":"{text}","at":{START.timestamp() + n}}}'
        for n, text in enumerate(texts, 1)
    ]
    entries = [
        JournalEntry(call.id, "turn", n, body) for n, body in enumerate(bodies, 1)
    ]
    folder.write(
        [
            call_entry(call),
            *entries,
            *([end_entry(call.id, START, "caller_hung_up")] if ended else []),
        ]
    )
    folder.close()
    return folder.path / f"{call.id}.jsonl"


def test_what_is_taken_up_twice_is_there_once(app: App) -> None:
    file = left_behind(app, "one", "two")
    kept = file.read_bytes()
    assert len(recover(app.journal).sealed) == 1
    file.write_bytes(kept)  # as if the power had gone before the file could
    assert recover(app.journal).sealed == ()
    (row,) = app.store.list_page(limit=5)
    archived, late = app.archive.read(str(row.archive_name))
    assert ([turn.text for turn in archived.turns], late, row.addenda) == (
        ["one", "two"],
        (),
        0,
    )
    assert not file.exists()
    assert verify_archive(app.archive.place, app.store).faults == ()


def test_words_that_only_the_disk_had_when_another_sealed_the_call_become_addenda(
    app: App,
) -> None:
    file = left_behind(app, "one", "two")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]))
    recover(app.journal)
    file.write_bytes(b"".join(lines))
    recover(app.journal)
    (row,) = app.store.list_page(limit=5)
    archived, late = app.archive.read(str(row.archive_name))
    assert ([turn.text for turn in archived.turns], [turn.text for turn in late]) == (
        ["one"],
        ["two"],
    )


def test_a_line_that_was_cut_off_takes_nothing_else_with_it(app: App) -> None:
    file = left_behind(app, "one", "two", "three")
    whole = file.read_bytes()
    for cut in range(len(whole)):
        file.write_bytes(whole[:cut])
        found = read_spilled_call(file)
        texts = [entry.seq for entry in found.entries] if found else []
        assert texts == list(range(1, max(0, whole[:cut].count(b"\n") - 1) + 1))


def test_a_call_whose_sid_came_again_meanwhile_is_kept_beside_the_other(
    app: App,
) -> None:
    app.store.open(make_live_call(sid="S1"), app.presence.process)
    left_behind(app, "one", ended=True)
    recover(app.journal)
    assert sorted(
        row.live.metadata.get("call_sid", "") for row in app.store.list_page(limit=5)
    ) == ["", "S1"]


@pytest.mark.parametrize("callers", [(None, "+15550100"), ("+15550100", None)])
def test_who_calls_is_known_in_all_records_of_a_call_if_one_process_was_told(
    app: App, callers: tuple[str | None, str | None]
) -> None:
    for caller in (*callers, None):
        left_behind(app, f"The marker of {caller} is heliotrope.", caller=caller)
        recover(app.journal)
    rows = app.store.list_page(limit=5)
    assert len(rows) == 3
    assert {row.live.caller for row in rows} == {"+15550100"}
    assert len({row.live.conversation for row in rows}) == 1
    assert app.eraser.erase("+15550100").calls == 3
    assert app.archive.place.list_names() == []


def test_calls_with_one_sid_from_two_numbers_stay_two_conversations(app: App) -> None:
    for caller in ("+15550100", "+15550199"):
        left_behind(app, "one", caller=caller)
        recover(app.journal)
    rows = app.store.list_page(limit=5)
    assert {row.live.caller for row in rows} == {"+15550100", "+15550199"}
    assert len({row.live.conversation for row in rows}) == 2


def test_erasing_a_caller_takes_what_is_still_on_disk_and_refuses_while_they_talk(
    app: App,
) -> None:
    file = left_behind(app, "The marker is heliotrope.")
    other = left_behind(app, "Somebody else.", sid="S2", caller="+15550199")
    held = SpillFolder(file.parent)
    held.write([JournalEntry(file.stem, "turn", 2, "{}")])
    with pytest.raises(RefusedInput, match="on the phone"):
        app.eraser.erase("+15550100")
    held.close()
    assert app.eraser.erase("+15550100").scan.traces == ()
    assert (file.exists(), other.exists()) == (False, True)


async def test_a_primary_that_was_replaced_is_away_until_the_address_leads_elsewhere(
    stoppable: Stopped, tmp_path: Path, clock: VirtualClock, open_app: OpenApp
) -> None:
    """It still answers, and refuses to write."""
    stoppable.on()
    stoppable.rename()
    database = DatabaseSettings(url=stoppable.url)
    settings = Settings(home=tmp_path / "home", database=database)
    app = open_app(settings, clock, database_timeout_s=DATABASE_TIMEOUT_S)
    call = TurnCall(app.phone.turn_parts, make_live_call(started_at=clock.now()))
    await live(clock, call.start())
    stoppable.demote()
    try:
        await live(clock, call.answer("Please call the plumber."))
        assert not app.database.is_ready()
        assert len(app.journal.spill.list_files()) == 1
    finally:
        stoppable.promote()
    await live(clock, call.end("caller_hung_up"))
    archived = await sealed(app, clock, call.call.id)
    assert ("caller", "Please call the plumber.") in said(archived)


def test_whether_a_database_can_be_written_to_is_told_without_waiting(
    house: App, outlet: Outlet
) -> None:
    assert house.database.is_ready()
    outlet.off()
    assert not house.database.is_ready()
    outlet.on()
    assert house.database.is_ready()
