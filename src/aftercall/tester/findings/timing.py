"""Times of a call: measures that need no judgement, late answers, and who talked over whom.

A caller whose script does not interrupt never counts as interrupting.
"""

from collections.abc import Iterator

from aftercall.model.json_fields import Json
from aftercall.tester.finding import CallView, Finding, Findings, Severity
from aftercall.tester.line import CALLER_FIRST, UNADDRESSED
from aftercall.tester.phrases import count_word_errors, words_of
from aftercall.tester.record import Span
from aftercall.tester.scenario import Who
from aftercall.tester.statistics import percentile

MONOLOGUE_S = 40.0
MIN_LATE = 3  # so many late answers are no accident
MIN_OVERLAP_S = 0.25
SAME_MOMENT_S = 0.2
NEAR_END_S = 0.15
YIELD_S = 2.0
_ENDINGS = (".", "?", "!", "…", '"', "'", ")", ":")


def find(view: CallView) -> Findings:
    """What was late, missing or said at the same time."""
    if view.record.outcome == "answered":
        if view.record.agent_spans:
            yield from _late_greeting(view)
            yield from _late_answers(view)
            yield from _monologues(view)
        elif not view.was_cut_off:
            yield _no_words(view)
    yield from find_overlaps(view)


def _monologues(view: CallView) -> Findings:
    for number, span in view.agent_turns():
        if span.seconds > MONOLOGUE_S:
            text = f"the agent spoke for {span.seconds:.0f} s without a pause"
            yield view.finding("monologue", text, number)


def _no_words(view: CallView) -> Finding:
    """The agent is not to blame where the recording has a voice without words."""
    heard_s = sum(
        float(event.detail)
        for event in view.record.events
        if event.kind == "unrecognised"
    )
    if heard_s:
        text = f"the agent spoke for {heard_s:.1f} s, but no words were recognised"
        return view.finding("not_understood", text)
    return view.finding("never_spoke", "the agent never said a word")


def _late_greeting(view: CallView) -> Findings:
    number, first = next(view.agent_turns())
    if any(event.kind == CALLER_FIRST for event in view.record.events):
        return
    if not first.is_estimated and first.start_s > view.scenario.limits.greeting_s:
        text = f"the agent's first word came after {first.start_s:.1f} s"
        yield view.finding("slow_greeting", text, number)


def _late_answers(view: CallView) -> Findings:
    """Answers over the limit; several late ones weigh more."""
    limit_s = view.scenario.limits.response_ms / 1000
    late = [item for item in view.exchanges if (item.latency_s or 0.0) > limit_s]
    for exchange in view.exchanges:
        if not exchange.agent:
            yield from _unanswered(view, exchange.caller)
        elif exchange.latency_s is not None and exchange.latency_s > limit_s:
            severity: Severity = (
                "major"
                if exchange.latency_s > 1.5 * limit_s or len(late) >= MIN_LATE
                else "minor"
            )
            text = f"the answer came after {exchange.latency_s:.2f} s"
            turns = (exchange.caller, exchange.agent[0])
            who = view.blame(exchange.caller)
            yield view.finding("slow_answer", text, *turns, who=who, severity=severity)


def _unanswered(view: CallView, turn: int) -> Findings:
    """A turn that the agent left without an answer, unless there was no time for one."""
    span = view.span(turn)
    is_last = turn == view.exchanges[-1].caller
    if span.why in ("goodbye", "closing"):
        return
    if is_last and view.record.ended_by in ("line", "agent"):
        return
    if is_last and view.record.ended_by == "caller" and not _waited(view, span.end_s):
        return
    following = [
        other for _, other in view.caller_turns() if other.start_s > span.end_s
    ]
    if following and following[0].is_planned_overlap:
        return
    who = view.blame(turn)
    wait_s = view.scenario.limits.response_ms / 1000
    if who == "agent" and following and following[0].start_s - span.end_s < wait_s:
        who = "tester"
    yield view.finding("no_answer", "the agent did not answer", turn, who=who)


def _waited(view: CallView, since_s: float) -> bool:
    """Whether the caller sat through silence after this time."""
    return any(
        event.kind == "dead_air" and event.at_s >= since_s
        for event in view.record.events
    )


def find_overlaps(view: CallView) -> Findings:
    if view.record.line != "text":
        yield from _talked_over(view)
        yield from _did_not_yield(view)
    yield from _broke_off(view)


def _talked_over(view: CallView) -> Findings:
    """Who began to speak while the other spoke."""
    for number, caller in view.caller_turns():
        for other, agent in view.agent_turns():
            both_s = agent.segment.overlap_s(caller.segment)
            if agent.is_estimated or caller.is_estimated or both_s < MIN_OVERLAP_S:
                continue
            text = f"{both_s:.1f} s of both speaking at once"
            if (
                caller.start_s + SAME_MOMENT_S
                < agent.start_s
                < caller.end_s - NEAR_END_S
            ):
                who: Who = "unknown" if caller.is_planned_overlap else "agent"
                severity: Severity = "minor" if caller.is_planned_overlap else "major"
                yield view.finding(
                    "talks_over_caller", text, number, other, who=who, severity=severity
                )
            elif (
                not caller.is_planned_overlap
                and agent.start_s <= caller.start_s + SAME_MOMENT_S
            ):
                yield view.finding(
                    "collision", f"both began to speak: {text}", other, number
                )


def _did_not_yield(view: CallView) -> Findings:
    for other, number, went_on_s in _yields(view):
        if 1000 * went_on_s > view.scenario.limits.yield_ms:
            text = f"interrupted, the agent went on for {went_on_s:.1f} s"
            turns, who = (other, number), view.blame(number)
            yield view.finding("does_not_yield", text, *turns, who=who)


