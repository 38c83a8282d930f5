"""Words that carry meaning, cut to stems, so that two ways of naming one thing can be
recognised.
"""

import re

from aftercall.llm.rules.cue import lowered
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.vocabulary import vocabulary

_WORD = re.compile(r"[^\W\d_]+(?:['’][a-z]+)?|\d+", re.UNICODE)
_EMPTY = vocabulary(
    """
    a about actually after again ago ah all also am an and another any anyone anything are around as ask at away back be
    because been before being bit but by call called calling can can't come could day days did do does doesn't doing
    don't done down each else enough er even ever every everything fine first for from get getting give go going gonna
    good got great had has have having he hello her here hers hey hi him his hmm how i i'd i'll i'm i've if in into is
    isn't it it's its just kind know last later leave let let's like little look lot make many maybe me mean mine more
    morning much my need needs never next no not nothing now of off oh ok okay on once one ones only or other our out
    over perfect please put rather really right said same say says second see send set shall she should so some somebody
    someone something sorry sort still stuff sure take tell than thank thanks that that's the their them then there
    there's these they thing things think third this those though till time to today tomorrow tonight too two uh um
    until up us very want wanted wants was way we we'd we'll we're we've week well were what when where which while who
    why will with would wouldn't yeah yes yep yet you you'd you'll you're you've your monday tuesday wednesday remind
    reminder thursday friday saturday sunday afternoon evening night noon book booked order
    """
)
_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ers",
    "ies",
    "ied",
    "ors",
    "er",
    "or",
    "ed",
    "es",
    "ly",
    "s",
    "e",
    "y",
)


@remember
def stem(word: str) -> str:
    """Crude on purpose: it only has to bring "translated" and "translator" together."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


@remember
def stems(text: str) -> frozenset[str]:
    words = set(_WORD.findall(lowered(text).replace("’", "'"))) - _EMPTY
    return frozenset(stem(word) for word in words if len(word) > 1)


def overlap_coefficient(first: frozenset[str], second: frozenset[str]) -> float:
    """How much of the smaller set is in the other."""
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def jaccard_similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """How much of both together is common to both."""
    return len(first & second) / len(first | second) if first | second else 0.0
