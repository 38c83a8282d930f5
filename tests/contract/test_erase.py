"""Erased is erased: nothing of the caller is left in any file or table, others keep theirs, and
nothing comes back.
"""

import os
import sqlite3
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.db.tables import metadata, upkeep
from aftercall.errors import ArchiveError, CallErased, RefusedInput
from aftercall.journal.journal import recover
from aftercall.journal.spill import call_entry
from aftercall.journal.verify import verify_archive
from aftercall.model.calls import Call
from aftercall.model.passages import SearchScope
from aftercall.postcall.store import are_finished
from aftercall.privacy.scan import scan_for_traces
from aftercall.privacy.store import (
    ERASED_TABLES,
    IMPERSONAL_TABLES,
    add_tombstones,
    load_subject,
)
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from aftercall.workspace import files
from fakes import make_call, make_live_call
from opened_apps import OpenApp
from waiting import until

DAY = timedelta(days=1)
GOES, STAYS = "+15550142", "+15550199"
MARKERS = (b"15550142", b"Quillfeather", b"zanzibarium", b"Xylograph")


def call_of(caller: str, name: str, marker: str) -> Call:
    said = [
        ("agent", "Hello! What can I do for you?"),
        (
            "caller",
            f"Hi, my name is {name}. My sister Xylograph {marker} lives in Utrecht."
            if caller == GOES
            else f"Hi, my name is {name}.",
        ),
        ("agent", "Thank you."),
        (
            "caller",
            (
                f"Please open a bug about the {marker} page, and remind me to call {marker} on "
                "Tuesday."
            ),
        ),
        ("agent", "I have taken that down."),
        ("caller", f"File a note about Carl: he prefers {marker} in the morning."),
    ]
    return make_call(said, caller=caller)


@pytest.fixture
def live(settings: Settings, open_app: OpenApp) -> App:
    return open_app(
        settings.model_copy(update={"reconnect_window_s": 0}), SystemClock()
    )


def is_worked_off(app: App, call: Call) -> bool:
    return (
        are_finished(app.steps.of_call(call.id))
        and app.work.runs.get(call.conversation).state == "done"
    )


async def work_off(app: App, *calls: Call) -> None:
    async with running(app):
        for call in calls:
            app.journal.ingest(call)
        for call in calls:
            await until(partial(is_worked_off, app, call))


def raw_files(app: App) -> dict[str, bytes]:
    return {
        str(path.relative_to(app.settings.home)): path.read_bytes()
        for path in app.settings.home.rglob("*")
        if path.is_file()
    }


def rows_with(app: App, marker: bytes) -> list[str]:
    found = []
    with app.database.read() as connection:
        for table in metadata.sorted_tables:
            found += [
                table.name
                for row in connection.execute(table.select())
                if marker.decode() in str(tuple(row))
            ]
    return found


async def test_nothing_of_an_erased_caller_is_left_and_others_keep_theirs(
    live: App,
) -> None:
    gone, kept = (
        call_of(GOES, "Ada Quillfeather", "zanzibarium"),
        call_of(STAYS, "Ben Stay", "harbour"),
    )
    await work_off(live, gone, kept)
    assert all(
        any(marker in data for data in raw_files(live).values())
        or live.database.dialect != "sqlite"
        for marker in MARKERS
    )
    receipt = live.eraser.erase(GOES)
    assert (receipt.calls, receipt.archive_files, receipt.scan.traces) == (1, 1, ())
    assert receipt.pages >= 3
    for marker in MARKERS:
        assert [name for name, data in raw_files(live).items() if marker in data] == []
        assert rows_with(live, marker) == []
    assert all(marker.decode() not in str(receipt.to_json()) for marker in MARKERS)
    assert verify_archive(live.archive.place, live.store).faults == ()
    assert live.store.get(kept.id).archive_name in live.archive.place.list_names()
    assert "harbour" in str([fact.title for fact in live.work.followups.page(limit=10)])
    assert (live.settings.home / "workspace" / "people" / STAYS / "USER.md").exists()


def names(app: App) -> list[str]:
    home = app.settings.home
    return [str(path.relative_to(home)).lower() for path in home.rglob("*")]


