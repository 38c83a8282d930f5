"""Days named in speech, resolved against the day of the call.

Only days to come: what is past is nobody's due date.
"""

import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta

from aftercall.llm.rules.cue import Cue, Table
from aftercall.llm.rules.memo import clear_caches, remember
from aftercall.llm.rules.numbers import COUNT, ORDINAL, ORDINAL_WORD, count, day_number
from aftercall.llm.rules.reckoning import (
    SHIFTED,
    WEEKDAY,
    Mention,
    later,
    month_end,
    reckon,
    shift,
    weekday_of,
)

_MONTHS = tuple(name.lower() for name in calendar.month_name)[1:]
_SHORT_MONTHS = (
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sept",
    "sep",
    "oct",
    "nov",
    "dec",
)

_MONTH = "(?:" + "|".join((*_MONTHS, *_SHORT_MONTHS)) + r")\b\.?"
# A bare "the third" is a day only where no noun follows: "the third floor" is none.
_NO_NOUN = (
    r"(?=\s*(?:$|[.,;:?!)]|(?:at|by|for|from|in|of|on|or|and|but|is|if|then|to|please|instead"
    "|though|because|so|works?|would|will|"
    "before|after|about|around|i|we|you|he|she|they|it|with|when|not|that|until|till|morning"
    r"|afternoon|evening)\b|'s\b))"
)
_DAYPART = r"(?:morning|afternoon|evening|night|lunchtime|noon)"
_UNIT = r"(?P<unit>day|week|fortnight|month|year)s?"

_SOON = 7  # months ahead that people speak of as coming

_FEASTS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "boxing day": (12, 26),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "valentine's day": (2, 14),
    "halloween": (10, 31),
}


Resolve = Callable[[re.Match[str], date], date | None]


def _upcoming_day(
    number: int | None, today: date, month: int | None = None
) -> date | None:
    """The next such day of a month strictly to come (the day itself if the month is named)."""
    if number is None:
        return None
    for offset in range(25):
        year, month_index = divmod(today.month - 1 + offset, 12)
        if month is not None and month_index + 1 != month:
            continue
        if number > calendar.monthrange(today.year + year, month_index + 1)[1]:
            continue
        day = date(today.year + year, month_index + 1, number)
        if day > today or (month is not None and day == today):
            return day
    return None


def _next_weekday(name: str, today: date) -> date:
    return today + timedelta(days=(weekday_of(name) - today.weekday() - 1) % 7 + 1)


def _week_after(name: str, today: date) -> date:
    """ "next Friday": the Friday of the week that begins on the coming Monday."""
    return today + timedelta(days=7 - today.weekday() + weekday_of(name))


def _month_number(name: str) -> int:
    return next(
        index for index, full in enumerate(_MONTHS, 1) if full[:3] == name[:3].lower()
    )


def _in_units(match: re.Match[str], today: date) -> date | None:
    number = count(match["count"])
    return None if number is None else later(today, number, match["unit"].lower())


def _weekday_week(match: re.Match[str], today: date) -> date:
    return _next_weekday(match["weekday"], today) + timedelta(
        weeks=2 if match["unit"].lower() == "fortnight" else 1
    )


def _with_day_number(match: re.Match[str], today: date) -> date | None:
    """ "Tuesday the third": the next third that is a Tuesday, else the next third; on the day
    itself it is today.
    """
    number, month, weekday = (
        day_number(match["ordinal"]),
        match["month"],
        weekday_of(match["weekday"]),
    )
    if month or number is None:
        return _upcoming_day(number, today, _month_number(month) if month else None)
    ends = [month_end(today, offset) for offset in range(_SOON)]
    days = [end.replace(day=number) for end in ends if number <= end.day]
    return next(
        (day for day in days if day >= today and day.weekday() == weekday), None
    ) or _upcoming_day(number, today)


def _month_day(match: re.Match[str], today: date) -> date | None:
    number = (
        day_number(match["ordinal"])
        if not match["ordinal"].isdecimal()
        else int(match["ordinal"])
    )
    if number is None or not 1 <= number <= 31:
        return None
    return _upcoming_day(number, today, _month_number(match["month"]))


