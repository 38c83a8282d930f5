"""Words: scenario patterns, questions and what they ask for, likeness of sentences."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_SENTENCE = re.compile(r"[^.?!]+[.?!]*")
_ABBREVIATION = re.compile(
    r"\b(dr|mr|mrs|ms|st|prof|no|[ap]\.m|[ap](?=\.m\b)|\d+(?=\.\d))\.(?=\s?\S)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^(?:(?:and|so|okay|ok|well|great|sure|alright|all right|thanks?|thank you|perfect|lovely|now"
    r"|right|good|got it|no problem|of course|certainly|absolutely|first|also|then|before i do"
    r"|just|wonderful|fine)\b,? ?)*"
    r"(?:what|what's|when|where|who|who's|whom|which|why|how|can (?:i|you|we)|could (?:i|you|we)"
    r"|may i|might i|do you|does|did you|would you|will you|is (?:that|this|there|it)|are you"
    r"|have you|please (?:tell|give|say|spell|provide|confirm|state|share)|kindly"
    r"|(?:i|i'll|we|we'll|i will|we will|i'd|i would)(?: just| also| still)? "
    r"(?:need|require|lack|want) (?:your|to know|a|the|to (?:have|get|take|verify|confirm))"
    r"|(?:i|we) (?:shall|must|will) (?:require|have|know|ask for) (?:your|the|a)"
    r"|i(?:'ll| will)(?: just)? (?:take|grab|have) your|let me (?:get|have|take|grab) (?:your|a)"
    r"|let's start with|tell me|give me|go ahead and (?:tell|give)|your (?:\w+ ){0,3}please)\b"
)
_REQUEST_END = re.compile(r"\b(?:please|for me)\W*$")
# "for our records, kindly state …"
_REQUEST_WITHIN = re.compile(
    r", (?:and |then )?(?:kindly|please|tell me|give me|state|let me have|i need|we need)\b"
)
# "Date of birth, that is."
_BARE_FIELD = re.compile(
    r"^(?:(?:and|your|the|full|first|last|now|then|next|a|good)\b,? ?)*"
    r"(?:name|surname|date of birth|birth ?(?:date|day)|d\.?o\.?b|(?:phone |contact )?number"
    r"|(?:e-?mail |home )?address|(?:zip|postal) ?code)(?:,? (?:that is|then|now|first|next))?\W*$"
)
# why something is asked for is not what is asked for
_REASON = re.compile(
    r"(?:^|,? )\b(?:because|since|so that|so (?=we|i|the|they)|in case|as (?=we|there|i|many|some))"
    r"\b[^,?;]*",
    re.IGNORECASE,
)
_FIELDS: dict[str, str] = {
    # a name of something else (`the name of the medicine`, `the doctor's name`) is not the caller's
    "name": r"(?:(?<!'s )|(?<=patient's )|(?<=caller's ))(?<!maiden )(?<!middle )(?<!company )"
    r"(?<!business )(?<!street )(?<!brand )(?<!file )\bnames?\b(?! (?:of|the)\b)(?!,? dr)"
    r"|\b(?:surname|who am i|and you are\b|spell (?:it|that|your|the|yourself)"
    r"|who(?:m)?(?: is|'s| am| do| have| are| may| shall| should| would| might| must| could)"
    r" (?:i|this|calling|it|speaking|you|we|there|that|the caller)\b(?! (?:like|want|wish|need|see"
    r"|prefer|usually|normally))|(?:with|to|for|of) whom (?:do|have|am|are|may|belongs?|does)\b"
    r"|(?:the|whose) (?:honou?r|pleasure)"
    r"|(?:are|do) (?:you|they|people|we) (?:called|call you)|call yourself|go(?:es)? by\b"
    r"|(?:how|what) (?:shall|should|may|do|can) (?:i|we|they|people) (?:call|address) you\b)",
    "dob": r"\b(?:birth|birth ?(?:date|day)s?|born|d\.?o\.?b\b|came? into (?:the|this) world"
    r"|(?:see|saw) the light|how old)\b",
    "phone": r"\b(?:(?:phone|telephone|mobile|cell|contact|callback|call back|call-back) ?number"
    r"|number (?:to|can we|should we|can i|should i|do we|we can|i can|for you|where)"
    r"|(?:your|a good|the best|best|what|good) number|cell ?phone|reach you (?:at|on)"
    r"|(?:how|where) (?:can|do|should|could) (?:we|i) (?:best )?(?:reach|contact|call))\b",
    "email": r"\be-?mail(?: address)?\b",
    "address": r"\b(?:home |street |mailing |billing )address\b",
    "zip": r"\b(?:zip|postal|post) ?code\b",
    "insurance": r"\b(?:insurance|coverage)\b(?! (?:card|number|id|policy)\b)",
    "pharmacy": r"\bpharmacy\b",
    "account": r"\b(?:account|customer|order|reference|confirmation|member(?:ship)?|policy"
    r"|insurance|card|case|file|booking) (?:number|id|code)\b",
    "passcode": r"\b(?:pass ?code|pin|password|security (?:code|question|word))\b",
}


OFFERS_HELP = (
    r"/\b(?:how|what|where|anything)\b.{0,20}?\b(?:can|may|could|might|shall|should|would)"
    r" (?:i|we)\b.{0,12}?\b(?:help|do|assist|be of|serve|arrange|get|fetch)\b"
    r"|\bwhat(?:'s| is) (?:it|this) (?:about|regarding)|\bwhat brings you|\bcalling about"
    r"|\bwhat (?:would|do) you (?:need|want|like)\b/"
)
ANYTHING_ELSE = (
    "anything else|something else|what else|anything more|any other questions|anything further",
    "something more|something further|further assistance|need more help|else today",
    r"/\b(?:how|what) (?:else )?(?:can|may|could) (?:i|we) (?:do|help|assist|be)/",
    r"/\b(?:may|can|could) i (?:help|assist) you (?:further|with)/",
    r"/\b(?:is|was|will|would) (?:that|there|this) (?:be )?(?:all|everything|it)\b/",
    r"/^\W*(?:else|more|next|further|yes|anything)\?$/",
    (
        r"/^\W*(?:and |so )?any (?:other|more|further) (?!.*\b(?:day|date|time|slot|number|doctor"
        r"|name|allerg|insurance|medic|symptom|detail|way)\w*)\S+(?: \S+){0,4}\?$/"
    ),
    (
        r"/^(?!.*\b(?:day|date|time|number|address|morning|afternoon|week|dose|doctor|about"
        r"|tell)s?\b)"
        r"(?:\S+ ){0,7}?\W*\b(?:more|next|another|further|else|additional(?:ly)?|besides"
        r"|third|other (?:thing|matter|wish|question|request)s?)\b\S*(?: \S+){0,4}$/"
    ),
)


MAILBOX = (
    "after the tone|after the beep|at the tone|at the beep|following the tone",
    "reached the voice mail|reached the voicemail|voice mail box|voicemail box|voice mailbox",
    "mailbox is full|not available to take your call|leave your message after",
)


def word_set(words: str) -> frozenset[str]:
    """A table of words, written as text."""
    return frozenset(words.split())


_STOP_WORDS = word_set("""
    a an and are as at be but by can could do for from have i i'm i'll in is it it's me my of on
    or our please so that the then there this to was we will with would you you're your
