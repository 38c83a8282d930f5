"""How the call went: connection, line, criteria, expectations, and who ended it.

Evidence is the agent's words or a probe, never the caller's words.
"""

import re
from collections import Counter
from collections.abc import Iterator

from aftercall.speech.sound import FRAME_S
from aftercall.tester.claims import guess_deed, is_hollow, names_all, says_done
from aftercall.tester.criterion import Criterion, Expect
from aftercall.tester.evidence import (
    agent_sentences,
    is_about_another,
    says,
    weigh_criterion,
)
from aftercall.tester.finding import CallView, Finding, Findings
from aftercall.tester.phrases import (
    asked_fields,
    find_any,
    questions_of,
    sentences_of,
    words_of,
)
from aftercall.tester.scenario import Who

MAX_LOST_SHARE = 0.05
UNSAID = "not said"
_DEEDS = ("book", "move", "cancel", "take")
_GIVES = ("answer:", "stage:", "turn:", "opening", "check", "filler:slot", "filler:yes")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_TRANSFERS = (
    (
        r"/\b(?:transfer(?:ring)?|connect(?:ing)?|put(?:ting)?|pass(?:ing)?|patch(?:ing)?) you\b"
        r"|\b(?:put|patch) you through|\btransferr?(?:ing|ed)?\b/"
    ),
)
_OUTCOMES = {
    "busy": "the number was busy",
    "no-answer": "nobody answered",
    "failed": "the call could not be connected",
    "voicemail": "a mailbox answered",
    "answered": "the call was answered, which it should not have been",
}


def find(view: CallView) -> Findings:
    if view.record.outcome == "answered":
        yield from _expectations(view)
        yield from _silent_expectations(view)
        yield from _hung_up(view)
        yield from _goes_on(view)
        yield from _stages(view)
    yield from _line_faults(view)


def name_of(criterion: Criterion) -> str:
    """What a criterion is called in a report, if its author gave it no name."""
    said = " / ".join(criterion.said)
    unsaid = f"never {' / '.join(criterion.not_said)}" if criterion.not_said else ""
    return (
        criterion.name
        or said
        or unsaid
        or criterion.judged
        or (f"calls {criterion.tool}" if criterion.tool else "")
        or f"probe {criterion.probe}"
    )


def missed(
    view: CallView, criterion: Criterion, reason: str, turns: tuple[int, ...] = ()
) -> Finding:
    """The finding for a criterion that this call should have met."""
    name = name_of(criterion)
    if criterion.not_said:
        text = f"said what must not be said: {name}"
        return view.finding("forbidden_words", text, *turns, detail=name)
    turns = turns or tuple(number for number, _ in view.agent_turns())[-2:]
    text = f"not reached: {name} ({reason})"
    return view.finding("goal_missed", text, *turns, detail=name)


def find_tool_call(views: list[CallView], criterion: Criterion) -> str:
    """A tool call that the agent reported and that shows the criterion; empty without one."""
    for view in views:
        for event in view.record.events:
            if event.kind != "tool_call":
                continue
            name = event.detail.partition(" ")[0]
            told = event.detail.replace("_", " ")  # `send_invoice` names the invoice
            has_details = names_all(criterion.details, told, view.today)
            if criterion.tool is not None:
                if find_any((criterion.tool,), name) and has_details:
                    return f"called {name}"
            elif criterion.deed and criterion.details and has_details:
                return f"called {name}"
    return ""


def find_other_deed(views: list[CallView], criterion: Criterion) -> str:
    """A tool call for another wish of the same call: an agent that reports its deeds.

    Then a deed that it does not report was not done, unless it reported one that no wish explains.
    """
    if criterion.deed not in _DEEDS:
        return ""
    others = [
        item
        for view in views[:1]
        for item in view.scenario.success
        if item is not criterion and item.deed in _DEEDS and item.call == criterion.call
    ]
    found = [called for item in others if (called := find_tool_call(views, item))]
    events = (event for view in views for event in view.record.events)
    names = {
        event.detail.partition(" ")[0] for event in events if event.kind == "tool_call"
    }
    return found[0] if found and len(names) <= len(found) else ""


def _expectations(view: CallView) -> Findings:
    """What the scenario expects of the answer to each turn."""
    for exchange in view.exchanges:
        why = view.span(exchange.caller).why
        if not why.startswith("turn:"):
            continue
        expect = view.plan.turns[int(why.removeprefix("turn:")) - 1].expect
        if expect is not None:
            yield from _check(
                view, expect, exchange.caller, exchange.agent, exchange.latency_s
            )


