import pytest

from aftercall.llm.reader import join, phrase_request, rephrase_title, to_second_person


@pytest.mark.parametrize(
    ("title", "spoken"),
    [
        ("Remind me to call my mother.", "remind you to call your mother"),
        (
            "Open a bug about the broken thumbnails",
            "open a bug about the broken thumbnails",
        ),
        ("PDF export of our invoices", "PDF export of your invoices"),
        ("Tell Dana I'm late", "tell Dana you're late"),
        ("", ""),
    ],
)
def test_the_callers_words_fit_the_agents_mouth(title: str, spoken: str) -> None:
    assert rephrase_title(title) == spoken


def test_am_follows_its_person() -> None:
    assert to_second_person("I am the owner") == "you are the owner"


def test_an_errand_goes_on_after_you_asked_me() -> None:
    assert phrase_request("Book a table for two") == "to book a table for two"
    assert phrase_request("A leak in the kitchen") == "about a leak in the kitchen"


def test_lists_are_joined_as_people_say_them() -> None:
    assert (join([]), join(["a"]), join(["a", "b"]), join(["a", "b", "c"])) == (
        "",
        "a",
        "a and b",
        "a, b and c",
    )
    assert join(["a, b", "c", "d"]) == "a, b; c and d"
