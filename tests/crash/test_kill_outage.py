"""kill -9 or SIGTERM while the database is away: what the caller said before is in the archive
after the next start, once.
"""

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from aftercall.app import App, build
from aftercall.journal.journal import recover
from aftercall.journal.replay import JournalEntry
from aftercall.journal.spill import SpillFolder, call_entry
from aftercall.journal.verify import verify_archive
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from api_client import bearer
from command_process import spawner
from crash import outage_process
from database_switches import Outlet, Stopped
from fakes import START, make_live_call


def run_tidy(app: App, fault: str) -> int | None:
    process = spawner.Process(
        target=outage_process.tidy,
        args=(str(app.settings.home), app.settings.database_url, fault),
    )
    process.start()
    process.join(60)
    return process.exitcode


def test_a_call_whose_process_died_in_an_outage_is_imported_at_the_next_start(
    outlet: Outlet, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    ours, theirs = spawner.Pipe()
    process = spawner.Process(
        target=outage_process.ring,
        args=(str(home), outlet.url, "spill.after_line:5", theirs),
    )
    process.start()
    assert ours.poll(60)
    assert ours.recv() == "ready"
    outlet.off()
    ours.send("it is off")
    # who is calling, greeting, words, answer, words: killed behind these
    process.join(60)
    outlet.on()
    assert process.exitcode == -9
    app = build(Settings(home=home, database=DatabaseSettings(url=outlet.url)))
    assert len(recover(app.journal).sealed) == 1
    (row,) = app.store.list_page(limit=5)
    call, _ = app.archive.read(str(row.archive_name))
    assert [turn.text for turn in call.turns if turn.speaker == "caller"] == [
        "Please call the plumber.",
        "And the electrician.",
    ]
    assert (call.end_reason, app.journal.spill.list_files()) == ("interrupted", [])
    assert verify_archive(app.archive.place, app.store).faults == ()
    app.close()


@pytest.mark.parametrize("point", ["spill.after_read", "briefing.before_keep"])
def test_a_start_that_dies_in_the_middle_of_it_is_made_good_by_the_next(
    app: App, point: str
) -> None:
    call = make_live_call()
    folder = SpillFolder(app.settings.home / "spill")
    folder.write(
        [
            call_entry(call),
            JournalEntry(
                call.id,
                "turn",
                1,
                f'{{"seq":1,"speaker":"caller","text":"Hi.","at":{START.timestamp()}}}',
            ),
        ]
    )
    folder.close()
    assert run_tidy(app, point) == -9
    assert run_tidy(app, "") == 0
    (row,) = app.store.list_page(limit=5)
    sealed, late = app.archive.read(str(row.archive_name))
    assert (
        [turn.text for turn in sealed.turns],
        late,
        row.addenda,
        app.journal.spill.list_files(),
    ) == (["Hi."], (), 0, [])
    assert app.briefings.list_stale(10) == []
    assert (
        app.briefings.read("main", "+15550100", app.composer.settings_hash) is not None
    )


def test_late_words_are_counted_and_read_after_a_kill_behind_their_file(
    app: App,
) -> None:
    call = make_live_call()
    folder = SpillFolder(app.settings.home / "spill")

    def write_turns(*texts: str) -> None:
        turns = [
            JournalEntry(
                call.id,
                "turn",
                seq,
                f'{{"seq":{seq},"speaker":"caller","text":"{text}","at":{START.timestamp()}}}',
            )
            for seq, text in enumerate(texts, 1)
        ]
        folder.write([call_entry(call), *turns])
        folder.close()

    write_turns("Hi.")
    assert run_tidy(app, "") == 0
    app.steps.mark_started(app.steps.list_due())
    write_turns("Hi.", "Please order chairs.")
    assert run_tidy(app, "addendum.after_file") == -9
    assert app.steps.list_due() == {}
    assert run_tidy(app, "") == 0
    (row,) = app.store.list_page(limit=5)
    _, late = app.archive.read(str(row.archive_name))
    assert [turn.text for turn in late] == ["Please order chairs."]
    assert (row.addenda, row.turn_count) == (1, 2)
    assert app.steps.list_due() == {row.live.id: 1}


SERVE_WITH_QUICK_JOBS = """
from aftercall import running
running.RECOVERY_INTERVAL_S = 0.2
from aftercall.cli.main import run
run()
"""


@pytest.mark.parametrize("hangs", [False, True])
def test_a_server_with_a_live_call_stops_though_its_engine_waits_for_the_database(
    stoppable: Stopped, tmp_path: Path, *, hangs: bool
) -> None:
    """While it waits for the call to end, a job of the durable engine begins, and never ends.

    The engine repeats what a second address refuses, and not what a missing socket does.
    """
    stoppable.on()
    stoppable.rename()
    url = f"{stoppable.url}&host=127.0.0.1:1"
    settings = Settings(home=tmp_path, database=DatabaseSettings(url=url))
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AFTERCALL_")
    } | {
        "AFTERCALL_HOME": str(tmp_path),
        "AFTERCALL_DATABASE_URL": url,
        "AFTERCALL_BRIDGE_FINISH_S": "2",
    }
    with subprocess.Popen(
        [sys.executable, "-c", SERVE_WITH_QUICK_JOBS, "serve", "--port", "0"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            address = next(word for word in line.split() if word.startswith("http://"))
            words = ["Please call the plumber.", "And the electrician."]
            with httpx2.Client(base_url=address, headers=bearer(settings)) as sender:
                start = {"source": "bot", "sid": "1"}
                begun = sender.post("/api/live", json=start).json()
                for seq, text in enumerate(words, 1):
                    turn = {"seq": seq, "speaker": "caller", "text": text}
                    path = f"/api/live/{begun['call']}/turns"
                    sent = sender.post(path, json={"turns": [turn]})
                    assert sent.json() == {"turns": seq}
                    if seq == 1:
                        stoppable.hang() if hangs else stoppable.off()
            server.terminate()
            assert server.wait(60) == 0
        finally:
            server.kill()
            if hangs:
                stoppable.go_on()
    stoppable.on()
    app = build(settings)
    recover(app.journal)
    (row,) = app.store.list_page(limit=5)
    call, _ = app.archive.read(str(row.archive_name))
    assert [turn.text for turn in call.turns] == words
    assert app.journal.spill.list_files() == []
    app.close()
