"""What a sentence of the agent claims: that a deed is done, a refusal, a denial, or nothing.

No single phrase decides. A deed counts as done when the agent says so in words that are neither
a question, an offer, a refusal nor the caller's own words, and when it names a detail of it.
"""

import re
from datetime import date

from aftercall.tester.criterion import Criterion, Deed
from aftercall.tester.phrases import (
    find_any,
    is_question,
    plain_text,
    sentences_of,
    word_set,
    words_of,
)
from aftercall.tester.slots import DAYS, HOUR_WORDS, find_slots

_GENERAL = (
    r"\b(?:all set|all done|all sorted|sorted(?: out)?|taken care of|good to go|squared away"
    r"|(?:that's|that is|it's|it is|is|are|now|been) (?:all )?"
    r"(?:done|arranged|settled|in place|made|fixed)"
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
    r"|can't|cannot|couldn't|won't|unable|without|failed|nothing|unfortunately"
    r"|no \w+ (?:will|can|is|was|has|have|gets?|goes))\b"
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
    r"|i'll need|we need|first need|would need|to be (?:booked|confirmed|scheduled)"
    r"|(?:can|could|may|might) be (?:done|arranged|made|fixed|sorted|settled|booked|moved)"
    r"|let me (?:see"
    r"|check|look)|i can (?:book|make|move|cancel|schedule|offer)|we can (?:book|offer)"
    r"|you can (?:also|book)|would you"
    r"|could (?:do|offer|fit|see|book|move)|could you|shall i|should i|do you want|whether)\b"
)
_RESTATED = re.compile(
    r"\b(?:you (?:said|want|wanted|would like|asked|need|mentioned|are (?:looking|asking|calling))"
    r"|you'd like|you're (?:looking|asking|calling)"
    r"|i (?:have )?(?:heard|hear|understand|understood|see|got you))\b"
)
_CLAUSES = re.compile(r"[,;:–—]| but | and | although | though | so ")
_PROMISE = re.compile(
    r"\b(?:find out|look (?:that|it|into)|get back to you|check (?:on )?(?:that|it|with)"
    r"|have (?:someone|somebody|a colleague)|call you back|let you know"
    r"|(?:taken|noted|took|wrote|written) (?:your|the|that) question|question down"
    r"|ask (?:the|a|my) )"
)
_POLITE = word_set("""
    bye goodbye absolutely again all alright am anything appreciate apologies are assist
    assistance calling
    certainly clear course day do else fine for glad good got great happy hear heard hello help
    hi how i i'm i see is it just know let like listening me moment more need no noted of ok okay
    on one patience perfect please pleasure problem really right say see so sorry sure terrific
    thank thanks that that's the there they to today understand understood very wait welcome well
    what with wonderful would yeah yes you your yours i'd i'll i've we we're
""")
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
HOLLOW = _POLITE | _COMMON


def guess_deed(patterns: tuple[str, ...]) -> Deed | None:
    """The deed that these patterns are ways to confirm, if they are."""
    words = [part for pattern in patterns for part in pattern.lower().split("|")]
    deeds: tuple[Deed, ...] = ("cancel", "move", "book", "take")
    for deed in deeds:
        if any(re.search(_DEEDS[deed], word) for word in words):
            return deed
    return "take" if any(re.search(_GENERAL, word) for word in words) else None


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


def states_all(details: tuple[str, ...], text: str, today: date) -> bool:
    plain = plain_text(text)
    is_open = _OPEN.search(plain) or _RESTATED.search(plain) or _NEGATED.search(plain)
    return len(details) > 1 and not is_open and names_all(details, plain, today)


def is_said_done(criterion: Criterion, text: str, today: date) -> bool:
    """Whether a turn names a detail and says that it is done."""
    deed = criterion.deed or guess_deed(criterion.said) or "answer"
    if deed == "answer":
        return is_settled(criterion, text, today)
    details = criterion.details or criterion.said
    told = (item for item in sentences_of(text) if not is_question(item))
    done = any(says_done(deed, plain_text(item)) for item in told)
    return done and names_detail(details, text, today)


def is_settled(criterion: Criterion, text: str, today: date) -> bool:
    """Whether a turn names a detail and says that it is done, or names all of them."""
    details = criterion.details or criterion.said
    if not names_detail(details, text, today):
        return False
    deed = criterion.deed or guess_deed(criterion.said)
    if deed is None or deed == "answer":
        return True
    sentences = [plain_text(item) for item in sentences_of(text)]
    return any(
        says_done(deed, item) or states_all(details, item, today) for item in sentences
    )


def is_negated(text: str) -> bool:
    return _NEGATED.search(_HARMLESS.sub(" ", text)) is not None


def is_refusal(text: str) -> bool:
    return _REFUSED.search(_HARMLESS.sub(" ", plain_text(text))) is not None


def is_denial(text: str) -> bool:
    """Says that there is nothing of the kind."""
    return _DENIED.search(text) is not None


def promises_answer(text: str) -> bool:
    return _PROMISE.search(plain_text(text)) is not None


def names_detail(details: tuple[str, ...], text: str, today: date) -> bool:
    """At least one of them, and no other day or time than theirs."""
    if names_other_slot(details, text, today):
        return False
    return any(_names(detail, text, today) for detail in details)


def names_other_slot(details: tuple[str, ...], text: str, today: date) -> bool:
    """Where details are a day or a time: whether the text has only another one."""
    found = [
        find_slots(_as_slot(detail), today) for detail in details if _is_slot(detail)
    ]
    said = find_slots(text, today)
    days = {day for item in found for day in item.days}
    times = {time for item in found for time in item.times}
    has_other_day = bool(days and said.days and not days & said.days)
    return has_other_day or bool(times and said.times and not times & said.times)


def _is_slot(detail: str) -> bool:
    return detail.lower() in DAYS or detail.lower() in HOUR_WORDS


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


def is_hollow(text: str, names: frozenset[str] = frozenset()) -> bool:
    """Courtesy, and words that say that anything is done."""
    return all(word in HOLLOW or word in names for word in words_of(text))


def is_polite(text: str) -> bool:
    """Nothing but courtesy: it says neither that something is done nor what."""
    return all(word in _POLITE for word in words_of(text))
