"""Follows who is on the line during a call: names and passcodes that the caller says.

`process_turn` does no I/O, so every turn passes through it. `resolve` reads files and rows and
runs in a thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from aftercall.english.introductions import GivenName, NameListener
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall, Turn
from aftercall.model.followups import Trust
from aftercall.model.json_fields import Json
from aftercall.model.people import join_party, split_party
from aftercall.who.register import NAMED, RIGHT, WRONG, CallerRegister, resolve_names
from aftercall.who.trust import TrustPolicy, asks_passcode, find_passcode


@dataclass(frozen=True)
class NoticedCaller:
    """Words that may say who is calling."""

    introduction: GivenName | None = None
    passcode_attempt: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class LearnedCaller:
    """Events for the journal, and whether the call now belongs to another memory."""

    events: tuple[tuple[str, Json], ...]
    has_new_party: bool = False
    is_verified: bool = False


@dataclass(frozen=True)
class CallerReception:
    """Makes the `CallerIdentity` of each call."""

    register: CallerRegister
    policy: TrustPolicy
    compose: Callable[[LiveCall, str | None, Trust, str | None], Briefing]
    search: Callable[[str, str | None, Trust, str], list[str]]

    def start_identity(self, call: LiveCall, briefing: Briefing) -> "CallerIdentity":
        return CallerIdentity(self, call, briefing)


class CallerIdentity:
    """What is known of who is calling, and how surely."""

    def __init__(
        self, reception: CallerReception, call: LiveCall, briefing: Briefing
    ) -> None:
        self._reception = reception
        self._call = call
        self._listening = NameListener()
        self._is_asked = False
        self._given: list[GivenName] = []
        self._has_passcode = False
        self._dropped = briefing.dropped
        self.party = briefing.party

    @property
    def trust(self) -> Trust:
        return self._reception.policy.release_trust(self._call, self._has_passcode)

    def process_turn(
        self, speaker: Literal["agent", "caller"], text: str
    ) -> NoticedCaller | None:
        introduction = self._listening.process_turn(speaker, text)
        if speaker == "agent":
            self._is_asked = asks_passcode(text)
            return None
        offer = (
            None if self._has_passcode else find_passcode(text, is_asked=self._is_asked)
        )
        return NoticedCaller(introduction, offer) if introduction or offer else None

    def resolve(self, noticed: NoticedCaller) -> LearnedCaller | None:
        """Raises an AftercallError if the caller cannot be resolved; then call `clear_party`."""
        before = self.party
        events = []
        is_right = None
        if noticed.passcode_attempt:
            tries = self._reception.register.tries
            is_right = tries.check(self._call, noticed.passcode_attempt)
        if is_right is not None:
            events.append((RIGHT if is_right else WRONG, Json()))
        self._has_passcode = self._has_passcode or bool(is_right)
        if noticed.introduction:
            self._given.append(noticed.introduction)
        self.party = self._find_party()
        if self.party != before and self.party is not None and noticed.introduction:
            events.append((NAMED, {"person": split_party(self.party)[1]}))
        is_another = self.party != before
        if not events and not is_another:
            return None
        return LearnedCaller(tuple(events), is_another, bool(is_right))

    def restore(self, turns: Sequence[Turn], *, has_passcode: bool) -> bool:
        """Follows what was said before this process took the call.

        Returns whether the briefing of the number is not the caller's. Passcodes are not tried
        again.
        """
        before = self.party
        self._has_passcode = has_passcode
        noticed = [self.process_turn(turn.speaker, turn.text) for turn in turns]
        self._given += [one.introduction for one in noticed if one and one.introduction]
        if self._given or has_passcode:
            self.party = self._find_party()
        return self.party != before or has_passcode

    def clear_party(self) -> LearnedCaller:
        """The caller is unknown: the call opens no memory from here on."""
        is_another, self.party = self.party is not None, None
        return LearnedCaller((), is_another)

    def compose_briefing(self) -> Briefing:
        return self._reception.compose(
            self._call, self.party, self.trust, self._dropped
        )

    def search_memory(self, query: str) -> Sequence[str]:
        return self._reception.search(
            self._call.agent_id, self.party, self.trust, query
        )

    def _find_party(self) -> str | None:
        """The last name given counts: that person is speaking now."""
        register = self._reception.register
        number = register.find_number(self._call, has_passcode=self._has_passcode)
        if number is None:
            return None
        names = resolve_names(self._given)
        if not names:
            return self.party or number
        return join_party(
            number, register.find_persons(self._call.agent_id, number, names)[-1]
        )
