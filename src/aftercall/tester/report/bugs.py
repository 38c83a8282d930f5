"""BUG_REPORT.md: what the agent does wrong, one entry per bug, with the words that show it."""

from collections.abc import Iterator, Sequence

from aftercall.tester.bug_ledger import Bug, fingerprint
from aftercall.tester.finding import Finding
from aftercall.tester.redact import Redactor
from aftercall.tester.report.run import (
    RunReport,
    RunSummary,
    rates_of,
    speak_calibration,
    speak_latency,
)
from aftercall.tester.score import ScenarioScore
from aftercall.tester.statistics import load_track_record

_ORDER = {"critical": 0, "major": 1, "minor": 2, "info": 3}


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
    kinds = {bug.fingerprint: f"`{bug.kind}` ({bug.fingerprint})" for bug in bugs}
    for what, marks in (("New", now - before), ("No longer seen", before - now)):
        if marks:
            listed = ", ".join(sorted(kinds.get(mark, mark) for mark in marks))
            yield f"{what} since the run before: {listed}."
            yield ""


def bugs_of(run: RunReport, bugs: Sequence[Bug]) -> list[Bug]:
    """The ledger's entries that this run saw, worst first."""
    seen = {
        fingerprint(run.target, finding) for item in run.scored for finding in item.bugs
    }
    return sorted(
        (bug for bug in bugs if bug.fingerprint in seen),
        key=lambda bug: (_ORDER[bug.severity], bug.kind, bug.fingerprint),
    )


def _lines(run: RunReport, bugs: Sequence[Bug], redactor: Redactor) -> Iterator[str]:
    found = bugs_of(run, bugs)
    yield f"# Bug report: {run.target}"
    yield ""
    counts = f"{len(run.scored)} runs, {run.passed} passed, {run.failed} failed; {len(found)} bugs"
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
    finding, item = _example(bug, run)
    record = item.record_of(finding)
    yield f"## {number}. {redactor.clean(finding.text)}"
    yield ""
    severity, mark = (
        f"**severity:** {bug.severity}",
        f"**fingerprint:** `{bug.fingerprint}`",
    )
    yield f"- **Category:** {bug.category} (`{bug.kind}`), {severity}, {mark}"
    times = f"{bug.seen} times in {bug.runs} run{'s' * (bug.runs != 1)}"
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
    return next(
        (finding, item)
        for item in run.scored
        for finding in item.bugs
        if fingerprint(run.target, finding) == bug.fingerprint
    )


def _others(run: RunReport, redactor: Redactor) -> Iterator[str]:
    """Findings that are no bugs of the agent: other causes, and remarks."""
    findings = [(item, finding) for item in run.scored for finding in item.findings]
    others = [
        pair
        for pair in findings
        if pair[1].who != "agent" and pair[1].severity != "info"
    ]
    remarks = [
        pair
        for pair in findings
        if pair[1].who == "agent" and pair[1].severity == "minor"
    ]
    for title, listed in (("Not the agent's doing", others), ("Remarks", remarks)):
        if not listed:
            continue
        yield f"## {title}"
        yield ""
        for item, finding in listed[:50]:
            place = f"{item.scenario.name}, run {item.run}"
            text = redactor.clean(finding.text)
            yield f"- {place}: `{finding.kind}` ({finding.who}) {text}"
        yield ""
