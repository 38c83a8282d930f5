"""Measures the tester: it calls agents whose delays, overlaps and words are known.

`calibrate` calls itself. `measure_line` finds the error on the line of a run: the known agent is
reached as the agent under test is, and as many calls are held at a time. What it says of itself
is the truth: when it had the caller's words, and when it sent the answer.
"""

import asyncio
import json
import random
import time
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from threading import Thread
from urllib.parse import parse_qs

import uvicorn

from aftercall.errors import TesterError
from aftercall.model.json_fields import Json
from aftercall.settings import Settings
from aftercall.speech.sound import FRAME_BYTES, FRAME_S, SAMPLE_RATE_HZ, LoudnessMeter
from aftercall.tester.agents import open_target
from aftercall.tester.call import ScriptedCall
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.text_agent import (
    AudioAgentConnection,
    CallableAgent,
    Interruption,
    TextAgentConnection,
)
from aftercall.tester.finding import CallView
from aftercall.tester.findings.timing import find_overlaps, latencies
from aftercall.tester.line import AgentAnswer, AgentAnswers, DialedCall, TextAgent
from aftercall.tester.phrases import count_word_errors, words_of
from aftercall.tester.scenario import (
    CallerContext,
    CallLimits,
    LineNoise,
    LineQuality,
    PlannedCall,
    Scenario,
    ScriptedTurn,
)
from aftercall.tester.statistics import Calibration
from aftercall.tester.target import AgentTarget, CallSetup
from aftercall.tester.voice import LineQualityFilter, ToneVoice

LEAD_S = 0.5
HELLO, ANSWER = "Hello.", "Certainly."
MIN_DELAY_S, MAX_DELAY_S = 0.1, 0.4
STREAM_PAUSE_S = 0.3  # so long a quiet ends the caller's turn on a stream of sound
START_TIMEOUT_S = 10.0
MAX_STREAM_TURNS = 3  # a stream takes real time
Scope = Json
Receive = Callable[[], Awaitable[Json]]
Send = Callable[[Json], Awaitable[None]]
_SENTENCES = (
    "The first answer is short.",
    "Here is a somewhat longer answer, so that there is more to hear.",
    "Yes.",
    "That would be the fourth of March, if it suits you.",
    "Let me read it back to you: two tickets, row five.",
)


class KnownAgent(TextAgent):
    """Answers with sentences and delays that were drawn beforehand."""

    def __init__(self, delays_s: Sequence[float]) -> None:
        self._delays = list(delays_s)
        self._said = 0

    async def start(self, dial: DialedCall) -> AgentAnswers:
        return [AgentAnswer("Hello, this is the known agent.", delay_s=0.3)]

    async def respond(self, text: str) -> AgentAnswers:
        delay_s = self._delays[self._said] if self._said < len(self._delays) else 0.5
        sentence = _SENTENCES[self._said % len(_SENTENCES)]
        self._said += 1
        return [AgentAnswer(sentence, delay_s=delay_s)]


async def calibrate(
    setup: CallSetup, *, turns: int = 60, seed: int = 1
) -> list[Calibration]:
    """On a clean line, with leading silence before each answer, and with noise behind the agent."""
    noise = LineNoise(kind="white", snr_db=20)
    lines = {
        "clean": (0.0, LineNoise()),
        f"{LEAD_S:g} s leading silence": (LEAD_S, LineNoise()),
        "noise at 20 dB": (0.0, noise),
    }
    return [
        await _KnownCalls(setup, behind, seed).measure(name, turns, lead_s)
        for name, (lead_s, behind) in lines.items()
    ]


