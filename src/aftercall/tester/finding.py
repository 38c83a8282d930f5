"""A finding: what went wrong in a call, how bad it is, who caused it, and the turns and times
that show it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from aftercall.tester.phrases import find_any
from aftercall.tester.record import CallRecord, Span
from aftercall.tester.scenario import PlannedCall, Scenario, Who

Severity = Literal["critical", "major", "minor", "info"]
LOST_SHARE = 0.25
MIN_CONFIDENCE = 0.55


@dataclass(frozen=True)
class Finding:
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
    def is_bug(self) -> bool:
        """Whether it enters the bug list: the agent's doing, and more than a remark."""
        return self.who == "agent" and self.severity in ("critical", "major")


@dataclass(frozen=True)
class TurnExchange:
    """One thing the caller said, and what the agent made of it.

    Turn numbers count from 1; a latency that was not measured is None.
    """

    caller: int
    agent: tuple[int, ...]
    latency_s: float | None


@dataclass(frozen=True)
class CallView:
    """One call as the rules see it."""

    record: CallRecord
    scenario: Scenario
    tester_faults: tuple[Finding, ...] = field(default=())

    @property
    def plan(self) -> PlannedCall:
        return self.scenario.calls[self.record.number - 1]

    @property
    def spans(self) -> tuple[Span, ...]:
        return self.record.spans

    @property
    def is_wordless(self) -> bool:
        """The agent was heard, but nobody listened to its words: nothing can be said about them."""
        heard = self.record.agent_spans
        return bool(heard) and not any(span.text for span in heard)

    def agent_turns(self) -> Iterator[tuple[int, Span]]:
        return ((number, span) for number, span in enumerate(self.spans, 1) if span.who == "agent")

    def caller_turns(self) -> Iterator[tuple[int, Span]]:
        return ((number, span) for number, span in enumerate(self.spans, 1) if span.who == "caller")

    @cached_property
    def exchanges(self) -> tuple[TurnExchange, ...]:
        callers = list(self.caller_turns())
        return tuple(
            self._exchange(
                number, span, callers[place + 1][1] if place + 1 < len(callers) else None
            )
            for place, (number, span) in enumerate(callers)
        )

    def _exchange(self, number: int, span: Span, following: Span | None) -> TurnExchange:
        """The answer is what begins after the caller began: what the agent was saying when it
        was cut into is none.
        """
        until_s = following.start_s if following else float("inf")
        answers = [
            (at, other)
            for at, other in self.agent_turns()
            if span.start_s <= other.start_s < until_s
        ]
        first = answers[0][1] if answers else None
        is_measured = first is not None and not (first.is_estimated or span.is_estimated)
        latency = first.start_s - span.end_s if first is not None and is_measured else None
        return TurnExchange(number, tuple(at for at, _ in answers), latency)

    def lost_share(self, span: Span) -> float:
        """How much of what the caller said did not arrive."""
        lost = sum(
            span.start_s - 0.02 <= event.at_s < span.end_s
            for event in self.record.events
            if event.kind == "frame_lost"
        )
        return lost * 0.02 / span.seconds if span.seconds else 0.0

    def was_heard(self, span: Span) -> bool:
        return self.lost_share(span) < LOST_SHARE

    def blame(self, *turns: int) -> Who:
        """The agent, unless the line swallowed what the caller said or the caller was off their
        script there.
        """
        spans = [self.spans[turn - 1] for turn in turns]
        if any(span.who == "caller" and not self.was_heard(span) for span in spans):
            return "line"
        if any(turn in fault.turns for fault in self.tester_faults for turn in turns):
            return "tester"
        return "agent"

    def find_said(self, patterns: Iterable[str], start: int = 1) -> tuple[int, str] | None:
        """The first agent turn that says one of these."""
        patterns = tuple(patterns)
        for number, span in self.agent_turns():
            if number >= start and (words := find_any(patterns, span.text)):
                return number, words
        return None

    def finding(
        self, kind: str, severity: Severity, who: Who, text: str, *turns: int, detail: str = ""
    ) -> Finding:
        numbers = [turn for turn in turns if 0 < turn <= len(self.spans)]
        last = self.spans[numbers[-1] - 1] if numbers else None
        quote = " / ".join(
            f"{self.spans[turn - 1].who}: {self.spans[turn - 1].text}" for turn in numbers
        )
        return Finding(
            kind,
            severity,
            who,
            text,
            self.record.number,
            tuple(numbers),
            last.start_s if last else 0.0,
            quote,
            detail,
        )


Rule = Callable[[CallView], Iterator[Finding]]
