"""The agent's words against the calendar, its earlier words, and what the caller asked for."""

import re
from collections.abc import Iterator, Set
from datetime import date
from itertools import combinations

from aftercall.tester.claims import is_negated, says_done
from aftercall.tester.criterion import Deed
from aftercall.tester.finding import CallView, Findings
from aftercall.tester.phrases import (
    content_words,
    is_question,
    likeness,
    plain_text,
    questions_of,
    sentences_of,
    word_set,
)
from aftercall.tester.record import Span
from aftercall.tester.slots import (
    DAYS,
    HOUR_WORDS,
    MONTHS,
    Slots,
    find_dated_days,
    find_slots,
    list_times,
)

_DENIED = re.compile(
    r"\b(?:no|don't (?:have|see) (?:any|a)?|there (?:is|are) no|have no|couldn't find (?:any"
    r"|a)?)\s+"
    r"([a-z][a-z ]{3,40}?) (?:on file|on record|in (?:the|our) system|listed|for you)\b"
)
# what can follow from there being nothing: a new one, a request to somebody, or a second look
_REMEDY = re.compile(
    r"\b(?:request\w*|asked|asking|new|created?|added|note|message|found|there (?:it|you)|ah"
    r"|doctor|dr|instead|registered|another)\b"
)
_DONE = re.compile(
    r"\b(?:sending|sent|refilled|refilling|cancell?ed|rescheduled|moved|updated|processed"
    r"|submitted)\b(.{3,60})"
)
_OTHER_DAY = re.compile(
    r"\b(?:not|can't|cannot|instead of|rather than|from|meant to|supposed to|currently|was)\b"
)
_YES = re.compile(r"\W*(?:yes|sure|okay|that works|fine|the first one)\b")
_DEEDS: tuple[Deed, ...] = ("book", "move")
_ASIDE = re.compile(
    r"\b(?:open|opening|hours|closed|close|was|were|from|instead of|old|previous|earlier"
    r"|cancel\w*|reminder|remind|call you|before|until|arrive|by|between|taken|full|available)\b"
)
_ASKS_SLOT = re.compile(r"\b(?:day|time|when|date)\b", re.IGNORECASE)
_KEYS = re.compile(r"[{}\"\[\],:_]+|\b(?:date_?of_?birth|dob|birth)\b[^,}]*")
# hours of one part of the week, of the day, or of something else than the office
_SOMETIMES = re.compile(
    r"\b(?:weekdays?|weekends?|during the week|rest of|other days|lunch|mornings?|afternoons?"
    r"|evenings?|holidays?|phones?|lines?|lab|pharmacy|summer|winter|emergenc\w+|except|only"
    r"|every day|daily|this|next|between|after|before)\b"
)
_HOURS = re.compile(
    r"\b(?:open(?:s|ing)?|close[sd]?|closing|hours|shut(?:s|ters?)?|(?:un)?lock(?:s|ed|ing)?|doors?"
    r"|gates?|bolt)\b"
)
_CLOSING = re.compile(
    r"\b(?:clos(?:e[sd]?|ing)|shut(?:s|ters?)?|lock(?:s|ed|ing)?|bolt|until|till)\b"
)
_RANGE = re.compile(r"\b(?:to|until|till|through|and)\b")
_NOBODY = re.compile(r"\b(?:nobody|no one|never|not|in vain|empty)\b|n't\b")
_CLAUSE = re.compile(r"[,;:]| and | but ")
# says which half of the day an hour is in, or bounds the hours: no part of them
_OF_CLOCK = re.compile(
    r"\bin the (?:morning|afternoon|evening)\b"
    rf"|\b(?:after|before) (?=(?:{'|'.join(HOUR_WORDS)}|\d+)\b)"
)
_PRICE = re.compile(r"(?:[$€£] ?\d[\d.,]*|\b\d[\d.,]* (?:dollars|euros|pounds)\b)")
_NOT = re.compile(
    r"\b(?:do not|does not|don't|doesn't|not|no|never|cannot|can't|isn't|aren't)\b"
)
_NOT_YET = re.compile(
    r"\b(?:yet|until|unless|without|now|found|if|once|anything|only|worry|problem|hesitate|but"
    r"|before|first|after|online|usually|always|else|other|another)\b"
)
_CLOSED = re.compile(
    r"\b(?:closed|shut|not open|don't open|never open|aren't open"
    r"|(?:nobody|no one)(?:'s| is) (?:in|here|there)\b)"
)
_OPENED = re.compile(r"(?<!not )(?<!n't )(?<!never )\bopen\b")
_BACK = re.compile(r"\b(?:was|were|last|since)\b")  # of a year that is not said
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|s)$")
_FILLERS = word_set("""
    yes no sorry actually unfortunately afraid oh well please certainly still also even plan one
    among all any
""")
_OBJECTS = (
    re.compile(r"\bdr\.? ([a-z]{3,})"),
    # medicines are known by their endings; any other word may be another word for the same
    re.compile(
        r"\b([a-z]{2,}(?:pril|statin|olol|cillin|azole|formin|sartan|dipine|xetine|mycin|profen"
        r"|thiazide|semide|parin|goxin|nisone|azepam|zolam|codone))\b"
    ),
)
_PAST = re.compile(
    r"\b(?:booked|scheduled|reserved|moved|rescheduled|cancell?ed|noted|written|taken|sent|saved"
    r"|recorded|arranged|ordered|requested|refilled|passed|done|set|confirmed|down)\b"
)
_NO_MORE = re.compile(
    r"\b(?:not|won't|no longer|n't|never|another time|some other|again|soon)\b"
)
_MORE = re.compile(
    r"\b(?:yet|until|before|pay|else|other|further|more|questions?|problem|need|charge|fee|worry"
    r"|cost|wait|doubt)\b"
)
_STANDS = re.compile(
    r"\b(?:(?:see(?:ing)?|expect(?:ing)?) you (?:on|at|this|next|then|there|tomorrow)\b"
    r"|(?:it|that|this|appointment|booking|slot|[a-z]+day)(?: is|'s)? (?:still (?:on|stands?"
    r"|there|booked|down)|stays? (?:as|on|in|where|put)|remains?)"
    r"|you(?:'re| are)? still (?:on|down|booked|have|in)|looking forward to (?:it|seeing))\b"
)
_RECORD = (
    "(?:(?:appointments?|bookings?|reminders?|messages?|refills?|orders?)"
    "|(?:records?|notes?|entry) (?:of|for|about) (?:that|this|it|you|your))"
)
_NO_RECORD = re.compile(
    rf"\b(?:(?:don't|do not|can't|cannot) (?:have|see|find) (?:any|an?) {_RECORD}\b"
    rf"|(?:have|see|find|there's|there is) (?:nothing (?:down|booked|noted|for you|here|on file|in"
    rf" the|under)|no {_RECORD})\b"
    r"|(?:didn't|did not|haven't|have not|never) (?:actually |really )?(?:write|written|wrote|taken"
    r"|took|made|book|booked|note|noted|save|saved|send|sent|passed)"
    rf"(?=\W*$| (?:it|that|this|anything|you|your|the|an?|any) ?(?:{_RECORD}|down|in|on|off)?\W*$)"
    r"|nothing (?:is|was|has been|got) (?:booked|noted|saved|written|sent|taken))"
)
_TODAY = re.compile(r"\btoday\b", re.IGNORECASE)  # mostly a courtesy
_PARTS = re.compile(r"[,;.!?]| but ")
_TAKEN = re.compile(
    r"\b(?:taken|full|fully booked|booked up|booked solid|unavailable|not|no|gone|closed|can't)\b"
)
_ACCEPTS = ("filler:yes", "filler:choice")
_BIRTH = re.compile(r"\b(?:birth|born)\b")
_SYNONYMS = {
    "medication": "drug",
    "prescription": "drug",
    "refill": "drug",
    "appointment": "visit",
    "booking": "visit",
    "accept": "take",
    "insurance": "plan",
}


