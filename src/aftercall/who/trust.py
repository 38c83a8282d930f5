"""What a caller may start, and what they may hear.

Caller ID can be forged: a number counts only if the carrier verified it, or with the passcode.

A spoken passcode is found in a turn, compared in constant time and masked. An offer is one
comparison, so a caller who recites every number in one breath makes one wrong try. Wrong tries of
live calls count at once, before the follow-up work notes them.
"""

import hmac
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import and_, func, select

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.tables import followup_runs
from aftercall.errors import ConfigError
from aftercall.model.calls import Call, LiveCall
from aftercall.model.followups import Trust, TurnRef
from aftercall.model.people import normalise_caller
from aftercall.settings import Settings
from aftercall.settings.fields import (
    SPOKEN_DIGITS,
    SPOKEN_WORD,
    normalise_passcode,
)

Verdict = Literal["do", "hold", "refuse"]
_ORDER: tuple[Trust, ...] = ("unknown", "known", "verified")


@dataclass(frozen=True)
class PolicyRuling:
    """Whether a request may be done, and why not."""

    verdict: Verdict
    reason: str = ""


class TrustPolicy:
    """What a caller may have done and hear, by how surely they are known."""

    def __init__(self, settings: Settings) -> None:
        self._work = settings.work
        self._has_own_memory = settings.memory.scope == "per_caller"
        self._trusted = {
            _number(number)
            for number in (
                *settings.work.trusted,
                *([settings.owner] if settings.owner else []),
            )
        }

    def trust(self, leg: LiveCall, has_passcode: bool) -> Trust:
        if has_passcode:
            return "verified"
        if leg.caller is None or leg.caller not in self._trusted:
            return "unknown"
        return "verified" if leg.verified else "known"

    def release_trust(self, leg: LiveCall, has_passcode: bool) -> Trust:
        """The trust by which memory is told. An attested number may hear its own memory.

        It starts no more work for that, and opens no memory that all callers share.
        """
        if leg.verified and self._has_own_memory and leg.caller is not None:
            return "verified"
        return self.trust(leg, has_passcode)

    def rule(
        self, trust: Trust, kind: str, *, leaves_machine: bool, today: int
    ) -> PolicyRuling:
        """`today` is the number of requests this caller has made today, this one included."""
        named = self._work.policy.get(f"{trust}.{kind}") or self._work.policy.get(trust)
        verdict: Verdict = named or (
            "hold" if leaves_machine and trust != "verified" else "do"
        )
        if verdict == "refuse":
            return PolicyRuling(
                "refuse", f"the policy refuses {kind} requests of {trust} callers"
            )
        if today > self._work.daily_limit:
            return PolicyRuling(
                "hold",
                f"more than {self._work.daily_limit} requests of this caller in a day",
            )
        if verdict == "hold":
            return PolicyRuling(
                "hold",
                f"it leaves this machine, and the caller is {trust}"
                if named is None
                else f"the policy holds it ({trust} caller)",
            )
        return PolicyRuling("do")


def lowest_trust(trusts: dict[str, Trust], spots: Iterable[TurnRef]) -> Trust:
    """The lowest trust of the legs: another phone may have claimed the number in one of them."""
    found = [trusts[call_id] for call_id, _ in spots if call_id in trusts]
    return min(found, key=_ORDER.index, default="unknown")


def _number(number: str) -> str | None:
    try:
        return normalise_caller(number)
    except ValueError as error:
        raise ConfigError(f"work.trusted: {number!r} {error}") from None


DAY = timedelta(days=1)
POSTED = "posted"  # in the metadata of a call whose words verify nobody
ALL_CALLERS_FACTOR = 10  # times one caller's tries, in a day, from all callers together
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


@dataclass(frozen=True)
class PasscodeTries:
    """The legs in which the passcode was said, and the number of wrong tries."""

    correct_leg_ids: frozenset[str]
    wrong: int


def find_tries(legs: Iterable[Call], passcode: str, allowed: int) -> PasscodeTries:
    """After `allowed` wrong tries, the right passcode does not count any more."""
    right: set[str] = set()
    wrong = 0
    for leg in legs:
        if leg.metadata.get(POSTED):
            continue
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
    """The words that a caller's turn offers as a passcode."""
    cue = _CUE.search(text)
    offered = _FILLER.sub("", text[cue.end() :] if cue else text)
    return offered if offered and (cue or is_asked) else None