def _of_next_month(match: re.Match[str], today: date) -> date | None:
    number = day_number(match["ordinal"])
    end = month_end(today, 1)
    return end.replace(day=number) if number and number <= end.day else None


def _iso(match: re.Match[str], today: date) -> date | None:
    try:
        return date.fromisoformat(match.group())
    except ValueError:
        return None


def _feast(match: re.Match[str], today: date) -> date | None:
    month, day = _FEASTS[match.group().lower().replace("’", "'")]
    return _upcoming_day(day, today, month)


_PART_OF_WEEK = {
    "start": "monday",
    "beginning": "monday",
    "early": "monday",
    "middle": "wednesday",
    "mid": "wednesday",
}
_PLACES = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}


def _nth_weekday(match: re.Match[str], today: date) -> date | None:
    """ "The first Monday in April": the next such day to come."""
    place, weekday = _PLACES[match["place"].lower()], weekday_of(match["weekday"])
    for offset in range(13):
        end = month_end(today, offset)
        if match["month"] and end.month != _month_number(match["month"]):
            continue
        if match["next"] and offset == 0:
            continue
        days = [
            end.replace(day=day)
            for day in range(1, end.day + 1)
            if end.replace(day=day).weekday() == weekday
        ]
        if days[place] >= today:
            return days[place]
    return None


def _bare_ordinal(match: re.Match[str], today: date) -> date | None:
    return _upcoming_day(day_number(match["ordinal"]), today)


def _first_of(month: str | None, today: date) -> date | None:
    return _upcoming_day(1, today, _month_number(month) if month else None)


_AT_AN_HOUR = re.compile(
    r"(?:day|morrow|clock|week|month|hours?|\d|half|one|two|three|four|five|six|seven|eight"
    "|nine|ten|eleven|twelve|thirty|every|always|"
    rf"early|late|{ORDINAL}),?\s*$",
    re.I,
)


def _in_the_morning(match: re.Match[str], today: date) -> date | None:
    """Tomorrow, unless an hour or a day before it says that another morning is meant."""
    return (
        None
        if _AT_AN_HOUR.search(match.string[: match.start()])
        else today + timedelta(days=1)
    )


def _weekend(match: re.Match[str], today: date) -> date:
    days = (5 - today.weekday()) % 7 + (
        7 if (match["next"] or match["later"]) and today.weekday() < 5 else 0
    )
    return today + timedelta(days=days)


