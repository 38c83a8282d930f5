"""Durable files: created once, appended whole, locked by one."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aftercall.disk import (
    append_synced,
    create_locked,
    create_once,
    lock_file,
    open_locked,
    replace_synced,
    translated_errors,
    try_locked,
)
from aftercall.errors import RecordingError, StorageFull


def test_a_file_is_created_once_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "made" / "key"
    assert create_once(path, b"first")
    assert not create_once(path, b"second")
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_does_not_fit_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(OSError, match="No space"):
        create_once(tmp_path / "key", b"first")
    assert list(tmp_path.iterdir()) == []


def test_replacing_leaves_the_new_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "page"
    replace_synced(path, b"a long first version")
    replace_synced(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_an_append_that_is_cut_off_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = open_locked(tmp_path / "lines")
    append_synced(file, b"whole\n")
    real: Callable[[int, bytes, int], int] = os.pwrite
    room = [3, 0]

    def write_some(number: int, data: bytes, offset: int) -> int:
        left = room.pop(0)
        return real(number, data[:left], offset) if left else refuse()

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", write_some)
        with pytest.raises(OSError, match="No space"):
            append_synced(file, b"too long\n")
    append_synced(file, b"next\n")
    os.close(file)
    assert (tmp_path / "lines").read_bytes() == b"whole\nnext\n"


def test_a_lock_is_held_by_one_until_its_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "process.lock"
    held = create_locked(path)
    other = os.open(path, os.O_RDWR)
    assert not lock_file(other, wait=False)
    with try_locked(path) as is_ours:
        assert not is_ours
    os.close(held)
    with try_locked(path) as is_ours:
        assert is_ours
        assert not lock_file(other, wait=False)
    assert lock_file(other, wait=False)
    os.close(other)


def test_a_file_that_is_gone_cannot_be_locked(tmp_path: Path) -> None:
    with try_locked(tmp_path / "gone") as is_ours:
        assert not is_ours


@pytest.mark.parametrize(
    ("number", "expected"), [(errno.ENOSPC, StorageFull), (errno.EIO, RecordingError)]
)
def test_errors_of_the_disk_say_which_file_and_why(
    number: int, expected: type[Exception]
) -> None:
    with (
        pytest.raises(expected, match=r"a\.wav .*in the recordings"),
        translated_errors("a.wav", "recordings", RecordingError),
    ):
        raise OSError(number, os.strerror(number))


def refuse(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
