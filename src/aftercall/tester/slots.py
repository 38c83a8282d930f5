"""Slots in spoken words: days and times that compare equal however they are said.

Also what agents ask every caller, and how a caller answers without inventing a fact. The script's
own answers come first. A question that neither knows is a gap in the script: the caller says so,
and the run says so.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from aftercall.tester.phrases import find_any, plain_text, questions_of

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_HOURS = "one two three four five six seven eight nine ten eleven twelve"
HOUR_WORDS = {word: number for number, word in enumerate(_HOURS.split(), 1)}
_MINUTES = {
    "fifteen": 15,
    "thirty": 30,
    "forty five": 45,
    "forty-five": 45,
    "oh five": 5,
    "ten": 10,
    "twenty": 20,
    "forty": 40,
    "fifty": 50,
}
_SHORT_DAYS = {"mon": 0, "tue": 1, "tues": 1, "wed": 2, "weds": 2, "thu": 3} | {
    "thur": 3,
    "thurs": 3,
    "fri": 4,
}
_NUMBERED = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth "
    "twenty-first twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth "
    "twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"
)
ORDINALS = {word: number for number, word in enumerate(_NUMBERED.split(), 1)}
_NUMBER = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?|{'|'.join(sorted(ORDINALS, key=len, reverse=True))})"
_HOUR = rf"(?:{'|'.join(HOUR_WORDS)}|\d{{1,2}})"
_DAY = re.compile(rf"\b({'|'.join((*DAYS, *_SHORT_DAYS))})(?:'s|s)?\b(?!-)")
_RELATIVE = re.compile(r"\b(today|day after tomorrow|tomorrow)\b")
_DATE = re.compile(
    rf"\b(?:(?P<month>{'|'.join(MONTHS)}) (?:the )?(?P<day>{_NUMBER})"
    rf"|(?:the )?(?P<day_first>{_NUMBER}) (?:of )?(?P<month_last>{'|'.join(MONTHS)}))\b"
    r"(?:,? (?P<year>(?:19|20)\d\d))?"
)
_TIME = re.compile(
    rf"\b(?:(?P<half>half past|half|quarter past|quarter to|quarter after) (?P<base>{_HOUR})\b"
    r"|(?P<clock>\d{1,2})[:.](?P<minute>\d\d)\b"
    rf"|(?P<lead>at|around|about|by|for|to|from|until|till|past) (?P<hour>{_HOUR})"
    rf"(?: (?P<minutes>{'|'.join(_MINUTES)}))?\b(?![:.]\d|-)"
    rf"|(?P<marked>{_HOUR})(?: (?P<marked_minutes>{'|'.join(_MINUTES)}))? ?"
    r"(?:o'clock|a\.?m\b|p\.?m\b|in the (?:morning|afternoon|evening))"
    r"|(?P<noon>noon|midday))"
)
_NOT_A_TIME = re.compile(
    r"\s*(?:minutes?|hours?|days?|weeks?|months?|years?|people|persons?|of|or|tickets?|percent"
    r"|dollars?|euros?|milligrams?|tablets?|adults?|guests?|things?|more|seconds?)\b"
)
_BIRTH = re.compile(r"\b(?:birth|born|birthday|dob)\b")


@dataclass(frozen=True)
class Slots:
    """The weekdays (0 is Monday) and times ("10:00" of a 12-hour clock) that a text names."""

    days: frozenset[int]
    times: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.days or self.times)


def find_slots(text: str, today: date) -> Slots:
    plain = plain_text(text)
    return Slots(_find_days(plain, today), frozenset(list_times(plain)))


def _find_days(text: str, today: date) -> frozenset[int]:
    """Weekdays that are named, or meant by "tomorrow"; without one, those of the dates."""
    found = set()
    for match in _DAY.finditer(text):
        name = match.group(1)
        found.add(DAYS.index(name) if name in DAYS else _SHORT_DAYS[name])
    for match in _RELATIVE.finditer(text):
        ahead = ("today", "tomorrow", "day after tomorrow").index(match.group(1))
        found.add((today.weekday() + ahead) % 7)
    if not found:
        for match in _DATE.finditer(text):
            meant = read_date(match, today)
            if meant is not None and not match.group("year"):
                found.add(meant.weekday())
    return frozenset(found)


def find_dated_days(text: str, today: date) -> list[tuple[str, date]]:
    """Weekdays that are said together with a date: the weekday's name, and the date."""
    plain = plain_text(text)
    found = []
    for match in _DATE.finditer(plain):
        before = plain[: match.start()].rstrip(", ").removesuffix(" the")
        named = next((day for day in DAYS if before.endswith(day)), None)
        meant = read_date(match, today)
        if named is not None and meant is not None:
            found.append((named, meant))
    return found