_WRITTEN = Cue(r"\b\d{4}-\d{2}-\d{2}\b")
# The first pattern that matches at a place wins; longer readings come first.
_PATTERNS: Table[Resolve] = Table(
    (Cue(pattern), resolve)
    for pattern, resolve in (
        (
            r"\bthe day after tomorrow\b|\bday after tomorrow\b",
            lambda _, today: today + timedelta(days=2),
        ),
        (
            r"\b(?:a week (?:from|after) (?:tomorrow)|tomorrow week|(?P<x>a week tomorrow))\b",
            lambda _, today: today + timedelta(days=8),
        ),
        (rf"\b(?P<weekday>{WEEKDAY}) (?P<unit>week|fortnight)\b", _weekday_week),
        (rf"\b(?P<count>{COUNT}) {_UNIT} (?:from (?:now|today)|today)\b", _in_units),
        (
            rf"\bin (?:about |around |exactly )?(?P<count>{COUNT}) {_UNIT}(?:'s)?(?: time)?\b",
            _in_units,
        ),
        (rf"\bwithin (?:the next )?(?P<count>{COUNT}) {_UNIT}\b", _in_units),
        (
            (
                rf"\b(?:this |next |on )?(?P<weekday>{WEEKDAY}),? (?:the "
                f")?(?P<ordinal>{ORDINAL})(?:,? (?:of )?(?P<month>{_MONTH}))?"
            ),
            _with_day_number,
        ),
        (
            (
                r"\b(?:the )?(?P<place>first|second|third|fourth|last) "
                f"(?P<weekday>{WEEKDAY}) (?:in|"
                rf"of) (?:(?P<month>{_MONTH})|(?P<next>next month)|(?:the|this|that) month)"
            ),
            _nth_weekday,
        ),
        (
            rf"\b(?:start|beginning) of (?:next month|(?P<month>{_MONTH}))",
            lambda match, today: _first_of(match["month"], today),
        ),
        (
            (
                rf"\b(?:not|n[o']t) this (?P<weekday>{WEEKDAY}),? (?:but )?(?:the )?(?:next"
                "|one after|following)(?: one|"
                rf" {WEEKDAY})?"
            ),
            lambda m, today: _week_after(m["weekday"], today),
        ),
        (
            rf"\b(?P<weekday>{WEEKDAY}),? not this week,? (?:but )?next\b",
            lambda match, today: _week_after(match["weekday"], today),
        ),
        (
            r"\bthis time next week\b|\bwithin (?:the|a|one) week\b",
            lambda _, today: today + timedelta(days=7),
        ),
        (
            r"\bin half a year\b|\bin six months\b",
            lambda _, today: later(today, 6, "month"),
        ),
        (rf"\bthe (?P<ordinal>{ORDINAL}) of next month\b", _of_next_month),
        (
            rf"\b(?P<ordinal>{ORDINAL}|\d{{1,2}}) (?:of )?(?P<month>{_MONTH})",
            _month_day,
        ),
        (
            rf"\b(?P<month>{_MONTH}) (?:the )?(?P<ordinal>{ORDINAL}|\d{{1,2}}\b(?!:))",
            _month_day,
        ),
        (
            (
                r"\b(?:(?:the )?end of (?:the |this )?(?:day|business)|eod)\b(?! (?:on "
                f")?(?:{WEEKDAY}|tomorrow))"
            ),
            lambda _, today: today,
        ),
        (
            r"\b(?P<part>end|middle|mid|start|beginning|early|late)[ -](?:of )?next week\b",
            lambda match, today: _week_after(
                _PART_OF_WEEK.get(match["part"].lower(), "friday"), today
            ),
        ),
        (
            r"\b(?:the )?end of (?:the|this) (?:working )?week\b",
            lambda _, today: (
                today if today.weekday() == 4 else _next_weekday("friday", today)
            ),
        ),
        (r"\b(?:the )?end of next month\b", lambda _, today: month_end(today, 1)),
        (
            r"\b(?:the )?(?:end|last day) of (?:the|this) month\b|\bmonth end\b",
            lambda _, today: month_end(today),
        ),
        (
            rf"\b(?:the )?end of (?P<month>{_MONTH})",
            lambda match, today: month_end(
                today, (_month_number(match["month"]) - today.month) % 12
            ),
        ),
        (r"\b(?:the )?end of the year\b", lambda _, today: date(today.year, 12, 31)),
        (
            rf"\b(?:close of business|end of play|cob)\b(?! (?:on )?(?:{WEEKDAY}|tomorrow))",
            lambda _, today: today,
        ),
        (
            rf"\b(?:next|(?:the )?following) (?P<weekday>{WEEKDAY})\b",
            lambda match, today: _week_after(match["weekday"], today),
        ),
        (rf"\b(?:the )?(?P<weekday>{WEEKDAY}) (?P<unit>after next)\b", _weekday_week),
        (
            (
                rf"\b(?:the )?week after next,?(?: on)? (?P<weekday>{WEEKDAY})\b"
                rf"|\b(?P<earlier>{WEEKDAY}) (?:of )?the week after next\b"
            ),
            lambda match, today: (
                _week_after(match["weekday"] or match["earlier"], today)
                + timedelta(weeks=1)
            ),
        ),
        (
            (
                rf"\b(?P<weekday>{WEEKDAY}) (?:of )?next week\b|\bnext week(?:,? on)? "
                rf"(?P<later>{WEEKDAY})\b"
            ),
            lambda match, today: _week_after(match["weekday"] or match["later"], today),
        ),
        (
            (
                r"\b(?:the )?weekend (?P<next>after next)\b|\b(?P<later>next )?(?:this |the "
                r")?weekend\b"
            ),
            _weekend,
        ),
        (r"\b(?:first thing )?in the morning\b", _in_the_morning),
        (
            rf"\btomorrow(?: {_DAYPART})?\b|\btomorow\b",
            lambda _, today: today + timedelta(days=1),
        ),
        (rf"\b(?:today|tonight|this {_DAYPART})\b", lambda _, today: today),
        (
            (
                r"\b(?:christmas (?:eve|day)|boxing day|new year[’']s (?:eve|day)|valentine[’']s "
                r"day|halloween)\b"
            ),
            _feast,
        ),
        (
            (
                rf"\b(?:this )?(?P<weekday>{WEEKDAY})\b(?!['’]?s\b(?! (?:at|is|fine|good|best"
                "|better|ok|okay|great|perfect|all right|free|"
                rf"easier|ideal|lovely|instead)))"
            ),
            lambda m, today: _next_weekday(m["weekday"], today),
        ),
        (
            (
                r"\bthe (?!(?:first|second|third|last) (?:morning|afternoon|evening"
                rf"|night)\b)(?P<ordinal>{ORDINAL}){_NO_NOUN}"
            ),
            _bare_ordinal,
        ),
        # "Twenty-third, please.": an answer; "first, …" counts up.
        (
            rf"^(?!(?:first|second|third)\b)(?P<ordinal>{ORDINAL_WORD})\b(?=[,.!]|$)",
            _bare_ordinal,
        ),
    )
)
_WEEKDAY_ONLY = Cue(rf"(?:this )?{WEEKDAY}")
# "since Friday" is past; "till Friday" says how long something lasts; a negated day is the one
# it is not.
_NOT_MEANT = Cue(
    r"\b(?:last|since|until|till|til|through|not|isn't|(?<!later )than|easter|good|bank "
    "holiday|mean|except|instead of|"
    r"rather than|can't (?:do|make)|cannot (?:do|make)|"
    r"every(?: other| second| single)?|each|after)"
    r"(?: (?:this|the|on|for|past))?\s*$",
)
# "not today, today is a holiday" names no today at all
_NEGATED = Cue(r"\b(?:not|isn't)(?: (?:this|the|on|for))?\s*$")
_REFUSED_AFTER = Cue(
    "^(?:'s| is|,)? ?(?:no good|not good|out|a holiday|off|here|over here|for me|already here"
    "|taken|full|bad|tricky|gone|"
    r"when (?:i'm|i was|"
    r"we're|we were)|doesn't|does not|"
    r"won't|isn't|is not|not going to|"
    "night was|was|i was|we were|i can't|i cannot|we can't|(?:i'm|i am|we're|we are|i have"
    "|i've got|i work|we have|we close|he|she|my "
    r"\w+)\b"
    r"(?! (?:free|available|good|off|fine|around|able|home|there)))\b",
)
_BEFORE = Cue(r"(?<!on or )\bbefore(?: the)?\s*$")


