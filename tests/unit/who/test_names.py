"""Who gave a name, and whether two names are one person's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.english.introductions import (
    GivenName,
    Hearing,
    Speaker,
    find_call_name,
    find_given_name,
    resolve_name,
)
from aftercall.english.names import short_forms
from aftercall.model.people import (
    is_person,
    join_party,
    normalise_caller,
    normalise_party,
    split_party,
)
from aftercall.who.register import (
    find_person,
    is_same_person,
    list_introductions,
    make_person_id,
    resolve_names,
)
from fakes import make_call

GIVEN = [
    "Anna",
    "Tom",
    "William",
    "Bob",
    "José",
    "Siobhan",
    "Mehmet",
    "Yuki",
    "Ngozi",
    "Zsófia",
]
given_names = st.sampled_from(GIVEN)
surnames = st.sampled_from(["", " Harker", " Keller", " de Vries", " O'Brien"])
FORMS = {full: sorted(shorts) for full, shorts in short_forms().items() if shorts}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("This is Anna, not Tom.", "Anna"),
        ("No, this is Anna.", "Anna"),
        ("It's Anna speaking.", "Anna"),
        ("My name is Anna Keller and I need a taxi.", "Anna Keller"),
        ("Hey Max, this is Anna.", "Anna"),
        ("This is Dr. Anna Keller from the clinic.", "Anna Keller"),
        ("Oh no, my name isn't Tom, it's Anna.", "Anna"),
        ("This is Anna now, Tom handed me the phone.", "Anna"),
        ("Anna here.", "Anna"),
    ],
)
def test_a_clear_introduction_counts_wherever_it_stands(said: str, name: str) -> None:
    found = find_given_name(said, Hearing())
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "said",
    [
        "This is great.",
        "this is urgent",
        "It's Monday.",
        "I'm German.",
        "Tell him this is Anna.",
        "This is Anna's number.",
        "My sister's name is Anna.",
        "This is my wife Anna.",
        "This is for Anna.",
        "My name is not Tom.",
        "Is this Anna?",
        "Write to Anna: this is Tom.",
        "I saw Anna speaking at the fair.",
    ],
)
def test_what_is_no_introduction_opens_nothing(said: str) -> None:
    assert find_given_name(said, Hearing(is_opening=True)) is None


@pytest.mark.parametrize("said", ["It's Anna.", "Hi, I'm Anna.", "it's anna speaking"])
def test_a_short_introduction_counts_only_at_the_beginning_or_when_asked_for(
    said: str,
) -> None:
    assert find_given_name(said, Hearing(is_opening=True))
    assert find_given_name(said, Hearing(is_asked=True))
    if "speaking" not in said:
        assert find_given_name(said, Hearing()) is None


def test_an_answer_to_who_is_calling_is_an_introduction() -> None:
    call = make_call(
        [
            ("agent", "Hello!"),
            ("caller", "Hi."),
            ("caller", "Taxi."),
            ("agent", "What's your name?"),
            ("caller", "Anna."),
        ]
    )
    assert [found.name for found in list_introductions(call.turns)] == ["Anna"]


def test_who_says_i_am_gives_their_own_name_after_somebody_elses() -> None:
    said = "It's Ruth Keller, 14 Mill Road. I'm Tom. Tom Harker."
    assert find_given_name(said, Hearing(is_asked=True)) == GivenName("Tom Harker")
    said = "Anna Keller. I'm across the road."
    assert find_given_name(said, Hearing(is_asked=True)) == GivenName("Anna Keller")


@pytest.mark.parametrize(
    ("heard", "name"),
    [
        (
            ["Tom Harker.", "I'll leave it with your name on it.", "Lovely."],
            "Tom Harker",
        ),
        (["Zsofia Vrba. Z S O F I A, V R B A.", "Thanks."], "Zsofia Vrba"),
        (["Ruth Vrba's mum, Kat Vrba, yes.", "Hello Ms Vrba. Go on."], "Kat Vrba"),
    ],
)
def test_a_name_is_neither_praise_nor_letters_run_together_nor_a_childs(
    heard: list[str], name: str
) -> None:
    speakers: list[Speaker] = ["caller", "agent", "caller"]
    asked: tuple[Speaker, str] = ("agent", "And who is calling?")
    assert resolve_name([asked, *zip(speakers, heard, strict=False)]) == name


def test_whom_to_call_back_is_no_name_to_be_called_by() -> None:
    assert (
        find_call_name(["I'd like someone to call me, Ms. Keller if possible."]) is None
    )
    assert find_call_name(["Anna Keller, but call me Ann."]) == "Ann"


def test_a_correction_takes_the_place_of_the_name_before_it() -> None:
    call = make_call(
        [
            ("caller", "This is Hanna."),
            ("agent", "Hello Hanna!"),
            ("caller", "No, this is Anna."),
        ]
    )
    assert resolve_names(list_introductions(call.turns)) == ["Anna"]
    two = make_call(
        [
            ("caller", "This is Tom."),
            ("agent", "Hello!"),
            ("caller", "This is Anna now."),
        ]
    )
    assert resolve_names(list_introductions(two.turns)) == ["Tom", "Anna"]


@given(
    st.sampled_from(sorted(FORMS)).flatmap(
        lambda full: st.tuples(st.just(full), st.sampled_from(FORMS[full]))
    ),
    surnames,
)
def test_a_short_form_is_the_same_person_both_ways(
    forms: tuple[str, str], surname: str
) -> None:
    full, short = forms
    assert is_same_person(short.capitalize(), [full.capitalize() + surname])
    assert is_same_person(full.capitalize() + surname, [short.capitalize()])


@pytest.mark.parametrize(
    ("stated", "owner", "is_one"),
    [
        ("Bill", "William Harker", True),
        ("Robert", "Bob", True),
        ("Ana", "Anna Keller", True),
        ("Jon", "John", True),
        ("Sarah", "Sara", True),
        ("Steven", "Stephen", True),
        ("Mr Harker", "William Harker", True),
        ("Anna Harker", "William Harker", False),
        ("Anna", "Tom", False),
        ("Anne", "Anna", False),
        ("Joan", "John", False),
        ("Bill", "Bella", False),
    ],
)
def test_families_share_a_name_and_are_not_one_person(
    stated: str, owner: str, is_one: bool
) -> None:
    assert is_same_person(stated, [owner]) is is_one


@given(given_names, surnames, given_names, surnames)
def test_whether_two_are_one_does_not_depend_on_who_is_asked(
    one: str, its: str, other: str, others: str
) -> None:
    assert is_same_person(one + its, [other]) == is_same_person(other + others, [one])
    assert is_same_person(one + its, [one + others])


@given(given_names, surnames, st.sets(given_names, max_size=4))
def test_a_person_is_found_again_and_is_never_the_owner_of_another_name(
    stated: str, surname: str, others: set[str]
) -> None:
    known = sorted(make_person_id(name) for name in others)
    person = find_person(stated + surname, ["Ebenezer"], known)
    assert person
    assert is_person(person)
    assert find_person(stated, ["Ebenezer"], [*known, person]) == person
    assert find_person(stated, [stated + surname]) == ""


@given(st.text(max_size=80), st.booleans(), st.booleans())
def test_any_words_can_be_listened_to(
    said: str, is_opening: bool, is_asked: bool
) -> None:
    hearing = Hearing(is_opening=is_opening, is_asked=is_asked)
    found = find_given_name(said, hearing)
    if found and (person := find_person(found.name, ["Tom"])):
        assert is_person(person)


@given(
    st.sampled_from(["+15550100", "sip:anna@host", "client:x%23y", "web:a"]),
    st.sampled_from(["", "anna", "anna+owner", "d0b2"]),
)
def test_a_party_comes_apart_as_it_was_put_together(number: str, person: str) -> None:
    party = join_party(number, person)
    assert split_party(party) == (number, person)
    assert normalise_party(party) == party


@pytest.mark.parametrize(
    "address", ["client:tom#anna", "sip:tom#anna", "web:tom#anna", "sip:tom#anna@host"]
)
def test_nobody_rings_as_somebodys_guest(address: str) -> None:
    caller = normalise_caller(address)
    assert caller is not None
    assert split_party(caller) == (caller, "")
