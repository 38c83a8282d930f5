"""One run of the suite, as reports tell it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from aftercall.tester.calibrate import Calibration
from aftercall.tester.measures import percentile
from aftercall.tester.score import ScenarioScore
from aftercall.tester.statistics import pass_at_k, pass_hat_k, speak_rate, wilson


@dataclass(frozen=True)
class TestRunReport:
    id: str
    target: str
    started_at: datetime
    seconds: float
    scored: tuple[ScenarioScore, ...]
    calibration: tuple[Calibration, ...]

    @property
    def passed(self) -> int:
        return sum(item.verdict == "passed" for item in self.scored)

    @property
    def failed(self) -> int:
        return sum(item.verdict == "failed" for item in self.scored)

    def by_scenario(self) -> list[tuple[str, list[ScenarioScore]]]:
        ordered = sorted(self.scored, key=lambda item: (item.scenario.name, item.run))
        return [
            (name, list(group))
            for name, group in groupby(ordered, key=lambda item: item.scenario.name)
        ]

    def latencies(self) -> list[float]:
        return [
            value
            for item in self.scored
            for measures in item.measures
            for value in measures["latency_s"]
        ]


@dataclass(frozen=True)
class PassRates:
    """How often a run passes; inconclusive runs do not count, they say nothing about the agent."""

    runs: int
    passed: int
    pass_1: float
    low: float
    high: float
    k: int
    at_k: float
    hat_k: float

    @property
    def sentence(self) -> str:
        return (
            f"pass rate {speak_rate(self.passed, self.runs)}, pass@{self.k} "
            f"{100 * self.at_k:.0f} %, pass^{self.k} {100 * self.hat_k:.0f} %"
        )


def rates_of(run: TestRunReport) -> PassRates | None:
    counted = [
        (sum(item.verdict == "passed" for item in decided), len(decided))
        for _, items in run.by_scenario()
        if (decided := _decided(items))
    ]
    if not counted:
        return None
    passed, decided_runs = sum(passed for passed, _ in counted), sum(runs for _, runs in counted)
    low, high = wilson(passed, decided_runs)
    k = min(runs for _, runs in counted)
    at_k = sum(pass_at_k(runs, passed, k) for passed, runs in counted) / len(counted)
    hat_k = sum(pass_hat_k(runs, passed, k) for passed, runs in counted) / len(counted)
    return PassRates(decided_runs, passed, passed / decided_runs, low, high, k, at_k, hat_k)


def _decided(items: Sequence[ScenarioScore]) -> list[ScenarioScore]:
    return [item for item in items if item.verdict in ("passed", "failed")]


def speak_latency(run: TestRunReport) -> str:
    values = run.latencies()
    if not values:
        return "no answers measured"
    p50, p95 = percentile(values, 0.5), percentile(values, 0.95)
    return f"response latency p50 {p50:.2f} s, p95 {p95:.2f} s over {len(values)} answers"


def speak_calibration(run: TestRunReport) -> str:
    if not run.calibration:
        return "the tester was not calibrated for this run"
    worst = max(item.latency_p95_ms for item in run.calibration)
    false = sum(item.false_barge_ins for item in run.calibration)
    turns = sum(item.turns for item in run.calibration)
    return (
        f"tester's own error: latency {worst:.1f} ms at p95 on its worst line, {false} false "
        f"barge-ins in {turns} turns"
    )