def _silent_expectations(view: CallView) -> Findings:
    """In turns where the caller only listens: what the agent says until the caller speaks again."""
    turn_of = {span.why: at for at, span in reversed(list(view.caller_turns()))}
    for number, turn in enumerate(view.plan.turns, 1):
        if (
            turn.expect is None
            or turn.say is not None
            or turn.dtmf is not None
            or turn.hang_up
        ):
            continue
        after = turn_of.get(f"turn:{number - 1}", 0)
        before = turn_of.get(f"turn:{number + 1}", len(view.spans) + 1)
        answers = tuple(at for at, _ in view.agent_turns() if after < at < before)
        yield from _check(view, turn.expect, after, answers, None)


def _check(
    view: CallView,
    expect: Expect,
    caller: int,
    answers: tuple[int, ...],
    latency_s: float | None,
) -> Findings:
    """One expectation against the answers to one turn: words, ending, time."""
    turns = ([caller] if caller else []) + list(answers[:2])
    who = view.blame(*turns)
    heard = " ".join(view.text_of(at) for at in answers)
    missed = [*_unmet(view, expect, heard), *_unmet_ending(view, expect, answers)]
    for text, detail in missed:
        # words that were said stay said, whatever the caller made of them
        cause: Who = "agent" if detail.startswith(UNSAID) else who
        yield view.finding("expectation_missed", text, *turns, who=cause, detail=detail)
    if expect.within_ms is None or (latency_s is None and answers):
        return
    if latency_s is None or latency_s * 1000 > expect.within_ms:
        took = "no answer" if latency_s is None else f"{latency_s * 1000:.0f} ms"
        text = f"answered within {expect.within_ms} ms: {took}"
        yield view.finding(
            "expectation_missed", text, *turns, who=who, detail="within_ms"
        )


def _unmet(view: CallView, expect: Expect, heard: str) -> Iterator[tuple[str, str]]:
    """Words that were expected and did not come: a text for people, and a stable detail."""
    if not view.is_wordless:
        for pattern in expect.said:
            if not says(view, pattern, heard):
                yield f"did not say {pattern!r}", f"said {pattern}"
    for pattern in expect.not_said:
        if find_any((pattern,), heard):
            yield f"said {pattern!r}", f"{UNSAID} {pattern}"
    if expect.asks and not view.is_wordless:
        asked, fields = " ".join(questions_of(heard)), asked_fields(heard)
        if not any(
            find_any((pattern,), asked) or pattern in fields for pattern in expect.asks
        ):
            yield f"did not ask {' or '.join(expect.asks)}", f"asks {expect.asks[0]}"


def _unmet_ending(
    view: CallView, expect: Expect, answers: tuple[int, ...]
) -> Iterator[tuple[str, str]]:
    """How the call should have gone on after the turn."""
    record = view.record
    if expect.hangs_up and record.ended_by != "agent":
        yield "did not hang up", "hangs_up"
    if expect.transfers:
        was_told = any(event.kind == "transfer" for event in record.events)
        heard = " ".join(view.text_of(at) for at in answers)
        if not was_told and not find_any(_TRANSFERS, heard):
            yield "did not pass the call on", "transfers"
    if expect.says_nothing_after:
        later = [
            span.text
            for at, span in view.agent_turns()
            if at >= min(answers, default=0)
        ]
        sentences = [item.lower() for text in later for item in sentences_of(text)]
        if any(
            not says_done("part", item) and not is_hollow(item) for item in sentences
        ):
            yield "went on talking", "says_nothing_after"


def _hung_up(view: CallView) -> Findings:
    """The agent ended the call while something was still to be said or done."""
    record = view.record
    reasons = [span.why for span in record.caller_spans]
    if record.ended_by != "agent":
        return
    if any(why in ("closing", "goodbye") or "gave_up" in why for why in reasons):
        return
    has_open_criteria = any(_is_open(view, item) for item in _criteria_of(view))
    has_unsaid_turns = any(
        turn.say and f"turn:{number}" not in reasons
        for number, turn in enumerate(view.plan.turns, 1)
    )
    if not reasons or has_open_criteria or has_unsaid_turns:
        last = [number for number, _ in view.agent_turns()][-1:]
        text = "the agent ended the call before the caller was done"
        yield view.finding("hung_up_early", text, *last)


def _is_open(view: CallView, criterion: Criterion) -> bool:
    """Whether the agent left without a word that the matter is done.

    One that leaves without a goodbye has to have said so; details alone may be what it heard.
    """
    state = weigh_criterion(view, criterion).state
    said = list(agent_sentences(view))
    deed = criterion.deed or guess_deed(criterion.said)
    if state == "missed" or deed in (None, "answer", "part"):
        return state == "missed"
    has_parted = any(says_done("part", item.text) for item in said)
    is_done = any(
        item.is_statement
        and says_done(deed, item.text)
        and not is_about_another(view, criterion, item.text)
        for item in said
    )
    was_called = bool(find_tool_call([view], criterion))
    return not is_done and not was_called and (state == "unknown" or not has_parted)


