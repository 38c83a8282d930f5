"""kill -9 while a recording is fetched: it is whole in the end, and there once."""

from pathlib import Path

from pydantic import SecretStr

from aftercall import faults
from aftercall.app import build
from aftercall.journal.recording_files import hash_file
from aftercall.settings import Settings
from aftercall.settings.providers import TwilioSettings, VapiSettings
from aftercall.settings.sections import RecordingsSettings
from command_process import spawner
from crash import recording_process
from fakes import make_call
from loopback_server import ACCOUNT, TOKEN, lab_box

POINTS = [point for point in faults.POINTS if point.startswith("recording")]


def work(settings: Settings, fault: str) -> int | None:
    process = spawner.Process(target=recording_process.run, args=(settings, fault))
    process.start()
    process.join()
    return process.exitcode


def test_a_report_that_comes_again_after_a_kill_brings_the_recording_once(
    tmp_path: Path,
) -> None:
    with lab_box() as lab:
        vapi = VapiSettings(api_key=SecretStr(lab.vapi.key), api_url=lab.address)
        settings = Settings(
            home=tmp_path / "home",
            vapi=vapi,
            recordings=RecordingsSettings(enabled=True),
        )
        call = make_call(source="vapi", sid="v1")
        held = lab.vapi.recordings.add("v1", "v1")
        url = lab.vapi.recordings.find_url("v1")
        ends = []
        for fault in ("hosted.after_report", "", ""):
            told = (settings, call, url, fault)
            process = spawner.Process(target=recording_process.report, args=told)
            process.start()
            process.join()
            ends.append(process.exitcode)
        assert ends == [-9, 0, 0]
        assert work(settings, "recording.after_part") == -9
        assert work(settings, "") == 0
    app = build(settings)
    (row,) = app.store.list_page(limit=5)
    (found,) = app.recordings.list_for_call(row.live.id)
    path = settings.home / str(found.path)
    app.close()
    assert found.state == "here"
    assert path.read_bytes() == held.audio
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_recording_is_whole_and_there_once_wherever_the_process_dies(
    tmp_path: Path,
) -> None:
    with lab_box() as lab:
        twilio = TwilioSettings(
            account_sid=ACCOUNT, auth_token=SecretStr(TOKEN), api_url=lab.address
        )
        settings = Settings(
            home=tmp_path / "home",
            twilio=twilio,
            recordings=RecordingsSettings(enabled=True),
        )
        app = build(settings)
        row, _ = app.journal.ingest(make_call(source="twilio"))
        for number, point in enumerate(POINTS):
            sid = f"RE{number}"
            lab.exchange.recordings.add(sid, row.live.sid)
            url = f"{lab.address}/2010-04-01/Accounts/{ACCOUNT}/Recordings/{sid}"
            app.recordings.register(
                row.live.id, "twilio", sid, url, "waiting", app.clock.now()
            )
            assert work(settings, point) == -9
        assert work(settings, "") == 0
        found = app.recordings.list_for_call(row.live.id)
        held = lab.exchange.recordings.by_sid
        files = {path.name for path in (settings.home / "recordings").iterdir()}
        app.close()
    assert [one.state for one in found] == ["here"] * len(POINTS)
    assert files == {Path(str(one.path)).name for one in found}
    assert all(hash_file(settings.home / str(one.path)) == one.sha256 for one in found)
    assert all(
        (settings.home / str(one.path)).read_bytes() == held[one.sid].audio
        for one in found
    )
