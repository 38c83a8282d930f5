"""The caller against their own script: a tester's mistake is named as one, and never booked on
the agent.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import asked_fields, find_any, likeness, words_of
from aftercall.tester.record import Span

_NUMBER = re.compile(r"\d+")
_FREE = ("filler:", "nudge", "goodbye", "gave_up", "opening", "closing", "hold", "model")


def find(view: CallView) -> Iterator[Finding]:
    for number, span in view.caller_turns():
        if reason := _off_script(view, span):
            yield view.finding("caller_off_script", "major", "tester", reason, number)
    for event in view.record.events:
        if event.kind == "pause_skipped":
            text = (
                f"rang at once where the scenario pauses for {event.detail} s; `--max-pause "
                f"{event.detail}` waits"
            )
            yield view.finding("pause_skipped", "major", "tester", text)
        if event.kind == "not_interrupted":
            text = 'could not interrupt on this line; `tester.phone_mode = "media"` can'
            yield view.finding("not_interrupted", "major", "tester", text, detail=event.detail)
    yield from _ignored_questions(view)
    yield from _repeats(view)
    yield from _unsaid_opening(view)
    yield from _left_early(view)


def _off_script(view: CallView, span: Span) -> str:
    context = view.plan.caller_context
    kind, _, name = span.why.partition(":")
    if kind == "turn":
        turn = view.plan.turns[int(name) - 1]
        wanted = turn.say or f"[keys {turn.dtmf}]"
        return "" if span.text == wanted else "said other words than the script's"
    if kind == "answer":
        left = [
            field
            for field in name.split(",")
            if field in context.verification.answers and not _holds(span.text, view, field)
        ]
        return f"gave another answer for {left[0]} than the script's" if left else ""
    if kind == "stage":
        says = [
            say
            for place, stage in enumerate(context.response_stages, 1)
            if (stage.name or str(place)) == name
            for say in stage.say
        ]
        return (
            ""
            if any(set(words_of(say)) <= set(words_of(span.text)) for say in says)
            else "said other words than the stage's"
        )
    if kind == "model":
        return _invented(view, span)
    return "" if span.why.startswith(_FREE) else "said something that is not in the script"


def _holds(text: str, view: CallView, field: str) -> bool:
    return set(words_of(view.plan.caller_context.verification.answers[field].answer)) <= set(
        words_of(text)
    )


def _invented(view: CallView, span: Span) -> str:
    """A played caller may use words of their own, but no numbers that nobody gave them."""
    known = view.scenario.model_dump_json() + " ".join(
        other.text for _, other in view.agent_turns() if other.start_s < span.start_s
    )
    strange = [number for number in _NUMBER.findall(span.text) if number not in known]
    return f"gave a number that is not in the script ({len(strange)} of them)" if strange else ""


def _ignored_questions(view: CallView) -> Iterator[Finding]:
    """The agent asked who is calling, the script knows the answer, and the caller said
    something else.
    """
    answers = view.plan.caller_context.verification.answers
    ways = {name: item.asked_as for name, item in answers.items()}
    spans = view.spans
    for number, (agent, caller) in enumerate(pairwise(spans), 1):
        if (
            agent.who != "agent"
            or caller.who != "caller"
            or caller.is_planned_overlap
            or agent.is_cut
        ):
            continue
        asked = [name for name in asked_fields(agent.text, ways) if name in answers]
        if (
            asked
            and caller.why.startswith(("filler:", "stage:", "model"))
            and not any(_holds(caller.text, view, name) for name in asked)
        ):
            yield view.finding(
                "caller_off_script",
                "major",
                "tester",
                f"did not answer when asked for {asked[0]}",
                number,
                number + 1,
            )


def _repeats(view: CallView) -> Iterator[Finding]:
    """Said again though nobody asked again."""
    if not view.plan.caller_context.anti_repetition.enabled:
        return
    seen: list[tuple[int, Span]] = []
    for number, span in view.caller_turns():
        if span.why.startswith(("filler:", "nudge", "answer:", "turn:", "goodbye", "closing")):
            continue
        before = [spans for spans in seen if likeness(spans[1].text, span.text) > 0.95]
        agent = view.spans[number - 2] if number >= 2 else None
        if (
            before
            and agent is not None
            and not find_any((r"/\?/", "repeat|again|catch|sorry"), agent.text)
        ):
            yield view.finding(
                "caller_repeats",
                "minor",
                "tester",
                "the caller said the same again without being asked",
                before[0][0],
                number,
            )
        seen.append((number, span))


def _unsaid_opening(view: CallView) -> Iterator[Finding]:
    """Talked, but never said what they called for."""
    spans = view.record.caller_spans
    if (
        view.plan.caller_context.opening
        and len(spans) > 2
        and not any(span.why in ("opening", "model") for span in spans)
    ):
        yield view.finding(
            "caller_off_script", "major", "tester", "never said what the call was for"
        )


def _left_early(view: CallView) -> Iterator[Finding]:
    """Hung up in the middle of things, for no reason of the script."""
    record = view.record
    if (
        record.ended_by == "caller"
        and record.end_why in ("", "closing")
        and not any(span.why == "closing" for span in record.caller_spans)
    ):
        yield view.finding(
            "caller_left_early", "major", "tester", "the caller hung up before the script was over"
        )
