"""What the call was for: criteria, expectations, stages, and how it ended.

Evidence is the agent's words or a probe, never the caller's.
"""

from collections.abc import Iterator

from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import asked_fields, find_any, questions_of
from aftercall.tester.scenario import Criterion, Expect, Who


def find(view: CallView) -> Iterator[Finding]:
    if view.record.outcome != "answered":
        return
    yield from _expectations(view)
    yield from _hung_up(view)
    yield from _stages(view)


def is_met(view: CallView, criterion: Criterion) -> bool | None:
    """Whether this call shows it; None where words alone cannot tell."""
    if criterion.said:
        return view.find_said(criterion.said) is not None
    if criterion.not_said:
        return view.find_said(criterion.not_said) is None
    return None


def name_of(criterion: Criterion) -> str:
    said = " / ".join(criterion.said)
    unsaid = f"never {' / '.join(criterion.not_said)}" if criterion.not_said else ""
    return criterion.name or said or unsaid or criterion.judged or f"probe {criterion.probe}"


def missed(view: CallView, criterion: Criterion) -> Finding:
    """A criterion that this call should have met."""
    if criterion.not_said and (found := view.find_said(criterion.not_said)):
        text = f"said what must not be said: {name_of(criterion)}"
        return view.finding(
            "forbidden_words",
            "critical",
            view.blame(found[0]),
            text,
            found[0],
            detail=name_of(criterion),
        )
    turns = [number for number, _ in view.agent_turns()][-2:]
    return view.finding(
        "goal_missed",
        "critical",
        blame_ending(view),
        f"not shown: {name_of(criterion)}",
        *turns,
        detail=name_of(criterion),
    )


def blame_ending(view: CallView) -> Who:
    """Whose doing it is that the call did not come to its goal."""
    if view.record.ended_by == "line" or view.record.outcome in ("failed", "no-answer"):
        return "line"
    callers = [span for _, span in view.caller_turns()]
    if callers and sum(not view.was_heard(span) for span in callers) * 3 >= len(callers):
        return "line"
    if any(fault.severity != "info" for fault in view.tester_faults):
        return "tester"
    return "agent"


def _expectations(view: CallView) -> Iterator[Finding]:
    for exchange in view.exchanges:
        why = view.spans[exchange.caller - 1].why
        if not why.startswith("turn:"):
            continue
        expect = view.plan.turns[int(why.removeprefix("turn:")) - 1].expect
        if expect is not None:
            yield from _check(view, expect, exchange.caller, exchange.agent, exchange.latency_s)
    yield from _silent_expectations(view)


def _silent_expectations(view: CallView) -> Iterator[Finding]:
    """Turns in which the caller only listens: what the agent says until the caller speaks again."""
    for number, turn in enumerate(view.plan.turns, 1):
        if turn.expect is None or turn.say is not None or turn.dtmf is not None or turn.hang_up:
            continue
        later = [at for at, span in view.caller_turns() if span.why == f"turn:{number + 1}"]
        earlier = [at for at, span in view.caller_turns() if span.why == f"turn:{number - 1}"]
        after, before = (earlier or [0])[0], (later or [len(view.spans) + 1])[0]
        answers = tuple(at for at, _ in view.agent_turns() if after < at < before)
        yield from _check(view, turn.expect, after, answers, None)


def _check(
    view: CallView, expect: Expect, caller: int, answers: tuple[int, ...], latency_s: float | None
) -> Iterator[Finding]:
    heard = " ".join(view.spans[at - 1].text for at in answers)
    turns = ([caller] if caller else []) + list(answers[:2])
    who = view.blame(*turns)
    for pattern in () if view.is_wordless else expect.said:
        if not find_any((pattern,), heard):
            yield view.finding(
                "expectation_missed",
                "major",
                who,
                f"did not say {pattern!r}",
                *turns,
                detail=f"said {pattern}",
            )
    for pattern in expect.not_said:
        if find_any((pattern,), heard):
            yield view.finding(
                "expectation_missed",
                "major",
                who,
                f"said {pattern!r}",
                *turns,
                detail=f"not said {pattern}",
            )
    if expect.asks and not view.is_wordless:
        asked = " ".join(questions_of(heard))
        if not any(
            find_any((pattern,), asked) or pattern in asked_fields(heard) for pattern in expect.asks
        ):
            yield view.finding(
                "expectation_missed",
                "major",
                who,
                f"did not ask {' or '.join(expect.asks)}",
                *turns,
                detail=f"asks {expect.asks[0]}",
            )
    is_unmeasured = latency_s is None and bool(answers)
    if (
        expect.within_ms is not None
        and not is_unmeasured
        and (latency_s is None or latency_s * 1000 > expect.within_ms)
    ):
        took = "no answer" if latency_s is None else f"{latency_s * 1000:.0f} ms"
        yield view.finding(
            "expectation_missed",
            "major",
            who,
            f"answered within {expect.within_ms} ms: {took}",
            *turns,
            detail="within_ms",
        )


def _hung_up(view: CallView) -> Iterator[Finding]:
    record = view.record
    if record.ended_by != "agent" or any(
        span.why in ("closing", "goodbye") or "gave_up" in span.why for span in record.caller_spans
    ):
        return
    spoken = len(record.caller_spans)
    open_criteria = [
        item
        for item in view.scenario.success
        if item.said and item.call in (None, record.number) and not is_met(view, item)
    ]
    unsaid = [
        turn
        for turn in range(1, len(view.plan.turns) + 1)
        if not any(span.why == f"turn:{turn}" for span in record.caller_spans)
    ]
    if (
        spoken == 0
        or open_criteria
        or (unsaid and any(view.plan.turns[turn - 1].say for turn in unsaid))
    ):
        last = [number for number, _ in view.agent_turns()][-1:]
        yield view.finding(
            "hung_up_early",
            "critical",
            "agent",
            "the agent ended the call before the caller was done",
            *last,
        )


def _stages(view: CallView) -> Iterator[Finding]:
    needed = [
        stage.name or str(place)
        for place, stage in enumerate(view.plan.caller_context.response_stages, 1)
        if stage.needed
    ]
    said = {
        span.why.removeprefix("stage:")
        for span in view.record.caller_spans
        if span.why.startswith("stage:")
    }
    left = [name for name in needed if name not in said]
    if left:
        yield view.finding(
            "stages_unsaid",
            "info",
            "unknown",
            f"the call never came to: {', '.join(left)}",
            detail=",".join(left),
        )
