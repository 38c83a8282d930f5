"""Scores a run of a scenario: rules over every call, criteria with evidence, one verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aftercall.tester.finding import CallView, Finding, Rule
from aftercall.tester.findings import (
    consistency,
    outcome,
    repetition,
    script,
    speech,
    timing,
    trust,
)
from aftercall.tester.measures import measure
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Criterion, Scenario

RULES: tuple[Rule, ...] = (
    timing.find,
    repetition.find,
    outcome.find,
    trust.find,
    consistency.find,
    speech.find,
)
Verdict = Literal["passed", "failed", "inconclusive", "re-listen"]
CriterionState = Literal["met", "missed", "re-listen", "unknown"]
_CUTS_SHORT = (
    "never_spoke",
    "hung_up_early",
    "line_broke",
    "echoes",
    "refusal_loop",
    "stalls",
)
# a finding of the kind on the left is dropped for one on the right about the same turns
_SHADOWS = {
    "forbidden_words": ("leak",),
    "expectation_missed": ("forbidden_words", "never_spoke"),
    "slow_answer": ("expectation_missed",),
}


@dataclass(frozen=True)
class JudgedExpectation:
    """What a probe or a judging model says about a criterion."""

    criterion: str
    state: CriterionState
    reason: str = ""
    call: int = 1
    turns: tuple[int, ...] = ()
    quote: str = ""


@dataclass(frozen=True)
class CheckedCriterion:
    name: str
    state: CriterionState
    evidence: str = ""


@dataclass(frozen=True)
class ScenarioScore:
    """One run of one scenario."""

    scenario: Scenario
    run: int
    records: tuple[CallRecord, ...]
    findings: tuple[Finding, ...]
    criteria: tuple[CheckedCriterion, ...]
    measures: tuple[dict[str, Any], ...]
    verdict: Verdict
    judged: tuple[JudgedExpectation, ...] = ()

    @property
    def bugs(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_bug]

    def record_of(self, finding: Finding) -> CallRecord:
        """The call that the finding is about."""
        numbered = {record.number: record for record in reversed(self.records)}
        return numbered.get(finding.call, self.records[-1])


def score(
    scenario: Scenario,
    run: int,
    records: Sequence[CallRecord],
    judged: Sequence[JudgedExpectation] = (),
) -> ScenarioScore:
    views = []
    for record in records:
        tester_faults = tuple(script.find(CallView(record, scenario)))
        views.append(CallView(record, scenario, tester_faults))
    findings = [finding for view in views for finding in view.tester_faults]
    findings += [finding for view in views for rule in RULES for finding in rule(view)]
    criteria = []
    for criterion in (*scenario.success, *_judged_turns(scenario)):
        checked, fault = _check(criterion, views, judged)
        criteria.append(checked)
        if fault is not None:
            findings.append(fault)
    findings = _without_echoes(findings)
    return ScenarioScore(
        scenario,
        run,
        tuple(records),
        tuple(findings),
        tuple(criteria),
        tuple(measure(view) for view in views),
        _verdict(findings, criteria),
        tuple(judged),
    )


def _judged_turns(scenario: Scenario) -> list[Criterion]:
    """Expectations of single turns that a model judges."""
    return [
        Criterion(judged=sentence, call=number)
        for number, plan in enumerate(scenario.calls, 1)
        for turn in plan.turns
        if turn.expect is not None
        for sentence in turn.expect.judged
    ]


def _check(
    criterion: Criterion, views: list[CallView], judged: Sequence[JudgedExpectation]
) -> tuple[CheckedCriterion, Finding | None]:
    name = outcome.name_of(criterion)
    chosen = [view for view in views if criterion.call in (None, view.record.number)]
    if criterion.probe is not None or criterion.judged is not None:
        return _check_judged(criterion, name, chosen, judged)
    if not chosen or all(view.record.outcome != "answered" for view in chosen):
        return CheckedCriterion(name, "unknown", "the call did not take place"), None
    if all(view.is_wordless for view in chosen):
        evidence = "the agent's words were not recognised, only its timing"
        return CheckedCriterion(name, "unknown", evidence), None
    met = [outcome.is_met(view, criterion) for view in chosen]
    if all(met) if criterion.not_said else any(met):
        quotes = (
            found[1] for view in chosen if (found := view.find_said(criterion.said))
        )
        return CheckedCriterion(name, "met", next(quotes, "")), None
    failing = chosen[met.index(False)]
    return CheckedCriterion(name, "missed"), outcome.missed(failing, criterion)


def _check_judged(
    criterion: Criterion,
    name: str,
    views: list[CallView],
    judged: Sequence[JudgedExpectation],
) -> tuple[CheckedCriterion, Finding | None]:
    key = criterion.probe or criterion.judged
    verdict = next((item for item in judged if item.criterion == key), None)
    if verdict is None:
        return CheckedCriterion(name, "unknown", "it was not judged"), None
    if verdict.state in ("unknown", "re-listen") or not views:
        return CheckedCriterion(name, verdict.state, verdict.reason), None
    if verdict.state == "met":
        return CheckedCriterion(name, "met", verdict.quote or verdict.reason), None
    view = next(
        (item for item in views if item.record.number == verdict.call), views[-1]
    )
    kind = "probe_failed" if criterion.probe else "judged_missed"
    who = outcome.blame_ending(view)
    text = f"{name}: {verdict.reason}"
    fault = view.finding(kind, text, *verdict.turns, who=who, detail=name)
    return CheckedCriterion(name, "missed", verdict.reason), fault


def _without_echoes(findings: list[Finding]) -> list[Finding]:
    """One finding for one cause: a call that was cut short misses its goal because of that."""
    causes = {(finding.call, finding.kind) for finding in findings}
    kept: list[Finding] = []
    for finding in findings:
        cut_short = any((finding.call, kind) in causes for kind in _CUTS_SHORT)
        if finding.kind == "goal_missed" and cut_short:
            continue
        if finding.kind == "says_again" and (finding.call, "echoes") in causes:
            continue
        if finding not in kept and not any(
            _is_shadow(finding, other) for other in findings
        ):
            kept.append(finding)
    return sorted(kept, key=lambda finding: (finding.call, finding.at_s, finding.kind))


def _is_shadow(finding: Finding, other: Finding) -> bool:
    """Whether the other finding says more about the same turns."""
    is_same_place = other.call == finding.call and bool(
        set(other.turns) & set(finding.turns)
    )
    return is_same_place and other.kind in _SHADOWS.get(finding.kind, ())


def _verdict(findings: list[Finding], criteria: list[CheckedCriterion]) -> Verdict:
    """Only the agent's faults fail a run; faults of the line or the tester leave it open."""
    states = {item.state for item in criteria}
    if any(finding.is_bug for finding in findings):
        return "failed"
    if "re-listen" in states:
        return "re-listen"
    is_spoilt = any(
        finding.who != "agent" and finding.severity in ("critical", "major")
        for finding in findings
    )
    return "inconclusive" if is_spoilt or states & {"missed", "unknown"} else "passed"
