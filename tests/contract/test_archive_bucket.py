"""An archive in object storage: sealed at once, uploaded later, never overwritten."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import insert, select
from typer.testing import CliRunner

from aftercall.app import App, build
from aftercall.backup import make_backup, read_backup
from aftercall.briefing.composer import brief_ring
from aftercall.briefing.render import render
from aftercall.cli.main import program
from aftercall.db.event_log import events
from aftercall.db.tables import deliveries, recordings, upkeep
from aftercall.db.upgrade import open_database
from aftercall.encryption import KEY_FILE
from aftercall.errors import ChainBroken, ConfigError, NotFound, ObjectStoreUnreachable
from aftercall.journal.archive import parse_link
from aftercall.journal.archive_bucket import PUBLISH_INTERVAL, ArchiveBucket
from aftercall.journal.bucket import Bucket, sign_request
from aftercall.journal.recording_files import (
    TRANSCRIPT_SUFFIX,
    RecordingFolder,
    hash_file,
    make_file_name,
    move_recordings,
)
from aftercall.journal.verify import verify_archive, verify_recordings
from aftercall.postcall.steps import list_steps
from aftercall.settings import Settings
from aftercall.settings.providers import ArchiveSettings
from aftercall.stores import open_stores
from api_client import make_client
from fakes import START, VirtualClock, make_call, make_live_call
from followup_work import follow, hold_requests
from opened_apps import OpenApp, crashed
from s3_server import S3Server


@pytest.fixture
def bucket_settings(settings: Settings, s3: S3Server) -> Settings:
    return settings.model_copy(update={"archive": s3.make_bucket()})


@pytest.fixture
def stored(bucket_settings: Settings, clock: VirtualClock, open_app: OpenApp) -> App:
    return open_app(bucket_settings, clock)


def place_of(app: App) -> ArchiveBucket:
    assert isinstance(app.archive.place, ArchiveBucket)
    return app.archive.place


def seal(app: App, count: int = 3) -> list[str]:
    rows = [
        app.journal.ingest(make_call([("caller", f"call number {n}")]))[0]
        for n in range(count)
    ]
    return [str(row.archive_name) for row in rows]


def faults(app: App) -> set[tuple[str, str]]:
    proof = verify_archive(app.archive.place, app.store)
    return {(fault.kind, fault.name) for fault in proof.faults}


def segments(s3: S3Server, app: App) -> list[str]:
    return [
        key for key in s3.list_keys(app.settings.archive) if key.startswith("chain/")
    ]


def test_a_call_is_sealed_at_once_and_uploaded_after_that(
    stored: App, s3: S3Server
) -> None:
    (name,) = seal(stored, 1)
    assert f"archive/{name}" not in s3.list_keys(stored.settings.archive)
    assert stored.archive.read(name)[0].turns[0].text == "call number 0"
    assert verify_archive(stored.archive.place, stored.store).waiting == 1
    stored.archive.place.upload_waiting()
    assert f"archive/{name}" in s3.list_keys(stored.settings.archive)
    assert stored.archive.read(name)[0].turns[0].text == "call number 0"
    proof = verify_archive(stored.archive.place, stored.store)
    assert (proof.files, proof.links, proof.calls) == (1, 1, 1)
    assert (proof.faults, proof.waiting) == ((), 0)
    assert not list((stored.settings.home / "archive").iterdir())


def test_calls_are_sealed_while_the_store_is_away_and_follow_when_it_is_back(
    bucket_settings: Settings, clock: VirtualClock, open_app: OpenApp, s3: S3Server
) -> None:
    s3.stop()
    try:
        app = open_app(bucket_settings, clock)
        names = seal(app)
        with pytest.raises(ObjectStoreUnreachable):
            app.archive.place.upload_waiting()
        assert app.archive.read(names[0])[0].turns
    finally:
        s3.start()
    app.archive.place.upload_waiting()
    assert app.archive.place.count_waiting() == 0
    assert faults(app) == set()


def test_an_uploaded_call_is_asked_for_again_while_the_store_is_away(
    stored: App, s3: S3Server
) -> None:
    seal(stored, 1)
    stored.archive.place.upload_waiting()
    (row,) = stored.store.list_page(limit=1)
    s3.stop()
    try:
        answer = make_client(stored).get(f"/api/calls/{row.live.id}")
    finally:
        s3.start()
    assert answer.json()["error"]["code"] == ObjectStoreUnreachable.code
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)


def test_verify_says_how_many_files_wait_while_the_store_is_away(
    stored: App, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(stored, 2)
    use_settings(monkeypatch, stored.settings)
    s3.stop()
    try:
        result = CliRunner().invoke(program, ["verify"])
    finally:
        s3.start()
    assert isinstance(result.exception, ObjectStoreUnreachable)
    assert "2 sealed files in the database" in str(result.exception)


def use_settings(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """Commands of this test run on the same home, database and bucket."""
    archive = settings.archive
    assert archive.secret_access_key
    for name, value in {
        "AFTERCALL_HOME": str(settings.home),
        "AFTERCALL_DATABASE_URL": settings.database_url,
        "AFTERCALL_ARCHIVE_URL": archive.url,
        "AWS_ENDPOINT_URL": archive.endpoint or "",
        "AWS_REGION": archive.region,
        "AWS_ACCESS_KEY_ID": archive.access_key_id or "",
        "AWS_SECRET_ACCESS_KEY": archive.secret_access_key.get_secret_value(),
    }.items():
        monkeypatch.setenv(name, value)


def test_the_chain_is_published_beside_the_objects(
    stored: App, clock: VirtualClock, s3: S3Server
) -> None:
    seal(stored)
    due_at = stored.archive.place.upload_waiting()
    assert due_at == clock.now() + PUBLISH_INTERVAL
    assert segments(s3, stored) == []
    clock.move(PUBLISH_INTERVAL.total_seconds())
    assert stored.archive.place.upload_waiting() is None
    (key,) = segments(s3, stored)
    published = s3.send("GET", s3.path_of(stored.settings.archive, key))
    assert published.splitlines() == stored.archive.place.read_chain()


def test_nothing_in_the_bucket_is_overwritten(stored: App, s3: S3Server) -> None:
    (name,) = seal(stored, 1)
    path = s3.path_of(stored.settings.archive, f"archive/{name}")
    s3.send("PUT", path, b"somebody else's")
    with pytest.raises(Exception, match="nothing was overwritten"):
        stored.archive.place.upload_waiting()
    assert s3.send("GET", path) == b"somebody else's"
    assert stored.archive.read(name)[0].turns  # ours waits


def test_two_processes_upload_each_file_once(stored: App, s3: S3Server) -> None:
    names = seal(stored)
    with crashed(stored) as other:
        seal(other, 2)
        other.archive.place.upload_waiting()
        assert other.archive.place.count_waiting() == len(
            names
        )  # not its own, and fresh
        other.archive.place.upload_waiting(takes_all=True)
    stored.archive.place.upload_waiting()
    assert faults(stored) == set()
    assert len(stored.archive.place.read_chain()) == 5


@pytest.mark.parametrize("kind", ["edited", "missing", "unchained", "unerased"])
def test_every_damage_in_the_bucket_is_named(
    stored: App, s3: S3Server, kind: str
) -> None:
    names = seal(stored)
    stored.archive.place.upload_waiting()
    key = f"archive/{names[1]}"
    path = s3.path_of(stored.settings.archive, key)
    before = s3.send("GET", path)
    if kind == "edited":
        s3.send("PUT", path, before.replace(b"number", b"nUmber"))
    elif kind == "missing":
        s3.send("DELETE", path)
    elif kind == "unchained":
        s3.send("PUT", path.replace(names[1], "forged.json"), before)
    else:
        stored.archive.erase(parse_link(stored.archive.place.read_chain()[1]).call)
        s3.send("PUT", path, before)
    named = "forged.json" if kind == "unchained" else names[1]
    assert (kind, named) in faults(stored)


@pytest.mark.parametrize("damage", ["edited", "removed"])
def test_damage_to_the_published_chain_is_named(
    stored: App, clock: VirtualClock, s3: S3Server, damage: str
) -> None:
    for _ in range(3):
        seal(stored, 1)
        clock.move(PUBLISH_INTERVAL.total_seconds())
        stored.archive.place.upload_waiting()
    assert faults(stored) == set()
    path = s3.path_of(stored.settings.archive, segments(s3, stored)[1])
    if damage == "edited":
        s3.send("PUT", path, s3.send("GET", path).replace(b'"n":2', b'"n":7'))
    else:
        s3.send("DELETE", path)
    assert {kind for kind, _ in faults(stored)} == {"chain"}


def test_verify_fetches_no_object_that_it_has_checked(
    stored: App, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = seal(stored)
    stored.archive.place.upload_waiting()
    fetched: list[str] = []
    read = Bucket.read

    def note(self: Bucket, key: str) -> bytes:
        fetched.append(key)
        return read(self, key)

    monkeypatch.setattr(Bucket, "read", note)
    assert faults(stored) == set()
    assert fetched == []
    path = s3.path_of(stored.settings.archive, f"archive/{names[0]}")
    s3.send("PUT", path, b"edited")
    assert ("edited", names[0]) in faults(stored)
    assert set(fetched) == {f"archive/{names[0]}"}


def test_a_damaged_chain_of_another_archive_is_refused(
    stored: App, clock: VirtualClock, s3: S3Server
) -> None:
    forged = b'{"n":1,"name":"x.json","sha256":"0","call":"c","previous":"f"}\n'
    first = s3.path_of(stored.settings.archive, "chain/000000000001.jsonl")
    s3.send("PUT", first, forged)
    seal(stored, 1)
    clock.move(PUBLISH_INTERVAL.total_seconds())
    with pytest.raises(ChainBroken, match="does not follow"):
        stored.archive.place.upload_waiting()


def become_copy(settings: Settings, app: App) -> None:
    """Makes a database that has the id, the archive and the key of the app's, and no call."""
    settings.home.mkdir()
    shutil.copy(app.settings.home / KEY_FILE, settings.home)
    with app.database.read() as connection:
        claim = connection.execute(select(upkeep)).one()
    with (
        closing(open_database(settings, app.clock, claims_home=True)) as database,
        database.write() as connection,
    ):
        connection.execute(insert(upkeep), claim._asdict())


