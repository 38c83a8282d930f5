"""Names that callers say of themselves: "this is Ann", or an answer when asked."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from aftercall.llm.long_calls import cut_text
from aftercall.llm.rules.names import END, NAME, TITLE, asks_name, clean_name
from aftercall.llm.rules.sentences import split_sentences
from aftercall.llm.rules.uncased import find_uncased
from aftercall.model.calls import Call
from aftercall.model.turns import Turn

OPENING_TURNS = 2  # of the caller's, in which people say who they are

_LEAD = (
    "(?:(?i:hi|hiya|hello|hey|yes|yeah|no|nope|oh|um+|uh+|er+|so|well|okay|ok|sorry|actually"
    "|good|morning|afternoon|evening|there|and|but|"
    r"wait|hang|on)\b[,.!?…—-]* ?)*"
)

_TO_WHOM = rf"(?:{NAME}[,.!] ?)?"  # "Hi Max, this is Anna"

_AFTER = (
    "(?=,? (?i:here|speaking|calling|again|now|from|with|not|on the line|and (?:i|my|we|this)"
    r"|i|i['’]m|um|uh)\b|[,.!?;]|$)"
)

_SPEAKING = r"(?=,? (?i:here|speaking|calling|again|now)\b)"

_SURE = tuple(
    re.compile(pattern)
    for pattern in (
        (
            rf"^{_LEAD}{_TO_WHOM}{_LEAD}(?i:this is|you['’]re (?:speaking|talking) (?:to|with)) "
            rf"(?:(?i:uh|um|actually),? )*{TITLE}(?P<name>{NAME}){END}{_AFTER}"
        ),
        (
            r"\b(?i:my (?:full |first )?name(?:['’]s| is)) (?:(?i:uh|um|actually),? "
            rf")*(?!(?i:not)\b){TITLE}(?P<name>{NAME}){END}"
        ),
        rf"^{_LEAD}(?i:it['’]?s|it is) {TITLE}(?P<name>{NAME}){END}{_SPEAKING}",
        (
            r"\b(?i:my name (?:isn['’]t|is not)|i['’]m not|i am not|this (?:isn['’]t|is not)) "
            rf"{NAME}[,;]? (?i:it['’]s|this is|my name is|but) {TITLE}(?P<name>{NAME}){END}"
        ),
        rf"^{_LEAD}{TITLE}(?P<name>{NAME}){END}(?=,? (?i:speaking|here)\b)",
    )
)

_OPENING = tuple(
    re.compile(pattern)
    for pattern in (
        (
            f"^{_LEAD}{_TO_WHOM}{_LEAD}(?i:it['’]?s|it is|that['’]s) (?:(?i:just|only|me),? "
            f")*{TITLE}(?P<name>{NAME}){END}{_AFTER}"
        ),
        rf"^{_LEAD}{_TO_WHOM}{_LEAD}(?i:i['’]m|i am) {TITLE}(?P<name>{NAME}){END}{_AFTER}",
    )
)

_ANSWERED = re.compile(rf"^{_LEAD}{TITLE}(?P<name>{NAME}){END}(?=[,.!]|$)")

_OTHERS_WORDS = re.compile(
    r"\b(?:tell|say|saying|said|says|write|read|message|text|email|quote)\b|[\"“”:]",
    re.I,
)

_CORRECTS = re.compile(
    r"^(?:no|nope|sorry|actually|wait)\b|\bnot [A-Z]|\bi said\b", re.I
)


@dataclass(frozen=True)
class Introduction:
    """A name that a caller gave for themself, and whether it sets an earlier one right."""

    name: str
    corrects: bool = False


def find_introduction(
    text: str, *, is_opening: bool, is_asked: bool = False
) -> Introduction | None:
    """The last name that the caller clearly gave for themself in one turn."""
    found = None
    pieces = cut_text(text)
    for sentence in (each for piece in pieces for each in split_sentences(piece)):
        if name := _name_in(
            sentence, is_opening=is_opening or is_asked, is_asked=is_asked
        ):
            found = Introduction(name, bool(_CORRECTS.search(sentence)))
    return found


def list_introductions(turns: Iterable[Turn]) -> list[Introduction]:
    """Every name given in a call, in the order it was given."""
    listening = IntroductionListener()
    return [
        found
        for turn in turns
        if (found := listening.process_turn(turn.speaker, turn.text))
    ]


def find_stated_name(call: Call) -> str | None:
    """The first name that was not corrected. At a new number it is the owner's."""
    return next(iter(resolve_names(list_introductions(call.turns))), None)


class IntroductionListener:
    """Reads the turns of one call in order: earlier turns decide how much a name counts."""

    def __init__(self) -> None:
        self._heard = 0
        self._is_asked = False

    def process_turn(
        self, speaker: Literal["agent", "caller"], text: str
    ) -> Introduction | None:
        if speaker == "agent":
            self._is_asked = asks_name(text)
            return None
        self._heard += 1
        asked, self._is_asked = self._is_asked, False
        return find_introduction(
            text, is_opening=self._heard <= OPENING_TURNS, is_asked=asked
        )


def resolve_names(given: Sequence[Introduction]) -> list[str]:
    """The names given. A correction replaces the name before it."""
    names: list[str] = []
    for introduction in given:
        if introduction.corrects and names:
            names.pop()
        names.append(introduction.name)
    return names


def _name_in(sentence: str, *, is_opening: bool, is_asked: bool) -> str | None:
    if not any(char.isupper() and char != "I" for char in sentence):
        return find_uncased(sentence, asked=is_asked, opening=is_opening)
    for pattern in (
        *_SURE,
        *(_OPENING if is_opening else ()),
        *((_ANSWERED,) if is_asked else ()),
    ):
        match = pattern.search(sentence)
        if (
            match
            and not _OTHERS_WORDS.search(sentence[: match.start("name")])
            and (name := clean_name(match["name"]))
        ):
            return name
    return None
