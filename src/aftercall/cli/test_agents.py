"""Which agent `aftercall test` calls: the words of `--agent`, and what stands behind each of
them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx2

from aftercall.carrier.control import TwilioRest
from aftercall.cli.receptionist_line import open_receptionist
from aftercall.errors import ConfigError, NotFound
from aftercall.phone.signature import TwilioSignature
from aftercall.settings import Settings
from aftercall.tester.budget import SpendingLimit, check_allowed
from aftercall.tester.drivers.http import HttpAgent
from aftercall.tester.drivers.phone_target import MediaTarget, PhoneTarget
from aftercall.tester.drivers.python import AudioAgentConnection, CallableAgent, load_function
from aftercall.tester.drivers.recogniser import OpenAIRecogniser, RecognisingConnection
from aftercall.tester.drivers.twilio_gather import GatherCalls
from aftercall.tester.drivers.twilio_media import MediaCalls
from aftercall.tester.drivers.twilio_rest import TesterTwilio
from aftercall.tester.drivers.twilio_webhooks import TesterWebhooks
from aftercall.tester.faulty_agent import BY_NAME
from aftercall.tester.line import AgentConnection, TickPace
from aftercall.tester.target import AgentTarget, CallSetup, ConnectionTarget, PracticeTarget

AGENTS = (
    "receptionist, practice[:fault,…], http://…, ws://…, python:module:function, "
    "python-audio:module:function, or a phone number"
)


@asynccontextmanager
async def open_target(
    settings: Settings, agent: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    kind, _, rest = agent.partition(":")
    if agent == "receptionist":
        with open_receptionist(setup, settings) as target:
            yield target
    elif kind == "practice":
        yield PracticeTarget(setup, _faults(rest))
    elif kind in ("ws", "wss"):
        from aftercall.tester.drivers.websocket import WebSocketAgent

        yield ConnectionTarget.of_agent(agent, setup, lambda: WebSocketAgent(agent))
    elif kind in ("http", "https"):
        async with httpx2.AsyncClient(timeout=30.0, trust_env=False) as http:
            yield ConnectionTarget.of_agent(agent, setup, lambda: HttpAgent(agent, http))
    elif kind == "python":
        function = load_function(rest)
        yield ConnectionTarget.of_agent(agent, setup, lambda: CallableAgent(function))
    elif kind == "python-audio":
        function = load_function(rest)
        rate, channels = int(getattr(function, "rate", 0)), int(getattr(function, "channels", 1))
        async with httpx2.AsyncClient(timeout=60.0) as http:
            yield ConnectionTarget(
                agent,
                setup,
                lambda pace: _listening(
                    settings,
                    http,
                    AudioAgentConnection(function, rate=rate, channels=channels),
                    pace,
                ),
            )
    elif agent.startswith("+"):
        async with _phone(settings, agent, setup) as phone:
            yield phone
    else:
        raise NotFound(f"there is no agent {agent!r}; give {AGENTS}")


def _listening(
    settings: Settings, http: httpx2.AsyncClient, end: AgentConnection, pace: TickPace
) -> AgentConnection:
    """With a key, what the agent says is understood; without one its timing alone is measured."""
    return (
        RecognisingConnection(end, _recogniser(settings, http), pace)
        if settings.openai.api_key
        else end
    )


def _faults(words: str) -> tuple[str, ...]:
    faults = tuple(word for word in words.split(",") if word)
    unknown = [word for word in faults if word not in BY_NAME]
    if unknown:
        raise NotFound(
            f"the practice agent has no fault {unknown[0]!r}; there are {', '.join(BY_NAME)}"
        )
    return faults


@asynccontextmanager
async def _phone(settings: Settings, number: str, setup: CallSetup) -> AsyncIterator[AgentTarget]:
    """A number, by Twilio: allowed, paid for, and with webhooks that Twilio can reach."""
    twilio, tester = settings.twilio, settings.tester
    to = check_allowed(
        number, tuple(item for item in tester.allow_numbers.replace(" ", "").split(",") if item)
    )
    if not (
        twilio.account_sid and twilio.auth_token and twilio.phone_number and settings.public_url
    ):
        raise ConfigError(
            "a call by phone needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, TWILIO_PHONE_NUMBER "
            "and AFTERCALL_PUBLIC_URL"
        )
    purse = SpendingLimit(
        settings.home / "tests" / "spent.json",
        tester.spend_limit,
        tester.price_per_minute,
        setup.clock,
    )
    twilio_rest = TwilioRest(twilio, setup.clock)
    try:
        async with httpx2.AsyncClient(timeout=30.0) as http:
            rest = TesterTwilio(http, twilio_rest, twilio)
            signature = TwilioSignature(twilio.auth_token, settings.public_url)
            if tester.phone_mode == "media":
                media = MediaCalls(rest, settings.public_url, to, setup.clock)
                async with _serve(TesterWebhooks(media, signature), tester.port):
                    yield MediaTarget(to, setup, media, purse, _recogniser(settings, http))
                return
            target = PhoneTarget(to, settings, http)
            target.calls = GatherCalls(rest, settings.public_url, to, purse, setup.clock)
            async with _serve(TesterWebhooks(target.calls, signature), tester.port):
                yield target
    finally:
        await twilio_rest.close()


def _recogniser(settings: Settings, http: httpx2.AsyncClient) -> OpenAIRecogniser:
    if settings.openai.api_key is None:
        raise ConfigError(
            "tester.phone_mode: media needs OPENAI_API_KEY, to understand what the agent says"
        )
    return OpenAIRecogniser(
        http, settings.openai.base_url or "https://api.openai.com/v1", settings.openai.api_key
    )


@asynccontextmanager
async def _serve(webhooks: TesterWebhooks, port: int) -> AsyncIterator[None]:
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(webhooks, host="127.0.0.1", port=port, log_level="warning", lifespan="off")
    )
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            if task.done():
                raise ConfigError(f"tester.port: {port} cannot be listened on; choose another")
            await asyncio.sleep(0.02)
        yield
    finally:
        server.should_exit = True
        with suppress(SystemExit):
            await task