def find_dates(text: str) -> set[date]:
    """Dates that are said with their year."""
    plain = plain_text(text)
    found = (
        read_date(match, date.min)
        for match in _DATE.finditer(plain)
        if match.group("year")
    )
    return {day for day in found if day is not None}


def read_date(match: re.Match[str], today: date) -> date | None:
    """Without a year, the next such day."""
    month = MONTHS.index(match.group("month") or match.group("month_last")) + 1
    said = match.group("day") or match.group("day_first")
    day = ORDINALS.get(said) or int(re.sub(r"\D", "", said))
    try:
        if year := match.group("year"):
            return date(int(year), month, day)
        meant = date(today.year, month, day)
        is_over = meant < today - timedelta(days=1)
        return date(today.year + 1, month, day) if is_over else meant
    except ValueError:
        return None


def list_times(text: str) -> list[str]:
    """The times of a text in lower case, in its order."""
    if _BIRTH.search(text):
        return []
    found = (
        _read_time(match)
        for match in _TIME.finditer(text)
        if not _NOT_A_TIME.match(text[match.end() :])
    )
    return [time for time in found if time is not None]


def _read_time(match: re.Match[str]) -> str | None:
    """A time as the clock shows it: "half past two", "a quarter to five", "noon"."""
    if match.group("noon"):
        return "12:00"
    minute = 0
    if match.group("half"):
        hour = _read_hour(match.group("base"))
        kind = match.group("half")
        minute = 30 if kind.startswith("half") else 15
        if kind == "quarter to":
            hour, minute = hour - 1 or 12, 45
    elif match.group("clock"):
        hour, minute = int(match.group("clock")), int(match.group("minute"))
    else:
        hour = _read_hour(match.group("hour") or match.group("marked"))
        said = match.group("minutes") or match.group("marked_minutes")
        minute = _MINUTES[said] if said else 0
    if not 1 <= hour <= 24 or minute > 59:
        return None
    return f"{(hour - 1) % 12 + 1}:{minute:02}"


def _read_hour(word: str) -> int:
    return HOUR_WORDS.get(word) or int(word)


STILL_THERE = ("still there|are you there|can you hear me|still on the line",)
CONFIRM = (
    (
        r"/\b(?:is that (?:correct|right|ok|okay|all right|fine)|does that (?:work|sound|suit)"
        r"|(?:right|correct|yes|okay|ok|alright|all right|yeah)\?)/"
    ),
    (
        r"/\b(?:shall i|should i|shall we|would you like|do you want|want me to|can i go ahead"
        r"|may i go ahead|ready to|good to go|sound (?:good|right|ok)|have i got that|did i get)\b/"
    ),
    r"/\b(?:would that|will that|is this|does this) (?:work|suit|be|okay|correct|right)/",
    r"/\b(?:to confirm|just to be sure|just checking|let me confirm)\b/",
)
_ASKS_SLOT = (
    r"/\b(?:which|what|any|preferred|best|good|particular) (?:\w+ )?(?:day|date|time|slot)s?\b/",
    r"/^\W*(?:and )?when\?$/",
    r"/\bwhen (?:would|do|should|shall|can|could|may|are|were|is|will|did|might)\b/",
    r"/\b(?:which|what|at what|on what) (?:hour|o'clock|morning|afternoon|weekday)\b/",
    r"/\b(?:the|your) (?:day|date|time|hour|slot|weekday)\b(?! of birth)/",
    r"/\b(?:morning|afternoon|evening)s? or (?:\w+ )?(?:morning|afternoon|evening)/",
    (
        r"/\b(?:prefer|works? (?:best )?for you|suits? you|convenient|what time|day and time"
        r"|days? and times?)\b/"
    ),
)
_OFFERS = (
    (
        r"/\b(?:taken|full|booked up|fully booked|not available|unavailable|no openings|instead"
        r"|how about|what about|next available|earliest|closest|nearest|we have|i have|there's"
        r"|there is|free|open(?:ing)?s?|could do|can do|can offer|offer you|available)\b/"
    ),
)
_CHOICE = re.compile(r"\bor\b|\bwhich (?:one|of)|\beither\b")
_USUAL: tuple[tuple[str, str], ...] = (
    (
        (
            r"been (?:here|to|with|seen|in)\b|(?:new|existing|returning|current|registered)"
            r" (?:patient|customer|client|caller)|first (?:visit|time)|visited|have you (?:ever )?"
            r"(?:called|used|booked)|seen (?:by )?us|on file|in our system"
        ),
        "I have been there before.",
    ),
    (
        (
            r"\bfor (?:yourself|someone else|somebody else|another)|is (?:this|it|that) for you\b"
            r"|on behalf|are you the patient|calling for"
        ),
        "It's for me.",
    ),
    (
        (
            r"(?:number|line) (?:that )?(?:you're|you are) calling|(?:this|same) number"
            r"|number (?:on|we have)|reach you (?:at|on) (?:this|the)"
        ),
        "Yes, this number is fine.",
    ),
    (
        (
            r"(?:which|any|preferred|particular|specific|usual) (?:doctor|provider|dentist|stylist"
            r"|physician|therapist|clinician|staff|location|office|branch)|anyone in particular"
            r"|preference"
        ),
        "I have no preference.",
    ),
    (
        r"\b(?:emergency|urgent|life.threatening|chest pain|severe)\b",
        "No, it's not urgent.",
    ),
    (
        r"\b(?:recorded|recording|consent|privacy|terms|hold|wait|a moment|transfer)\b",
        "Yes, that's fine.",
    ),
    (
        (
            r"\b(?:shall|should|would|want|like|may i|can i|could i|okay|interested|sign you)\b.*"
            r"\b(?:text|email|e-mail|sms|reminder|confirmation|newsletter|survey|feedback)\b"
        ),
        "No, thank you, that's not needed.",
    ),
    (r"\bhow are you\b|how's (?:it going|your day)", "I'm fine, thank you."),
    (
        (
            r"\b(?:did i|have i) (?:hear|get|understand|catch)|do you mean|you mean\b|you said\b"
            r"|you're (?:calling|looking|asking)"
        ),
        "Yes, that's right.",
    ),
)
_ASKS_REASON = re.compile(
    r"\b(?:reason|(?:what's|what is|what was) (?:it|this|that|your (?:call|visit)|the (?:call|visit"
    r"|matter))\b.{0,12}\b(?:about|for|regarding|concerning)|brings you|calling about"
    r"|(?:how|what) (?:can|may|could|shall) (?:i|we) (?:help|do|get|arrange|assist|serve)\b"
    r"|what (?:would|do|did) you (?:need|want|like|wish|call)|tell me (?:more|about)|repeat"
    r"|say that again|pardon|catch that|come again|didn't (?:get|hear)|rephrase|for what)\b"
)
# a short question whether it may be so: "shall it be thus?", "agreed?"
_SO = re.compile(
    r"^\W*(?:and |so |then )?(?:shall|is|does|will|would|may) (?:it|that|this|we)\b"
    r"\S*(?: \S+){0,4}$"
    r"|^\W*(?:agreed|settled|deal|fair|good|fine|shall we)\?$"
)
# a yes answers neither of these
_IS_OPEN = re.compile(
    r"\b(?:what|which|where|who|whom|whose|how (?:many|much|long|old|often|do))\b"
    r"|\bor\b(?! (?:not|something|so)\b)"
)
_USUAL_ANSWERS = tuple((re.compile(pattern), answer) for pattern, answer in _USUAL)


