"""Finished calls from outside, on both databases."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from aftercall.app import App
from aftercall.errors import RefusedInput
from aftercall.journal.journal import ingest_call
from aftercall.journal.verify import verify_archive
from aftercall.model.calls import encode_call, parse_call_json
from fakes import START, make_call


def test_a_finished_call_is_sealed_as_it_was_told(app: App) -> None:
    call = make_call(
        [("agent", "Hey!"), ("caller", "Grüße aus Zürich 🎉")],
        metadata={"stream_sid": "MZ1"},
    )
    row, is_new = ingest_call(app.journal, parse_call_json(encode_call(call)))
    assert is_new
    assert row.state == "sealed"
    assert app.archive.read(str(row.archive_name)) == (call, ())


def test_the_same_source_and_sid_twice_is_one_call(app: App) -> None:
    first, first_is_new = ingest_call(app.journal, make_call(sid="S1"))
    second, second_is_new = ingest_call(app.journal, make_call(sid="S1"))
    assert (first_is_new, second_is_new) == (True, False)
    assert first.live.id == second.live.id
    assert len(app.archive.place.list_names()) == 1


def test_turns_behind_those_of_a_known_call_are_late_words_of_it(app: App) -> None:
    said = [("agent", "Hey!"), ("caller", "Please order paper.")]
    more = [*said, ("caller", "And please call the plumber.")]
    row, _ = ingest_call(app.journal, make_call(said, sid="S1"))
    for _ in range(2):
        again, is_new = ingest_call(app.journal, make_call(more, sid="S1"))
        assert (again.live.id, is_new) == (row.live.id, False)
    _, late = app.archive.read(str(row.archive_name))
    assert [turn.text for turn in late] == ["And please call the plumber."]
    assert app.store.get(row.live.id).turn_count == 3
    assert row.live.id in app.steps.list_due()  # they are read
    assert verify_archive(app.archive.place, app.store).faults == ()


def test_another_transcript_of_a_known_call_adds_nothing(app: App) -> None:
    row, _ = ingest_call(app.journal, make_call([("caller", "Order paper.")], sid="S1"))
    other = [("caller", "Order vapour."), ("agent", "Noted.")]
    ingest_call(app.journal, make_call(other, sid="S1"))
    assert app.archive.read(str(row.archive_name))[1] == ()


def test_ten_at_once_are_one_call(app: App) -> None:
    with ThreadPoolExecutor(10) as pool:
        results = list(
            pool.map(lambda _: ingest_call(app.journal, make_call(sid="S1")), range(10))
        )
    assert len({row.live.id for row, _ in results}) == 1
    assert sum(is_new for _, is_new in results) == 1
    assert len(app.archive.place.list_names()) == 1
    assert verify_archive(app.archive.place, app.store).faults == ()


def test_the_same_sid_from_another_source_is_another_call(app: App) -> None:
    first, _ = ingest_call(app.journal, make_call(sid="S1", source="twilio"))
    second, _ = ingest_call(app.journal, make_call(sid="S1", source="telnyx"))
    assert first.live.id != second.live.id


def test_an_id_that_belongs_to_another_call_is_refused(app: App) -> None:
    known, _ = ingest_call(app.journal, make_call())
    with pytest.raises(RefusedInput, match="id: belongs to another call"):
        ingest_call(app.journal, make_call(id=known.live.id))


def test_a_call_from_the_future_is_refused_and_nothing_is_stored(app: App) -> None:
    with pytest.raises(RefusedInput, match="ended_at: lies in the future"):
        ingest_call(app.journal, make_call(started_at=START + timedelta(days=3)))
    assert app.store.list_page(limit=10) == []
    assert app.archive.place.list_names() == []


def test_a_refused_call_leaves_nothing_behind(app: App) -> None:
    call = json.loads(encode_call(make_call()))
    call["turns"][1]["speaker"] = "ghost"
    with pytest.raises(RefusedInput):
        ingest_call(app.journal, parse_call_json(json.dumps(call).encode()))
    assert app.store.list_page(limit=10) == []
    assert app.archive.place.list_names() == []


def test_calls_are_listed_newest_first_and_in_pages(app: App) -> None:
    ids = [
        ingest_call(
            app.journal, make_call(started_at=START - timedelta(minutes=10 * age))
        )[0].live.id
        for age in range(5)
    ]
    first = app.store.list_page(limit=2)
    second = app.store.list_page(
        limit=9, before=(first[-1].live.started_at, first[-1].live.id)
    )
    assert [row.live.id for row in (*first, *second)] == ids
    assert app.store.list_page(limit=9, caller="+15550199") == []
