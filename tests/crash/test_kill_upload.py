"""kill -9 between a seal and its upload: every file arrives, once, and the chain is whole."""

from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.journal.recording_files import RecordingFolder, make_file_name
from aftercall.journal.verify import verify_archive
from aftercall.settings import Settings
from aftercall.stores import open_stores
from command_process import spawner
from crash import upload_process
from fakes import VirtualClock, make_call
from followup_work import follow
from s3_server import S3Server

POINTS = [point for point in faults.POINTS if point.startswith("upload.")]


def upload(settings: Settings, fault: str) -> int | None:
    process = spawner.Process(target=upload_process.run, args=(settings, fault))
    process.start()
    process.join()
    return process.exitcode


def test_every_file_arrives_once_wherever_the_process_dies(
    tmp_path: Path, s3: S3Server
) -> None:
    """Some calls were sealed into the folder, one waits in the database."""
    settings = Settings(home=tmp_path / "home")
    app = build(settings)
    for number in range(4):
        row, _ = app.journal.ingest(make_call([("caller", f"call {number}")]))
    made = app.recordings.register(
        row.live.id, "twilio", "RE1", None, "waiting", app.clock.now()
    )
    folder = RecordingFolder.from_settings(settings)
    name = make_file_name(row.live.id, made.id)
    part = folder.open_part(name)
    part.append(b"RIFF")
    folder.finish(part, name)
    app.recordings.finish(
        made.id,
        path=f"recordings/{name}",
        sha256="",
        size=4,
        now=app.clock.now(),
        transcript="none",
    )
    app.close()
    in_bucket = settings.model_copy(update={"archive": s3.make_bucket()})
    with open_stores(in_bucket, purpose="move") as stores:
        stores.move_archive()
    app = build(in_bucket, VirtualClock())
    asking = make_call([("caller", "Please order paper.")])
    app.journal.ingest(asking)
    follow(app.work, asking.conversation)
    app.close()
    for point in POINTS:
        assert upload(in_bucket, point) == -9
    assert upload(in_bucket, "") == 0
    app = build(in_bucket)
    proof = verify_archive(app.archive.place, app.store)
    keys = s3.list_keys(in_bucket.archive)
    app.close()
    assert (proof.files, proof.links, proof.faults, proof.waiting) == (5, 5, (), 0)
    assert sum(key.startswith("archive/") for key in keys) == 5
    assert f"recordings/{name}" in keys
    (copy,) = [key for key in keys if key.startswith("ledger/")]
    assert asking.conversation in copy
    assert not list((settings.home / "archive").glob("*.json"))
    assert not list((settings.home / "recordings").iterdir())
