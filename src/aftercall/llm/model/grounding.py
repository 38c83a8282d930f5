"""Checks a model's answer against the call: existing turns, words that were said.

Items without evidence are dropped.
"""

import re
from collections.abc import Iterable
from datetime import date

from aftercall.english.clauses import split_sentences
from aftercall.llm.model import questions
from aftercall.model.calls import Call
from aftercall.model.reading import (
    FactDraft,
    Profile,
    Promise,
    Request,
    WithdrawnRequest,
)
from aftercall.model.turns import Speaker
from aftercall.settings import find_zone

_ALIKE = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "}
)
_WORD = re.compile(r"\w+")


class Grounding:
    """Looks up words in one call."""

    def __init__(self, call: Call) -> None:
        self._turns = {turn.seq: turn for turn in call.turns}
        spoken = " ".join(turn.text for turn in call.turns if turn.speaker == "caller")
        self._caller_words = set(_WORD.findall(spoken.casefold()))

    def filter_turns(self, turns: Iterable[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(seq for seq in turns if seq in self._turns))

    def find(
        self, words: str, turns: Iterable[int], speaker: Speaker | None = None
    ) -> tuple[str, tuple[int, ...]] | None:
        """The words as a turn has them, and the turns. Searches the named turns first."""
        named = self.filter_turns(turns)
        others = [seq for seq in self._turns if seq not in named]
        for seq in (*named, *others):
            turn = self._turns[seq]
            if speaker is not None and turn.speaker != speaker:
                continue
            if found := _find_words(words, turn.text):
                return found, named if seq in named else (seq,)
        return None

    def remove_agent_sentences(self, text: str) -> str:
        """Removes sentences that only the agent said."""
        kept = [
            sentence
            for sentence in split_sentences(text)
            if self.find(sentence, (), "caller") or not self.find(sentence, (), "agent")
        ]
        return " ".join(kept)

    def was_said_by_caller(self, value: str) -> bool:
        spoken = _WORD.findall(value.casefold())
        return bool(spoken) and all(word in self._caller_words for word in spoken)


def _find_words(words: str, text: str) -> str | None:
    """Ignores white space, case and typography; returns the words as the text has them."""
    pieces = words.translate(_ALIKE).strip(" .,!?\"'").split()
    if not pieces:
        return None
    match = re.search(
        r"\s+".join(map(re.escape, pieces)), text.translate(_ALIKE), re.IGNORECASE
    )
    return text[match.start() : match.end()] if match else None


def ground_profile(form: questions.ProfileForm, ground: Grounding) -> Profile:
    name, call_name, pronouns = (
        value if value and ground.was_said_by_caller(value) else None
        for value in (form.name, form.call_name, form.pronouns)
    )
    zone = form.timezone if form.timezone and find_zone(form.timezone) else None
    return Profile(
        name=name,
        call_name=call_name if call_name != name else None,
        pronouns=pronouns,
        timezone=zone,
        notes=form.notes,
        context=form.context,
    )


def ground_request(form: questions.RequestForm, ground: Grounding) -> Request | None:
    found = ground.find(form.words, form.turns, "caller")
    if found is None or not form.title.strip():
        return None
    words, turns = found
    return Request(
        kind=form.kind,
        title=form.title.strip(),
        details=ground.remove_agent_sentences(form.details or ""),
        person=form.person,
        due=_day(form.due),
        turns=turns,
        words=words,
    )


def ground_withdrawn(
    form: questions.WithdrawnForm, ground: Grounding
) -> WithdrawnRequest | None:
    turns, title = ground.filter_turns(form.turns), form.title.strip()
    return WithdrawnRequest(title=title, turns=turns) if turns and title else None


def ground_promise(form: questions.PromiseForm, ground: Grounding) -> Promise | None:
    found, title = ground.find(form.words, form.turns, "agent"), form.title.strip()
    if found is None or not title:
        return None
    return Promise(title=title, turns=found[1], words=found[0])


def ground_fact(
    form: questions.FactForm, ground: Grounding, known: set[str]
) -> FactDraft | None:
    found = ground.find(form.words, form.turns, "caller")
    if found is None or not form.text.strip():
        return None
    return FactDraft(
        category=form.category,
        text=form.text.strip(),
        summary=(form.summary.strip() or form.text.strip())[:100],
        visibility=form.visibility,
        confidence=min(1.0, max(0.0, form.confidence)),
        sentiment=form.sentiment,
        turns=found[1],
        words=found[0],
        supersedes=form.supersedes if form.supersedes in known else None,
        duplicate_of=form.duplicate_of if form.duplicate_of in known else None,
    )


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat((text or "")[:10])
    except ValueError:
        return None
