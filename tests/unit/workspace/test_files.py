import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.clock import SystemClock
from aftercall.db.connect import Database
from aftercall.errors import (
    AftercallError,
    FileTooLarge,
    WorkspaceBusy,
    WorkspaceError,
    WorkspaceFull,
    WorkspaceMissing,
    WorkspaceReadOnly,
)
from aftercall.workspace import files
from aftercall.workspace.files import edit, locked, read
from aftercall.workspace.pages import PageTable

FOLDER, ROWS = "folder", "rows"


@pytest.fixture(autouse=True, params=[FOLDER, ROWS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Each promise is kept where pages are files, and where they are rows with copies."""
    if request.param == FOLDER:
        yield ""
        return
    url: str = request.getfixturevalue("other_postgres")
    database = Database(url)
    table = PageTable(tmp_path, database, SystemClock())
    files.mount(tmp_path, table)
    yield url
    table.unmount()
    database.close()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "USER.md"
    path.write_text("old\n")
    return path


def add(line: str) -> Callable[[str | None], str]:
    return lambda text: (text or "") + line + "\n"


def test_no_file_and_an_empty_one_read_as_none(tmp_path: Path) -> None:
    path = tmp_path / "USER.md"
    assert read(path) is None
    path.write_bytes(b"\xef\xbb\xbf \r\n\t\n")
    assert read(path) is None
    assert read(tmp_path / "USER.md" / "below a file") is None


def test_a_file_too_large_is_refused_and_stays(page: Path) -> None:
    page.write_bytes(b"x" * 5_000_000)
    with pytest.raises(FileTooLarge, match=r"USER\.md"):
        read(page)
    with pytest.raises(FileTooLarge):
        edit(page, add("more"))
    assert page.stat().st_size == 5_000_000


def test_an_edit_never_makes_a_file_too_large_to_be_read_again(page: Path) -> None:
    with pytest.raises(FileTooLarge):
        edit(page, lambda _: "x" * (files.MAX_BYTES + 1))
    assert page.read_text() == "old\n"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_without_waiting(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "USER.md"
    make(path)
    with pytest.raises(WorkspaceError, match="is not a file"):
        read(path)


def test_utf_16_is_refused_rather_than_mangled(page: Path) -> None:
    page.write_bytes("- **Name:**\n".encode("utf-16"))
    with pytest.raises(WorkspaceError, match="save it as UTF-8"):
        edit(page, add("new"))


@given(
    st.binary(max_size=60).filter(
        lambda raw: not raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    )
)
def test_bytes_that_are_no_text_survive_an_edit(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "USER.md"
    path.write_bytes(b"x" + raw)
    assert edit(path, add("new"))
    assert path.read_bytes() == b"x" + raw + b"new\n"


@pytest.mark.parametrize("change", [lambda text: text, lambda text: None])
def test_nothing_to_change_leaves_bytes_date_and_folder_as_they_are(
    page: Path, change: files.Change, store: str
) -> None:
    os.utime(page, (1_000, 1_000))
    before = page.stat()
    assert not edit(page, change)
    after = page.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )
    assert page.read_text() == "old\n"
    notes = [page.parent / files.LOCK_FOLDER] if store else []
    assert sorted(page.parent.iterdir()) == [*notes, page]


def test_nothing_to_write_makes_no_folder(tmp_path: Path) -> None:
    assert not edit(tmp_path / "people" / "x" / "USER.md", lambda text: text)
    assert list(tmp_path.iterdir()) == []


def test_folders_are_made_for_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "people" / "x" / "USER.md"
    assert edit(path, add("new"))
    assert path.read_text() == "new\n"


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        edit(tmp_path / "USER.md", add("new"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "USER.md").stat().st_mode) == 0o640


def test_the_mode_is_kept(page: Path) -> None:
    page.chmod(0o664)
    edit(page, add("new"))
    assert stat.S_IMODE(page.stat().st_mode) == 0o664


def test_a_link_stays_a_link_and_its_target_is_edited(
    page: Path, tmp_path: Path
) -> None:
    link = tmp_path / "elsewhere" / "USER.md"
    link.parent.mkdir()
    link.symlink_to("../USER.md")
    assert edit(link, add("new"))
    assert link.is_symlink()
    assert page.read_text() == "old\nnew\n"


def test_a_link_to_nothing_yet_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "USER.md"
    link.symlink_to(tmp_path / "real" / "USER.md")
    assert edit(link, add("new"))
    assert link.is_symlink()
    assert (tmp_path / "real" / "USER.md").read_text() == "new\n"


def test_a_link_to_itself_is_a_clear_error(tmp_path: Path) -> None:
    link = tmp_path / "USER.md"
    link.symlink_to(link)
    with pytest.raises(WorkspaceError, match=r"USER\.md"):
        edit(link, add("new"))


def test_nothing_but_the_lock_is_left_beside_the_file(page: Path) -> None:
    edit(page, add("new"))
    assert sorted(path.name for path in page.parent.iterdir()) == [
        ".aftercall",
        "USER.md",
    ]


def test_a_change_that_fails_leaves_the_file_and_lets_go(page: Path) -> None:
    calls: list[str | None] = []

    def fail_the_second_time(text: str | None) -> str:
        calls.append(text)
        return "new\n" if len(calls) == 1 else str(1 / 0)

    with pytest.raises(ZeroDivisionError):
        edit(page, fail_the_second_time)
    assert page.read_text() == "old\n"
    assert edit(page, add("new"))


OUTSIDE = (
    "import pathlib, sys; path = pathlib.Path(sys.argv[1]); path.write_text(path.read_text() "
    "+ 'theirs\\n')"
)


@pytest.mark.parametrize("times", [1, 3])
def test_what_another_program_writes_between_our_read_and_our_rename_is_kept(
    page: Path, times: int, store: str
) -> None:
    """Files are edited again with what came; rows are merged with it."""
    seen: list[str | None] = []

    def change(text: str | None) -> str:
        seen.append(text)
        if 1 < len(seen) <= 1 + times:
            # the first call only asks whether there is anything to do
            subprocess.run([sys.executable, "-c", OUTSIDE, str(page)], check=True)
        return (text or "") + "ours\n"

    assert edit(page, change)
    written = 1 if store else times
    assert page.read_text() == "old\n" + "theirs\n" * written + "ours\n"
    assert read(page) == page.read_text()
    assert len(seen) == 2 if store else times + 2


def test_a_file_removed_between_our_read_and_our_rename_is_edited_as_missing(
    page: Path, store: str
) -> None:
    """A row is there all the same: both changed it, so nothing is removed."""
    seen: list[str | None] = []

    def change(text: str | None) -> str:
        seen.append(text)
        if len(seen) == 2:
            page.unlink()
        return (text or "") + "ours\n"

    assert edit(page, change)
    assert page.read_text() == ("old\nours\n" if store else "ours\n")


def test_a_file_that_never_holds_still_is_given_up_for_now(
    page: Path, store: str
) -> None:
    def change(text: str | None) -> str:
        page.write_text((text or "") + "theirs\n")
        return (text or "") + "ours\n"

    if store:  # a row holds still
        assert edit(page, change)
        assert page.read_text() == "old\ntheirs\ntheirs\nours\n"
        return
    with pytest.raises(WorkspaceBusy) as caught:
        edit(page, change)
    assert caught.value.retryable
    assert "ours" not in page.read_text()


COUNT = """
import pathlib, sys
from aftercall.clock import SystemClock
from aftercall.db.connect import Database
from aftercall.workspace import files
from aftercall.workspace.pages import PageTable
path, url = pathlib.Path(sys.argv[1]), sys.argv[2]
if url:
    files.mount(path.parent, PageTable(path.parent, Database(url), SystemClock()))
sys.stdin.readline()
for _ in range(25):
    files.edit(path, lambda text: str(int(text or 0) + 1))
"""


@pytest.mark.parametrize("folders", [("here", "here"), ("here", "there")])
def test_two_processes_editing_the_same_file_lose_nothing(
    tmp_path: Path, store: str, folders: tuple[str, str]
) -> None:
    """On rows, also from two machines that share no folder."""
    if not store and len(set(folders)) > 1:
        pytest.skip("files are shared by sharing their folder")
    paths = [tmp_path / folder / "count" for folder in folders]
    path = paths[0]
    path.parent.mkdir()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", COUNT, str(path), store],
            stdin=subprocess.PIPE,
            text=True,
        )
        for path in paths
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.close()
    assert [worker.wait(60) for worker in workers] == [0, 0]
    texts = {path.read_text() for path in paths}
    assert "50" in texts


def test_threads_editing_the_same_file_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "count"

    def count() -> None:
        for _ in range(10):
            edit(path, lambda text: str(int(text or 0) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "40"


def test_a_lock_that_is_never_let_go_is_a_retryable_error(page: Path) -> None:
    with (
        locked(page),
        pytest.raises(WorkspaceBusy, match="lock") as caught,
        locked(page, timeout_s=0.02),
    ):
        pass
    assert caught.value.retryable


def test_a_lock_file_removed_before_we_got_it_locks_nobody_out_and_is_not_relied_on(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked(page):
        (lock,) = (page.parent / ".aftercall").glob("*.lock")
    flock = fcntl.flock
    removed: list[int] = []

    def remove_first(held: int, operation: int) -> None:
        if not removed:
            lock.unlink()
            removed.append(held)
        flock(held, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with locked(page), pytest.raises(WorkspaceBusy), locked(page, timeout_s=0.0):
        pass
    assert removed


@pytest.mark.parametrize(
    ("number", "expected", "retryable"),
    [
        (errno.ENOSPC, WorkspaceFull, True),
        (errno.EDQUOT, WorkspaceFull, True),
        (errno.EROFS, WorkspaceReadOnly, False),
        (errno.EACCES, WorkspaceReadOnly, False),
        (errno.EIO, WorkspaceError, False),
    ],
)
def test_a_disk_that_refuses_is_a_clear_error_and_the_file_stays(
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    expected: type[AftercallError],
    retryable: bool,
) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(expected, match=r"USER\.md") as caught:
        edit(page, add("new"))
    assert caught.value.retryable is retryable
    assert page.read_text() == "old\n"
    assert sorted(path.name for path in page.parent.iterdir()) == [
        ".aftercall",
        "USER.md",
    ]


def test_a_write_protected_file_is_respected(page: Path) -> None:
    page.chmod(0o444)
    with pytest.raises(WorkspaceReadOnly):
        edit(page, add("new"))
    assert page.read_text() == "old\n"


def test_a_workspace_that_cannot_be_made_is_a_clear_error(page: Path) -> None:
    with pytest.raises(WorkspaceMissing, match="file"):
        edit(page / "below" / "USER.md", add("new"))
    with pytest.raises(WorkspaceMissing, match="file"):
        edit(page / "USER.md", add("new"))


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = [
        WorkspaceError,
        WorkspaceReadOnly,
        WorkspaceMissing,
        WorkspaceFull,
        WorkspaceBusy,
        FileTooLarge,
    ]
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all(kind.code.startswith("workspace") for kind in kinds)
