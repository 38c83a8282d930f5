"""One run of the suite: its rates and figures, and the run as JSON and JUnit XML."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from xml.etree.ElementTree import Element, SubElement, tostring

from aftercall.model.json_fields import Json, pick_fields
from aftercall.tester.finding import BUG_SEVERITIES
from aftercall.tester.record import format_time, record_json
from aftercall.tester.redact import Redactor
from aftercall.tester.score import ScenarioScore
from aftercall.tester.statistics import (
    Calibration,
    load_track_record,
    pass_at_k,
    pass_hat_k,
    percentile,
    speak_rate,
    wilson,
)


@dataclass(frozen=True)
class RunReport:
    """A test run as people read it."""

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

    @property
    def undecided(self) -> int:
        return len(self.scored) - self.passed - self.failed

    def by_scenario(self) -> list[tuple[str, list[ScenarioScore]]]:
        grouped: dict[str, list[ScenarioScore]] = {}
        for item in sorted(
            self.scored, key=lambda item: (item.scenario.name, item.run)
        ):
            grouped.setdefault(item.scenario.name, []).append(item)
        return list(grouped.items())

    def latencies(self) -> list[float]:
        measured = [measures for item in self.scored for measures in item.measures]
        return [value for measures in measured for value in measures["latency_s"]]

    def words_behind_s(self) -> list[float]:
        """How late the carrier played the caller's words: the error of each latency."""
        calls = [record for item in self.scored for record in item.records]
        events = [event for call in calls for event in call.events]
        return [float(item.detail) for item in events if item.kind == "words_played"]


@dataclass(frozen=True)
class PassRates:
    """How often a run passes; inconclusive runs do not count."""

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


@dataclass(frozen=True)
class RunSummary:
    """One run in a row of runs of the same agent."""

    id: str
    started_at: str
    passed: int
    failed: int
    runs: int
    bugs: frozenset[str]
    """Fingerprints."""

    @classmethod
    def from_json(cls, data: Json) -> "RunSummary":
        """From what `run_json` made."""
        bugs = (
            finding["fingerprint"]
            for result in data["results"]
            for finding in result["findings"]
            if finding["who"] == "agent" and finding["severity"] in BUG_SEVERITIES
        )
        keys = ("id", "started_at", "passed", "failed", "runs")
        return cls(**{key: data[key] for key in keys}, bugs=frozenset(bugs))


def rates_of(run: RunReport) -> PassRates | None:
    """Over scenarios with a verdict; k is the least number of runs of any of them."""
    counted = []
    for _, items in run.by_scenario():
        passed = sum(item.verdict == "passed" for item in items)
        decided = passed + sum(item.verdict == "failed" for item in items)
        if decided:
            counted.append((passed, decided))
    if not counted:
        return None
    passed, decided = (
        sum(passed for passed, _ in counted),
        sum(runs for _, runs in counted),
    )
    low, high = wilson(passed, decided)
    k = min(runs for _, runs in counted)
    at_k = sum(pass_at_k(runs, passed, k) for passed, runs in counted) / len(counted)
    hat_k = sum(pass_hat_k(runs, passed, k) for passed, runs in counted) / len(counted)
    return PassRates(decided, passed, passed / decided, low, high, k, at_k, hat_k)


def speak_latency(run: RunReport) -> str:
    values = run.latencies()
    if not values:
        return "no answers measured"
    p50, p95 = percentile(values, 0.5), percentile(values, 0.95)
    return (
        f"response latency p50 {p50:.2f} s, p95 {p95:.2f} s over {len(values)} answers"
    )


def speak_calibration(run: RunReport) -> str:
    """The tester's own error, and how often it was right about strangers' agents."""
    record = load_track_record().sentence
    if not run.calibration:
        return f"the tester was not calibrated for this run; {record}"
    false = sum(item.false_barge_ins for item in run.calibration)
    turns = sum(item.turns for item in run.calibration)
    barge_ins = f"{false} false barge-ins in {turns} turns"
    return f"tester's own error: {_speak_own_error(run)}, {barge_ins}; {record}"


