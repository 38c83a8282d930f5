"""Ids sort by the time they were made, within a millisecond, too, and are never made twice."""

import re
import time

import pytest

from aftercall.ids import new_id


def test_ids_are_ulids_and_all_different() -> None:
    ids = [new_id() for _ in range(2000)]
    assert len(set(ids)) == 2000
    assert all(re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", made) for made in ids)


def test_ids_of_one_millisecond_sort_as_they_were_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_469_918_176_385_000_000)
    made = [new_id() for _ in range(2000)]
    assert made == sorted(made)
    assert {each[:10] for each in made} == {"01ARYZ6S41"}


def test_an_id_tells_its_millisecond_in_crockfords_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_469_918_176_385_999_999)
    assert new_id().startswith("01ARYZ6S41")


def test_ids_made_later_sort_later(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for moment in range(1_700_000_000_000, 1_700_000_002_000, 37):
        monkeypatch.setattr(time, "time_ns", lambda at=moment: at * 1_000_000)
        made.append(new_id())
    assert made == sorted(made)
