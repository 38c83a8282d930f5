"""A disk without room: calls go on in memory, are written first thing when there is room, and
are sealed without a restart.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from aftercall.app import App
from aftercall.bridge.turn_call import NOT_WRITTEN, TurnCall
from aftercall.db.connect import Database
from aftercall.engine.voice import CallerBegan, CallerSaid
from aftercall.errors import StorageFull
from aftercall.journal import spill
from aftercall.journal.recorder import JournalInserter
from aftercall.journal.verify import verify_archive
from aftercall.model.calls import Call
from aftercall.settings import Settings
from fakes import FakePhone, FakeVoiceEngine, VirtualClock, make_live_call
from opened_apps import OpenApp
from voice_rig import Rig


class Disk:
    """Under the database, the archive and the files of live calls; it may be full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        for target, name in (
            (os, "write"),
            (os, "pwrite"),
            (JournalInserter, "write"),
            (Database, "write"),
        ):
            monkeypatch.setattr(
                target,
                name,
                self._guarded(getattr(target, name), is_system=target is os),
            )

    @contextmanager
    def full(self) -> Iterator[None]:
        self.is_full = True
        yield
        self.is_full = False

    def _guarded(
        self, write: Callable[..., Any], *, is_system: bool
    ) -> Callable[..., Any]:
        def write_if_there_is_room(*arguments: Any) -> Any:
            if not self.is_full:
                return write(*arguments)
            if is_system:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise StorageFull("the database has no room left")

        return write_if_there_is_room


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def house(
    settings: Settings, clock: VirtualClock, disk: Disk, open_app: OpenApp
) -> App:
    return open_app(settings, clock)


async def sealed(app: App, clock: VirtualClock, call_id: str) -> Call:
    async with asyncio.timeout(60):
        while not (
            rows := [
                row
                for row in app.store.list_page(limit=9)
                if row.live.id == call_id and row.state == "sealed"
            ]
        ):
            await clock.advance(0.2)
            await asyncio.sleep(0.01)
    assert app.journal.spill.list_files() == []
    assert verify_archive(app.archive.place, app.store).faults == ()
    return app.archive.read(str(rows[0].archive_name))[0]


def said_by_caller(call: Call) -> list[str]:
    return [turn.text for turn in call.turns if turn.speaker == "caller"]


async def test_a_call_that_ends_on_a_full_disk_is_sealed_when_there_is_room(
    house: App, disk: Disk, clock: VirtualClock
) -> None:
    call = TurnCall(house.phone.turn_parts, make_live_call(started_at=clock.now()))
    await call.start()
    await call.answer("One.")
    with disk.full():
        assert (await call.answer("Two.")) != NOT_WRITTEN
        await call.end("caller_hung_up")
        await clock.advance(5)
        assert house.journal.live_recorders == []
    archived = await sealed(house, clock, call.call.id)
    assert (said_by_caller(archived), archived.end_reason) == (
        ["One.", "Two."],
        "caller_hung_up",
    )


async def test_a_call_wholly_on_a_full_disk_is_sealed_when_there_is_room(
    house: App, disk: Disk, clock: VirtualClock
) -> None:
    with disk.full():
        call, _ = await FakePhone(house.phone.turn_parts).ring(
            "Please call the plumber."
        )
        await clock.advance(5)
    archived = await sealed(house, clock, call.call.id)
    assert said_by_caller(archived) == ["Please call the plumber."]


async def test_words_said_on_a_full_disk_are_written_when_there_is_room(
    house: App, disk: Disk, clock: VirtualClock
) -> None:
    call = TurnCall(house.phone.turn_parts, make_live_call(started_at=clock.now()))
    await call.start()
    with disk.full():
        await call.answer("One.")
        await clock.advance(3)
    async with asyncio.timeout(60):
        while "One." not in str(house.store.list_entries(call.call.id)):
            await clock.advance(0.2)
            await asyncio.sleep(0.01)
    await call.answer("Two.")
    await call.end("caller_hung_up")
    assert said_by_caller(await sealed(house, clock, call.call.id)) == ["One.", "Two."]


async def test_a_caller_is_told_when_not_even_memory_has_room(
    house: App, disk: Disk, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "MAX_WAITING_BYTES", 1_000)
    call = TurnCall(house.phone.turn_parts, make_live_call(started_at=clock.now()))
    await call.start()
    with disk.full():
        assert await call.answer("x" * 2_000) != NOT_WRITTEN
        assert await call.answer("One word too many.") == NOT_WRITTEN
        await call.end("agent_hung_up")
    assert said_by_caller(await sealed(house, clock, call.call.id)) == ["x" * 2_000]


async def test_a_streamed_caller_is_told_and_what_was_kept_is_sealed(
    house: App, disk: Disk, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "MAX_WAITING_BYTES", 1_000)
    rig = Rig(house, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    with disk.full():
        rig.engine.session.add_events(CallerBegan("t1"), CallerSaid("t1", "x" * 2_000))
        await rig.pass_time(2)
        rig.engine.session.add_events(
            CallerBegan("t2"), CallerSaid("t2", "One word too many.")
        )
        await rig.pass_time(3)
        assert NOT_WRITTEN.text in rig.engine.session.said
        await rig.pass_time(10)
        assert rig.holding.done()
    archived = await sealed(house, clock, rig.live.id)
    assert (said_by_caller(archived), archived.end_reason) == (
        ["x" * 2_000],
        "not_written",
    )
