"""Scores a run of a scenario: rules over every call, criteria with evidence, one verdict.

Each finding is checked against what would make it wrong, before it is reported. A doubt that
holds moves it from the agent to whoever caused it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from aftercall.model.json_fields import Json
from aftercall.tester.claims import is_denial, is_hollow
from aftercall.tester.criterion import Criterion
from aftercall.tester.evidence import agent_sentences, weigh_criterion
from aftercall.tester.finding import (
    DOUBTS,
    MIN_CONFIDENCE,
    CallView,
    Finding,
    Rule,
    Severity,
)
from aftercall.tester.findings import (
    consistency,
    outcome,
    repetition,
    script,
    speech,
    timing,
    trust,
)
from aftercall.tester.findings.timing import measure
from aftercall.tester.phrases import likeness, word_error_rate, words_of
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Scenario

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
    measures: tuple[Json, ...]
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
    """What went wrong in the calls of one run, and whether each expectation was met."""
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
    """What did no harm, as all criteria were met: a question that the script has no answer to,
    a refusal that was repeated, a wait that had an end.
    """
    if not criteria or any(item.state != "met" for item in criteria):
        return findings
    harmless: dict[str, Severity] = {
        "not_in_script": "info",
        "refusal_loop": "minor",
        "stalls": "minor",
    }
    return [
        replace(item, severity=harmless.get(item.kind, item.severity))
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
    """By the model's verdict; without one it stays undecided."""
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


MIN_LIKENESS = 0.6
MAX_WORD_ERROR_RATE = 0.4
# these are seen in how the agent behaves, not in what the caller understood
_PLAIN_FACTS = (
    *("agent_error", "hung_up_early", "goes_on", "answers_alike", "echoes", "loops"),
)
_ALL_TURNS = ("goal_missed", "probe_failed", "judged_missed", "ran_on")
_BY_WORDS = ("goal_missed",)


def check_doubts(view: CallView, finding: Finding) -> Finding:
    """The finding with the cause that is left."""
    for name in finding.doubts:
        if _CHECKS[name](view, finding):
            reason, who = DOUBTS[name]
            text = f"{finding.text}, but {reason}"
            return replace(finding, who=who, text=text)
    return finding


def is_confirmed(quote: str, transcript: str) -> bool:
    """Whether a second transcript has about the same words somewhere."""
    size, words = len(words_of(quote)), words_of(transcript)
    return any(
        likeness(quote, " ".join(words[at : at + size + 2])) >= MIN_LIKENESS
        for at in range(max(1, len(words) - size + 1))
    )


def _is_misheard(view: CallView, finding: Finding) -> bool:
    """Words the recogniser was unsure of, or that a second transcript does not have.

    A goal that was missed rests on all words: a stretch without any may hold it.
    """
    again = view.record.whisper
    if finding.kind in _BY_WORDS:
        said = " ".join(span.text for span in view.record.agent_spans)
        is_other = again is not None and (
            word_error_rate(again.text, said) > MAX_WORD_ERROR_RATE
        )
        return is_other or _has_lost_words(view)
    spans = [view.span(turn) for turn in finding.turns]
    for span in (span for span in spans if span.who == "agent"):
        if span.confidence is not None and span.confidence < MIN_CONFIDENCE:
            return True
        if again is not None and not is_confirmed(span.text, again.text):
            return True
    return False


def _has_lost_words(view: CallView) -> bool:
    """Stretches of the agent's voice without words, or with words that are unsure."""
    spans = view.record.agent_spans
    return (
        any(event.kind == "unrecognised" for event in view.record.events)
        or any(not words_of(span.text) and span.seconds > 1.0 for span in spans)
        or any((span.confidence or 1.0) < MIN_CONFIDENCE for span in spans)
    )


def _is_unheard(view: CallView, finding: Finding) -> bool:
    callers = view.record.caller_spans
    if finding.kind in _ALL_TURNS:
        lost = sum(not view.was_heard(span) for span in callers)
        return bool(callers) and lost * 3 >= len(callers)
    spans = [view.span(turn) for turn in finding.turns]
    return any(span.who == "caller" and not view.was_heard(span) for span in spans)


def _is_broken(view: CallView, finding: Finding) -> bool:
    if finding.kind not in _ALL_TURNS:
        return False
    is_planned = view.plan.hangs_up_after is not None
    return view.record.ended_by == "line" and not is_planned


def _has_event(kind: str, view: CallView, finding: Finding) -> bool:
    """Whether this happened on the line during the turns of the finding."""
    spans = [view.span(turn) for turn in finding.turns]
    start_s = min((span.start_s for span in spans), default=0.0)
    end_s = max((span.end_s for span in spans), default=-1.0)
    return any(
        event.kind == kind and start_s <= event.at_s <= end_s
        for event in view.record.events
    )


def _left_script(view: CallView, finding: Finding) -> bool:
    if finding.kind in _PLAIN_FACTS:
        return False
    return any(
        fault.severity != "info"
        and fault.kind in ("caller_off_script", "caller_repeats", "not_interrupted")
        and (finding.kind in _ALL_TURNS or set(fault.turns) & set(finding.turns))
        for fault in view.tester_faults
    )


def _has_no_answer(view: CallView, finding: Finding) -> bool:
    """The agent asked what the script does not answer; asked again, it had no answer yet."""
    if finding.kind == "hung_up_early":
        return any(span.why == "gap" for span in view.record.caller_spans[-1:])
    if finding.kind in _PLAIN_FACTS or finding.detail.startswith("not said"):
        return False
    gaps = [fault for fault in view.tester_faults if fault.kind == "not_in_script"]
    if finding.kind in _ALL_TURNS or finding.kind == "refusal_loop":
        return bool(gaps)
    first, last = min(finding.turns, default=0), max(finding.turns, default=0)
    return any(first <= turn < last for gap in gaps for turn in gap.turns)


def _left_early(view: CallView, finding: Finding) -> bool:
    """Also where the pause was skipped that the agent needs to remember a call.

    An agent that says nothing of substance needs no pause for that.
    """
    if finding.kind not in _ALL_TURNS:
        return False
    kinds = {fault.kind for fault in view.tester_faults}
    has_substance = any(
        item.is_statement and (is_denial(item.text) or not is_hollow(item.text))
        for item in agent_sentences(view)
    )
    return "caller_left_early" in kinds or ("pause_skipped" in kinds and has_substance)


_CHECKS: dict[str, Callable[[CallView, Finding], bool]] = {
    "misheard": _is_misheard,
    "unheard": _is_unheard,
    "broken": _is_broken,
    "late": partial(_has_event, "tester_late"),
    "stalled": partial(_has_event, "line_stalled"),
    "off_script": _left_script,
    "unanswered": _has_no_answer,
    "left": _left_early,
}
