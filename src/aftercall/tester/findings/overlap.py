"""Who talked over whom, and who gave way.

A caller who was not told to interrupt never counts as interrupting.
"""

from collections.abc import Iterator

from aftercall.tester.finding import CallView, Finding, Severity
from aftercall.tester.record import Span
from aftercall.tester.scenario import Who

MIN_OVERLAP_S = 0.25
SAME_MOMENT_S = 0.2
NEAR_END_S = 0.15
_ENDINGS = (".", "?", "!", "…", '"', "'", ")", ":")


def find(view: CallView) -> Iterator[Finding]:
    if view.record.line != "text":
        yield from _talked_over(view)
        yield from _did_not_yield(view)
    yield from _broke_off(view)


def _talked_over(view: CallView) -> Iterator[Finding]:
    for number, caller in view.caller_turns():
        for other, agent in view.agent_turns():
            if (
                agent.is_estimated
                or caller.is_estimated
                or agent.segment.overlap_s(caller.segment) < MIN_OVERLAP_S
            ):
                continue
            if caller.start_s + SAME_MOMENT_S < agent.start_s < caller.end_s - NEAR_END_S:
                who: Who = "unknown" if caller.is_planned_overlap else "agent"
                severity: Severity = "minor" if who == "unknown" else "major"
                yield view.finding(
                    "talks_over_caller", severity, who, _overlap(agent, caller), number, other
                )
            elif not caller.is_planned_overlap and agent.start_s <= caller.start_s + SAME_MOMENT_S:
                yield view.finding(
                    "collision",
                    "info",
                    "tester",
                    f"both began to speak: {_overlap(agent, caller)}",
                    other,
                    number,
                )


def _overlap(agent: Span, caller: Span) -> str:
    return f"{agent.segment.overlap_s(caller.segment):.1f} s of both speaking at once"


def _did_not_yield(view: CallView) -> Iterator[Finding]:
    limit_s = view.scenario.limits.yield_ms / 1000
    for number, caller in view.caller_turns():
        if not caller.is_planned_overlap:
            continue
        for other, agent in view.agent_turns():
            if (
                agent.start_s < caller.start_s < agent.end_s
                and agent.end_s - caller.start_s > limit_s
            ):
                text = f"interrupted, the agent went on for {agent.end_s - caller.start_s:.1f} s"
                yield view.finding(
                    "does_not_yield", "major", view.blame(number), text, other, number
                )


def _broke_off(view: CallView) -> Iterator[Finding]:
    """A sentence that ends nowhere, from an agent that otherwise ends its sentences."""
    agent = list(view.agent_turns())
    ended = [span for _, span in agent if span.text.rstrip().endswith(_ENDINGS)]
    if len(ended) < 2:
        return
    for place, (number, span) in enumerate(agent):
        text = span.text.rstrip()
        if not text or text.endswith(_ENDINGS) or span.is_cut or _was_interrupted(view, span):
            continue
        if (
            place + 1 < len(agent)
            and view.spans[number : number + 1]
            and view.spans[number].who == "agent"
        ):
            continue  # goes on after a pause
        if place + 1 == len(agent) and view.record.ended_by in ("caller", "limit", "line"):
            who: Who = "line" if view.record.ended_by == "line" else "tester"
            yield view.finding(
                "broken_off",
                "info",
                who,
                "the agent was still speaking when the call ended",
                number,
            )
            continue
        yield view.finding(
            "broken_off",
            "major",
            "agent",
            "the agent broke off in the middle of a sentence",
            number,
        )


def _was_interrupted(view: CallView, span: Span) -> bool:
    return any(
        span.start_s < caller.start_s < span.end_s + NEAR_END_S for _, caller in view.caller_turns()
    )
