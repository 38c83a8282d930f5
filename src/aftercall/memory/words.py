"""Words of memory: terms that are indexed and asked for, and wordings in one plain form.

A term is the one form in which passages are indexed and queries asked, on both databases: plain
ASCII without punctuation, so neither database's own tokeniser has anything left to decide.
Stems are made here for the same reason: SQLite's and Postgres' stemmers differ.
"""

import re
import unicodedata
from functools import lru_cache

from aftercall.english.text import (
    ORDINALS,
    ROUND_NUMBERS,
    SMALL_NUMBERS,
    TEENS,
    TENS,
    UNITS,
)
from aftercall.english.words import stem_word, vocabulary

LONGEST_WORD = 40
MAX_KEPT_WORDS = (
    4_096  # nearly every word of a text; callers never run out of new numbers
)
MIN_SHARED_TERM_RATIO = 0.6

_PLAIN = re.compile(r"[a-z0-9]+")
# Scripts written without spaces are indexed letter by letter: there a run of letters is a
# sentence, not a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_ANY = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")

STOP_WORDS = vocabulary(
    """
    a about above after again all also am an and any are aren as at be because been before being
    both but by can could couldn d did didn do does doesn doing don done down during each etc for
    from further had has have having he her here hers herself him himself his how i if in into is
    isn it its itself just ll m me might more most must my myself no nor not now of off on once
    only or other our ours ourselves out over own re s same shall she should so some such t than
    that the their theirs them themselves then there these they this those through to too under
    until up us ve very was wasn we were what when where which while who whom whose why will with
    would wouldn you your yours yourself
    """
)

# Forms that no rule leads back, each line ending in the word they belong to.
_IRREGULAR = """
went gone go/made make/took taken take/bought buy/saw seen see/got gotten get/gave given give
found find/told tell/said say/thought think/knew known know/came come/became become
began begun begin/felt feel/left leave/met meet/ran run/kept keep/held hold/brought bring
taught teach/caught catch/wrote written write/spoke spoken speak/drove driven drive
rode ridden ride/flew flown fly/ate eaten eat/drank drunk drink/won win/lost lose/sold sell
sent send/spent spend/built build/broke broken break/chose chosen choose/grew grown grow
drew drawn draw/wore worn wear/sang sung sing/swam swum swim/slept sleep/fell fallen fall
heard hear/paid pay/understood understand/forgot forgotten forget/woke woken wake
hid hidden hide/threw thrown throw/stood stand/led lead/fought fight/lent lend/meant mean
dealt deal/shot shoot/stole stolen steal/struck strike/swore sworn swear/tore torn tear
bitten bite/blew blown blow/froze frozen freeze/sat sit/hung hang/dug dig/fed feed/fled flee
laid lay/shook shaken shake/shone shine/sank sunk sink/slid slide/stuck stick/swept sweep
children child/men man/women woman/people person/wives wife/feet foot/teeth tooth/mice mouse
knives knife/better best good/worse worst bad
"""
_LEMMAS = {
    form: group[-1]
    for line in _IRREGULAR.split("\n")
    for group in map(str.split, line.split("/"))
    for form in group[:-1]
}


def split_words(text: str) -> list[str]:
    """The words of a text, lower-cased and without accents; anything else only separates."""
    if text.isascii():
        return _PLAIN.findall(text.lower())
    folded = unicodedata.normalize("NFKD", text).casefold()
    return _ANY.findall(
        "".join(letter for letter in folded if not unicodedata.combining(letter))
    )


def make_term(word: str) -> str:
    """One word as it is indexed: its stem; in another alphabet, its code."""
    word = word[:LONGEST_WORD]
    if not word.isascii():
        return "u" + word.encode().hex()
    return stem_word(_LEMMAS.get(word, word))


to_term = lru_cache(maxsize=MAX_KEPT_WORDS)(make_term)
"""For texts without secrets: the words of late are kept."""


def to_terms(text: str) -> str:
    """A whole text as it is indexed, in the order of its words."""
    return " ".join(map(to_term, split_words(text)))


def gives_away(text: str, fact: str) -> bool:
    """Whether a text holds most words of a fact."""
    terms = set(to_terms(fact).split())
    shared = terms & set(to_terms(text).split())
    return bool(terms) and len(shared) >= MIN_SHARED_TERM_RATIO * len(terms)


