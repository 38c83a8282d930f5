"""Removes names, numbers and dates of birth from what leaves the tester."""

import re
from collections.abc import Iterable
from typing import Any

from aftercall.tester.phrases import word_set, words_of
from aftercall.tester.scenario import Scenario
from aftercall.tester.slots import DAYS, MONTHS, ORDINALS

_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_NUMBER = re.compile(r"(?<![\w.])\+?\d(?:[\d\s().-]{5,}\d)(?!\w)")
_MONTH = rf"(?:{'|'.join(MONTHS)})"
_DAY = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?|{'|'.join(name.replace('-', '[ -]') for name in ORDINALS)})"
_TENS = "(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_UNIT = "(?:one|two|three|four|five|six|seven|eight|nine)"
_TEENS = "(?:ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)"
_YEAR = (
    rf"(?:(?:19|20)\d\d|(?:nineteen|twenty)[ -](?:hundred|oh[ -]{_UNIT}|{_TEENS}"
    rf"|{_TENS}(?:[ -]{_UNIT})?)|two thousand(?:(?: and)? (?:{_TEENS}|{_TENS}(?:[ -]{_UNIT})?"
    rf"|{_UNIT}))?)"
)
_MONTH_AND_DAY = rf"(?:{_MONTH} (?:the )?{_DAY}|(?:the )?{_DAY} (?:of )?{_MONTH})"
_BIRTH = re.compile(
    rf"\b(?:{_MONTH_AND_DAY},? (?:in )?{_YEAR}"
    r"|\d{1,2}[/.-]\d{1,2}[/.-](?:19|20)?\d\d|(?:19|20)\d\d-\d\d-\d\d)\b",
    re.IGNORECASE,
)
_BORN_ON = re.compile(
    rf"(\b(?:birth|born|birthday)\b[^.?!]{{0,20}}?)\b{_MONTH_AND_DAY}\b", re.IGNORECASE
)
_BORN = re.compile(r"\b(?:birth|born|birthday|dob)\b")
_BOOKED = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? (?:the )?$|appointment|book(?:ed|ing)"
    r"|scheduled|see you|confirmed|moved|reserved|slot|available|visit)"
)
_DIGIT = "(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)"
_DIGIT_WORDS = re.compile(rf"\b(?:{_DIGIT}[\s,-]+){{4,}}{_DIGIT}\b", re.IGNORECASE)
_KINDS = {
    "name": "name",
    "dob": "date of birth",
    "phone": "number",
    "email": "email",
    "address": "address",
    "zip": "zip",
}
# what is left of a whole name when one part of it is known
_REST_OF_NAME = re.compile(
    rf"\[name\](?: (?!(?i:{'|'.join((*DAYS, *MONTHS))})\b)[A-Z][a-z'’]+(?:-[A-Z][a-z]+)?)+"
    r"|(?:\b[A-Z][a-z]+ )?\[name\](?: \[name\])+"
)
_CONTEXT_NAME = re.compile(
    r"\b((?i:my name is|this is|name's|thank you,|thanks,|welcome back,|hi,?|hello,?|dear"
    r"|mister|mrs?\.|ms\.|dr\.) )"
    r"([A-Z][a-z]+(?: [A-Z][a-z]+)?)"
)
_KEPT = word_set("""
    id sid started_at scenario kind fingerprint first_seen last_seen verdict folder who line
    outcome target calibration measures rates file
""")


def _redact_date(match: re.Match[str]) -> str:
    """The date of an appointment stays; any other date with a year may be one of birth."""
    before = match.string[max(0, match.start() - 60) : match.start()].lower()
    is_birth = _BORN.search(before) is not None
    return (
        match.group(0) if _BOOKED.search(before) and not is_birth else "[date of birth]"
    )


class Redactor:
    """Removes the scenarios' names, numbers and dates, and all that look like them."""

    def __init__(
        self, scenarios: Iterable[Scenario] = (), *, is_on: bool = True
    ) -> None:
        self._is_on = is_on
        known: dict[str, str] = {}
        for scenario in scenarios:
            for call in scenario.calls:
                for field, item in call.caller_context.verification.answers.items():
                    known[item.answer] = _KINDS.get(field, field)
                    parts = item.answer.split() if field == "name" else ()
                    known |= {
                        part: "name" for part in parts if part[0].isupper() and part[1:]
                    }
                if call.caller_context.number:
                    known[call.caller_context.number] = "number"
        ordered = sorted(known, key=len, reverse=True)
        self._known = [
            (
                re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE),
                f"[{known[words]}]",
            )
            for words in ordered
            if words_of(words)
        ]

    def clean(self, text: str) -> str:
        if not self._is_on:
            return text
        text = _EMAIL.sub("[email]", text)
        for pattern, stand_in in self._known:
            text = pattern.sub(stand_in, text)
        text = _BIRTH.sub(_redact_date, text)
        text = _DIGIT_WORDS.sub("[number]", _NUMBER.sub("[number]", text))
        text = _CONTEXT_NAME.sub(r"\1[name]", _BORN_ON.sub(r"\1[date of birth]", text))
        return _REST_OF_NAME.sub("[name]", text)

    def clean_data(self, data: Any) -> Any:
        """Every text in lists and mappings; ids and times stay."""
        if isinstance(data, str):
            return self.clean(data)
        if isinstance(data, list | tuple):
            return [self.clean_data(item) for item in data]
        if isinstance(data, dict):
            return {
                key: value if key in _KEPT else self.clean_data(value)
                for key, value in data.items()
            }
        return data
