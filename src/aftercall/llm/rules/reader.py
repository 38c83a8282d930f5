"""The reader by rules: one call in, one reading out; nothing but the call decides what comes
out.
"""

import re
from collections.abc import Iterable
from datetime import date, timedelta
from functools import partial
from typing import TypeVar
from zoneinfo import ZoneInfo

from aftercall.llm.cached_reader import CachedReader, as_sentence
from aftercall.llm.long_calls import CutCall, read_in_windows
from aftercall.llm.reading_process import ReadingProcess
from aftercall.llm.rules import cues
from aftercall.llm.rules.address import find_call_name, find_pronouns, put_right
from aftercall.llm.rules.asks import is_worth_keeping, tidy
from aftercall.llm.rules.contractions import as_spoken, restore
from aftercall.llm.rules.corrections import REPAIRS, denied_words
from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.facts import Heard, draft, find_facts
from aftercall.llm.rules.floor import Floor
from aftercall.llm.rules.identity import read_identity
from aftercall.llm.rules.language import detect_language
from aftercall.llm.rules.masking import ValueMask
from aftercall.llm.rules.memo import clear_caches
from aftercall.llm.rules.names import Named, read_names
from aftercall.llm.rules.promises import find_promises
from aftercall.llm.rules.reality import is_real
from aftercall.llm.rules.reckoning import WEEKDAY, weekday_of
from aftercall.llm.rules.secrets import (
    Secret,
    find_secrets,
    is_confided,
    secret_facts,
)
from aftercall.llm.rules.sentences import Clause, split_clauses
from aftercall.llm.rules.stems import stems
from aftercall.llm.rules.summary import summarise, summarise_foreign
from aftercall.llm.rules.todos import find_todos
from aftercall.llm.rules.triggers import find_trigger
from aftercall.llm.rules.withdrawals import find_call_off
from aftercall.llm.rules.zones import stated_zone, zone_of_place
from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft, Profile, Promise, Reading, Request

# told by words that a refused offer may have as well
_PASSING = (
    "technical",
    "preference",
    "routine",
    "action_item",
)
_DECLINES = re.compile(r"\b(?:not|never|no)\b|n['’]t\b", re.I)
_WEEKDAY_HERE = Cue(
    rf"\bit(?:['’]s| is) (?:still|already|only) (?P<weekday>{WEEKDAY})\b"
)
_WHAT_WAS_DECIDED = re.compile(
    r"\bwhat (?:we|i|they|was|is)\b.*\b(?:decided|agreed|settled)\b|\b(?:the|our) (?:decision"
    r"|agreement)s?\b",
    re.I,
)
_STANDS_ALONE = re.compile(
    r"(?:I|we|my|our)\b(?!.*\b(?:it|that|this|them|him|her|one)\b)", re.I
)
_CARES = re.compile(
    r"(?:I|we|my|our)\b.{0,30}\b(?:working on|building|planning|training for|care about|love"
    r"|hate)\b",
    re.I,
)
_EMPTY = re.compile(
    r"\bif\b|^(?:thanks?|bye|good ?bye|have a|that['’]s (?:all|it|fine|great)|sounds)\b",
    re.I,
)
_PLAINLY = 0.8
_MOST_NOTES, _MOST_TOLD = 3, 3  # sentences
_LEAST_TOLD, _LONGEST_TOLD = 3, 25  # words of a sentence
_NEAR = 2  # turns: what the caller says right before or after
Cited = TypeVar("Cited", Request, Promise, FactDraft)


class RulesReader(CachedReader):
    """Deterministic and offline.

    It understands English; of other languages it takes the caller's name and secrets.
    """

    name = "rules"

    def __init__(self, process: ReadingProcess | None = None) -> None:
        """Without a process, every call is read in the thread that asks."""
        super().__init__()
        self._process = process

    def read(self, call: Call) -> Reading:
        if self._process is None:
            return read_by_rules(call)
        return self._process.read(read_by_rules, call)


def read_by_rules(call: Call) -> Reading:
    cut = CutCall.from_call(call)
    try:
        return cut.cite_turns(_read(cut.call))
    finally:
        clear_caches()


def _read(call: Call) -> Reading:
    spoken = {turn.seq: turn.text for turn in call.turns}
    call = _with_texts(call, {seq: restore(text) for seq, text in spoken.items()})
    language = detect_language(turn.text for turn in call.turns)
    secrets = find_secrets(call.turns)
    mask = ValueMask(secret.value for secret in secrets)
    call = _with_texts(call, {turn.seq: mask.apply(turn.text) for turn in call.turns})
    read = _read_english if language == "en" else partial(_read_foreign, language)
    return read_in_windows(
        call, lambda window: read(window, secrets, spoken), _summarise
    )


