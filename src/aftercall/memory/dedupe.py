"""Whether two sentences say the same, one takes the place of the other, or they are in dispute.

Deterministic; no model is asked. A fact is retired only by the same subject and attribute, by the
same sentence with another value or a denial, or by words that name what no longer holds. What only
looks like it is disputed: both are kept until somebody who knows settles it.
"""

import re
from collections.abc import Iterable
from itertools import combinations
from typing import Literal

from aftercall.memory.attributes import Statement
from aftercall.memory.claims import (
    DECISIVE,
    DENIAL,
    NOBODY,
    SUBJECTS,
    WEAK_PREPOSITIONS,
    Claim,
    group_order,
    look_up,
)
from aftercall.memory.subject import CALLER, Kinship, Subject, relate
from aftercall.model.reading import Category

Verdict = Literal["same", "update", "disputed", "different"]
SubjectMatch = Literal["same", "unclear", "other"]

_REPEATED: tuple[Verdict, ...] = ("same",)
_BEST_FIRST: tuple[Verdict, ...] = ("same", "update", "disputed")
ALIKE = 0.75  # share of all words that two wordings of one thing have in common
ALIKE_BUT_FOR_A_VALUE = 0.8
RELATED = 0.2
DISPUTABLE = 0.5  # share of the shorter sentence's words that the other one repeats
MAX_OPENING_WORDS = 5  # of a subject; more are not one
MIN_SHARED_WORDS = 2  # in a dispute about a value or a denial
_IT = re.compile(r"(?:(?:no|sorry|and|but) )*(?:it|that) is\b")
_HABITS = frozenset(
    look_up(word).stem for word in ("drink", "eat", "take", "have", "use", "play")
)
_WISHES = ("best time", "contact")  # told by one word of many
_WISHING = look_up("prefer").stem
_BOUNDS = frozenset({"at", "until", "till", "before", "after", "from", "since", "by"})
# each stands for itself: a second one is another one
_EVENTS: frozenset[Category] = frozenset({"action_item", "decision", "emotional"})


def compare(new: Claim, known: Claim, category: Category = "preference") -> Verdict:
    """What `new` is to `known`."""
    if by_attribute := _compare_statements(new, known):
        return by_attribute
    if speak_of_two(new, known, is_named=True):
        return "different"
    if _is_same(new, known):
        return "same"
    if not new.corrects and new.kin and new.kin <= NOBODY:
        return "different"
    if _is_turned_round(new, known) or _puts_right(new, known):
        return "update"
    if (category in _EVENTS or new.adds) and not new.corrects:
        return "different"
    if _has_another_value(new, known):
        return "update"
    return "disputed" if _is_disputable(new, known) else "different"


def find_best(
    new: Claim, known: Iterable[tuple[str, Claim]], category: Category
) -> tuple[Verdict, str | None]:
    """The known fact that `new` repeats, else replaces, else disputes; the likest of several."""
    known = tuple(known)
    found: dict[Verdict, list[tuple[float, str]]] = {}
    meant = set[str]()
    for fact_id, claim in known:
        verdict = compare(new, claim, category)
        if verdict == "update" and not _is_told_apart(new, claim, known):
            verdict = "disputed"
        if verdict == "update" and claim.matching:
            meant.add(claim.matching)
        score = _likeness(new.everything, claim.everything)
        found.setdefault(verdict, []).append((score, fact_id))
    # "It's Lisbon now, not Porto", where two are known to live in Porto.
    is_unclear = not new.statement and _IT.match(new.text) and len(meant) > 1
    for best in _REPEATED if is_unclear else _BEST_FIRST:
        if best in found:
            return best, max(found[best])[1]
    return "different", None


def match_subjects(
    new: Claim, known: Claim, category: Category = "preference"
) -> SubjectMatch:
    """Whether both speak of the same one and the same thing, as far as the words tell.

    Each may name its subject in words of its own only if the other one does not.
    """
    mine = _mentioned(new)
    theirs = _mentioned(known)
    only_mine = _opening(new) - theirs
    only_theirs = _opening(known) - mine
    if only_mine and only_theirs:
        return "other"
    if speak_of_two(new, known) or _stands_beside(new, known):
        return "other"
    if category in _EVENTS and not new.hints:
        return "other"
    is_unclear = (
        bool(only_mine | only_theirs)
        or _relate_subjects(new, known) != "same"
        or bool(new.kin) != bool(known.kin)
        or mine.isdisjoint(theirs)
    )
    is_sure = new.hints and not is_unclear and _is_of_one_kind(new, known)
    return "same" if is_sure else "unclear"


