"""Text as terms: the one form in which passages are indexed and queries asked, on both databases.

A term is plain ASCII without punctuation, so neither database's own tokeniser has anything left
to decide.
"""

import re
import unicodedata
from functools import lru_cache

from aftercall.memory.stemming import stem

LONGEST_WORD = 40

_PLAIN = re.compile(r"[a-z0-9]+")
# Scripts written without spaces are indexed letter by letter: there a run of letters is a
# sentence, not a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ANY = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")

STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "above",
        "after",
        "again",
        "all",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "both",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "done",
        "down",
        "during",
        "each",
        "etc",
        "for",
        "from",
        "further",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "herself",
        "him",
        "himself",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "itself",
        "just",
        "me",
        "might",
        "more",
        "most",
        "must",
        "my",
        "myself",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "ours",
        "ourselves",
        "out",
        "over",
        "own",
        "same",
        "shall",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "themselves",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "us",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "yours",
        "yourself",
        "s",
        "t",
        "d",
        "ll",
        "m",
        "re",
        "ve",
        "don",
        "didn",
        "doesn",
        "isn",
        "wasn",
        "aren",
        "couldn",
        "wouldn",
    ]
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