def _summarise(reading: Reading) -> str:
    """Of a call that was read in windows."""
    if reading.language != "en":
        return summarise_foreign(reading.language, reading.profile)
    return summarise(
        reading.profile,
        list(reading.requests),
        list(reading.withdrawn),
        list(reading.promises),
        list(reading.facts),
    )


def _read_foreign(
    language: str, call: Call, secrets: list[Secret], spoken: dict[int, str]
) -> Reading:
    profile = Profile(name=read_names(call.turns).name)
    return Reading(
        language=language,
        summary=summarise_foreign(language, profile),
        profile=profile,
        facts=_grounded(secret_facts(_told_in(call, secrets)), spoken),
    )


def _told_in(call: Call, secrets: list[Secret]) -> list[Secret]:
    seqs = {turn.seq for turn in call.turns}
    return [secret for secret in secrets if secret.seq in seqs]


def _read_english(call: Call, secrets: list[Secret], spoken: dict[int, str]) -> Reading:
    secrets = _told_in(call, secrets)
    named = read_names(call.turns)
    texts = {turn.seq: turn.text for turn in call.turns}
    clauses = {
        turn.seq: split_clauses(turn) for turn in call.turns if turn.speaker == "caller"
    }
    zone = _zone(call, clauses)
    floor = _walk(call, texts, clauses, _today(call, zone, clauses))
    requests = [ask.as_request() for ask in floor.asks if is_worth_keeping(ask)]
    withdrawn = [ask.as_withdrawn() for ask in floor.withdrawn if is_worth_keeping(ask)]
    promises = find_promises(
        ((turn.seq, texts[turn.seq]) for turn in call.turns if turn.speaker == "agent"),
        floor.withdrawn,
    )
    told = [
        fact
        for fact in _facts(_heard(call, texts, clauses), named, floor.misheard)
        if not stems(fact.text) & floor.refused
        or not (fact.category in _PASSING or _DECLINES.search(fact.text))
    ]
    facts_told = [*secret_facts(secrets), *told]
    requests = [_with_decisions(request, told) for request in requests]
    matters = _matters(clauses, secrets, floor.refused)
    profile = _profile(call, named, zone, told, matters)
    return Reading(
        language="en",
        summary=summarise(
            profile, requests, withdrawn, promises, facts_told, matters[:_MOST_TOLD]
        ),
        profile=profile,
        identity=read_identity(
            texts[turn.seq] for turn in call.turns if turn.speaker == "agent"
        ),
        requests=_grounded(requests, spoken),
        withdrawn=tuple(withdrawn),
        promises=_grounded(promises, spoken),
        facts=_grounded(facts_told, spoken),
    )


def _with_decisions(request: Request, facts: list[FactDraft]) -> Request:
    """ "Note what we decided about Carl" holds what was decided: of Carl, or just before or
    after.
    """
    if request.kind != "note" or not _WHAT_WAS_DECIDED.search(request.words):
        return request
    decided = [fact for fact in facts if fact.category == "decision"]
    named = [fact for fact in decided if request.person and request.person in fact.text]
    near = [
        fact
        for fact in decided
        if any(abs(seq - fact.turns[0]) <= _NEAR for seq in request.turns)
    ]
    found = [fact.text for fact in named or near]
    known = [
        part
        for part in request.details.split(". ")
        if part and not any(part.lower() in text.lower() for text in found)
    ]
    details = ". ".join((*known, *found))
    title = request.title.partition(": ")[0] if details else request.title
    turns = tuple(sorted({*request.turns, *(fact.turns[0] for fact in named or near)}))
    return request.model_copy(
        update={"title": title, "details": details, "turns": turns}
    )


def _with_texts(call: Call, texts: dict[int, str]) -> Call:
    """The call in other words: apostrophes put back, secrets blotted out.

    That is all the rules get to see.
    """
    if all(turn.text == texts[turn.seq] for turn in call.turns):
        return call
    return call.model_copy(
        update={
            "turns": tuple(
                turn.model_copy(update={"text": texts[turn.seq]}) for turn in call.turns
            )
        }
    )


def _grounded(items: Iterable[Cited], spoken: dict[int, str]) -> tuple[Cited, ...]:
    """Each item citing its words as the transcript has them."""
    return tuple(_ground(item, spoken) for item in items)


def _ground(item: Cited, spoken: dict[int, str]) -> Cited:
    words = next(
        (
            found
            for seq in item.turns
            if (found := as_spoken(item.words, spoken[seq])) in spoken[seq]
        ),
        item.words,
    )
    return item if words == item.words else item.model_copy(update={"words": words})


