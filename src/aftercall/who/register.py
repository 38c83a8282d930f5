"""Decides which party a call belongs to, once, and stores the decision with the call.

It uses the names said in the call, how two names compare (short forms, spellings), and the
people known at its number.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from aftercall.english.names import short_forms
from aftercall.english.words import word_class
from aftercall.journal.store import CallStore
from aftercall.model.calls import IMPORTED, Call, LiveCall, Turn
from aftercall.model.people import (
    MAX_PERSON_CHARS,
    join_party,
    normalise_caller,
    split_party,
)
from aftercall.settings import Settings
from aftercall.who.trust import (
    POSTED,
    PasscodeMask,
    PasscodeTryLedger,
    find_tries,
)
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace

RIGHT = "passcode.right"
WRONG = "passcode.wrong"
NAMED = "caller.named"
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
        """The number with the person whose name was given on it."""
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


if TYPE_CHECKING:  # commands that read do without
    from aftercall.english.introductions import GivenName

_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")


@cache
def _read_forms() -> dict[str, frozenset[str]]:
    """Maps the sound key of each name to the full names it may stand for."""
    forms: defaultdict[str, set[str]] = defaultdict(set)
    for full, shorts in short_forms().items():
        for name in (full, *shorts):
            forms[_sound_key(name)].add(_sound_key(full))
    return {name: frozenset(fulls) for name, fulls in forms.items()}


def _sound_key(name: str) -> str:
    """One key for spellings that sound alike: Ana and Anna, Jon and John, Stephen and Steven."""
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    folded = "".join(char for char in decomposed if char.isalnum())
    for spelling, sound in (
        ("ph", "f"),
        ("ck", "k"),
        ("v", "f"),
        ("y", "i"),
        ("ie", "i"),
    ):
        folded = folded.replace(spelling, sound)
    folded = re.sub(r"c(?![eih])", "k", folded)
    folded = folded[:1] + folded[1:].replace("h", "")
    return re.sub(r"(.)\1+", r"\1", folded)


def split_name(name: str) -> list[str]:
    """The words of a name, without titles."""
    return [
        word
        for word in _WORD.findall(name)
        if word.casefold().rstrip(".") not in word_class("title")
    ]


def is_same_person(stated: str, known: Iterable[str]) -> bool:
    """True if a person with the known names may have given this one.

    Compares given names: families share the other one.
    """
    given = split_name(stated)[:1]
    others = [part for name in known for part in split_name(name)]
    return not given or any(_is_same_name(given[0], other) for other in others)


def find_person(stated: str, owner: Iterable[str], others: Iterable[str] = ()) -> str:
    """The person at a number: empty for its owner, one of `others`, or a new person."""
    if is_same_person(stated, owner):
        return ""
    known = next((person for person in others if is_same_person(stated, [person])), "")
    return known or make_person_id(stated)


def make_person_id(stated: str) -> str:
    """The given name as part of a party."""
    given = (split_name(stated) or [""])[0].casefold()
    decomposed = unicodedata.normalize("NFKD", given)
    plain = "".join(char for char in decomposed if char.isascii() and char.isalnum())
    return (plain or given.encode().hex())[:MAX_PERSON_CHARS]


def _is_same_name(one: str, other: str) -> bool:
    a = _sound_key(one)
    b = _sound_key(other)
    forms = _read_forms()
    return a == b or bool(forms.get(a, frozenset({a})) & forms.get(b, frozenset({b})))


def list_introductions(turns: Iterable[Turn]) -> "list[GivenName]":
    """Every name given in a call, in the order it was given."""
    from aftercall.english.introductions import NameListener

    listener = NameListener()
    return [
        given
        for turn in turns
        if (given := listener.process_turn(turn.speaker, turn.text))
    ]


def find_stated_name(call: Call) -> str | None:
    """The first name that was not corrected. At a new number it is the owner's."""
    return next(iter(resolve_names(list_introductions(call.turns))), None)


def resolve_names(given: "Sequence[GivenName]") -> list[str]:
    """The names given. A correction replaces the name before it."""
    names: list[str] = []
    for introduction in given:
        if introduction.corrects and names:
            names.pop()
        names.append(introduction.name)
    return names
