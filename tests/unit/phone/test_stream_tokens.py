"""Passes: the socket that brings one is the call's, once and in time."""

from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from aftercall.phone.signature import TOKEN_LIFETIME_S, StreamTokens
from fakes import VirtualClock

KEY = SecretStr("k" * 32)


def test_a_pass_opens_one_stream_of_its_call() -> None:
    passes = StreamTokens(KEY, VirtualClock())
    given_out = passes.issue("CA1")
    assert passes.redeem("CA1", given_out)
    assert not passes.redeem("CA1", given_out)


def test_a_pass_opens_no_other_call() -> None:
    passes = StreamTokens(KEY, VirtualClock())
    assert not passes.redeem("CA2", passes.issue("CA1"))


def test_a_pass_holds_for_its_time_and_not_longer() -> None:
    clock = VirtualClock()
    passes = StreamTokens(KEY, clock)
    first, second = passes.issue("CA1"), passes.issue("CA1")
    clock.move(TOKEN_LIFETIME_S)
    assert passes.redeem("CA1", first)
    clock.move(1)
    assert not passes.redeem("CA1", second)


def test_another_process_with_the_key_knows_it_and_one_without_does_not() -> None:
    clock = VirtualClock()
    given_out = StreamTokens(KEY, clock).issue("CA1")
    assert StreamTokens(KEY, clock).redeem("CA1", given_out)
    assert not StreamTokens(SecretStr("other"), clock).redeem("CA1", given_out)
    assert not StreamTokens(SecretStr(""), clock).redeem(
        "CA1", StreamTokens(SecretStr(""), clock).issue("CA1")
    )


def test_used_passes_are_forgotten_when_they_would_no_longer_hold() -> None:
    clock = VirtualClock()
    passes = StreamTokens(KEY, clock)
    for _ in range(20):
        assert passes.redeem("CA1", passes.issue("CA1"))
        clock.move(TOKEN_LIFETIME_S / 2)
    assert passes.remembered_count <= 3


@given(st.none() | st.text(max_size=120))
def test_anything_else_opens_nothing(word: str | None) -> None:
    assert not StreamTokens(KEY, VirtualClock()).redeem("CA1", word)


def test_a_pass_carries_words_that_only_its_call_can_read() -> None:
    clock = VirtualClock()
    given_out = StreamTokens(KEY, clock).issue("CA1", '{"caller":"Zoë"}')
    elsewhere = StreamTokens(KEY, clock)
    assert elsewhere.read_carried("CA1", given_out) == '{"caller":"Zoë"}'
    assert elsewhere.redeem("CA1", given_out)
    assert elsewhere.read_carried("CA2", given_out) == ""
    assert elsewhere.read_carried("CA1", elsewhere.issue("CA1")) == ""
