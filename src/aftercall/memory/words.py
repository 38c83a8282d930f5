"""Text as terms: the one form in which passages are indexed and queries asked, on both databases.

A term is plain ASCII without punctuation, so neither database's own tokeniser has anything left
to decide. The stemmer is ours for the same reason: SQLite's and Postgres' stemmers differ.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

from aftercall.english.words import vocabulary

LONGEST_WORD = 40

_PLAIN = re.compile(r"[a-z0-9]+")
# Scripts written without spaces are indexed letter by letter: there a run of letters is a
# sentence, not a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
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
went gone go/made make/took taken take/bought buy/saw seen see/got gotten get/gave given give/found find/told tell/said say
thought think/knew known know/came come/became become/began begun begin/felt feel/left leave/met meet/ran run/kept keep
held hold/brought bring/taught teach/caught catch/wrote written write/spoke spoken speak/drove driven drive/rode ridden ride
flew flown fly/ate eaten eat/drank drunk drink/won win/lost lose/sold sell/sent send/spent spend/built build
broke broken break/chose chosen choose/grew grown grow/drew drawn draw/wore worn wear/sang sung sing/swam swum swim
slept sleep/fell fallen fall/heard hear/paid pay/understood understand/forgot forgotten forget/woke woken wake
hid hidden hide/threw thrown throw/stood stand/led lead/fought fight/lent lend/meant mean/dealt deal/shot shoot
stole stolen steal/struck strike/swore sworn swear/tore torn tear/bitten bite/blew blown blow/froze frozen freeze
sat sit/hung hang/dug dig/fed feed/fled flee/laid lay/shook shaken shake/shone shine/sank sunk sink/slid slide/stuck stick
swept sweep/children child/men man/women woman/people person/wives wife/feet foot/teeth tooth/mice mouse
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


@lru_cache(maxsize=65_536)
def to_term(word: str) -> str:
    """One word as it is indexed: its stem; in another alphabet, its code."""
    word = word[:LONGEST_WORD]
    return (
        stem(_LEMMAS.get(word, word)) if word.isascii() else "u" + word.encode().hex()
    )


def to_terms(text: str) -> str:
    """A whole text as it is indexed, in the order of its words."""
    return " ".join(map(to_term, split_words(text)))


_VOWELS = frozenset("aeiou")


def _read_endings(text: str) -> list[tuple[str, str]]:
    """ "icate>ic": an ending, and the one that takes its place."""
    return [(old, new) for old, _, new in (one.partition(">") for one in text.split())]


_SECOND = _read_endings(
    """
    ational>ate ization>ize iveness>ive fulness>ful ousness>ous tional>tion biliti>ble entli>ent
    ousli>ous ation>ate alism>al aliti>al iviti>ive enci>ence anci>ance izer>ize alli>al ator>ate
    logi>log bli>ble eli>e
    """
)
_THIRD = _read_endings(
    """
    icate>ic ative> alize>al iciti>ic ical>ic ness> ful>
    """
)
_FOURTH = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism"),
    *("ate", "iti", "ous", "ive", "ize", "al", "er", "ic", "ou"),
)
_DOUBLED = re.compile(r"([^aeiou])\1$")


def stem(word: str) -> str:
    """The stem of a lower-case English word, after M. F. Porter's algorithm of 1980; words of one or two letters, and other alphabets,
    stay as they are.
    """
    if len(word) < 3 or not word.isascii():
        return word
    word = _without_tense(_without_plural(word))
    if word[-1] == "y" and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _exchange(_exchange(word, _SECOND), _THIRD)
    return _without_last_e(_without_suffix(word))


def _shape(word: str) -> str:
    """A letter `v` or `c` for each letter: a vowel or a consonant; y is a vowel after a
    consonant.
    """
    shape = ""
    for letter in word:
        is_vowel = letter in _VOWELS or (letter == "y" and shape[-1:] == "c")
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a run of vowels is followed by consonants."""
    runs = "".join(kind for kind, _ in groupby(_shape(word)))
    return runs.count("vc")


def _ends_short(word: str) -> bool:
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    ending = next((ending for ending in ("ed", "ing") if word.endswith(ending)), "")
    rest = word.removesuffix(ending)
    if not ending or "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _DOUBLED.search(rest) and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _exchange(word: str, endings: list[tuple[str, str]]) -> str:
    for ending, other in endings:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return rest + other if _measure(rest) else word
    return word


def _without_suffix(word: str) -> str:
    for suffix in _FOURTH:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            is_cut = _measure(rest) > 1 and (
                suffix != "ion" or rest.endswith(("s", "t"))
            )
            return rest if is_cut else word
    return word


def _without_last_e(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
