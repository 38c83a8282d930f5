"""Measures the tester: calls an agent whose delays, overlaps and words are known beforehand."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aftercall.clock import Clock
from aftercall.tester.call import CallRig, run_call
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.text_agent import Interruption, TextAgentConnection
from aftercall.tester.finding import CallView
from aftercall.tester.findings.timing import find_overlaps, latencies, percentile
from aftercall.tester.line import AgentAnswer, DialedCall, TickPace
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
from aftercall.tester.statistics import wilson
from aftercall.tester.voice import CallerVoice, LineQualityFilter, ToneVoice

LEAD_S = 0.5
_SENTENCES = (
    "The first answer is short.",
    "Here is a somewhat longer answer, so that there is more to hear.",
    "Yes.",
    "That would be the fourth of March, if it suits you.",
    "Let me read it back to you: two tickets, row five.",
)


@dataclass(frozen=True)
class Calibration:
    """The tester's error in milliseconds, and the interruptions and words it invented.

    `is_of_run`: measured in the run itself, on its line.
    """

    line: str
    turns: int
    latency_p50_ms: float
    latency_p95_ms: float
    latency_max_ms: float
    overlap_ms: float = 0.0
    silence_ms: float = 0.0
    false_barge_ins: int = 0
    word_error_rate: float = 0.0
    words: int = 0
    is_of_run: bool = False

    @property
    def false_barge_in_interval(self) -> tuple[float, float]:
        return wilson(min(self.false_barge_ins, self.turns), self.turns)

    @property
    def word_error_interval(self) -> tuple[float, float]:
        return wilson(
            min(round(self.word_error_rate * self.words), self.words), self.words
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "false_barge_in_interval": self.false_barge_in_interval,
            "word_error_interval": self.word_error_interval,
        }


class KnownAgent:
    """Answers with sentences and delays that were drawn beforehand."""

    def __init__(self, delays_s: Sequence[float]) -> None:
        self._delays = list(delays_s)
        self._said = 0

    async def start(self, dial: DialedCall) -> Sequence[AgentAnswer]:
        return [AgentAnswer("Hello, this is the known agent.", delay_s=0.3)]

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        delay_s = self._delays[self._said] if self._said < len(self._delays) else 0.5
        sentence = _SENTENCES[self._said % len(_SENTENCES)]
        self._said += 1
        return [AgentAnswer(sentence, delay_s=delay_s)]

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        return ()

    async def idle(self, seconds: int) -> Sequence[AgentAnswer]:
        return ()

    async def hang_up(self) -> None:
        return


async def calibrate(
    clock: Clock,
    *,
    turns: int = 60,
    seed: int = 1,
    is_live: bool = False,
    voices: tuple[CallerVoice, CallerVoice] | None = None,
) -> list[Calibration]:
    """On a clean line, with leading silence before each answer, and with noise behind the agent."""
    caller, agent = voices or (ToneVoice(), ToneVoice(350))
    calls = _Calls(clock, caller, agent, seed, is_live)
    return [
        await calls.measure("clean", turns, 0.0, LineNoise()),
        await calls.measure(
            f"{LEAD_S:g} s leading silence", turns, LEAD_S, LineNoise()
        ),
        await calls.measure(
            "noise at 20 dB", turns, 0.0, LineNoise(kind="white", snr_db=20)
        ),
    ]


@dataclass
class _Calls:
    clock: Clock
    caller_voice: CallerVoice
    agent_voice: CallerVoice
    seed: int
    is_live: bool

    async def measure(
        self, name: str, turns: int, lead_s: float, noise: LineNoise
    ) -> Calibration:
        draw = random.Random(f"{name}/{self.seed}")
        delays = [round(lead_s + draw.uniform(0.1, 2.4), 4) for _ in range(turns)]
        view = await self._call(delays, noise)
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
        missing = turns - len(errors)
        return Calibration(
            line=name,
            turns=len(errors),
            latency_p50_ms=round(percentile(errors, 0.5) or 0.0, 2),
            latency_p95_ms=round(percentile(errors, 0.95) or 0.0, 2),
            latency_max_ms=round(max(errors, default=0.0), 2),
            overlap_ms=round(await self._overlap_error(noise), 2),
            silence_ms=round(await self._silence_error(noise), 2),
            false_barge_ins=planned + len(interruptions) + missing,
            word_error_rate=round(wrong / words, 4) if words else 1.0,
            words=words,
        )

    async def _overlap_error(self, noise: LineNoise) -> float:
        """An agent that starts 0.8 s after the caller: the true overlap is known exactly."""
        interruption = Interruption(0.8, "Excuse me, I know what you want.")
        record = (await self._call([0.5], noise, interruption)).record
        caller = record.caller_spans[0]
        overlaps_s = [
            agent.segment.overlap_s(caller.segment) for agent in record.agent_spans
        ]
        return 1000 * abs(max(overlaps_s, default=0.0) - (caller.seconds - 0.8))

    async def _silence_error(self, noise: LineNoise) -> float:
        """Five seconds of silence before an answer."""
        measured = latencies(await self._call([5.0], noise))
        return 1000 * abs(measured[0] - 5.0) if measured else 5000.0

    async def _call(
        self,
        delays_s: list[float],
        noise: LineNoise,
        interruption: Interruption | None = None,
    ) -> CallView:
        scenario = _known_scenario(len(delays_s))
        pace = TickPace(self.clock, is_live=self.is_live)
        connection = TextAgentConnection(
            KnownAgent(delays_s),
            self.agent_voice,
            pace,
            kind="audio",
            counts_work=False,
            interruption=interruption,
            quality=LineQualityFilter(LineQuality(), noise, self.seed),
        )
        caller = Caller(scenario, scenario.calls[0], 1)
        rig = CallRig(self.caller_voice, pace)
        return CallView(await run_call(rig, connection, caller, scenario), scenario)


def _known_scenario(turns: int) -> Scenario:
    steps = [
        ScriptedTurn(say=f"This is what I say in turn number {number}.")
        for number in range(1, turns + 1)
    ]
    plan = PlannedCall(
        caller_context=CallerContext(), turns=(*steps, ScriptedTurn(hang_up=True))
    )
    limits = CallLimits(
        max_turns=min(400, 3 * turns + 10), max_duration_s=3600, max_silence_s=30
    )
    return Scenario(name="calibration", calls=(plan,), limits=limits)