def find(view: CallView) -> Findings:
    yield from _weekdays(view)
    yield from _contradictions(view)
    yield from _turned_facts(view)
    yield from _slots(view)
    yield from _wrong_object(view)


def _wrong_object(view: CallView) -> Findings:
    """Does for another doctor, or with another medicine, what the caller asked for."""
    asked = view.caller_text.lower()
    first = view.first_caller_turn
    known = view.greeting.lower()
    for pattern in _OBJECTS:
        wanted = set(pattern.findall(asked))
        told = [
            (number, found)
            for number, sentence in view.statements
            if number > first and says_done("take", sentence.lower())
            for found in pattern.findall(sentence.lower())
        ]
        other = [item for item in told if item[1] not in f"{asked} {known}"]
        if wanted and other and not any(found in wanted for _, found in told):
            number, found = other[-1]
            text = f"speaks of {found}; the caller asked for {min(wanted)}"
            yield view.finding("wrong_object", text, number, detail=found)


def _weekdays(view: CallView) -> Findings:
    """Names a weekday that the date does not fall on."""
    for number, span in view.agent_turns():
        ahead = [item for item in sentences_of(span.text) if not _BACK.search(item)]
        for day, meant in find_dated_days(" ".join(ahead), view.today):
            true = DAYS[meant.weekday()]
            if true != day:
                said = f"{MONTHS[meant.month - 1].capitalize()} {meant.day}"
                text = f"{said} is a {true.capitalize()}, not a {day.capitalize()}"
                yield view.finding("wrong_weekday", text, number)


