"""Whether two sentences say the same, or one takes the place of the other.

Deterministic; no model is asked.

A fact may be retired only by the same subject and attribute, or by an explicit correction: in
doubt both stay.
"""

import re
from collections.abc import Iterable
from itertools import combinations
from typing import Literal

from aftercall.memory.claims import (
    DECISIVE,
    DENIAL,
    GIVES_UP,
    NOBODY,
    SUBJECTS,
    WEAK_PREPOSITIONS,
    Claim,
    content_words,
    group_order,
    stem,
)
from aftercall.memory.subject import CALLER, Subject, relate
from aftercall.memory.wording import tokens
from aftercall.model.reading import Category

Verdict = Literal["same", "update", "different"]

ALIKE = 0.75  # share of all words that two wordings of one thing have in common
ALIKE_BUT_FOR_A_VALUE = 0.8
RELATED = 0.2
_IT = re.compile(r"(?:(?:no|sorry|and|but) )*(?:it|that) is\b")
_HABITS = frozenset({"drink", "eat", "take", "have", "use", "play"})
_WHERE = frozenset({"up", "down", "over", "run", "sit", "stand", "situat", "locat"})
_BOUNDS = frozenset({"at", "until", "till", "before", "after", "from", "since", "by"})
# each stands for itself: a second one is another one
_EVENTS: frozenset[Category] = frozenset({"action_item", "decision", "emotional"})


def compare(new: Claim, known: Claim, category: Category = "preference") -> Verdict:
    """What `new` is to `known`."""
    if by_slot := _compare_slots(new, known):
        return by_slot
    if _differ(new.kin, known.kin) or _are_two(new.who, known.who):
        return "different"
    if _is_same(new, known):
        return "same"
    if not new.corrects and new.kin and new.kin <= NOBODY:
        return "different"
    if _is_turned_round(new, known):
        return "update"
    if _puts_right(new, known):
        return "update"
    if (category in _EVENTS or new.adds) and not new.corrects:
        return "different"
    return "update" if _has_another_value(new, known) else "different"


def best(
    new: Claim, known: Iterable[tuple[str, Claim]], category: Category
) -> tuple[Verdict, str | None]:
    """The known fact that `new` repeats, else the one it takes the place of; the likest if
    there are several.
    """
    known = tuple(known)
    found: dict[Verdict, tuple[float, str]] = {}
    for fact_id, claim in known:
        verdict = compare(new, claim, category)
        if verdict == "update" and not _is_told_apart(
            new, claim, (other for _, other in known)
        ):
            continue
        score = _likeness(new.everything, claim.everything)
        if verdict != "different" and (
            verdict not in found or score > found[verdict][0]
        ):
            found[verdict] = (score, fact_id)
    for verdict in ("same", "update"):
        if verdict in found and not (
            verdict == "update" and _may_mean_several(new, known, category)
        ):
            return verdict, found[verdict][1]
    return "different", None


def _may_mean_several(
    new: Claim, known: Iterable[tuple[str, Claim]], category: Category
) -> bool:
    """ "It's Lisbon now, not Porto", where two are known to live in Porto."""
    if new.slots or not _IT.match(new.text):
        return False
    meant = {
        claim.slots[0].key
        for _, claim in known
        if claim.slots and compare(new, claim, category) == "update"
    }
    return len(meant) > 1


def is_related(new: Claim, known: Claim) -> bool:
    """Whether a model's word that one replaces the other can be believed: both may speak of the
    same one.
    """
    if new.slots and known.slots:
        mine, theirs = new.slots[0].subject, known.slots[0].subject
        return not (
            mine.is_person and theirs.is_person and relate(mine, theirs) == "other"
        )
    tells_of_caller = (
        new.text.startswith("i ") and known.who is not None and known.who.is_person
    )
    return (
        not _differ(new.kin, known.kin)
        and not _are_two(new.who, known.who)
        and not tells_of_caller
    )


