"""What one sentence claims, taken apart for comparison: of whom, which words in which order, which
values, yes or no, and whether it says that something changed or was wrong.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from aftercall.english.words import by_form, vocabulary
from aftercall.memory.attributes import AttributeReader, Statement
from aftercall.memory.subject import SPELLED, Subject, find_role
from aftercall.memory.words import (
    MAX_KEPT_WORDS,
    fold,
    make_term,
    plain,
    split_words,
    to_term,
    tokens,
)

SAME_WORD = SPELLED | by_form(
    {
        "phone": "ring call telephone rings calls phones calling ringing",
        "prefer": "rather better best sooner",
        "like": "love loves enjoy enjoys adore adores fond fan loved",
        "doctor": "gp dr physician",
        "mobile": "cell cellphone",
        "flat": "apartment",
        "car": "vehicle automobile",
        "email": "e-mail emails mail",
        "live": "reside resides living",
        "text": "sms texts texting",
        "home": "house",
        "have": "has had having got",
    }
)
_DISLIKE = re.compile(
    r"\b(?:hates?|dislikes?|loathes?|detests?|can not (?:stand|bear))\b"
)
_GIVES_UP = re.compile(r"\b(?:gave up|given up)\b")
_NO = re.compile(
    r"\b(?:not|never|no longer|no|without|stopped|quit|gave up|given up|neither|nor|avoids?"
    r"|used to)\b"
)
_NO_DENIAL = re.compile(
    r"\b(?:not only|no (?:problem|later|matter|idea)|not sure|(?:am|is|are|get|got) used to)\b"
)
_OUTRIGHT = re.compile(
    r"\b(?:no longer|not .{0,30}any ?more|any longer|instead(?: of)?|switched|swapped|traded"
    r"|changed|now|from (?:now|here) on|these days|used to (?:be|have)|stopped|gave up|given up"
    r"|quit|pushed (?:to|back)|put (?:back|off)|brought forward|rescheduled|postponed|moved)\b"
)
# These tell of a change only beside the value that is known.
_CHANGED = re.compile(
    r"\b(?:new|cancelled|closed|left|sold|retired|finished|sacked|migrated|replaced|graduated"
    r"|settled|gone|dead|over|packed)\b"
)
_PAST = re.compile(r"\b(?:old|former|previous|used to|was|were|last)\b")
_WRONG = re.compile(
    r"\b(?:i meant|correction|(?:is|was) wrong|(?:that|it) wrong|scratch that|should be|mixed up"
    r"|misheard|misspoke|turns out|never was|by mistake|typo)\b"
)
_HELPERS = "am is are was were will do does did can could would should has have had"
# "is not working" puts nothing in its place
_DOES = "".join(rf"(?<!\b{verb} not)" for verb in _HELPERS.split())
_DENIED = re.compile(
    rf"\b(?:not{_DOES}|instead of|rather than|no longer)(?: the| a| an| in| at| on| my| by)* "
    r"([\w@.:+-]+(?: [\w@.:+-]+)?)\s*$"
)
_ADDS = re.compile(
    r"\b(?:again (?:at|on)|also|as well|another|too|second|extra|besides|either)\b"
)
_WEEK = vocabulary("monday tuesday wednesday thursday friday saturday sunday")
_PARTS = vocabulary("morning afternoon evening night weekend weekday")
_TIMES = vocabulary(
    """
    january february march april june july august september october november december daily weekly
    monthly fortnightly yearly twice once
    """
)
_DAYS = {day: day[:3] for day in _WEEK} | {word: word for word in _PARTS | _TIMES}
_DAYS |= {f"{word}s": _DAYS[word] for word in _WEEK | _PARTS}
DAY_WORDS = frozenset(_DAYS)
NOBODY = vocabulary("he she")
"""Who is meant stands in another sentence."""
_SIDES = vocabulary(
    "front back left right top bottom upper lower upstairs downstairs north south east west "
    "inner outer"
)
_ARTICLES = vocabulary("the my a an his her their")
EMPTY_WORDS = vocabulary(
    """
    a an the i my is are am was were be been being it its that this these those there here to of in
    on at for with from by as and or but if then than do does did not no never will would can could
    should shall may might must have some any all more much many lot lots bit now new one get gets
    getting him her his their they them what which who when where how out about into over again only
    own other another because since until till thing things kind sort need needs want wants say says
    said tell told called named name got make makes you your every each back day week really tends
    tend keeps keep longer anymore instead changed change stopped quit gave given used moved switch
    switched pushed rescheduled postponed find
    """
)
_VERB = re.compile(
    r"\b(?:is|are|am|was|has|have|had|do|does|will|can|should|starts?|ends?|opens?|closes?|runs?"
    r"|goes|go|comes?|gets?|works?|takes?|costs?)\b"
)
# Of these there are several, told apart by a number: it names the one that is spoken of.
_NUMBERED = vocabulary(
    """
    room line lane till table bay gate platform desk unit dock pump door flat apartment invoice
    order ticket case claim machine camera printer van lorry truck bus stop station aisle block
    building ward bed court pitch locker zone channel port rack box pallet
    """
)
_NUMBER = re.compile(r"\+?\d[\d:.,/-]*(?:st|nd|rd|th)?")
_WRITTEN_LARGE = re.compile(r"(?<=[\w.,'’] )(?!I\b)(?:[A-Z][\w'’-]*|[a-z]+[A-Z]\w*)")
# Short words that change what a sentence says: `words` leaves them out, `order` keeps them.
_PREPOSITIONS = vocabulary(
    """
    in on at of to from before after over under than until till since by with without for into onto
    through between against above below behind near beside towards during about off
    """
)
WEAK_PREPOSITIONS = frozenset(("", *vocabulary("in on at of to for about with during")))
"""These may come and go in another wording of the same: "on Mondays", "Mondays"."""
_PRONOUNS = by_form(
    {"i": "i", "you": "you", "he": "he him", "she": "she her", "they": "they them"}
)
SUBJECTS = vocabulary("i he she they")
_DETERMINERS = vocabulary(
    "the a an my his their this that these those every each all some any next last"
)
MIN_MAIN_CHARS = 8  # of what is said before a denial at the end
DENIAL = "not "
DECISIVE = vocabulary(
    "all some any none every each other another only day week may might must should if or out "
    "next last left right"
)


class Claim(NamedTuple):
    """`words` are the stems that carry meaning; values of each kind stand beside them.

    `kin` are the roles that are named, `who` is the one it opens with, `denied` what it says does
    not hold any more ("…, not Porto"), `adds` that it comes beside something.
    """

    text: str
    statement: Statement | None
    values_told: frozenset[str]
    words: frozenset[str]
    kin: frozenset[str]
    who: Subject | None
    head: frozenset[str]
    numbers: frozenset[str]
    days: frozenset[str]
    names: frozenset[str]
    is_denied: bool
    says_outright: bool
    says_changed: bool
    says_wrong: bool
    adds: bool
    denied: frozenset[str]
    order: tuple[tuple[str, str], ...]
    """Every word that counts, as it first stands in the sentence, with its preposition."""
    identity: str

    @property
    def everything(self) -> frozenset[str]:
        return self.words | self.numbers | self.days

    @property
    def values(self) -> frozenset[str]:
        """What is said of the one it speaks of, as stems: the part that can be out of date."""
        told = self.values_told or self.names | self.numbers
        return told - frozenset(self.who.name if self.who else ())

    @property
    def ordered(self) -> frozenset[str]:
        return frozenset(word for _, word in self.order)

    @property
    def corrects(self) -> bool:
        return self.says_outright or self.says_wrong or bool(self.denied)

    @property
    def hints(self) -> bool:
        return self.says_changed or self.corrects

    @property
    def is_correction(self) -> bool:
        """What it replaces was never true, not only until now."""
        is_sorry = bool(self.denied) and "sorry" in self.text.split()
        return (self.says_wrong or is_sorry) and not self.says_outright

    @property
    def is_past(self) -> bool:
        return _PAST.search(self.text) is not None

    @property
    def matching(self) -> str | None:
        return self.statement.key if self.statement else None


class ClaimWord(NamedTuple):
    """What is told of a single word, wherever it stands."""

    stem: str
    day: str | None
    number: str | None
    is_empty: bool

    @property
    def value(self) -> str:
        return self.number if self.number is not None else self.day or self.stem


Lookup = Callable[[str], ClaimWord]


def look_up(word: str, to_term: Callable[[str], str] = make_term) -> ClaimWord:
    same = canonical(word)
    number = _shorten_number(word) if _NUMBER.fullmatch(word) else None
    is_empty = word in EMPTY_WORDS or same in EMPTY_WORDS
    term = same
    if not is_empty and number is None:
        term = " ".join(map(to_term, split_words(same))) or same
    return ClaimWord(term, _DAYS.get(word), number, is_empty)


@lru_cache(maxsize=MAX_KEPT_WORDS)
def look_up_again(word: str) -> ClaimWord:
    """Kept word by word, never a sentence; the words of secrets are looked up anew each time."""
    return look_up(word, to_term)


def read_claim(text: str) -> Claim:
    return read_plain(text, plain(text), look_up_again)


def read_secret_claim(text: str) -> Claim:
    """Keeps nothing of it."""
    return read_plain(text, plain(text), look_up)


def read_plain(text: str, said: str, look: Lookup) -> Claim:
    """`said` is the text in its plain form."""
    is_disliked = _DISLIKE.search(said) is not None
    order = tuple(_read_order(_DISLIKE.sub("not like", said), look))
    said = _DISLIKE.sub("like", said)
    main, denied = _split_denied(said)
    heard = tokens(_GIVES_UP.sub("stopped", main))
    words, numbers, days = _sort_words(main, heard, look)
    is_denied = is_disliked ^ (_NO.search(_NO_DENIAL.sub("", main)) is not None)
    large = _find_names(text)
    reading = AttributeReader(main, large, lambda word: look(word).day)
    phrase = reading.find_phrase()
    statement = None if is_denied else reading.read()
    named = [look(name) for name in large or ()]
    return Claim(
        text=said,
        statement=statement,
        values_told=_find_values(statement.value if statement else (), look),
        words=words,
        kin=_find_kin(heard) | _find_sides(heard),
        who=phrase.subject if phrase else None,
        head=frozenset(phrase.head if phrase else ()),
        numbers=numbers,
        days=days,
        names=frozenset(name.stem for name in named if not name.day),
        is_denied=is_denied,
        says_outright=_OUTRIGHT.search(said) is not None,
        says_changed=_CHANGED.search(said) is not None,
        says_wrong=_WRONG.search(said) is not None,
        adds=_ADDS.search(text.lower()) is not None,
        denied=_find_values(tokens(denied), look),
        order=order,
        identity=str(sorted(group_order(order).items()))
        if words | numbers | days
        else f"text|{said}",
    )


def _split_denied(said: str) -> tuple[str, str]:
    """ "it is lisbon now", "porto", from "it is lisbon now not porto"."""
    tail = _DENIED.search(said)
    if tail is None or tail.start() <= MIN_MAIN_CHARS:
        return said, ""
    return said[: tail.start()], tail[1]


def _find_values(words: Iterable[str], look: Lookup) -> frozenset[str]:
    return frozenset(look(word).value for word in words)


def _sort_words(
    main: str, heard: list[str], look: Lookup
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The words that carry meaning, the numbers and the days."""
    words = set[str]()
    numbers = set[str]()
    days = set[str]()
    spoken = [look(word) for word in heard]
    which = _find_numbered(main, heard, spoken)
    for at, word in enumerate(spoken):
        if word.day:
            days.add(word.day)
        elif word.number and at not in which:
            numbers.add(word.number)
        elif not word.is_empty:
            words.add(word.stem)
    return frozenset(words), frozenset(numbers), frozenset(days)