def _contradictions(view: CallView) -> Findings:
    """The agent does what it said was not there."""
    denied: list[tuple[int, set[str]]] = []
    yield from _undone(view)
    for number, span in view.agent_turns():
        text = plain_text(span.text)
        for rest in () if _REMEDY.search(text) else _DONE.findall(text):
            for turn, things in denied:
                if things & _stems(rest):
                    text = "does what it said there is nothing for"
                    yield view.finding("contradiction", text, turn, number)
                    return
        denied += [(number, _stems(thing)) for thing in _DENIED.findall(text)]


def _undone(view: CallView) -> Findings:
    """Says that it is done, and later that there is nothing, or that the opposite holds."""
    wanted = {
        item.deed
        for item in view.scenario.success
        if item.call in (None, view.record.number)
    }
    deeds = [deed for deed in wanted if deed in ("book", "move", "cancel", "take")]
    done_at = 0
    for number, sentence in view.statements:
        plain = plain_text(sentence)
        if done_at and _takes_back(plain, is_cancelled="cancel" in wanted):
            text = "said that it is done, and later the opposite"
            turns = (done_at, number)
            yield view.finding("contradiction", text, *turns, detail="done or not")
            return
        if any(_was_done(deed, plain) for deed in deeds):
            done_at = done_at or number


def _was_done(deed: Deed, sentence: str) -> bool:
    """In so many words; what is promised or offered can still come to nothing."""
    return _PAST.search(sentence) is not None and says_done(deed, sentence)


def _takes_back(sentence: str, *, is_cancelled: bool) -> bool:
    if is_cancelled:
        return (
            _STANDS.search(sentence) is not None and _NO_MORE.search(sentence) is None
        )
    return _NO_RECORD.search(sentence) is not None and _MORE.search(sentence) is None


def _turned_facts(view: CallView) -> Findings:
    """Two statements about one thing that cannot both be true."""
    told = [(number, plain_text(sentence)) for number, sentence in view.statements]
    for (turn, earlier), (number, later) in combinations(told, 2):
        if what := _clash(earlier, later, view.today):
            text = f"contradicts itself about {what}"
            yield view.finding("contradiction", text, turn, number, detail=what)
            return


def _clash(first: str, second: str, today: date) -> str:
    """What the two sentences disagree about; empty if both may be true."""
    is_part = any(_SOMETIMES.search(_OF_CLOCK.sub("", one)) for one in (first, second))
    if not is_part and (
        _has_other_hours(first, second, today)
        or _is_open_and_closed(first, second, today)
        or _is_open_and_closed(second, first, today)
    ):
        return "the opening hours"
    if _has_other_price(first, second):
        return "the price"
    return "whether it is so" if _is_denied(first, second) else ""


def _has_other_hours(one: str, other: str, today: date) -> bool:
    """Opens or closes at another time: "we open at eight" and "we close at five" are one."""
    pairs = zip(_read_hours(one), _read_hours(other), strict=True)
    is_other = any(first and second and first != second for first, second in pairs)
    return is_other and find_slots(one, today).days == find_slots(other, today).days


