"""Which agent `--agent` names, and how the tester reaches it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import httpx2

from aftercall.encryption import find_api_token
from aftercall.errors import UnknownTestName
from aftercall.settings import Settings
from aftercall.tester.drivers.hosted_chat import CHATS, open_chat
from aftercall.tester.drivers.phone import INBOUND, make_recogniser, open_phone
from aftercall.tester.drivers.remote import (
    HttpAgent,
    SocketThreadAgent,
    WebSocketAgent,
    open_socket_thread,
    run_in_loop,
)
from aftercall.tester.drivers.text_agent import (
    AudioAgentConnection,
    CallableAgent,
    LiveKitAgent,
    load_function,
)
from aftercall.tester.drivers.twilio_media import SCHEME as STREAM_SCHEME
from aftercall.tester.drivers.twilio_media import StreamConnection
from aftercall.tester.line import TextAgent
from aftercall.tester.practice_agent import BY_NAME, practice_target
from aftercall.tester.target import AgentTarget, CallSetup

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
AGENTS = (
    "receptionist, practice[:fault,…], http://…, ws://…, twilio:wss://…, "
    "python:module:function, python-audio:module:function, livekit:module:function, "
    "pipecat:module:function, vapi:assistant, retell:agent, elevenlabs:agent, "
    "a phone number, or "
    "inbound:number or inbound:https://… for an agent that calls"
)


@asynccontextmanager
async def open_target(
    settings: Settings, agent: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    """Every agent but the receptionist, which is opened by the command line."""
    kind, _, rest = agent.partition(":")
    if agent.startswith("+") or kind == INBOUND:
        async with open_phone(settings, agent, setup) as phone:
            yield phone
    elif kind in _OPENERS:
        async with _OPENERS[kind](settings, agent, rest, setup) as target:
            yield target
    else:
        raise UnknownTestName(f"there is no agent {agent!r}; give {AGENTS}")


@asynccontextmanager
async def _open_practice(
    settings: Settings, name: str, faults: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    yield practice_target(setup, _read_faults(faults))


@asynccontextmanager
async def _open_socket(
    settings: Settings, url: str, rest: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    token = _find_own_token(settings, url)
    async with open_socket_thread() as loop:
        yield AgentTarget.of_agent(
            url,
            setup,
            lambda: SocketThreadAgent(WebSocketAgent(url, token=token), loop),
        )


@asynccontextmanager
async def _open_http(
    settings: Settings, name: str, rest: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    """An agent at an address of its own, or at a platform."""
    is_chat = name.partition(":")[0] in CHATS
    async with open_socket_thread() as loop:
        http = httpx2.AsyncClient(timeout=60.0 if is_chat else 30.0, trust_env=False)
        chat = open_chat(settings, name, rest, http) if is_chat else None
        try:
            yield AgentTarget.of_agent(
                name,
                setup,
                lambda: SocketThreadAgent(
                    chat() if chat else HttpAgent(name, http), loop
                ),
            )
        finally:
            await run_in_loop(loop, http.aclose())


@asynccontextmanager
async def _open_function(
    settings: Settings, name: str, address: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    """A function, or what makes the agent of a framework, in this process."""
    agent_class = _find_agent_class(name)
    function = load_function(address)
    yield AgentTarget.of_agent(name, setup, lambda: agent_class(function))


def _find_agent_class(name: str) -> Callable[[Callable[..., Any]], TextAgent]:
    kind = name.partition(":")[0]
    if kind != "pipecat":
        return LiveKitAgent if kind == "livekit" else CallableAgent
    try:
        driver = import_module("aftercall.tester.drivers.pipecat")
    except ImportError as error:
        raise UnknownTestName(f"{name}: {error}") from None
    return driver.PipecatAgent  # type: ignore[no-any-return]


@asynccontextmanager
async def _open_audio_function(
    settings: Settings, name: str, address: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    function = load_function(address)
    rate, channels = (
        int(getattr(function, "rate", 0)),
        int(getattr(function, "channels", 1)),
    )
    async with _open_recogniser(settings, setup) as hearing:
        yield AgentTarget.of_connection(
            name,
            hearing,
            lambda _: AudioAgentConnection(function, rate=rate, channels=channels),
        )


@asynccontextmanager
async def _open_stream(
    settings: Settings, name: str, url: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    """A socket that expects Twilio; with its token the tester signs as Twilio does."""
    if urlsplit(url).scheme not in ("ws", "wss"):
        raise UnknownTestName(f"{name}: write twilio:wss://host/path")
    token = settings.twilio.auth_token
    async with (
        _open_recogniser(settings, replace(setup, is_live=True)) as hearing,
        open_socket_thread() as loop,
    ):
        yield AgentTarget.of_connection(
            name, hearing, lambda pace: StreamConnection(url, pace, loop, token)
        )


@asynccontextmanager
async def _open_recogniser(
    settings: Settings, setup: CallSetup
) -> AsyncIterator[CallSetup]:
    """With an OpenAI key the agent's words are recognised; without one only timing is measured."""
    if not settings.openai.api_key:
        yield setup
        return
    async with httpx2.AsyncClient(timeout=60.0) as http:
        yield replace(setup, recognise=make_recogniser(settings, http))


_OPENERS = {
    "practice": _open_practice,
    "ws": _open_socket,
    "wss": _open_socket,
    "http": _open_http,
    "https": _open_http,
    STREAM_SCHEME: _open_stream,
    "python": _open_function,
    "python-audio": _open_audio_function,
    "livekit": _open_function,
    "pipecat": _open_function,
    **dict.fromkeys(CHATS, _open_http),
}


def _find_own_token(settings: Settings, agent: str) -> str | None:
    """The API token, if the agent is the server on this machine. No other address gets it."""
    parts = urlsplit(agent)
    if parts.hostname not in LOOPBACK_NAMES or parts.path != "/browser/call":
        return None
    token = find_api_token(settings)
    return token.get_secret_value() if token else None


def _read_faults(words: str) -> tuple[str, ...]:
    faults = tuple(word for word in words.split(",") if word)
    unknown = [word for word in faults if word not in BY_NAME]
    if unknown:
        known = ", ".join(BY_NAME)
        raise UnknownTestName(
            f"the practice agent has no fault {unknown[0]!r}; there are {known}"
        )
    return faults