async def test_no_name_of_a_file_or_folder_keeps_a_word_of_an_erased_caller(
    live: App,
) -> None:
    await work_off(live, call_of(GOES, "Ada Quillfeather", "zanzibarium"))
    marks = [marker.decode().lower() for marker in MARKERS]
    assert any("zanzibarium" in name for name in names(live))
    assert not any("zanzibarium" in name for name in names(live) if ".lock" in name)
    assert live.eraser.erase(GOES).scan.traces == ()
    assert [name for name in names(live) if any(mark in name for mark in marks)] == []
    people = live.settings.home / "workspace" / "people"
    assert not list(people.glob("carl*"))  # a page made of nothing but their note


async def test_an_older_lock_and_a_cut_off_edit_of_a_task_go_with_the_task(
    live: App,
) -> None:
    await work_off(live, call_of(GOES, "Ada Quillfeather", "zanzibarium"))
    tasks = live.settings.home / "workspace" / "tasks"
    (page, *_) = tasks.glob("*zanzibarium*.md")
    (tasks / ".aftercall" / f"{page.name}.lock").touch()
    (tasks / f".{page.name}.aftercall-tmp").write_bytes(page.read_bytes())
    (tasks / ".call-zanzibarium-0a1b2c3d.md.aftercall-tmp").write_text("zanzibarium")
    assert live.eraser.erase(GOES).scan.traces == ()
    assert not any("zanzibarium" in name for name in names(live))


async def test_what_stands_in_a_name_is_a_trace_and_is_told_without_the_name(
    live: App,
) -> None:
    await work_off(live, call_of(GOES, "Ada Quillfeather", "zanzibarium"))
    home = live.settings.home
    (page, *_) = (home / "workspace" / "tasks").glob("*zanzibarium*.md")
    (home / "backup" / GOES).mkdir(parents=True)
    (home / "notes").mkdir()
    (home / "notes" / f"{page.stem} (copy).bak").touch()
    (home / "Ada Quillfeather.vcf").touch()
    (home / "notes" / "savannah-15550142999.txt").touch()  # another number
    receipt = live.eraser.erase(GOES)
    told = "(in the name of a file or folder)"
    assert receipt.scan.traces == tuple(
        f"home{folder} {told}" for folder in ("", "/backup", "/notes")
    )
    assert all(marker.decode() not in str(receipt.to_json()) for marker in MARKERS)


async def test_the_pages_of_every_agent_are_erased(
    settings: Settings, open_app: OpenApp
) -> None:
    app = open_app(
        settings.model_copy(update={"reconnect_window_s": 0, "agent_id": "desk"}),
        SystemClock(),
    )
    calls = [
        call_of(caller, name, marker).model_copy(
            update={"agent_id": agent_id, "sid": f"{agent_id}-{name[:3]}"}
        )
        for agent_id in ("main", "sales")
        for caller, name, marker in (
            (GOES, "Ada Quillfeather", "zanzibarium"),
            (STAYS, "Ben Stay", "harbour"),
        )
    ]
    await work_off(app, *calls)
    root = app.settings.home / "workspace"
    roots = (root, root / "sales")
    assert all("zanzibarium" in (at / "CALLS.md").read_text() for at in roots)
    receipt = app.eraser.erase(GOES)
    assert (receipt.calls, receipt.scan.traces) == (2, ())
    for marker in MARKERS:
        assert [name for name, data in raw_files(app).items() if marker in data] == []
    assert not any("zanzibarium" in name or GOES in name for name in names(app))
    assert all((at / "people" / STAYS / "USER.md").exists() for at in roots)
    assert all("harbour" in (at / "CALLS.md").read_text() for at in roots)