def _read_hours(sentence: str) -> tuple[str, str]:
    """When it opens and closes by this sentence; empty where it does not say."""
    opens = closes = ""
    for clause in _CLAUSE.split(sentence) if _HOURS.search(sentence) else ():
        times = list_times(clause)
        is_nobody = _NOBODY.search(clause) is not None
        if len(times) == 2 and _RANGE.search(clause) and not is_nobody:
            opens, closes = times
        elif len(times) == 1 and is_nobody:
            if re.search(r"\b(?:after|past)\b", clause):
                closes = times[0]
            elif re.search(r"\b(?:before|until|till)\b", clause):
                opens = times[0]
        elif len(times) == 1 and _CLOSING.search(clause):
            closes = times[0]
        elif len(times) == 1 and _HOURS.search(clause):
            opens = times[0]
    return opens, closes


def _is_denied(first: str, second: str) -> bool:
    """One sentence says what the other denies."""
    is_same = bool(_NOT.search(first)) == bool(_NOT.search(second))
    if is_same or _NOT_YET.search(first) or _NOT_YET.search(second):
        return False
    stripped = _NOT.sub(" ", first), _NOT.sub(" ", second)
    words = _matter(stripped[0]), _matter(stripped[1])
    shared, smaller = len(words[0] & words[1]), min(len(words[0]), len(words[1]))
    is_about_same = likeness(*stripped) >= 0.8 or shared == smaller
    return shared >= 3 and is_about_same


def _matter(text: str) -> set[str]:
    """What a sentence is about, with one word for what is said in several."""
    words = {_ENDING.sub("", word) for word in content_words(text)}
    return {_SYNONYMS.get(word, word) for word in words} - _FILLERS


def _is_open_and_closed(one: str, other: str, today: date) -> bool:
    """One says that it is open on a day, the other that it is closed all that day."""
    is_open = _OPENED.search(one) is not None or all(_read_hours(one))
    days = find_slots(one, today).days
    return is_open and any(
        _CLOSED.search(clause)
        and not list_times(clause)
        and find_slots(clause, today).days & days
        for clause in (() if _OPENED.search(other) else _CLAUSE.split(other))
    )


def _has_other_price(one: str, other: str) -> bool:
    first, second = set(_PRICE.findall(one)), set(_PRICE.findall(other))
    if not first or not second or first & second:
        return False
    words = set(content_words(_PRICE.sub("", one)))
    others = set(content_words(_PRICE.sub("", other)))
    return len(words & others) >= 0.6 * max(1, len(words | others))


def _stems(text: str) -> set[str]:
    words = {word.removesuffix("s") for word in content_words(text)}
    return {_SYNONYMS.get(word, word) for word in words}


def _slots(view: CallView) -> Findings:
    """The day and time that the agent confirms against those that were agreed on last."""
    agreed, said_at = Slots(frozenset(), frozenset()), 0
    offered = agreed
    was_checked = False  # asked which day and time the agent has
    for number, span in enumerate(view.spans, 1):
        if span.who == "caller":
            agreed, changed = _agree(span, agreed, offered, view.today)
            said_at = number if changed else said_at
            was_checked = (
                span.why == "check" and _ASKS_SLOT.search(span.text) is not None
            )
            continue
        for sentence in sentences_of(span.text):
            confirmed = _confirmed(sentence, view.today, is_answer=was_checked)
            other = _differs(agreed, confirmed)
            if said_at and other:
                text = f"confirmed {other}; the caller had agreed to {_speak(agreed)}"
                detail = "day" if confirmed.days - agreed.days else "time"
                turns = (said_at, number)
                yield view.finding("slot_changed", text, *turns, detail=detail)
                return
        offered = _offered(span.text, view.today)
    if said_at:
        yield from _last_word(view, agreed, said_at)