def contradicts(new: Claim, known: Claim) -> bool:
    """Whether they cannot be the same, whatever a model says: another value or order, one word
    for another, yes against no.
    """
    values = (
        (new.numbers, known.numbers),
        (new.days, known.days),
        (new.names, known.names),
    )
    if (
        any(_differ(mine, theirs) for mine, theirs in values)
        or new.is_denied != known.is_denied
        or not is_same_order(new, known)
    ):
        return True
    has_other_word = (
        len(new.order) == len(known.order) and len(new.ordered - known.ordered) == 1
    )
    return has_other_word or _compare_slots(new, known) in ("update", "different")


def _are_two(mine: Subject | None, theirs: Subject | None) -> bool:
    """My son Tom and my son Jim, however they are written."""
    if mine is None or theirs is None or not mine.role or mine.role != theirs.role:
        return False
    return bool(mine.name and theirs.name) and relate(mine, theirs) == "other"


def _is_told_apart(new: Claim, known: Claim, others: Iterable[Claim]) -> bool:
    """Where two sisters are known by name, "my sister" is neither of them for sure."""
    if (
        not new.slots
        or not known.slots
        or new.slots[0].attribute != known.slots[0].attribute
    ):
        return True
    mine, theirs = new.slots[0].subject, known.slots[0].subject
    if mine == CALLER or (mine.name and theirs.name and mine.role == theirs.role):
        return True
    slots = (claim.slots[0] for claim in others if claim.slots)
    near = {
        slot.subject
        for slot in slots
        if slot.attribute == new.slots[0].attribute and _may_rival(slot.subject, mine)
    }
    near |= {mine, theirs}
    return all(relate(one, other) != "other" for one, other in combinations(near, 2))


def _may_rival(one: Subject, other: Subject) -> bool:
    return one.role == other.role or (bool(one.name) and one.name == other.name)


def _compare_slots(new: Claim, known: Claim) -> Verdict | None:
    if (
        not new.slots
        or not known.slots
        or new.slots[0].attribute != known.slots[0].attribute
    ):
        return None
    kinship = relate(new.slots[0].subject, known.slots[0].subject)
    if kinship == "other":
        return "different"
    mine, theirs = new.slots[0].value, known.slots[0].value
    if mine == theirs or _joined(mine) == _joined(theirs):
        return "same"
    short, long = sorted((_values(mine), _values(theirs)), key=len)
    if short and short <= long and not _has_more_figures(long - short):
        return (
            "same"
            if _in_order(mine, short) == _in_order(theirs, short)
            else "different"
        )
    # "I live in Porto" does not give way to "I live near the station": a name and a description
    # can both hold.
    described = [slot.is_named is False for slot in (new.slots[0], known.slots[0])]
    has_left = new.slots[0].attribute == "employer" and _says_it_changed(new, known)
    if new.adds or (any(described) != all(described) and not has_left):
        return None
    return (
        "update" if kinship == "same" or _says_it_changed(new, known) else "different"
    )


def _says_it_changed(new: Claim, known: Claim) -> bool:
    """Outright, and nothing else than what is known."""
    return (
        new.corrects or "now" in new.text.split()
    ) and new.denied <= known.everything | known.names


def _values(told: str) -> frozenset[str]:
    """ "the 4th of June" is "4 June", and "evenings" are "evening"."""
    return content_words(told) or frozenset(told.split())


def _in_order(value: str, shared: frozenset[str]) -> tuple[list[str], list[str]]:
    """The shared words and the shared figures, each among themselves: "June 4" is "4 June"."""
    words = [word for word in map(stem, tokens(value)) if word in shared]
    return [word for word in words if word.isalpha()], [
        word for word in words if not word.isalpha()
    ]


def _joined(value: str) -> str:
    return "".join(letter for letter in value if letter.isalnum())


