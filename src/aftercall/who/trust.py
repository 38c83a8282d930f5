"""What a caller may start, and what they may hear.

Caller ID can be forged: a number counts only if the carrier verified it, or with the passcode.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from aftercall.errors import ConfigError
from aftercall.model.calls import LiveCall
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
