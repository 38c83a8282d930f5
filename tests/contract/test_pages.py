"""Two machines, each with a folder of its own, and one Postgres: pages are the same on both,
people edit them on either, and nothing that anybody wrote is lost.
"""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import func, select
from typer.testing import CliRunner

from aftercall.app import App
from aftercall.cli.main import program
from aftercall.clock import SystemClock
from aftercall.db.tables import page_revisions
from aftercall.db.upgrade import HOME_ID_FILE
from aftercall.privacy.erase import erase_pages
from aftercall.privacy.store import load_subject
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import BriefingSettings, DatabaseSettings
from aftercall.workspace import files, greeting
from aftercall.workspace.pages import SCAN_INTERVAL_S, PageTable
from aftercall.workspace.paths import Workspace, make_conflict_path
from aftercall.workspace.revisions import LOSS_PERIOD, MAX_REVISIONS
from api_client import make_client
from database_switches import Stopped
from fakes import VirtualClock, make_call
from opened_apps import OpenApp
from waiting import until

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
    b.pages.sync()  # more files may be vanishing at this moment
    assert files.read(a.user) == "one\n"
    b.pages.sync()
    a.pages.keep_up()
    assert files.read(a.user) is None
    assert list_pages(a) == list_pages(b) == ["CALLS.md"]
    assert count_rows(a) == 3