@remember
def find_dates(text: str, today: date, anchor: date | None = None) -> list[Mention]:
    """Every day the text puts forward, in order.

    `anchor` is what "the day before" is the day before of.
    """
    named = _find_dates(text, today)
    around = (
        [mention for mention in reckon(text, named, anchor) if mention.day >= today]
        if anchor or named
        else []
    )
    if not around:
        return list(named)
    apart = [
        mention
        for mention in named
        if not any(
            mention.start < other.end and other.start < mention.end for other in around
        )
    ]
    return sorted((*apart, *around), key=lambda mention: mention.start)


def latest_day(text: str, today: date) -> date | None:
    """The last of the days a text names.

    For use outside a reading: it keeps nothing of the text in memory.
    """
    try:
        return max((mention.day for mention in find_dates(text, today)), default=None)
    finally:
        clear_caches()


_BARE_ORDINAL = Cue(
    r"(?:(?<!day )(?<!day, )\bthe |^(?!(?:first|second|third)\b))(?!(?:first|second|third"
    "|last) (?:morning|afternoon|evening|"
    rf"night)\b){ORDINAL}(?! of\b){_NO_NOUN}"
)
# "The twenty-third or the twenty-fourth of December"
_ONE_OR_OTHER = Cue(
    rf"(?P<one>\bthe {ORDINAL})(?P<rest> (?:or|and|to|until|through)(?: the)? {ORDINAL} of "
    f"(?P<month>{_MONTH}))"
)
_MONTH_ALONE = Cue(
    "(?:(?:no|sorry|oh|actually|in|of|it's|i mean|not this one|next month),? "
    rf")*(?P<month>{_MONTH})\W*"
)
_NTH_BARE = Cue(rf"\bthe (?:first|second|third|fourth|last) {WEEKDAY}\b(?! (?:in|of))")
_NAMED_MONTH = Cue(
    rf"\b(?:(?:in|of|for|late|early|mid|until|till|{ORDINAL}) (?P<month>{_MONTH})(?! \d)"
    f"|(?P<dated>{_MONTH}) (?:the )?{ORDINAL})"
)