def _speak_own_error(run: RunReport) -> str:
    """On the line of this run where it could be measured, else in a call to itself."""
    if behind := run.words_behind_s():
        p95 = 1000 * (percentile(behind, 0.95) or 0.0)
        return f"its words were played up to {p95:.0f} ms late (p95) on this line"
    if own := [item for item in run.calibration if item.is_of_run]:
        (line,) = own
        answers = f"{line.turns} answers of a known agent by {line.line}"
        return f"latency {line.latency_p95_ms:.1f} ms at p95 over {answers}"
    worst = max(item.latency_p95_ms for item in run.calibration)
    return f"latency {worst:.1f} ms at p95 on its worst line"


def run_json(run: RunReport) -> Json:
    rates = rates_of(run)
    return {
        "schema": 1,
        **pick_fields(run, "id target"),
        "started_at": format_time(run.started_at),
        "seconds": round(run.seconds, 3),
        **pick_fields(run, "passed failed"),
        "runs": len(run.scored),
        "rates": asdict(rates) if rates else None,
        "calibration": [item.as_json() for item in run.calibration],
        "results": [_scored_json(run, item) for item in run.scored],
    }


def _scored_json(run: RunReport, item: ScenarioScore) -> Json:
    findings = []
    for finding in item.findings:
        mark = {"fingerprint": finding.fingerprint(run.target)}
        doubts = {"expected": finding.expected, "wrong_if": list(finding.wrong_if)}
        if finding.is_bug:
            doubts["how_often_right"] = load_track_record().speak_kind(finding.kind)
        turns = {"turns": list(finding.turns)}
        findings.append(mark | asdict(finding) | turns | doubts)
    calls = zip(item.records, item.measures, strict=True)
    return {
        "scenario": item.scenario.name,
        "goal": item.scenario.goal,
        **pick_fields(item, "run verdict reason"),
        "criteria": [asdict(checked) for checked in item.criteria],
        "findings": findings,
        "calls": [
            record_json(record) | {"measures": measures} for record, measures in calls
        ],
    }


def github_annotations(run: RunReport, redactor: Redactor) -> Iterator[str]:
    """Lines that GitHub shows on the page of a workflow's run: bugs, and runs left open."""
    for item in run.scored:
        place = f"{item.scenario.name}, run {item.run}"
        for finding in item.bugs:
            text = _one_line(f"{finding.text}; expected: {finding.expected}", redactor)
            yield f"::error title={place} ({finding.kind})::{text}"
        if item.reason:
            text = _one_line(item.reason, redactor)
            yield f"::warning title={place} ({item.verdict})::{text}"


def _one_line(text: str, redactor: Redactor) -> str:
    return " ".join(redactor.clean(text).replace("%", "%25").split())


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(run: RunReport, redactor: Redactor) -> str:
    figures = {
        "tests": str(len(run.scored)),
        "failures": str(run.failed),
        "errors": "0",
        "skipped": str(run.undecided),
        "time": f"{run.seconds:.3f}",
    }
    suites = Element("testsuites", {"name": "aftercall test", **figures})
    about = {"name": run.target, "timestamp": run.started_at.isoformat()}
    suite = SubElement(suites, "testsuite", about | figures)
    properties = SubElement(suite, "properties")
    SubElement(properties, "property", name="calibration", value=speak_calibration(run))
    for item in run.scored:
        _add_case(suite, item, redactor)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(
        suites, encoding="unicode"
    )


def _add_case(suite: Element, item: ScenarioScore, redactor: Redactor) -> None:
    seconds = sum(record.duration_s for record in item.records)
    about = {
        "classname": item.scenario.name,
        "name": f"run {item.run}",
        "time": f"{seconds:.3f}",
    }
    case = SubElement(suite, "testcase", about)
    if item.verdict == "failed":
        first = item.bugs[0]
        lines = []
        for finding in item.findings:
            lines.append(
                f"[{finding.who}] {finding.severity} {finding.kind}: {finding.text}"
            )
            lines.append(f"    {finding.quote}")
        failure = SubElement(
            case, "failure", message=_clean(first.text, redactor), type=first.kind
        )
        failure.text = _clean("\n".join(lines), redactor)
    elif item.verdict != "passed":
        message = f"{item.verdict}: {item.reason}"
        SubElement(case, "skipped", message=_clean(message, redactor))
    spans = [span for record in item.records for span in record.spans]
    text = "\n".join(f"{span.who}: {span.text}" for span in spans)
    SubElement(case, "system-out").text = _clean(text, redactor)


def _clean(text: str, redactor: Redactor) -> str:
    return _NOT_XML.sub("", redactor.clean(text))
