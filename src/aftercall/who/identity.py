"""Attention to who is on the line while a call goes on: a name that is given, a passcode that
is spoken, and what follows from it.

`notice` is cheap and does no I/O, so every turn passes through it; `weigh` reads files and
rows, and is for a thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.followups import Trust
from aftercall.model.people import join_party, split_party
from aftercall.who.introduction import Introduction, IntroductionListener, resolve_names
from aftercall.who.register import NAMED, RIGHT, WRONG, CallerRegister
from aftercall.work.trust import TrustPolicy, asks_passcode, find_passcode


# Wherever in a call they stand.
# Where people say who they are, or were asked it.
@dataclass(frozen=True)
class NoticedCaller:
    """Words that may say who is calling."""

    introduction: Introduction | None = None
    passcode_attempt: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class LearnedCaller:
    """What came of them: to be written down, and whether another memory is open now."""

    events: tuple[tuple[str, dict[str, Any]], ...]
    has_new_party: bool = False
    is_verified: bool = False


@dataclass(frozen=True)
class CallerReception:
    """What attention stands on."""

    register: CallerRegister
    policy: TrustPolicy
    compose: Callable[[LiveCall, str | None, Trust, str | None], Briefing]
    search: Callable[[str, str | None, Trust, str], list[str]]

    def start_identity(self, call: LiveCall, briefing: Briefing) -> "CallerIdentity":
        return CallerIdentity(self, call, briefing)


class CallerIdentity:
    def __init__(self, reception: CallerReception, call: LiveCall, briefing: Briefing) -> None:
        self._reception = reception
        self._call = call
        self._listening = IntroductionListener()
        self._is_asked = False
        self._given: list[Introduction] = []
        self._has_passcode = False
        self._dropped = briefing.dropped
        self.party = briefing.party

    @property
    def trust(self) -> Trust:
        return self._reception.policy.trust(self._call, self._has_passcode)

    def process_turn(self, speaker: Literal["agent", "caller"], text: str) -> NoticedCaller | None:
        introduction = self._listening.process_turn(speaker, text)
        if speaker == "agent":
            self._is_asked = asks_passcode(text)
            return None
        offer = None if self._has_passcode else find_passcode(text, is_asked=self._is_asked)
        return NoticedCaller(introduction, offer) if introduction or offer else None

    def resolve(self, noticed: NoticedCaller) -> LearnedCaller | None:
        """Raises an AftercallError when it cannot be told; then `close` is the safe thing to do."""
        before, events = self.party, []
        is_right = (
            self._reception.register.tries.check(self._call, noticed.passcode_attempt)
            if noticed.passcode_attempt
            else None
        )
        if is_right is not None:
            events.append((RIGHT if is_right else WRONG, dict[str, Any]()))
        self._has_passcode = self._has_passcode or bool(is_right)
        if noticed.introduction:
            self._given.append(noticed.introduction)
        self.party = self._find_party()
        if self.party != before and self.party is not None and noticed.introduction:
            events.append((NAMED, {"person": split_party(self.party)[1]}))
        is_another = self.party != before
        return (
            LearnedCaller(tuple(events), is_another, bool(is_right))
            if events or is_another
            else None
        )

    def clear_party(self) -> LearnedCaller:
        """Nobody can say who this is: no memory is open from here on."""
        is_another, self.party = self.party is not None, None
        return LearnedCaller((), is_another)

    def compose_briefing(self) -> Briefing:
        return self._reception.compose(self._call, self.party, self.trust, self._dropped)

    def search_memory(self, query: str) -> Sequence[str]:
        return self._reception.search(self._call.agent_id, self.party, self.trust, query)

    def _find_party(self) -> str | None:
        """By the last name given: whoever spoke before is not there any more."""
        register = self._reception.register
        number = register.find_number(self._call, has_passcode=self._has_passcode)
        if number is None:
            return None
        names = resolve_names(self._given)
        if not names:
            return self.party or number
        return join_party(number, register.find_persons(self._call.agent_id, number, names)[-1])