def _has_more_figures(rest: frozenset[str]) -> bool:
    return any(character.isdecimal() for word in rest for character in word)


def _is_same(new: Claim, known: Claim) -> bool:
    """Order, denials and values decide.

    One may say more than the other; a word that stands for another one makes it two facts.
    """
    if new.identity == known.identity:
        return True
    values_agree = (
        new.numbers == known.numbers
        and new.days == known.days
        and not _differ(new.names, known.names)
    )
    if (
        not values_agree
        or new.is_denied != known.is_denied
        or not is_same_order(new, known)
    ):
        return False
    # an attribute against none tells them apart
    alike = ALIKE if bool(new.slots) == bool(known.slots) else ALIKE_BUT_FOR_A_VALUE
    one_says_more = new.words <= known.words or known.words <= new.words
    return (
        one_says_more
        and len(new.words) > 1
        and _likeness(new.words, known.words) >= alike
    )


def is_same_order(new: Claim, known: Claim) -> bool:
    """Whether the words they share stand in the same order, on the same prepositions, with as
    many denials.

    A phrase may move as a whole, by its preposition or around the subject: "every day I swim",
    "I swim every day".
    """
    shared, other = new.ordered & known.ordered, new.ordered ^ known.ordered
    if (
        any(word in DECISIVE or word.startswith(DENIAL) for word in other)
        or new.denied != known.denied
    ):
        return False
    mine, theirs = (
        [pair for pair in claim.order if pair[1] in shared] for claim in (new, known)
    )
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
    mine, theirs = new.words, known.words
    if GIVES_UP.pattern.search(new.text):  # "I gave up coffee" and "I drink coffee"
        mine, theirs = mine - _HABITS, theirs - _HABITS
    if (
        new.is_denied == known.is_denied
        or not mine
        or _likeness(mine, theirs) < ALIKE_BUT_FOR_A_VALUE
    ):
        return False
    no, yes = (new, known) if new.is_denied else (known, new)
    return (
        no.numbers <= yes.numbers
        and no.days <= yes.days
        and not _differ(new.names, known.names)
    )


def _puts_right(new: Claim, known: Claim) -> bool:
    """ "It's Lisbon now, not Porto": the denied words are what the other fact says of its
    attribute.
    """
    if (
        not new.denied
        or not new.denied <= known.everything | known.names
        or new.denied & new.words
    ):
        return False
    value = (
        {stem(word) for word in tokens(known.slots[0].value)} if known.slots else set()
    )
    if _IT.match(new.text) and (
        new.denied == value
        or (new.denied <= value and not all(map(str.isdecimal, new.denied)))
    ):
        return True
    return _likeness(new.words, known.words - new.denied) >= RELATED


def _has_another_value(new: Claim, known: Claim) -> bool:
    """The same sentence but for a number, or but for a day."""
    if (
        new.is_denied != known.is_denied
        or not new.words
        or _differ(new.names, known.names)
    ):
        return False
    if _likeness(
        new.words, known.words
    ) < ALIKE_BUT_FOR_A_VALUE and not _tells_only_where(new.words ^ known.words):
        return False
    if bool(new.slots) != bool(known.slots) and not new.corrects:
        # "I have three sons", "my son is seven"
        return False
    return _bounds(new) == _bounds(known) and _differ(
        new.numbers, known.numbers
    ) != _differ(new.days, known.days)


def _tells_only_where(rest: frozenset[str]) -> bool:
    """ "My office is on the third floor", "you'll find my office up on the sixth floor"."""
    return rest <= _WHERE


def _bounds(claim: Claim) -> frozenset[str]:
    """What is open until four may open at ten, and who has four sons may have one who gets up
    at six.
    """
    return _BOUNDS.intersection(claim.text.split())


def _differ(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    return bool(mine) and bool(theirs) and mine != theirs


def _likeness(mine: frozenset[str], theirs: frozenset[str]) -> float:
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0
