"""Phrases for days made from parts, with the day reckoned here on its own."""

from datetime import date, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from aftercall.english.dates import find_dates

WEEKDAYS = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)
ORDINALS = (
    *(
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
        "eleventh",
        "twelfth",
        "thirteenth",
    ),
    *(
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
        "nineteenth",
        "twentieth",
        "twenty first",
        "twenty second",
    ),
    *(
        "twenty third",
        "twenty fourth",
        "twenty fifth",
        "twenty sixth",
        "twenty seventh",
        "twenty eighth",
    ),
)
COUNTS = {"a": 1, "two": 2, "three": 3, "four": 4}
UNITS = {"day": 1, "week": 7, "fortnight": 14}
TODAYS = st.dates(date(2026, 1, 1), date(2027, 12, 31))
AHEAD = st.integers(60, 200)
LEADS = st.sampled_from(("", "remind me ", "could you do it ", "so we need it "))


def days(text: str, today: date, anchor: date | None = None) -> list[date]:
    return [mention.day for mention in find_dates(text, today, anchor)]


@given(
    TODAYS,
    AHEAD,
    st.sampled_from(list(COUNTS)),
    st.sampled_from(list(UNITS)),
    st.sampled_from(("before", "ahead", "after")),
    LEADS,
)
def test_so_far_before_or_after_is_told_from_the_day_talked_of(
    today: date, ahead: int, count: str, unit: str, which: str, lead: str
) -> None:
    anchor = today + timedelta(days=ahead)
    distance = timedelta(days=COUNTS[count] * UNITS[unit])
    plural = "s" if COUNTS[count] > 1 else ""
    meant = anchor + distance if which == "after" else anchor - distance
    assert days(f"{lead}{count} {unit}{plural} {which}", today, anchor) == [meant]


@given(
    TODAYS,
    st.sampled_from(list(COUNTS)),
    st.sampled_from(("day", "week")),
    st.integers(1, 28),
)
def test_so_far_before_a_day_named_at_once_is_told_from_that_day(
    today: date, count: str, unit: str, number: int
) -> None:
    month = today.replace(day=1) + timedelta(days=93)
    named = month.replace(day=number)
    plural = "s" if COUNTS[count] > 1 else ""
    text = f"{count} {unit}{plural} before the {ORDINALS[number - 1]} of {named:%B}"
    assert days(text, today) == [named - timedelta(days=COUNTS[count] * UNITS[unit])]


@given(TODAYS, AHEAD, st.sampled_from(WEEKDAYS), st.sampled_from(("before", "after")))
def test_the_weekday_before_or_after_is_the_nearest_on_that_side(
    today: date, ahead: int, weekday: str, which: str
) -> None:
    anchor = today + timedelta(days=ahead)
    step = timedelta(days=1 if which == "after" else -1)
    meant = anchor + step
    while meant.strftime("%A") != weekday:
        meant += step
    assert days(f"the {weekday} {which}", today, anchor) == [meant]


@given(TODAYS, AHEAD, st.sampled_from(WEEKDAYS))
def test_the_weekday_alone_is_the_one_next_to_the_day_talked_of(
    today: date, ahead: int, weekday: str
) -> None:
    anchor = today + timedelta(days=ahead)
    [found] = days(f"could you do the {weekday}?", today, anchor)
    assert f"{found:%A}" == weekday
    assert abs(found - anchor) <= timedelta(days=3)


@given(TODAYS, st.integers(1, 180))
def test_a_weekday_with_its_number_is_the_next_day_that_is_both(
    today: date, ahead: int
) -> None:
    meant = today + timedelta(days=ahead)
    earlier = [today + timedelta(days=days) for days in range(ahead)]
    assume(meant.day <= len(ORDINALS))
    assume(
        not any(
            day.day == meant.day and day.weekday() == meant.weekday() for day in earlier
        )
    )
    assert days(f"{meant:%A} the {ORDINALS[meant.day - 1]}", today) == [meant]


@given(TODAYS)
def test_the_end_of_a_week_is_its_friday(today: date) -> None:
    monday = today + timedelta(days=7 - today.weekday())
    assert days("by the end of next week", today) == [monday + timedelta(days=4)]


@given(TODAYS)
def test_nothing_is_told_from_a_day_nobody_named(today: date) -> None:
    assert (
        days("the week before", today)
        == days("the same day", today)
        == days("a fortnight after", today)
        == []
    )