def _yields(view: CallView) -> Iterator[tuple[int, int, float]]:
    """The turns that the caller interrupted, the interruptions, how long the agent went on."""
    for number, caller in view.caller_turns():
        for other, agent in view.agent_turns() if caller.is_planned_overlap else ():
            if agent.start_s < caller.start_s < agent.end_s:
                yield other, number, agent.end_s - caller.start_s


def _broke_off(view: CallView) -> Findings:
    """An unfinished sentence from an agent that otherwise finishes its sentences."""
    turns = list(view.agent_turns())
    if sum(span.text.rstrip().endswith(_ENDINGS) for _, span in turns) < 2:
        return
    for number, span in turns:
        text = span.text.rstrip()
        if (
            not text
            or text.endswith(_ENDINGS)
            or span.is_cut
            or _was_interrupted(view, span)
        ):
            continue
        following = view.spans[number : number + 1]
        if following and following[0].who == "agent":
            continue  # goes on after a pause
        ended_by = view.record.ended_by
        if number == turns[-1][0] and ended_by in ("caller", "limit", "line"):
            text = "the agent was still speaking when the call ended"
            who: Who = "line" if ended_by == "line" else "tester"
            yield view.finding("broken_off", text, number, who=who, severity="info")
        elif _has_murmur(view, span):
            text = "stopped for a sound of the caller that was no interruption"
            yield view.finding("broken_off", text, number, severity="minor")
        else:
            text = "the agent broke off in the middle of a sentence"
            yield view.finding("broken_off", text, number)


def _has_murmur(view: CallView, span: Span) -> bool:
    """Whether the caller murmured, or spoke to somebody else, shortly before the end."""
    return any(
        event.kind in UNADDRESSED and span.end_s - YIELD_S < event.at_s < span.end_s
        for event in view.record.events
    )


def _was_interrupted(view: CallView, span: Span) -> bool:
    return any(
        span.start_s < caller.start_s < span.end_s + NEAR_END_S
        for _, caller in view.caller_turns()
    )


LONG_SILENCE_S = 2.0


def latencies(view: CallView) -> list[float]:
    return [
        exchange.latency_s
        for exchange in view.exchanges
        if exchange.latency_s is not None
    ]


def measure(view: CallView) -> Json:
    """Seconds, counts and shares for the report; times come from measured turns only."""
    record = view.record
    agent, caller = _measured(record.agent_spans), _measured(record.caller_spans)
    unmeasured = len(record.spans) - len(agent) - len(caller)
    taken = latencies(view)
    agent_s, caller_s = (
        sum(span.seconds for span in agent),
        sum(span.seconds for span in caller),
    )
    words = sum(len(words_of(span.text)) for span in agent)
    return {
        "duration_s": _round(record.duration_s),
        "turns": len(record.spans),
        "first_word_s": _round(agent[0].start_s) if agent else None,
        "latency_s": [_round(value) for value in taken],
        "latency_p50_s": _round(percentile(taken, 0.5)),
        "latency_p90_s": _round(percentile(taken, 0.9)),
        "latency_p95_s": _round(percentile(taken, 0.95)),
        "latency_max_s": _round(max(taken, default=None)),
        "overlap_s": _round(_overlap(agent, caller)),
        "unmeasured_turns": unmeasured,
        "barge_ins": sum(span.is_planned_overlap for span in caller),
        "yield_s": [_round(went_on_s) for _, _, went_on_s in _yields(view)],
        "silences_s": [_round(value) for value in _silences(view)],
        "agent_talk_share": _round(_share(agent_s, caller_s))
        if not unmeasured
        else None,
        "agent_words_per_minute": _round(60 * words / agent_s) if agent_s else None,
        "stage_coverage": _coverage(view),
        "word_error_rate": _error_rate(view),
        "frames_lost": sum(event.kind == "frame_lost" for event in record.events),
    }


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _measured(spans: list[Span]) -> list[Span]:
    return [span for span in spans if not span.is_estimated]


def _overlap(agent: list[Span], caller: list[Span]) -> float:
    return sum(
        one.segment.overlap_s(other.segment) for one in agent for other in caller
    )


def _share(agent_s: float, caller_s: float) -> float | None:
    return agent_s / (agent_s + caller_s) if agent_s + caller_s else None


def _silences(view: CallView) -> list[float]:
    """Stretches in which both sides were silent."""
    found, until_s = [], 0.0
    for before, span in zip((None, *view.spans), view.spans, strict=False):
        is_measured = not span.is_estimated and not (before and before.is_estimated)
        if is_measured and span.start_s - until_s > LONG_SILENCE_S:
            found.append(span.start_s - until_s)
        until_s = max(until_s, span.end_s)
    return found


def _coverage(view: CallView) -> float | None:
    """The share of needed stages and scripted turns that the caller came to say."""
    stages = enumerate(view.caller_context.response_stages, 1)
    needed = {stage.name or str(place) for place, stage in stages if stage.needed}
    turns = enumerate(view.plan.turns, 1)
    needed |= {f"turn:{place}" for place, turn in turns if turn.say or turn.dtmf}
    if not needed:
        return None
    said = {span.why.removeprefix("stage:") for span in view.record.caller_spans}
    return round(len(needed & said) / len(needed), 3)


def _error_rate(view: CallView) -> float | None:
    """Known only where the line has both what was said and what was recognised."""
    known = [(span.ideal, span.text) for span in view.record.agent_spans if span.ideal]
    total = sum(len(words_of(meant)) for meant, _ in known)
    errors = sum(
        count_word_errors(meant, heard) for meant, heard in known if words_of(meant)
    )
    return round(errors / total, 3) if total else None