def _written(*forms: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), written) for pattern, written in forms)


_CONTRACTIONS = _written(
    (r"\bwon'?t\b", "will not"),
    (r"\bcan'?t\b", "can not"),
    (r"\bshan'?t\b", "shall not"),
    (r"\bain't\b", "is not"),
    (r"n't\b", " not"),
    (r"\b(d(?:o|oes|id)|is|are|was|would|could|should|have|has)nt\b", r"\1 not"),
    (r"\bcann(?:ot|ae)\b", "can not"),
    (r"\blet's\b", "let us"),
    (r"'re\b", " are"),
    (r"'ve\b", " have"),
    (r"'ll\b", " will"),
    (r"'m\b", " am"),
    (r"'d\b", " would"),
    (r"\b(it|that|he|she|there|here|what|who|where|everything|which)'s\b", r"\1 is"),
    (r"(\w)'s(?= (?:on|at|in|off|no|not|now|a|an|the|my|our)\b)", r"\1 is"),
)
# "The client", or "client" first thing; "my client" is somebody else.
_SPEAKER = re.compile(
    r"\b(?:(?:the |(?<![^\W_] ))(?:caller|user|customer|client)(?P<own>'s)?"
    r"|(?P<ours>ours?|mine)|we|us|me|myself)\b"
)
SPEAKERS = vocabulary("caller user customer client our ours mine we us me myself")
_HAS_SIDES = (
    "ear|eye|side|hand|arm|leg|knee|foot|shoulder|hip|ankle|wrist|lung|breast|thumb|elbow|wing|door"
    "|tyre|tire|wheel|bank|lane"
)
_FILLER = re.compile(
    r"\b(?:um+|uh+|er+m?|ah+|hmm|eh|oh(?! \d)|well(?! done)|you know|i mean|i guess|i think"
    r"|i believe|basically|honestly|really|actually|just|so|anyway|please|okay|ok|yes|yeah|yep"
    rf"|right(?! (?:{_HAS_SIDES}))|listen|look|by the way|as i said|like i said|to be honest"
    r"|of course|definitely|absolutely|quite|very|currently|these days|nowadays|at the moment"
    r"|still(?! water)|also|too|already|simply|always|usually|normally|generally|typically"
    r"|mostly)\b"
)
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:. ](\d\d))? ?(a ?\.?m|p ?\.?m)\b\.?")
_HALF = re.compile(r"\b(half|quarter) (past|to) (\d{1,2})\b")
_IN_THE = re.compile(
    r"\b(\d{1,2})(?: o'?clock)? (?:in the (morning|afternoon|evening)|at night)\b"
)
_EMAIL_SPOKEN = re.compile(r"\b([\w.+-]+) at ([\w-]+) dot (\w+)\b")
_DIGITS_APART = re.compile(r"\b\d(?:[ -]\d)+\b")
_GROUPS = re.compile(r"(?<![\d:])\+?\d{2,}(?:[ -]\d{2,})+\b")
_PIECE = re.compile(r"[^\W_]+")
_FIGURE = re.compile(r"\d")
_ODD = re.compile(r"[^\w\s@+:'.-]|(?<!\w)['.-]|['.-](?!\w)")
_TOKEN = re.compile(r"[^\W_]+(?:[.@+:'-][^\W_]+)*")
_SCALES = {"thousand": 1_000, "grand": 1_000, "million": 1_000_000}
COUNTED = frozenset(
    (*SMALL_NUMBERS, *ROUND_NUMBERS, *_SCALES, *ORDINALS, "oh", "hundred")
)
"""A text without any of these has no number to be written otherwise."""
_ANY_UNIT = "|".join(UNITS)
_ANY_TEEN = "|".join(TEENS)
_ANY_TEN = "|".join(TENS)
_ANY_SCALE = "|".join(_SCALES)
_BELOW_HUNDRED = (
    rf"(?:(?:{_ANY_TEN})(?:[ -](?:{_ANY_UNIT})\b)?|(?:{'|'.join(SMALL_NUMBERS)})\b)"
)
_BELOW_THOUSAND = (
    rf"(?:{_BELOW_HUNDRED}|[1-9]\d{{0,8}}(?=[ -](?:hundred|{_ANY_SCALE})\b))"
    rf"(?:[ -]hundred\b(?:[ -](?:and )?{_BELOW_HUNDRED}(?![ -]hundred))?)?"
)
_NUMBER = re.compile(
    rf"\b{_BELOW_THOUSAND}"
    rf"(?:[ -](?:{_ANY_SCALE})\b(?:[ -](?:and )?{_BELOW_THOUSAND}(?![ -]hundred))?)*\b"
)
_YEAR = re.compile(
    rf"\b(?P<century>nineteen|twenty)[ -]"
    rf"(?P<year>(?:{_ANY_TEN})(?:[ -](?:{_ANY_UNIT}))?|{_ANY_TEEN})\b"
)
# "Third", "twenty-fourth", "the second of May": else a second one is another one.
_PLACE = re.compile(
    rf"\b(?:(?P<ten>twenty|thirty)[ -](?P<unit>{'|'.join(list(ORDINALS)[:9])})"
    rf"|(?P<alone>{'|'.join(list(ORDINALS)[2:])}|(?:first|second)(?= of \w)))\b"
)
_OH = re.compile(r"\boh\b(?=[ -]\d)|(?<=\d[ -])oh\b")