def _is_of_one_kind(new: Claim, known: Claim) -> bool:
    """ "My dad is Peter", "my dad is retired": a description stands beside a name."""
    kinds = known.statement.kinds if known.statement else frozenset()
    return not kinds or bool(new.statement and kinds & new.statement.kinds)


def speak_of_two(new: Claim, known: Claim, *, is_named: bool = False) -> bool:
    """Whether two persons are read: my son and my daughter, the front and the back door.

    Whom the caller names beside "I" is not the subject. With `is_named`, they are one even
    if only one of them names a person.
    """
    mine = _subject(new)
    theirs = _subject(known)
    is_other = CALLER not in (mine, theirs) and _relate_subjects(new, known) == "other"
    if is_other and bool(mine and mine.role) == bool(theirs and theirs.role):
        return True
    is_caller = mine == theirs == CALLER and not (new.head or known.head)
    if is_caller or not new.kin.isdisjoint(known.kin):
        return False
    if new.kin and known.kin:
        return True
    return bool(new.kin | known.kin) and not (is_named or _share_name(new, known))


def _share_name(new: Claim, known: Claim) -> bool:
    is_named = not new.names.isdisjoint(_mentioned(known))
    return is_named or not known.names.isdisjoint(_mentioned(new))


def _stands_beside(new: Claim, known: Claim) -> bool:
    """Another attribute, another case or day, or something that comes in addition."""
    if not new.hints and (new.adds or _differ(new.days, known.days)):
        return True
    if _compare_statements(new, known) == "different":
        return True
    return _have_other_attributes(new, known)


def _have_other_attributes(new: Claim, known: Claim) -> bool:
    """Whether both say something, but of different things: where she works, where she lives."""
    mine = new.statement
    theirs = known.statement
    if mine is None or theirs is None:
        return False
    is_beside = mine.kinds and theirs.kinds and mine.attribute != theirs.attribute
    is_described = mine.attribute == theirs.attribute and not mine.kinds & theirs.kinds
    return _differ(mine.case, theirs.case) or (
        bool(is_beside or is_described) and not new.hints
    )


def _relate_subjects(new: Claim, known: Claim) -> Kinship | None:
    mine = _subject(new)
    theirs = _subject(known)
    return relate(mine, theirs) if mine and theirs else None


def _subject(claim: Claim) -> Subject | None:
    return claim.statement.subject if claim.statement else claim.who


def _opening(claim: Claim) -> frozenset[str]:
    """The words that name the subject; none for the caller, or where it is a whole clause."""
    subject = _subject(claim)
    own = set(claim.head)
    if subject and subject != CALLER:
        own.update(subject.name, (subject.role,) if subject.role else ())
    return frozenset(
        look_up(word).stem for word in own if len(own) <= MAX_OPENING_WORDS
    )


def _mentioned(claim: Claim) -> frozenset[str]:
    told = claim.words | claim.names | claim.kin | claim.denied | claim.values
    return told | _opening(claim)


def contradicts(new: Claim, known: Claim) -> bool:
    """Whether they cannot be the same, whatever a model says: another value or order, one word
    for another, yes against no.
    """
    values = (
        (new.numbers, known.numbers),
        (new.days, known.days),
        (new.names, known.names),
    )
    if any(_differ(mine, theirs) for mine, theirs in values):
        return True
    if new.is_denied != known.is_denied or not is_same_order(new, known):
        return True
    is_as_long = len(new.order) == len(known.order)
    has_other_word = is_as_long and len(new.ordered - known.ordered) == 1
    return has_other_word or _compare_statements(new, known) in ("update", "different")


