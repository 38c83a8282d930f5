"""The reader by rules: one call in, one reading out; nothing but the call decides what comes out."""

import re
from collections.abc import Iterable
from datetime import date, timedelta
from functools import reduce
from zoneinfo import ZoneInfo

from aftercall.english.language import LANGUAGES, detect_language
from aftercall.english.memo import clear_caches
from aftercall.english.names import find_call_name, find_pronouns, resolve_name
from aftercall.english.secrets import Secret, find_secrets, mask, secret_facts
from aftercall.english.text import MASK
from aftercall.english.zones import find_zone
from aftercall.llm.cached_reader import CachedReader, as_sentence
from aftercall.llm.rules2.acts import Act, read_acts
from aftercall.llm.rules2.facts import find_facts
from aftercall.llm.rules2.promises import find_promises
from aftercall.llm.rules2.state import ACTED_ON, Item, RequestState, apply
from aftercall.model.calls import Call
from aftercall.model.reading import (
    FactDraft,
    Identity,
    Profile,
    Promise,
    Reading,
    Request,
    UnclearRequest,
    WithdrawnRequest,
)
from aftercall.model.turns import Turn


class RulesReader(CachedReader):
    """Deterministic and offline.

    It understands English; of other languages it takes the caller's name and secrets.
    """

    name = "rules"

    def read(self, call: Call) -> Reading:
        try:
            return _read(call)
        finally:
            clear_caches()


def _read(call: Call) -> Reading:
    language = detect_language(turn.text for turn in call.turns)
    secrets = find_secrets(call.turns)
    turns = [_masked(turn, secrets) for turn in call.turns]
    name = resolve_name((turn.speaker, turn.text) for turn in turns)
    if language != "en":
        return _read_foreign(language, name, secrets)
    acts = [act for turn in turns for act in read_acts(turn)]
    zone = _find_zone(acts)
    today = _today(call, zone, acts)
    state = reduce(apply, acts, RequestState(today))
    return _compose(turns, acts, state, secrets, _profile(turns, name, zone))


def _masked(turn: Turn, secrets: list[Secret]) -> Turn:
    return turn.model_copy(update={"text": mask(turn.text, secrets)}) if secrets else turn


def _read_foreign(language: str, name: str | None, secrets: list[Secret]) -> Reading:
    who = name or "The caller"
    spoken = LANGUAGES.get(language, language)
    return Reading(
        language=language,
        summary=f"{who} called and spoke {spoken}; the words are in the transcript.",
        profile=Profile(name=name),
        facts=tuple(secret_facts(secrets)),
    )


def _find_zone(acts: Iterable[Act]) -> str | None:
    zones = [
        zone
        for act in acts
        if act.speaker == "caller" and act.kind not in ("hypothetical", "hearsay") and (zone := find_zone(act.clause.plain))
    ]
    return zones[-1] if zones else None


_DAY_THERE = re.compile(
    r"\bit is (?:still |already |only )?(monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"(?: \S+)? (?:here|for me|over here)\b"
)


def _today(call: Call, zone: str | None, acts: Iterable[Act]) -> date:
    """The day it is for the caller: by the zone they state, or by the weekday they say it is."""
    today = call.started_at.astimezone(ZoneInfo(zone or "UTC")).date()
    said = [match[1] for act in acts if (match := _DAY_THERE.search(act.clause.text))]
    near = [today + timedelta(days=days) for days in (0, -1, 1)]
    return next((day for day in near if said and f"{day:%A}".lower() == said[-1]), today)


def _profile(turns: list[Turn], name: str | None, zone: str | None) -> Profile:
    said = [turn.text for turn in turns if turn.speaker == "caller"]
    call_name = find_call_name(said)
    return Profile(
        name=name,
        call_name=call_name if call_name != name else None,
        pronouns=find_pronouns(said),
        timezone=zone,
    )


def _compose(
    turns: list[Turn], acts: list[Act], state: RequestState, secrets: list[Secret], profile: Profile
) -> Reading:
    open_items = [item for item in state.items if item.status == "open"]
    withdrawn = [item for item in state.items if item.status == "withdrawn"]
    promises = find_promises(turns, (item.topic for item in withdrawn))
    facts = find_facts(acts, state.refused)
    requests = [_to_request(item) for item in open_items if item.confidence >= ACTED_ON]
    return Reading(
        language="en",
        summary=str(len(requests)),
        profile=profile,
        requests=tuple(requests),
        unclear=tuple(_to_unclear(item) for item in open_items if item.confidence < ACTED_ON),
        withdrawn=tuple(WithdrawnRequest(title=item.title, turns=item.turns) for item in withdrawn),
        promises=tuple(promises),
        facts=(*secret_facts(secrets), *facts),
    )


def _to_request(item: Item) -> Request:
    return Request(
        kind=item.kind,
        title=item.title,
        details=". ".join(item.details),
        person=item.person,
        due=item.due,
        turns=item.turns,
        words=item.words,
    )


def _to_unclear(item: Item) -> UnclearRequest:
    return UnclearRequest(
        title=item.title, turns=item.turns, words=item.words, confidence=item.confidence
    )
