"""A run of a scenario, scored: every rule over every call, every criterion with its evidence,
one verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aftercall.tester.finding import CallView, Finding, Rule
from aftercall.tester.findings import (
    connection,
    consistency,
    outcome,
    overlap,
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
    *(
        timing.find,
        overlap.find,
        repetition.find,
        outcome.find,
        trust.find,
        consistency.find,
        speech.find,
        connection.find,
    ),
)
Verdict = Literal["passed", "failed", "inconclusive", "re-listen"]


@dataclass(frozen=True)
class JudgedExpectation:
    """What a probe or a judging model says about a criterion."""

    criterion: str
    state: Literal["met", "missed", "re-listen", "unknown"]
    reason: str = ""
    call: int = 1
    turns: tuple[int, ...] = ()
    quote: str = ""


@dataclass(frozen=True)
class CheckedCriterion:
    """A criterion, and how it stands."""

    name: str
    state: Literal["met", "missed", "re-listen", "unknown"]
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


def score(
    scenario: Scenario,
    run: int,
    records: Sequence[CallRecord],
    judged: Sequence[JudgedExpectation] = (),
) -> ScenarioScore:
    views = [_view(scenario, record) for record in records]
    findings = [finding for view in views for finding in view.tester_faults]
    findings += [finding for view in views for rule in RULES for finding in rule(view)]
    criteria = []
    for criterion in (*scenario.success, *_judged_turns(scenario)):
        checked, fault = _check(criterion, views, judged)
        criteria.append(checked)
        findings += [fault] if fault is not None else []
    findings = _without_echoes(findings)
    verdict = _verdict(findings, criteria)
    measures = tuple(measure(view) for view in views)
    return ScenarioScore(
        scenario,
        run,
        tuple(records),
        tuple(findings),
        tuple(criteria),
        measures,
        verdict,
        tuple(judged),
    )


def _judged_turns(scenario: Scenario) -> list[Criterion]:
    """What is expected of single turns, as far as it takes judgement."""
    return [
        Criterion(judged=sentence, call=number)
        for number, plan in enumerate(scenario.calls, 1)
        for turn in plan.turns
        if turn.expect is not None
        for sentence in turn.expect.judged
    ]


def _view(scenario: Scenario, record: CallRecord) -> CallView:
    return CallView(record, scenario, tuple(script.find(CallView(record, scenario))))


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
        return CheckedCriterion(
            name, "unknown", "the agent's words were not recognised, only its timing"
        ), None
    met = [outcome.is_met(view, criterion) for view in chosen]
    if all(met) if criterion.not_said else any(met):
        evidence = next(
            (found[1] for view in chosen if (found := view.find_said(criterion.said))), ""
        )
        return CheckedCriterion(name, "met", evidence), None
    failing = next(
        (view for view, is_met in zip(chosen, met, strict=True) if not is_met), chosen[-1]
    )
    return CheckedCriterion(name, "missed"), outcome.missed(failing, criterion)


def _check_judged(
    criterion: Criterion, name: str, views: list[CallView], judged: Sequence[JudgedExpectation]
) -> tuple[CheckedCriterion, Finding | None]:
    key = criterion.probe or criterion.judged
    verdict = next((item for item in judged if item.criterion == key), None)
    if verdict is None or verdict.state in ("unknown", "re-listen") or not views:
        return CheckedCriterion(
            name,
            verdict.state if verdict else "unknown",
            verdict.reason if verdict else "nobody judged it",
        ), None
    if verdict.state == "met":
        return CheckedCriterion(name, "met", verdict.quote or verdict.reason), None
    view = next((item for item in views if item.record.number == verdict.call), views[-1])
    kind = "probe_failed" if criterion.probe else "judged_missed"
    who = outcome.blame_ending(view)
    return CheckedCriterion(name, "missed", verdict.reason), view.finding(
        kind, "critical", who, f"{name}: {verdict.reason}", *verdict.turns, detail=name
    )


def _without_echoes(findings: list[Finding]) -> list[Finding]:
    """One cause, one finding: a call that never came about, or that the agent ended, misses its
    goal because of that.
    """
    causes = {(finding.call, finding.kind) for finding in findings}
    kept = []
    for finding in findings:
        cut_short = {
            (finding.call, kind)
            for kind in (
                "never_spoke",
                "hung_up_early",
                "line_broke",
                "echoes",
                "refusal_loop",
                "stalls",
            )
        }
        if finding.kind == "goal_missed" and causes & cut_short:
            continue
        if finding.kind == "says_again" and (finding.call, "echoes") in causes:
            continue
        if any(_is_shadow(finding, other) for other in findings):
            continue
        if finding not in kept:
            kept.append(finding)
    return sorted(kept, key=lambda finding: (finding.call, finding.at_s, finding.kind))


_SHADOWS = {
    "forbidden_words": ("leak",),
    "expectation_missed": ("forbidden_words", "never_spoke"),
    "slow_answer": ("expectation_missed",),
}


def _is_shadow(finding: Finding, other: Finding) -> bool:
    """The same turns found wanting twice: the rule that says more about it stands for both."""
    return (
        other.kind in _SHADOWS.get(finding.kind, ())
        and other.call == finding.call
        and bool(set(other.turns) & set(finding.turns))
    )


def _verdict(findings: list[Finding], criteria: list[CheckedCriterion]) -> Verdict:
    """Only what the agent did fails a run; what the line or the tester did leaves it open."""
    if any(finding.is_bug for finding in findings):
        return "failed"
    if any(item.state == "re-listen" for item in criteria):
        return "re-listen"
    spoilt = any(
        finding.who != "agent" and finding.severity in ("critical", "major") for finding in findings
    )
    return (
        "inconclusive"
        if spoilt or any(item.state in ("missed", "unknown") for item in criteria)
        else "passed"
    )
