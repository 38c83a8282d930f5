"""The media sockets at the door: who has no engine, no pass or no patience gets no stream."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from starlette.websockets import WebSocketDisconnect

from aftercall.app import App, build
from aftercall.errors import ConfigError
from aftercall.lab.carriers import TelnyxSide
from aftercall.settings import DeepgramSettings, Settings
from aftercall.web.media import MOST_FRAMES_BEFORE, TELNYX_MEDIA, TWILIO_MEDIA, stream_url
from aftercall.web.server import make_server


def test_where_the_receptionist_speaks_no_stream_is_taken(app: App) -> None:
    client = TestClient(make_server(app))
    for path in (TWILIO_MEDIA, TELNYX_MEDIA):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(path):
            raise AssertionError("the socket was let in")


@pytest.fixture
def voiced(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, public_url="https://calls.example/base/", deepgram=DeepgramSettings(api_key=SecretStr("x")))


@pytest.mark.parametrize(
    "frames", [["nonsense"] * MOST_FRAMES_BEFORE, [TelnyxSide("v3:a").start({"pass": "made up"})], [TelnyxSide("v3:a").stop()]]
)
def test_who_brings_no_pass_is_sent_away(voiced: Settings, frames: list[str]) -> None:
    app = build(voiced)
    with TestClient(make_server(app)).websocket_connect(TELNYX_MEDIA) as socket:
        for frame in frames:
            socket.send_text(frame)
        with pytest.raises(WebSocketDisconnect) as gone:
            socket.receive_text()
        assert gone.value.code == 1008
    app.close()


def test_a_stream_comes_to_the_public_address_as_a_socket(voiced: Settings) -> None:
    app = build(voiced)
    assert stream_url(app, TELNYX_MEDIA) == "wss://calls.example/base/telnyx/media"
    app.close()


def test_an_engine_without_its_key_is_said_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        build(Settings(home=tmp_path, engine="openai"))
