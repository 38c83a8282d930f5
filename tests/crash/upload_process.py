"""A process that moves an archive into a bucket and may be killed in the middle of it."""

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
    app.close()
