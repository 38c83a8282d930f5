"""Taking back and putting right: "make it Sunday", "nine chairs, not ten", "no wait, the other
one".
"""

import re

from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.numbers import NUMBER_WORD, TENS, quantities
from aftercall.llm.rules.vocabulary import vocabulary

REPLACES = Cue(
    r"\b(?:make|change|switch|move|push|shift|bump) (?:it|that|this)(?: one)?(?: to| "
    r"for)?\b(?! (?:up|out|clear|sure))|"
    r"\blet['’]s (?:do|say|make it|go (?:for|with)|try)\b|\b(?:can|could|would) (?:we|i|you) "
    "(?:do|make it|make that|say|try|"
    r"manage)\b|"
    r"\bi (?:mean|meant)\b|\b(?:how|what) about\b|\bdo you have (?:anything|something|any"
    r"|room)\b|\bbetter make\b|\brather (?:have|do)\b",
)
REPAIRS = Cue(
    "^(?:(?:oh|um|uh|and|but|sorry)[, ]+)*(?:no,? wait|wait,? no|no,? sorry|sorry,? no"
    "|no[,.](?: |$)|nah,? |actually|hang on,? no|"
    r"hold on,? no|no,? (?:hang|hold) on|i mean\b|i meant|or rather|scratch that|correction"
    "|make (?:it|that))",
)
_MAY_REPAIR = re.compile(r"(?:no|sorry|rather|mean|wait|actually)[,.]", re.I)
_WITHIN = Cue(
    r"(?P<old>\b[\w'’:]+(?: [\w'’:]+)?),? (?:no wait|no,? sorry|sorry,? no|no,? actually|no"
    "|sorry|or rather|i mean|"
    r"wait)[,.]+ (?:i mean,? |i meant |make that |no,? |it['’]s |on |at |for )*(?=[\w])",
)
_DENIED = Cue(
    (
        r"\b(?:not|instead of|rather than) (?:on |for |at |in |the |a |an |"
        rf"to )*(?P<word>{NUMBER_WORD}(?:[ -]{NUMBER_WORD})+|[A-Za-z0-9'’]+)(?=[\s.,!?]|$)"
    ),
)
# "It still says eleven, it's fourteen now."
_OUTDATED = Cue(
    rf"\b(?:still|wrongly) (?:says|shows|reads|lists|has|had) (?P<word>{NUMBER_WORD}(?:[ "
    rf"-]{NUMBER_WORD})*|\d+)\b"
)
# "The Heron Path is the other one."
_NUMBER = re.compile(rf"\d|\b{NUMBER_WORD}\b", re.I)
_FIGURES = rf"{NUMBER_WORD}(?:[ -](?:point |and )?{NUMBER_WORD})*"
_THE_OTHER = Cue(
    rf"\b(?P<word>(?-i:[A-Z])[\w'’]+(?: (?-i:[A-Z])[\w'’]+)*|{_FIGURES}) (?:is|was) the "
    r"(?:other|old|wrong) (?:one|name|address|number)\b"
)
# Without punctuation only a figure tells what is put right: "eight point two i think no eight
# point three".
_PLAINLY = Cue(
    rf"(?P<word>{_FIGURES})(?: i think| maybe)? (?:no|sorry|i mean|wait|or rather) (?={_FIGURES})"
)
_BROKEN_OFF = Cue(r",\s*(?:no|nah|wait|nope)\W*$")
_NO_DENIAL = vocabulary(
    """
    sure really just only yet now too very that it this so even going gonna a the to being all always in on at my your
    as much many like if when what who there here able happy good bad great planning me you
    """
)


@remember
def denied_words(text: str) -> list[str]:
    """What a correction says it is not."""
    denied = [
        match["word"]
        for match in _DENIED.finditer(text)
        if match["word"].lower() not in _NO_DENIAL
    ]
    others = (
        match["word"]
        for cue in (_OUTDATED, _THE_OTHER, _PLAINLY)
        for match in cue.finditer(text)
    )
    return [*denied, *others]


_MAKE_IT = Cue(
    rf"\bmake (?:it|that) (?P<new>{_FIGURES}|\d+)\b(?! (?:o['’]?clock|[ap]\.?m|thirty|fifteen))"
)


def new_number(text: str) -> str | None:
    """The number that is to stand instead; none where it may be a time of day ("make it ten
    thirty").
    """
    match = _MAKE_IT.search(text)
    new = match["new"].lower() if match else ""
    first = re.split(r"[ -]", new)[0]
    return (
        new
        if new
        and (first == new or first in TENS or "hundred" in new or "thousand" in new)
        else None
    )


def outnumbered(text: str, said: str, told: str) -> list[str]:
    """ "Ten drivers." "Make that nine.": what was told with the number that the agent has just
    said back.
    """
    match = _MAKE_IT.search(text)
    back = set(quantities(said).values()) if match else set()
    return [
        f"{number} {noun}"
        for noun, number in quantities(told).items()
        if number in back and match and number != match["new"].lower()
    ]


def is_broken_off(text: str) -> bool:
    """ "My roommate will come for, no": given up before it was said."""
    return bool(_BROKEN_OFF.search(text))


def values_denied(text: str) -> list[str]:
    """Of what a correction says it is not, the numbers and names: those are wrong wherever else
    they were said.
    """
    return [
        word
        for word in denied_words(text)
        if word[0].isupper() or word[0].isdigit() or re.fullmatch(_FIGURES, word, re.I)
    ]


def denies_number(text: str) -> bool:
    """ "five, not three"."""
    return any(_NUMBER.search(word) for word in denied_words(text))


def erase(text: str, denied: list[str]) -> str:
    return " ".join(_any_of(denied).sub(" ", text).split()) if denied else text


def longest_without(text: str, denied: list[str]) -> str:
    """The longest verbatim piece of a text that holds nothing taken back."""
    return max(_any_of(denied).split(text), key=len).strip(" ,;:") if denied else text


def _any_of(words: list[str]) -> re.Pattern[str]:
    """With the preposition before a word that ends its clause: "on Tuesday." leaves no "on"."""
    listed = "|".join(rf"\b{re.escape(word)}\b" for word in words)
    return re.compile(
        rf"\b(?:on|by|for|until|till|from|at|in)\s+(?:{listed})(?=\W*$)|{listed}", re.I
    )


@remember
def settle_repairs(text: str) -> str:
    """ "for Tuesday, no, Wednesday" is "for Wednesday": a word put right mid-sentence replaces
    the one before.
    """
    return (
        text
        if not _MAY_REPAIR.search(text)
        else _WITHIN.sub(
            lambda match: f"{match['old'].rpartition(' ')[0]} ".lstrip(), text
        )
    )


def find_repair(text: str) -> re.Match[str] | None:
    return _WITHIN.search(text) if _MAY_REPAIR.search(text) else None


def after_repair(text: str) -> str:
    """The verbatim rest of a text behind the last thing that was put right in it."""
    repairs = list(_WITHIN.finditer(text)) if _MAY_REPAIR.search(text) else []
    return text[repairs[-1].end() :] if repairs else text
