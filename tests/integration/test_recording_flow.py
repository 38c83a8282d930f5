"""A recorded Twilio call from the first answer to the file in the home, through the lab and the
durable engine.
"""

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr
from twilio.twiml.voice_response import Start, VoiceResponse

from aftercall.app import App
from aftercall.lab.exchange import LabNumber
from aftercall.lab.server import Lab
from aftercall.phone import twilio
from aftercall.settings import Settings
from aftercall.settings.providers import OpenAISettings, TwilioSettings
from aftercall.settings.sections import RecordingsSettings
from aftercall.web.server import make_server
from api_client import bearer
from loopback_server import ACCOUNT, TOKEN, lab_box, listening, serve
from opened_apps import OpenApp

AGENT_NUMBER = "+15550101"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with lab_box() as lab:
        yield lab


def settings_for(home: Path, lab: Lab, address: str) -> Settings:
    return Settings(
        home=home,
        public_url=address,
        engine="receptionist",  # the key below is for the transcript only
        model="rules",
        twilio=TwilioSettings(
            account_sid=ACCOUNT, auth_token=SecretStr(TOKEN), api_url=lab.address
        ),
        openai=OpenAISettings(
            api_key=SecretStr(lab.audio.api_key), base_url=f"{lab.address}/v1"
        ),
        recordings=RecordingsSettings(enabled=True, transcribe=True),
    )


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(3000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


def test_the_first_answer_asks_for_a_recording_as_twilios_library_would() -> None:
    start = Start()
    start.recording(
        recording_status_callback="https://x.example/twilio/recording",
        recording_status_callback_event="completed absent",
        channels="dual",
        track="both",
        trim="do-not-trim",
    )
    response = VoiceResponse()
    response.append(start)
    ours = twilio.gather_speech(
        "Hello",
        "https://x.example/voice",
        recording_callback="https://x.example/twilio/recording",
    )
    (theirs, written) = (
        ElementTree.fromstring(text).find("Start/Recording")
        for text in (str(response), ours)
    )
    assert theirs is not None
    assert written is not None
    assert theirs.attrib == written.attrib


def ring(lab: Lab, address: str) -> None:
    """One agent calls the other: the tester's leg says goodbye as soon as it is greeted."""
    lab.exchange.numbers[AGENT_NUMBER] = LabNumber(
        f"{address}/twilio/voice", f"{address}/twilio/status"
    )
    words = (
        "<Response><Pause length='8'/><Say>That's all, thanks, bye!</Say><Pause "
        "length='5'/></Response>"
    )
    form = {"To": AGENT_NUMBER, "From": "+15550100", "Twiml": words}
    made = httpx2.post(
        f"{lab.address}/2010-04-01/Accounts/{ACCOUNT}/Calls.json",
        data=form,
        auth=(ACCOUNT, TOKEN),
    )
    assert made.status_code == 201


@pytest.fixture
def recorded(tmp_path: Path, lab: Lab, open_app: OpenApp) -> Iterator[tuple[App, str]]:
    with listening() as (listener, address):
        app = open_app(settings_for(tmp_path / "home", lab, address))
        for _ in serve(make_server(app), listener, address):
            yield app, address


def test_a_recorded_call_ends_with_its_audio_and_its_transcript_in_the_home(
    recorded: tuple[App, str], lab: Lab
) -> None:
    app, address = recorded
    home = app.settings.home
    lab.audio.faults[:] = [429]
    ring(lab, address)
    until(lambda: [row.state for row in app.store.list_page(limit=5)] == ["sealed"])
    (row,) = app.store.list_page(limit=5)
    until(
        lambda: (
            [found.transcript for found in app.recordings.list_for_call(row.live.id)]
            == ["here"]
        )
    )
    told = httpx2.get(
        f"{address}/api/calls/{row.live.id}", headers=bearer(app.settings)
    ).json()
    (found,) = app.recordings.list_for_call(row.live.id)
    assert [turn["text"] for turn in told["turns"] if turn["speaker"] == "caller"] == [
        "That's all, thanks, bye!"
    ]
    assert (told["recordings"][0]["state"], told["recordings"][0]["bytes"]) == (
        "here",
        found.bytes,
    )
    assert (home / str(found.path)).read_bytes().startswith(b"RIFF")
    show = [
        str(Path(sys.executable).with_name("aftercall")),
        "calls",
        "show",
        row.live.id,
    ]
    shown = subprocess.run(
        show,
        env=os.environ | {"AFTERCALL_HOME": str(home)},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert (
        f"recording: here {found.path} ({found.bytes:,} bytes), transcript here"
        in shown
    )
