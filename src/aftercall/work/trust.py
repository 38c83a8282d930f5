"""How far a caller is trusted, and what the policy lets them ask for.

Caller ID can be forged: a number counts only if the carrier attests it or with the spoken
passcode. The passcode is compared in constant time, never logged, and masked in all that is read.
"""

import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from aftercall.errors import ConfigError
from aftercall.model.calls import Call, LiveCall
from aftercall.model.followups import Trust, TurnRef
from aftercall.model.people import normalise_caller
from aftercall.settings import Settings

Verdict = Literal["do", "hold", "refuse"]
_ORDER: tuple[Trust, ...] = ("unknown", "known", "verified")


@dataclass(frozen=True)
class PolicyRuling:
    verdict: Verdict
    reason: str = ""


class TrustPolicy:
    def __init__(self, settings: Settings) -> None:
        self._work = settings.work
        numbers = (*settings.work.trusted, settings.owner)
        self._trusted = {_number(number) for number in numbers if number}

    def trust(self, leg: LiveCall, has_passcode: bool) -> Trust:
        if has_passcode:
            return "verified"
        if leg.caller is None or leg.caller not in self._trusted:
            return "unknown"
        return "verified" if leg.verified else "known"

    def rule(self, trust: Trust, kind: str, *, leaves_machine: bool, today: int) -> PolicyRuling:
        """`today` counts the requests of this caller today, this one included."""
        named = self._work.policy.get(f"{trust}.{kind}") or self._work.policy.get(trust)
        verdict: Verdict = named or ("hold" if leaves_machine and trust != "verified" else "do")
        if verdict == "refuse":
            return PolicyRuling("refuse", f"the policy refuses {kind} requests of {trust} callers")
        if today > self._work.daily_limit:
            limit = self._work.daily_limit
            return PolicyRuling("hold", f"more than {limit} requests of this caller in a day")
        if verdict == "do":
            return PolicyRuling("do")
        if named:
            return PolicyRuling("hold", f"the policy holds it ({trust} caller)")
        return PolicyRuling("hold", f"it leaves this machine, and the caller is {trust}")


def lowest_trust(trusts: dict[str, Trust], spots: Iterable[TurnRef]) -> Trust:
    """The trust of the least trusted leg: another phone may have claimed the number."""
    found = [trusts[call_id] for call_id, _ in spots if call_id in trusts]
    return min(found, key=_ORDER.index, default="unknown")


def _number(number: str) -> str | None:
    try:
        return normalise_caller(number)
    except ValueError as error:
        raise ConfigError(f"work.trusted: {number!r} {error}") from None


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
    correct_leg_ids: frozenset[str]
    wrong: int


def normalise(spoken: str) -> str:
    return "".join(_DIGITS.get(word, word) for word in _WORD.findall(spoken.casefold()))


def find_tries(legs: Iterable[Call], passcode: str, allowed: int) -> PasscodeTries:
    """One comparison for each attempt, so reciting all numbers in one breath is one wrong try.

    After `allowed` wrong tries even the right passcode does not count.
    """
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
    """What a caller's turn offers as a passcode, if anything."""
    cue = _CUE.search(text)
    offered = _FILLER.sub("", text[cue.end() :] if cue else text)
    return offered if offered and (cue or is_asked) else None


def is_correct_passcode(offered: str, passcode: str) -> bool:
    wanted = normalise(passcode)
    return hmac.compare_digest(normalise(offered)[: len(wanted)].encode(), wanted.encode())


def _offers(leg: Call) -> Iterator[str]:
    is_asked = False
    for turn in leg.turns:
        if turn.speaker == "agent":
            is_asked = asks_passcode(turn.text)
        elif offered := find_passcode(turn.text, is_asked=is_asked):
            yield offered


class PasscodeMask:
    """Masks a passcode in a text, in digits or in words, with any punctuation between them."""

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
    """Matches a digit or its word, whichever was given."""
    words = [word for word, digit in _DIGITS.items() if digit == part]
    figure = [_DIGITS[part]] if part in _DIGITS else []
    return "(?:" + "|".join(re.escape(way) for way in (part, *words, *figure)) + ")"
