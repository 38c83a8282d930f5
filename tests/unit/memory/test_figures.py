"""Numbers are one number however they are said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.memory.words import write_figures

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def say(number: int) -> str:
    if number < 20:
        return _UNITS.split()[number]
    if number < 100:
        tens, unit = divmod(number, 10)
        return _TENS.split()[tens - 2] + (f"-{say(unit)}" if unit else "")
    scale, word = (1_000, "thousand") if number >= 1_000 else (100, "hundred")
    many, rest = divmod(number, scale)
    return f"{say(many)} {word}" + (
        f"{' and' if rest < 100 else ''} {say(rest)}" if rest else ""
    )


@given(st.integers(0, 999_999))
def test_a_number_in_words_is_that_number_in_figures(number: int) -> None:
    assert write_figures(f"it is {say(number)} in all") == f"it is {number} in all"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("four four one nine", "4 4 1 9"),
        ("nineteen seventy-one", "1971"),
        ("twenty twenty six", "2026"),
        ("the third floor", "the 3rd floor"),
        ("twenty-second of may", "22nd of may"),
        ("thirty first", "31st"),
        ("the second of may", "the 2nd of may"),
        ("a second car", "a second car"),
        ("four grand", "4000"),
        ("7 hundred", "700"),
        ("oh four one", "0 4 1"),
        ("oh well", "oh well"),
        ("two hundred two hundred", "200 200"),
        ("room nineteen", "room 19"),
        ("room 0019 and 0000", "room 0019 and 0000"),
        ("two thousand 05", "2000 05"),
        ("twenty", "20"),
        ("hundred", "hundred"),
        ("", ""),
    ],
)
def test_a_number_is_written_as_it_is_meant(said: str, written: str) -> None:
    assert write_figures(said) == written
