"""The tester's own error on the line of a run: it calls an agent whose delays are known.

The known agent is reached as the agent under test is, and as many calls are held at a time. What
it says of itself is the truth: when it had the caller's words, and when it sent the answer.
"""

import asyncio
import json
import random
import time
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import replace
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import uvicorn

from aftercall.errors import TesterError
from aftercall.settings import Settings
from aftercall.speech.sound import FRAME_BYTES, FRAME_S, SAMPLE_RATE_HZ, LoudnessMeter
from aftercall.tester.agents import open_target
from aftercall.tester.calibrate import Calibration
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.python import AudioAgentConnection, CallableAgent
from aftercall.tester.finding import CallView
from aftercall.tester.findings.timing import latencies, percentile
from aftercall.tester.scenario import (
    CallerContext,
    PlannedCall,
    Scenario,
    ScriptedTurn,
)
from aftercall.tester.target import AgentTarget, CallSetup, ConnectionTarget
from aftercall.tester.voice import ToneVoice

HELLO, ANSWER = "Hello.", "Certainly."
MIN_DELAY_S, MAX_DELAY_S = 0.1, 0.4
STREAM_PAUSE_S = 0.3  # so long a quiet ends the caller's turn on a stream of sound
START_TIMEOUT_S = 10.0
MAX_STREAM_TURNS = 3  # a stream takes real time
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class KnownDelays:
    """Draws delays, and keeps by caller how long each answer really took."""

    def __init__(self, seed: int = 1) -> None:
        self._draw = random.Random(seed)
        self.taken_s: dict[str, list[float]] = defaultdict(list)

    async def wait(self, caller: str, since_s: float) -> None:
        """Returns when the answer is due; the truth is when that was."""
        due_s = since_s + self._draw.uniform(MIN_DELAY_S, MAX_DELAY_S)
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        self.taken_s[caller].append(time.perf_counter() - since_s)


