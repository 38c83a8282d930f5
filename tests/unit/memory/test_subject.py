"""Who is who: two sentences mean the same one only where nothing speaks against it."""

from itertools import product

import pytest

from aftercall.memory.claims import read_claim
from aftercall.memory.dedupe import find_best
from aftercall.memory.subject import CALLER, Subject, name_subject, relate


def subject(phrase: str) -> Subject:
    return name_subject(phrase.split())


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ("sister ann", "sister ann", "same"),
        ("sister ann", "sister ann smith", "same"),
        ("mum", "mother rosa", "same"),
        ("wife", "wife ana", "same"),
        ("sister", "sister ann", "maybe"),
        ("elder sister ann", "sister ann", "same"),
        ("elder sister", "sister", "other"),
        ("elder sister", "younger sister", "other"),
        ("old boss", "boss", "other"),
        ("sister ann", "sister eva", "other"),
        ("sister ann", "colleague ann", "other"),
        ("wife ana", "wife eva", "other"),
        ("mother", "mother-in-law", "other"),
        ("aunt in cork", "aunt in derry", "other"),
        ("leeds office", "york office", "other"),
    ],
)
def test_two_ways_to_call_somebody(mine: str, theirs: str, expected: str) -> None:
    assert (
        relate(subject(mine), subject(theirs))
        == relate(subject(theirs), subject(mine))
        == expected
    )


def test_a_bare_name_may_be_anybody_of_that_name_and_nobody_else() -> None:
    ann = name_subject(["ann"], is_name=True)
    assert relate(ann, subject("sister ann")) == "maybe"
    assert (
        relate(ann, subject("sister eva"))
        == relate(ann, subject("sister"))
        == relate(ann, CALLER)
        == "other"
    )


def test_somebody_of_somebody_is_not_that_one() -> None:
    ann = subject("sister ann")
    husband = name_subject(["husband"], ann)
    assert relate(husband, ann) == relate(husband, subject("husband")) == "other"
    assert relate(husband, name_subject(["husband"], subject("sister"))) == "maybe"
    assert str(husband) == "caller's sister ann's husband"


SISTERS = (
    "My sister Ann lives in Porto",
    "My sister Eva lives in Braga",
    "My sister lives in Faro",
    "I live in Leeds",
)


@pytest.mark.parametrize(
    ("known", "new", "retired"),
    [
        (SISTERS, "My sister Ann moved to Lisbon", "My sister Ann lives in Porto"),
        (SISTERS, "I moved to Lisbon", "I live in Leeds"),
        (SISTERS, "My sister Ida moved to Lisbon", None),
        (SISTERS[:1], "My sister moved to Lisbon", "My sister Ann lives in Porto"),
        (SISTERS[:1], "Ann moved to Lisbon", "My sister Ann lives in Porto"),
        ((SISTERS[0], "My colleague Ann lives in Braga"), "Ann moved to Lisbon", None),
        (SISTERS[1:3], "My sister Ann moved to Lisbon", None),
    ],
)
def test_who_is_one_of_several_is_told_by_name(
    known: tuple[str, ...], new: str, retired: str | None
) -> None:
    claims = [(text, read_claim(text)) for text in known]
    verdict, named = find_best(read_claim(new), claims, "person")
    if retired:
        assert (verdict, named) == ("update", retired)
    else:
        assert verdict in ("different", "disputed")


@pytest.mark.parametrize(
    ("known", "new"),
    [
        (SISTERS, "My sister moved to Lisbon"),
        (SISTERS[:1], "My sister lives in Lisbon"),
        (SISTERS[2:3], "My sister Ann lives in Lisbon"),
    ],
)
def test_who_may_be_meant_and_may_not_is_disputed(
    known: tuple[str, ...], new: str
) -> None:
    claims = [(text, read_claim(text)) for text in known]
    assert find_best(read_claim(new), claims, "person")[0] == "disputed"


PEOPLE = (
    "I",
    "My sister Ann",
    "My sister Eva",
    "My colleague Ann",
    "My brother",
    "My sister Ann's husband",
    "The clinic",
)
SAID = {
    "residence": ("moved to {}", "{live} in {} now"),
    "employer": ("{work} for {}", "{work} at {} now"),
}


@pytest.mark.parametrize("lowered", [False, True])
def test_nobodys_attribute_is_ever_retired_by_somebody_elses(lowered: bool) -> None:
    compared = 0
    for known, new in product(PEOPLE, PEOPLE):
        for first, second in product(*(SAID["residence"],) * 2):
            before, after = _say(known, first, "Porto"), _say(new, second, "Lisbon")
            texts = [text.lower() if lowered else text for text in (before, after)]
            verdict, _ = find_best(
                read_claim(texts[1]), [("known", read_claim(texts[0]))], "person"
            )
            assert (verdict == "update") == (known == new), texts
            compared += 1
    assert compared == len(PEOPLE) ** 2 * 4


def _say(who: str, what: str, value: str) -> str:
    live, work = ("live", "work") if who == "I" else ("lives", "works")
    return f"{who} {what.format(value, live=live, work=work)}"
