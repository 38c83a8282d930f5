"""The system refuses every byte for a while: no word of a call that goes on or ends meanwhile
is lost.
"""

from aftercall.app import App
from aftercall.journal.verify import verify_archive
from command_process import spawner
from crash import full_disk_process


def test_no_word_is_lost_while_the_system_lets_no_file_grow(app: App) -> None:
    ours, theirs = spawner.Pipe()
    process = spawner.Process(
        target=full_disk_process.talk,
        args=(str(app.settings.home), app.settings.database_url, theirs),
    )
    process.start()
    assert ours.poll(120)
    said = []
    for call_id in ours.recv():
        call, late = app.archive.read(str(app.store.get(call_id).archive_name))
        said.append(
            [turn.text for turn in (*call.turns, *late) if turn.speaker == "caller"]
        )
    process.join(60)
    assert said == [["One."], ["Two.", "Three."]]
    assert (
        app.journal.spill.list_files(),
        verify_archive(app.archive.place, app.store).faults,
    ) == ([], ())
