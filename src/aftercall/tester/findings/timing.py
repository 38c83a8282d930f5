"""Answers that come late, or not at all; an agent that never stops."""

from collections.abc import Iterator

from aftercall.tester.finding import CallView, Finding, Severity

MONOLOGUE_S = 40.0


def find(view: CallView) -> Iterator[Finding]:
    if view.record.outcome != "answered":
        return
    agent = list(view.agent_turns())
    if not agent:
        yield _say_nothing(view)
        return
    yield from _greeting(view)
    yield from _answers(view)
    for number, span in agent:
        if span.seconds > MONOLOGUE_S:
            yield view.finding(
                "monologue",
                "major",
                "agent",
                f"the agent spoke for {span.seconds:.0f} s without a pause",
                number,
            )


def _say_nothing(view: CallView) -> Finding:
    """No words came; where the recording has a voice on it, that is not the agent's doing."""
    heard_s = sum(
        float(event.detail) for event in view.record.events if event.kind == "unrecognised"
    )
    if heard_s:
        return view.finding(
            "not_understood",
            "major",
            "unknown",
            f"the agent spoke for {heard_s:.1f} s, but no words were recognised",
        )
    return view.finding("never_spoke", "critical", "agent", "the agent never said a word")


def _greeting(view: CallView) -> Iterator[Finding]:
    first = view.record.agent_spans[0]
    if not first.is_estimated and first.start_s > view.scenario.limits.greeting_s:
        yield view.finding(
            "slow_greeting",
            "major",
            "agent",
            f"the agent's first word came after {first.start_s:.1f} s",
            view.spans.index(first) + 1,
        )


def _answers(view: CallView) -> Iterator[Finding]:
    limit_s = view.scenario.limits.response_ms / 1000
    last = view.exchanges[-1].caller if view.exchanges else 0
    for exchange in view.exchanges:
        span = view.spans[exchange.caller - 1]
        if not exchange.agent:
            if exchange.caller == last and (
                view.record.ended_by == "caller" and not _was_waited_for(view, span.end_s)
            ):
                continue  # the caller's own last word
            yield from _unanswered(view, exchange.caller, is_last=exchange.caller == last)
        elif exchange.latency_s is not None and exchange.latency_s > limit_s:
            severity: Severity = "major" if exchange.latency_s > 1.5 * limit_s else "minor"
            text = f"the answer came after {exchange.latency_s:.2f} s"
            yield view.finding(
                "slow_answer",
                severity,
                view.blame(exchange.caller),
                text,
                exchange.caller,
                exchange.agent[0],
            )


def _unanswered(view: CallView, turn: int, *, is_last: bool) -> Iterator[Finding]:
    span = view.spans[turn - 1]
    if span.why in ("goodbye", "closing") or (
        view.record.ended_by in ("line", "agent") and is_last
    ):
        return
    following = [other for _, other in view.caller_turns() if other.start_s > span.end_s]
    if following and following[0].is_planned_overlap:
        return
    who = view.blame(turn)
    if following and following[0].start_s - span.end_s < view.scenario.limits.response_ms / 1000:
        who = "tester" if who == "agent" else who
    yield view.finding("no_answer", "major", who, "the agent did not answer", turn)


def _was_waited_for(view: CallView, since_s: float) -> bool:
    return any(event.kind == "dead_air" and event.at_s >= since_s for event in view.record.events)
