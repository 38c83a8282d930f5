"""Checks a finding against what would make it wrong, before it is reported.

A doubt that holds moves the finding from the agent to whoever caused it.
"""

from collections.abc import Callable
from dataclasses import replace

from aftercall.tester.claims import is_denial, is_hollow
from aftercall.tester.evidence import agent_sentences
from aftercall.tester.finding import DOUBTS, MIN_CONFIDENCE, CallView, Finding
from aftercall.tester.phrases import likeness, word_error_rate, words_of

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
    spans = [view.spans[turn - 1] for turn in finding.turns]
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
    spans = [view.spans[turn - 1] for turn in finding.turns]
    return any(span.who == "caller" and not view.was_heard(span) for span in spans)


def _is_broken(view: CallView, finding: Finding) -> bool:
    if finding.kind not in _ALL_TURNS:
        return False
    is_planned = view.plan.hangs_up_after is not None
    return view.record.ended_by == "line" and not is_planned


def _was_late(view: CallView, finding: Finding) -> bool:
    """The tester's own clock fell behind between these turns."""
    spans = [view.spans[turn - 1] for turn in finding.turns]
    if not spans:
        return False
    start_s = min(span.start_s for span in spans)
    end_s = max(span.end_s for span in spans)
    return any(
        event.kind == "tester_late" and start_s <= event.at_s <= end_s
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
    "late": _was_late,
    "off_script": _left_script,
    "unanswered": _has_no_answer,
    "left": _left_early,
}
