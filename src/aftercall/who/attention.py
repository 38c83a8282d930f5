"""Attention to who is on the line while a call goes on: a name that is given, a passcode that is spoken, and what follows from it.

`notice` is cheap and does no I/O, so every turn passes through it; `weigh` reads files and rows, and is for a thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.followups import Trust
from aftercall.model.people import join_party, split_party
from aftercall.who.introduction import Introduction, Listening, settle
from aftercall.who.register import NAMED, RIGHT, WRONG, Register
from aftercall.work.passcode import asks_passcode, find_offer
from aftercall.work.policy import Policy


@dataclass(frozen=True)
class Noticed:
    """Words that may say who is calling."""

    introduction: Introduction | None = None
    offer: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Learned:
    """What came of them: to be written down, and whether another memory is open now."""

    events: tuple[tuple[str, dict[str, Any]], ...]
    is_another: bool = False
    is_verified: bool = False


@dataclass(frozen=True)
class Reception:
    """What attention stands on."""

    register: Register
    policy: Policy
    compose: Callable[[LiveCall, str | None, Trust, str | None], Briefing]
    search: Callable[[str, str | None, Trust, str], list[str]]

    def attend(self, call: LiveCall, briefing: Briefing) -> "Attention":
        return Attention(self, call, briefing)


class Attention:
    def __init__(self, reception: Reception, call: LiveCall, briefing: Briefing) -> None:
        self._reception = reception
        self._call = call
        self._listening = Listening()
        self._is_asked = False
        self._given: list[Introduction] = []
        self._has_passcode = False
        self._dropped = briefing.dropped
        self.party = briefing.party

    @property
    def trust(self) -> Trust:
        return self._reception.policy.trust(self._call, self._has_passcode)

    def notice(self, speaker: Literal["agent", "caller"], text: str) -> Noticed | None:
        introduction = self._listening.hear(speaker, text)
        if speaker == "agent":
            self._is_asked = asks_passcode(text)
            return None
        offer = None if self._has_passcode else find_offer(text, is_asked=self._is_asked)
        return Noticed(introduction, offer) if introduction or offer else None

    def weigh(self, noticed: Noticed) -> Learned | None:
        """Raises an AftercallError when it cannot be told; then `close` is the safe thing to do."""
        before, events = self.party, []
        is_right = self._reception.register.tries.check(self._call, noticed.offer) if noticed.offer else None
        if is_right is not None:
            events.append((RIGHT if is_right else WRONG, dict[str, Any]()))
        self._has_passcode = self._has_passcode or bool(is_right)
        if noticed.introduction:
            self._given.append(noticed.introduction)
        self.party = self._find_party()
        if self.party != before and self.party is not None and noticed.introduction:
            events.append((NAMED, {"person": split_party(self.party)[1]}))
        is_another = self.party != before
        return Learned(tuple(events), is_another, bool(is_right)) if events or is_another else None

    def close(self) -> Learned:
        """Nobody can say who this is: no memory is open from here on."""
        is_another, self.party = self.party is not None, None
        return Learned((), is_another)

    def brief(self) -> Briefing:
        return self._reception.compose(self._call, self.party, self.trust, self._dropped)

    def recall(self, query: str) -> Sequence[str]:
        return self._reception.search(self._call.agent_id, self.party, self.trust, query)

    def _find_party(self) -> str | None:
        """By the last name given: whoever spoke before is not there any more."""
        register = self._reception.register
        number = register.number_of(self._call, has_passcode=self._has_passcode)
        if number is None:
            return None
        names = settle(self._given)
        if not names:
            return self.party or number
        return join_party(number, register.persons_at(self._call.agent_id, number, names)[-1])
