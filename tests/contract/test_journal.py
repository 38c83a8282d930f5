"""What the journal promises, on both databases."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import event as engine_event

from aftercall.app import App
from aftercall.errors import (
    CallNotLive,
    JournalClosed,
    JournalConflict,
    JournalGap,
)
from aftercall.journal.recorder import CallRecorder
from aftercall.journal.replay import to_entry
from aftercall.journal.verify import verify_archive
from aftercall.model.calls import Event, Turn
from aftercall.running import running
from fakes import START, VirtualClock, make_live_call
from opened_apps import OpenApp


def turn(seq: int, text: str = "hello", speaker: str = "caller") -> Turn:
    return Turn.model_validate(
        {
            "seq": seq,
            "speaker": speaker,
            "text": text,
            "at": START + timedelta(seconds=seq),
        }
    )


def event(seq: int, kind: str = "tool") -> Event:
    return Event(seq=seq, kind=kind, at=START, data={"name": "take_request"})


async def open_call(app: App, **fields: object) -> CallRecorder:
    return await app.journal.open(make_live_call(**fields))


async def test_an_appended_turn_is_in_the_database_when_append_returns(
    app: App, open_app: OpenApp
) -> None:
    record = await open_call(app)
    await record.append(turn(1, "the canary sings"))
    other = open_app(app.settings, app.clock)
    assert other.store.list_entries(record.call.id) == [
        to_entry(record.call.id, turn(1, "the canary sings"))
    ]


async def test_the_same_append_twice_is_one_entry(app: App) -> None:
    record = await open_call(app)
    await record.append(turn(1))
    await record.append(turn(1))
    assert len(app.store.list_entries(record.call.id)) == 1


async def test_a_skipped_number_is_an_error_that_shows(app: App) -> None:
    record = await open_call(app)
    await record.append(turn(1))
    with pytest.raises(JournalGap, match="turn 3 came where 2 is next"):
        await record.append(turn(3))


async def test_a_number_cannot_be_used_twice_for_different_words(app: App) -> None:
    record = await open_call(app)
    await record.append(turn(1, "yes"))
    with pytest.raises(JournalConflict):
        await record.append(turn(1, "no"))


async def test_turns_and_events_are_numbered_apart_and_both_sealed(app: App) -> None:
    record = await open_call(app)
    await record.append(turn(1))
    await record.append(event(1))
    await record.append(turn(2))
    sealed = await app.journal.seal(record, end_reason="caller_hung_up")
    call, late = app.archive.read(sealed.name)
    assert [t.seq for t in call.turns] == [1, 2]
    assert [e.kind for e in call.events] == ["tool"]
    assert late == ()


async def test_many_calls_appending_at_once_all_find_their_words_sealed(
    app: App,
) -> None:
    async def speak(number: int) -> tuple[str, list[str]]:
        record = await open_call(app, caller=f"+1555010{number:02}")
        for seq in range(1, 11):
            await record.append(turn(seq, f"call {number} says {seq}"))
        sealed = await app.journal.seal(record, end_reason="caller_hung_up")
        return sealed.name, [f"call {number} says {seq}" for seq in range(1, 11)]

    for name, said in await asyncio.gather(*(speak(number) for number in range(20))):
        call, _ = app.archive.read(name)
        assert [t.text for t in call.turns] == said
    assert verify_archive(app.archive.place, app.store).faults == ()


async def test_opening_a_call_twice_gives_the_same_record(app: App) -> None:
    call = make_live_call()
    first, second = await asyncio.gather(app.journal.open(call), app.journal.open(call))
    assert first is second is await app.journal.open(call)


async def test_a_call_that_was_sealed_cannot_be_opened_again(app: App) -> None:
    record = await open_call(app, sid="S1")
    await app.journal.seal(record, end_reason="caller_hung_up")
    with pytest.raises(CallNotLive):
        await open_call(app, sid="S1")


async def test_nothing_is_appended_to_an_ended_call(app: App) -> None:
    record = await open_call(app)
    await app.journal.seal(record, end_reason="caller_hung_up")
    with pytest.raises(CallNotLive):
        await record.append(turn(1))


async def test_a_call_with_no_turns_is_archived_too(app: App) -> None:
    record = await open_call(app)
    sealed = await app.journal.seal(record, end_reason="caller_hung_up")
    call, _ = app.archive.read(sealed.name)
    assert call.turns == ()
    assert app.store.get(call.id).state == "sealed"


async def test_a_cancelled_append_keeps_the_numbering_whole(app: App) -> None:
    record = await open_call(app)
    appending = asyncio.create_task(record.append(turn(1, "cut off")))
    await asyncio.sleep(0)
    appending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await appending
    await record.append(turn(record.next_turn_seq, "next"))
    sealed = await app.journal.seal(record, end_reason="caller_hung_up")
    call, _ = app.archive.read(sealed.name)
    assert [t.text for t in call.turns][-1] == "next"
    assert [t.seq for t in call.turns] == list(range(1, len(call.turns) + 1))


async def test_sealing_goes_on_when_whoever_asked_for_it_is_cancelled(app: App) -> None:
    record = await open_call(app)
    await record.append(turn(1))
    hanging_up = asyncio.create_task(
        app.journal.seal(record, end_reason="caller_hung_up")
    )
    await asyncio.sleep(0)
    hanging_up.cancel()
    await app.journal.close()
    assert app.store.get(record.call.id).state == "sealed"


@contextmanager
def small_database(app: App) -> Iterator[None]:
    """The SQLite file has room for 20 more pages."""
    engine = app.database.engine
    with app.database.read() as connection:
        pages: int = connection.exec_driver_sql("PRAGMA page_count").scalar_one()

    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages + 20}")

    engine_event.listen(engine, "connect", limit)
    engine.dispose()
    yield
    engine_event.remove(engine, "connect", limit)
    engine.dispose()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_database_without_room_costs_no_turn_and_gets_them_all_when_there_is_room(
    app: App, clock: VirtualClock
) -> None:
    with small_database(app):
        record = await open_call(app)
        while not record.is_spilling:
            await record.append(turn(record.next_turn_seq, "x" * 2_000))
    async with asyncio.timeout(20):
        while app.journal.spill.list_files():
            await asyncio.sleep(0.01)
            await clock.advance(0.5)
    written = record.next_turn_seq - 1
    await record.append(turn(written + 1, "there is room again"))
    sealed = await app.journal.seal(record, end_reason="caller_hung_up")
    call, _ = app.archive.read(sealed.name)
    assert len(call.turns) == written + 1
    assert call.turns[-1].text == "there is room again"


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_connection_that_the_server_dropped_costs_no_turn(app: App) -> None:
    record = await open_call(app)
    await record.append(turn(1))
    with app.database.write() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await record.append(turn(2))
    await app.journal.seal(record, end_reason="caller_hung_up")
    assert app.store.get(record.call.id).turn_count == 2


async def test_late_words_become_an_addendum_and_the_sealed_file_stays_as_it_is(
    app: App,
) -> None:
    record = await open_call(app)
    await record.append(turn(1))
    sealed = await app.journal.seal(record, end_reason="caller_hung_up")
    before = app.archive.place.read(sealed.name)
    row = app.store.get(record.call.id)
    app.journal.add_addendum(row, [turn(2, "one more thing")])
    app.journal.add_addendum(row, [turn(2, "one more thing")])
    app.journal.add_addendum(row, [turn(3, "and another")])
    assert app.archive.place.read(sealed.name) == before
    _, late = app.archive.read(sealed.name)
    assert [t.text for t in late] == ["one more thing", "and another"]
    assert app.store.get(record.call.id).addenda == 2
    assert verify_archive(app.archive.place, app.store).faults == ()


async def test_two_calls_of_one_caller_in_the_same_millisecond_make_two_files(
    app: App,
) -> None:
    first, second = await open_call(app, sid="A1"), await open_call(app, sid="A2")
    names = {
        (await app.journal.seal(record, end_reason="caller_hung_up")).name
        for record in (first, second)
    }
    assert len(names) == 2
    assert set(app.archive.place.list_names()) == names


async def test_calls_still_live_at_shutdown_are_sealed(app: App) -> None:
    async with running(app):
        record = await open_call(app)
        await record.append(turn(1))
    row = app.store.get(record.call.id)
    assert (row.state, row.end_reason) == ("sealed", "server_stopped")


async def test_the_journal_lets_go_of_sealed_calls(app: App) -> None:
    record = await open_call(app)
    await record.append(turn(1))
    await app.journal.seal(record, end_reason="caller_hung_up")
    assert app.store.list_entries(record.call.id) == []


async def test_the_journal_can_be_closed_twice_and_takes_nothing_afterwards(
    app: App,
) -> None:
    record = await open_call(app)
    await record.append(turn(1))
    await app.journal.close()
    await app.journal.close()
    with pytest.raises(JournalClosed):
        await record.append(turn(2))
