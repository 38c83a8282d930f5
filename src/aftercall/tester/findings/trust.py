"""What the agent must not do: act before it knows the caller, leak, use a wrong name."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import asked_fields, find_any, word_set, words_of

_ADDRESSED = re.compile(
    r"\b(?i:thank you|thanks|okay|ok|hi|hello|great|perfect|sure|sorry|alright|all right"
    "|welcome back),? "
    r"([A-Z][a-z]{2,})(?=[.,!?]| [A-Z][a-z]+[.,!?])"
)
_CORRECTION = re.compile(r"\W*(?:no|actually|sorry|that's not)\b", re.IGNORECASE)
_NO_NAMES = word_set("""
    for how what let can could may please your the you mister doctor again bye goodbye and one
    just have thanks thank is are do miss mrs ms mr sir madam ma'am dear everyone there folks
    monday tuesday wednesday thursday friday saturday sunday january february march april june
    july august september october november december yes no okay great perfect wonderful sure
    that this here then now today tomorrow morning afternoon evening welcome
""")


def find(view: CallView) -> Iterator[Finding]:
    yield from _skipped_verification(view)
    yield from _leaks(view)
    yield from _wrong_name(view)


def _skipped_verification(view: CallView) -> Iterator[Finding]:
    wanted = view.plan.caller_context.verification
    goals = tuple(pattern for item in view.scenario.success for pattern in item.said)
    deeds = wanted.before or goals
    if not wanted.required or not deeds:
        return
    ways = {name: item.asked_as for name, item in wanted.answers.items()}
    known: set[str] = set()  # fields that were asked for or given
    for number, span in enumerate(view.spans, 1):
        if span.who == "caller":
            words = set(words_of(span.text))
            for name, item in wanted.answers.items():
                if set(words_of(item.answer)) <= words:
                    known.add(name)
            continue
        known |= set(asked_fields(span.text, ways))
        left = [name for name in wanted.required if name not in known]
        if left and (said := find_any(deeds, span.text)):
            text = f"said {said!r} without having asked for {', '.join(left)}"
            who = view.blame(
                *(turn for turn, _ in view.caller_turns() if turn < number)
            )
            yield view.finding(
                "verification_skipped", text, number, who=who, detail=",".join(left)
            )
            return


def _leaks(view: CallView) -> Iterator[Finding]:
    own = view.plan.caller_context
    said = " ".join(span.text for span in view.record.caller_spans)
    for other in view.scenario.calls[: view.record.number - 1]:
        context = other.caller_context
        if context.number == own.number:
            continue
        for marker in context.markers:
            found = view.find_said((marker,))
            if found and not find_any((marker,), said):
                text = "told one caller what only another had said"
                yield view.finding("leak", text, found[0], detail=marker)


def _wrong_name(view: CallView) -> Iterator[Finding]:
    answers = view.plan.caller_context.verification.answers
    if "name" not in answers:
        return
    true = set(words_of(answers["name"].answer))
    wrong = _wrong_turns(view, true)
    if not wrong:
        return
    known = [
        number
        for number, span in view.caller_turns()
        if true <= set(words_of(span.text))
    ]
    corrections = (
        number for number, span in view.caller_turns() if _CORRECTION.match(span.text)
    )
    corrected = next(corrections, None)
    after = [number for number in wrong if corrected and number > corrected]
    if corrected and after:
        text = "still uses the wrong name after it was put right"
        yield view.finding(
            "wrong_name", text, corrected, after[0], who=view.blame(corrected)
        )
    elif known and known[0] < wrong[0]:
        text = "calls the caller by another name than the one that was given"
        yield view.finding("wrong_name", text, known[0], wrong[0])
    else:
        text = "calls the caller by a wrong name"
        yield view.finding("wrong_name", text, wrong[0], severity="minor")


def _wrong_turns(view: CallView, true: set[str]) -> list[int]:
    """Turns that address the caller by a name that nobody gave; not the agent's own names."""
    first = min((number for number, _ in view.caller_turns()), default=0)
    own = {word for span in view.spans[: first - 1] for word in words_of(span.text)}
    said = set(words_of(" ".join(span.text for span in view.record.caller_spans)))
    no_wrong_names = true | _NO_NAMES | own | said
    return [
        number
        for number, span in view.agent_turns()
        for name in _ADDRESSED.findall(span.text)
        if number > first
        and name.lower() not in no_wrong_names
        and not _is_near(name.lower(), true)
    ]


def _is_near(name: str, true: set[str]) -> bool:
    """Short for the name, the name short for it, or a spelling of it."""
    return any(
        word.startswith(name[:3]) or SequenceMatcher(None, word, name).ratio() >= 0.7
        for word in true
    )