def _read_order(said: str, look: Lookup) -> Iterator[tuple[str, str]]:
    """Who does what to whom: each word once, with its preposition, and each denial in its place."""
    denials = 0
    seen = set[str]()
    preposition = ""
    is_next = False
    for heard in tokens(_NO.sub("not", _NO_DENIAL.sub("", said))):
        if heard == "not":
            denials += 1
            yield "", f"{DENIAL}{denials}"
            continue
        if heard in _PREPOSITIONS:
            preposition = heard
            is_next = True
            continue
        if heard in SUBJECTS or (heard in _DETERMINERS and not is_next):
            preposition = ""
        is_next = False
        pronoun = _PRONOUNS.get(heard)
        word = look(heard)
        if word.is_empty and not pronoun and heard not in DECISIVE:
            continue
        token = pronoun or (heard if heard in DECISIVE else word.value)
        if token not in seen:
            seen.add(token)
            yield preposition, token


def group_order(order: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The words of each preposition, in their order: a phrase may move, "on Mondays I swim"."""
    found: dict[str, list[str]] = {}
    for preposition, word in order:
        found.setdefault(preposition, []).append(word)
    return found


def _find_numbered(main: str, heard: list[str], spoken: list[ClaimWord]) -> set[int]:
    """ "line 2 drops calls": which line, not how many."""
    if not any(word.number for word in spoken):
        return set()
    first_verb = _VERB.search(main)
    before = len(tokens(main[: first_verb.start()])) if first_verb else 2
    return {
        at
        for at, word in enumerate(spoken)
        if word.number and (at < before or canonical(heard[at - 1]) in _NUMBERED)
    }


def _find_kin(heard: list[str]) -> frozenset[str]:
    """ "My sister, she …" is of the sister."""
    roles = (find_role(word.removesuffix("'s")) for word in heard)
    found = frozenset(role for role in roles if role)
    return found or NOBODY.intersection(heard)


def _find_sides(heard: list[str]) -> frozenset[str]:
    """The front door is another than the back door."""
    return frozenset(
        word
        for article, word in pairwise(heard)
        if word in _SIDES and article in _ARTICLES
    )


def _find_names(text: str) -> frozenset[str] | None:
    """Words that are written as names, in plain form; None where nothing is written large."""
    if text == text.lower():
        return None
    return frozenset(
        fold(name).removesuffix("'s") for name in _WRITTEN_LARGE.findall(text)
    )


def content_words(said: str, look: Lookup = look_up) -> frozenset[str]:
    """What a text in its plain form speaks of, values included."""
    return frozenset(
        word.value for word in map(look, tokens(said)) if not word.is_empty
    )


def canonical(word: str) -> str:
    bare = word.removesuffix("'s")
    return SAME_WORD.get(bare) or SAME_WORD.get(bare.removesuffix("s"), bare)


def _shorten_number(word: str) -> str:
    word = re.sub(r"(?:st|nd|rd|th)$", "", word).rstrip(".,:-").lstrip("+")
    return word.removesuffix(":00")
