"""Sealed files, the chain, and the folder they lie in."""

import errno
import json
import os
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.db.upgrade import upgrade
from aftercall.encryption import CHAIN_FILE, FileCipher
from aftercall.errors import ArchiveError, NotFound, StorageFull
from aftercall.journal.archive import (
    Archive,
    ArchiveFolder,
    check_chain,
    hash_bytes,
    make_base_name,
    make_next_line,
)
from aftercall.journal.archive_bucket import ArchiveBucket
from aftercall.journal.bucket import Bucket
from fakes import START, VirtualClock, make_call
from opened_apps import OpenDatabase
from s3_server import S3Server

CLEAR = FileCipher(b"k" * 32)


@pytest.fixture(params=[False, True], ids=["clear", "encrypted"])
def cipher(request: pytest.FixtureRequest) -> FileCipher:
    return replace(CLEAR, is_on=request.param)


@pytest.fixture
def folder(tmp_path: Path, cipher: FileCipher) -> ArchiveFolder:
    return ArchiveFolder(tmp_path / "archive", cipher)


@pytest.fixture(params=["folder", "bucket"])
def archive(
    folder: ArchiveFolder,
    tmp_path: Path,
    open_database: OpenDatabase,
    request: pytest.FixtureRequest,
) -> Archive:
    """In both places: what holds for a folder holds for a bucket."""
    if request.param == "folder":
        return Archive(folder)
    s3: S3Server = request.getfixturevalue("s3")
    database = open_database(f"sqlite:///{tmp_path / 'chain.db'}")
    upgrade(database)
    bucket = Bucket(s3.make_bucket())
    prepare = partial(bucket.prepare, folder.cipher, "database", takes_over=False)
    return Archive(ArchiveBucket(bucket, database, VirtualClock(), folder, prepare))


def upload(archive: Archive) -> None:
    """A bucket has the files by now; a folder always had."""
    archive.place.upload_waiting()


def test_the_name_tells_start_source_and_sid() -> None:
    assert (
        make_base_name(make_call(source="twilio", sid="CA12"))
        == "20260213T154112Z-120-twilio-CA12"
    )
    assert (
        make_base_name(make_call(source="telnyx", sid="v3:abc@x"))
        == "20260213T154112Z-120-telnyx-v3%3aabc%40x"
    )


def test_sealing_twice_keeps_the_first_seal(archive: Archive) -> None:
    call = make_call()
    first = archive.seal(call)
    upload(archive)
    assert archive.seal(call.model_copy(update={"end_reason": "changed"})) == first
    assert archive.place.list_names() == [first.name]
    assert len(archive.place.read_chain()) == 1


def test_a_name_clash_makes_a_second_file_and_harms_nothing(archive: Archive) -> None:
    first = archive.seal(make_call([("caller", "first")], sid="S", id="one"))
    upload(archive)
    second = archive.seal(make_call([("caller", "second")], sid="S", id="two"))
    assert second.name == first.name.replace(".json", "-2.json")
    assert archive.read(first.name)[0].turns[0].text == "first"


def test_a_file_sealed_before_a_crash_is_linked_into_the_chain_afterwards(
    folder: ArchiveFolder,
) -> None:
    call = make_call()
    sealed = Archive(folder).seal(call)
    chain = folder.path / CHAIN_FILE
    chain.unlink()
    assert Archive(folder).seal(call) == sealed
    assert [json.loads(line)["name"] for line in folder.read_chain()] == [sealed.name]


def test_late_words_are_an_addendum_once(archive: Archive) -> None:
    call = make_call([("caller", "good morning")])
    sealed = archive.seal(call)
    late = [make_call([("caller", "and one more thing")]).turns[0]]
    assert archive.add_addendum(call.id, sealed.name, late, START) == 1
    upload(archive)
    assert (
        archive.add_addendum(call.id, sealed.name, late, START) == 1
    )  # as after a crash
    assert archive.read(sealed.name) == (call, tuple(late))
    addendum = sealed.name.replace(".json", ".addendum-1.json")
    assert archive.list_files(sealed.name) == [sealed.name, addendum]
    assert len(archive.place.read_chain()) == 2


def test_an_erased_call_leaves_a_tombstone_and_nothing_to_read(
    archive: Archive,
) -> None:
    call = make_call()
    sealed = archive.seal(call)
    kept = archive.seal(make_call())
    upload(archive)
    for _ in range(2):  # a second time, as after a crash
        assert archive.erase(call.id) == [sealed.name]
    assert archive.place.list_names() == [kept.name]
    assert list(archive.place.hash_files()) == [kept.name]
    with pytest.raises(NotFound):
        archive.read(sealed.name)
    assert len(archive.place.read_chain()) == 3


