"""Two machines, each with a folder of its own, and one Postgres: pages are the same on both,
people edit them on either, and nothing that anybody wrote is lost.
"""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import func, select

from aftercall.app import App
from aftercall.db.tables import page_revisions
from aftercall.db.upgrade import HOME_ID_FILE
from aftercall.errors import FileTooLarge
from aftercall.privacy.erase import erase_pages
from aftercall.privacy.store import load_subject
from aftercall.settings import Settings
from aftercall.settings.sections import BriefingSettings, DatabaseSettings
from aftercall.testing import VirtualClock, make_call
from aftercall.workspace import files, greeting
from aftercall.workspace.pages import PageTable
from aftercall.workspace.paths import Workspace, make_conflict_path
from aftercall.workspace.revisions import MAX_REVISIONS
from api_client import make_client
from database_switches import Stopped
from opened_apps import OpenApp

CALLER = "+15550100"


class Machine:
    """One home on the common database."""

    def __init__(self, app: App) -> None:
        self.app = app
        assert app.pages is not None
        self.pages: PageTable = app.pages
        self.root = self.pages.root
        self.workspace = Workspace.from_settings(app.settings)
        self.folder = self.root / "people" / CALLER
        self.user = self.folder / "USER.md"


OpenMachine = Callable[[str], Machine]


@pytest.fixture
def open_machine(
    other_postgres: str, tmp_path: Path, clock: VirtualClock, open_app: OpenApp
) -> OpenMachine:
    def open_machine(name: str) -> Machine:
        home = tmp_path / name
        first = tmp_path / "a" / HOME_ID_FILE
        if first.exists():
            home.mkdir()
            shutil.copy(first, home)
        settings = Settings(
            home=home,
            secret_key=SecretStr("the key of all machines"),
            database=DatabaseSettings(url=other_postgres),
            briefing=BriefingSettings(timeout_ms=10_000),
        )
        return Machine(open_app(settings, clock))

    return open_machine


@pytest.fixture
def a(open_machine: OpenMachine) -> Machine:
    return open_machine("a")


@pytest.fixture
def b(a: Machine, open_machine: OpenMachine) -> Machine:
    return open_machine("b")


def add(line: str) -> Callable[[str | None], str]:
    return lambda text: (text or "") + line + "\n"


def list_pages(machine: Machine) -> list[str]:
    found = machine.root.rglob("*.*")
    names = (path.relative_to(machine.root).as_posix() for path in found)
    return sorted(name for name in names if ".aftercall" not in name)


def count_rows(machine: Machine) -> int:
    with machine.app.database.read() as connection:
        query = select(func.count()).select_from(page_revisions)
        return connection.execute(query).scalar() or 0


async def test_the_summary_of_a_call_on_one_machine_is_on_the_other(
    a: Machine, b: Machine
) -> None:
    call = make_call(caller=CALLER)
    a.app.journal.ingest(call)
    a.app.step_runner.run_by_hand(call.id, ["summary"], "")
    summary = files.read(a.workspace.calls)
    assert summary is not None
    assert call.id in summary
    assert files.read(b.workspace.calls) == summary
    b.pages.keep_up()
    assert b.workspace.calls.read_text() == summary


async def test_the_briefing_knows_a_name_that_another_machine_wrote(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, lambda _: "- **Name:** Anna Berg\n")
    assert b.app.composer.preview(CALLER).caller_name == "Anna Berg"


async def test_a_hand_edit_here_survives_the_next_edit_there(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, add("one"))
    b.pages.keep_up()
    b.user.write_text("one\nby hand\n")
    files.edit(a.user, lambda text: "zero\n" + (text or ""))
    b.pages.sync()
    a.pages.keep_up()
    assert a.user.read_text() == b.user.read_text() == "zero\none\nby hand\n"
    assert files.read(a.user) == "zero\none\nby hand\n"


async def test_a_hand_edit_is_found_by_who_reads_the_page(a: Machine) -> None:
    files.edit(a.user, add("one"))
    a.user.write_text("by hand\n")
    assert files.read(a.user) == "by hand\n"
    assert files.edit(a.user, add("two"))
    assert a.user.read_text() == "by hand\ntwo\n"


async def test_where_both_changed_a_line_the_hand_stays_and_the_other_is_kept(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, lambda _: "- **Name:** Bill\n- **Notes:** calls late\n")
    b.pages.keep_up()
    b.user.write_text("- **Name:** Will\n- **Notes:** calls late\n")
    files.edit(a.user, lambda text: (text or "").replace("Bill", "William"))
    b.pages.sync()
    a.pages.keep_up()
    for machine in (a, b):
        assert machine.user.read_text().startswith("- **Name:** Will\n")
        assert "- **Name:** William" in make_conflict_path(machine.user).read_text()


