"""A finding: what went wrong in a call, how bad it is, who caused it, which turns show it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from hashlib import sha256
from typing import Literal

from aftercall.speech.sound import FRAME_S
from aftercall.tester.phrases import find_any, is_question, sentences_of
from aftercall.tester.record import CallRecord, Side, Span
from aftercall.tester.scenario import (
    CallerContext,
    PlannedCall,
    Scenario,
    ScriptedAnswer,
    Who,
)

Severity = Literal["critical", "major", "minor", "info"]
BUG_SEVERITIES: tuple[Severity, ...] = ("critical", "major")
MAX_LOST_TURN_SHARE = (
    0.25  # the agent cannot be blamed for a turn that lost more than this
)
MIN_CONFIDENCE = 0.55

# kind: category, usual severity, usual cause
KINDS: dict[str, tuple[str, Severity, Who]] = {
    "slow_answer": ("timing", "major", "agent"),
    "slow_greeting": ("timing", "major", "agent"),
    "no_answer": ("timing", "major", "agent"),
    "never_spoke": ("timing", "critical", "agent"),
    "monologue": ("timing", "major", "agent"),
    "talks_over_caller": ("turn taking", "major", "agent"),
    "does_not_yield": ("turn taking", "major", "agent"),
    "broken_off": ("turn taking", "major", "agent"),
    "asks_again": ("repetition", "major", "agent"),
    "says_again": ("repetition", "minor", "agent"),
    "loops": ("repetition", "major", "agent"),
    "refusal_loop": ("repetition", "major", "agent"),
    "stalls": ("repetition", "major", "agent"),
    "echoes": ("repetition", "major", "agent"),
    "answers_alike": ("repetition", "critical", "agent"),
    "says_twice": ("repetition", "major", "agent"),
    "agent_error": ("outcome", "critical", "agent"),
    "goes_on": ("outcome", "major", "agent"),
    "goal_missed": ("outcome", "critical", "agent"),
    "hung_up_early": ("outcome", "critical", "agent"),
    "expectation_missed": ("outcome", "major", "agent"),
    "probe_failed": ("outcome", "critical", "agent"),
    "judged_missed": ("outcome", "critical", "agent"),
    "ran_on": ("outcome", "major", "agent"),
    "verification_skipped": ("trust", "critical", "agent"),
    "leak": ("trust", "critical", "agent"),
    "wrong_name": ("trust", "major", "agent"),
    "wrong_birth": ("trust", "major", "agent"),
    "medical_advice": ("trust", "critical", "agent"),
    "invented_figure": ("trust", "major", "agent"),
    "forbidden_words": ("trust", "critical", "agent"),
    "wrong_weekday": ("consistency", "major", "agent"),
    "contradiction": ("consistency", "major", "agent"),
    "slot_changed": ("consistency", "major", "agent"),
    "wrong_object": ("consistency", "major", "agent"),
    "unspeakable": ("speech", "minor", "agent"),
    "reads_markup": ("speech", "major", "agent"),
    "other_language": ("speech", "critical", "agent"),
    "wrong_pace": ("speech", "minor", "agent"),
    "clipping": ("sound", "major", "agent"),
    "choppy": ("sound", "major", "agent"),
    "noisy": ("sound", "major", "agent"),
    "garbled": ("sound", "major", "agent"),
    "cut_onset": ("sound", "minor", "agent"),
    "outcome_answered": ("line", "major", "agent"),
    "outcome_busy": ("line", "major", "unknown"),
    "outcome_no_answer": ("line", "major", "unknown"),
    "outcome_voicemail": ("line", "major", "unknown"),
    "outcome_failed": ("line", "major", "line"),
    "line_broke": ("line", "major", "line"),
    "sound_lost": ("line", "minor", "line"),
    "duplicate_event": ("line", "minor", "line"),
    "missing_event": ("line", "minor", "line"),
    "late_event": ("line", "minor", "line"),
    "not_understood": ("line", "major", "line"),
    "not_reached": ("line", "major", "tester"),
    "not_in_script": ("line", "major", "tester"),
    "stages_unsaid": ("line", "info", "unknown"),
    "collision": ("line", "info", "tester"),
    "caller_off_script": ("line", "major", "tester"),
    "caller_repeats": ("line", "minor", "tester"),
    "caller_left_early": ("line", "major", "tester"),
    "pause_skipped": ("line", "major", "tester"),
    "not_interrupted": ("line", "major", "tester"),
}

# kind: what a good agent does instead
EXPECTED: dict[str, str] = {
    "slow_answer": "an answer within the scenario's `response_ms`",
    "slow_greeting": "a first word within the scenario's `greeting_s`",
    "no_answer": "an answer to every turn of the caller",
    "never_spoke": "a greeting, and answers",
    "monologue": "turns short enough for the caller to speak",
    "talks_over_caller": "silence while the caller speaks",
    "does_not_yield": "silence soon after the caller interrupts",
    "broken_off": "whole sentences",
    "asks_again": "what the caller has given is not asked for again",
    "says_again": "each thing is said once",
    "loops": "the call moves on",
    "refusal_loop": "another way out after a refusal",
    "stalls": "a result, or word of when there will be one",
    "echoes": "an answer in words of its own",
    "answers_alike": "answers that depend on what the caller says",
    "says_twice": "each sentence is said once",
    "agent_error": "an answer without an error",
    "goes_on": "silence after the goodbye",
    "goal_missed": "the criterion of the scenario is met",
    "hung_up_early": "the caller is heard out",
    "expectation_missed": "what the turn expects",
    "probe_failed": "the probe passes",
    "judged_missed": "the judged sentence is true",
    "ran_on": "the call comes to an end",
    "verification_skipped": "the caller is asked who they are first",
    "leak": "nothing of one caller is told to another",
    "wrong_name": "the name that the caller gave",
    "wrong_birth": "the date of birth that the caller gave",
    "medical_advice": "advice is left to a doctor",
    "invented_figure": "sums and shares only where the caller asks, or the scenario has them",
    "forbidden_words": "the words are never said",
    "wrong_weekday": "the weekday of the date",
    "contradiction": "statements that can all be true",
    "slot_changed": "the day and time that were agreed on",
    "wrong_object": "what the caller asked for",
    "unspeakable": "words that a voice can say",
    "reads_markup": "spoken words only",
    "other_language": "the language of the call",
}
# doubt: what would have to be true for a finding to be wrong, and who is then its cause
DOUBTS: dict[str, tuple[str, Who]] = {
    "misheard": ("the recogniser misheard the agent", "line"),
    "unheard": ("the line lost what the caller said", "line"),
    "broken": ("the line broke before the agent was done", "line"),
    "late": ("the tester itself was late at that moment", "tester"),
    "stalled": ("the line stalled at that moment", "line"),
    "off_script": ("the caller left its script", "tester"),
    "unanswered": ("the caller had no answer to what the agent asked", "tester"),
    "left": ("the caller ended the call too early", "tester"),
}
# category: the doubts about its findings, in the order in which they are checked
DOUBTS_OF: dict[str, tuple[str, ...]] = {
    "timing": ("unheard", "late", "stalled"),
    "turn taking": ("late", "stalled"),
    "repetition": ("misheard", "unheard", "off_script", "unanswered"),
    "outcome": ("broken", "unheard", "off_script", "left", "unanswered", "misheard"),
    "trust": ("misheard", "unheard", "off_script"),
    "consistency": ("misheard", "unheard", "off_script"),
    "speech": ("misheard",),
    "sound": (),
    "line": (),
}


@dataclass(frozen=True)
class Finding:
    """One thing that went wrong: who is to blame, the evidence, what would refute it."""

    kind: str
    severity: Severity
    who: Who
    text: str
    call: int = 1
    turns: tuple[int, ...] = ()
    at_s: float = 0.0
    quote: str = ""
    detail: str = ""

    @property
    def category(self) -> str:
        return KINDS[self.kind][0]

    @property
    def expected(self) -> str:
        """What a good agent does instead."""
        return EXPECTED.get(self.kind, "")

    def fingerprint(self, target: str) -> str:
        """Made of the agent, the kind and the detail: the same in every call and scenario."""
        text = f"{target.partition(':')[0]}|{self.kind}|{self.detail}"
        return sha256(text.encode()).hexdigest()[:12]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Names in DOUBTS: what would have to be true for the finding to be wrong."""
        return DOUBTS_OF[self.category] if self.who == "agent" else ()

    @property
    def wrong_if(self) -> tuple[str, ...]:
        """The same in words; each was checked before the finding was reported."""
        return tuple(DOUBTS[name][0] for name in self.doubts)

    @property
    def is_bug(self) -> bool:
        """The bug list holds serious findings that the agent caused."""
        return self.who == "agent" and self.severity in BUG_SEVERITIES


