"""How the agent named and described itself."""

import re
from collections.abc import Iterable

from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.names import NAME, clean_name
from aftercall.llm.rules.sentences import split_sentences
from aftercall.model.reading import Identity

_KIND = (
    "(?:assistant|agent|receptionist|concierge|front desk|operator|helper|bot|robot|voice|ai"
    r"|a\.i\.|secretary|companion|"
    r"attendant|automated \w+|virtual [\w ]+?|digital \w+|system|machine|program|computer)"
)
_CREATURE = Cue(
    r"\b(?:this is|i['’]m|i am|it['’]s|you['’]re (?:speaking|talking) (?:to|with)) "
    "(?P<creature>(?:just )?(?:the|an?|"
    rf"your)\s(?:[\w'’-]+ ){{0,4}}?{_KIND})(?=[.,!?;]| (?:at|of|for|from|here|and|speaking"
    r"|calling)\b|$)",
)
_NAMED = (
    Cue(
        r"\b(?i:my name(?:['’]s| is)|i['’]m called|they call me|you can call me|i go by) "
        f"(?P<name>{NAME})",
        0,
    ),
    Cue(
        rf"\b(?i:this is|i['’]m|i am|it['’]s) (?P<name>{NAME})(?=,| (?i:the|your|an?|from|at"
        r"|with|here|speaking)\b|[.!]|$)",
        0,
    ),
    Cue(
        rf"^(?:(?i:hi|hello|hey|good \w+|thanks for calling [\w ]+),? )?(?P<name>{NAME}) "
        r"(?i:here|speaking)\b",
        0,
    ),
)
_HOUSE = Cue(
    r"\b(?:dental|medicine|clinic|bakery|inn|hotel|bank|insurance|desk|shop|store|services?"
    "|line|support|restaurant|garage|"
    r"trust|sales|reservations|veterinary|office|team|department|school|library|pharmacy|salon)\b",
)
_APPENDED = Cue(rf"^, (?P<creature>(?:the|an?|your) (?:[\w'’-]+ ){{0,4}}?{_KIND})\b")
_VIBE = Cue(
    r"\b(?:my (?:style|vibe|tone|manner) is|i (?:like|try|aim) to (?:be|keep it|keep things)) "
    r"(?P<vibe>[\w ,'’-]{3,60})"
)
_EMOJI = Cue(r"\bmy emoji is (?P<emoji>[^\w\s]{1,4})")


def read_identity(texts: Iterable[str]) -> Identity:
    name = creature = vibe = emoji = None
    for sentence in (sentence for text in texts for sentence in split_sentences(text)):
        name = name or _name(sentence)
        creature = creature or _creature(sentence)
        vibe = vibe or _group(_VIBE.search(sentence), "vibe")
        emoji = emoji or _group(_EMOJI.search(sentence), "emoji")
    return Identity(name=name, creature=creature, vibe=vibe, emoji=emoji)


def _group(match: re.Match[str] | None, name: str) -> str | None:
    return match[name].strip(" ,.") if match else None


def _name(sentence: str) -> str | None:
    for pattern in _NAMED:
        if (
            (match := pattern.search(sentence))
            and (name := clean_name(match["name"]))
            and not _HOUSE.search(name)
        ):
            return name
    return None


def _creature(sentence: str) -> str | None:
    match = _CREATURE.search(sentence)
    if match is None:
        match = next(
            (
                found
                for pattern in _NAMED
                if (named := pattern.search(sentence))
                and (found := _APPENDED.match(sentence[named.end("name") :]))
            ),
            None,
        )
    return (
        re.sub(r"^(?:just )?(?:the|an?|your)\s", "", match["creature"], flags=re.I)
        if match
        else None
    )
