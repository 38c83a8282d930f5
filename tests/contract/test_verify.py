"""Every way to damage an archive, named."""

from pathlib import Path

import pytest

from aftercall.app import App
from aftercall.db.tables import calls
from aftercall.encryption import CHAIN_FILE
from aftercall.errors import CallErased
from aftercall.journal.store import add_tombstone
from aftercall.journal.verify import verify_archive
from fakes import make_call


def seal_three(app: App) -> list[Path]:
    rows = [
        app.journal.ingest(make_call([("caller", f"call {number}")]))[0]
        for number in range(3)
    ]
    return [app.settings.home / "archive" / str(row.archive_name) for row in rows]


def faults(app: App) -> set[tuple[str, str]]:
    return {
        (fault.kind, fault.name)
        for fault in verify_archive(app.archive.place, app.store).faults
    }


def test_a_whole_archive_is_proven(app: App) -> None:
    seal_three(app)
    proof = verify_archive(app.archive.place, app.store)
    assert (proof.files, proof.links, proof.calls, proof.faults) == (3, 3, 3, ())


def test_one_changed_byte_and_one_removed_file_are_both_named(app: App) -> None:
    edited, removed, _ = seal_three(app)
    data = bytearray(edited.read_bytes())
    data[len(data) // 2] ^= 1
    edited.write_bytes(data)
    removed.unlink()
    assert faults(app) == {("edited", edited.name), ("missing", removed.name)}


def test_a_file_put_there_by_hand_is_named(app: App) -> None:
    first, *_ = seal_three(app)
    (first.parent / "20260101T000000Z-000-test-forged.json").write_bytes(
        first.read_bytes()
    )
    assert faults(app) == {("unchained", "20260101T000000Z-000-test-forged.json")}


def test_a_removed_line_of_the_chain_breaks_the_next(app: App) -> None:
    _, second, _ = seal_three(app)
    chain = second.parent / CHAIN_FILE
    lines = chain.read_bytes().splitlines(keepends=True)
    chain.write_bytes(lines[0] + lines[2])
    assert ("chain", f"{CHAIN_FILE} line 2") in faults(app)
    assert ("unchained", second.name) in faults(app)


def test_a_file_removed_with_the_last_line_of_the_chain_still_shows(app: App) -> None:
    *_, last = seal_three(app)
    chain = last.parent / CHAIN_FILE
    chain.write_bytes(b"".join(chain.read_bytes().splitlines(keepends=True)[:-1]))
    last.unlink()
    assert faults(app) == {("unchained", last.name)}


def test_an_edited_file_with_a_forged_line_shows_in_the_chain(app: App) -> None:
    first, *_ = seal_three(app)
    chain = first.parent / CHAIN_FILE
    chain.write_bytes(chain.read_bytes().replace(b'"n":1,', b'"n": 1,', 1))
    assert ("chain", f"{CHAIN_FILE} line 2") in faults(app)


def test_a_file_the_database_does_not_know_is_named(app: App) -> None:
    app.archive.seal(make_call())
    assert {kind for kind, _ in faults(app)} == {"unknown"}


def test_an_erased_call_leaves_a_tombstone_and_no_fault(app: App) -> None:
    first, *_ = seal_three(app)
    row = app.store.list_page(limit=3)[-1]
    assert app.archive.erase(row.live.id) == [row.archive_name]
    # again, as after a crash
    assert app.archive.erase(row.live.id) == [row.archive_name]
    assert not first.exists() or row.archive_name != first.name
    with app.database.write() as connection:
        add_tombstone(
            connection, row.live.source, row.live.sid, row.live.id, app.clock.now()
        )
        connection.execute(calls.delete().where(calls.c.id == row.live.id))
    proof = verify_archive(app.archive.place, app.store)
    assert (proof.files, proof.links, proof.calls, proof.faults) == (2, 4, 2, ())


def test_an_erased_file_that_comes_back_is_named(app: App) -> None:
    seal_three(app)
    row = app.store.list_page(limit=1)[0]
    file = app.settings.home / "archive" / str(row.archive_name)
    kept = file.read_bytes()
    app.archive.erase(row.live.id)
    file.write_bytes(kept)
    assert ("unerased", file.name) in faults(app)


def test_an_erased_call_is_not_taken_in_again(app: App) -> None:
    call = make_call()
    with app.database.write() as connection:
        add_tombstone(connection, call.source, call.sid, call.id, app.clock.now())
    with pytest.raises(CallErased):
        app.journal.ingest(call)
    assert app.store.list_page(limit=1) == []