def test_many_threads_sealing_at_once_make_one_whole_chain(archive: Archive) -> None:
    threads = [
        threading.Thread(target=archive.seal, args=(make_call(),)) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    links = list(check_chain(archive.place.read_chain()))
    assert [number for number, _, _ in links] == list(range(1, 17))
    assert all(fault is None for _, _, fault in links)


def test_a_line_cut_off_by_a_crash_is_dropped_and_the_chain_goes_on(
    folder: ArchiveFolder,
) -> None:
    Archive(folder).seal(make_call())
    chain = folder.path / CHAIN_FILE
    with chain.open("ab") as file:
        file.write(b'{"n":2,"name":"cut of')
    assert len(folder.read_chain()) == 1
    Archive(folder).seal(make_call())
    assert all(fault is None for _, _, fault in check_chain(folder.read_chain()))


def test_a_chain_line_longer_than_the_first_look_is_found(tmp_path: Path) -> None:
    folder = ArchiveFolder(tmp_path, CLEAR)
    long = b"x" * 50_000
    seen: list[bytes] = []

    def extend(line: bytes) -> None:
        def next_line(last: bytes) -> bytes:
            seen.append(last)
            return line

        folder.append_link(next_line)

    for line in (long, b"y", long):
        extend(line)
    assert seen == [b"", long, b"y"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_shows_and_harms_nothing(
    folder: ArchiveFolder, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    kept = Archive(folder).seal(make_call())
    before = folder.read_chain()

    def full(file: int, data: object, offset: int) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        with pytest.raises(StorageFull, match="no room to write"):
            Archive(folder).seal(make_call())
        with pytest.raises(StorageFull):
            folder.append_link(lambda last: b"line")
    assert folder.list_names() == [kept.name]
    assert folder.read_chain() == before
    assert not list(folder.path.glob(".*.tmp"))
    Archive(folder).seal(make_call())
    assert all(fault is None for _, _, fault in check_chain(folder.read_chain()))


def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_whole_lines(
    folder: ArchiveFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    Archive(folder).seal(make_call())
    before = folder.read_chain()
    real = os.pwrite
    calls: list[int] = []

    def half(file: int, data: memoryview, offset: int) -> int:
        if calls:
            raise OSError(errno.ENOSPC, "No space left on device")
        calls.append(1)
        return real(file, bytes(data)[: len(data) // 2], offset)

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", half)
        with pytest.raises(StorageFull):
            folder.append_link(lambda last: b"a line that does not fit")
    assert folder.read_chain() == before
    assert (folder.path / CHAIN_FILE).read_bytes().endswith(b"\n")


def test_a_folder_that_cannot_be_written_is_a_clear_error(
    folder: ArchiveFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: object, target: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(ArchiveError, match="Permission denied"):
        Archive(folder).seal(make_call())


def test_leftovers_of_crashed_writers_are_swept_away(tmp_path: Path) -> None:
    folder = ArchiveFolder(tmp_path, CLEAR)
    (tmp_path / ".old.tmp").write_bytes(b"half")
    (tmp_path / ".new.tmp").write_bytes(b"half")
    os.utime(tmp_path / ".old.tmp", (0, 0))
    folder.remove_stale_files()
    assert [path.name for path in tmp_path.iterdir()] == [".new.tmp"]


def build_chain(count: int) -> list[bytes]:
    lines: list[bytes] = []
    for number in range(count):
        last = lines[-1] if lines else b""
        lines.append(
            make_next_line(
                last,
                name=f"{number}.json",
                file_hash=hash_bytes(b"%d" % number),
                call=f"c{number}",
            )
        )
    return lines


@given(st.integers(2, 12), st.data())
def test_any_change_but_at_the_end_breaks_the_chain(
    count: int, data: st.DataObject
) -> None:
    lines = build_chain(count)
    where = data.draw(st.integers(0, count - 2))
    kind = data.draw(st.sampled_from(["edit", "remove", "swap", "double"]))
    if kind == "edit":
        place = data.draw(st.integers(0, len(lines[where]) - 1))
        lines[where] = (
            lines[where][:place]
            + bytes([lines[where][place] ^ 1])
            + lines[where][place + 1 :]
        )
    elif kind == "remove":
        del lines[where]
    elif kind == "swap":
        lines[where], lines[where + 1] = lines[where + 1], lines[where]
    else:
        lines.insert(where, lines[where])
    assert any(fault for _, _, fault in check_chain(lines))
