"""The caller against the script: the tester's mistakes are named and never blamed on the agent."""

import re
from itertools import pairwise

from aftercall.tester.finding import CallView, Findings
from aftercall.tester.phrases import (
    asked_fields,
    find_any,
    likeness,
    questions_of,
    words_of,
)
from aftercall.tester.record import Span

_NUMBER = re.compile(r"\d+")
_FREE = (
    "filler:",
    "nudge",
    "goodbye",
    "gave_up",
    "opening",
    "closing",
    "hold",
    "model",
    "check",
    "gap",
)
_MAY_REPEAT = (
    "filler:",
    "gap",
    "check",
    "nudge",
    "answer:",
    "turn:",
    "goodbye",
    "closing",
)


def find(view: CallView) -> Findings:
    for number, span in view.caller_turns():
        if reason := _off_script(view, span):
            yield view.finding("caller_off_script", reason, number)
    for event in view.record.events:
        if event.kind == "pause_skipped":
            pause = f"rang at once where the scenario pauses for {event.detail} s"
            text = f"{pause}; `--max-pause {event.detail}` waits"
            yield view.finding("pause_skipped", text)
        if event.kind == "not_interrupted":
            text = 'could not interrupt on this line; `tester.phone_mode = "media"` can'
            yield view.finding("not_interrupted", text, detail=event.detail)
    yield from _gaps(view)
    yield from _ignored_questions(view)
    yield from _repeats(view)
    yield from _unsaid_opening(view)
    yield from _left_early(view)


def _off_script(view: CallView, span: Span) -> str:
    """Why these words are not the script's; empty if they are."""
    context = view.caller_context
    kind, _, name = span.why.partition(":")
    if kind == "turn":
        turn = view.plan.turns[int(name) - 1]
        wanted = turn.say or f"[keys {turn.dtmf}]"
        return "" if span.text == wanted else "said other words than the script's"
    if kind == "answer":
        asked = [
            field for field in name.split(",") if field in context.verification.answers
        ]
        left = [field for field in asked if not _answers(view, span, field)]
        return f"gave another answer for {left[0]} than the script's" if left else ""
    if kind == "stage":
        return (
            "" if _is_staged(view, span, name) else "said other words than the stage's"
        )
    if kind == "model":
        return _invented(view, span)
    return (
        "" if span.why.startswith(_FREE) else "said something that is not in the script"
    )


def _is_staged(view: CallView, span: Span, name: str) -> bool:
    words = set(words_of(span.text))
    stages = enumerate(view.caller_context.response_stages, 1)
    named = [stage for place, stage in stages if (stage.name or str(place)) == name]
    return any(set(words_of(line)) <= words for stage in named for line in stage.say)


def _answers(view: CallView, span: Span, field: str) -> bool:
    answer = view.answers[field].answer
    return set(words_of(answer)) <= set(words_of(span.text))


def _invented(view: CallView, span: Span) -> str:
    """A model may choose the words, but not invent numbers."""
    earlier = [
        other.text for _, other in view.agent_turns() if other.start_s < span.start_s
    ]
    known = view.scenario.model_dump_json() + " ".join(earlier)
    strange = [number for number in _NUMBER.findall(span.text) if number not in known]
    return (
        f"gave a number that is not in the script ({len(strange)} of them)"
        if strange
        else ""
    )


def _gaps(view: CallView) -> Findings:
    """Questions that the script has no answer to; the caller said so."""
    gaps = [number for number, span in view.caller_turns() if span.why == "gap"]
    if gaps:
        asked = view.spans[gaps[0] - 2].text if gaps[0] > 1 else ""
        question = " ".join(questions_of(asked)) or asked
        text = f"the script has no answer to {question!r}"
        turns = [turn for gap in gaps[:3] for turn in (gap - 1, gap)]
        yield view.finding("not_in_script", text, *turns)


def _ignored_questions(view: CallView) -> Findings:
    """The agent asked who is calling; the script has the answer, but the caller did not give it."""
    answers = view.answers
    ways = {name: item.asked_as for name, item in answers.items()}
    for number, (agent, caller) in enumerate(pairwise(view.spans), 1):
        if agent.who != "agent" or caller.who != "caller":
            continue
        if caller.is_planned_overlap or agent.is_cut:
            continue
        if not caller.why.startswith(("filler:", "stage:", "model")):
            continue
        asked = [name for name in asked_fields(agent.text, ways) if name in answers]
        if asked and not any(_answers(view, caller, name) for name in asked):
            text = f"did not answer when asked for {asked[0]}"
            yield view.finding("caller_off_script", text, number, number + 1)


def _repeats(view: CallView) -> Findings:
    if not view.caller_context.anti_repetition.enabled:
        return
    seen: list[tuple[int, str]] = []
    for number, span in view.caller_turns():
        if span.why.startswith(_MAY_REPEAT):
            continue
        before = [turn for turn, text in seen if likeness(text, span.text) > 0.95]
        seen.append((number, span.text))
        if not before or number < 2:
            continue
        asked_again = find_any(
            (r"/\?/", "repeat|again|catch|sorry"), view.spans[number - 2].text
        )
        if not asked_again:
            text = "the caller said the same again without being asked"
            yield view.finding("caller_repeats", text, before[0], number)


def _unsaid_opening(view: CallView) -> Findings:
    reasons = [span.why for span in view.record.caller_spans]
    if not view.caller_context.opening or len(reasons) <= 2:
        return
    if "opening" not in reasons and "model" not in reasons:
        yield view.finding("caller_off_script", "never said what the call was for")


def _left_early(view: CallView) -> Findings:
    record = view.record
    has_closed = any(span.why == "closing" for span in record.caller_spans)
    if (
        record.ended_by == "caller"
        and record.end_why in ("", "closing")
        and not has_closed
    ):
        yield view.finding(
            "caller_left_early", "the caller hung up before the script was over"
        )
    left = view.unsaid_stages
    if has_closed and left:
        text = f"the caller ended the call without having said: {', '.join(left)}"
        yield view.finding("caller_left_early", text)