def named_month(text: str, today: date) -> str | None:
    """The month a text speaks of, unless it is more likely one gone by."""
    found = [match["month"] or match["dated"] for match in _NAMED_MONTH.finditer(text)]
    ahead = [
        month for month in found if (_month_number(month) - today.month) % 12 <= _SOON
    ]
    return ahead[-1].strip(" .") if ahead else None


def month_only(text: str, day: date) -> date | None:
    """ "No, April.": the same day of the month that was meant."""
    match = _MONTH_ALONE.fullmatch(text)
    return _upcoming_day(day.day, day, _month_number(match["month"])) if match else None


def in_month(text: str, month: str) -> str:
    """ "The twenty first", once March was spoken of, is the twenty first of March."""
    if _NAMED_MONTH.search(text):
        return _ONE_OR_OTHER.sub(r"\g<one> of \g<month>\g<rest>", text)
    return _NTH_BARE.sub(
        rf"\g<0> of {month}",
        _BARE_ORDINAL.sub(lambda match: f"{match.group()} of {month}", text),
    )


@remember
def _find_dates(text: str, today: date) -> tuple[Mention, ...]:
    taken: list[tuple[int, int]] = []
    mentions: list[Mention] = []
    refused: set[date] = set()
    for pattern, resolve in (
        *(((_WRITTEN, _iso),) if "-" in text else ()),
        *_PATTERNS.of(text),
    ):
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            taken.append(match.span())
            if not (mention := _mention(text, match, resolve, today)):
                continue
            if _NEGATED.search(text[: mention.start]):
                refused.add(mention.day)
            else:
                mentions.append(mention)
    meant = (
        mention
        for mention in mentions
        if mention.day >= today and mention.day not in refused
    )
    return tuple(sorted(meant, key=lambda mention: mention.start))


def _mention(
    text: str, match: re.Match[str], resolve: Resolve, today: date
) -> Mention | None:
    before = text[: match.start()]
    shifted = SHIFTED.search(before)
    if not shifted and (
        (_NOT_MEANT.search(before) and not _NEGATED.search(before))
        or _REFUSED_AFTER.match(text[match.end() :])
    ):
        return None
    try:
        day = resolve(match, today)
    except (OverflowError, ValueError):
        return None
    if day is None:
        return None
    if shifted:
        return Mention(shifted.start(), match.end(), shift(day, shifted))
    weekday_only = bool(_WEEKDAY_ONLY.fullmatch(match.group()))
    if weekday_only and before.lower().endswith(" a "):
        return None  # "isn't that a Saturday?" names no day of its own
    if _BEFORE.search(before) and "end of" not in match.group().lower() and day > today:
        day -= timedelta(days=1)
    return Mention(match.start(), match.end(), day, weekday_only)