@dataclass(frozen=True)
class _KnownCalls:
    setup: CallSetup
    noise: LineNoise
    seed: int

    async def measure(self, name: str, turns: int, lead_s: float) -> Calibration:
        """Holds a call whose delays and words are known, and compares what was measured."""
        draw = random.Random(f"{name}/{self.seed}")
        delays = [round(lead_s + draw.uniform(0.1, 2.4), 4) for _ in range(turns)]
        view = await self._call(delays)
        pairs = zip(latencies(view), delays, strict=False)
        errors = [1000 * abs(measured - true) for measured, true in pairs]
        heard = [span.text for span in view.record.agent_spans[1 : turns + 1]]
        meant = [_SENTENCES[at % len(_SENTENCES)] for at in range(len(heard))]
        words = sum(len(words_of(sentence)) for sentence in meant)
        wrong = sum(map(count_word_errors, meant, heard))
        interruptions = [
            finding
            for finding in find_overlaps(view)
            if finding.kind in ("talks_over_caller", "does_not_yield")
        ]
        planned = sum(span.is_planned_overlap for span in view.record.caller_spans)
        return replace(
            Calibration.of_errors(name, errors),
            overlap_ms=round(await self._overlap_error(), 2),
            silence_ms=round(await self._silence_error(), 2),
            false_barge_ins=planned + len(interruptions) + turns - len(errors),
            word_error_rate=round(wrong / words, 4) if words else 1.0,
            words=words,
        )

    async def _overlap_error(self) -> float:
        """An agent that starts 0.8 s after the caller: the true overlap is known exactly."""
        interruption = Interruption(0.8, "Excuse me, I know what you want.")
        record = (await self._call([0.5], interruption)).record
        caller = record.caller_spans[0]
        overlaps_s = [
            agent.segment.overlap_s(caller.segment) for agent in record.agent_spans
        ]
        return 1000 * abs(max(overlaps_s, default=0.0) - (caller.seconds - 0.8))

    async def _silence_error(self) -> float:
        """Five seconds of silence before an answer."""
        measured = latencies(await self._call([5.0]))
        return 1000 * abs(measured[0] - 5.0) if measured else 5000.0

    async def _call(
        self, delays_s: list[float], interruption: Interruption | None = None
    ) -> CallView:
        scenario = _known_scenario(len(delays_s))
        record = await self.setup.hold_call(
            lambda pace: TextAgentConnection(
                KnownAgent(delays_s),
                self.setup.agent_voice,
                pace,
                kind="audio",
                counts_work=False,
                interruption=interruption,
                quality=LineQualityFilter(LineQuality(), self.noise, self.seed),
            ),
            ScriptedCall(Caller(scenario, scenario.calls[0], 1), scenario),
        )
        return CallView(record, scenario)


def _known_scenario(
    turns: int, say: str = "This is what I say now.", number: str | None = None
) -> Scenario:
    steps = [ScriptedTurn(say=say)] * turns
    plan = PlannedCall(
        caller_context=CallerContext(number=number),
        turns=(*steps, ScriptedTurn(hang_up=True)),
    )
    limits = CallLimits(
        max_turns=min(400, 3 * turns + 10), max_duration_s=3600, max_silence_s=30
    )
    return Scenario(name="calibration", calls=(plan,), limits=limits)


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
        target = AgentTarget.of_connection(
            kind, setup, lambda _: _sound_function(delays)
        )
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

    return AgentTarget.of_agent("python", setup, make)


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
    """Several calls at once, to see whether they slow each other down."""

    async def hold(number: int) -> list[float]:
        scenario = _known_scenario(turns, "Go on, please.", _number(number))
        async with target.open() as session:
            caller = Caller(scenario, scenario.calls[0], 1)
            record = await session(ScriptedCall(caller, scenario))
        measured = latencies(CallView(record, scenario))
        pairs = zip(measured, delays.taken_s[_number(number)], strict=False)
        return [1000 * abs(one - other) for one, other in pairs]

    calls = await asyncio.gather(*(hold(call) for call in range(1, parallel + 1)))
    errors = [error for call in calls for error in call]
    found = Calibration.of_errors(f"{kind}, {parallel} at a time", errors)
    return replace(found, is_of_run=True)
