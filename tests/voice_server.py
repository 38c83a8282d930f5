"""A server on a loopback port, an emulated engine behind it and an emulated Twilio before it:
for tests of streamed calls.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import FastAPI
from pydantic import SecretStr

from aftercall.app import App, build
from aftercall.clock import SystemClock
from aftercall.engine.voice import VoiceEvent, VoiceSession
from aftercall.lab import telnyx_rest
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.engine import EmulatedEngine, Script
from aftercall.lab.media import MediaPhone
from aftercall.lab.openai_realtime import EmulatedRealtime
from aftercall.lab.rest import REFUSALS
from aftercall.lab.telnyx import EmulatedTelnyx, TelnyxCall
from aftercall.lab.twilio import EmulatedTwilio, LabCall
from aftercall.model.calls import Call
from aftercall.phone.carrier_frames import TelnyxFrames
from aftercall.phone.telnyx import unpack_state
from aftercall.settings import Settings
from aftercall.settings.providers import (
    DeepgramSettings,
    OpenAISettings,
    TelnyxSettings,
    TwilioSettings,
)
from aftercall.settings.sections import (
    BridgeSettings,
    BriefingSettings,
    DatabaseSettings,
)
from aftercall.speech.kit import SpeechKit
from aftercall.web.server import make_server
from aftercall.web.uvicorn_server import make_uvicorn_server
from opened_apps import DISK_PATIENCE_S
from waiting import until

TOKEN = "twilio-token"
KEY = "engine-key"
ENGINES = ("deepgram", "openai")
SPEED = 10.0


def emulate(
    name: str, script: Script, **options: Any
) -> EmulatedDeepgram | EmulatedRealtime:
    return (
        EmulatedDeepgram(KEY, script, **options)
        if name == "deepgram"
        else EmulatedRealtime(KEY, script, **options)
    )


def voice_settings(
    home: Path,
    public_url: str,
    engine: EmulatedEngine,
    *,
    key: str = KEY,
    database_url: str = "",
    telnyx: TelnyxSettings | None = None,
    **bridge: float,
) -> Settings:
    is_deepgram = isinstance(engine, EmulatedDeepgram)
    return Settings(
        home=home,
        database=DatabaseSettings(url=database_url),
        telnyx=telnyx or TelnyxSettings(),
        public_url=public_url,
        engine="deepgram" if is_deepgram else "openai",
        twilio=TwilioSettings(auth_token=SecretStr(TOKEN)),
        deepgram=DeepgramSettings(
            api_key=SecretStr(key), url=f"ws://{engine.address}/v1/agent/converse"
        ),
        openai=OpenAISettings(
            api_key=SecretStr(key), base_url=f"http://{engine.address}/v1"
        ),
        bridge=BridgeSettings.model_validate({"drain_s": 0.2} | bridge),
        briefing=BriefingSettings(timeout_ms=2_000),
    )


@dataclass
class Stage:
    """Everything a streamed call passes through."""

    app: App
    address: str
    twilio: EmulatedTwilio
    engine: EmulatedEngine | None = None

    async def ring(self, caller: str = "+15550100") -> tuple[LabCall, MediaPhone]:
        call = await self.twilio.ring(
            f"{self.address}/twilio/voice",
            caller=caller,
            status_url=f"{self.address}/twilio/status",
        )
        assert call.phone is not None, call.fault
        return call, call.phone

    async def sealed(self) -> Call:
        """The newest call, once it is in the archive."""
        async with asyncio.timeout(20):
            while True:
                rows = self.app.store.list_page(limit=1)
                if rows and rows[0].archive_name is not None:
                    break
                await asyncio.sleep(0.02)
        call, _ = self.app.archive.read(rows[0].archive_name)
        return call


@asynccontextmanager
async def serving(
    home: Path, engine: EmulatedEngine, *, speed: float = SPEED, **options: Any
) -> AsyncIterator[Stage]:
    """A stage without the durable engine: what comes after a call is not these tests' matter."""
    async with (
        engine,
        staged(
            lambda address: build(
                voice_settings(home, address, engine, **options),
                SystemClock(),
                database_timeout_s=DISK_PATIENCE_S,
            ),
            speed,
        ) as stage,
    ):
        stage.engine = engine
        yield stage


