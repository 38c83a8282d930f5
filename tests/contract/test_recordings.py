"""Recordings on both databases: noted once, fetched whole, and every end is told."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pydantic import SecretStr

from aftercall.app import App
from aftercall.carrier.media import PLATFORMS
from aftercall.encryption import open_cipher, read_decrypted
from aftercall.errors import (
    CarrierUnreachable,
    RecordingError,
    RecordingNotYet,
    RecordingRefused,
    TranscriberUnreachable,
)
from aftercall.journal.recording_files import (
    RecordingFolder,
    hash_file,
    recordings_json,
)
from aftercall.journal.verify import verify_recordings
from aftercall.lab.carrier import LabRecording, make_wav
from aftercall.lab.hosted import LabHostedCall
from aftercall.lab.server import Lab
from aftercall.model.calls import Recording
from aftercall.phone.notices import RecordingNotice, RecordingState
from aftercall.postcall.recordings import RecordingFetcher, fetch_again
from aftercall.settings import Settings
from aftercall.settings.providers import (
    ArchiveSettings,
    BlandSettings,
    ElevenLabsSettings,
    OpenAISettings,
    RetellSettings,
    TelnyxSettings,
    TwilioSettings,
    VapiSettings,
)
from aftercall.settings.sections import RecordingsSettings
from aftercall.web.carrier import store_recording_notice
from fakes import make_call
from loopback_server import ACCOUNT, KEY, TOKEN, lab_box

CALL = "CA" + "0" * 32


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with lab_box() as lab:
        yield lab


def settings_for(settings: Settings, lab: Lab, **recordings: object) -> Settings:
    parts = {
        "twilio": TwilioSettings(
            account_sid=ACCOUNT, auth_token=SecretStr(TOKEN), api_url=lab.address
        ),
        "telnyx": TelnyxSettings(api_key=SecretStr(KEY), api_url=lab.address),
        "openai": OpenAISettings(
            api_key=SecretStr(lab.audio.api_key), base_url=f"{lab.address}/v1"
        ),
        "elevenlabs": ElevenLabsSettings(
            api_key=SecretStr(lab.elevenlabs.key), api_url=lab.address
        ),
        "vapi": VapiSettings(api_key=SecretStr(lab.vapi.key), api_url=lab.address),
        "retell": RetellSettings(
            api_key=SecretStr(lab.retell.key), api_url=lab.address
        ),
        "bland": BlandSettings(api_key=SecretStr(lab.bland.key), api_url=lab.address),
        "recordings": RecordingsSettings.model_validate(
            {"enabled": True, **recordings}
        ),
    }
    return settings.model_copy(update=parts)


@pytest.fixture
def call_id(app: App) -> str:
    row, _ = app.journal.ingest(make_call(source="twilio", sid=CALL))
    return row.live.id


def desk(app: App, lab: Lab, **recordings: object) -> RecordingFetcher:
    return RecordingFetcher(
        settings_for(app.settings, lab, **recordings), app.recordings, app.clock
    )


def twilio_recording(app: App, lab: Lab, sid: str) -> tuple[LabRecording, Recording]:
    held = lab.exchange.recordings.add(sid, CALL)
    url = f"{lab.address}/2010-04-01/Accounts/{ACCOUNT}/Recordings/{sid}"
    store_recording_notice(
        app,
        "twilio",
        RecordingNotice(f"{sid}:ready", (CALL,), RecordingState.READY, sid, url),
    )
    (row,) = [
        row
        for row in app.recordings.list_for_call(app.store.list_page(limit=1)[0].live.id)
        if row.sid == sid
    ]
    return held, row


def test_what_is_told_twice_is_noted_once(app: App, lab: Lab, call_id: str) -> None:
    twilio_recording(app, lab, "RE1")
    _, row = twilio_recording(app, lab, "RE1")
    assert app.recordings.list_due() == [row.id]
    assert (row.call_id, row.state) == (call_id, "waiting")
    assert lab.address not in json.dumps(recordings_json([row]))


def test_an_absent_recording_is_final_and_never_fetched(
    app: App, lab: Lab, call_id: str
) -> None:
    store_recording_notice(
        app,
        "twilio",
        RecordingNotice("RE2:absent", (CALL,), RecordingState.ABSENT, "RE2"),
    )
    (row,) = app.recordings.list_for_call(call_id)
    assert row.state == "absent"
    assert app.recordings.list_due() == []
    assert desk(app, lab).download(row.id) is False
    assert app.recordings.get(row.id).state == "absent"


def test_one_that_is_still_running_and_one_of_a_strangers_call_are_no_news(
    app: App, call_id: str
) -> None:
    store_recording_notice(
        app,
        "twilio",
        RecordingNotice("RE3:running", (CALL,), RecordingState.RUNNING, "RE3"),
    )
    store_recording_notice(
        app,
        "twilio",
        RecordingNotice(
            "RE4:ready", ("CA" + "9" * 32,), RecordingState.READY, "RE4", "https://x"
        ),
    )
    store_recording_notice(
        app,
        "telnyx",
        RecordingNotice("RE4:ready", (CALL,), RecordingState.READY, "RE4", "https://x"),
    )
    assert app.recordings.list_for_call(call_id) == []


def test_telnyx_names_leg_and_session_and_the_call_is_found(app: App) -> None:
    row, _ = app.journal.ingest(
        make_call(
            source="telnyx", sid="v3:abc", metadata={"ids": ["leg_1", "session-1"]}
        )
    )
    app.journal.ingest(
        make_call(
            source="telnyx", sid="v3:def", metadata={"ids": ["legx1", "session-2"]}
        )
    )
    store_recording_notice(
        app,
        "telnyx",
        RecordingNotice(
            "event-1", ("leg_1", "session-1"), RecordingState.READY, None, "https://x"
        ),
    )
    assert [found.sid for found in app.recordings.list_for_call(row.live.id)] == [
        "event-1"
    ]


def test_a_recording_is_fetched_with_auth_into_the_home(
    app: App, lab: Lab, call_id: str
) -> None:
    held, row = twilio_recording(app, lab, "RE5")
    assert desk(app, lab).download(row.id) is False
    found = app.recordings.get(row.id)
    path = app.settings.home / str(found.path)
    assert (found.state, found.bytes, found.attempts) == ("here", len(held.audio), 1)
    assert path.read_bytes() == held.audio
    assert found.sha256 == hash_file(path)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert path.parent.stat().st_mode & 0o077 == 0
    desk(app, lab).download(row.id)
    assert len(held.requested_ranges) == 1  # what is here is not fetched again


def test_an_attempt_that_breaks_off_is_gone_on_with(
    app: App, lab: Lab, call_id: str
) -> None:
    held, row = twilio_recording(app, lab, "RE6")
    held.cut_after_bytes = [20_000, 10_000]
    for _ in range(2):
        with pytest.raises(CarrierUnreachable):
            desk(app, lab).download(row.id)
    desk(app, lab).download(row.id)
    assert (
        app.settings.home / str(app.recordings.get(row.id).path)
    ).read_bytes() == held.audio
    assert held.requested_ranges[0] == ""
    assert all(asked.startswith("bytes=") for asked in held.requested_ranges[1:])


def encrypted_desk(app: App, lab: Lab, **recordings: object) -> RecordingFetcher:
    at = desk(app, lab, **recordings)
    archive = ArchiveSettings(encrypt=True)
    return replace(at, settings=at.settings.model_copy(update={"archive": archive}))


def test_an_encrypted_recording_goes_on_after_a_break_and_is_never_clear_on_disk(
    app: App, lab: Lab, call_id: str
) -> None:
    held, row = twilio_recording(app, lab, "RE14")
    held.cut_after_bytes = [20_000, 10_000]
    at = encrypted_desk(app, lab)
    folder = app.settings.home / "recordings"
    for _ in range(2):
        with pytest.raises(CarrierUnreachable):
            at.download(row.id)
        (part,) = folder.iterdir()
        with part.open("ab") as torn:  # the power goes while a piece is written
            torn.write(b"\0\0\0\x10\0half a piece")
        assert held.audio[:1_000] not in part.read_bytes()
    at.download(row.id)
    found = app.recordings.get(row.id)
    path = app.settings.home / str(found.path)
    assert held.audio[:1_000] not in path.read_bytes()
    assert b"".join(read_decrypted(path, open_cipher(at.settings))) == held.audio
    assert (found.sha256, found.bytes) == (hash_file(path), path.stat().st_size)
    assert held.requested_ranges[0] == ""
    assert all(asked.startswith("bytes=") for asked in held.requested_ranges[1:])
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("is_on_first", [False, True])
def test_a_download_begun_under_another_setting_is_fetched_anew(
    app: App, lab: Lab, call_id: str, is_on_first: bool
) -> None:
    held, row = twilio_recording(app, lab, f"RE15{is_on_first}")
    before, after = desk(app, lab), encrypted_desk(app, lab)
    if is_on_first:
        before, after = after, before
    held.cut_after_bytes = [20_000]
    with pytest.raises(CarrierUnreachable):
        before.download(row.id)
    after.download(row.id)
    path = app.settings.home / str(app.recordings.get(row.id).path)
    assert (path.read_bytes() == held.audio) is is_on_first
    assert b"".join(read_decrypted(path, open_cipher(after.settings))) == held.audio
    assert held.requested_ranges == ["", ""]


def test_an_encrypted_recording_is_transcribed_and_its_transcript_encrypted(
    app: App, lab: Lab, call_id: str
) -> None:
    held, row = twilio_recording(app, lab, "RE16")
    at = encrypted_desk(app, lab, transcribe=True)
    at.download(row.id)
    at.transcribe(row.id)
    assert lab.audio.received[-1]["file"] == held.audio
    found = app.recordings.get(row.id)
    beside = app.settings.home / f"{found.path}.transcript.json"
    assert b"open a bug" not in beside.read_bytes()
    clear = b"".join(read_decrypted(beside, open_cipher(at.settings)))
    assert json.loads(clear)["segments"][1]["text"] == "Please open a bug."


def test_a_recording_that_was_edited_or_removed_is_named_by_verify(
    app: App, lab: Lab, call_id: str
) -> None:
    fetcher = desk(app, lab)
    for sid in ("RE31", "RE32", "RE33"):
        fetcher.download(twilio_recording(app, lab, sid)[1].id)
    folder = RecordingFolder.from_settings(app.settings)
    proof = verify_recordings(folder, app.recordings)
    assert (proof.recordings, proof.faults) == (3, ())
    edited, removed, _ = map(folder.locate, app.recordings.list_here())
    edited.write_bytes(edited.read_bytes() + b"!")
    removed.unlink()
    faults = verify_recordings(folder, app.recordings).faults
    assert {(fault.kind, fault.name) for fault in faults} == {
        ("edited", edited.name),
        ("missing", removed.name),
    }


def test_an_erasure_takes_recordings_and_unfinished_downloads(
    app: App, lab: Lab, call_id: str
) -> None:
    _, whole = twilio_recording(app, lab, "RE17")
    held, broken = twilio_recording(app, lab, "RE18")
    desk(app, lab).download(whole.id)
    held.cut_after_bytes = [20_000]
    with pytest.raises(CarrierUnreachable):
        desk(app, lab).download(broken.id)
    folder = app.settings.home / "recordings"
    assert len(list(folder.iterdir())) == 2
    caller = app.store.get(call_id).live.caller
    assert app.eraser.erase(str(caller)).recordings == 2
    assert list(folder.iterdir()) == []


def test_one_that_is_not_there_is_asked_for_again_and_then_absent(
    app: App, lab: Lab, call_id: str
) -> None:
    held, row = twilio_recording(app, lab, "RE7")
    held.not_found_count = 1
    with pytest.raises(RecordingNotYet) as error:
        desk(app, lab).download(row.id)
    desk(app, lab).give_up(row.id, error.value.code, str(error.value))
    assert app.recordings.get(row.id).state == "absent"
    assert desk(app, lab).download(row.id) is False


def test_wrong_credentials_size_and_hosts_are_refused(
    app: App, lab: Lab, call_id: str
) -> None:
    _, row = twilio_recording(app, lab, "RE8")
    with pytest.raises(RecordingRefused, match="max_bytes"):
        desk(app, lab, max_bytes=1000).download(row.id)
    wrong = settings_for(app.settings, lab).model_copy(
        update={
            "twilio": TwilioSettings(
                account_sid=ACCOUNT, auth_token=SecretStr("wrong"), api_url=lab.address
            )
        }
    )
    with pytest.raises(RecordingError, match="TWILIO_AUTH_TOKEN"):
        RecordingFetcher(wrong, app.recordings, app.clock).download(row.id)
    app.recordings.set_url(
        row.id, "http://169.254.169.254/latest/meta-data", app.clock.now()
    )
    with pytest.raises(RecordingRefused, match="not Twilio's"):
        desk(app, lab).download(row.id)


def test_a_telnyx_address_that_has_run_out_is_asked_for_anew(
    app: App, lab: Lab
) -> None:
    row, _ = app.journal.ingest(make_call(source="telnyx", sid="v3:abc"))
    held = lab.telnyx.recordings.add("rec-1", "v3:abc", life_s=600)
    held.made_s -= 700
    url = lab.telnyx.recording_url("rec-1")
    store_recording_notice(
        app,
        "telnyx",
        RecordingNotice("e", ("v3:abc",), RecordingState.READY, "rec-1", url),
    )
    (recording,) = app.recordings.list_for_call(row.live.id)
    desk(app, lab).download(recording.id)
    assert app.recordings.get(recording.id).state == "here"
    assert len(held.requested_ranges) == 2


def platform_recording(app: App, lab: Lab, name: str) -> tuple[LabRecording, Recording]:
    """Of a call whose report came before the platform had made the recording."""
    sid, started = f"{name}-1", app.clock.now()
    row, _ = app.journal.ingest(make_call(source=name, sid=sid))
    platform = lab.platforms[name]
    call = LabHostedCall(sid, "", "+15550100", "+15550101", started, ended_at=started)
    platform.calls[sid] = call
    held = platform.recordings.add(sid, sid)
    return held, app.recordings.register(
        row.live.id, name, sid, None, "waiting", app.clock.now()
    )


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_platforms_recording_is_asked_for_fetched_and_erased_with_the_person(
    app: App, lab: Lab, name: str
) -> None:
    held, row = platform_recording(app, lab, name)
    held.cut_after_bytes = [20_000]
    with pytest.raises(CarrierUnreachable):
        desk(app, lab).download(row.id)
    desk(app, lab).download(row.id)
    found = app.recordings.get(row.id)
    assert found.state == "here"
    path = app.settings.home / str(found.path)
    assert path.read_bytes() == held.audio
    assert held.requested_ranges == ["", "bytes=20000-"]
    caller = app.store.get(found.call_id).live.caller
    assert app.eraser.erase(str(caller)).recordings == 1
    assert not path.exists()


def test_a_platform_that_has_no_recording_yet_is_asked_again(
    app: App, lab: Lab
) -> None:
    held, row = platform_recording(app, lab, "retell")
    lab.retell.recordings.by_sid.clear()
    with pytest.raises(RecordingNotYet, match="Retell has no address"):
        desk(app, lab).download(row.id)
    lab.retell.recordings.by_sid[held.sid] = held
    desk(app, lab).download(row.id)
    assert app.recordings.get(row.id).state == "here"


def test_a_signed_address_that_has_run_out_is_asked_for_anew(
    app: App, lab: Lab
) -> None:
    held, row = platform_recording(app, lab, "vapi")
    expired = lab.exchange.recordings.add("old", "old", life_s=0)
    expired.made_s -= 700
    account = f"{lab.address}/2010-04-01/Accounts/{ACCOUNT}"
    app.recordings.set_url(row.id, f"{account}/Recordings/old", app.clock.now())
    desk(app, lab).download(row.id)
    path = app.settings.home / str(app.recordings.get(row.id).path)
    assert path.read_bytes() == held.audio


def test_a_platforms_recording_elsewhere_is_refused_unless_its_host_is_allowed(
    app: App, lab: Lab
) -> None:
    _, row = platform_recording(app, lab, "vapi")
    app.recordings.set_url(row.id, "https://bucket.invalid/a.wav", app.clock.now())
    with pytest.raises(RecordingRefused, match="not Vapi's"):
        desk(app, lab).download(row.id)
    with pytest.raises(CarrierUnreachable, match="no such host"):
        desk(app, lab, hosts=[".invalid"]).download(row.id)


def test_what_failed_is_fetched_again_by_hand_and_what_is_absent_is_not(
    app: App, lab: Lab, call_id: str
) -> None:
    _, row = twilio_recording(app, lab, "RE11")
    store_recording_notice(
        app,
        "twilio",
        RecordingNotice("RE12:absent", (CALL,), RecordingState.ABSENT, "RE12"),
    )
    at = desk(app, lab, transcribe=True)
    at.give_up(row.id, "carrier.unreachable", "no answer")
    assert app.recordings.get(row.id).state == "failed"
    assert app.recordings.list_due() == []
    lab.audio.faults[:] = [500]
    again = {found.sid: found for found in fetch_again(at, call_id)}
    assert (again["RE11"].state, again["RE11"].transcript, again["RE12"].state) == (
        "here",
        "failed",
        "absent",
    )
    again = {found.sid: found for found in fetch_again(at, call_id)}
    assert (again["RE11"].transcript, again["RE11"].reason, again["RE12"].state) == (
        "here",
        "",
        "absent",
    )


async def test_a_transcript_lies_beside_with_segments_and_language(
    app: App, lab: Lab, call_id: str
) -> None:
    held, row = twilio_recording(app, lab, "RE9")
    at = desk(app, lab, transcribe=True)
    assert await asyncio.to_thread(at.download, row.id) is True
    lab.audio.faults[:] = [500, 0]
    for _ in range(2):
        with pytest.raises(TranscriberUnreachable):
            await asyncio.to_thread(at.transcribe, row.id)
    await asyncio.to_thread(at.transcribe, row.id)
    found = app.recordings.get(row.id)
    beside = json.loads(
        (app.settings.home / f"{found.path}.transcript.json").read_text()
    )
    assert (found.transcript, found.state) == ("here", "here")
    assert (beside["language"], beside["call"], beside["sha256"]) == (
        "english",
        call_id,
        found.sha256,
    )
    assert [segment["text"] for segment in beside["segments"]] == [
        "Hello, how can I help you?",
        "Please open a bug.",
    ]
    assert lab.audio.received[-1]["file"] == held.audio
    assert lab.audio.received[-1]["response_format"] == b"verbose_json"


def test_a_recording_in_which_nobody_speaks_has_no_words(
    app: App, lab: Lab, call_id: str
) -> None:
    held, row = twilio_recording(app, lab, "RE13")
    held.audio = make_wav(1.0, near=(), far=())
    at = desk(app, lab, transcribe=True)
    at.download(row.id)
    at.transcribe(row.id)
    beside = json.loads(
        (
            app.settings.home / f"{app.recordings.get(row.id).path}.transcript.json"
        ).read_text()
    )
    assert (beside["text"], beside["segments"]) == ("", [])


def test_a_transcript_that_cannot_be_had_leaves_the_recording_here(
    app: App, lab: Lab, call_id: str
) -> None:
    _, row = twilio_recording(app, lab, "RE10")
    at = desk(app, lab, transcribe=True)
    at.download(row.id)
    without_key = RecordingFetcher(
        at.settings.model_copy(update={"openai": OpenAISettings()}),
        app.recordings,
        app.clock,
    )
    with pytest.raises(RecordingError, match="OPENAI_API_KEY") as error:
        without_key.transcribe(row.id)
    without_key.give_up_transcript(row.id, str(error.value))
    found = app.recordings.get(row.id)
    assert (found.state, found.transcript) == ("here", "failed")
