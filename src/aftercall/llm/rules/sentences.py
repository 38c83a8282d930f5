"""Turns cut into sentences and clauses, with and without punctuation; each clause is a verbatim
piece of its turn.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.verbs import IMPERATIVE
from aftercall.model.turns import Turn

# stands for each character of a secret; private use, so no transcript means anything by it
MASK = "\ue000"

# An initial ("J. Smith") ends no sentence; the last letter of a word spelled out does.
_ABBREVIATED = re.compile(
    r"(?:\b(?i:dr|mr|mrs|ms|st|prof|vs|approx|a\.m|p\.m|e\.g|i\.e)|(?<!\b[A-Za-z] )(?<!ouble "
    r")\b[A-HJ-Z])\.$"
)
_ABBREVIATION = 14  # characters that can matter before a full stop
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)]*(?=\s|$)|\n+|\s[—–]\s")

_SUBJECT = (
    r"(?:i|we|he|she|they|it|you|there|that|this|my|our)(?:['’](?:d|ll|m|ve|re|s))?\b"
)
_ASKING = (
    "(?:can|could|would|will|should|shall) (?:you|i|we|they|he|she|somebody|someone|anybody"
    r"|anyone)\b|please\b|kindly\b|remind me\b|"
    r"don['’]?t (?:call|ring|send|tell|book|remind|bother|worry|forget|leave|put|need)\b|stop "
    r"\w+ing\b|(?:put|add) (?!it\b|"
    r"that\b)\w+ (?:on|to) (?:the|my)\b|let['’]s\b|never ?mind\b|scratch\b|forget (?:the|about"
    r"|it|that)\b|"
    r"do you\b|is there\b|are there\b|if (?:i|we|you)\b|(?:no|not),? (?:make|wait|actually"
    r"|sorry|hold|hang)\b|"
    r"(?<!\byou )(?<!['’]ll )(?<!['’]d )(?<!\bto )(?<!\bi )(?<!\bwe )(?<!['’]t )(?<!\bcan "
    r")(?<!\bould )(?<!\bwill )"
    r"(?<!\bthe )(?<!\ba )(?<!\bmy )(?<!\bthey )(?<!\bplease )(?<!\bdo )(?<!\bnot )(?<!\bor "
    rf")(?<!\bme )(?:just )?{IMPERATIVE} "
    "(?:(?:me|us|my|our|the|a|an|it|that|this|them|him|her|somebody|someone|up|out|in|to"
    r"|another|any|some)\b|(?-i:[A-Z]))"
)
# Verbs that go on with a bare noun: "book a cab and order flowers".
_AND_DO = (
    r"(?:book|cancel|order|send|email|reserve|schedule|text|tell|renew|refill|deliver) (?!is\b"
    r"|was\b|are\b|numbers?\b|it\b|off\b|back\b|"
    r"confirmation|addresses|messages?\b)[a-z]{3,}"
)
_JOINED = re.compile(
    r"(?<!ahead)(?<!try)(?<!\bgo)(?<!come),?\s+(?P<joint>(?:and|but|so|then|or|because|cause"
    "|cos|though|which|also|"
    r"plus)(?: (?:then|also|maybe|honestly|please|so|"
    rf"just))?)\s+(?={_SUBJECT}|{_ASKING}|{_AND_DO})",
    re.I,
)
_COMMA = re.compile(
    rf"[,;:]\s+(?=(?:and |but |so |then |oh |no |just )?(?:{_ASKING}|(?:i|we|he|she"
    r"|they)(?:['’](?:d|ll|m|ve|re|s))?\b|"
    r"it['’]s\b|that['’]s\b))",
    re.I,
)
_RUN_ON = re.compile(
    r"\s+(?P<joint>(?:um+|uh+|er+m?|oh|okay|anyway|what else|next thing|another thing|one "
    "more thing|(?:the )?(?:first|second|"
    r"third|fourth|last) thing(?: is)?|"
    "(?:and )?(?:first|second|third|fourth|lastly|finally)(?= (?:oh|um|uh|the|is|i|we|my|can"
    "|could|please|"
    rf"{IMPERATIVE})\b)|"
    r"and that['’]s it|by the way|honestly|right)"
    r"(?: (?:um+|uh+|oh|so|is|right|yeah))*)\s+",
    re.I,
)
# Nobody ends here: "i need uh my inhaler".
_EXPECTS_MORE = re.compile(
    r"\b(?:need|want|wanted|like|the|an?|my|our|your|to|for|with|of|is|was|get|have|got|and|or"
    "|called|i|it['’]s|that['’]s|"
    r"(?:can|could|would) you|i['’](?:m|d|ve))$",
    re.I,
)
_RUN_ON_START = re.compile(
    rf"(?<!\bdo)(?<!\bdid)(?<!\bif)(?<!\bwhat)(?<!\bwhen)(?<!\bthat)(?<!\bshould)\s+(?=(?:{_ASKING}"
    r"|(?:i|we)['’](?:d|m|ve|re|ll)\b|"
    rf"that['’]s (?:settled|final|it|all)\b|i (?:need|want|talked|told|"
    r"already)\b|she wants\b|he wants\b))",
    re.I,
)
_RUN_ON_WORDS = 22
_FEW = 3
_INVERTED = re.compile(
    "(?:(?:and|so|but|oh|um+|uh+|also|ok|okay|well) )*(?:(?:are|is|do|does|did|was|were|have"
    "|has) (?:you|there|it|the|"
    r"they|we|i|he|she|your|that|this)|"
    r"(?:what|when|where|who|why|how|which)(?:'s)? (?!i (?:need|want|wanted|mean))\w+)\b",
    re.I,
)
# Nothing but hesitation and joints: it belongs to what follows.
_FALSE_START = re.compile(
    "(?:(?:and|but|so|then|or|also|plus|just|um+|uh+|er+m?|em+|oh|ah|like|well|please|because"
    "|cause|cos|though|if|i mean|you know|"
    "first|second|third|it's|it’s|is|i|we|that|(?:can|could|would) (?:you|i|we)|do me a "
    r"favou?r|be a (?:love|dear|star))[\s,;:.…-]*)+",
    re.I,
)

LEAD_IN = re.compile(
    "(?:(?:(?:right|good|great|fine|look|listen|no|love|dear|first|second|third|morning|wait"
    "|sure|lovely|hello|now|sorry|"
    r"like|cool|perfect)(?=[,.:;!?…-])|"
    rf"(?:first|second|third|fourth)(?= (?:um+|uh+|the|my|{IMPERATIVE})\b)|"
    "oh|um+|uh+|uh huh|mm+|hm+|er+m?|ah|well|so|and|but|then|okay|ok|alright|all right"
    "|wonderful|amazing|brilliant|awesome|"
    "excellent|(?:no|sorry|right|great|perfect|cool|lovely)(?= (?:i|it['’]s|can|could|so|and"
    r"|no|oh|um|uh|sorry|yeah)\b)|"
    "yeah|yes|yep|yup|nope|nah|hi|hello|hey|yo|good morning|good afternoon|good evening|hi "
    "there|hello there|thanks|"
    r"thank you|actually|also|plus|just|"
    "please|you know|i mean|first (?:thing|of all|off)|second(?:ly| thing)|third(?:ly| thing)"
    "|(?:the )?(?:second|third|next|"
    r"last|other) thing(?: is)?|finally|lastly|"
    "(?:first|second|third|next|last) one(?=[, ])|one (?:more|other|last) thing|another thing"
    "|one more|by the way|anyway|honestly|"
    r"basically|mate|hang on|hold on|"
    r"one sec(?:ond)?|let me see|let me think|"
    "if you (?:could|can|would|don['’]t mind)|if (?:it|that)(?:['’]s| is|['’]d be)?(?: not"
    "|n['’]t)? (?:too much (?:trouble|bother)|a "
    r"bother|ok|okay|"
    "all right|possible)|if (?:at all )?possible|when you (?:get a chance|can|have a moment)"
    "|because|cause|cos|too|"
    r"that['’]s fine|got it|maybe|while (?:i have you|you['’]re at it|i['’]m at it))"
    r"(?:[,.:;!?…-]+\s*|\s+|$))+",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Clause:
    seq: int
    sentence: int
    text: str
    is_question: bool
    whole: str
    """The sentence it is part of."""

    @property
    def body(self) -> str:
        """Without the words people start with."""
        return body_of(self.text)

    @property
    def is_masked(self) -> bool:
        return MASK in self.text


@remember
def split_sentences(text: str) -> tuple[str, ...]:
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.group() == "." and _ABBREVIATED.search(
            text[max(start, match.end() - _ABBREVIATION) : match.end()]
        ):
            continue
        if piece := text[start : match.end()].strip():
            yield piece
        start = match.end()
    if piece := text[start:].strip():
        yield piece


def split_clauses(turn: Turn, text: str | None = None) -> list[Clause]:
    """The clauses of a turn; `text` stands in for the turn's own where secrets are masked."""
    clauses: list[Clause] = []
    for index, sentence in enumerate(
        split_sentences(turn.text if text is None else text)
    ):
        pieces = _pieces(sentence)
        clauses += [
            Clause(
                turn.seq,
                index,
                piece,
                (sentence.endswith("?") and number == len(pieces) - 1)
                or _is_open_question(piece, sentence),
                sentence,
            )
            for number, piece in enumerate(pieces)
        ]
    return clauses