@pytest.mark.parametrize(
    "name", ["CALLS.md", "tasks/roof.md", f"people/{CALLER}/USER.md"]
)
async def test_a_page_that_could_not_be_merged_is_told_and_shown_until_it_is_gone(
    a: Machine, b: Machine, name: str
) -> None:
    page, kept = a.root / name, make_conflict_path(Path(name)).as_posix()
    files.edit(page, lambda _: "one\n")
    b.pages.keep_up()
    (b.root / name).write_text("by hand\n")
    files.edit(page, lambda _: "by a machine\n")
    b.pages.sync()
    report = a.app.report_health()
    (reason,) = report.reasons
    assert report.status == "warn"
    assert reason.startswith(f"could not be merged: {kept}; ")
    client = make_client(a.app)
    assert f"could not be merged: {kept}" in client.get("/").text
    assert "by a machine" in client.get("/settings").text
    (b.root / kept).unlink()
    b.pages.sync()
    assert a.app.report_health().status == "ok"
    assert "could not be merged" not in client.get("/settings").text


async def test_both_add_a_line_at_the_end_and_both_stay(a: Machine, b: Machine) -> None:
    files.edit(a.user, add("one"))
    b.pages.keep_up()
    b.user.write_text("one\nby hand\n")
    files.edit(a.user, add("two"))
    assert files.read(b.user) == "one\nby hand\ntwo\n"
    assert not make_conflict_path(b.user).exists()


async def test_a_file_made_by_hand_becomes_a_page_everywhere(
    a: Machine, b: Machine
) -> None:
    b.folder.mkdir(parents=True)
    (b.folder / "NOTES.md").write_text("likes tea\n")
    b.pages.sync()
    a.pages.keep_up()
    assert (a.folder / "NOTES.md").read_text() == "likes tea\n"


async def test_a_file_deleted_by_hand_is_removed_everywhere_with_its_history_kept(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, add("one"))
    files.edit(a.workspace.calls, add("a call"))
    b.pages.sync()
    b.user.unlink()
    b.pages.sync()
    a.pages.keep_up()
    assert files.read(a.user) is None
    assert list_pages(a) == list_pages(b) == ["CALLS.md"]
    assert count_rows(a) == 3


async def test_a_page_that_changed_meanwhile_outlives_its_deletion_by_hand(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, add("one"))
    files.edit(a.workspace.calls, add("a call"))
    b.pages.sync()
    b.user.unlink()
    files.edit(a.user, add("two"))
    b.pages.sync()
    assert b.user.read_text() == "one\ntwo\n"


@pytest.mark.parametrize("keeps_notes", [True, False])
async def test_a_folder_that_is_lost_is_written_again(
    a: Machine, b: Machine, keeps_notes: bool
) -> None:
    files.edit(a.user, add("one"))
    b.pages.sync()
    for path in b.root.iterdir():
        if not keeps_notes or path.name != files.LOCK_FOLDER:
            shutil.rmtree(path)
    b.pages.sync()
    assert b.user.read_text() == "one\n"
    assert files.read(a.user) == "one\n"


async def test_of_two_machines_one_gets_the_greeting(a: Machine, b: Machine) -> None:
    person = a.workspace.find_person(CALLER)
    other = b.workspace.find_person(CALLER)
    assert person
    assert other
    now = a.app.clock.now()
    greeting.save_greeting(person, "How was the soup?", now)
    b.pages.keep_up()
    assert greeting.peek_greeting(other, now) == "How was the soup?"
    assert greeting.peek_greeting(other, now + timedelta(days=31)) is None
    assert greeting.claim_greeting(other, now) == "How was the soup?"
    assert greeting.claim_greeting(person, now) is None
    a.pages.keep_up()
    assert not person.greeting.exists()


async def test_a_folder_from_before_is_taken_in_once_by_whoever_starts(
    open_machine: OpenMachine, tmp_path: Path
) -> None:
    """The same files lie on both machines, as after the copy of a shared home."""
    for home in ("a", "b"):
        folder = tmp_path / home / "workspace" / "people" / CALLER
        folder.mkdir(parents=True)
        (folder / "USER.md").write_text("- **Name:** Anna\n")
    a = open_machine("a")
    a.pages.keep_up()
    shutil.copy(tmp_path / "a" / HOME_ID_FILE, tmp_path / "b")
    settings = a.app.settings.model_copy(update={"home": tmp_path / "b"})
    table = PageTable.mount(settings, a.app.database, a.app.clock)
    table.sync()
    table.unmount()
    assert count_rows(a) == 1
    assert files.read(a.user) == "- **Name:** Anna\n"


