"""BUG_REPORT.md: what the agent does wrong, one entry a bug, with the words that show it."""

from collections.abc import Iterator, Sequence

from aftercall.tester.bug_ledger import Bug, fingerprint
from aftercall.tester.finding import Finding
from aftercall.tester.redact import Redactor
from aftercall.tester.report.run import TestRunReport, rates_of, speak_calibration, speak_latency
from aftercall.tester.score import ScenarioScore

_ORDER = {"critical": 0, "major": 1, "minor": 2, "info": 3}


def bug_report(run: TestRunReport, bugs: Sequence[Bug], redactor: Redactor) -> str:
    """Only what was spoken is redacted: dates and addresses of our own are no secrets."""
    return "\n".join(_lines(run, bugs, redactor)) + "\n"


def bugs_of(run: TestRunReport, bugs: Sequence[Bug]) -> list[Bug]:
    """The ledger's entries that this run saw, worst first."""
    seen = {fingerprint(run.target, finding) for item in run.scored for finding in item.bugs}
    return sorted(
        (bug for bug in bugs if bug.fingerprint in seen),
        key=lambda bug: (_ORDER[bug.severity], bug.kind, bug.fingerprint),
    )


def _lines(run: TestRunReport, bugs: Sequence[Bug], redactor: Redactor) -> Iterator[str]:
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
    yield from _others(run, redactor)


def _entry(number: int, bug: Bug, run: TestRunReport, redactor: Redactor) -> Iterator[str]:
    finding, item = _example(bug, run)
    record = next(
        (record for record in item.records if record.number == finding.call), item.records[-1]
    )
    yield f"## {number}. {redactor.clean(finding.text)}"
    yield ""
    yield (
        f"- **Category:** {bug.category} (`{bug.kind}`), **severity:** {bug.severity}, "
        f"**fingerprint:** `{bug.fingerprint}`"
    )
    runs = f"{bug.runs} run{'s' * (bug.runs != 1)}"
    yield (
        f"- **Seen:** {bug.seen} times in {runs}, first {bug.first_seen}, last "
        f"{bug.last_seen}, in {', '.join(bug.scenarios)}"
    )
    yield f"- **Calls:** {', '.join(f'`{call}`' for call in bug.calls[-5:])}"
    yield f"- **Sound:** [calls/{record.id}.wav](calls/{record.id}.wav) at {finding.at_s:.1f} s"
    if bug.steps:
        yield (
            "- **Shortest list of steps that still shows it:** "
            f"{redactor.clean('; '.join(bug.steps))}"
        )
    yield ""
    for turn in finding.turns[:6]:
        span = record.spans[turn - 1]
        yield f"> {span.start_s:6.1f} s  **{span.who}** {redactor.clean(span.text)}"
        yield ">"
    yield ""


def _example(bug: Bug, run: TestRunReport) -> tuple[Finding, ScenarioScore]:
    return next(
        (finding, item)
        for item in run.scored
        for finding in item.bugs
        if fingerprint(run.target, finding) == bug.fingerprint
    )


def _others(run: TestRunReport, redactor: Redactor) -> Iterator[str]:
    """What is not the agent's: listed, so that nobody wonders, and kept apart, so that nobody
    is blamed for it.
    """
    others = [
        (item, finding)
        for item in run.scored
        for finding in item.findings
        if finding.who != "agent" and finding.severity != "info"
    ]
    remarks = [
        (item, finding)
        for item in run.scored
        for finding in item.findings
        if finding.who == "agent" and finding.severity == "minor"
    ]
    for title, listed in (("Not the agent's doing", others), ("Remarks", remarks)):
        if listed:
            yield f"## {title}"
            yield ""
            for item, finding in listed[:50]:
                yield (
                    f"- {item.scenario.name}, run {item.run}: `{finding.kind}` "
                    f"({finding.who}) {redactor.clean(finding.text)}"
                )
            yield ""
