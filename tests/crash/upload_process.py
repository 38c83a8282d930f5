"""A process that moves an archive and copies of the ledger into a bucket, and may be killed."""

from aftercall import faults
from aftercall.app import build
from aftercall.journal.archive_bucket import ArchiveBucket
from aftercall.journal.recording_files import RecordingFolder, move_recordings
from aftercall.settings import Settings


def run(settings: Settings, fault: str) -> None:
    faults.arm(fault)
    app = build(settings)
    place = app.archive.place
    assert isinstance(place, ArchiveBucket)
    place.upload_waiting(takes_all=True)
    place.move_folder(lambda done, total: None)
    move_recordings(RecordingFolder.from_settings(settings), app.recordings)
    assert app.ledger_copies
    app.ledger_copies.copy_changed()
    app.close()
