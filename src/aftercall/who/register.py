"""Decides which party a call belongs to, once, and stores the decision with the call.

It uses the names said in the call and the people known at its number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aftercall.journal.store import CallStore
from aftercall.model.calls import IMPORTED, Call, LiveCall
from aftercall.model.people import join_party, normalise_caller, split_party
from aftercall.model.turns import Turn
from aftercall.settings import Settings
from aftercall.who.names import (
    find_person,
    list_introductions,
    resolve_names,
    split_name,
)
from aftercall.who.trust import (
    POSTED,
    PasscodeMask,
    PasscodeTryLedger,
    find_tries,
)
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace

RIGHT, WRONG, NAMED = "passcode.right", "passcode.wrong", "caller.named"
OWNER = "owner"  # the number's owner, in the name of a party of two


@dataclass(frozen=True)
class CallerRegister:
    """Decides once which party a call belongs to."""

    settings: Settings
    calls: CallStore
    tries: PasscodeTryLedger

    @property
    def owner(self) -> str | None:
        return normalise_caller(self.settings.owner)

    def resolve_party(self, call: Call) -> Call:
        """The call as its party's memory takes it in.

        `caller` is the party and the passcode is masked. For a guest, the agent's words before
        the introduction are left out.
        """
        party = self.find_party(call)
        is_guest = bool(party and split_party(party)[1])
        turns = self._mask_passcode(
            _since_introduction(call.turns) if is_guest else call.turns
        )
        if party == call.caller and turns == call.turns:
            return call
        return call.model_copy(update={"caller": party, "turns": turns})

    def find_party(self, call: Call) -> str | None:
        """The party; None if the call belongs to no memory."""
        kept = self.calls.get_decided_party(call.id)
        if kept is None:
            decided = self._decide(call) or ""
            stored = self.calls.decide_parties({call.id: decided})
            kept = stored.get(call.id, decided)  # a call without a row is not stored
        return kept or None

    def find_number(self, call: LiveCall, *, has_passcode: bool) -> str | None:
        """A withheld call with the passcode counts as a call from the owner's number."""
        return call.caller or (self.owner if has_passcode else None)

    def find_persons(
        self, agent_id: str, number: str, names: Sequence[str]
    ) -> list[str]:
        """The people at this number with these names, in order; empty is the number's owner.

        If no name is known yet, the first one is the owner's.
        """
        if self.settings.memory.scope == "shared" or not names:
            return [""]
        owner = self.list_owner_names(agent_id, number) or [names[0]]
        others = Workspace.from_settings(self.settings, agent_id).list_other_persons(
            number
        )
        return [find_person(name, owner, others) for name in names]

    def list_owner_names(self, agent_id: str, number: str) -> list[str]:
        """The owner's names in USER.md. Read in every memory scope: they tell people apart."""
        workspace = Workspace.from_settings(self.settings, agent_id)
        person = replace(workspace, scope="per_caller").find_person(number)
        profile = (
            user_md.parse(files.read(person.user)) if person else user_md.UserProfile()
        )
        return [
            name
            for name in (profile.name, profile.call_name)
            if name and split_name(name)
        ]

    def _decide(self, call: Call) -> str | None:
        has_passcode = call.caller is None and self._has_passcode(call)
        number = self.find_number(call, has_passcode=has_passcode)
        if number is None or call.direction == "outbound" or call.source == IMPORTED:
            return number
        names = resolve_names(list_introductions(call.turns))
        persons = set(self.find_persons(call.agent_id, number, names))
        if len(persons) == 1:
            return join_party(number, persons.pop())
        # Two people on one line: the call gets a memory that neither of them opens.
        return join_party(
            number, "+".join(sorted(person or OWNER for person in persons))
        )

    def _mask_passcode(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        if self.settings.work.passcode is None:
            return turns
        mask = PasscodeMask(self.settings.work.passcode.get_secret_value())
        return tuple(
            turn.model_copy(update={"text": mask(turn.text)}) for turn in turns
        )

    def _has_passcode(self, call: Call) -> bool:
        """As decided during the call. A call that was handed in is decided now."""
        heard = {event.kind for event in call.events} & {RIGHT, WRONG}
        if heard or self.settings.work.passcode is None:
            return RIGHT in heard
        passcode = self.settings.work.passcode.get_secret_value()
        allowed = max(0, self.tries.count_remaining(call))
        return bool(find_tries([call], passcode, allowed).correct_leg_ids)


def _since_introduction(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Blanks the agent's turns before the introduction; turn numbers stay."""
    from aftercall.english.introductions import NameListener

    listening = NameListener()
    first = next(
        (turn.seq for turn in turns if listening.process_turn(turn.speaker, turn.text)),
        0,
    )
    return tuple(
        turn.model_copy(update={"text": ""})
        if turn.speaker == "agent" and turn.seq < first
        else turn
        for turn in turns
    )


def remove_claims(call: Call) -> Call:
    """The call without what only a carrier or a live call can know: that the number is verified,
    and that the passcode was right. Its words are marked: a passcode in them verifies nobody.
    """
    kept = [event for event in call.events if event.kind not in (RIGHT, WRONG)]
    events = tuple(
        event.model_copy(update={"seq": seq}) for seq, event in enumerate(kept, 1)
    )
    metadata = {**call.metadata, POSTED: True}
    return call.model_copy(
        update={"verified": False, "events": events, "metadata": metadata}
    )
