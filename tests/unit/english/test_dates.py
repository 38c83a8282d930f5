from datetime import date

import pytest

from aftercall.english.dates import find_dates

TUESDAY = date(2026, 3, 3)


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("on Thursday", "2026-03-05"),
        ("the twentieth of March, Friday", "2026-03-20"),
        ("next week Tuesday", "2026-03-10"),
        ("three weeks tomorrow", "2026-03-25"),
        ("tomorrow fortnight", "2026-03-18"),
        ("the sixth at half five", "2026-03-06"),
        ("Tuesday", "2026-03-10"),
        ("next Friday", "2026-03-13"),
        ("a week from Thursday", "2026-03-12"),
        ("the third", "2026-04-03"),
        ("the twelfth", "2026-03-12"),
        ("end of next week", "2026-03-13"),
        ("tomorrow morning", "2026-03-04"),
        ("before Thursday", "2026-03-04"),
        ("by Thursday", "2026-03-05"),
        ("before the end of the month", "2026-03-31"),
        ("before the weekend", "2026-03-06"),
        ("the first of next month", "2026-04-01"),
        ("Wednesday the eleventh", "2026-03-11"),
        ("in two weeks", "2026-03-17"),
        ("the day after tomorrow", "2026-03-05"),
        ("April 2nd", "2026-04-02"),
        ("the 9th of March", "2026-03-09"),
        ("tonight", "2026-03-03"),
        ("Friday of next week", "2026-03-13"),
        ("Monday the week after next", "2026-03-16"),
        ("the thirty first", "2026-03-31"),
        ("on Thursday's boat", "2026-03-05"),
    ],
)
def test_days_are_the_days_people_mean(words: str, day: str) -> None:
    assert [mention.day.isoformat() for mention in find_dates(words, TUESDAY)] == [day]


@pytest.mark.parametrize(
    "words",
    [
        "the third floor",
        "the third of June eighty-one",
        "my first interview in eleven years",
        "one second",
        "since Friday",
        "last Monday",
        "not Thursday",
        "I may march in",
        "on Sundays",
        "every second Thursday",
        "till Friday",
    ],
)
def test_other_words_are_no_days(words: str) -> None:
    assert not find_dates(words, TUESDAY)


def test_the_day_before_looks_at_its_anchor() -> None:
    assert find_dates("remind me the day before", TUESDAY, date(2026, 3, 20))[
        0
    ].day == date(2026, 3, 19)
    assert not find_dates("remind me the day before", TUESDAY)


@pytest.mark.parametrize(
    "words",
    ["the second half of July", "the third quarter", "the sixth of each month"],
)
def test_parts_and_repetitions_are_no_days(words: str) -> None:
    assert find_dates(words, TUESDAY) == []