def _is_told_apart(
    new: Claim, known: Claim, others: Iterable[tuple[str, Claim]]
) -> bool:
    """Where two sisters are known by name, "my sister" is neither of them for sure."""
    if not new.statement or not known.statement:
        return True
    mine = new.statement.subject
    theirs = known.statement.subject
    is_named = mine.name and theirs.name and mine.role == theirs.role
    if (
        mine == CALLER
        or is_named
        or new.statement.attribute != known.statement.attribute
    ):
        return True
    near = {mine, theirs}
    for _, claim in others:
        if claim.statement and claim.statement.attribute == new.statement.attribute:
            subject = claim.statement.subject
            if subject.role == mine.role or (mine.name and subject.name == mine.name):
                near.add(subject)
    return all(relate(one, other) != "other" for one, other in combinations(near, 2))


def _compare_statements(new: Claim, known: Claim) -> Verdict | None:
    """By subject, attribute and value; None where these do not decide."""
    mine = new.statement
    theirs = known.statement
    if mine is None or theirs is None or mine.attribute != theirs.attribute:
        return None
    kinship = relate(mine.subject, theirs.subject)
    if kinship == "other":
        return "different"
    if not mine.kinds & theirs.kinds or _differ(mine.case, theirs.case):
        return None
    if mine.attribute in _WISHES and _wish_for_two(new, known):
        return None
    if _has_same_value(mine, theirs):
        return "same"
    if new.adds:
        return None
    is_sure = kinship == "same" and mine.case == theirs.case
    return "update" if is_sure or new.corrects else "disputed"


def _wish_for_two(new: Claim, known: Claim) -> bool:
    """ "Juniper tea in the evening" and "cardamom tea in the evening": the hour is not the wish."""
    wished = new.values | known.values | {_WISHING}
    mine = new.words - wished
    theirs = known.words - wished
    return bool(mine - theirs) and bool(theirs - mine)


def _has_same_value(mine: Statement, theirs: Statement) -> bool:
    if "".join(mine.value) == "".join(theirs.value):
        return True
    return _is_part(mine, theirs) or _is_part(theirs, mine)


def _is_part(short: Statement, long: Statement) -> bool:
    """ "Porto" and "Porto near the river": one says more, in the same order, no more figures."""
    rest = "".join(word for word in long.value if word not in short.value)
    kept = [word for word in long.value if word in short.value]
    return kept == list(short.value) and not re.search(r"\d", rest)


def _is_same(new: Claim, known: Claim) -> bool:
    """Order, denials and values decide.

    One may say more than the other; a word that stands for another one makes it two facts.
    """
    if new.identity == known.identity:
        return True
    values_agree = new.numbers == known.numbers and new.days == known.days
    if not values_agree or _differ(new.names, known.names):
        return False
    if new.is_denied != known.is_denied or not is_same_order(new, known):
        return False
    one_says_more = new.words <= known.words or known.words <= new.words
    return one_says_more and _likeness(new.words, known.words) >= ALIKE


def is_same_order(new: Claim, known: Claim) -> bool:
    """Whether the words they share stand in the same order, on the same prepositions, with as
    many denials.

    A phrase may move as a whole, by its preposition or around the subject: "every day I swim",
    "I swim every day".
    """
    shared = new.ordered & known.ordered
    other = new.ordered ^ known.ordered
    if any(word in DECISIVE or word.startswith(DENIAL) for word in other):
        return False
    if new.denied != known.denied:
        return False
    mine = [pair for pair in new.order if pair[1] in shared]
    theirs = [pair for pair in known.order if pair[1] in shared]
    if group_order(mine) == group_order(theirs):
        return True
    starts = [0, *(at for at, (_, word) in enumerate(mine) if word in SUBJECTS)]
    starts += [
        len(mine) - at for at, (_, word) in enumerate(theirs) if word in SUBJECTS
    ]
    return any(_stand_alike(mine[at:] + mine[:at], theirs) for at in starts)


