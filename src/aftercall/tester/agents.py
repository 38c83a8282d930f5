"""Which agent `--agent` names, and how the tester reaches it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import httpx2

from aftercall.errors import UnknownTestName
from aftercall.keys import find_api_token
from aftercall.settings import Settings
from aftercall.tester.drivers.phone import make_recogniser, open_phone
from aftercall.tester.drivers.python import (
    AudioAgentConnection,
    CallableAgent,
    load_function,
)
from aftercall.tester.drivers.remote import HttpAgent, WebSocketAgent
from aftercall.tester.practice_agent import BY_NAME
from aftercall.tester.target import (
    AgentTarget,
    CallSetup,
    ConnectionTarget,
    PracticeTarget,
)

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
AGENTS = (
    "receptionist, practice[:fault,…], http://…, ws://…, python:module:function, "
    "python-audio:module:function, or a phone number"
)


@asynccontextmanager
async def open_target(
    settings: Settings, agent: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    """Every agent but the receptionist, which is opened by the command line."""
    kind, _, rest = agent.partition(":")
    if kind == "practice":
        yield PracticeTarget(setup, _read_faults(rest))
    elif kind in ("ws", "wss"):
        token = _find_own_token(settings, agent)
        yield ConnectionTarget.of_agent(
            agent, setup, lambda: WebSocketAgent(agent, token=token)
        )
    elif kind in ("http", "https"):
        async with httpx2.AsyncClient(timeout=30.0, trust_env=False) as http:
            yield ConnectionTarget.of_agent(
                agent, setup, lambda: HttpAgent(agent, http)
            )
    elif kind == "python":
        function = load_function(rest)
        yield ConnectionTarget.of_agent(agent, setup, lambda: CallableAgent(function))
    elif kind == "python-audio":
        async with _open_audio_function(settings, agent, rest, setup) as target:
            yield target
    elif agent.startswith("+"):
        async with open_phone(settings, agent, setup) as phone:
            yield phone
    else:
        raise UnknownTestName(f"there is no agent {agent!r}; give {AGENTS}")


@asynccontextmanager
async def _open_audio_function(
    settings: Settings, name: str, address: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    """With an OpenAI key the agent's words are recognised; without one only timing is measured."""
    function = load_function(address)
    rate, channels = (
        int(getattr(function, "rate", 0)),
        int(getattr(function, "channels", 1)),
    )
    async with httpx2.AsyncClient(timeout=60.0) as http:
        if settings.openai.api_key:
            setup = replace(setup, recognise=make_recogniser(settings, http))
        yield ConnectionTarget(
            name,
            setup,
            lambda _: AudioAgentConnection(function, rate=rate, channels=channels),
        )


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
