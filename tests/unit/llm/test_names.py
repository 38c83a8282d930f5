import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Profile
from unit.llm.calls import call_of


def _profile(*caller: str) -> Profile:
    return (
        RulesReader()
        .read(call_of("\n".join(f"A: Hello?\nC: {text}" for text in caller)))
        .profile
    )


def test_call_me_tomorrow_is_no_name() -> None:
    assert (
        _profile("Can you call me tomorrow?", "Call me Friday, please.").call_name
        is None
    )


def test_a_nickname_stands_beside_the_full_name() -> None:
    profile = _profile("It's Meg, Margarethe Solberg, but everyone calls me Meg.")
    assert (profile.name, profile.call_name) == ("Margarethe Solberg", "Meg")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Name's Grant Tully.", "Grant Tully"),
        ("hello this is Łucja Wójcik", "Łucja Wójcik"),
        ("My name is Siobhán O'Dwyer.", "Siobhán O'Dwyer"),
        ("It's Jean-Luc Moreau.", "Jean-Luc Moreau"),
        ("Hi, Tess McAllister calling about the van.", "Tess McAllister"),
        ("yes hello my name is mary fielding", "Mary Fielding"),
        ("It's Rhys. Rhys Howell. H O W E L L.", "Rhys Howell"),
    ],
)
def test_a_caller_who_says_a_name_has_it(said: str, name: str) -> None:
    assert _profile(said).name == name


@pytest.mark.parametrize(
    "said",
    [
        "I'm Italian.",
        "It's Monday already.",
        "My wife's name is Rosa.",
        "I'm Sorry to bother you.",
        "Tell him it's Ivan's car.",
        "I'm fine, thanks.",
    ],
)
def test_other_capitals_make_no_name(said: str) -> None:
    assert _profile(said).name is None


def test_the_form_of_address_that_is_refused_is_not_the_one_wanted() -> None:
    assert _profile("Don't call me Mrs. Finch, call me Peg.").call_name == "Peg"


@pytest.mark.parametrize(
    ("said", "pronouns"),
    [
        ("My pronouns are they them.", "they/them"),
        ("I use she/her.", "she/her"),
        ("He's with her.", None),
    ],
)
def test_pronouns_only_when_stated(said: str, pronouns: str | None) -> None:
    assert _profile(said).pronouns == pronouns


@pytest.mark.parametrize(
    ("said", "zone"),
    [
        ("I'm on Mountain time.", "America/Denver"),
        ("Go by Lisbon time please.", "Europe/Lisbon"),
        ("My time zone is Central.", "America/Chicago"),
        ("My brother is on Eastern time.", None),
        ("If I move I'm on Pacific time.", None),
        ("I'm in Ohio.", None),
    ],
)
def test_a_zone_only_when_the_caller_claims_it(said: str, zone: str | None) -> None:
    assert _profile(said).timezone == zone