class KnownServer:
    """The known agent as an ASGI app: one POST a turn, a socket of text, a Twilio stream."""

    def __init__(self, delays: KnownDelays) -> None:
        self._delays = delays

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer_post(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            if scope["path"] == "/stream":
                await self._talk(receive, send)
            else:
                query = parse_qs(scope["query_string"].decode("ascii"))
                await self._chat(query["caller"][0], receive, send)

    async def _answer_post(self, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        got_s, asked = time.perf_counter(), json.loads(body)
        text = {"start": HELLO, "say": ANSWER}.get(asked["event"], "")
        if asked["event"] == "say":
            await self._delays.wait(asked["caller"], got_s)
        reply = json.dumps({"text": text}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": reply})

    async def _chat(self, caller: str, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.send", "text": json.dumps({"text": HELLO})})
        while (message := await receive())["type"] == "websocket.receive":
            if json.loads(message["text"])["type"] != "say":
                return
            await self._delays.wait(caller, time.perf_counter())
            await send({"type": "websocket.send", "text": json.dumps({"text": ANSWER})})

    async def _talk(self, receive: Receive, send: Send) -> None:
        """Answers a while after the last loud frame, with sound that is loud at once."""
        meter, caller, last_s = LoudnessMeter(), "", None
        sound = b64encode(ToneVoice(350).speak(ANSWER).sound).decode("ascii")
        while (message := await receive())["type"] == "websocket.receive":
            data, now_s = json.loads(message["text"]), time.perf_counter()
            if data["event"] == "start":
                caller = data["start"]["customParameters"]["from"]
            elif data["event"] == "media":
                if meter.is_loud(b64decode(data["media"]["payload"])):
                    last_s = now_s
                elif last_s is not None and now_s - last_s > STREAM_PAUSE_S:
                    await self._delays.wait(caller, last_s)
                    reply = {"event": "media", "media": {"payload": sound}}
                    await send({"type": "websocket.send", "text": json.dumps(reply)})
                    last_s = None


@asynccontextmanager
async def serve_known_agent(delays: KnownDelays) -> AsyncIterator[str]:
    """On this machine, in a thread of its own; yields host and port."""
    config = uvicorn.Config(
        KnownServer(delays), port=0, log_level="warning", lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, name="known agent", daemon=True)
    thread.start()
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while not server.started:
                if not thread.is_alive():
                    raise TesterError("the known agent could not be started")
                await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await asyncio.to_thread(thread.join)


async def measure_line(
    settings: Settings, agent: str, setup: CallSetup, *, parallel: int, turns: int
) -> Calibration | None:
    """None for a line that has no known agent, such as a phone's."""
    kind, delays = agent.partition(":")[0], KnownDelays()
    target: AgentTarget
    if kind == "python":
        return await _measure(_function(delays, setup), delays, kind, parallel, turns)
    if kind == "python-audio":
        target = ConnectionTarget(kind, setup, lambda _: _sound_function(delays))
        return await _measure(target, delays, kind, parallel, turns)
    if kind == "twilio":
        setup = replace(setup, is_live=True, voice=ToneVoice())
        turns = min(turns, MAX_STREAM_TURNS)
    paths = {"http": "http://{}/", "ws": "ws://{}/", "twilio": "twilio:ws://{}/stream"}
    address = paths.get({"https": "http", "wss": "ws"}.get(kind, kind))
    if address is None:
        return None
    async with (
        serve_known_agent(delays) as place,
        open_target(settings, address.format(place), setup) as target,
    ):
        return await _measure(target, delays, kind, parallel, turns)


def _function(delays: KnownDelays, setup: CallSetup) -> AgentTarget:
    callers = iter(range(1, 10_000))

    def make() -> CallableAgent:
        caller = _number(next(callers))

        async def answer(text: str) -> str:
            if not text:
                return HELLO
            await delays.wait(caller, time.perf_counter())
            return ANSWER

        return CallableAgent(answer)

    return ConnectionTarget.of_agent("python", setup, make)


def _sound_function(delays: KnownDelays) -> AudioAgentConnection:
    """Counts frames instead of seconds: the truth is the same at any pace."""
    meter, caller = LoudnessMeter(), _number(len(delays.taken_s) + 1)
    delays.taken_s[caller] = []
    quiet, is_due = 0, False
    pause = round(STREAM_PAUSE_S / FRAME_S)
    sound = ToneVoice(350).speak(ANSWER).sound

    def answer(frame: bytes) -> bytes:
        nonlocal quiet, is_due
        is_loud = meter.is_loud(frame)
        is_due, quiet = is_due or is_loud, 0 if is_loud else quiet + 1
        if not is_due or quiet < pause:
            return b""
        is_due = False
        delays.taken_s[caller].append((quiet - 1) * FRAME_BYTES / SAMPLE_RATE_HZ)
        return sound

    return AudioAgentConnection(answer)


def _number(call: int) -> str:
    return f"+1555{call:07}"


async def _measure(
    target: AgentTarget, delays: KnownDelays, kind: str, parallel: int, turns: int
) -> Calibration:
    async def hold(number: int) -> list[float]:
        scenario = _make_scenario(_number(number), turns)
        async with target.open() as session:
            caller = Caller(scenario, scenario.calls[0], 1)
            record = await session.call(caller, scenario, 1, 1)
        measured = latencies(CallView(record, scenario))
        truth = delays.taken_s[_number(number)]
        pairs = zip(measured, truth, strict=False)
        return [1000 * abs(one - other) for one, other in pairs]

    calls = await asyncio.gather(*(hold(call) for call in range(1, parallel + 1)))
    errors = [error for call in calls for error in call]
    return Calibration(
        line=f"{kind}, {parallel} at a time",
        turns=len(errors),
        latency_p50_ms=round(percentile(errors, 0.5) or 0.0, 2),
        latency_p95_ms=round(percentile(errors, 0.95) or 0.0, 2),
        latency_max_ms=round(max(errors, default=0.0), 2),
        is_of_run=True,
    )


def _make_scenario(number: str, turns: int) -> Scenario:
    steps = [ScriptedTurn(say="Go on, please.") for _ in range(turns)]
    plan = PlannedCall(
        caller_context=CallerContext(number=number),
        turns=(*steps, ScriptedTurn(hang_up=True)),
    )
    return Scenario(name="known_agent", calls=(plan,))