def _criteria_of(view: CallView) -> list[Criterion]:
    """Criteria of words that this call should meet."""
    return [
        item
        for item in view.scenario.success
        if item.call in (None, view.record.number) and (item.said or item.deed)
    ]


def _goes_on(view: CallView) -> Findings:
    """Talks on after both have said goodbye."""
    leaving = _leaving_turns(view)
    if not leaving:
        return
    said_bye, matters = 0, list[int]()
    for number, span in view.agent_turns():
        if number < leaving[0]:
            continue
        is_new = said_bye and not _says_again(view, said_bye, span.text)
        if is_new and _has_matter(span.text) and not _parts(span.text):
            text = "went on after both had said goodbye"
            yield view.finding("goes_on", text, said_bye, number)
            return
        if _parts(span.text):
            said_bye = said_bye or number
        elif _has_matter(span.text):
            matters.append(number)
    if len(matters) > 1 and not said_bye:
        text = "did not let the caller go: talked on after the goodbye"
        yield view.finding("goes_on", text, leaving[0], *matters)


def _leaving_turns(view: CallView) -> list[int]:
    """The caller's goodbyes; none before it came back to the matter, as the agent asked."""
    leaving: list[int] = []
    for number, span in view.caller_turns():
        if span.why in ("closing", "goodbye"):
            leaving.append(number)
        elif span.why.startswith(_GIVES):
            leaving = []
    return leaving


def _parts(text: str) -> bool:
    """Whether a turn ends the call: a goodbye, with little behind it."""
    sentences = [item.lower() for item in sentences_of(text)]
    places = [at for at, item in enumerate(sentences) if says_done("part", item)]
    behind = sentences[places[-1] + 1 :] if places else sentences
    has_question = any(questions_of(item) for item in behind)
    matters = sum(_has_matter(item) for item in behind)
    return bool(places) and not has_question and matters < 2


def _says_again(view: CallView, turn: int, text: str) -> bool:
    """The same goodbye again, perhaps cut off when the caller hung up."""
    first, again = words_of(view.text_of(turn)), words_of(text)
    return first[: len(again)] == again


def _has_matter(text: str) -> bool:
    """More than courtesy and names; or a question."""
    if questions_of(text):
        return True
    own = [word for word in _WORD.findall(text) if word[:1].islower()]
    return len(words_of(text)) >= 4 and sum(not is_hollow(word) for word in own) > 1


def _stages(view: CallView) -> Findings:
    if left := view.unsaid_stages:
        text = f"the call never came to: {', '.join(left)}"
        yield view.finding("stages_unsaid", text, detail=",".join(left))


def _line_faults(view: CallView) -> Findings:
    """Calls that were not answered, broken lines, lost sound, events repeated or missing."""
    record = view.record
    for event in record.events:
        if event.kind == "agent_error":
            last = [number for number, _ in enumerate(view.spans, 1)][-1:]
            text = f"the agent failed: {event.detail}"
            detail = re.sub(r"https?://\S+|wss?://\S+", "", event.detail)
            yield view.finding("agent_error", text, *last, detail=detail)
            return
        if event.kind == "not_reached":
            text = f"the agent was not reached: {event.detail}"
            yield view.finding("not_reached", text)
            return
    if record.outcome != view.scenario.outcome:
        kind = f"outcome_{record.outcome.replace('-', '_')}"
        yield view.finding(kind, _OUTCOMES[record.outcome], detail=record.outcome)
        return
    if record.ended_by == "line" and view.plan.hangs_up_after is None:
        yield view.finding("line_broke", f"the line broke: {record.end_why}")
    if record.ended_by == "limit":
        text = f"the call ran into its limit ({record.end_why})"
        yield view.finding("ran_on", text, severity="major")
    counts = Counter(event.kind for event in record.events)
    lost_s = counts["frame_lost"] * FRAME_S
    spoken_s = sum(span.seconds for span in record.caller_spans)
    if spoken_s and lost_s / spoken_s > MAX_LOST_SHARE:
        share = f"{100 * lost_s / spoken_s:.0f} %"
        yield view.finding(
            "sound_lost", f"{share} of what the caller said was lost on the line"
        )
    for kind, text in (
        ("duplicate_event", "came twice"),
        ("missing_event", "never came"),
        ("late_event", "came out of order"),
    ):
        if counts[kind]:
            yield view.finding(kind, f"{counts[kind]} events {text}")
