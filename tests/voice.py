"""A server on a loopback port, an emulated engine behind it and an emulated Twilio before it: for tests of streamed calls."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import SecretStr

from aftercall.app import App, build
from aftercall.clock import SystemClock
from aftercall.model.calls import Call
from aftercall.settings import BridgeSettings, DeepgramSettings, OpenAISettings, Settings, TwilioSettings
from aftercall.web.server import make_server

TOKEN = "twilio-token"
KEY = "engine-key"


def voice_settings(home: Path, public_url: str, *, deepgram: str = "", openai: str = "", key: str = KEY, **bridge: float) -> Settings:
    return Settings(
        home=home,
        public_url=public_url,
        engine="deepgram" if deepgram else "openai",
        twilio=TwilioSettings(auth_token=SecretStr(TOKEN)),
        deepgram=DeepgramSettings(api_key=SecretStr(key), url=deepgram or "ws://127.0.0.1:9"),
        openai=OpenAISettings(api_key=SecretStr(key), base_url=openai or "http://127.0.0.1:9"),
        bridge=BridgeSettings(**({"drain_s": 0.2} | bridge)),
    )


@asynccontextmanager
async def serving(home: Path, **options: Any) -> AsyncIterator[tuple[App, str]]:
    """The app and its address. Without the durable engine: what comes after a call is not these tests' matter."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    app = build(voice_settings(home, address, **options), SystemClock())
    config = uvicorn.Config(make_server(app), lifespan="off", ws="websockets-sansio", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield app, address
    finally:
        server.should_exit = True
        await running
        listening.close()
        await app.journal.close()
        app.close()


async def sealed_call(app: App) -> Call:
    """The one call there is, once it is in the archive."""
    async with asyncio.timeout(15):
        while not (rows := app.store.page(limit=5)) or rows[0].archive_name is None:
            await asyncio.sleep(0.02)
    call, _ = app.archive.read(str(rows[0].archive_name))
    return call


def told(call: Call) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in call.turns]
