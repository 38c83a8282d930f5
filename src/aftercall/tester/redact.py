"""What leaves the tester leaves without names, numbers and dates of birth: those of the
scenario, and those that look like it.
"""

import re
from collections.abc import Iterable
from typing import Any

from aftercall.tester.phrases import words_of
from aftercall.tester.scenario import Scenario

_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_NUMBER = re.compile(r"(?<![\w.])\+?\d(?:[\d\s().-]{5,}\d)(?!\w)")
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_BIRTH = re.compile(
    rf"\b(?:(?:{_MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+(?:19|20)\d\d|\d{{1,2}}(?:st|nd|rd"
    rf"|th)?\s+(?:of\s+)?(?:{_MONTHS}),?\s+(?:19|20)\d\d"
    r"|\d{1,2}[/.-]\d{1,2}[/.-](?:19|20)?\d\d|(?:19|20)\d\d-\d\d-\d\d)\b",
    re.IGNORECASE,
)
_DIGIT_WORDS = re.compile(
    r"\b(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)[\s,-]+){4,}(?:zero|oh|one"
    r"|two|three|four|five|six|seven|eight|nine)\b",
    re.I,
)
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


class Redactor:
    """Knows whom a scenario calls by which words; an empty one still finds what has the form of
    a number, date or address.
    """

    def __init__(self, scenarios: Iterable[Scenario] = (), *, is_on: bool = True) -> None:
        self._is_on = is_on
        known: dict[str, str] = {}
        for scenario in scenarios:
            for call in scenario.calls:
                for field, item in call.caller_context.verification.answers.items():
                    known[item.answer] = _KINDS.get(field, field)
                    if field == "name":
                        known |= {
                            part: "name"
                            for part in item.answer.split()
                            if len(part) > 1 and part[0].isupper()
                        }
                if call.caller_context.number:
                    known[call.caller_context.number] = "number"
        ordered = sorted(known, key=len, reverse=True)
        self._known = [
            (re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE), f"[{known[words]}]")
            for words in ordered
            if words_of(words)
        ]

    def clean(self, text: str) -> str:
        if not self._is_on:
            return text
        text = _EMAIL.sub("[email]", text)
        for pattern, stand_in in self._known:
            text = pattern.sub(stand_in, text)
        text = _BIRTH.sub("[date of birth]", text)
        text = _DIGIT_WORDS.sub("[number]", _NUMBER.sub("[number]", text))
        return _CONTEXT_NAME.sub(r"\1[name]", text)

    def clean_data(self, data: Any) -> Any:
        """Every text in lists and mappings; ids and times keep their form."""
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


_KEPT = frozenset(
    {
        *(
            "id",
            "sid",
            "started_at",
            "scenario",
            "kind",
            "fingerprint",
            "first_seen",
            "last_seen",
            "verdict",
            "folder",
            "who",
            "line",
        ),
        *("outcome", "target", "calibration", "measures", "rates", "file"),
    }
)
