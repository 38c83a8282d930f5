"""A phone number as a target, by Twilio: one call at a time, in real time, paid for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace

import httpx2
import uvicorn

from aftercall.carrier.control import TwilioRest
from aftercall.errors import ConfigError, LineFailed
from aftercall.phone.signature import TwilioSignature
from aftercall.settings import Settings
from aftercall.speech.sound import write_wav
from aftercall.tester.budget import SpendingLimit, check_allowed
from aftercall.tester.call_audio import Recognise
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.twilio_gather import GatherCalls
from aftercall.tester.drivers.twilio_media import MediaCalls, MediaConnection
from aftercall.tester.drivers.twilio_rest import TwilioDialer
from aftercall.tester.drivers.twilio_webhooks import DialerWebhooks
from aftercall.tester.openai_client import OPENAI_URL, transcribe
from aftercall.tester.record import CallLog, CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.target import CallSetup, ConnectionSession, TargetSession


@dataclass(frozen=True)
class PhoneTarget:
    """Names the number without its last digits."""

    number: str
    session: TargetSession
    is_live: bool = True
    keeps_time: bool = True

    @property
    def name(self) -> str:
        return f"phone {self.number[:-4]}…"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TargetSession]:
        yield self.session


@dataclass(frozen=True)
class MediaSession:
    """Sound both ways: the caller speaks with our voice, and can interrupt."""

    setup: CallSetup
    calls: MediaCalls
    spending_limit: SpendingLimit

    async def call(
        self,
        caller: Caller,
        scenario: Scenario,
        number: int,
        run: int,
        log: CallLog | None = None,
    ) -> CallRecord:
        limit_s = scenario.limits.max_duration_s
        line = ConnectionSession(
            self.setup, lambda pace: MediaConnection(self.calls, pace, limit_s)
        )
        reserved = self.spending_limit.reserve(limit_s)
        record = await line.call(caller, scenario, number, run, log)
        self.spending_limit.refund_unused(reserved, record.duration_s)
        return record


@dataclass(frozen=True)
class GatherSession:
    """The carrier speaks our text and reports the words it recognised."""

    settings: Settings
    http: httpx2.AsyncClient
    calls: GatherCalls

    async def call(
        self,
        caller: Caller,
        scenario: Scenario,
        number: int,
        run: int,
        log: CallLog | None = None,
    ) -> CallRecord:
        record = await self.calls.call(caller, scenario, number, run, log)
        openai = self.settings.openai
        if (
            not self.settings.tester.whisper
            or openai.api_key is None
            or not record.agent_sound
        ):
            return record
        wav, url = write_wav(record.agent_sound), openai.base_url or OPENAI_URL
        try:
            whisper = await transcribe(self.http, url, openai.api_key, wav)
        except LineFailed:
            return record
        return replace(record, whisper=whisper)


@asynccontextmanager
async def open_phone(
    settings: Settings, number: str, setup: CallSetup
) -> AsyncIterator[PhoneTarget]:
    """Checks the allow-list and the settings, and serves the webhooks that Twilio calls."""
    twilio, tester, url = settings.twilio, settings.tester, settings.public_url
    allowed = tester.allow_numbers.replace(" ", "").split(",")
    to = check_allowed(number, tuple(item for item in allowed if item))
    if not (twilio.account_sid and twilio.auth_token and twilio.phone_number and url):
        raise ConfigError(
            "a call by phone needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, TWILIO_PHONE_NUMBER "
            "and AFTERCALL_PUBLIC_URL"
        )
    path = settings.home / "tests" / "spent.json"
    limit = SpendingLimit(
        path, tester.spend_limit, tester.price_per_minute, setup.clock
    )
    signature = TwilioSignature(twilio.auth_token, url)
    rest = TwilioRest(twilio, setup.clock)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(rest.close)
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=30.0))
        dialer = TwilioDialer(http, rest, twilio)
        calls: MediaCalls | GatherCalls
        session: TargetSession
        if tester.phone_mode == "media":
            live = replace(
                setup, is_live=True, recognise=make_recogniser(settings, http)
            )
            calls = MediaCalls(dialer, url, to, setup.clock)
            session = MediaSession(live, calls, limit)
        else:
            calls = GatherCalls(dialer, url, to, limit, setup.clock)
            session = GatherSession(settings, http, calls)
        await stack.enter_async_context(
            _serve(DialerWebhooks(calls, signature), tester.port)
        )
        yield PhoneTarget(to, session)


def make_recogniser(settings: Settings, http: httpx2.AsyncClient) -> Recognise:
    url, key = settings.openai.base_url or OPENAI_URL, settings.openai.api_key
    if key is None:
        raise ConfigError(
            "tester.phone_mode: media needs OPENAI_API_KEY, to understand what the agent says"
        )

    async def recognise(sound: bytes) -> str:
        return (await transcribe(http, url, key, write_wav(sound))).text

    return recognise


@asynccontextmanager
async def _serve(webhooks: DialerWebhooks, port: int) -> AsyncIterator[None]:
    server = uvicorn.Server(
        uvicorn.Config(
            webhooks, host="127.0.0.1", port=port, log_level="warning", lifespan="off"
        )
    )
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            if task.done():
                raise ConfigError(
                    f"tester.port: {port} cannot be listened on; choose another"
                )
            await asyncio.sleep(0.02)
        yield
    finally:
        server.should_exit = True
        with suppress(SystemExit):
            await task