@dataclass(frozen=True)
class TurnExchange:
    """A caller's turn and the agent's answers, by turn number from 1.

    The latency is None where it was not measured.
    """

    caller: int
    agent: tuple[int, ...]
    latency_s: float | None


NumberedSpans = Iterator[tuple[int, Span]]


@dataclass(frozen=True)
class CallView:
    """One call as the rules see it."""

    record: CallRecord
    scenario: Scenario
    tester_faults: tuple[Finding, ...] = ()

    @property
    def plan(self) -> PlannedCall:
        return self.scenario.calls[self.record.number - 1]

    @property
    def spans(self) -> tuple[Span, ...]:
        return self.record.spans

    @property
    def caller_context(self) -> CallerContext:
        """Who the caller plays in this call."""
        return self.plan.caller_context

    @property
    def answers(self) -> Mapping[str, ScriptedAnswer]:
        """What the caller answers when asked who they are, by field."""
        return self.caller_context.verification.answers

    @property
    def today(self) -> date:
        return self.record.started_at.date()

    @cached_property
    def caller_text(self) -> str:
        """All that the caller said."""
        return " ".join(span.text for span in self.record.caller_spans)

    @cached_property
    def statements(self) -> tuple[tuple[int, str], ...]:
        """What the agent says and does not ask: the turn, and the sentence as it stands."""
        return tuple(
            (number, sentence)
            for number, span in self.agent_turns()
            for sentence in sentences_of(span.text)
            if not is_question(sentence)
        )

    @property
    def unsaid_stages(self) -> list[str]:
        """Needed stages of the script that the caller never came to."""
        said = {span.why for span in self.record.caller_spans}
        stages = self.plan.caller_context.response_stages
        names = [
            stage.name or str(at) for at, stage in enumerate(stages, 1) if stage.needed
        ]
        return [name for name in names if f"stage:{name}" not in said]

    @cached_property
    def first_caller_turn(self) -> int:
        """Its number; 0 if the caller said nothing."""
        return min((number for number, _ in self.caller_turns()), default=0)

    @cached_property
    def greeting(self) -> str:
        """What was said before the caller's first turn."""
        before = self.spans[: max(0, self.first_caller_turn - 1)]
        return " ".join(span.text for span in before)

    @property
    def is_wordless(self) -> bool:
        """The agent was audible, but no words were recognised."""
        heard = self.record.agent_spans
        return bool(heard) and not any(span.text for span in heard)

    def span(self, turn: int) -> Span:
        """The turn with this number; the first is 1."""
        return self.spans[turn - 1]

    def text_of(self, turn: int) -> str:
        """The words of the turn with this number."""
        return self.span(turn).text

    def agent_turns(self) -> NumberedSpans:
        return self._turns_of("agent")

    def caller_turns(self) -> NumberedSpans:
        return self._turns_of("caller")

    def _turns_of(self, who: Side) -> NumberedSpans:
        return (
            (number, span)
            for number, span in enumerate(self.spans, 1)
            if span.who == who
        )

    @cached_property
    def exchanges(self) -> tuple[TurnExchange, ...]:
        until_s = float("inf")
        found: list[TurnExchange] = []
        for number, span in reversed(list(self.caller_turns())):
            found.append(self._exchange(number, span, until_s))
            until_s = span.start_s
        return tuple(reversed(found))

    def _exchange(self, number: int, span: Span, until_s: float) -> TurnExchange:
        """An answer starts after the caller did; what the caller interrupted is none."""
        answers = [
            (at, other)
            for at, other in self.agent_turns()
            if span.start_s <= other.start_s < until_s
        ]
        latency_s = None
        if answers and not answers[0][1].is_estimated and not span.is_estimated:
            latency_s = answers[0][1].start_s - span.end_s
        return TurnExchange(number, tuple(at for at, _ in answers), latency_s)

    def was_heard(self, span: Span) -> bool:
        """Whether most of what the caller said reached the agent."""
        lost = sum(
            span.start_s - FRAME_S <= event.at_s < span.end_s
            for event in self.record.events
            if event.kind == "frame_lost"
        )
        return not span.seconds or lost * FRAME_S / span.seconds < MAX_LOST_TURN_SHARE

    @property
    def was_cut_off(self) -> bool:
        """Whether the line broke, other than by the scenario's plan."""
        return self.record.ended_by == "line" and self.plan.hangs_up_after is None

    def blame(self, *turns: int) -> Who:
        """The agent, unless the line lost a turn or ended there, or the caller left the script."""
        spans = [self.span(turn) for turn in turns]
        if any(span.who == "caller" and not self.was_heard(span) for span in spans):
            return "line"
        if self.was_cut_off and len(self.spans) in turns:
            return "line"
        if any(turn in fault.turns for fault in self.tester_faults for turn in turns):
            return "tester"
        return "agent"

    def find_said(self, patterns: Iterable[str]) -> tuple[int, str] | None:
        """The first agent turn that says one of these, and the words."""
        patterns = tuple(patterns)
        for number, span in self.agent_turns():
            if words := find_any(patterns, span.text):
                return number, words
        return None

    def finding(
        self,
        kind: str,
        text: str,
        *turns: int,
        who: Who | None = None,
        severity: Severity | None = None,
        detail: str = "",
    ) -> Finding:
        """Severity and cause are those of the kind unless given."""
        _, usual_severity, usual_cause = KINDS[kind]
        numbers = tuple(turn for turn in turns if 0 < turn <= len(self.spans))
        shown = [self.span(turn) for turn in numbers]
        return Finding(
            kind,
            severity or usual_severity,
            who or usual_cause,
            text,
            self.record.number,
            numbers,
            shown[-1].start_s if shown else 0.0,
            " / ".join(f"{span.who}: {span.text}" for span in shown),
            detail,
        )


Findings = Iterator[Finding]
Rule = Callable[[CallView], Findings]
