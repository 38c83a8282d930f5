"""What an agent's question is after: the matter of the call, or whether the caller still wants
something.
"""

import re
from dataclasses import dataclass
from typing import Literal

from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.sentences import split_sentences
from aftercall.llm.rules.stems import stems

Matter = Literal["need", "help"]

# "What do you need?" wants a thing; "how can I help?" may be answered with anything.
_NEED = Cue(
    r"\bwhat(?:['’]ll| (?:do|does|did|can|could|would|will|should|shall|are|is)) (?:you|i|we"
    r"|it|they|he|she|(?:the|your) \w+)\b"
    r"[\w ]{0,12}\b(?:need|get (?:you|for you|started)|like|want|looking for|after|have|order"
    "|bring you|"
    r"put down)\b(?! (?:to (?:hear|know|talk)))|"
    r"\bwhat (?:needs|should be) (?:doing|done|fixing|to be)\b|\bwhat['’]ll it be\b|\bwhat "
    r"would that be\b",
)
_LIKES = Cue(
    r"\bwhat \w+ do you (?:like|want|need|have)\b|\bwhat (?:do|does) (?:you|he|she) (?:like"
    r"|have)\b|\bwhat name\b"
)
_HELP = Cue(
    r"\b(?:how (?:can|may|could) (?:i|we) (?:help|assist)|what (?:can|may|could) (?:i|we) do "
    "for|what (?:is it|"
    r"are you calling) (?:about|for)|"
    r"what['’]s it (?:about|for)|go ahead|what['’]s up)\b",
)
# A verb that makes a clause a statement, so that it is no bare thing.
_FINITE = Cue(
    r"\b(?:i|we|you|he|she|they|it|there)(?:['’]\w+)?\b|\b\w{3,}(?:ed|left|broke|died|lost) "
    "(?:out|in|off|up|away|on|to|last|this|me|us|"
    r"the|my)\b|\b(?:is|are|was|were|am|have|has|had|do|does|did|will|would|can|could|should|"
    r"says?|said|wants?|need|needs|know|think|goes|went|got|came|told)\b|\b\w+['’](?:m|re|ve"
    r"|ll|d|t)\b|\b(?:that|what|"
    r"it|there|here)['’]s\b|^(?:my|our|the) \w+ \w{2,}ed\b|\b(?:yesterday|last (?:night|week"
    r"|month|year))\b",
)
_NO_THING = Cue(
    "^(?:no|not|nothing|none|nope|never|you|yes|yeah|sure|hi|hello|good|happy|merry|(?:an? "
    ")?lovely|"
    r"thanks?|thank|fine|sorry|well|maybe|because|since|so|okay|"
    r"right|great|perfect|bye|just (?:a )?(?:chat|talk|look)\w*|same|like|about|when|where|how"
    r"|who|why|if)\b|"
    r"\b(?:questions?|enquir\w+|inquir\w+|quick|chat|info\w*|hours|prices?|directions|idea"
    "|things|advice|please hold|moment|second|morning|"
    r"afternoon|evening)\b",
)
_DETERMINED = Cue(
    r"^(?:an?|the|some|two|three|four|five|six|\d+|my|new|another|one|half)\b"
)
_LONGEST = 14

_STILL = re.compile(
    r"\bstill (?:want|need|like|be wanting|interested in|going ahead with)\b(?: me| us)?(?: "
    "to)?(?P<what>[^?]*)",
    re.I,
)
_DROPPED = re.compile(
    "^(?:so|and|then|okay|right|just to check)?,? ?(?:no|without|not|you don['’]?t (?:want"
    "|need)|(?:shall|"
    r"should) (?:i|we) (?:drop|skip|forget|"
    r"leave out)|leave out|skip|drop) (?:the |a |an |any )?(?P<what>[\w -]{3,40})\?$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Recheck:
    """The agent asks whether something is wanted after all; `negative` when it supposes that it
    is not.
    """

    words: list[str]
    negative: bool

    @property
    def about(self) -> frozenset[str]:
        return stems(" ".join(self.words))


def asks_matter(text: str) -> Matter | None:
    if _NEED.search(text) and not _LIKES.search(text):
        return "need"
    return "help" if _HELP.search(text) else None


def is_bare_thing(text: str, matter: Matter) -> bool:
    """Whether a clause only names something, as an answer to what is needed."""
    words = text.split()
    if (
        not 1 <= len(words) <= _LONGEST
        or _FINITE.search(text)
        or _NO_THING.search(text)
        or not stems(text)
    ):
        return False
    return matter == "need" or bool(_DETERMINED.match(text))


def find_recheck(text: str) -> Recheck | None:
    for sentence in split_sentences(text):
        if not sentence.endswith("?"):
            continue
        if (match := _STILL.search(sentence)) or (match := _DROPPED.match(sentence)):
            return Recheck(
                re.findall(r"[^\W\d_]+", match["what"]), match.re is _DROPPED
            )
    return None
