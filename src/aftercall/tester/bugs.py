"""Bugs: the ledger has one entry for the same bug in every run; BUG_REPORT.md those of a run.

Each entry has the words that show the bug, and the fewest steps that still show it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from aftercall.english.words import count_noun
from aftercall.errors import TesterError
from aftercall.tester.finding import Finding
from aftercall.tester.record import format_time
from aftercall.tester.redact import Redactor
from aftercall.tester.run_report import (
    RunReport,
    RunSummary,
    rates_of,
    speak_calibration,
    speak_latency,
)
from aftercall.tester.score import ScenarioScore
from aftercall.tester.statistics import load_track_record

_ORDER = {"critical": 0, "major": 1, "minor": 2, "info": 3}


@dataclass(frozen=True)
class Bug:
    """One entry; `steps` is the shortest list of the caller's steps that still shows it."""

    fingerprint: str
    kind: str
    category: str
    severity: str
    text: str
    first_seen: str
    last_seen: str
    seen: int = 0
    runs: int = 0
    scenarios: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    quote: str = ""
    steps: tuple[str, ...] = ()


_BUGS = TypeAdapter(list[Bug])


class BugLedger:
    """A JSON file beside the results, replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bugs: dict[str, Bug] = {}
        self._runs: list[str] = []
        self._read()

    @property
    def bugs(self) -> list[Bug]:
        return sorted(
            self._bugs.values(), key=lambda bug: (bug.last_seen, bug.seen), reverse=True
        )

    def get(self, mark: str) -> Bug | None:
        return self._bugs.get(mark)

    def add(
        self, target: str, run_id: str, scored: Sequence[ScenarioScore]
    ) -> list[Bug]:
        """Adds the bugs of a run, once however often it is added; returns the changed entries."""
        if run_id in self._runs:
            return []
        self._runs.append(run_id)
        touched: dict[str, Bug] = {}
        for item in scored:
            for finding in item.bugs:
                mark = finding.fingerprint(target)
                call = item.record_of(finding)
                seen_at = format_time(call.started_at)
                known = (
                    touched.get(mark)
                    or self._bugs.get(mark)
                    or _new(mark, finding, seen_at)
                )
                touched[mark] = replace(
                    known,
                    last_seen=max(known.last_seen, seen_at),
                    seen=known.seen + 1,
                    runs=known.runs + (mark not in touched),
                    scenarios=tuple(sorted({*known.scenarios, item.scenario.name})),
                    calls=(*known.calls, call.id)[-20:],
                    quote=finding.quote,
                )
        self._bugs |= touched
        return list(touched.values())

    def set_steps(self, mark: str, steps: tuple[str, ...]) -> None:
        known = self._bugs[mark]
        if not known.steps or len(steps) < len(known.steps):
            self._bugs[mark] = replace(known, steps=steps)

    def save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "schema": 1,
            "runs": self._runs,
            "bugs": [asdict(bug) for bug in self.bugs],
        }
        text = json.dumps(data, ensure_ascii=False, indent=1)
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def _read(self) -> None:
        try:
            data = json.loads(self._path.read_text("utf-8"))
            self._runs = list(data.get("runs", ()))
            bugs = _BUGS.validate_python(data["bugs"])
            self._bugs = {bug.fingerprint: bug for bug in bugs}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            reason = "the bug ledger cannot be read; move it away to begin a new one"
            raise TesterError(f"{self._path}: {reason}") from None


def _new(mark: str, finding: Finding, seen_at: str) -> Bug:
    kind, category = finding.kind, finding.category
    return Bug(mark, kind, category, finding.severity, finding.text, seen_at, seen_at)


def bug_report(
    run: RunReport,
    bugs: Sequence[Bug],
    redactor: Redactor,
    trend: Sequence[RunSummary] = (),
) -> str:
    """Redacts what was spoken, not the report's own dates and ids.

    `trend` has the last runs of the same agent, this one last.
    """
    lines = [*_lines(run, bugs, redactor), *_trend(trend, bugs)]
    return "\n".join(lines) + "\n"


def _trend(trend: Sequence[RunSummary], bugs: Sequence[Bug]) -> Iterator[str]:
    """Shown from the second run on: one run has no trend."""
    if len(trend) < 2:
        return
    yield "## Trend"
    yield ""
    yield "| run | started | passed | failed | open | bugs |"
    yield "|---|---|---|---|---|---|"
    for item in trend:
        left = item.runs - item.passed - item.failed
        figures = f"{item.passed} | {item.failed} | {left} | {len(item.bugs)}"
        yield f"| `{item.id}` | {item.started_at} | {figures} |"
    yield ""
    yield from _changes(trend[-2].bugs, trend[-1].bugs, bugs)


def _changes(
    before: frozenset[str], now: frozenset[str], bugs: Sequence[Bug]
) -> Iterator[str]:
    """What is new since the run before, and what is gone."""
    kinds = {bug.fingerprint: f"`{bug.kind}` ({bug.fingerprint})" for bug in bugs}
    for what, marks in (("New", now - before), ("No longer seen", before - now)):
        if marks:
            listed = ", ".join(sorted(kinds.get(mark, mark) for mark in marks))
            yield f"{what} since the run before: {listed}."
            yield ""


def bugs_of(run: RunReport, bugs: Sequence[Bug]) -> list[Bug]:
    """The ledger's entries that this run saw, worst first."""
    seen = {
        finding.fingerprint(run.target) for item in run.scored for finding in item.bugs
    }
    return sorted(
        (bug for bug in bugs if bug.fingerprint in seen),
        key=lambda bug: (_ORDER[bug.severity], bug.kind, bug.fingerprint),
    )


