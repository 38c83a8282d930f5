"""Whose a call is: decided once, from what was said in it and who is known at its number, and
kept with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aftercall.journal.store import CallStore
from aftercall.model.calls import IMPORTED, Call, LiveCall
from aftercall.model.people import join_party, normalise_caller, split_party
from aftercall.model.turns import Turn
from aftercall.settings import Settings
from aftercall.who.introduction import IntroductionListener, list_introductions, resolve_names
from aftercall.who.names import find_person, split_name
from aftercall.who.passcode import PasscodeTryLedger
from aftercall.work.trust import PasscodeMask, find_tries
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace

RIGHT, WRONG, NAMED = "passcode.right", "passcode.wrong", "caller.named"
OWNER = "owner"  # how the number's owner is called where two people were on the line


@dataclass(frozen=True)
class CallerRegister:
    settings: Settings
    calls: CallStore
    tries: PasscodeTryLedger

    @property
    def owner(self) -> str | None:
        return normalise_caller(self.settings.owner)

    def resolve_party(self, call: Call) -> Call:
        """The call as its party's memory takes it in: `caller` is the party, the passcode is
        hidden, and for a guest what the agent
        said before it knew who they are is left out.
        """
        return self._with_party(call, self.find_party(call))

    def resolve_parties(self, calls: Sequence[Call]) -> list[Call]:
        """The same for calls that ended together: what is decided of them is kept at once."""
        kept = self.calls.get_decided_parties([call.id for call in calls])
        undecided = {
            call.id: self._decide(call) or "" for call in calls if kept.get(call.id) is None
        }
        stands = kept | (self.calls.decide_parties(undecided) if undecided else {})
        return [
            self._with_party(call, stands.get(call.id) or undecided.get(call.id) or None)
            for call in calls
        ]

    def _with_party(self, call: Call, party: str | None) -> Call:
        turns = self._mask_passcode(
            _since_introduction(call.turns) if party and split_party(party)[1] else call.turns
        )
        if party == call.caller and turns == call.turns:
            return call
        return call.model_copy(update={"caller": party, "turns": turns})

    def find_party(self, call: Call) -> str | None:
        """None where nobody is to be remembered."""
        kept = self.calls.get_decided_party(call.id)
        if kept is None:
            decided = self._decide(call) or ""
            kept = self.calls.decide_parties({call.id: decided}).get(
                call.id, decided
            )  # of a call that no row knows nothing stands
        return kept or None

    def find_number(self, call: LiveCall, *, has_passcode: bool) -> str | None:
        """A withheld call with the passcode counts as one from the owner's own number."""
        return call.caller or (self.owner if has_passcode else None)

    def find_persons(self, agent_id: str, number: str, names: Sequence[str]) -> list[str]:
        """Who at this number gave these names, in order; empty is its owner.

        Where no name is known, the first one is the owner's.
        """
        if self.settings.memory.scope == "shared" or not names:
            return [""]
        owner = self.list_owner_names(agent_id, number) or [names[0]]
        others = Workspace.from_settings(self.settings, agent_id).list_other_persons(number)
        return [find_person(name, owner, others) for name in names]

    def list_owner_names(self, agent_id: str, number: str) -> list[str]:
        """As far as they are on their page, where nobody is remembered any more, too: it tells
        people apart.
        """
        person = replace(
            Workspace.from_settings(self.settings, agent_id), scope="per_caller"
        ).find_person(number)
        profile = user_md.parse(files.read(person.user)) if person else user_md.UserProfile()
        return [name for name in (profile.name, profile.call_name) if name and split_name(name)]

    def _decide(self, call: Call) -> str | None:
        number = self.find_number(
            call, has_passcode=call.caller is None and self._has_passcode(call)
        )
        if number is None or call.direction == "outbound" or call.source == IMPORTED:
            return number
        names = resolve_names(list_introductions(call.turns))
        persons = set(self.find_persons(call.agent_id, number, names))
        # Two people on one line: what was said is neither's alone, so it gets a memory that
        # neither opens.
        person = (
            persons.pop()
            if len(persons) == 1
            else "+".join(sorted(person or OWNER for person in persons))
        )
        return join_party(number, person)

    def _mask_passcode(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        if self.settings.work.passcode is None:
            return turns
        mask = PasscodeMask(self.settings.work.passcode.get_secret_value())
        return tuple(turn.model_copy(update={"text": mask(turn.text)}) for turn in turns)

    def _has_passcode(self, call: Call) -> bool:
        """As it was decided during the call; for calls that others held, decided now."""
        heard = {event.kind for event in call.events} & {RIGHT, WRONG}
        if heard or self.settings.work.passcode is None:
            return RIGHT in heard
        return bool(
            find_tries(
                [call],
                self.settings.work.passcode.get_secret_value(),
                max(0, self.tries.count_remaining(call)),
            ).correct_leg_ids
        )


def _since_introduction(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Numbers stay: what goes is said by nobody."""
    listening = IntroductionListener()
    first = next((turn.seq for turn in turns if listening.process_turn(turn.speaker, turn.text)), 0)
    return tuple(
        turn.model_copy(update={"text": ""})
        if turn.speaker == "agent" and turn.seq < first
        else turn
        for turn in turns
    )
