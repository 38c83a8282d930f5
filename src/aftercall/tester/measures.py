"""Numbers of a call that need no judgement: latencies, overlaps, silences, shares, coverage."""

import math
from collections.abc import Sequence
from typing import Any

from aftercall.tester.finding import CallView
from aftercall.tester.phrases import count_word_errors, words_of
from aftercall.tester.record import Span

LONG_SILENCE_S = 2.0


def percentile(values: Sequence[float], share: float) -> float | None:
    """The nearest rank, which is always a measured value."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def latencies(view: CallView) -> list[float]:
    return [
        exchange.latency_s
        for exchange in view.exchanges
        if exchange.latency_s is not None
    ]


def measure(view: CallView) -> dict[str, Any]:
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
        "yield_s": [_round(value) for value in _yields(view)],
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


def _yields(view: CallView) -> list[float]:
    """How long an interrupted agent went on."""
    return [
        agent.end_s - caller.start_s
        for caller in view.record.caller_spans
        if caller.is_planned_overlap
        for agent in view.record.agent_spans
        if agent.start_s < caller.start_s < agent.end_s
    ]


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
    stages = enumerate(view.plan.caller_context.response_stages, 1)
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
