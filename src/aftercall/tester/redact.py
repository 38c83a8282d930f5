"""Removes names, numbers and dates of birth from what leaves the tester."""

import re
from collections.abc import Iterable
from typing import Any

from aftercall.tester.phrases import word_set, words_of
from aftercall.tester.scenario import Scenario

_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_NUMBER = re.compile(r"(?<![\w.])\+?\d(?:[\d\s().-]{5,}\d)(?!\w)")
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_BIRTH = re.compile(
    rf"\b(?:(?:{_MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+(?:19|20)\d\d"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTHS}),?\s+(?:19|20)\d\d"
    r"|\d{1,2}[/.-]\d{1,2}[/.-](?:19|20)?\d\d|(?:19|20)\d\d-\d\d-\d\d)\b",
    re.IGNORECASE,
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
        return _CONTEXT_NAME.sub(r"\1[name]", text)

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
