"""Whom a plain sentence speaks of, and the same sentence as that one would say it of themself.

"my sister ann moved to lisbon" is "i moved to lisbon", told of sister Ann, so that whatever can
be known of the caller can be known of anybody. "He" and "she" are nobody: who is meant stands
in another sentence.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aftercall.english.words import by_form, vocabulary
from aftercall.memory.subject import LINKS, PERSONS, Subject, is_person, name_subject

_FIRST_PERSON = by_form(
    {
        "am": "is are am",
        "was": "was were",
        "have": "has have",
        "do": "does do",
        "go": "goes go",
        "live": "lives live",
        "work": "works work",
        "stay": "stays stay",
        "reside": "resides reside",
        "drive": "drives drive",
        "prefer": "prefers prefer",
        "like": "likes like",
        "love": "loves love",
        "want": "wants want",
        "need": "needs need",
        "eat": "eats eat",
        "drink": "drinks drink",
        "take": "takes take",
        "use": "uses use",
        "pay": "pays pay",
        "choose": "chooses choose",
        "attend": "attends attend",
        "study": "studies study",
        "bank": "banks bank",
    }
)
_UNCHANGED = vocabulary(
    "moved relocated became got went started turned can would will had used did"
)
_VERBS = frozenset((*_FIRST_PERSON, *_UNCHANGED))
_BETWEEN = vocabulary("now recently only finally since then he she they it both")
_PRONOUNS = vocabulary(
    "he she they it him her them his hers their its someone somebody everyone everybody nobody"
)
_OTHERS = _PRONOUNS - {"it"}
_OPENINGS = vocabulary(
    "and but sorry no hello hi then now remember note that because hey thanks correction update"
)
# Neither a name nor part of what somebody is called.
_NO_NAME = frozenset(
    (
        *_PRONOUNS,
        *_BETWEEN,
        *_OPENINGS,
        *vocabulary(
            """
            i my the a an this these those there here what when where who why how which whose your you if as so or not never to by with
            for on at in of from off up down out over about after before until till during near every each all any some most one both
            today tomorrow yesterday tonight monday tuesday wednesday thursday friday saturday sunday says said say thinks think thought
            told tells tell asked asks knows know wants called named may might must shall should could do did be been being go get let
            please call ring phone reach text contact only just also too again still instead rather better best same other another
            """
        ),
    )
)
_TOWARDS = vocabulary("suit suits reach call ring phone get contact")
_WHICH = vocabulary("best other only same")
_REACHING = vocabulary("reach call ring phone text contact email")
_IS_ADDRESS = re.compile(r"\+?\d{6,}|\S+@")
_LONGEST = 4
_LONGEST_NAME = 3
PLACES = vocabulary(
    """
    office offices clinic surgery practice shop store school nursery college university studio warehouse company firm branch gym church
    headquarters hq factory salon restaurant cafe hotel bakery pharmacy bank garage workshop depot centre center hospital business
    kennels stables club agency showroom lab laboratory market museum library flat house home apartment cottage studio
    """
)
_SITS = vocabulary("in at near on")


class Telling(NamedTuple):
    start: int
    """The word at which it begins."""
    subject: Subject
    told: str
    is_object: bool = False
    """Whether something suits them, or reaches them: then it tells of nothing else."""


class Told(NamedTuple):
    """All ways to take a sentence, leftmost first.

    `of_other` tells whether it opens, at its word `first`, with somebody else than the
    caller.
    """

    text: str
    words: frozenset[str]
    tellings: tuple[Telling, ...]
    first: int
    of_other: bool

    @property
    def head(self) -> Telling | None:
        """Whom it opens with, if that is somebody else."""
        return next(
            (
                telling
                for telling in self.tellings
                if telling.start == self.first and not telling.is_object
            ),
            None,
        )


def take_apart(text: str) -> Told:
    words = _in_first_person(text.replace(" in law", "-in-law").split())
    first = next(
        (
            at
            for at, word in enumerate(words)
            if word not in _OPENINGS or at + 1 == len(words)
        ),
        0,
    )
    found: list[Telling] = []
    for at, word in enumerate(words):
        if word == "my" and at > first + 1 and words[at - 1] in _TOWARDS:
            found += _read_towards(words, first, at)
        if word in ("my", "the"):
            found += (
                _read_reached(words, at)
                if at and words[at - 1] in _REACHING
                else _read(words, at, at + 1)
            )
        elif (
            at == first
            and word.removesuffix("'s") not in _NO_NAME
            and not word[0].isdecimal()
        ):
            found += _read(words, at, at, is_name=True)
        elif at and words[at - 1] in _REACHING and word not in _NO_NAME:
            found += _read_reached(words, at)
    of_other = _opens_with_other(words[first:]) or any(
        telling.start == first and not telling.is_object for telling in found
    )
    found.sort(key=lambda telling: telling.start)
    return Told(" ".join(words), frozenset(words), tuple(found), first, of_other)


def _opens_with_other(words: Sequence[str]) -> bool:
    """ "he …", "my husband says …", but not "my husband and i …"."""
    if words[:1] != ["my"]:
        return bool(words) and words[0] in _OTHERS
    at = next(
        (
            at
            for at, word in enumerate(words[1:_LONGEST], 1)
            if is_person(word.removesuffix("'s"))
        ),
        None,
    )
    return at is not None and "i" not in words[at + 1 : at + 4]


def _in_first_person(words: list[str]) -> list[str]:
    """ "i lives in porto", as "the caller lives in Porto" becomes, in the form that patterns
    know.
    """
    for at, word in enumerate(words[1:], 1):
        if words[at - 1] == "i" or (
            at > 1 and words[at - 2] == "i" and words[at - 1] in _BETWEEN
        ):
            words[at] = _FIRST_PERSON.get(word, word)
    return words


def read_for(after: str) -> Subject | None:
    """Whom something is good for: " for my wife"; None where no one is named."""
    words = after.split()
    if words[0] != "for" or words[1] != "my":
        return None
    phrase = words[2 : 2 + _LONGEST]
    phrase = phrase[
        : next((at for at, word in enumerate(phrase) if word in _NO_NAME), len(phrase))
    ]
    subject = name_subject(phrase) if phrase else None
    return subject if subject and subject.is_person else None


def _read(
    words: Sequence[str],
    start: int,
    at: int,
    owner: Subject | None = None,
    *,
    is_name: bool = False,
) -> Iterator[Telling]:
    """The words from `at` on as somebody, and what is told of them."""
    phrase: list[str] = []
    while at < len(words) and len(phrase) <= _LONGEST:
        word = words[at]
        if word.endswith("'s"):
            subject = name_subject([*phrase, word[:-2]], owner, is_name=is_name)
            yield from _read_owned(words, start, at + 1, subject)
            return
        if phrase and (word in _VERBS or word in _BETWEEN):
            told = _predicate(words[at:])
            if told and not (is_name and len(phrase) > _LONGEST_NAME):
                subject = name_subject(phrase, owner, is_name=is_name)
                yield Telling(start, subject, _place(subject, told))
            return
        if is_name and phrase and word == "my":  # "Ann, my sister, lives in Porto"
            yield from _read_apposed(words, start, at + 1, phrase)
            return
        if word in _NO_NAME and not _tells_which(words, at, phrase):
            return
        phrase.append(word)
        at += 1


def _tells_which(words: Sequence[str], at: int, phrase: list[str]) -> bool:
    """ "my best friend", "my aunt in Cork"."""
    if words[at] in _WHICH:
        return words[at + 1 : at + 2] != [] and words[at + 1] in PERSONS
    return bool(phrase) and words[at] in LINKS and phrase[-1] in PERSONS


def _read_owned(
    words: Sequence[str], start: int, at: int, subject: Subject
) -> Iterator[Telling]:
    """After "ann's": something of hers, or "Ann is", or "Ann has", or somebody of hers."""
    rest = " ".join(words[at:])
    if rest:
        yield Telling(start, subject, f"my {rest}")
        yield Telling(start, subject, _place(subject, f"i am {rest}"))
        yield Telling(start, subject, f"i have {rest}")
        yield from _read(words, start, at, subject)


def _read_apposed(
    words: Sequence[str], start: int, at: int, name: Sequence[str]
) -> Iterator[Telling]:
    for telling in _read(words, start, at):
        if telling.subject.role in PERSONS and not telling.subject.name:
            yield telling._replace(subject=telling.subject._replace(name=tuple(name)))


def _read_reached(words: Sequence[str], at: int) -> Iterator[Telling]:
    """ "call my sister ann on 0155 …" is "call i on …", told of her."""
    begin = at + (words[at] in ("my", "the"))
    end = next(
        (place for place in range(begin, len(words)) if words[place] in _NO_NAME),
        len(words),
    )
    phrase = words[begin:end]
    if (
        0 < len(phrase) <= _LONGEST
        and words[end : end + 1] in (["on"], ["at"])
        and _IS_ADDRESS.match(" ".join(words[end + 1 :]))
    ):
        subject = name_subject(phrase, is_name=begin == at)
        yield Telling(at - 1, subject, " ".join((words[at - 1], "i", *words[end:])))


def _read_towards(words: Sequence[str], first: int, at: int) -> Iterator[Telling]:
    """ "the best time to reach my mother is …" is "the best time to reach i is …", told of her."""
    end = next(
        (
            place
            for place in range(at + 1, len(words))
            if words[place] in _NO_NAME or words[place] in _VERBS
        ),
        len(words),
    )
    subject = (
        name_subject(words[at + 1 : end]) if at + 1 < end <= at + 1 + _LONGEST else None
    )
    if subject and subject.is_person:
        yield Telling(
            first,
            subject,
            " ".join((*words[first:at], "i", *words[end:])),
            is_object=True,
        )


def _predicate(words: Sequence[str]) -> str | None:
    """What comes after the subject, as one would say it of oneself."""
    at = next(
        (place for place, word in enumerate(words) if word not in _BETWEEN), len(words)
    )
    if at == len(words) or words[at] not in _VERBS:
        return None
    between = [word for word in words[:at] if word not in _PRONOUNS]
    return " ".join(
        ("i", *between, _FIRST_PERSON.get(words[at], words[at]), *words[at + 1 :])
    )


def _place(subject: Subject, told: str) -> str:
    """Where an office is, it lives."""
    words = told.split()
    if subject.role.rpartition(" ")[2] in PLACES and words[1:2] == ["am"]:
        now = words[2:3] == ["now"]
        if words[2 + now : 3 + now] and words[2 + now] in _SITS:
            return " ".join(("i live", *words[2 + now :]))
    return told