async def test_what_the_owners_own_command_was_given_goes_too(
    settings: Settings, open_app: OpenApp
) -> None:
    told = {
        "command": [
            sys.executable,
            "-c",
            "import json; print(json.dumps({'state': 'done'}))",
        ]
    }
    routed = {
        "routes": {
            "task": "agent",
            "other": "agent",
            "message": "agent",
            "issue": "agent",
        },
        "policy": {"unknown": "do"},
    }
    app = open_app(
        Settings.model_validate(
            settings.model_dump(exclude={"briefing"})
            | {"reconnect_window_s": 0, "agent": told, "work": routed}
        ),
        SystemClock(),
    )
    await work_off(app, call_of(GOES, "Ada Quillfeather", "zanzibarium"))
    assert any(
        "agent/" in name and b"zanzibarium" in data
        for name, data in raw_files(app).items()
    )
    assert app.eraser.erase(GOES).scan.traces == ()
    assert all(b"zanzibarium" not in data for data in raw_files(app).values())


async def test_one_name_of_the_caller_in_what_stays_is_told_unless_others_say_it(
    live: App,
) -> None:
    await work_off(
        live,
        call_of(GOES, "Maria Quillfeather", "zanzibarium"),
        call_of(STAYS, "Maria Stone", "harbour"),
    )
    notes = live.settings.home / "workspace"
    (notes / "common.md").write_text("maria came by")
    (notes / "rare.md").write_text("quillfeather came by")
    assert live.eraser.erase(GOES).scan.traces == ("rare.md",)


async def test_what_was_erased_does_not_come_back(live: App) -> None:
    call = call_of(GOES, "Ada Quillfeather", "zanzibarium")
    live.journal.ingest(call)
    live.eraser.erase(GOES)
    with pytest.raises(CallErased):
        live.journal.ingest(call)
    assert live.eraser.erase(GOES).calls == 0
    again = make_call(caller=GOES)
    live.journal.ingest(again)  # they may call again, as somebody new
    assert live.store.get(again.id).live.caller == GOES


async def test_another_caller_of_the_same_name_is_no_trace(live: App) -> None:
    await work_off(
        live,
        call_of(GOES, "Anna Quillfeather", "zanzibarium"),
        call_of(STAYS, "Anna Quillfeather", "lamps"),
    )
    receipt = live.eraser.erase(GOES)
    assert receipt.scan.traces == ()
    assert receipt.scan.is_clean


async def test_a_call_that_one_machine_alone_had_does_not_come_back(live: App) -> None:
    """Its process died while the database was away; the caller was erased meanwhile."""
    old = make_live_call(caller=GOES, sid="old")
    new = make_live_call(caller=GOES, sid="new", started_at=live.clock.now() + DAY)
    with live.database.write() as connection:
        subject = load_subject(live.database, GOES)
        add_tombstones(connection, subject, live.clock.now())
    for call in (old, new):
        live.journal.spill.write([call_entry(call)])
    live.journal.spill.close()
    recover(live.journal)
    assert live.journal.spill.list_files() == []
    assert [row.live.sid for row in live.store.list_page(limit=5)] == ["new"]


async def test_nobody_is_erased_while_on_the_phone(live: App) -> None:
    record = await live.journal.open(make_live_call(caller=GOES))
    with pytest.raises(RefusedInput, match="on the phone"):
        live.eraser.erase(GOES)
    await live.journal.seal(record, end_reason="caller_hung_up")
    assert live.eraser.erase(GOES).calls == 1


@pytest.mark.parametrize("is_wide", [True, False])
async def test_a_page_that_cannot_be_read_stops_no_erasure_and_is_named(
    live: App, is_wide: bool
) -> None:
    """UTF-16, or more than 1 MB. The second erasure still knows the names."""
    call = call_of(GOES, "Ada Quillfeather", "zanzibarium")
    await work_off(live, call)
    page = live.settings.home / "workspace" / "people" / "dora.md"
    text = f"- Ada Quillfeather asked for her. (call {call.id})\n- She likes tea.\n"
    body = text.encode("utf-16") if is_wide else text.encode() + b"x" * files.MAX_BYTES
    page.write_bytes(body)
    for _ in range(2):
        receipt = live.eraser.erase(GOES)
        assert not receipt.scan.is_clean
        assert receipt.scan.unreadable == (page.name,)
        assert page.read_bytes() == body
        assert live.composer.preview(GOES).caller_name is None
        assert live.search.find("zanzibarium", SearchScope("main", GOES)) == []
        assert verify_archive(live.archive.place, live.store).faults == ()
        assert rows_with(live, b"Quillfeather") == []
    page.write_text("Ada Quillfeather was here.\n")
    assert live.eraser.erase(GOES).scan.traces == (page.name,)
    page.write_text(text)
    assert live.eraser.erase(GOES).scan.is_clean
    assert page.read_text() == "- She likes tea.\n"
    with live.database.read() as connection:
        rows = connection.execute(select(upkeep.c.name)).scalars()
        assert not [name for name in rows if name.startswith("erasure")]