def plain(text: str) -> str:
    """Lower case, contractions written out, the caller as `i`, number words as figures, no
    filler.
    """
    words = fold(text)
    if "'" in words or "nt" in words or "cann" in words:
        for pattern, written in _CONTRACTIONS:
            words = pattern.sub(written, words)
    said = set(_PIECE.findall(words))
    if not SPEAKERS.isdisjoint(said):
        words = _SPEAKER.sub(
            lambda who: "my" if who["own"] or who["ours"] else "i", words
        )
    if not COUNTED.isdisjoint(said):
        words = write_figures(words)
    if " dot " in words:
        words = _EMAIL_SPOKEN.sub(r"\1@\2.\3", words)
    if _FIGURE.search(words):
        words = _hours(words)
        words = _DIGITS_APART.sub(lambda run: re.sub(r"[ -]", "", run.group()), words)
        words = _GROUPS.sub(lambda run: _joined(run.group()), words)
    words = _FILLER.sub(" ", words)
    return " ".join(_ODD.sub(" ", words).split())


def fold(text: str) -> str:
    return (
        unicodedata.normalize("NFKC", text)
        .casefold()
        .replace("’", "'")
        .replace("‘", "'")
    )


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _hours(words: str) -> str:
    words = _HALF.sub(lambda half: _half(half[1], half[2], int(half[3])), words)
    words = _CLOCK.sub(
        lambda clock: _clock(int(clock[1]), clock[2], "p" in clock[3]), words
    )
    return _IN_THE.sub(
        lambda hour: _clock(int(hour[1]), None, hour[2] != "morning"), words
    )


def _half(part: str, side: str, hour: int) -> str:
    if side == "to":
        return f"{hour - 1 or 12}:45"
    return f"{hour}:{'30' if part == 'half' else '15'}"


def _clock(hour: int, minutes: str | None, is_late: bool) -> str:
    hour = hour % 12 + 12 if is_late and hour <= 12 else hour
    return f"{hour}:{minutes or '00'}"


def _joined(run: str) -> str:
    """Groups of one long number belong together; two quantities side by side do not."""
    figures = re.sub(r"[ -]", "", run)
    return figures if len(figures) >= 6 else run


def write_figures(words: str) -> str:
    """Spoken numbers in figures: "twenty two" is 22, "nineteen seventy-one" 1971."""
    words = _PLACE.sub(lambda place: _ordinal(_count(place.group())), words)
    words = _YEAR.sub(
        lambda said: str(100 * _count(said["century"]) + _count(said["year"])), words
    )
    return _OH.sub("0", _NUMBER.sub(lambda said: str(_count(said.group())), words))


def _count(said: str) -> int:
    """ "Two hundred thousand five hundred and one": hundreds belong to the scale behind them."""
    total = group = 0
    for word in re.split("[ -]", said):
        if word in _SCALES:
            total, group = total + group * _SCALES[word], 0
        elif word == "hundred":
            group *= 100
        elif word != "and":
            known = SMALL_NUMBERS.get(word, ROUND_NUMBERS.get(word, ORDINALS.get(word)))
            group += int(word) if known is None else known
    return total + group


def _ordinal(number: int) -> str:
    is_teen = 10 < number % 100 < 20
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
