import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.model.people import normalise_caller


@pytest.mark.parametrize(
    ("given_form", "normal"),
    [
        ("+15551234567", "+15551234567"),
        ("+1 (555) 123-4567", "+15551234567"),
        ("+44 (0)20 7946 0958", "+442079460958"),
        ("+15550100", "+15550100"),
        ("  +15551234567 ", "+15551234567"),
        ("sip:Bob@Example.COM", "sip:Bob@example.com"),
        ("client:alice", "client:alice"),
        ("web:01J5", "web:01J5"),
    ],
)
def test_one_caller_has_one_form(given_form: str, normal: str) -> None:
    assert normalise_caller(given_form) == normal


@pytest.mark.parametrize(
    "word",
    [
        "",
        None,
        "anonymous",
        "Anonymous",
        "RESTRICTED",
        "unknown",
        "+266696687",
        "sip:anonymous@anonymous.invalid",
    ],
)
def test_a_withheld_number_is_nobody(word: str | None) -> None:
    assert normalise_caller(word) is None


@pytest.mark.parametrize(
    "word",
    [
        "Bob",
        "5551234567",
        "+",
        "+0",
        "sip:",
        "http://x",
        "client:a b",
        "+1555123456789012345678",
    ],
)
def test_what_cannot_be_compared_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        normalise_caller(word)


@given(st.text(max_size=60))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    try:
        normal = normalise_caller(text)
    except ValueError:
        return
    assert normalise_caller(normal) == normal