def _lines(run: RunReport, bugs: Sequence[Bug], redactor: Redactor) -> Iterator[str]:
    """The head, the bugs, what stayed open, and the rest."""
    found = bugs_of(run, bugs)
    yield f"# Bug report: {run.target}"
    yield ""
    runs, known = count_noun(len(run.scored), "run"), count_noun(len(found), "bug")
    counts = f"{runs}, {run.passed} passed, {run.failed} failed; {known}"
    yield f"Run `{run.id}` of {run.started_at:%Y-%m-%d %H:%M} UTC: {counts}."
    if rates := rates_of(run):
        yield f"{rates.sentence.capitalize()}."
    yield f"{speak_latency(run).capitalize()}; {speak_calibration(run)}."
    yield ""
    for number, bug in enumerate(found, 1):
        yield from _entry(number, bug, run, redactor)
    yield from _undecided(run, redactor)
    yield from _others(run, redactor)


def _undecided(run: RunReport, redactor: Redactor) -> Iterator[str]:
    """Runs without a verdict, each with its reason."""
    left = [item for item in run.scored if item.reason]
    if left:
        yield "## Not decided"
        yield ""
        for item in left:
            reason = redactor.clean(item.reason)
            yield f"- {item.scenario.name}, run {item.run}: {item.verdict}, {reason}"
        yield ""


def _entry(number: int, bug: Bug, run: RunReport, redactor: Redactor) -> Iterator[str]:
    """All that is needed to see the bug and to show it again."""
    finding, item = _example(bug, run)
    record = item.record_of(finding)
    yield f"## {number}. {redactor.clean(finding.text)}"
    yield ""
    severity, mark = (
        f"**severity:** {bug.severity}",
        f"**fingerprint:** `{bug.fingerprint}`",
    )
    yield f"- **Category:** {bug.category} (`{bug.kind}`), {severity}, {mark}"
    times = f"{count_noun(bug.seen, 'time')} in {count_noun(bug.runs, 'run')}"
    scenarios = ", ".join(bug.scenarios)
    yield f"- **Seen:** {times}, first {bug.first_seen}, last {bug.last_seen}, in {scenarios}"
    yield f"- **Calls:** {', '.join(f'`{call}`' for call in bug.calls[-5:])}"
    yield f"- **Sound:** [calls/{record.id}.wav](calls/{record.id}.wav) at {finding.at_s:.1f} s"
    if finding.expected:
        yield f"- **Expected:** {finding.expected}"
    again = f"aftercall test run -s {item.scenario.name} --agent {run.target}"
    yield f"- **Run it again:** `{again}`"
    if finding.wrong_if:
        checked = "; ".join(finding.wrong_if)
        yield f"- **Would be wrong if** {checked}. This was checked and is not so."
    yield f"- **Such a finding was** {load_track_record().speak_kind(bug.kind)}"
    if bug.steps:
        steps = redactor.clean("; ".join(bug.steps))
        yield f"- **Shortest list of steps that still shows it:** {steps}"
    yield ""
    for turn in finding.turns[:6]:
        span = record.spans[turn - 1]
        yield f"> {span.start_s:6.1f} s  **{span.who}** {redactor.clean(span.text)}"
        yield ">"
    yield ""


def _example(bug: Bug, run: RunReport) -> tuple[Finding, ScenarioScore]:
    """The first finding of this run that has the bug's fingerprint."""
    return next(
        (finding, item)
        for item in run.scored
        for finding in item.bugs
        if finding.fingerprint(run.target) == bug.fingerprint
    )


def _others(run: RunReport, redactor: Redactor) -> Iterator[str]:
    """Findings that are no bugs of the agent: other causes, and remarks."""
    others: dict[str, list[str]] = {"Not the agent's doing": [], "Remarks": []}
    for item in run.scored:
        for finding in item.findings:
            if finding.severity == "info" or finding.is_bug:
                continue
            is_agents = finding.who == "agent"
            place = f"{item.scenario.name}, run {item.run}"
            text = redactor.clean(finding.text)
            line = f"- {place}: `{finding.kind}` ({finding.who}) {text}"
            others["Remarks" if is_agents else "Not the agent's doing"].append(line)
    for title, lines in others.items():
        yield from [f"## {title}", "", *lines[:50], ""] if lines else ()