def _stand_alike(mine: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> bool:
    """The same words in the same order; a weak preposition may be another one, or none."""
    return all(
        word == other and (here == there or {here, there} <= WEAK_PREPOSITIONS)
        for (here, word), (there, other) in zip(mine, theirs, strict=True)
    )


def _is_turned_round(new: Claim, known: Claim) -> bool:
    """ "I like coffee" and "I don't like coffee any more"."""
    mine = new.words
    theirs = known.words
    if "up" in new.text.split():  # "I gave up coffee" and "I drink coffee"
        mine, theirs = mine - _HABITS, theirs - _HABITS
    if new.is_denied == known.is_denied or _differ(new.names, known.names):
        return False
    if not mine or _likeness(mine, theirs) < ALIKE_BUT_FOR_A_VALUE:
        return False
    no, yes = (new, known) if new.is_denied else (known, new)
    return no.numbers <= yes.numbers and no.days <= yes.days


def _puts_right(new: Claim, known: Claim) -> bool:
    """ "It's Lisbon now, not Porto": the denied words are what the other fact says."""
    said = known.everything | known.names
    if not new.denied or not new.denied <= said or new.denied & new.words:
        return False
    if _IT.match(new.text) and known.statement:
        is_whole = len(new.denied) == len(known.statement.value)
        return is_whole or not all(map(str.isdecimal, new.denied))
    return _likeness(new.words, known.words - new.denied) >= RELATED


def _has_another_value(new: Claim, known: Claim) -> bool:
    """The same sentence but for a number, or but for a day."""
    if new.is_denied != known.is_denied or _differ(new.names, known.names):
        return False
    if _likeness(new.words, known.words) < ALIKE_BUT_FOR_A_VALUE:
        return False
    if bool(new.statement) != bool(known.statement) and not new.corrects:
        return False  # "I have three sons", "my son is seven"
    if _BOUNDS.intersection(new.text.split()) != _BOUNDS.intersection(
        known.text.split()
    ):
        return False  # what is open until four may open at ten
    has_other_number = _differ(new.numbers, known.numbers) and new.days == known.days
    has_other_day = _differ(new.days, known.days) and new.numbers == known.numbers
    return has_other_number or has_other_day


def _is_disputable(new: Claim, known: Claim) -> bool:
    """They may speak of the same one, and not both of it can hold.

    It says outright that something changed; or it is the same but for a denial or a value.
    """
    mine = new.words | new.names
    theirs = known.words | known.names
    if not _may_be_one(new, known) or mine.isdisjoint(theirs):
        return False
    if new.hints and not known.values.isdisjoint(new.everything | new.names):
        return True
    if new.says_outright:
        return len(mine & theirs) >= DISPUTABLE * min(len(mine), len(theirs))
    if not (mine <= theirs or theirs <= mine):
        return False
    if min(len(mine), len(theirs)) < MIN_SHARED_WORDS:
        return False
    if new.is_denied != known.is_denied:
        return True
    return _differ(new.numbers, known.numbers) != _differ(new.days, known.days)


def _may_be_one(new: Claim, known: Claim) -> bool:
    """Nobody and nothing else is spoken of."""
    if speak_of_two(new, known, is_named=new.says_outright):
        return False
    if new.statement and known.statement:
        mine = new.statement
        theirs = known.statement
        # A description can hold beside a name or a number.
        is_beside = bool(mine.kinds) != bool(theirs.kinds)
        if mine.attribute != theirs.attribute or is_beside:
            return False
    return not _differ(new.head, known.head)


# What follows from an attribute: it may no longer hold when the attribute changes.
_FOLLOWS = {
    "residence": "commute drive walk bus train landlord rent neighbour gym",
    "employer": "commute boss manager colleague office shift salary desk",
    "car": "garage tyre insurance parking",
}
_FOLLOWING = {
    attribute: frozenset(look_up(word).stem for word in words.split())
    for attribute, words in (_FOLLOWS | {"address": _FOLLOWS["residence"]}).items()
}


def list_hanging_words(retired: Claim) -> list[frozenset[str]]:
    """Sets of words; a fact that holds all words of one may hang on the retired fact."""
    if retired.statement is None or not retired.statement.kinds & {
        "name",
        "place",
        "number",
    }:
        return []
    following = _FOLLOWING.get(retired.statement.attribute, frozenset())
    return [retired.values, *(frozenset({word}) for word in following)]


def hangs_on(claim: Claim, retired: Claim) -> bool:
    """Of the same person and of nobody else, about the present, and not the attribute itself."""
    told = retired.statement
    own = claim.statement
    if told is None or claim.is_past or claim.adds or not claim.kin <= retired.kin:
        return False
    if own and own.attribute in (told.attribute, "birthday"):
        return False
    subject = own.subject if own else claim.who
    if subject is None or subject == CALLER:
        return True
    return relate(subject, told.subject) != "other"


def _differ(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    return bool(mine) and bool(theirs) and mine != theirs


def _likeness(mine: frozenset[str], theirs: frozenset[str]) -> float:
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0