def test_a_database_of_before_goes_on_behind_what_was_published_since(
    stored: App, clock: VirtualClock, s3: S3Server, open_app: OpenApp, tmp_path: Path
) -> None:
    """A restored copy does not know the newest calls. They are taken over, and new ones follow."""
    seal(stored)
    clock.move(PUBLISH_INTERVAL.total_seconds())
    stored.archive.place.upload_waiting()
    older = Settings(home=tmp_path / "other", archive=stored.settings.archive)
    become_copy(older, stored)
    s3.stop()
    try:  # sealed before the store could be asked: a second beginning of the chain
        other = open_app(older, clock)
        (name,) = seal(other, 1)
    finally:
        s3.start()
    clock.move(PUBLISH_INTERVAL.total_seconds())
    other.archive.place.upload_waiting()
    lines = other.archive.place.read_chain()
    assert lines[:3] == stored.archive.place.read_chain()
    assert [parse_link(line).n for line in lines] == [1, 2, 3, 4]
    assert parse_link(lines[3]).name == name
    assert {kind for kind, _ in faults(other)} == {"unknown"}  # until a rebuild


def test_an_erased_call_leaves_no_object_and_no_version(
    settings: Settings, clock: VirtualClock, open_app: OpenApp, s3: S3Server
) -> None:
    archive = s3.make_bucket(is_locked=True)
    app = open_app(settings.model_copy(update={"archive": archive}), clock)
    row, _ = app.journal.ingest(make_call(caller="+15550100"))
    app.archive.place.upload_waiting()
    bucket = archive.url.removeprefix("s3://").partition("/")[0]
    assert str(row.archive_name) in s3.send("GET", f"{bucket}?versions").decode()
    receipt = app.eraser.erase("+15550100")
    assert receipt.archive_files == 1
    assert str(row.archive_name) not in s3.send("GET", f"{bucket}?versions").decode()
    assert faults(app) == set()


