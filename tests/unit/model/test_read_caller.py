"""A caller as people write one, on the command line and in an address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import RefusedInput
from aftercall.model.people import read_caller, read_party
from aftercall.web.page_store import parse_caller, parse_party

written = st.one_of(
    st.text(max_size=30), st.from_regex(r"\+1555\d{4}(#[a-z]{1,5})?", fullmatch=True)
)


def outcome(read: object, *given: object) -> object:
    assert callable(read)
    try:
        return read(*given)
    except RefusedInput as error:
        return str(error)


@given(written.filter(lambda text: not text.startswith(" ")))
def test_a_command_and_a_query_read_a_caller_alike(text: str) -> None:
    known = outcome(read_caller, text, "caller")
    withheld = "caller: is empty or withheld; nothing is kept under it"
    assert outcome(parse_caller, text) == (withheld if known is None else known)
    assert outcome(read_party, text, "caller") == outcome(parse_party, text)


def test_a_plus_that_a_query_lost_is_put_back() -> None:
    assert (
        parse_party(" 15550100#anna")
        == read_party("+15550100#anna", "CALLER")
        == "+15550100#anna"
    )


def test_who_cannot_be_read_is_refused_by_the_field_it_stood_in() -> None:
    for read in (read_caller, read_party):
        with pytest.raises(RefusedInput, match="--caller: is not a phone number"):
            read("Bill", "--caller")
    with pytest.raises(RefusedInput, match="CALLER"):
        read_caller("+15550100#anna", "CALLER")