@asynccontextmanager
async def serving_aloud(
    home: Path, organs: SpeechKit, *, speed: float = SPEED
) -> AsyncIterator[Stage]:
    """The receptionist on raw audio, with this ear and this mouth."""

    def make(address: str) -> App:
        twilio, bridge = (
            TwilioSettings(auth_token=SecretStr(TOKEN)),
            BridgeSettings(drain_s=0.2),
        )
        app = build(
            Settings(
                home=home,
                public_url=address,
                engine="receptionist",
                twilio=twilio,
                bridge=bridge,
            ),
            SystemClock(),
            database_timeout_s=DISK_PATIENCE_S,
        )
        return replace(app, speech_kit=organs)

    async with staged(make, speed) as stage:
        yield stage


@asynccontextmanager
async def staged(make: Callable[[str], App], speed: float) -> AsyncIterator[Stage]:
    door = socket.create_server(("127.0.0.1", 0))
    async with EmulatedTwilio(TOKEN, speed=speed) as twilio:
        app = make(address_of(door))
        try:
            async with listening(make_server(app), door) as address:
                yield Stage(app, address, twilio)
        finally:
            await app.journal.close()
            await app.phone.close()
            app.close()


def address_of(door: socket.socket) -> str:
    return f"http://127.0.0.1:{door.getsockname()[1]}"


@asynccontextmanager
async def listening(app: Any, door: socket.socket | None = None) -> AsyncIterator[str]:
    """An ASGI app on a loopback port, in this very event loop, served as `aftercall serve`
    does; its address.
    """
    door = door or socket.create_server(("127.0.0.1", 0))
    server = make_uvicorn_server(app)
    server.config.lifespan = "off"
    running = asyncio.create_task(server.serve(sockets=[door]))
    try:
        yield address_of(door)
    finally:
        server.should_exit = True
        await running
        door.close()


@asynccontextmanager
async def telnyx_network() -> AsyncIterator[tuple[EmulatedTelnyx, TelnyxSettings]]:
    """An emulated Telnyx with a REST address on loopback, and the settings of an agent that has
    a number there.
    """
    async with EmulatedTelnyx() as telnyx:
        carrier = FastAPI(exception_handlers=REFUSALS)
        carrier.include_router(telnyx_rest.make_router(telnyx))
        async with listening(carrier) as address:
            yield (
                telnyx,
                TelnyxSettings(
                    api_key=SecretStr(telnyx.api_key),
                    public_key=telnyx.public_key,
                    api_url=address,
                ),
            )


async def open_stream(call: TelnyxCall, speed: float = SPEED) -> MediaPhone:
    """What Telnyx does when it is told to stream: the socket, with the words that came with the
    answer.
    """
    await until(lambda: bool(call.streams))
    stream = call.streams[-1]
    side = TelnyxFrames(call.control_id, caller=call.caller)
    return await MediaPhone.dial(
        stream["stream_url"],
        side,
        parameters=unpack_state(stream["client_state"]),
        speed=speed,
    )


def told(call: Call) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in call.turns]


def noted(call: Call, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in call.events if event.kind == kind]


class SessionEvents:
    """Takes a session's events one at a time: the next one is handled only when it is asked for."""

    def __init__(self, session: VoiceSession) -> None:
        self._session = session
        self._events: asyncio.Queue[VoiceEvent] = asyncio.Queue()
        self._asked = asyncio.Semaphore(0)
        self._running: asyncio.Task[None] | None = None

    async def next(self) -> VoiceEvent:
        if self._running is None:
            self._running = asyncio.create_task(self._session.run(self._take))
        else:
            self._asked.release()
        getting = asyncio.create_task(self._events.get())
        await asyncio.wait(
            {getting, self._running}, return_when=asyncio.FIRST_COMPLETED
        )
        if not getting.done():
            getting.cancel()
            self._running.result()
        return await getting

    async def until(self, kind: type[VoiceEvent]) -> list[VoiceEvent]:
        events: list[VoiceEvent] = []
        async with asyncio.timeout(10):
            while not events or not isinstance(events[-1], kind):
                events.append(await self.next())
        return events

    async def _take(self, event: VoiceEvent) -> None:
        self._events.put_nowait(event)
        await self._asked.acquire()


_events_of: WeakKeyDictionary[VoiceSession, SessionEvents] = WeakKeyDictionary()


async def receive_until(
    session: VoiceSession, kind: type[VoiceEvent]
) -> list[VoiceEvent]:
    """A session's next events, up to the first of this kind."""
    events = _events_of.setdefault(session, SessionEvents(session))
    return await events.until(kind)