async def test_a_page_deleted_by_hand_is_brought_back_by_a_command(
    a: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.edit(a.user, add("one"))
    files.edit(a.user, add("two"))
    files.edit(a.workspace.calls, add("a call"))
    name = a.user.relative_to(a.root).as_posix()
    monkeypatch.setenv("AFTERCALL_HOME", str(a.app.settings.home))
    monkeypatch.setenv("AFTERCALL_DATABASE_URL", a.app.settings.database_url)
    monkeypatch.setenv("AFTERCALL_SECRET_KEY", "the key of all machines")

    def restore(path: str) -> str:
        result = CliRunner().invoke(program, ["memory", "restore-page", path])
        a.pages.keep_up()
        return str(result.exception or result.output)

    assert "is there" in restore(name)
    a.pages.sync()
    a.user.unlink()
    for _ in range(2):
        a.pages.sync()
    assert files.read(a.user) is None
    assert restore(name) == f"{name} is back\n"
    assert a.user.read_text() == files.read(a.user) == "one\ntwo\n"
    assert "no earlier text" in restore("people/+15550199/USER.md")


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


def make_pages(machine: Machine, count: int) -> list[Path]:
    pages = [machine.root / "tasks" / f"{number}.md" for number in range(count)]
    for page in pages:
        files.edit(page, add(page.stem))
    return pages


def reopen(machine: Machine) -> PageTable:
    """The pages as another process on the same machine finds them."""
    return PageTable(machine.root, machine.app.database, machine.app.clock)


async def test_files_deleted_while_no_process_ran_are_written_again(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, add("by hand"))
    make_pages(a, 12)
    b.pages.sync()
    for path in b.root.rglob("*.md"):
        path.unlink()
    files.edit(a.workspace.calls, add("a call"))
    started = reopen(b)
    for _ in range(3):
        started.sync()
    a.pages.sync()
    assert list_pages(a) == list_pages(b)
    assert len(list_pages(b)) == 14
    assert b.user.read_text() == "by hand\n"


async def test_one_file_deleted_while_no_process_ran_is_written_again(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, add("one"))
    make_pages(a, 3)
    b.pages.sync()
    b.user.unlink()
    started = reopen(b)
    started.sync()
    started.sync()
    assert b.user.read_text() == files.read(a.user) == "one\n"


@pytest.mark.parametrize("kept", [0, 3, 12])
async def test_files_that_vanish_together_are_written_again_and_named_in_health(
    a: Machine, b: Machine, clock: VirtualClock, kept: int
) -> None:
    """`rm -rf` works on while the server writes: later few are missing, which do not count."""
    make_pages(a, 20)
    b.pages.sync()
    pages = sorted(b.root.rglob("*.md"))
    for path in pages[kept:]:
        path.unlink()
    b.pages.sync()
    (told,) = b.pages.failures
    assert f"{20 - kept} of 20 files were missing" in str(told)
    for path in pages[:2]:
        path.unlink()
    b.pages.sync()
    b.pages.sync()
    assert len(list_pages(b)) == 20
    await clock.advance(LOSS_PERIOD.total_seconds())
    assert not b.pages.failures
    pages[0].unlink()
    b.pages.sync()
    b.pages.sync()
    a.pages.keep_up()
    assert len(list_pages(a)) == 19


async def test_a_file_that_is_lost_with_its_note_is_written_again_like_the_others(
    a: Machine, b: Machine
) -> None:
    make_pages(a, 9)
    b.pages.sync()
    notes = b.root / files.LOCK_FOLDER / "pages"
    for path in (*b.root.rglob("*.md"), *sorted(notes.rglob("*.json"))[:4]):
        path.unlink()
    b.pages.sync()
    assert len(list_pages(b)) == 9


async def test_files_that_go_on_vanishing_between_two_looks_are_written_again(
    a: Machine, b: Machine
) -> None:
    make_pages(a, 20)
    b.pages.sync()
    pages = sorted(b.root.rglob("*.md"))
    for path in pages[:3]:
        path.unlink()
    b.pages.sync()
    for path in pages[3:9]:
        path.unlink()
    b.pages.sync()
    a.pages.keep_up()
    assert len(list_pages(a)) == len(list_pages(b)) == 20


async def test_a_page_that_was_deleted_is_back_once_its_last_text_is_saved_again(
    a: Machine, b: Machine
) -> None:
    files.edit(a.user, add("one"))
    make_pages(a, 1)
    b.pages.sync()
    b.user.unlink()
    b.pages.sync()
    b.pages.sync()
    columns = page_revisions.c
    has_text = columns.body.is_not(None)
    query = select(columns.body).where(columns.path.like("%USER.md"), has_text)
    with a.app.database.read() as connection:
        body = connection.execute(query).scalar_one()
    b.folder.mkdir(parents=True)
    b.user.write_bytes(body)
    b.pages.sync()
    assert files.read(a.user) == "one\n"


async def test_hand_edits_are_looked_for_as_often_after_many_changes(
    a: Machine, b: Machine
) -> None:
    """The time that it takes to take changes in does not count."""
    make_pages(a, 60)
    assert b.pages.keep_up() <= SCAN_INTERVAL_S
    for path in b.root.rglob("*.md"):
        path.write_text("by hand\n")
    fresh = reopen(b)
    assert fresh.keep_up() <= SCAN_INTERVAL_S
    assert files.read(a.root / "tasks" / "7.md") == "by hand\n"


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
    assert erase_pages(a.workspace, subject, set()) == 1
    assert files.read(b.user) is None


def write_old(machine: Machine, name: str, text: str) -> Path:
    """A file in the caller's folder that was changed before anything is erased."""
    file = machine.folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    before = machine.app.clock.now().timestamp() - 60
    os.utime(file, (before, before))
    return file


@pytest.mark.parametrize("is_known", [True, False])
async def test_what_another_machine_alone_has_of_an_erased_caller_does_not_come_back(
    a: Machine, b: Machine, is_known: bool
) -> None:
    """It was down while they were erased; no process has seen these files."""
    if is_known:
        files.edit(a.user, add("Anna Berg"))
        b.pages.sync()
    for name in ("cake.md", "anna/USER.md", "scan.csv", "anna/scan.csv"):
        write_old(b, name, "Anna Berg likes cake\n")
    other = b.root / "people" / "+15550199" / "scan.csv"
    other.parent.mkdir()
    other.write_text("stays")
    receipt = a.app.eraser.erase(CALLER)
    assert any("other machines" in place for place in receipt.out_of_reach)
    reopen(b).keep_up()
    a.pages.keep_up()
    assert not a.folder.exists()
    assert not b.folder.exists()
    assert other.exists()
    with a.app.database.read() as connection:
        paths = connection.execute(select(page_revisions.c.path)).scalars().all()
    assert not any(CALLER in str(path) for path in paths)


async def test_an_old_file_of_an_erased_caller_is_not_merged_into_the_new_page(
    a: Machine, b: Machine, clock: VirtualClock
) -> None:
    write_old(b, "USER.md", "Anna Berg\n")
    a.app.eraser.erase(CALLER)
    await clock.advance(60)
    files.edit(a.user, add("a new caller"))
    assert files.read(b.user) == "a new caller\n"
    b.pages.sync()
    assert b.user.read_text() == files.read(a.user) == "a new caller\n"


async def test_pages_made_after_an_erasure_stay_on_every_machine(
    a: Machine, b: Machine
) -> None:
    a.app.eraser.erase(CALLER)
    b.folder.mkdir(parents=True)
    (b.folder / "cake.md").write_text("called again\n")
    (b.folder / "scan.csv").write_text("new\n")
    b.pages.sync()
    reopen(b).sync()
    assert files.read(a.folder / "cake.md") == "called again\n"
    assert (b.folder / "scan.csv").exists()


async def test_a_greeting_left_after_an_erasure_stays_though_its_date_is_older(
    a: Machine, b: Machine
) -> None:
    """It bears the date of a call that was handed in late."""
    before = a.app.clock.now() - timedelta(hours=1)
    a.app.eraser.erase(CALLER)
    person = a.workspace.find_person(CALLER)
    assert person
    greeting.save_greeting(person, "How was the soup?", before)
    for _ in range(2):  # a machine that looks at everything again
        reopen(b).sync()
        (found,) = b.folder.rglob("NEXT_GREETING.txt")
        assert "soup" in found.read_text()


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
    b.pages.sync()
    assert b.workspace.calls.read_text() == "a call\n"
    b.user.write_text("one\nby hand\n")
    b.pages.sync()
    assert not b.pages.failures
    assert b.user.read_text() == "one\nby hand\ntwo\n"


@pytest.mark.parametrize("body", ["Anna".encode("utf-16"), b"x" * 1_000_001])
@pytest.mark.parametrize("is_new", [True, False])
async def test_a_file_that_cannot_be_read_is_named_as_long_as_it_is_there(
    a: Machine, body: bytes, is_new: bool
) -> None:
    if not is_new:
        files.edit(a.user, add("one"))
    a.folder.mkdir(parents=True, exist_ok=True)
    a.user.write_bytes(body)
    for _ in range(3):
        a.pages.sync()
        a.pages.keep_up()
        (told,) = a.pages.failures
        assert str(told).startswith(f"{a.user}: is ")
    a.user.write_text("two\n")
    a.pages.sync()
    assert not a.pages.failures
    assert files.read(a.user) == "two\n"


async def test_a_running_server_names_an_unreadable_file_in_its_health(
    other_postgres: str, tmp_path: Path, open_app: OpenApp
) -> None:
    database = DatabaseSettings(url=other_postgres)
    app = open_app(Settings(home=tmp_path / "home", database=database), SystemClock())
    root = Workspace.from_settings(app.settings).root
    root.mkdir(parents=True, exist_ok=True)
    (root / "list.md").write_bytes("Anna".encode("utf-16"))
    async with running(app):
        await until(lambda: bool(app.upkeep.failures))
        (reason,) = app.report_health().reasons
        assert "list.md: is UTF-16" in reason
        (root / "list.md").write_text("Anna\n")
        await until(lambda: not app.upkeep.failures)


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
