"""Legs that were held elsewhere and handed in are one conversation, as live ones are; on both
databases.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from aftercall.app import App
from aftercall.journal.journal import ingest_call
from aftercall.journal.store import CallRow
from aftercall.model.calls import Call
from fakes import VirtualClock, make_call
from followup_work import follow, later, states

BUG = [
    ("agent", "Hello!"),
    ("caller", "Please open a bug about the broken thumbnails."),
    ("agent", "Noted."),
]
FORGET = [
    ("agent", "Hello again!"),
    ("caller", "Forget the bug about the broken thumbnails."),
    ("agent", "Done."),
]
WINDOW = 300.0


def leg(start: float, end: float, said: Any = BUG, **fields: Any) -> Call:
    return make_call(said, started_at=later(start), ended_at=later(end), **fields)


def hand_in(app: App, call: Call) -> CallRow:
    row, _ = ingest_call(app.journal, call)
    return app.store.get(row.live.id)


def conversations(app: App, *rows: CallRow) -> set[str]:
    return {app.store.get(row.live.id).live.conversation for row in rows}


def due(app: App, clock: VirtualClock) -> list[str]:
    return [run.conversation for run in app.work.runs.due(clock.now(), WINDOW)]


def test_what_leg_two_takes_back_is_not_done_for_leg_one(
    app: App, clock: VirtualClock
) -> None:
    clock.move(3600)
    first = hand_in(app, leg(0, 60))
    second = hand_in(app, leg(120, 180, FORGET))
    assert second.live.conversation == first.live.conversation == first.live.id
    assert second.live.resumes == first.live.id
    rows = follow(app.work, first.live.id)
    assert set(states(rows).values()) == {"withdrawn"}


def test_the_archive_tells_which_call_a_leg_resumes(app: App) -> None:
    first = hand_in(app, leg(0, 60))
    second = hand_in(app, leg(120, 180))
    sealed, _ = app.archive.read(str(second.archive_name))
    assert (sealed.conversation, sealed.resumes) == (first.live.id, first.live.id)


def test_legs_that_arrive_in_the_wrong_order_are_one_conversation(app: App) -> None:
    second = hand_in(app, leg(120, 180, FORGET))
    first = hand_in(app, leg(0, 60))
    assert len(conversations(app, first, second)) == 1
    assert set(states(follow(app.work, first.live.conversation)).values()) == {
        "withdrawn"
    }


def test_a_leg_that_arrives_late_joins_what_lies_on_both_sides(
    app: App, clock: VirtualClock
) -> None:
    first = hand_in(app, leg(0, 60))
    third = hand_in(app, leg(500, 560, FORGET))
    assert len(conversations(app, first, third)) == 2
    second = hand_in(app, leg(300, 320, ()))
    assert conversations(app, first, second, third) == {first.live.id}
    clock.move(2 * WINDOW + 560)
    assert due(app, clock) == [first.live.id]
    assert set(states(follow(app.work, first.live.id)).values()) == {"withdrawn"}


def test_a_conversation_whose_work_has_begun_is_not_moved_into_another(
    app: App,
) -> None:
    first, third = hand_in(app, leg(0, 60)), hand_in(app, leg(500, 560))
    follow(app.work, third.live.id)
    second = hand_in(app, leg(300, 320, ()))
    assert conversations(app, first, second) == {first.live.id}
    assert conversations(app, third) == {third.live.id}


def test_the_windows_last_moment_counts_for_handed_in_calls_too(app: App) -> None:
    first = hand_in(app, leg(0, 60))
    inside, outside = hand_in(app, leg(360, 400)), hand_in(app, leg(700.001, 710))
    assert inside.live.conversation == first.live.id
    assert outside.live.conversation == outside.live.id


@pytest.mark.parametrize(
    "fields",
    [
        {"caller": "+15550142"},
        {"caller": None},
        {"agent_id": "other"},
        {"direction": "outbound"},
        {"source": "import"},
    ],
)
def test_somebody_elses_call_joins_nothing(app: App, fields: dict[str, Any]) -> None:
    hand_in(app, leg(0, 60))
    other = hand_in(app, leg(120, 180, **fields))
    assert (other.live.conversation, other.live.resumes) == (other.live.id, None)


def test_two_calls_at_once_from_one_number_stay_apart(app: App) -> None:
    first, second = hand_in(app, leg(0, 60)), hand_in(app, leg(30, 90))
    assert len(conversations(app, first, second)) == 2


def test_a_conversation_that_the_sender_names_is_kept(app: App) -> None:
    first = hand_in(app, leg(0, 60))
    named = hand_in(app, leg(120, 180, conversation="talk"))
    assert (named.live.conversation, named.live.resumes) == ("talk", None)
    resumed = hand_in(app, leg(9000, 9060, resumes=first.live.id))
    assert (resumed.live.conversation, resumed.live.resumes) == (
        first.live.id,
        first.live.id,
    )


def test_legs_handed_in_at_the_same_time_are_one_conversation(app: App) -> None:
    legs = [leg(100 * number, 100 * number + 50) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        rows = list(pool.map(lambda call: hand_in(app, call), legs))
    assert len(conversations(app, *rows)) == 1


def test_a_live_call_after_handed_in_legs_picks_up_their_conversation(app: App) -> None:
    first = hand_in(app, leg(0, 60))
    last = hand_in(app, leg(120, 180))
    state = app.resume.peek(leg(200, 210))
    assert state is not None
    assert (state.call_id, state.conversation) == (last.live.id, first.live.id)


def test_work_for_a_call_that_ended_long_ago_waits_for_its_other_legs(
    app: App, clock: VirtualClock
) -> None:
    clock.move(timedelta(days=2).total_seconds())
    first = hand_in(app, leg(0, 60))
    assert due(app, clock) == []
    clock.move(WINDOW - 1)
    hand_in(app, leg(120, 180, FORGET))
    clock.move(2)
    assert due(app, clock) == []
    assert app.work.runs.next_due(WINDOW) == clock.now() + timedelta(seconds=WINDOW - 2)
    clock.move(WINDOW)
    assert due(app, clock) == [first.live.id]
