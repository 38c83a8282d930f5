"""Holding a model's answer to the call: turns that exist, words that were said.

What has no ground is left out.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date

from aftercall.llm.model import forms
from aftercall.llm.rules.sentences import split_sentences
from aftercall.model.calls import Call
from aftercall.model.reading import (
    FactDraft,
    Identity,
    Profile,
    Promise,
    Request,
    RequestsReading,
    WithdrawnRequest,
)
from aftercall.model.turns import Speaker
from aftercall.settings import find_zone

_ALIKE = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
_WORD = re.compile(r"\w+")


class Grounding:
    """The words of one call, to look claims up in."""

    def __init__(self, call: Call) -> None:
        self._turns = {turn.seq: turn for turn in call.turns}
        self._caller = set(
            _WORD.findall(
                " ".join(turn.text for turn in call.turns if turn.speaker == "caller").casefold()
            )
        )

    def filter_turns(self, turns: Iterable[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(seq for seq in turns if seq in self._turns))

    def find(
        self, words: str, turns: Iterable[int], speaker: Speaker | None = None
    ) -> tuple[str, tuple[int, ...]] | None:
        """The words as they stand in a turn, and the turns; the named turns first, then any
        other.
        """
        named = self.filter_turns(turns)
        for seq in (*named, *(seq for seq in self._turns if seq not in named)):
            turn = self._turns[seq]
            if (speaker is None or turn.speaker == speaker) and (
                found := _stands_in(words, turn.text)
            ):
                return found, named if seq in named else (seq,)
        return None

    def remove_agent_sentences(self, text: str) -> str:
        """Sentences that only the agent said are no part of what the caller asked for."""
        said = split_sentences(text)
        return " ".join(
            part
            for part in said
            if self.find(part, (), "caller") or not self.find(part, (), "agent")
        )

    def was_said_by_caller(self, value: str) -> bool:
        spoken = _WORD.findall(value.casefold())
        return bool(spoken) and all(word in self._caller for word in spoken)


def _stands_in(words: str, text: str) -> str | None:
    """White space, case and typography may differ; what is given back stands in the turn letter
    by letter.
    """
    pieces = words.translate(_ALIKE).strip(" .,!?\"'").split()
    if not pieces:
        return None
    match = re.search(r"\s+".join(map(re.escape, pieces)), text.translate(_ALIKE), re.IGNORECASE)
    return text[match.start() : match.end()] if match else None


def ground_profile(form: forms.ProfileForm, ground: Grounding) -> Profile:
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


def ground_request(form: forms.RequestForm, ground: Grounding) -> Request | None:
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


def ground_withdrawn(form: forms.WithdrawnForm, ground: Grounding) -> WithdrawnRequest | None:
    turns = ground.filter_turns(form.turns)
    return (
        WithdrawnRequest(title=form.title.strip(), turns=turns)
        if turns and form.title.strip()
        else None
    )


def ground_promise(form: forms.PromiseForm, ground: Grounding) -> Promise | None:
    found = ground.find(form.words, form.turns, "agent")
    return (
        Promise(title=form.title.strip(), turns=found[1], words=found[0])
        if found and form.title.strip()
        else None
    )


def ground_fact(form: forms.FactForm, ground: Grounding, known: set[str]) -> FactDraft | None:
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


def merge_profiles(parts: Sequence[Profile]) -> Profile:
    merged: dict[str, str] = {}
    for part in parts:
        merged |= {name: value for name, value in part.model_dump().items() if value}
    for name in ("notes", "context"):
        told = list(dict.fromkeys(value for part in parts if (value := getattr(part, name))))
        if told:
            merged[name] = " ".join(told)
    return Profile(**merged)


def merge_identities(parts: Sequence[Identity]) -> Identity:
    """The first name stands: an agent introduces itself at the beginning."""
    merged: dict[str, str] = {}
    for part in reversed(parts):
        merged |= {name: value for name, value in part.model_dump().items() if value}
    return Identity(**merged)


def merge_asked(parts: Iterable[RequestsReading]) -> RequestsReading:
    requests: list[Request] = []
    withdrawn: list[WithdrawnRequest] = []
    promises: list[Promise] = []
    for part in parts:
        titles = {_plain(item.title) for item in part.withdrawn}
        requests = [item for item in requests if _plain(item.title) not in titles]
        requests += [
            item
            for item in part.requests
            if all(_plain(item.title) != _plain(other.title) for other in requests)
        ]
        withdrawn += part.withdrawn
        promises += [
            item
            for item in part.promises
            if all(_plain(item.title) != _plain(other.title) for other in promises)
        ]
    return RequestsReading(
        requests=tuple(requests), withdrawn=tuple(withdrawn), promises=tuple(promises)
    )


def merge_facts(parts: Iterable[Sequence[FactDraft]]) -> tuple[FactDraft, ...]:
    facts: dict[str, FactDraft] = {}
    for fact in (fact for part in parts for fact in part):
        facts.setdefault(_plain(fact.text), fact)
    return tuple(facts.values())


def _plain(title: str) -> str:
    return " ".join(title.casefold().split()).rstrip(".!?")
