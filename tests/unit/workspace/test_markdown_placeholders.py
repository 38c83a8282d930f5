import pytest

from aftercall.workspace.markdown import (
    IDENTITY_PLACEHOLDERS,
    USER_PLACEHOLDERS,
    is_placeholder,
)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  \t ",
        "optional",
        "_(optional)_",
        "*(optional)*",
        "**(Optional)**",
        "`optional`",
        "  _( optional )_  ",
        "not set yet",
        "_(Not set yet)_",
        (
            "(What do they care about?  What projects are they working on?\n What annoys them? "
            "What makes them laugh? Build this over time.)"
        ),
    ],
)
def test_a_placeholder_of_the_user_page_says_nothing_in_any_dress(value: str) -> None:
    assert is_placeholder(value, USER_PLACEHOLDERS)


@pytest.mark.parametrize(
    "value",
    [
        "_(pick something you like)_",
        "*(your signature — pick one that feels right)*",
        "your signature – pick one that feels right",
        "_(workspace-relative path, http(s) URL, or data URI)_",
        "AI? robot? familiar? ghost in the machine? something weirder?",
        "_(how do you come across? sharp? warm? chaotic? calm?)_",
        "`not set yet`",
    ],
)
def test_a_placeholder_of_the_identity_page_says_nothing_in_any_dress(
    value: str,
) -> None:
    assert is_placeholder(value, IDENTITY_PLACEHOLDERS)


@pytest.mark.parametrize(
    "value", ["Bill", "optional extras", "(she/her)", "((optional))", "set"]
)
def test_words_of_a_person_are_no_placeholder(value: str) -> None:
    assert not is_placeholder(value, USER_PLACEHOLDERS)


def test_each_page_has_its_own_placeholders() -> None:
    assert not is_placeholder("optional", IDENTITY_PLACEHOLDERS)
    assert not is_placeholder("pick something you like", USER_PLACEHOLDERS)
