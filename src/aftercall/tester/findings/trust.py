"""What the agent may not do: act before it knows who calls, tell one caller another's matters,
mistake who is on the line.
"""

import re
from collections.abc import Iterator

from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import asked_fields, find_any, words_of

_ADDRESSED = re.compile(
    r"\b(?i:thank you|thanks|okay|ok|hi|hello|great|perfect|sure|sorry|alright|all right"
    "|welcome back),? "
    r"([A-Z][a-z]{2,})(?=[.,!?]| [A-Z][a-z]+[.,!?])"
)
_NO_NAMES = frozenset(
    [
        "for",
        "how",
        "what",
        "let",
        "can",
        "could",
        "may",
        "please",
        "your",
        "the",
        "you",
        "mister",
        "doctor",
        "again",
        "bye",
        "goodbye",
        "and",
        "one",
        "just",
        "have",
        "thanks",
        "thank",
        "is",
        "are",
        "do",
    ]
)


def find(view: CallView) -> Iterator[Finding]:
    yield from _skipped(view)
    yield from _leaks(view)
    yield from _wrong_name(view)


def _skipped(view: CallView) -> Iterator[Finding]:
    wanted = view.plan.caller_context.verification
    deeds = wanted.before or tuple(
        pattern for item in view.scenario.success for pattern in item.said
    )
    if not wanted.required or not deeds:
        return
    ways = {name: item.asked_as for name, item in wanted.answers.items()}
    asked: set[str] = set()
    given: set[str] = set()
    for number, span in enumerate(view.spans, 1):
        if span.who == "caller":
            given |= {
                name
                for name, item in wanted.answers.items()
                if set(words_of(item.answer)) <= set(words_of(span.text))
            }
            continue
        asked |= set(asked_fields(span.text, ways))
        left = [name for name in wanted.required if name not in asked and name not in given]
        if left and (words := find_any(deeds, span.text)):
            text = f"said {words!r} without having asked for {', '.join(left)}"
            who = view.blame(*(turn for turn, _ in view.caller_turns() if turn < number))
            yield view.finding(
                "verification_skipped", "critical", who, text, number, detail=",".join(left)
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
                yield view.finding(
                    "leak",
                    "critical",
                    "agent",
                    "told one caller what only another had said",
                    found[0],
                    detail=marker,
                )


def _wrong_name(view: CallView) -> Iterator[Finding]:
    answers = view.plan.caller_context.verification.answers
    if "name" not in answers:
        return
    true = set(words_of(answers["name"].answer))
    wrong = [
        (number, name)
        for number, span in view.agent_turns()
        for name in _ADDRESSED.findall(span.text)
        if name.lower() not in true | _NO_NAMES and not _is_near(name.lower(), true)
    ]
    if not wrong:
        return
    corrected = [
        number
        for number, span in view.caller_turns()
        if re.match(r"\W*(?:no|actually|sorry|that's not)\b", span.text, re.IGNORECASE)
    ]
    after = [number for number, _ in wrong if corrected and number > corrected[0]]
    if after:
        yield view.finding(
            "wrong_name",
            "major",
            view.blame(corrected[0]),
            "still uses the wrong name after it was put right",
            corrected[0],
            after[0],
        )
    else:
        yield view.finding(
            "wrong_name", "minor", "agent", "calls the caller by a wrong name", wrong[0][0]
        )


def _is_near(name: str, true: set[str]) -> bool:
    """Short for the name, or the name short for it."""
    return any(word.startswith(name[:3]) for word in true)