@dataclass(frozen=True)
class WantedSlot:
    """The day and time that the caller asked for last, in the script's words."""

    words: str
    slots: Slots


def answer_usual(
    text: str, asked: Slots, wanted: WantedSlot | None, reasons: Sequence[str]
) -> tuple[str, str] | None:
    """The kind of the answer and its words; None if nobody would know what to say.

    `asked` is the day and time that the agent named, `reasons` what the caller rang up for.
    """
    questions = plain_text(" ".join(questions_of(text)))
    if find_any(STILL_THERE, questions):
        return "here", "Yes, I'm here."
    if wanted is not None and (slot := _answer_slot(text, questions, asked, wanted)):
        return slot
    for pattern, answer in _USUAL_ANSWERS:
        is_yes = answer.startswith("Yes")
        if pattern.search(questions) and not (is_yes and _IS_OPEN.search(questions)):
            return "usual", answer
    is_confirming = find_any(CONFIRM, questions) or _SO.search(questions)
    if is_confirming and not _IS_OPEN.search(questions):
        return "yes", "Yes, please."
    if reasons and _ASKS_REASON.search(f"{questions} {text.lower()}"):
        return "reason", reasons[0]
    return None


def _answer_slot(
    text: str, questions: str, asked: Slots, wanted: WantedSlot
) -> tuple[str, str] | None:
    """What the caller says to an offer of times: which part of the script, and the words."""
    asks_which = find_any(_ASKS_SLOT, questions) is not None
    if not asked:
        return ("slot", f"{wanted.words}, please.") if asks_which else None
    if _CHOICE.search(questions):
        if asked.days & wanted.slots.days or asked.times & wanted.slots.times:
            return "slot", f"{wanted.words}, please."
        return "choice", "The first one, please."
    if find_any(CONFIRM, questions) or not asks_which:
        if _fits(asked, wanted.slots) or find_any(_OFFERS, text):
            return "yes", "Yes, please."
        return "correct", f"No, {wanted.words}."
    return "slot", f"{wanted.words}, please."


def _fits(asked: Slots, wanted: Slots) -> bool:
    fits_day = not asked.days or bool(asked.days & wanted.days)
    return fits_day and (not asked.times or bool(asked.times & wanted.times))