def test_a_receipt_names_what_the_lock_of_the_bucket_keeps(
    settings: Settings, clock: VirtualClock, open_app: OpenApp, s3: S3Server
) -> None:
    archive = s3.make_bucket(is_locked=True)
    app = open_app(settings.model_copy(update={"archive": archive}), clock)
    row, _ = app.journal.ingest(make_call(caller="+15550100"))
    app.archive.place.upload_waiting()
    path = s3.path_of(archive, f"archive/{row.archive_name}")
    hold = b"<LegalHold><Status>ON</Status></LegalHold>"
    s3.send("PUT", f"{path}?legal-hold", hold)
    receipt = app.eraser.erase("+15550100")
    assert any("lock keeps" in place for place in receipt.out_of_reach)
    with pytest.raises(NotFound):
        place_of(app).bucket.read(f"archive/{row.archive_name}")


def test_an_erasure_wins_over_an_upload_that_is_under_way(
    stored: App, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = seal(stored, 1)
    call_id = parse_link(stored.archive.place.read_chain()[0]).call
    create = Bucket.create

    def erase_first(self: Bucket, key: str, data: bytes) -> str | None:
        if key.startswith("archive/"):
            stored.archive.erase(call_id)
        return create(self, key, data)

    monkeypatch.setattr(Bucket, "create", erase_first)
    stored.archive.place.upload_waiting()
    assert f"archive/{name}" not in s3.list_keys(stored.settings.archive)


def test_a_folder_is_moved_into_the_bucket_and_goes_on_there(
    app: App, s3: S3Server, clock: VirtualClock, open_app: OpenApp
) -> None:
    names = seal(app)
    lines = app.archive.place.read_chain()
    archive = s3.make_bucket()
    moved = app.settings.model_copy(update={"archive": archive})
    with open_stores(moved, purpose="move") as stores:
        stores.move_archive()
    other = open_app(moved, clock)
    names += seal(other, 1)
    assert other.archive.read(names[0])[0].turns[0].text == "call number 0"
    assert faults(other) == set()
    (other.settings.home / "archive" / names[1]).unlink()
    shown: list[tuple[int, int]] = []
    assert place_of(other).move_folder(
        lambda done, total: shown.append((done, total))
    ) == [names[1]]
    assert shown == [(3, 3)]
    other.archive.place.upload_waiting()
    kept = [key for key in s3.list_keys(archive) if key.startswith("archive/")]
    assert kept == sorted(f"archive/{name}" for name in names if name != names[1])
    assert not list((other.settings.home / "archive").glob("*.json"))
    assert other.archive.place.read_chain()[:3] == lines
    assert faults(other) == {("missing", names[1])}
    with pytest.raises(ConfigError, match=r"archive\.url"):
        build(app.settings, clock)


def test_a_bucket_of_another_database_is_refused_until_a_rebuild(
    stored: App, clock: VirtualClock, tmp_path: Path
) -> None:
    seal(stored)
    stored.archive.place.upload_waiting()
    empty = Settings(home=tmp_path / "empty", archive=stored.settings.archive)
    with pytest.raises(ConfigError, match="aftercall rebuild"):
        build(empty, clock)
    build(empty, clock, purpose="rebuild").close()
    build(empty, clock).close()
    with pytest.raises(ConfigError, match="of another database"):
        build(stored.settings, clock)  # it has lost its calls to the other one


def test_another_bucket_is_refused_and_leaves_the_calls_where_they_are(
    stored: App, s3: S3Server, clock: VirtualClock
) -> None:
    seal(stored, 1)
    other = s3.make_bucket()
    mistyped = stored.settings.model_copy(update={"archive": other})
    with pytest.raises(ConfigError, match=stored.settings.archive.url):
        build(mistyped, clock)
    assert s3.list_keys(other) == []


def test_the_command_that_moves_an_archive_tells_the_database(
    app: App, s3: S3Server, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(app)
    moved = app.settings.model_copy(update={"archive": s3.make_bucket()})
    with pytest.raises(ConfigError, match="aftercall archive move"):
        build(moved, clock)
    use_settings(monkeypatch, moved)
    result = CliRunner().invoke(program, ["archive", "move"])
    assert (result.exit_code, "3 archive files" in result.output) == (0, True)
    after = build(moved, clock)
    assert faults(after) == set()
    after.close()


def test_a_bucket_is_left_for_a_copy_of_it_once_the_copy_is_whole(
    stored: App, s3: S3Server, clock: VirtualClock
) -> None:
    seal(stored)
    clock.move(PUBLISH_INTERVAL.total_seconds())
    stored.archive.place.upload_waiting()
    archive, copy = stored.settings.archive, s3.make_bucket()
    moved = stored.settings.model_copy(update={"archive": copy})
    with (
        open_stores(moved, purpose="move") as stores,
        pytest.raises(ConfigError, match="copy all objects there first"),
    ):
        stores.move_archive()
    with pytest.raises(ConfigError, match="aftercall archive move"):
        build(moved, clock)
    for key in s3.list_keys(archive):
        held = s3.send("GET", s3.path_of(archive, key))
        s3.send("PUT", s3.path_of(copy, key), held)
    with open_stores(moved, purpose="move") as stores:
        stores.move_archive()
    app = build(moved, clock)
    assert faults(app) == set()
    app.close()


CALLERS = ("+15550100", "+15550101")
SAID = {
    CALLERS[0]: (
        "My brother is Carl.",
        "Hi, this is Rosa Lind. I prefer to be called in the evening.",
        "Please remind me to water the roses.",
    ),
    CALLERS[1]: (
        "My name is Tom Berger, please order ten boxes of paper.",
        "Could you call the plumber about the leak on Friday?",
    ),
}


def work_off(app: App, *, with_copies: bool = True) -> None:
    """Calls of both callers, with everything that follows a call."""
    assert isinstance(app.clock, VirtualClock)
    for number, lines in SAID.items():
        for said in lines:
            call = make_call(
                [("caller", said)],
                caller=number,
                verified=True,
                started_at=app.clock.now(),
            )
            app.clock.move(3600)
            app.journal.ingest(call)
            runner = app.step_runner
            runner.run_by_hand(call.id, list_steps(runner.context), "")
            follow(app.work, call.conversation)
    publish(app, with_copies=with_copies)


def publish(app: App, *, with_copies: bool = True) -> None:
    """Everything is in the bucket, and nobody picks a dropped call up any more."""
    assert isinstance(app.clock, VirtualClock)
    app.clock.move(3600)
    app.archive.place.upload_waiting()
    if with_copies:
        assert app.ledger_copies
        app.ledger_copies.copy_changed()


async def list_briefings(app: App, clock: VirtualClock) -> list[str]:
    told = []
    for number in CALLERS:
        ring = make_live_call(
            caller=number, verified=True, sid="ring", id="ring", started_at=clock.now()
        )
        _, briefing = await brief_ring(app.composer, ring, clock)
        told.append(render(briefing, app.settings.zone))
    return told


def list_requests(app: App) -> list[tuple[str, str, str]]:
    rows = app.work.followups.page(limit=50)
    return [(row.kind, row.title, row.standing) for row in rows]


@pytest.mark.parametrize("with_copies", [True, False])
async def test_an_empty_database_gets_the_same_briefings_from_the_bucket_alone(
    stored: App,
    clock: VirtualClock,
    open_app: OpenApp,
    tmp_path: Path,
    *,
    with_copies: bool,
) -> None:
    work_off(stored, with_copies=with_copies)
    empty = Settings(home=tmp_path / "empty", archive=stored.settings.archive)
    build(empty, clock, purpose="rebuild").close()
    other = open_app(empty, clock)
    made = other.rebuilder.rebuild()
    assert (made.calls, made.adopted, made.failed, made.undone) == (5, 5, (), ())
    assert list_requests(other) == list_requests(stored)
    before = await list_briefings(stored, clock)
    assert await list_briefings(other, clock) == before
    for told, words in zip(before, (("Rosa", "Carl"), ("Tom", "paper")), strict=True):
        assert all(word in told for word in words)
    assert "Written down" in before[0]
    assert faults(other) == set()


def test_a_rebuild_holds_what_was_held_and_delivers_nothing(
    stored: App, clock: VirtualClock, open_app: OpenApp, tmp_path: Path
) -> None:
    """Also without copies of the ledger: they are a minute behind."""
    held = hold_requests(stored, "plumber", "dentist")
    publish(stored, with_copies=False)
    careful = stored.settings.work.model_copy(update={"policy": {"unknown": "hold"}})
    archive = stored.settings.archive
    empty = Settings(home=tmp_path / "empty", archive=archive, work=careful)
    build(empty, clock, purpose="rebuild").close()
    other = open_app(empty, clock)
    assert other.rebuilder.rebuild().followups == len(held)
    rows = other.work.followups.page(limit=50)
    assert {(row.key, row.state) for row in rows} == {(row.key, "held") for row in held}
    assert all("may have been approved" in row.reason for row in rows)
    again = other.rebuilder.rebuild()
    assert (again.adopted, again.undone) == (0, ())
    assert len(other.work.followups.page(limit=50)) == len(held)


def test_a_rebuilt_request_waits_for_no_delivery_and_tells_nobody(
    stored: App, clock: VirtualClock, open_app: OpenApp, tmp_path: Path
) -> None:
    """Its sink may have got it before: only a reminder that is still to come is kept."""
    work_off(stored, with_copies=False)
    empty = Settings(home=tmp_path / "empty", archive=stored.settings.archive)
    build(empty, clock, purpose="rebuild").close()
    other = open_app(empty, clock)
    other.rebuilder.rebuild()
    rows = other.work.followups.page(limit=50)
    assert rows
    assert not {row.state for row in rows} & {"open", "doing"}
    with other.database.read() as connection:
        told = connection.execute(select(events.c.type)).scalars().all()
        assert connection.execute(select(deliveries)).all() == []
    assert {kind for kind in told if kind.startswith(("request", "promise"))} == set()
    now = clock.now()
    assert all(row.remind_at > now for row in rows if row.remind_at)
    assert other.work.runs.due(now, 0) == []


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_recording_moves_into_the_bucket_and_is_read_from_there(
    settings: Settings,
    clock: VirtualClock,
    open_app: OpenApp,
    s3: S3Server,
    *,
    is_encrypted: bool,
) -> None:
    archive = s3.make_bucket().model_copy(update={"encrypt": is_encrypted})
    app = open_app(settings.model_copy(update={"archive": archive}), clock)
    path = record(app)
    folder = RecordingFolder.from_settings(app.settings)
    assert move_recordings(folder, app.recordings) == 2
    assert list(path.parent.iterdir()) == []
    keys = s3.list_keys(archive)
    assert f"recordings/{path.name}" in keys
    sound = s3.send("GET", s3.path_of(archive, f"recordings/{path.name}"))
    assert (b"RIFF of a call" in sound) is not is_encrypted
    assert folder.read(path) == b"RIFF of a call"
    assert [name for name, _ in folder.list_stored(path)] == [
        path.name,
        f"{path.name}{TRANSCRIPT_SUFFIX}",
    ]
    receipt = app.eraser.erase("+15550100")
    assert receipt.recordings == 1
    assert not [key for key in s3.list_keys(archive) if key.startswith("recordings/")]


def test_a_recording_erased_on_another_machine_is_not_moved(
    stored: App, s3: S3Server
) -> None:
    path = record(stored)
    with stored.database.write() as connection:
        connection.execute(recordings.delete())
    folder = RecordingFolder.from_settings(stored.settings)
    move_recordings(folder, stored.recordings)
    assert list(path.parent.iterdir()) == []
    assert not [
        key for key in s3.list_keys(stored.settings.archive) if "recordings" in key
    ]


def recording_faults(app: App) -> tuple[set[str], int]:
    folder = RecordingFolder.from_settings(app.settings)
    proof = verify_recordings(folder, app.recordings)
    return {fault.kind for fault in proof.faults}, proof.waiting


def test_a_recording_in_the_bucket_is_proven_and_one_changed_there_is_named(
    stored: App, s3: S3Server
) -> None:
    path = record(stored)
    assert recording_faults(stored) == (set(), 0)  # still in the home
    folder = RecordingFolder.from_settings(stored.settings)
    move_recordings(folder, stored.recordings)
    assert recording_faults(stored) == (set(), 0)
    bucket = Bucket(stored.settings.archive)
    bucket.replace(f"recordings/{path.name}", b"RIFF of another call")
    assert recording_faults(stored) == ({"edited"}, 0)
    bucket.remove(f"recordings/{path.name}")
    assert recording_faults(stored) == ({"missing"}, 0)


def test_a_recording_that_another_machine_has_not_moved_yet_is_no_fault(
    stored: App,
) -> None:
    path = record(stored)
    path.unlink()  # this machine never had it
    assert recording_faults(stored) == (set(), 1)


def record(app: App) -> Path:
    """A recording with its transcript, as they lie when they have been fetched."""
    row, _ = app.journal.ingest(make_call(caller="+15550100"))
    made = app.recordings.register(
        row.live.id, "twilio", "RE1", "https://x", "waiting", app.clock.now()
    )
    folder = RecordingFolder.from_settings(app.settings)
    name = make_file_name(row.live.id, made.id)
    part = folder.open_part(name)
    part.append(b"RIFF of a call")
    path = folder.finish(part, name)
    folder.write_transcript(path, {"text": "good morning"})
    app.recordings.finish(
        made.id,
        path=folder.to_relative_path(path),
        sha256=hash_file(path),
        size=path.stat().st_size,
        now=app.clock.now(),
        transcript="here",
    )
    return path


def test_a_backup_leaves_the_bucket_out_and_keeps_what_waits(
    stored: App, tmp_path: Path, clock: VirtualClock
) -> None:
    (name,) = seal(stored, 1)
    folder = tmp_path / "backups"
    folder.mkdir()
    report = make_backup(stored.settings, stored.database, folder, clock.now())
    assert (report.calls, report.faults) == (1, ())
    assert name not in str([name for name, _, _ in read_backup(Path(report.path))])


def test_a_bucket_with_files_of_another_key_is_refused(
    settings: Settings,
    clock: VirtualClock,
    open_app: OpenApp,
    s3: S3Server,
    tmp_path: Path,
) -> None:
    archive = s3.make_bucket().model_copy(update={"encrypt": True})
    app = open_app(settings.model_copy(update={"archive": archive}), clock)
    (name,) = seal(app, 1)
    app.archive.place.upload_waiting()
    path = s3.path_of(archive, f"archive/{name}")
    assert b"call number" not in s3.send("GET", path)
    assert app.archive.read(name)[0].turns[0].text == "call number 0"
    with pytest.raises(ConfigError, match="another key"):
        build(Settings(home=tmp_path / "other", archive=archive), clock)


def test_a_service_that_would_overwrite_is_refused(
    settings: Settings,
    clock: VirtualClock,
    s3: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Bucket, "create", lambda self, key, data: "tag")
    with pytest.raises(ConfigError, match="ignores conditional writes"):
        build(settings.model_copy(update={"archive": s3.make_bucket()}), clock)


def test_requests_for_versions_are_signed_as_amazon_shows() -> None:
    """The example of its documentation: a list of two objects."""
    settings = ArchiveSettings(
        access_key_id="AKIAIOSFODNN7EXAMPLE",
        secret_access_key=SecretStr("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    )
    headers = sign_request(
        "GET",
        "https://examplebucket.s3.amazonaws.com",
        "/",
        {"max-keys": "2", "prefix": "J"},
        settings,
        START.replace(2013, 5, 24, 0, 0, 0, 0),
    )
    assert headers["authorization"].endswith(
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )
