"""Weighs what the agent said about a criterion: yes, no, or it cannot be told.

No single phrase decides. A deed counts as done when the agent says so in words that are neither
a question, an offer, a refusal nor the caller's own words, and when it names a detail of it. An
agent that only says yes names none: then the caller asks an open question, which a yes does not
answer. What the words leave open stays open.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from aftercall.tester.criterion import Criterion, Deed
from aftercall.tester.finding import CallView
from aftercall.tester.phrases import (
    asked_fields,
    find_any,
    is_question,
    likeness,
    sentences_of,
    word_set,
    words_of,
)
from aftercall.tester.slots import DAYS, find_slots

State = Literal["met", "missed", "unknown"]
MAX_ECHO = 0.8

_GENERAL = (
    r"\b(?:all set|all done|all sorted|sorted(?: out)?|taken care of|good to go|squared away"
    r"|(?:that's|that is|it's|it is|is|are|now|been) (?:all )?(?:done|arranged|settled|in place)"
    r"|done(?: and dusted| deal)?[.!]?$|done for you|consider (?:it|that|yourself)"
    r"|locked (?:you |that |it )?in|confirmed|confirming|i confirm|finali[sz]ed|completed"
    r"|(?:in|on|into|onto|to) (?:the|our|my|your) (?:book|books|calendar|diary|system|schedule"
    r"|list|file|records?|notes?|sheet|log|agenda|roster)"
    r"|(?:taken|took|taking|written|wrote|writing|noted|noting|jotted|put|putting|marked|got"
    r"|have|has|had|having|'ve|'s|set|setting|pencil(?:l)?ed|slotted|scribbled)"
    r"(?: \S+){0,6}? (?:down|in|up|aside|through)\b"
    r"|made (?:a|the|that) note|(?:note|record) (?:of|for|that|has been|is)|noted|recorded"
    r"|logged|saved|registered|entered|added|filed|submitted|processed|placed|i've got (?:it|that)"
    r"|got (?:it|that|you)\b)"
)
_DEEDS: dict[Deed, str] = {
    "book": (
        r"\b(?:(?:re)?booked|booking (?:is|has|you)|scheduled|reserved|reservation (?:is|has)"
        r"|appointment(?: \S+){0,3} (?:is|has been|will be|was) (?!not)"
        r"|you(?:'re| are| have|'ve| will be|'ll be)(?: now| all| officially)? "
        r"(?:in|on|down|set|confirmed|got|have|expected|with us|coming)\b"
        r"|(?:have|has|got|put|fit|squeezed|slotted|pencil(?:l)?ed|see|seeing|expect|expecting"
        r"|book|schedule|reserve) you\b|(?:is|'s) yours|yours (?:now|is)"
        r"|(?:we'll|we will|i'll|i will|will) (?:see|expect|book|schedule|put|have|pencil|reserve)"
        r"|see you|made (?:the|your|an|that) (?:appointment|booking)|appointment (?:for|on|at))"
    ),
    "move": (
        r"\b(?:moved|rescheduled|changed|switched|shifted|pushed|swapped|rebooked|booked"
        r"|new (?:time|appointment|slot|day|date)|(?:i'll|i will|we'll|we will) (?:move|change"
        r"|switch|see|reschedule)|see you|you(?:'re| are)(?: now)? (?:in|on|down|set|booked)"
        r"|(?:have|got|put) you\b)"
    ),
    "cancel": (
        r"\b(?:cancel(?:l)?ed|cancel(?:l)?ing|cancellation (?:is|has|for)|(?:i'll|i will|we'll"
        r"|we will) cancel|removed|dropped|crossed|called off|scrapped|deleted|freed|released"
        r"|struck|wiped|cleared|taken (?:you|it|that|your \w+|the \w+)(?: \w+){0,3}? (?:off|out)"
        r"|no longer|(?:is|has) gone|off the (?:books?|calendar|schedule|list))"
    ),
    "take": (
        r"\b(?:(?:i'll|i will|we'll|we will|i'm going to|going to|will|i can|happy to|let me)"
        r"(?: \w+){0,2}? (?:tell|let|pass|send|give|make|have|get|remind|call|ring|phone|put|see|"
        r"forward|relay|order|arrange|note|request|email|mail|text|add|write|take|mention|ask"
        r"|share|hand|leave|ensure|sort|find|look|check|refill|renew|submit|process)\b"
        r"|pass(?:ed|ing)? (?:it|that|this|your|the|along|on)|told|sent|sending|forward(?:ed|ing)"
        r"|relay(?:ed|ing)|remind(?:er|ed)?|reminding|call(?:ing)? you(?: right)? back"
        r"|get(?:ting)? back to you|(?:a|the|your) (?:manager|supervisor|colleague|person|someone"
        r"|somebody|doctor)(?: \S+){0,3} (?:will|to) (?:call|ring|phone|be in touch|contact)"
        r"|(?:will|'ll) (?:receive|get|have|be|know|hear)|message (?:is|has|for|will|to|taken)"
        r"|order(?:ed)?\b|refilled|renewed|request (?:is|has|for)|on (?:its|the|their) way"
        r"|ready|arranged|requested|call ?back|be in touch|you(?:'ll| will) hear)"
    ),
    "answer": r"",
    "part": (
        r"\b(?:good ?bye|bye|take care|have a (?:\w+ )?(?:day|one|evening|night|weekend|morning"
        r"|afternoon)|no (?:problem|worries|harm|trouble)|that's (?:all right|okay|ok|fine|alright)"
        r"|not (?:a|at) (?:problem|all)|happens|all good|never mind|cheers|so long|farewell"
        r"|quite all right|no need to apologi[sz]e)"
    ),
}
_REFUSED = re.compile(
    r"\b(?:can't|cannot|can not|couldn't|could not|unable|not able|won't be able|not allowed"
    r"|not possible|isn't possible|impossible|not something|don't (?:do|offer|handle|take)"
    r"|do not (?:do|offer|handle|take)|nothing i can|no way|refuse|only help with)\b"
)
_NEGATED = re.compile(
    r"\b(?:not|never|no one|nobody|isn't|aren't|wasn't|haven't|hasn't|hadn't|didn't|don't|doesn't"
    r"|can't|cannot|couldn't|won't|unable|without|failed|nothing|unfortunately)\b"
)
_DENIED = re.compile(
    r"\b(?:have|see|find|know(?: of)?|there's|there is|got) (?:nothing|no)\b|\bno record"
    r"|\b(?:don't|do not|doesn't) (?:have|see|find|recall|remember|know)\b"
)
_HARMLESS = re.compile(
    r"\b(?:no problem|no worries|not a problem|not at all|no trouble|don't worry|not to worry"
    r"|can't wait|couldn't be easier|if not|why not|you don't need|no need|don't hesitate)\b"
)
_OPEN = re.compile(
    r"\b(?:if you|if we|once (?:i|we|you|that|it)|before i|before we|in order to|i'd need|i need"
    r"|i'll need|we need|first need|would need|to be (?:booked|confirmed|scheduled)|let me (?:see"
    r"|check|look)|i can (?:book|make|move|cancel|schedule|offer)|we can (?:book|offer)"
    r"|you can (?:also|book)|would you"
    r"|could (?:do|offer|fit|see|book|move)|could you|shall i|should i|do you want|whether)\b"
)
_RESTATED = re.compile(
    r"\b(?:you (?:said|want|wanted|would like|asked|need|mentioned|are (?:looking|asking|calling))"
    r"|you'd like|you're (?:looking|asking|calling)|i (?:heard|hear|understand|see))\b"
)
_ASSENT = re.compile(
    r"\W*(?:yes|yeah|yep|sure|of course|absolutely|certainly|okay|ok|definitely|no problem"
    r"|right|indeed|totally)\b"
)
_TAG = re.compile(r",? (?:ok|okay|alright|all right|right|yes|yeah|cool|great)\?$")
_CLAUSES = re.compile(r"[,;:–—]| but | and | although | though | so ")
_POLITE = word_set("""
    bye goodbye absolutely again all alright am anything appreciate apologies are assist
    assistance calling
    certainly clear course day do else fine for glad good got great happy hear heard hello help
    hi how i i'm i see is it just know let like listening me moment more need no noted of ok okay
    on one patience perfect please pleasure problem really right say see so sorry sure terrific
    thank thanks that that's the there they to today understand understood very wait welcome well
    what with wonderful would yeah yes you your yours i'd i'll i've we we're
""")


@dataclass(frozen=True)
class Weighed:
    """The matcher's answer, with the turns it rests on."""

    state: State
    reason: str
    turns: tuple[int, ...] = ()
    quote: str = ""


@dataclass(frozen=True)
class AgentSentence:
    turn: int
    text: str
    is_question: bool
    is_echo: bool

    @property
    def is_statement(self) -> bool:
        return not self.is_question and not self.is_echo


def agent_sentences(view: CallView) -> Iterator[AgentSentence]:
    """In order; a sentence that repeats the caller's words is an echo."""
    heard = ""
    for number, span in enumerate(view.spans, 1):
        if span.who == "caller":
            heard = span.text
            continue
        for sentence in sentences_of(span.text):
            plain = sentence.lower().replace("’", "'")
            asks = is_question(sentence) and not _TAG.search(plain)
            echo = _is_echo(sentence, heard)
            yield AgentSentence(number, plain, asks, echo)


def _is_echo(sentence: str, heard: str) -> bool:
    parts = [heard, *sentences_of(heard)]
    return any(len(words_of(part)) > 2 and _same(sentence, part) for part in parts)


def _same(one: str, other: str) -> bool:
    first, second = set(words_of(one)), set(words_of(other))
    return likeness(one, other) > MAX_ECHO and len(first & second) > MAX_ECHO * len(
        first | second
    )


def weigh_criterion(view: CallView, criterion: Criterion) -> Weighed:
    """What one call shows about a criterion of words."""
    if criterion.not_said:
        if found := view.find_said(criterion.not_said):
            return Weighed("missed", "was said", (found[0],), found[1])
        return Weighed("met", "was never said")
    if criterion.said:
        return _weigh_said(view, criterion)
    return weigh(view, criterion)


def _weigh_said(view: CallView, criterion: Criterion) -> Weighed:
    """The words, or other words for the same deed; the caller's words said back are no evidence."""
    sentences = list(agent_sentences(view))
    today = view.record.started_at.date()
    for item in sentences:
        if not item.is_echo and names_detail(criterion.said, item.text, today):
            return Weighed("met", "was said", (item.turn,), item.text)
    deed = guess_deed(criterion.said)
    if deed is None:
        turns = tuple(sorted({item.turn for item in sentences}))[-2:]
        return Weighed("missed", "was never said", turns)
    found = weigh(view, Criterion(judged="the deed", deed=deed))
    if found.state == "met" and not _is_engaged(view, sentences):
        return Weighed("missed", "said that it is done, but never what", found.turns)
    return found


def guess_deed(patterns: tuple[str, ...]) -> Deed | None:
    """The deed that these patterns are ways to confirm, if they are."""
    words = [part for pattern in patterns for part in pattern.lower().split("|")]
    deeds: tuple[Deed, ...] = ("cancel", "move", "book", "take")
    for deed in deeds:
        if any(re.search(_DEEDS[deed], word) for word in words):
            return deed
    return "take" if any(re.search(_GENERAL, word) for word in words) else None


def says(view: CallView, pattern: str, heard: str) -> bool:
    """Whether these words say what the pattern asks for, also in other words for a deed."""
    if names_detail((pattern,), heard, view.record.started_at.date()):
        return True
    deed = guess_deed((pattern,))
    return deed is not None and any(
        says_done(deed, sentence.lower().replace("’", "'"))
        for sentence in sentences_of(heard)
        if not is_question(sentence)
    )


def weigh(view: CallView, criterion: Criterion) -> Weighed:
    """What one call shows about a criterion with a deed."""
    deed = criterion.deed or "answer"
    sentences = _sentences_about(view, deed)
    detailed = _detailed(view, criterion, sentences)
    if deed == "answer":
        return _weigh_answer(view, sentences, detailed)
    statements = [item for item in sentences if item.is_statement]
    done = [item for item in statements if says_done(deed, item.text)]
    refused = [item for item in statements if is_refusal(item.text)]
    if done and (detailed or not criterion.details):
        shown = (detailed or done)[-1]
        turns = tuple(sorted({done[-1].turn, shown.turn}))
        return Weighed("met", "said so, and named it", turns, shown.text)
    if refused and not done:
        return Weighed("missed", "the agent refused", (refused[-1].turn,))
    named = _answers_check(view, detailed) or _stated(view, criterion, statements)
    if named is not None and not refused:
        return Weighed("met", "named it", (named.turn,), named.text)
    return _weigh_rest(view, sentences, bool(done))


def _sentences_about(view: CallView, deed: Deed) -> list[AgentSentence]:
    """A goodbye counts in the answer to the script's last turn only."""
    sentences = list(agent_sentences(view))
    if deed != "part":
        return sentences
    return [item for item in sentences if item.turn in _last_answers(view)]


def _detailed(
    view: CallView, criterion: Criterion, sentences: list[AgentSentence]
) -> list[AgentSentence]:
    today = view.record.started_at.date()
    return [
        item
        for item in sentences
        if not item.is_echo and names_detail(criterion.details, item.text, today)
    ]


def _stated(
    view: CallView, criterion: Criterion, sentences: list[AgentSentence]
) -> AgentSentence | None:
    """A statement with every detail; not what the agent only heard, or would need."""
    today = view.record.started_at.date()
    found = (
        item for item in sentences if states_all(criterion.details, item.text, today)
    )
    return next(found, None)


def states_all(details: tuple[str, ...], text: str, today: date) -> bool:
    plain = text.lower().replace("’", "'")
    is_open = _OPEN.search(plain) or _RESTATED.search(plain) or _NEGATED.search(plain)
    return len(details) > 1 and not is_open and names_all(details, plain, today)


def is_settled(criterion: Criterion, text: str, today: date) -> bool:
    """Whether a turn names a detail and says that it is done, or names all of them."""
    details = criterion.details or criterion.said
    if not names_detail(details, text, today):
        return False
    deed = criterion.deed or guess_deed(criterion.said)
    if deed is None or deed == "answer":
        return True
    sentences = [item.lower().replace("’", "'") for item in sentences_of(text)]
    return any(
        says_done(deed, item) or states_all(details, item, today) for item in sentences
    )


def _last_answers(view: CallView) -> tuple[int, ...]:
    """The agent's answers to the last turn of the script."""
    answers = [
        exchange.agent
        for exchange in view.exchanges
        if view.spans[exchange.caller - 1].why.startswith("turn:")
    ]
    return answers[-1] if answers else ()


def _weigh_rest(
    view: CallView, sentences: list[AgentSentence], says_so: bool
) -> Weighed:
    """No detail was named. Silence about it is a no; words that might mean it are open."""
    turns = tuple(sorted({item.turn for item in sentences}))[-2:]
    is_engaged = _is_engaged(view, sentences)
    if not is_engaged and not says_so:
        reason = "never came to it: no question, no detail, no result"
        return Weighed("missed", reason, turns)
    if not is_engaged and _says_yes_to_all(view):
        reason = "said that it is done, but never what; asked, it said yes"
        return Weighed("missed", reason, turns)
    if says_so:
        reason = "said that it is done, but never named what; a probe could tell"
        return Weighed("unknown", reason, turns)
    first = min((number for number, _ in view.caller_turns()), default=0)
    names = _caller_names(view)
    statements = [item for item in sentences if item.is_statement and item.turn > first]
    if all(is_hollow(item.text, names) for item in statements):
        return Weighed("missed", "never said that it is done", turns)
    return Weighed("unknown", "the agent's words do not tell; a probe could", turns)


def _weigh_answer(
    view: CallView, sentences: list[AgentSentence], detailed: list[AgentSentence]
) -> Weighed:
    told = [item for item in detailed if item.is_statement]
    if told:
        return Weighed("met", "told the caller", (told[0].turn,), told[0].text)
    promised = [
        item for item in sentences if item.is_statement and promises_answer(item.text)
    ]
    turns = tuple(sorted({item.turn for item in sentences}))[-2:]
    if promised:
        quote = promised[0].text
        return Weighed("met", "promised an answer", (promised[0].turn,), quote)
    statements = [item for item in sentences if item.is_statement and item.turn > 1]
    if all(_says_nothing(item.text) for item in statements):
        return Weighed("missed", "never answered", turns)
    if not _is_engaged(view, sentences) and not _has_substance(statements):
        return Weighed("missed", "never answered", turns)
    return Weighed("unknown", "the agent's words do not tell; a probe could", turns)


def _says_nothing(text: str) -> bool:
    return is_hollow(text) or is_refusal(text) or is_denial(text)


def is_denial(text: str) -> bool:
    """Says that there is nothing of the kind."""
    return _DENIED.search(text) is not None


def _has_substance(statements: list[AgentSentence]) -> bool:
    """Whether two different sentences say something beyond what is polite."""
    return len({item.text for item in statements if not _is_polite(item.text)}) > 1


_PROMISE = re.compile(
    r"\b(?:find out|look (?:that|it|into)|get back to you|check (?:on )?(?:that|it|with)"
    r"|have (?:someone|somebody|a colleague)|call you back|let you know"
    r"|(?:taken|noted|took|wrote|written) (?:your|the|that) question|question down"
    r"|ask (?:the|a|my) )"
)


def promises_answer(text: str) -> bool:
    return _PROMISE.search(text.lower().replace("’", "'")) is not None


def says_done(deed: Deed, text: str) -> bool:
    """Whether a statement says that the deed is done; not an offer, and not a denial."""
    if _OPEN.search(text):
        return False
    pattern = _DEEDS[deed] if deed == "part" else f"(?:{_DEEDS[deed]})|(?:{_GENERAL})"
    for clause in _CLAUSES.split(text):
        plain = _HARMLESS.sub(" ", clause) if deed != "part" else clause
        if re.search(pattern, plain) and (deed == "part" or not _NEGATED.search(plain)):
            return True
    return False


def is_refusal(text: str) -> bool:
    return (
        _REFUSED.search(_HARMLESS.sub(" ", text.lower().replace("’", "'"))) is not None
    )


def names_detail(details: tuple[str, ...], text: str, today: date) -> bool:
    return any(_names(detail, text, today) for detail in details)


def names_all(details: tuple[str, ...], text: str, today: date) -> bool:
    return all(_names(detail, text, today) for detail in details)


def _names(detail: str, text: str, today: date) -> bool:
    """A weekday also by its date, a time also in digits."""
    if find_any((detail,), text):
        return True
    wanted, said = find_slots(_as_slot(detail), today), find_slots(text, today)
    return bool(wanted.days & said.days or wanted.times & said.times)


def _as_slot(detail: str) -> str:
    return detail if detail.lower() in DAYS else f"at {detail}"


def _answers_check(
    view: CallView, detailed: list[AgentSentence]
) -> AgentSentence | None:
    """A detail that was named in answer to the caller's open question."""
    asked = [at for at, span in view.caller_turns() if span.why == "check"]
    after = [item for item in detailed if asked and item.turn > asked[0]]
    return next((item for item in after if item.is_statement), None)


def _says_yes_to_all(view: CallView) -> bool:
    """Answers an open question with a yes, or with what it had said before."""
    answers = [
        (view.spans[item.caller - 1].why, view.spans[item.agent[0] - 1].text)
        for item in view.exchanges
        if item.agent
    ]
    for place, (why, text) in enumerate(answers):
        earlier = [said for reason, said in answers[:place] if reason != "check"]
        if why == "check" and (_ASSENT.match(text.lower()) or text in earlier):
            return True
    return False


def _is_engaged(view: CallView, sentences: list[AgentSentence]) -> bool:
    """Whether the agent took up anything of this caller's: asked for it, or named it."""
    context = view.plan.caller_context
    own = [item.text for item in sentences if not item.is_echo]
    if any(asked_fields(text) or find_any((_ASKS_SLOT,), text) for text in own):
        return True
    script = " ".join(
        span.text
        for span in view.record.caller_spans
        if span.why.startswith(("opening", "turn:", "stage:", "answer:"))
    )
    given = " ".join(item.answer for item in context.verification.answers.values())
    known = set(words_of(f"{script} {given}")) - _HOLLOW
    return any(known & set(words_of(text)) for text in own)


_ASKS_SLOT = (
    r"/\b(?:which|what) (?:day|time|date)|when would|how (?:do you|is that) spell/"
)
_COMMON = word_set("""
    a an and at be been book booked booking but by appointment call called calling can could did
    from have if in into make may me message my name not now or our out please put request
    schedule set should take taken tell this time want was when which who will would when's us
    question questions answer need needs here it's its him her he she them their two get
    arranged care completed confirmed consider done down entered everything go note noted on pass
    passed recorded reserved saved scheduled sent settled sorted up us actually am before bring
    did do does done every going had has hold is last let long look many much only over send
    some somebody someone still their then these they think those too try were what where while
    why you'd you'll you're you've
""")
_HOLLOW = _POLITE | _COMMON


def is_hollow(text: str, names: frozenset[str] = frozenset()) -> bool:
    """Courtesy, and words that say that anything is done."""
    return all(word in _HOLLOW or word in names for word in words_of(text))


def _is_polite(text: str) -> bool:
    """Nothing but courtesy: it says neither that something is done nor what."""
    return all(word in _POLITE for word in words_of(text))


def _caller_names(view: CallView) -> frozenset[str]:
    known = view.plan.caller_context.verification.answers.get("name")
    return frozenset(words_of(known.answer)) if known else frozenset()
