"""What the caller said about themselves, and how the agent named and described itself."""

import re
from collections.abc import Iterable, Sequence

from aftercall.english.clauses import split_plain_sentences
from aftercall.english.introductions import find_call_name, find_pronouns
from aftercall.english.names import take_name
from aftercall.english.text import Plain, normalise
from aftercall.english.words import load_patterns
from aftercall.llm.cached_reader import as_sentence
from aftercall.llm.rules.acts import Act
from aftercall.model.reading import FactDraft, Identity, Profile
from aftercall.model.turns import Turn

_PATTERNS = load_patterns("aftercall.llm.rules", "profile")

MAX_NOTES = 3  # sentences of a profile's notes and context
_STANDS_ALONE = re.compile(
    r"(?:I|we|my|our)\b(?!.*\b(?:it|that|this|them|him|her|one)\b)", re.I
)
_CARES = _PATTERNS["cares"]
_NAMED = _PATTERNS["named"]
_CREATURE = _PATTERNS["creature"]
_APPENDED = _PATTERNS["appended"]
_COMPANY = _PATTERNS["company"]
_VIBE = re.compile(
    r"\bmy (?:style|vibe|tone|manner) is (?P<vibe>[\w ,'’-]{3,60})", re.I
)
_EMOJI = re.compile(r"\bmy emoji is (?P<emoji>[^\w\s]{1,4})", re.I)


def read_profile(
    turns: Sequence[Turn],
    name: str | None,
    zone: str | None,
    facts: list[FactDraft],
    acts: list[Act],
) -> Profile:
    said = [turn.text for turn in turns if turn.speaker == "caller"]
    call_name = find_call_name(said)
    notes = [
        fact.text
        for fact in facts
        if fact.category == "preference" and _STANDS_ALONE.match(fact.text)
    ]
    cares = [
        act.matter.said
        for act in acts
        if act.speaker == "caller"
        and act.kind == "tell"
        and _CARES.fullmatch(act.matter.text)
    ]
    return Profile(
        name=name,
        call_name=call_name if call_name != name else None,
        pronouns=find_pronouns(said),
        timezone=zone,
        notes=_join(notes),
        context=_join(cares),
    )


def _join(texts: Iterable[str]) -> str | None:
    kept = list(dict.fromkeys(texts))[:MAX_NOTES]
    return " ".join(as_sentence(text) for text in kept) or None


def read_identity(turns: Iterable[Turn]) -> Identity:
    name = creature = vibe = emoji = None
    for turn in turns:
        if turn.speaker != "agent":
            continue
        for sentence in split_plain_sentences(normalise(turn.text)):
            found, described = _name_and_creature(sentence)
            name, creature = name or found, creature or described
        vibe = vibe or _group(_VIBE, turn.text, "vibe")
        emoji = emoji or _group(_EMOJI, turn.text, "emoji")
    return Identity(name=name, creature=creature, vibe=vibe, emoji=emoji)


def _name_and_creature(sentence: Plain) -> tuple[str | None, str | None]:
    described = _CREATURE.fullmatch(sentence.text)
    creature = sentence.between(*described.span("creature")).said if described else None
    match = _NAMED.match(sentence.text)
    if match is None:
        return None, creature
    at = sentence.index(match.end())
    name = take_name(sentence, at)
    if not name or _COMPANY.fullmatch(name.lower()):
        return None, creature
    rest = sentence.slice(at + len(name.split()))
    appended = _APPENDED.fullmatch(rest.text)
    if appended:
        creature = rest.between(*appended.span("creature")).said
    is_given = (
        "name is" in match.group()
        or "call" in match.group()
        or "go by" in match.group()
    )
    is_free = (
        not rest.words
        or bool(appended)
        or rest.words[0].norm in ("from", "at", "here", "with", "speaking", "how")
    )
    return (name if is_given or is_free else None), creature


def _group(pattern: re.Pattern[str], text: str, name: str) -> str | None:
    match = pattern.search(text)
    return match[name].strip(" ,.") if match else None
