"""What one sentence claims, taken apart for comparison: of whom, which attribute, which values,
yes or no.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from aftercall.english.words import by_form, vocabulary
from aftercall.memory.phrases import Phrases
from aftercall.memory.slots import Slot, find_slots
from aftercall.memory.subject import Subject
from aftercall.memory.telling import take_apart
from aftercall.memory.wording import fold, plain, tokens

SAME_WORD = by_form(
    {
        "mother": "mum mom mam mama mummy",
        "father": "dad daddy papa",
        "phone": "ring call telephone rings calls phones calling ringing",
        "child": "kid kids children",
        "prefer": "prefers preferred preferring rather better best sooner",
        "like": "likes love loves enjoy enjoys adore adores fond fan liked loved",
        "doctor": "gp dr physician",
        "mobile": "cell cellphone",
        "flat": "apartment",
        "car": "vehicle automobile",
        "allergic": "allergy allergies allergen",
        "email": "e-mail emails mail",
        "live": "lives living reside resides",
        "work": "works working job",
        "vegetarian": "veggie",
        "text": "sms texts texting",
        "appointment": "appointments booking bookings",
        "use": "uses using",
        "home": "house",
        "take": "takes taking took",
        "eat": "eats eating ate",
        "drink": "drinks drinking drank",
        "have": "has had having got",
        "go": "goes going went gone",
        "smoke": "smokes smoking smoker",
    }
)
DISLIKE = Phrases(
    *(
        "hate",
        "hates",
        "dislike",
        "dislikes",
        "can not stand",
        "can not bear",
        "loathe",
        "loathes",
        "detest",
        "detests",
    ),
)
_NO = Phrases(
    *(
        "not",
        "never",
        "no longer",
        "no",
        "without",
        "stopped",
        "quit",
        "gave up",
        "given up",
        "neither",
        "nor",
        "avoid",
        "avoids",
    ),
    "used to",
)
GIVES_UP = Phrases("gave up", "given up")
_NO_DENIAL = Phrases(
    *("not only", "no problem", "no later", "no matter", "no idea", "not sure"),
    *("am used to", "is used to", "are used to", "get used to", "got used to"),
)
_CORRECTS = Phrases(
    *(
        "no longer",
        "not … any more",
        "not … anymore",
        "used to be",
        "used to have",
        "instead of",
        "switched",
    ),
    *(
        "has changed",
        "have changed",
        "changed to",
        "changed my",
        "changed it",
        "is now",
        "are now",
        "it is … now",
    ),
    *(
        "i meant",
        "correction",
        "is wrong",
        "was wrong",
        "got that wrong",
        "scratch that",
        "should be",
        "new number",
        "new address",
    ),
    *("new email", "moved", "from now on", "stopped", "gave up", "given up", "quit"),
    *(
        "pushed to",
        "pushed back",
        "put back to",
        "put off",
        "brought forward",
        "rescheduled",
        "postponed",
        "that wrong",
        "turns out",
    ),
)
_HELPERS = "am is are was were will do does did can could would should has have had"
# "is not working" puts nothing in its place
_DOES = "".join(rf"(?<!\b{verb} not)" for verb in _HELPERS.split())
_NOT = Phrases("not")
_RATHER = Phrases("instead of", "rather than", "no longer")
_DENIED = re.compile(
    rf"\b(?:{_NOT.alternatives}{_DOES}|{_RATHER.alternatives})(?: the| a| an| in| at| on| my| "
    r"by)* ([\w@.:+-]+(?: [\w@.:+-]+)?)\s*$"
)
_DENYING = _NOT.words | _RATHER.words
_DAYS = {
    day: day[:3]
    for day in [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ]
}
_DAYS |= {f"{day}s": short for day, short in tuple(_DAYS.items())}
_MONTHS = vocabulary(
    """
    january february march april june july august september october november december
    """
)
_PARTS = {
    part: part.rstrip("s")
    for part in [
        "morning",
        "mornings",
        "afternoon",
        "afternoons",
        "evening",
        "evenings",
        "night",
        "nights",
        "weekend",
        "weekends",
    ]
}
_OFTEN = vocabulary(
    """
    daily weekly monthly fortnightly yearly twice once
    """
)
_KIN = vocabulary(
    """
    wife husband partner son daughter mother father brother sister boss manager landlord aunt uncle cousin nephew niece
    grandmother grandfather gran nan grandad grandson granddaughter child baby friend girlfriend boyfriend colleague
    neighbour neighbor roommate flatmate dog cat horse puppy kitten he she doctor dentist vet tenant carer nanny
    assistant ex
    """
)
NOBODY = vocabulary("he she")
"""Who is meant stands in another sentence."""
_SIDES = vocabulary(
    "front back left top bottom upper lower upstairs downstairs north south east west inner outer"
)
_ARTICLES = vocabulary("the my a an his her their")
_EMPTY = vocabulary(
    """
    a an the i my is are am was were be been being it its that this these those there here to of in on at for with from
    by as and or but if then than do does did not no never will would can could should shall may might must have some
    any all more much many lot lots bit now new one get gets getting him her his their they them what which who when
    where how out about into over again only own other another because since until till thing things kind sort need
    needs want wants say says said tell told called named name got make makes you your every each back day week
    really tends tend keeps keep longer anymore instead changed change stopped quit gave given used moved switch
    switched pushed rescheduled postponed find
    """
)
_VERB = re.compile(
    r"\b(?:is|are|am|was|has|have|had|do|does|will|can|should|starts?|ends?|opens?|closes?"
    "|runs?|goes|go|comes?|"
    r"gets?|works?|takes?|costs?)\b"
)
_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ied",
    "ies",
    "ers",
    "ed",
    "es",
    "er",
    "ly",
    "s",
    "e",
    "y",
)
_NAME = re.compile(r"(?<=\w )[A-Z][a-z]+\b")
_PIECE = re.compile(r"[^\W_]+")
_WRITTEN_LARGE = re.compile(r"(?<=[\w.,'’] )(?!I\b)(?:[A-Z][\w'’-]*|[a-z]+[A-Z]\w*)")
_ADDS = Phrases(
    "again", "also", "as well", "another", "too", "second", "extra", "besides"
)
# Of these there are several, told apart by a number: it names the one that is spoken of, and is
# not what is said of it.
_NUMBERED = vocabulary(
    """
    room line lane till table bay gate platform desk unit dock pump door flat apartment invoice order ticket case claim machine camera
    printer van lorry truck bus stop station aisle block building ward bed court pitch locker zone channel port rack box pallet
    """
)
_NUMBER = re.compile(r"\+?\d[\d:.,/-]*(?:st|nd|rd|th)?")
# Short words that change what a sentence says. `words` leaves most of them out; word order
# keeps them.
_PREPOSITIONS = vocabulary(
    """
    in on at of to from before after over under than until till since by with without for into onto through between against
    above below behind near beside towards during about off
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
DENIAL = "not "
DECISIVE = vocabulary(
    "all some any none every each other another only day week may might must should if or out "
    "next last"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """`words` are the stems that carry meaning; values of each kind stand beside them, not
    among them.

    `kin` tells whose or which it is, `who` the one it opens with if that is not the caller,
    `adds` that it comes beside something.
    """

    text: str
    slots: tuple[Slot, ...]
    words: frozenset[str]
    kin: frozenset[str]
    who: Subject | None
    numbers: frozenset[str]
    days: frozenset[str]
    names: frozenset[str]
    is_denied: bool
    corrects: bool
    adds: bool
    denied: frozenset[str]
    everything: frozenset[str]
    order: tuple[tuple[str, str], ...]
    """Every word that counts, as it first stands in the sentence, with the preposition it hangs
    on.
    """
    identity: str

    @property
    def ordered(self) -> frozenset[str]:
        return frozenset(word for _, word in self.order)

    @property
    def matching(self) -> str | None:
        return self.slots[0].key if self.slots else None


class Word(NamedTuple):
    """What is told of a single word, wherever it stands."""

    stem: str
    canonical: str
    day: str | None
    number: str | None
    is_empty: bool


Lookup = Callable[[str], Word]


def look_up(word: str) -> Word:
    same = canonical(word)
    number = (
        _number(word)
        if (word[:1] == "+" or word[:1].isdecimal()) and _NUMBER.fullmatch(word)
        else None
    )
    return Word(stem(word), same, _day(word), number, word in _EMPTY or same in _EMPTY)


look_up_again = lru_cache(maxsize=32_768)(look_up)
"""Kept word by word, never a sentence; the words of secrets are looked up anew each time."""


def read_claim(text: str) -> Claim:
    return read_plain(text, plain(text), look_up_again)


def read_secret_claim(text: str) -> Claim:
    """Keeps nothing of it."""
    return read_plain(text, plain(text), look_up)


def read_plain(text: str, said: str, look: Lookup) -> Claim:
    """`said` is the text in its plain form."""
    there = set(_PIECE.findall(said))
    disliked = DISLIKE.occur(said, there)
    order = tuple(
        _read_order(DISLIKE.replace("not like", said) if disliked else said, look)
    )
    said = DISLIKE.replace("like", said) if disliked else said
    denied = None if _DENYING.isdisjoint(there) else _DENIED.search(said)
    main = said[: denied.start()] if denied and denied.start() > 8 else said
    heard = tokens(
        main if GIVES_UP.words.isdisjoint(there) else GIVES_UP.replace("stopped", main)
    )
    spoken = [look(word) for word in heard]
    which = _which(main, spoken)
    numbers = {
        word.number
        for at, word in enumerate(spoken)
        if word.number is not None and at not in which
    }
    days = {word.day for word in spoken if word.day}
    words = {
        word.stem
        for at, word in enumerate(spoken)
        if not word.is_empty and not word.day and (word.number is None or at in which)
    }
    is_denied = disliked ^ (
        not _NO.words.isdisjoint(there)
        and _NO.occur(_NO_DENIAL.replace("", main), there)
    )
    puts_right = denied is not None and main is not said
    told = take_apart(main)
    return Claim(
        text=said,
        slots=tuple(find_slots(told, lambda: _written_names(text))),
        words=frozenset(words),
        kin=_kin(spoken) | _sides(heard),
        who=told.head.subject if told.head else None,
        numbers=frozenset(numbers),
        days=frozenset(days),
        names=frozenset(
            stem(name) for name in map(str.lower, _NAME.findall(text)) if not _day(name)
        ),
        is_denied=is_denied,
        corrects=puts_right or _CORRECTS.occur(said, there),
        adds=_adds(text.lower()),
        denied=frozenset(map(_value, map(look, tokens(denied[1]))))
        if denied and puts_right
        else frozenset(),
        everything=frozenset(words | numbers | days),
        order=order,
        identity=str(sorted(group_order(order).items()))
        if words | numbers | days
        else f"text|{said}",
    )


def _read_order(said: str, look: Lookup) -> Iterator[tuple[str, str]]:
    """Who does what to whom: each word once, with its preposition, and each denial where it
    stands.
    """
    denials, seen, preposition, is_next = 0, set[str](), "", False
    for heard in tokens(_NO.replace("not", _NO_DENIAL.replace("", said))):
        if heard == "not":
            denials += 1
            yield "", f"{DENIAL}{denials}"
            continue
        if heard in _PREPOSITIONS:
            preposition, is_next = heard, True
            continue
        if heard in SUBJECTS or (heard in _DETERMINERS and not is_next):
            preposition = ""
        is_next = False
        pronoun, word = _PRONOUNS.get(heard), look(heard)
        if word.is_empty and not pronoun and heard not in DECISIVE:
            continue
        token = pronoun or _value(word)
        if token not in seen:
            seen.add(token)
            yield preposition, token


def _which(main: str, spoken: list[Word]) -> set[int]:
    """ "line 2 drops calls": which line, not how many."""
    if not any(word.number for word in spoken):
        return set()
    first_verb = _VERB.search(main)
    before = len(tokens(main[: first_verb.start()])) if first_verb else 2
    return {
        at
        for at, word in enumerate(spoken)
        if word.number and (at < before or spoken[at - 1].canonical in _NUMBERED)
    }


def _kin(spoken: list[Word]) -> frozenset[str]:
    """ "My sister, she …" is of the sister."""
    kin = frozenset(word.canonical for word in spoken if word.canonical in _KIN)
    return kin - NOBODY or kin


def _adds(text: str) -> bool:
    """Asked of the text as it was said: "also" is not in its plain form."""
    return (
        any(word in text for word in _ADDS.words)
        and _ADDS.pattern.search(text) is not None
    )


def _sides(heard: list[str]) -> frozenset[str]:
    """The front door is another than the back door."""
    return frozenset(
        word
        for article, word in pairwise(heard)
        if word in _SIDES and article in _ARTICLES
    )


def _written_names(text: str) -> frozenset[str] | None:
    """Words that are written as names, in their plain form; None where nothing is written large
    at all.
    """
    return (
        frozenset(map(fold, _WRITTEN_LARGE.findall(text)))
        if text != text.lower()
        else None
    )


def group_order(order: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The words of each preposition, in their order: a phrase may move as a whole, "on Mondays
    I swim".
    """
    found: dict[str, list[str]] = {}
    for preposition, word in order:
        found.setdefault(preposition, []).append(word)
    return found


def content_words(said: str, look: Lookup = look_up) -> frozenset[str]:
    """What a text in its plain form speaks of, values included."""
    return frozenset(
        _value(word) for word in map(look, tokens(said)) if not word.is_empty
    )


def _value(word: Word) -> str:
    return word.number if word.number is not None else word.day or word.stem


def canonical(word: str) -> str:
    bare = word.removesuffix("'s")
    return SAME_WORD.get(bare) or SAME_WORD.get(bare.removesuffix("s"), bare)


def stem(word: str) -> str:
    word = canonical(word)
    if word.endswith(_ENDINGS) and len(word) > 4:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 4:
                return _undouble(word[: -len(ending)])
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


def _undouble(word: str) -> str:
    return (
        word[:-1]
        if len(word) > 3 and word[-1] == word[-2] and word[-1] in "bdgmnprt"
        else word
    )


def _day(word: str) -> str | None:
    if word in _DAYS:
        return _DAYS[word]
    if word in _PARTS:
        return _PARTS[word]
    return word if word in _MONTHS or word in _OFTEN else None


def _number(word: str) -> str:
    word = re.sub(r"(?:st|nd|rd|th)$", "", word).rstrip(".,:-").lstrip("+")
    return word.removesuffix(":00")
