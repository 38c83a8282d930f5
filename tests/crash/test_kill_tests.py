"""kill -9 while a test run is going on: the next process finishes that run, and no second one."""

import json

from aftercall.app import App
from command_process import spawner
from crash import tests_process


def run(app: App, fault: str) -> int | None:
    process = spawner.Process(
        target=tests_process.run,
        args=(str(app.settings.home), app.settings.database_url, fault),
    )
    process.start()
    process.join()
    return process.exitcode


def test_a_run_that_was_cut_off_is_finished_by_whoever_comes_next(app: App) -> None:
    assert run(app, "tests.after_start") == -9
    assert run(app, "") == 0
    (report,) = (app.settings.home / "tests").glob("*/report.json")
    assert json.loads(report.read_bytes())["runs"] == 2
