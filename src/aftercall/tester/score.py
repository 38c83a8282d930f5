"""Scores a run of a scenario: rules over every call, criteria with evidence, one verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from aftercall.tester.criterion import Criterion
from aftercall.tester.doubt import check_doubts
from aftercall.tester.evidence import weigh_criterion
from aftercall.tester.finding import CallView, Finding, Rule
from aftercall.tester.findings import (
    consistency,
    outcome,
    repetition,
    script,
    sound,
    speech,
    timing,
    trust,
)
from aftercall.tester.measures import measure
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Scenario

RULES: tuple[Rule, ...] = (
    timing.find,
    repetition.find,
    outcome.find,
    trust.find,
    consistency.find,
    speech.find,
    sound.find,
)
Verdict = Literal["passed", "failed", "inconclusive", "re-listen"]
CriterionState = Literal["met", "missed", "re-listen", "unknown"]
_CUTS_SHORT = (
    "agent_error",
    "answers_alike",
    "never_spoke",
    "hung_up_early",
    "line_broke",
    "echoes",
    "refusal_loop",
    "stalls",
    "slot_changed",
    "other_language",
)
# a finding of the kind on the left follows from one on the right in the same call
_FOLLOWS: dict[str, tuple[str, ...]] = {
    "goal_missed": _CUTS_SHORT,
    "stages_unsaid": _CUTS_SHORT,
    "hung_up_early": ("agent_error", "slot_changed", "other_language"),
    "never_spoke": ("agent_error",),
    "no_answer": ("agent_error",),
    "expectation_missed": ("agent_error",),
    "broken_off": ("agent_error",),
    "says_again": ("echoes",),
}
_REASONS = {"tester": 0, "line": 1, "unknown": 2}
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
    reason: str = ""
    """Why the run is neither passed nor failed."""

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
    for criterion in all_criteria(scenario):
        checked, fault = _check(criterion, views, judged)
        criteria.append(checked)
        if fault is not None:
            findings.append(fault)
    by_number = {view.record.number: view for view in views}
    findings = [check_doubts(by_number[item.call], item) for item in findings]
    findings = _without_echoes(_without_gaps(findings, criteria))
    verdict, reason = _decide(findings, criteria)
    return ScenarioScore(
        scenario,
        run,
        tuple(records),
        tuple(findings),
        tuple(criteria),
        tuple(measure(view) for view in views),
        verdict,
        tuple(judged),
        reason,
    )


def _without_gaps(
    findings: list[Finding], criteria: list[CheckedCriterion]
) -> list[Finding]:
    """A question without an answer in the script does no harm where all criteria were met."""
    if not criteria or any(item.state != "met" for item in criteria):
        return findings
    return [
        replace(item, severity="info") if item.kind == "not_in_script" else item
        for item in findings
    ]


def all_criteria(scenario: Scenario) -> list[Criterion]:
    """Success, probes that no criterion names, and turns that a model judges."""
    named = {criterion.probe for criterion in scenario.success}
    probes = [
        Criterion(probe=item.name) for item in scenario.probes if item.name not in named
    ]
    return [*scenario.success, *probes] + [
        Criterion(judged=sentence, call=number)
        for number, plan in enumerate(scenario.calls, 1)
        for turn in plan.turns
        if turn.expect is not None
        for sentence in turn.expect.judged
    ]


def _check(
    criterion: Criterion, views: list[CallView], judged: Sequence[JudgedExpectation]
) -> tuple[CheckedCriterion, Finding | None]:
    """Deeds decide before words: a probe or a tool call, then a model, then the matcher."""
    name = outcome.name_of(criterion)
    chosen = [view for view in views if criterion.call in (None, view.record.number)]
    if criterion.probe is not None:
        return _check_judged(criterion, name, chosen or views, judged)
    if all(view.record.outcome != "answered" for view in chosen):
        return CheckedCriterion(name, "unknown", "the call did not take place"), None
    if called := outcome.find_tool_call(chosen, criterion):
        return CheckedCriterion(name, "met", called), None
    if reported := outcome.find_other_deed(chosen, criterion):
        reason = (
            f"said at most; the agent {reported} for another wish, but nothing here"
        )
        fault = outcome.missed(chosen[-1], criterion, reason)
        return CheckedCriterion(name, "missed", reason), fault
    if criterion.tool is not None:
        fault = outcome.missed(chosen[-1], criterion, "the agent did not call it")
        return CheckedCriterion(name, "missed"), fault
    if all(view.is_wordless for view in chosen):
        evidence = "the agent's words were not recognised, only its timing"
        return CheckedCriterion(name, "unknown", evidence), None
    decided = {item.criterion for item in judged if item.state != "unknown"}
    if criterion.judged is not None and (
        criterion.deed is None or criterion.judged in decided
    ):
        return _check_judged(criterion, name, chosen, judged)
    return _check_words(criterion, name, chosen)


def _check_words(
    criterion: Criterion, name: str, views: list[CallView]
) -> tuple[CheckedCriterion, Finding | None]:
    """The best call counts; what must not be said must be unsaid in every call."""
    weighed = [(weigh_criterion(view, criterion), view) for view in views]
    order = ("missed", "unknown", "met")
    if not criterion.not_said:
        order = ("met", "unknown", "missed")
    best, view = min(weighed, key=lambda pair: order.index(pair[0].state))
    if best.state != "missed":
        return CheckedCriterion(name, best.state, best.quote or best.reason), None
    fault = outcome.missed(view, criterion, best.reason, best.turns)
    return CheckedCriterion(name, "missed", best.reason), fault


def _check_judged(
    criterion: Criterion,
    name: str,
    views: list[CallView],
    judged: Sequence[JudgedExpectation],
) -> tuple[CheckedCriterion, Finding | None]:
    key = criterion.probe or criterion.judged
    verdict = next((item for item in judged if item.criterion == key), None)
    if verdict is None:
        reason = "no model is set to judge it; give `deed` and `details`, or a probe"
        return CheckedCriterion(name, "unknown", reason), None
    if verdict.state in ("unknown", "re-listen"):
        return CheckedCriterion(name, verdict.state, verdict.reason), None
    if verdict.state == "met":
        return CheckedCriterion(name, "met", verdict.quote or verdict.reason), None
    view = next(
        (item for item in views if item.record.number == verdict.call), views[-1]
    )
    kind = "probe_failed" if criterion.probe else "judged_missed"
    text = f"{name}: {verdict.reason}"
    fault = view.finding(kind, text, *verdict.turns, detail=name)
    return CheckedCriterion(name, "missed", verdict.reason), fault


def _without_echoes(findings: list[Finding]) -> list[Finding]:
    """One finding for one cause: a call that was cut short misses its goal because of that."""
    causes = {(finding.call, finding.kind) for finding in findings}
    kept: list[Finding] = []
    for finding in findings:
        follows = _FOLLOWS.get(finding.kind, ())
        if any((finding.call, kind) in causes for kind in follows):
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


def _decide(
    findings: list[Finding], criteria: list[CheckedCriterion]
) -> tuple[Verdict, str]:
    """Only the agent's faults fail a run; faults of the line or the tester leave it open."""
    if any(finding.is_bug for finding in findings):
        return "failed", ""
    heard_badly = [item for item in criteria if item.state == "re-listen"]
    if heard_badly:
        return "re-listen", f"{heard_badly[0].name}: {heard_badly[0].evidence}"
    spoilt = [
        finding
        for finding in findings
        if finding.who != "agent" and finding.severity in ("critical", "major")
    ]
    if spoilt:
        first = min(spoilt, key=lambda item: _REASONS.get(item.who, 3))
        return "inconclusive", f"{first.text} ({first.who})"
    left = [item for item in criteria if item.state in ("missed", "unknown")]
    if left:
        return "inconclusive", f"{left[0].name}: {left[0].evidence or left[0].state}"
    return "passed", ""