async def test_erasing_a_caller_reaches_every_revision_and_every_machine(
    a: Machine, b: Machine
) -> None:
    call = make_call(caller=CALLER)
    a.app.journal.ingest(call)
    a.app.step_runner.run_by_hand(call.id, ["summary"], "")
    files.edit(a.user, add("Anna Berg"))
    files.edit(a.user, add("likes tea"))
    person = a.workspace.find_person(CALLER)
    assert person
    greeting.save_greeting(person, "How was the soup?", a.app.clock.now())
    greeting.claim_greeting(person, a.app.clock.now())
    b.pages.sync()
    b.user.write_text("Anna Berg\nlikes tea\nby hand\n")
    receipt = a.app.eraser.erase(CALLER)
    assert receipt.scan.is_clean
    b.pages.sync()
    for machine in (a, b):
        assert not machine.folder.exists()
        kept = [path for path in machine.root.rglob("*") if path.is_file()]
        assert not any(CALLER in str(path) for path in kept)
        assert not any(b"Anna" in path.read_bytes() for path in kept)
    with a.app.database.read() as connection:
        for row in connection.execute(select(page_revisions)):
            assert CALLER not in str(row.path)
            assert call.id.encode() not in (row.body or b"")


async def test_pages_of_a_caller_that_only_another_machine_has_are_erased_too(
    a: Machine, b: Machine
) -> None:
    files.edit(b.user, add("Anna Berg"))
    subject = load_subject(a.app.database, CALLER)
    assert erase_pages(a.workspace, subject) == 1
    assert files.read(b.user) is None


async def test_a_secret_that_is_taken_out_of_a_page_is_out_of_its_history(
    a: Machine,
) -> None:
    files.edit(a.user, add("my code is 4711"))
    files.edit(a.user, add("likes tea"))
    files.edit(a.user, lambda _: "likes tea\n", keeps_history=False)
    assert count_rows(a) == 1


async def test_history_is_bounded_by_number_and_by_age(
    a: Machine, clock: VirtualClock
) -> None:
    for number in range(MAX_REVISIONS + 5):
        files.edit(a.workspace.calls, add(str(number)))
    assert count_rows(a) == MAX_REVISIONS
    await clock.advance(31 * 24 * 3600)
    assert a.app.retention.expire_page_history() == MAX_REVISIONS - 1
    assert files.read(a.workspace.calls) is not None


async def test_who_wrote_a_revision_is_kept(a: Machine) -> None:
    files.edit(a.user, add("one"), author="anna")
    a.user.write_text("by hand\n")
    files.read(a.user)
    query = select(page_revisions.c.author).order_by(page_revisions.c.revision)
    with a.app.database.read() as connection:
        first, second = connection.execute(query).scalars()
    assert first == "anna"
    assert second.startswith("hand edit on ")


async def test_a_file_that_cannot_be_read_holds_up_no_other_page(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, add("one"))
    b.pages.sync()
    b.user.write_bytes(b"x" * (files.MAX_BYTES + 1))
    files.edit(a.user, add("two"))
    files.edit(a.workspace.calls, add("a call"))
    with pytest.raises(FileTooLarge):
        b.pages.sync()
    with pytest.raises(FileTooLarge):
        b.pages.keep_up()
    assert b.workspace.calls.read_text() == "a call\n"
    b.user.write_text("one\nby hand\n")
    b.pages.sync()
    assert b.user.read_text() == "one\nby hand\ntwo\n"


async def test_a_database_that_begins_anew_gets_the_pages_of_the_folder(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, add("one"))
    files.edit(a.workspace.calls, add("a call"))
    a.pages.sync()
    with a.app.database.write() as connection:
        connection.execute(page_revisions.delete())
    assert files.edit(a.user, add("two"))
    with a.app.database.write() as connection:
        connection.execute(page_revisions.delete())
    a.pages.sync()
    b.pages.sync()
    assert b.user.read_text() == a.user.read_text() == "one\ntwo\n"
    assert b.workspace.calls.read_text() == "a call\n"


async def test_while_postgres_is_away_the_copies_are_read(
    stoppable: Stopped, tmp_path: Path, open_app: OpenApp
) -> None:
    stoppable.on()
    stoppable.rename()
    database = DatabaseSettings(url=stoppable.url)
    app = open_app(Settings(home=tmp_path / "home", database=database))
    user = Workspace.from_settings(app.settings).root / "people" / CALLER / "USER.md"
    files.edit(user, add("one"))
    stoppable.off()
    try:
        assert files.read(user) == "one\n"
        found = files.read_dated(user)
        assert found is not None
        assert found[1] < datetime.now(UTC) + timedelta(seconds=1)
    finally:
        stoppable.on()
