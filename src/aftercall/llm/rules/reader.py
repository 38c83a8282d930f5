"""The reader by rules: one call in, one reading out; nothing else decides what comes out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import accumulate
from typing import TypeVar
from zoneinfo import ZoneInfo

from aftercall.english.introductions import resolve_name
from aftercall.english.language import detect_language, find_zone
from aftercall.english.masking import ValueMask
from aftercall.english.names import find_foreign_name
from aftercall.english.secrets import Secret, find_secrets, secret_facts
from aftercall.english.text import MASK
from aftercall.english.words import clear_caches
from aftercall.llm.long_calls import CutCall, ReadingProcess, read_in_windows
from aftercall.llm.reader import CachedReader
from aftercall.llm.rules.acts import Act, classify, read_acts
from aftercall.llm.rules.agreements import take_agreements
from aftercall.llm.rules.asking import ToldRequest, add_care, gather_details, tell_items
from aftercall.llm.rules.clause_model import TalkTurn
from aftercall.llm.rules.facts import find_facts, read_identity, read_profile
from aftercall.llm.rules.judgement import judge
from aftercall.llm.rules.offers import find_promises, reopen
from aftercall.llm.rules.reducer import apply
from aftercall.llm.rules.request_days import choose_days
from aftercall.llm.rules.state import (
    ACTED_ON,
    MAY_BE,
    HeardDay,
    RequestState,
    RequestTalk,
)
from aftercall.llm.rules.titles import (
    MIN_TOLD,
    names_deed,
    plain_title,
    quote_whole,
    summarise,
    take_wish,
    title_plainly,
    told_in,
)
from aftercall.model.calls import Call, Turn
from aftercall.model.reading import (
    FactDraft,
    Profile,
    Promise,
    Reading,
    Request,
    UnclearRequest,
    WithdrawnRequest,
)


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
    language = detect_language(turn.text for turn in call.turns)
    secrets = find_secrets(call.turns)
    mask = ValueMask(secret.value for secret in secrets)
    turns = tuple(
        turn.model_copy(update={"text": mask.apply(turn.text)}) for turn in call.turns
    )
    call = call.model_copy(update={"turns": turns})
    read = _read_english if language == "en" else partial(_read_foreign, language)
    reading = read_in_windows(call, partial(read, secrets))
    return reading.model_copy(update={"summary": summarise(reading)})


def _told_in(call: Call, secrets: list[Secret]) -> list[Secret]:
    seqs = {turn.seq for turn in call.turns}
    return [secret for secret in secrets if secret.seq in seqs]


def _read_english(secrets: list[Secret], call: Call) -> Reading:
    name = resolve_name((turn.speaker, turn.text) for turn in call.turns)
    talk = [
        TalkTurn.from_text(turn.speaker, turn.seq, turn.text) for turn in call.turns
    ]
    asked, zone = read_requests(talk, call.started_at)
    judged = asked._replace(state=judge(asked))
    state = add_care(choose_days(judged), asked.acts)
    facts = find_facts(talk, asked.acts, state.refused)
    secrets = _told_in(call, secrets)
    asked = asked._replace(state=state)
    return _compose(call.turns, asked, (name, zone), (secrets, facts))


def read_requests(
    talk: list[TalkTurn], started_at: datetime
) -> tuple[RequestTalk, str | None]:
    """What is asked for in a call, before it is judged; and the caller's time zone."""
    followed, zone = follow_requests(talk, started_at)
    opened = followed._replace(state=reopen(followed))
    state = gather_details(take_agreements(opened), followed.acts)
    return followed._replace(state=state), zone


def follow_requests(
    talk: list[TalkTurn], started_at: datetime
) -> tuple[RequestTalk, str | None]:
    """The same as who follows the talk clause by clause takes it."""
    acts = [_as_said(act) for act in read_acts(talk)]
    zone = _find_zone(acts)
    start = RequestState(_today(started_at, zone, acts))
    *before, state = accumulate(acts, apply, initial=start)
    days = [
        HeardDay(place, act, mention)
        for place, (act, known) in enumerate(zip(acts, before, strict=True))
        for mention in known.mentions_of(act.clause.plain)
    ]
    return RequestTalk(acts, state, days), zone


_CANCELS = ("cancel ", "remove ", "delete ", "take ")


def _as_said(act: Act) -> Act:
    """ "Leave that" calls off and "put me down anyway" asks, whatever stands around them."""
    if not act.plainness or act.kind not in ("ask", "correct", "withdraw"):
        return act
    said = classify(act.clause, act.speaker)
    is_asked = said.kind == "ask" and not said.matter.text.startswith(_CANCELS)
    is_other = said.kind == "withdraw" or (act.kind == "withdraw" and is_asked)
    if not is_other or said.kind == act.kind:
        return act
    return replace(said, belongs=act.belongs, ends=act.ends)


def _read_foreign(language: str, secrets: list[Secret], call: Call) -> Reading:
    said = (turn.text for turn in call.turns if turn.speaker == "caller")
    profile = Profile(name=find_foreign_name(said))
    return Reading(
        language=language,
        summary="",
        profile=profile,
        facts=tuple(secret_facts(_told_in(call, secrets))),
    )