def is_correct_passcode(offered: str, passcode: str) -> bool:
    wanted = normalise_passcode(passcode)
    given = normalise_passcode(offered)[: len(wanted)]
    return hmac.compare_digest(given.encode(), wanted.encode())


def _offers(leg: Call) -> Iterator[str]:
    is_asked = False
    for turn in leg.turns:
        if turn.speaker == "agent":
            is_asked = asks_passcode(turn.text)
        elif offered := find_passcode(turn.text, is_asked=is_asked):
            yield offered


class PasscodeMask:
    """Masks a passcode in a text, in digits or words, with any punctuation between them."""

    def __init__(self, passcode: str) -> None:
        spoken = [
            SPOKEN_WORD.findall(passcode.casefold()),
            list(normalise_passcode(passcode)),
        ]
        self._patterns = [
            re.compile(
                r"(?<![^\W_])" + r"[\W_]*".join(map(_either, parts)) + r"(?![^\W_])",
                re.I,
            )
            for parts in spoken
        ]

    def __call__(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text


def _either(part: str) -> str:
    """Matches a digit as a figure or as a word."""
    words = [word for word, digit in SPOKEN_DIGITS.items() if digit == part]
    figure = [SPOKEN_DIGITS[part]] if part in SPOKEN_DIGITS else []
    return "(?:" + "|".join(re.escape(way) for way in (part, *words, *figure)) + ")"


@dataclass(frozen=True)
class PasscodeTryLedger:
    """Wrong passcodes of live calls, counted before follow-up work has noted them."""

    settings: Settings
    database: Database
    clock: Clock
    _live: dict[str, tuple[str | None, float]] = field(
        default_factory=dict, init=False, repr=False
    )
    _wrong: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def check(self, call: LiveCall, offered: str) -> bool | None:
        """True if the words are the passcode. None if none is set or no tries are left today."""
        passcode = self.settings.work.passcode
        if passcode is None or self.count_remaining(call) <= 0:
            return None
        if is_correct_passcode(offered, passcode.get_secret_value()):
            return True
        self._live[call.conversation] = (call.caller, self.clock.monotonic())
        self._wrong[call.conversation] += 1
        return False

    def count_remaining(self, call: LiveCall) -> int:
        """The limit of follow-up work: so many tries per caller, ten times as many of all."""
        self._drop_expired()
        most = self.settings.work.passcode_tries
        own, everybody = count_wrong_passcodes(
            self.database,
            call.caller,
            self.clock.now() - DAY,
            apart_from=tuple(self._live),
        )
        own += sum(
            self._wrong[conversation]
            for conversation, (caller, _) in self._live.items()
            if caller == call.caller
        )
        everybody += sum(self._wrong[conversation] for conversation in self._live)
        return 0 if everybody >= most * ALL_CALLERS_FACTOR else most - own

    def _drop_expired(self) -> None:
        long_ago_s = self.clock.monotonic() - DAY.total_seconds()
        for conversation, (_, at_s) in list(self._live.items()):
            if at_s < long_ago_s:
                del self._live[conversation], self._wrong[conversation]


def count_wrong_passcodes(
    database: Database,
    caller: str | None,
    since: datetime,
    *,
    apart_from: Sequence[str],
) -> tuple[int, int]:
    """Wrong tries since then in other conversations: of this caller, and of all callers."""
    runs = followup_runs
    own = runs.c.caller == caller if caller else runs.c.caller.is_(None)
    recent = and_(
        runs.c.ended_at >= since,
        runs.c.conversation.not_in(apart_from),
        runs.c.wrong_passcodes > 0,
    )
    total = func.coalesce(func.sum(runs.c.wrong_passcodes), 0)
    with database.read() as connection:
        by_caller = connection.execute(select(total).where(recent, own)).scalar_one()
        by_all = connection.execute(select(total).where(recent)).scalar_one()
    return int(by_caller), int(by_all)