async def test_the_names_on_a_profile_that_cannot_be_read_are_looked_for_too(
    live: App,
) -> None:
    workspace = live.settings.home / "workspace"
    profile = workspace / "people" / GOES / "USER.md"
    profile.parent.mkdir(parents=True)
    profile.write_bytes("- **Name:** Ada Quillfeather\n".encode("utf-16"))
    (workspace / "list.md").write_text("Ada Quillfeather\n")
    receipt = live.eraser.erase(GOES)
    assert not profile.exists()
    assert (receipt.scan.traces, receipt.scan.unreadable) == (("list.md",), ())


class Cut(BaseException):
    """The power goes here."""


@pytest.mark.parametrize(
    "point",
    [
        "erase.after_terms",
        "erase.after_tombstone",
        "erase.after_archive",
        "erase.after_pages",
        "erase.after_rows",
    ],
)
def test_an_erasure_that_was_cut_off_is_finished_by_the_next(
    live: App, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for marker in ("zanzibarium", "zanzibarium again"):
        live.journal.ingest(call_of(GOES, "Ada Quillfeather", marker))

    def cut(reached: str) -> None:
        if reached == point:
            raise Cut

    for module in ("aftercall.privacy.erase", "aftercall.journal.archive"):
        monkeypatch.setattr(f"{module}.fault_point", cut)
    with pytest.raises(Cut):
        live.eraser.erase(GOES)
    monkeypatch.undo()
    live.eraser.erase(GOES)
    assert all(
        marker not in data for data in raw_files(live).values() for marker in MARKERS
    )
    assert verify_archive(live.archive.place, live.store).faults == ()


def test_no_table_is_forgotten() -> None:
    assert {table.name for table in ERASED_TABLES} | set(IMPERSONAL_TABLES) == set(
        metadata.tables
    )


def test_deleted_words_linger_in_a_database_that_was_not_scrubbed(
    tmp_path: Path,
) -> None:
    """The check can fail: it finds what a plain deletion leaves behind."""
    file = tmp_path / "x.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        "PRAGMA secure_delete=OFF; CREATE TABLE said (text); INSERT INTO said VALUES "
        "('zanzibarium words'); DELETE FROM said;"
    )
    connection.close()
    assert scan_for_traces([tmp_path], frozenset({b"zanzibarium"})).traces == ("x.db",)


def test_a_folder_that_cannot_be_read_is_not_called_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "scan = os.scandir\n"
        "def refuse(path='.'):\n"
        "    if str(path).endswith('closed'):\n"
        "        raise PermissionError(13, 'denied')\n"
        "    return scan(path)\n"
        "os.scandir = refuse\n"
    )
    (tmp_path / "home" / "closed").mkdir(parents=True)
    with pytest.raises(ArchiveError, match="could not be searched"):
        scan_for_traces([tmp_path / "home"], frozenset({b"zanzibarium"}))


def test_a_database_outside_the_home_is_searched_too(
    tmp_path: Path, open_app: OpenApp
) -> None:
    file = tmp_path / "elsewhere" / "calls.sqlite"
    app = open_app(
        Settings(
            home=tmp_path / "home", database=DatabaseSettings(url=f"sqlite:///{file}")
        )
    )
    app.journal.ingest(call_of(GOES, "Ada Quillfeather", "zanzibarium"))
    with app.database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE forgotten (number TEXT)")
        connection.exec_driver_sql("INSERT INTO forgotten VALUES (?)", (GOES,))
    assert app.eraser.erase(GOES).scan.traces == ("calls.sqlite",)
