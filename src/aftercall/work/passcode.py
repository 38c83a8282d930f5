"""A spoken passcode: recognised without being logged, compared in constant time, and taken out
of everything that is read.

One comparison for each time a caller offers one, so that reciting every number in one breath is
one wrong try.
"""

import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aftercall.model.calls import Call

HIDDEN = "[passcode]"

_CUE = re.compile(
    r"\b(?:pass\s*(?:code|word|phrase)|code\s*word|security\s*code|my\s+(?:code|pin)"
    r"|the\s+(?:code|pin))\b",
    re.I,
)
_FILLER = re.compile(
    r"^(?:\W|is\b|it's\b|its\b|it\s+is\b|would\s+be\b|my\b|the\b|um+\b|uh+\b|okay\b|ok\b"
    r"|sure\b|yes\b|yeah\b)+",
    re.I,
)
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_DIGITS = {
    word: str(digit)
    for digit, words in enumerate(
        ("zero oh", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    )
    for word in words.split()
}


@dataclass(frozen=True)
class PasscodeTries:
    """In which legs the right words were said, and how often others were."""

    correct_leg_ids: frozenset[str]
    wrong: int


def normalise(spoken: str) -> str:
    return "".join(_DIGITS.get(word, word) for word in _WORD.findall(spoken.casefold()))


def find_tries(legs: Iterable[Call], passcode: str, allowed: int) -> PasscodeTries:
    """After `allowed` wrong ones even the right one does not count."""
    right: set[str] = set()
    wrong = 0
    for leg in legs:
        for offered in _offers(leg):
            if wrong >= allowed:
                return PasscodeTries(frozenset(right), wrong)
            if is_correct_passcode(offered, passcode):
                right.add(leg.id)
            else:
                wrong += 1
    return PasscodeTries(frozenset(right), wrong)


def asks_passcode(text: str) -> bool:
    return bool(_CUE.search(text))


def find_passcode(text: str, *, is_asked: bool) -> str | None:
    """What a caller's turn offers as a passcode; None if it offers none."""
    cue = _CUE.search(text)
    told = _FILLER.sub("", text[cue.end() :] if cue else text)
    return told if told and (cue or is_asked) else None


def is_correct_passcode(offered: str, passcode: str) -> bool:
    wanted = normalise(passcode)
    return hmac.compare_digest(normalise(offered)[: len(wanted)].encode(), wanted.encode())


def _offers(leg: Call) -> Iterator[str]:
    is_asked = False
    for turn in leg.turns:
        if turn.speaker == "agent":
            is_asked = asks_passcode(turn.text)
        elif told := find_passcode(turn.text, is_asked=is_asked):
            yield told


class PasscodeMask:
    """Takes a passcode out of a text, spelled in digits or in words, with anything between them
    that is not a word.
    """

    def __init__(self, passcode: str) -> None:
        spoken = [_WORD.findall(passcode.casefold()), list(normalise(passcode))]
        self._patterns = [
            re.compile(r"(?<![^\W_])" + r"[\W_]*".join(map(_either, parts)) + r"(?![^\W_])", re.I)
            for parts in spoken
        ]

    def __call__(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text


def _either(part: str) -> str:
    """A digit is also its word, and a word that is a digit also its figure."""
    words = [word for word, digit in _DIGITS.items() if digit == part]
    figure = [_DIGITS[part]] if part in _DIGITS else []
    return "(?:" + "|".join(re.escape(way) for way in (part, *words, *figure)) + ")"