def _is_open_question(piece: str, sentence: str) -> bool:
    """Where no question mark is written, the order of words tells."""
    return sentence[-1:].isalnum() and bool(_INVERTED.match(piece))


@remember
def body_of(text: str) -> str:
    return text[match.end() :] if (match := LEAD_IN.match(text)) else text


@remember
def _pieces(sentence: str) -> tuple[str, ...]:
    return tuple(_cut(sentence))


def _cut(sentence: str) -> Iterator[str]:
    cuts = {0, len(sentence)}
    cuts |= {match.start("joint") for match in _JOINED.finditer(sentence)}
    cuts |= {match.end() for match in _COMMA.finditer(sentence)}
    if _runs_on(sentence):
        cuts |= {
            match.start("joint")
            for match in _RUN_ON.finditer(sentence)
            if not _EXPECTS_MORE.search(sentence[: match.start()])
        }
        cuts |= {match.end() for match in _RUN_ON_START.finditer(sentence)}
    edges = [edge for edge in sorted(cuts) if edge]
    start = 0
    for end, after in itertools.zip_longest(edges, edges[1:]):
        piece = sentence[start:end].strip(" ,;:")
        if after and (
            _FALSE_START.fullmatch(piece) or _starts_over(piece, sentence[end:after])
        ):
            continue
        if piece:
            yield piece
        start = end


def _starts_over(piece: str, following: str) -> bool:
    """ "Could they, could they come earlier": the first try says nothing of its own."""
    tried = piece.lower().split()
    return len(tried) <= _FEW and following.lower().split()[: len(tried)] == tried


def _runs_on(sentence: str) -> bool:
    """A recogniser that writes no punctuation leaves only the speaker's own joints to cut at."""
    words = sentence.count(" ") + 1
    if words > 8 and not re.search(r"[.!?,]", sentence):
        return True
    return words > _RUN_ON_WORDS and sentence.count(",") * 25 < words
