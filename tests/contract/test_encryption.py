"""An encrypted home: no word of a call can be read from the files of the archive, and everything
that works on a clear archive works on it.
"""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from aftercall.app import App, build
from aftercall.encryption import KEY_FILE, is_encrypted
from aftercall.errors import ConfigError, FileUnreadable
from aftercall.journal.archive import KEY_CHECK_FILE
from aftercall.journal.verify import verify_archive
from aftercall.memory.fact_store import FactFilter
from aftercall.model.calls import Call, Turn, encode_call
from aftercall.settings import Settings
from aftercall.settings.providers import ArchiveSettings
from fakes import VirtualClock, make_call
from opened_apps import OpenApp

GOES, STAYS = "+15550142", "+15550199"
WORDS = "My sister Xylograph lives near the zanzibarium in Utrecht."
MARKERS = (b"15550142", b"Xylograph", b"zanzibarium")


def encrypted(settings: Settings, *, is_on: bool = True) -> Settings:
    return settings.model_copy(update={"archive": ArchiveSettings(encrypt=is_on)})


@pytest.fixture
def locked(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> App:
    return open_app(encrypted(settings), clock)


def call_of(caller: str, words: str = WORDS, **fields: str) -> Call:
    said = [("agent", "Hello!"), ("caller", words), ("agent", "Noted.")]
    return make_call([*said, ("caller", "Thank you, bye.")], caller=caller, **fields)


def archive_files(app: App) -> dict[str, bytes]:
    place = app.archive.place
    return {name: place.read(name) for name in place.list_names()}


def faults(app: App) -> tuple[object, ...]:
    return verify_archive(app.archive.place, app.store).faults


def late_turn(app: App, call: Call, words: str) -> None:
    turn = Turn(seq=5, speaker="caller", text=words, at=call.ended_at)
    app.archive.add_addendum(
        call.id, str(app.store.get(call.id).archive_name), [turn], app.clock.now()
    )


def test_a_sealed_call_is_unreadable_on_disk_and_whole_in_the_program(
    locked: App,
) -> None:
    call = call_of(GOES)
    locked.journal.ingest(call)
    late_turn(locked, call, "And the zanzibarium is closed.")
    stored = archive_files(locked)
    assert len(stored) == 2
    assert all(is_encrypted(data) for data in stored.values())
    assert not any(marker in data for data in stored.values() for marker in MARKERS)
    read, late = locked.archive.read(str(locked.store.get(call.id).archive_name))
    assert read == call
    assert [turn.text for turn in late] == ["And the zanzibarium is closed."]


def test_a_file_put_in_the_place_of_another_is_not_read_as_that_call(
    locked: App,
) -> None:
    calls = [call_of(GOES), call_of("+15550188", "My name is Ben.")]
    for call in calls:
        locked.journal.ingest(call)
    first, second = (str(locked.store.get(call.id).archive_name) for call in calls)
    folder = locked.settings.home / "archive"
    (folder / first).write_bytes((folder / second).read_bytes())
    with pytest.raises(FileUnreadable, match="holds another call"):
        locked.archive.read(first)


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_clear_file_in_the_place_of_an_encrypted_one_is_refused(
    locked: App, *, is_empty: bool
) -> None:
    call = call_of(GOES)
    locked.journal.ingest(call)
    name = str(locked.store.get(call.id).archive_name)
    forged = b"" if is_empty else encode_call(call).replace(b"Utrecht", b"Antwerp")
    (locked.settings.home / "archive" / name).write_bytes(forged)
    with pytest.raises(FileUnreadable, match="not the file that was sealed"):
        locked.archive.read(name)


def test_the_chain_proves_the_bytes_as_stored(locked: App) -> None:
    locked.journal.ingest(call_of(GOES))
    assert faults(locked) == ()
    (name,) = locked.archive.place.list_names()
    file = locked.settings.home / "archive" / name
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert [
        fault.kind
        for fault in verify_archive(locked.archive.place, locked.store).faults
    ] == ["edited"]


def test_a_home_may_hold_both_kinds_whenever_the_setting_changes(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    calls = [call_of(GOES, sid=f"c{number}") for number in range(3)]
    for call, is_on in zip(calls, (False, True, False), strict=True):
        app = open_app(encrypted(settings, is_on=is_on), clock)
        app.journal.ingest(call)
        app.journal.ingest(calls[0])  # sealed before, in clear
    kinds = sorted(is_encrypted(data) for data in archive_files(app).values())
    assert kinds == [False, False, True]
    for call in calls:
        assert app.archive.read(str(app.store.get(call.id).archive_name))[0] == call
    assert faults(app) == ()


def test_a_call_sealed_again_after_a_crash_keeps_its_first_file(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    locked = open_app(encrypted(settings), clock)
    call = call_of(GOES)
    first = locked.archive.seal(call)
    assert locked.archive.seal(call) == first
    assert open_app(encrypted(settings, is_on=False), clock).archive.seal(call) == first
    assert len(locked.archive.place.list_names()) == 1


def test_an_export_is_in_clear(locked: App, tmp_path: Path) -> None:
    call = call_of(GOES)
    locked.journal.ingest(call)
    late_turn(locked, call, "And the zanzibarium is closed.")
    locked.exporter.export(GOES, tmp_path / "masked")
    locked.exporter.export(GOES, tmp_path / "whole", reveal=True)
    (masked,) = (tmp_path / "masked" / "calls").iterdir()
    assert "zanzibarium" in masked.read_text()
    whole = sorted((tmp_path / "whole" / "calls").iterdir())
    assert len(whole) == 2
    assert whole[1].read_bytes() == encode_call(call)
    assert "closed" in str(json.loads(whole[0].read_text())["turns"])


def test_memory_is_rebuilt_from_it(locked: App) -> None:
    call = call_of(GOES, "I prefer to be called in the morning.")
    locked.journal.ingest(call)
    made = locked.rebuilder.rebuild()
    assert (made.calls, made.failed, made.undone) == (1, (), ())
    found = [fact.content for fact in locked.facts.page(FactFilter())]
    assert any("morning" in content for content in found)


def test_a_caller_is_erased_from_it_and_others_keep_theirs(locked: App) -> None:
    locked.journal.ingest(call_of(GOES))
    kept = call_of(STAYS, "I like the harbour very much indeed.", sid="other")
    locked.journal.ingest(kept)
    receipt = locked.eraser.erase(GOES)
    assert (receipt.archive_files, receipt.scan.is_clean) == (1, True)
    assert list(archive_files(locked)) == [locked.store.get(kept.id).archive_name]
    assert faults(locked) == ()


def test_a_trace_in_an_encrypted_file_is_found(locked: App) -> None:
    locked.journal.ingest(call_of(GOES))
    stray = locked.settings.home / "recordings" / "stray.wav.transcript.json"
    stray.parent.mkdir()
    stray.write_bytes(locked.archive.place.cipher.encrypt(WORDS.encode()))
    assert locked.eraser.erase(GOES).scan.traces == (stray.name,)


def test_nothing_is_called_clean_that_no_key_opens(locked: App) -> None:
    locked.journal.ingest(call_of(GOES))
    stray = locked.settings.home / "stray.json"
    data = bytearray(locked.archive.place.cipher.encrypt(WORDS.encode()))
    data[-1] ^= 1
    stray.write_bytes(data)
    receipt = locked.eraser.erase(GOES)
    assert (receipt.scan.traces, receipt.scan.unreadable) == ((), (stray.name,))
    assert receipt.to_json()["is_clean"] is False


def test_another_key_is_refused_at_start_and_the_archive_stays(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    locked = open_app(encrypted(settings), clock)
    call = call_of(GOES)
    locked.journal.ingest(call)
    before = archive_files(locked)
    other = encrypted(settings).model_copy(update={"secret_key": SecretStr("another")})
    with pytest.raises(ConfigError, match="another key"):
        build(other, clock)
    key = settings.home / KEY_FILE
    kept = key.read_bytes()
    key.unlink()  # a restored home without its key gets a new one
    with pytest.raises(ConfigError, match=KEY_FILE):
        build(encrypted(settings, is_on=False), clock)
    key.write_bytes(kept)
    app = open_app(encrypted(settings, is_on=False), clock)
    assert archive_files(app) == before
    assert (app.settings.home / "archive" / KEY_CHECK_FILE).exists()