def _profile(
    call: Call,
    named: Named,
    zone: str | None,
    facts: list[FactDraft],
    matters: list[str],
) -> Profile:
    said = [turn.text for turn in call.turns if turn.speaker == "caller"]
    call_name = find_call_name(call.turns, named) or put_right(call.turns, named.parts)
    plain = [
        fact
        for fact in facts
        if fact.visibility != "secret" and fact.confidence >= _PLAINLY
    ]
    return Profile(
        name=named.name,
        call_name=call_name if call_name != named.name else None,
        pronouns=find_pronouns(said),
        timezone=zone,
        notes=_join(
            fact.text
            for fact in plain
            if fact.category == "preference" and _STANDS_ALONE.match(fact.text)
        ),
        context=_join(matter for matter in matters if _CARES.match(matter)),
    )


def _join(texts: Iterable[str]) -> str | None:
    return (
        " ".join(as_sentence(text) for text in list(dict.fromkeys(texts))[:_MOST_NOTES])
        or None
    )


def _matters(
    clauses: dict[int, list[Clause]], secrets: list[Secret], refused: frozenset[str]
) -> list[str]:
    """Sentences in which the caller tells something, asks for nothing and confides nothing."""
    hidden = {secret.seq for secret in secrets}
    told = [
        tidy(clause.whole)
        for seq, spoken in clauses.items()
        if seq not in hidden
        and not any(
            REPAIRS.match(clause.text) or denied_words(clause.text) for clause in spoken
        )
        for clause in spoken
        if _tells(clause) and not stems(clause.text) & refused
    ]
    return list(dict.fromkeys(told))


def _tells(clause: Clause) -> bool:
    if (
        clause.is_masked
        or clause.is_question
        or not is_real(clause)
        or is_confided(clause.whole)
    ):
        return False
    if (
        find_trigger(clause.whole)
        or find_call_off(clause.whole)
        or cues.INTRODUCES.match(clause.body)
    ):
        return False
    is_sentence = (
        len(clause.body.split()) >= _LEAST_TOLD
        and len(clause.whole.split()) <= _LONGEST_TOLD
    )
    return (
        is_sentence
        and not _EMPTY.search(clause.body)
        and not cues.SLIGHT.match(clause.body)
    )


def _zone(call: Call, clauses: dict[int, list[Clause]]) -> str | None:
    """The last zone the caller claims."""
    spoken = [
        clause
        for turn in call.turns
        if turn.speaker == "caller"
        for clause in clauses[turn.seq]
    ]
    zones = [
        zone
        for clause in spoken
        if is_real(clause) and (zone := stated_zone(clause.text))
    ]
    placed = (
        zone_of_place(turn.text) for turn in call.turns if turn.speaker == "caller"
    )
    return zones[-1] if zones else next(filter(None, placed), None)


def _today(call: Call, zone: str | None, clauses: dict[int, list[Clause]]) -> date:
    """The day it is for the caller: by the zone they state, or by the weekday they say it still
    or already is.
    """
    today = call.started_at.astimezone(ZoneInfo(zone or "UTC")).date()
    said = [
        match["weekday"]
        for spoken in clauses.values()
        for clause in spoken
        if (match := _WEEKDAY_HERE.search(clause.text))
    ]
    near = [today + timedelta(days=days) for days in (0, -1, 1)]
    return next(
        (day for day in near if said and day.weekday() == weekday_of(said[-1])), today
    )


def _walk(
    call: Call, texts: dict[int, str], clauses: dict[int, list[Clause]], today: date
) -> Floor:
    floor = Floor(today)
    for turn in call.turns:
        if turn.speaker == "agent":
            floor.hear_agent(turn, texts[turn.seq])
        else:
            floor.hear_caller(clauses[turn.seq])
    floor.settle_days()
    floor.fill_up()
    return floor


def _heard(
    call: Call, texts: dict[int, str], clauses: dict[int, list[Clause]]
) -> list[Heard]:
    heard: list[Heard] = []
    question = ""
    for turn in call.turns:
        if turn.speaker == "agent":
            question = texts[turn.seq]
        else:
            heard.append(Heard(clauses[turn.seq], question))
    return heard


def _facts(heard: list[Heard], named: Named, misheard: list[str]) -> list[FactDraft]:
    facts = [*find_facts(heard, misheard), *find_todos(heard)]
    for seq, name in named.together:
        spoken = [
            clause for turn in heard for clause in turn.clauses if clause.seq == seq
        ]
        clause = next((clause for clause in spoken if name in clause.text), spoken[0])
        if made := draft(clause, [clause], "person", 0.8):
            facts.append(
                made.model_copy(update={"text": f"{name} was on the line: {made.text}"})
            )
    return facts
