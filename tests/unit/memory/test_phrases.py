"""A pattern of phrases never matches a text that has none of its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.memory import claims, wording
from aftercall.memory.phrases import Phrases

ALL = {
    f"{module.__name__}.{name}": value
    for module in (claims, wording)
    for name, value in vars(module).items()
    if isinstance(value, Phrases)
}
LETTERS = st.sampled_from("abcdefghijklmnopqrstuvwxyz0123456789 '")


def test_the_lists_of_claims_and_of_plain_wording_are_such_patterns() -> None:
    assert len(ALL) >= 9


@pytest.mark.parametrize("name", sorted(ALL))
@given(data=st.data())
def test_whatever_matches_holds_one_of_the_words(
    name: str, data: st.DataObject
) -> None:
    phrases = ALL[name]
    text = data.draw(st.from_regex(phrases.pattern, alphabet=LETTERS))
    assert phrases.occur(text, set(wording._PIECE.findall(text)))


def test_a_gap_takes_a_few_words_or_none() -> None:
    phrases = Phrases("not … any more", "switched")
    for said in ("not any more", "not at home any more", "switched"):
        assert phrases.occur(f"i am {said} now", set(said.split()))
    assert not phrases.occur("not then any less", {"not", "then", "any", "less"})
    assert phrases.words == {"more", "switched"}


def test_a_phrase_is_none_before_what_is_refused_after_it() -> None:
    phrases = Phrases("still", unless={"still": " water"})
    assert phrases.replace("", "still here") == " here"
    assert phrases.replace("", "still water") == "still water"
