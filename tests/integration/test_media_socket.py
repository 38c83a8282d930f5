"""The media sockets at the door: who has no engine, no token or no patience gets no stream."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from starlette.websockets import WebSocketDisconnect

from aftercall.app import App, build
from aftercall.config import LoadedConfig
from aftercall.doctor import run_checks
from aftercall.errors import ConfigError
from aftercall.phone.carrier_frames import TelnyxFrames
from aftercall.phone.signature import TOKEN_LIFETIME_S
from aftercall.settings import Settings
from aftercall.settings.providers import DeepgramSettings
from aftercall.settings.sections import ReceptionistSettings
from aftercall.web.carrier import TELNYX_MEDIA, TWILIO_MEDIA, get_stream_url
from aftercall.web.server import make_server
from aftercall.web.sockets import MAX_FRAMES_BEFORE_START
from fakes import VirtualClock
from opened_apps import OpenApp


def test_where_the_receptionist_speaks_no_stream_is_taken(app: App) -> None:
    client = TestClient(make_server(app))
    telnyx = f"{TELNYX_MEDIA}/{app.phone.pending_calls.tokens.issue_address()}"
    for path in (TWILIO_MEDIA, telnyx):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(path):
            raise AssertionError("the socket was let in")


@pytest.fixture
def voiced(tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path,
        public_url="https://calls.example/base/",
        deepgram=DeepgramSettings(api_key=SecretStr("x")),
    )


@pytest.mark.parametrize(
    "frames",
    [
        ["nonsense"] * MAX_FRAMES_BEFORE_START,
        [TelnyxFrames("v3:a").start({"token": "made up"})],
        [TelnyxFrames("v3:a").stop()],
    ],
)
def test_who_brings_no_token_is_sent_away(
    voiced: Settings, frames: list[str], open_app: OpenApp
) -> None:
    app = open_app(voiced)
    path = f"{TELNYX_MEDIA}/{app.phone.pending_calls.tokens.issue_address()}"
    with TestClient(make_server(app)).websocket_connect(path) as socket:
        for frame in frames:
            socket.send_text(frame)
        with pytest.raises(WebSocketDisconnect) as gone:
            socket.receive_text()
        assert gone.value.code == 1008


@pytest.mark.parametrize("made_up", ["x", "9999999999.x.y", "", "9999999999.a.b/c"])
def test_a_socket_at_an_address_that_was_not_given_out_is_not_opened(
    voiced: Settings, made_up: str, open_app: OpenApp
) -> None:
    client = TestClient(make_server(open_app(voiced)))
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(f"{TELNYX_MEDIA}/{made_up}"),
    ):
        raise AssertionError("the socket was let in")


def test_the_address_of_a_socket_expires(
    voiced: Settings, open_app: OpenApp, clock: VirtualClock
) -> None:
    app = open_app(voiced, clock)
    given = app.phone.pending_calls.tokens.issue_address()
    assert app.phone.pending_calls.tokens.is_address(given)
    clock.move(TOKEN_LIFETIME_S + 1)
    assert not app.phone.pending_calls.tokens.is_address(given)


def test_a_stream_comes_to_the_public_address_as_a_socket(
    voiced: Settings, open_app: OpenApp
) -> None:
    app = open_app(voiced)
    assert get_stream_url(app, TELNYX_MEDIA) == "wss://calls.example/base/telnyx/media"


def test_an_engine_without_its_key_is_said_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        build(Settings(home=tmp_path, engine="openai"))


@pytest.mark.parametrize(
    "missing", ["moonshine-voice not installed; install aftercall[speech]", None]
)
def test_without_the_extra_the_carrier_speaks_and_the_doctor_says_so(
    tmp_path: Path, missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("aftercall.compose", "aftercall.doctor"):
        monkeypatch.setattr(f"{module}.find_missing", lambda: missing)
    settings = Settings(home=tmp_path, receptionist=ReceptionistSettings(speech=True))
    app = build(settings)
    assert (app.phone.voice_parts is None) is (missing is not None)
    app.close()
    check = next(
        check
        for check in run_checks(LoadedConfig(settings, (), ()))
        if check.name == "speech"
    )
    assert (check.state, "install aftercall[speech]" in check.detail) == (
        ("warn", True) if missing else ("ok", False)
    )


def test_own_speech_is_nobodys_where_another_engine_speaks(
    tmp_path: Path, open_app: OpenApp
) -> None:
    app = open_app(
        Settings(
            home=tmp_path,
            deepgram=DeepgramSettings(api_key=SecretStr("x")),
            receptionist=ReceptionistSettings(speech=True),
        )
    )
    assert app.speech_kit is None
