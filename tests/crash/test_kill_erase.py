"""A caller is erased while the server runs, another command uses the home, and the server is
killed: no word is lost.
"""

from multiprocessing.connection import Connection
from typing import Any

from aftercall.app import build
from aftercall.settings import Settings
from command_process import spawner
from crash import erase_process
from fakes import make_call


def receive(pipe: Connection) -> Any:
    assert pipe.poll(60)
    return pipe.recv()


def test_acknowledged_words_outlive_an_erasure_another_process_and_kill_9(
    settings: Settings,
) -> None:
    app = build(settings)
    app.journal.ingest(make_call(caller="+15550100"))
    app.close()
    place = (str(settings.home), settings.database_url)
    ours, theirs = spawner.Pipe()
    server = spawner.Process(
        target=erase_process.erase_and_write, args=(*place, theirs)
    )
    server.start()
    assert receive(ours) == "erased"
    for _ in range(2):
        other = spawner.Process(target=erase_process.use, args=place)
        other.start()
        other.join(60)
        assert other.exitcode == 0
    ours.send("go on")
    call_id = receive(ours)
    server.kill()
    server.join(60)
    app = build(settings)
    assert len(app.store.list_entries(call_id)) == erase_process.TURNS
    if app.database.dialect == "sqlite":
        with app.database.read() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    app.close()
