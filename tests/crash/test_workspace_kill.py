"""A process killed while it edits a page leaves the old page or the new one, whole, and the
next edit goes on.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aftercall.clock import SystemClock
from aftercall.db.connect import Database
from aftercall.workspace.files import edit
from aftercall.workspace.pages import PageTable

OLD = "- **Name:** Bill\n" + "old line\n" * 5_000
NEW = OLD + "new line\n"
EDIT = (
    "import pathlib, sys; from aftercall.workspace.files import edit; "
    "edit(pathlib.Path(sys.argv[1]), lambda text: text + 'new line\\n')"
)
LEAVE = """
import pathlib, sys
from datetime import UTC, datetime
from aftercall.workspace.greeting import save_greeting
from aftercall.workspace.paths import WorkspacePerson
save_greeting(WorkspacePerson(pathlib.Path(sys.argv[1])), "New one.", datetime.now(UTC))
"""


def kill(script: str, argument: Path, fault: str, url: str = "") -> None:
    environment = {**os.environ, "AFTERCALL_FAULT": fault}
    killed = subprocess.run(
        [sys.executable, "-c", script, str(argument), url],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr


@pytest.mark.parametrize(
    ("fault", "left"),
    [
        ("workspace.before_compare", OLD),
        ("workspace.before_rename", OLD),
        ("workspace.after_rename", NEW),
    ],
)
def test_a_killed_edit_leaves_the_old_page_or_the_new_one(
    tmp_path: Path, fault: str, left: str
) -> None:
    page = tmp_path / "USER.md"
    page.write_text(OLD)
    page.chmod(0o640)
    kill(EDIT, page, fault)
    assert page.read_text() == left
    assert page.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("fault", ["workspace.before_rename", "workspace.after_rename"])
def test_the_next_edit_goes_on_and_clears_up(tmp_path: Path, fault: str) -> None:
    page = tmp_path / "USER.md"
    page.write_text(OLD)
    kill(EDIT, page, fault)
    assert edit(page, lambda text: (text or "") + "after\n")
    assert page.read_text().endswith("line\nafter\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".aftercall", "USER.md"]


def test_a_new_page_is_not_there_before_it_is_whole(tmp_path: Path) -> None:
    kill(LEAVE, tmp_path, "workspace.before_rename")
    assert not (tmp_path / "NEXT_GREETING.txt").exists()


def test_a_killed_greeting_leaves_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "NEXT_GREETING.txt").write_text("Old one.\n")
    kill(LEAVE, tmp_path, "workspace.before_rename")
    assert (tmp_path / "NEXT_GREETING.txt").read_text() == "Old one.\n"
    kill(LEAVE, tmp_path, "workspace.after_rename")
    assert (tmp_path / "NEXT_GREETING.txt").read_text() == "New one.\n"


ROWS = """
import pathlib, sys
from aftercall.clock import SystemClock
from aftercall.db.connect import Database
from aftercall.workspace import files
from aftercall.workspace.pages import PageTable
page, url = pathlib.Path(sys.argv[1]), sys.argv[2]
files.mount(page.parent, PageTable(page.parent, Database(url), SystemClock()))
files.edit(page, lambda text: (text or "") + "new line\\n")
"""


@pytest.mark.parametrize("fault", ["pages.after_commit", "pages.after_file"])
@pytest.mark.parametrize("by_hand", ["", "by hand\n"])
def test_a_process_killed_behind_the_commit_of_a_page_loses_nothing(
    tmp_path: Path, other_postgres: str, fault: str, by_hand: str
) -> None:
    """The file may be behind its row, or its note behind the file; a hand edits it meanwhile."""
    page = tmp_path / "USER.md"
    page.write_text("old\n")
    database = Database(other_postgres)
    table = PageTable(tmp_path, database, SystemClock())
    table.sync()
    kill(ROWS, page, fault, other_postgres)
    page.write_text(by_hand + page.read_text())
    table.sync()
    assert page.read_text() == by_hand + "old\nnew line\n"
    found = table.load(page)
    database.close()
    assert found is not None
    assert found[0] == page.read_text()
    assert not list(tmp_path.glob("*.conflict.md"))
