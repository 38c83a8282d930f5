"""Several processes on one home and one database, all sealing at once."""

from pathlib import Path

from aftercall.app import App, build
from aftercall.journal.archive import check_chain
from aftercall.journal.verify import verify_archive
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from command_process import spawner
from fakes import make_call

PROCESSES, CALLS = 3, 8


def seal_calls(home: str, database_url: str, process: int) -> None:
    app = build(Settings(home=Path(home), database=DatabaseSettings(url=database_url)))
    for number in range(CALLS):
        app.journal.ingest(
            make_call(
                [("caller", f"{process} says {number}")], sid=f"P{process}N{number}"
            )
        )
        app.journal.ingest(
            make_call([("caller", f"all say {number}")], sid=f"shared{number}")
        )
    app.close()


def test_processes_sealing_at_once_make_one_whole_chain_and_share_no_call(
    app: App,
) -> None:
    arguments = (str(app.settings.home), app.settings.database_url)
    processes = [
        spawner.Process(target=seal_calls, args=(*arguments, number))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert len(app.archive.place.list_names()) == (PROCESSES + 1) * CALLS
    assert all(
        fault is None for _, _, fault in check_chain(app.archive.place.read_chain())
    )
    assert verify_archive(app.archive.place, app.store).faults == ()