def _find_zone(acts: Iterable[Act]) -> str | None:
    zones = [
        zone
        for act in acts
        if act.speaker == "caller"
        and act.kind not in ("hypothetical", "hearsay")
        and (zone := find_zone(act.clause.plain))
    ]
    return zones[-1] if zones else None


_DECIDED = re.compile(r"\b(?:decided|agreed|settled|decision)\b", re.I)
_DAY_THERE = re.compile(
    r"\bit is (?:still |already |only )?(monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"(?: \S+)? (?:here|for me|over here)\b"
)


def _today(started_at: datetime, zone: str | None, acts: Iterable[Act]) -> date:
    """The day it is for the caller: by the zone they state, or by the weekday they say it is."""
    today = (started_at.astimezone(ZoneInfo(zone)) if zone else started_at).date()
    said = [match[1] for act in acts if (match := _DAY_THERE.search(act.clause.text))]
    near = [today + timedelta(days=days) for days in (0, -1, 1)]
    return next(
        (day for day in near if said and f"{day:%A}".lower() == said[-1]), today
    )


def _compose(
    turns: Sequence[Turn],
    asked: RequestTalk,
    named: tuple[str | None, str | None],
    told: tuple[list[Secret], list[FactDraft]],
) -> Reading:
    acts = asked.acts
    state = asked.state
    told_items = tell_items(asked)
    open_items = [each for each in told_items if each.item.status == "open"]
    called_off = [each for each in told_items if each.item.status == "withdrawn"]
    secrets, facts = told
    requests = [
        _to_request(each, state, turns)
        for each in open_items
        if each.item.confidence >= ACTED_ON
    ]
    requests = [_with_decisions(request, facts) for request in requests]
    heard = " ".join(turn.text for turn in turns if turn.speaker == "caller")
    unclear = [
        _to_unclear(each, turns)
        for each in open_items
        if MAY_BE <= each.item.confidence < ACTED_ON
    ]
    unclear = [item for item in unclear if _tells_enough(item, heard)]
    withdrawn = [
        WithdrawnRequest(title=_title_or_quote(each, turns), turns=each.item.turns)
        for each in called_off
    ]
    promises = find_promises(turns)
    profile = read_profile(turns, *named, facts, acts)
    return Reading(
        language="en",
        summary="",
        profile=profile,
        identity=read_identity(turns),
        requests=tuple(_ground(item) for item in requests),
        unclear=tuple(_ground(item) for item in unclear),
        withdrawn=tuple(withdrawn),
        promises=tuple(_ground(item) for item in promises),
        facts=tuple(_ground(fact) for fact in (*secret_facts(secrets), *facts)),
    )


Cited = TypeVar("Cited", Request, UnclearRequest, Promise, FactDraft)


def _ground(item: Cited) -> Cited:
    """The item with a verbatim piece of the call: what is masked is cut away."""
    pieces = [piece.strip(" ,;:") for piece in re.split(f"{MASK}+", item.words)]
    words = max(pieces, key=len)
    return item if words == item.words else item.model_copy(update={"words": words})


def _title_or_quote(told: ToldRequest, turns: Sequence[Turn]) -> str:
    """Where the title is no whole thing, the whole sentence."""
    item = told.item
    if names_deed(item.title, item.kind):
        return take_wish(item.title)
    return take_wish(plain_title(quote_whole(told.quoted, turns, frozenset())))


def _to_request(
    told: ToldRequest, state: RequestState, turns: Sequence[Turn]
) -> Request:
    item = told.item
    request = Request(
        kind=item.kind,
        title=item.title,
        details=". ".join(item.details),
        person=item.person,
        due=item.due,
        turns=item.turns,
        words=item.words,
    )
    if told.is_whole:
        return request
    quoted = quote_whole(told.quoted, turns, state.refused_beside(item))
    return title_plainly(request, quoted)


def _with_decisions(request: Request, facts: list[FactDraft]) -> Request:
    """ "Note what we decided about Carl" holds what was decided in the call."""
    decided = [fact for fact in facts if fact.category == "decision"]
    if request.kind != "note" or not _DECIDED.search(request.title):
        return request
    fresh = (fact.text for fact in decided if fact.text not in request.details)
    turns = {*request.turns}.union(*(fact.turns for fact in decided))
    details = ". ".join(filter(None, dict.fromkeys((request.details, *fresh))))
    update = {"details": details, "turns": tuple(sorted(turns))}
    return request.model_copy(update=update)


def _tells_enough(item: UnclearRequest, heard: str) -> bool:
    """Of a deed, two things that are named and the caller's own words, it needs two."""
    has_deed = names_deed(item.title, "task")
    is_telling = len(told_in(item.title)) >= MIN_TOLD
    is_own = item.words in heard
    return has_deed + is_telling + is_own > 1


def _to_unclear(told: ToldRequest, turns: Sequence[Turn]) -> UnclearRequest:
    item = told.item
    return UnclearRequest(
        title=_title_or_quote(told, turns),
        turns=item.turns,
        words=item.words,
        confidence=item.confidence,
    )
