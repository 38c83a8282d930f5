"""What a crash left open is sealed at the next start, on both databases."""

from datetime import timedelta

import pytest

from aftercall.app import App
from aftercall.errors import StorageFull
from aftercall.journal.archive import ArchiveFolder
from aftercall.journal.handover import HEARTBEAT_TIMEOUT_S, ProcessStore
from aftercall.journal.journal import recover
from aftercall.journal.recorder import JournalInserter
from aftercall.journal.replay import JournalEntry
from aftercall.journal.verify import verify_archive
from aftercall.model.calls import Event, Turn
from fakes import START, VirtualClock, make_call, make_live_call
from opened_apps import OpenApp, crashed


def turn(seq: int, text: str = "hello") -> Turn:
    return Turn(seq=seq, speaker="caller", text=text, at=START + timedelta(seconds=seq))


async def test_a_call_a_crash_left_open_is_sealed_as_interrupted(app: App) -> None:
    with crashed(app) as other:
        record = await other.journal.open(make_live_call())
        await record.append(turn(1, "can you hear me"))
        await record.append(turn(2, "hello?"))
        await other.journal.close()
    assert recover(app.journal).sealed == (record.call.id,)
    row = app.store.get(record.call.id)
    assert (row.state, row.end_reason, row.ended_at) == (
        "sealed",
        "interrupted",
        START + timedelta(seconds=2),
    )
    call, _ = app.archive.read(str(row.archive_name))
    assert [t.text for t in call.turns] == ["can you hear me", "hello?"]
    assert verify_archive(app.archive.place, app.store).faults == ()


async def test_a_call_of_a_living_process_is_left_alone(
    app: App, open_app: OpenApp
) -> None:
    other = open_app(app.settings, app.clock)
    record = await other.journal.open(make_live_call())
    assert recover(app.journal).sealed == ()
    assert app.store.get(record.call.id).state == "live"


async def test_our_own_live_calls_are_left_alone(app: App) -> None:
    await app.journal.open(make_live_call())
    assert recover(app.journal).sealed == ()


async def test_a_process_on_another_machine_is_dead_after_long_silence(
    app: App, clock: VirtualClock
) -> None:
    with crashed(app) as other:
        record = await other.journal.open(make_live_call())
        other.presence.lock_path.unlink()  # another machine's home is not ours to see
    assert recover(app.journal).sealed == ()
    clock.move(HEARTBEAT_TIMEOUT_S + 1)
    assert recover(app.journal).sealed == (record.call.id,)


async def test_recovering_twice_seals_once(app: App) -> None:
    with crashed(app) as other:
        await other.journal.open(make_live_call())
    assert len(recover(app.journal).sealed) == 1
    assert recover(app.journal).sealed == ()
    assert len(app.archive.place.list_names()) == 1


async def test_a_recovered_call_can_still_be_picked_up(app: App) -> None:
    with crashed(app) as other:
        record = await other.journal.open(make_live_call())
        await record.append(turn(1))
        await other.journal.close()
    recover(app.journal)
    state = app.resume.peek(make_live_call(started_at=START + timedelta(seconds=30)))
    assert state is not None
    assert state.call_id == record.call.id


async def test_words_written_after_another_process_sealed_the_call_become_addenda(
    app: App,
) -> None:
    record = await app.journal.open(make_live_call())
    await record.append(turn(1))
    await app.journal.seal(record, end_reason="caller_hung_up")
    pen = JournalInserter(app.database)
    pen.write(
        [
            JournalEntry(
                record.call.id, "turn", 2, turn(2, "still here").model_dump_json()
            )
        ]
    )
    pen.write(
        [
            JournalEntry(
                record.call.id,
                "event",
                1,
                Event(seq=1, kind="engine.lost", at=START).model_dump_json(),
            )
        ]
    )
    pen.close()
    recover(app.journal)
    _, late = app.archive.read(str(app.store.get(record.call.id).archive_name))
    assert [t.text for t in late] == ["still here"]
    assert app.store.list_late_calls() == []
    assert verify_archive(app.archive.place, app.store).faults == ()


async def test_a_gap_in_the_journal_is_written_into_the_archive_not_papered_over(
    app: App,
) -> None:
    with crashed(app) as other:
        record = await other.journal.open(make_live_call())
        pen = JournalInserter(other.database)
        pen.write(
            [
                JournalEntry(
                    record.call.id, "turn", seq, turn(seq, f"t{seq}").model_dump_json()
                )
                for seq in (1, 3)
            ]
        )
        pen.close()
    recover(app.journal)
    call, _ = app.archive.read(str(app.store.get(record.call.id).archive_name))
    assert [t.text for t in call.turns] == ["t1", "t3"]
    assert [(e.kind, e.data) for e in call.events] == [
        ("journal.gap", {"entry": "turn", "seq": 2})
    ]


async def test_a_full_disk_while_sealing_loses_nothing_and_recovery_goes_on(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await app.journal.open(make_live_call())
    await record.append(turn(1))

    def no_room(self: ArchiveFolder, name: str, data: bytes) -> bool:
        raise StorageFull("no room")

    with monkeypatch.context() as full:
        full.setattr(ArchiveFolder, "create", no_room)
        with pytest.raises(StorageFull):
            await app.journal.seal(record, end_reason="caller_hung_up")
        assert recover(app.journal).failed == (record.call.id,)
    assert recover(app.journal).sealed == (record.call.id,)
    row = app.store.get(record.call.id)
    assert (row.end_reason, row.turn_count) == ("caller_hung_up", 1)


def test_a_call_taken_in_but_not_archived_is_finished_by_recovery(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = make_call([("caller", "please ring me back")])

    def no_room(self: ArchiveFolder, name: str, data: bytes) -> bool:
        raise StorageFull("no room")

    with monkeypatch.context() as full:
        full.setattr(ArchiveFolder, "create", no_room)
        with pytest.raises(StorageFull):
            app.journal.ingest(call)
    assert recover(app.journal).sealed == (call.id,)
    sealed, _ = app.archive.read(str(app.store.get(call.id).archive_name))
    assert sealed == call


def test_traces_of_dead_processes_are_swept_away(app: App, clock: VirtualClock) -> None:
    with crashed(app) as other:
        dead = other.presence
    recover(app.journal)
    assert not dead.lock_path.exists()
    assert ProcessStore(app.database).get_last_heartbeat(dead.process) is None