def _last_word(view: CallView, agreed: Slots, said_at: int) -> Findings:
    """Names another day or time after the agreement, by voice or tool, and never the right one."""
    said = list(_said_slots(view, said_at))
    if any(_same(agreed, slots) for _, _, slots in said):
        return
    told = [
        (number, slots)
        for number, sentence, slots in said
        if not _is_aside(view, sentence) and not is_negated(sentence.lower())
    ]
    last = max((number for number, _ in view.agent_turns()), default=0)
    for event in view.record.events:
        start_s = view.span(said_at).start_s
        if event.kind == "tool_call" and event.at_s > start_s:
            arguments = _KEYS.sub(" ", event.detail.partition(" ")[2])
            if slots := find_slots(arguments, view.today):
                told.append((last, slots))
    other = [(number, slots) for number, slots in told if _differs(agreed, slots)]
    if other and not any(_same(agreed, slots) for _, slots in told):
        number, slots = other[0]
        text = f"came to {_speak(slots)}; the caller had agreed to {_speak(agreed)}"
        yield view.finding("slot_changed", text, said_at, number, detail="day")


def _said_slots(view: CallView, since: int) -> Iterator[tuple[int, str, Slots]]:
    """The agent's statements after a turn that name a day or a time."""
    for number, sentence in view.statements:
        slots = find_slots(_TODAY.sub(" ", sentence), view.today)
        if number > since and slots:
            yield number, sentence, slots


def _same(agreed: Slots, said: Slots) -> bool:
    return bool(agreed.days & said.days or agreed.times & said.times) and not _differs(
        agreed, said
    )


def _is_aside(view: CallView, sentence: str) -> bool:
    """About another time than that of the appointment; a reminder is one unless it is the wish."""
    plain = plain_text(sentence)
    asked = view.caller_text.lower()
    if "remind" not in asked:
        return _ASIDE.search(plain) is not None
    is_wish = "remind" in plain
    return not is_wish or _ASIDE.search(plain.replace("remind", "")) is not None


def _agree(
    span: Span, agreed: Slots, offered: Slots, today: date
) -> tuple[Slots, bool]:
    """What is agreed on after the caller's turn, and whether the turn changed it."""
    parts = [
        part for part in _PARTS.split(span.text.lower()) if not _BIRTH.search(part)
    ]
    plain = ", ".join(parts)
    own = find_slots(_TODAY.sub(" ", plain), today)
    if span.why.startswith(("answer:", "gap", "check")):
        return agreed, False
    if own and not _OTHER_DAY.search(plain):
        if own.days & offered.days and not own.times:
            own = Slots(own.days, offered.times)
        return _take_over(own, agreed), True
    if offered and (span.why.startswith(_ACCEPTS) or _YES.match(plain)):
        taken = _take_over(offered, agreed)
        return taken, taken != agreed
    return agreed, False


def _take_over(new: Slots, agreed: Slots) -> Slots:
    """With several days or times it is open which one is agreed on."""
    if len(new.days) > 1 or len(new.times) > 1:
        return Slots(frozenset(), frozenset())
    return Slots(new.days or agreed.days, new.times or agreed.times)


def _offered(text: str, today: date) -> Slots:
    """The day and time that a yes would agree to: what is asked, or what is said to be free."""
    asked = find_slots(" ".join(questions_of(text)), today)
    if asked:
        return asked
    free = [part for part in _PARTS.split(text) if not _TAKEN.search(part.lower())]
    return find_slots(" . ".join(free), today)


def _confirmed(sentence: str, today: date, *, is_answer: bool) -> Slots:
    """The day and time of a sentence that says that something is booked, or answers for when."""
    plain = plain_text(sentence)
    is_done = is_answer or any(says_done(deed, plain) for deed in _DEEDS)
    if is_question(sentence) or not is_done or _ASIDE.search(plain):
        return Slots(frozenset(), frozenset())
    return find_slots(_TODAY.sub(" ", sentence), today)


def _differs(agreed: Slots, confirmed: Slots) -> str:
    has_other_day = _are_apart(agreed.days, confirmed.days)
    is_other = has_other_day or _are_apart(agreed.times, confirmed.times)
    return _speak(confirmed) if is_other else ""


def _are_apart(one: Set[object], other: Set[object]) -> bool:
    """Both are known, and have nothing in common."""
    return bool(one) and bool(other) and one.isdisjoint(other)


def _speak(slots: Slots) -> str:
    days = [DAYS[day].capitalize() for day in sorted(slots.days)]
    return " at ".join([*days[:1], *sorted(slots.times)[:1]]) or "nothing"