""")


def plain_text(text: str) -> str:
    """In lower case, with straight apostrophes and single spaces."""
    return " ".join(text.lower().replace("’", "'").split())


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """`/…/` is a regular expression; else words, `|` for alternatives, `*` for some words."""
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        return re.compile(pattern[1:-1], re.IGNORECASE)
    return re.compile(
        "|".join(_words_pattern(part) for part in pattern.split("|")), re.IGNORECASE
    )


def _words_pattern(part: str) -> str:
    pieces = [
        r"(?:\S+\s+){0,6}?" if piece == "*" else re.escape(piece)
        for piece in part.split()
    ]
    joined = ""
    for piece in pieces:
        joined += ("" if not joined or joined.endswith("?") else r"[\s,;:]+") + piece
    return rf"(?<!\w){joined}(?!\w)"


def find_any(patterns: Iterable[str], text: str) -> str | None:
    """The words of the first pattern found, or None."""
    plain = " ".join(text.replace("’", "'").split())
    for pattern in patterns:
        if found := compile_pattern(pattern).search(plain):
            return found.group(0)
    return None


def sentences_of(text: str) -> list[str]:
    """Split at the ends of sentences, not at titles and hours."""
    whole = _ABBREVIATION.sub("\\1\u2024", " ".join(text.split()))
    return [
        part.strip().replace("\u2024", ".")
        for part in _SENTENCE.findall(whole)
        if words_of(part)
    ]


def is_question(sentence: str) -> bool:
    plain = plain_text(sentence)
    if plain.endswith("?") or _ASKING.match(plain) or _BARE_FIELD.match(plain):
        return True
    within = _REQUEST_WITHIN.search(plain)
    wanted = plain[within.end() :] if within else ""
    wanted = plain if _REQUEST_END.search(plain) else wanted
    return any(re.search(pattern, wanted) for pattern in _FIELDS.values())


def questions_of(text: str) -> list[str]:
    return [sentence for sentence in sentences_of(text) if is_question(sentence)]


def asked_fields(
    text: str, extra: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """The fields this text asks for, in order; `extra` adds fields and ways of asking."""
    found: list[tuple[int, str]] = []
    for question in questions_of(text):
        place = text.find(question)
        question = _REASON.sub(lambda found: " " * len(found.group(0)), question)
        for name in {*_FIELDS, *(extra or {})}:
            at = _first_mention(name, question, (extra or {}).get(name, ()))
            if at is not None and all(name != other for _, other in found):
                found.append((place + at, name))
    return [name for _, name in sorted(found)]


def field_patterns(text: str) -> list[str]:
    """The patterns of the fields that these words name, for example `your date of birth`."""
    plain = plain_text(text)
    return [pattern for pattern in _FIELDS.values() if re.search(pattern, plain)]


def _first_mention(name: str, question: str, extra: Sequence[str]) -> int | None:
    places = [
        match.start()
        for pattern in extra
        if (match := compile_pattern(pattern).search(question))
    ]
    known = _FIELDS.get(name)
    if known and (match := re.search(known, question.lower().replace("’", "'"))):
        places.append(match.start())
    return min(places) if places else None


def content_words(text: str) -> list[str]:
    return [word for word in words_of(text) if word not in _STOP_WORDS]


def likeness(one: str, other: str) -> float:
    """0 to 1: the better of shared word pairs and the longest common sequence of words."""
    first, second = (
        content_words(one) or words_of(one),
        content_words(other) or words_of(other),
    )
    if not first or not second:
        return 0.0
    shared = _overlap(first, second)
    if min(len(first), len(second)) > 1:
        shared = _overlap(pairwise(first), pairwise(second))
    return max(shared, SequenceMatcher(None, first, second, autojunk=False).ratio())


def _overlap(one: Iterable[object], other: Iterable[object]) -> float:
    first, second = set(one), set(other)
    return len(first & second) / len(first | second)


def word_error_rate(meant: str, heard: str) -> float:
    """Wrong, missing and added words, as a share of the words meant."""
    words = len(words_of(meant))
    return (
        count_word_errors(meant, heard) / words
        if words
        else float(bool(words_of(heard)))
    )


def count_word_errors(meant: str, heard: str) -> int:
    """The edit distance between two sentences, in words."""
    reference, hypothesis = words_of(meant), words_of(heard)
    row = list(range(len(hypothesis) + 1))
    for number, word in enumerate(reference, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(hypothesis, 1):
            cost = min(row[place] + 1, row[place - 1] + 1, before + (word != other))
            before, row[place] = row[place], cost
    return row[-1]
