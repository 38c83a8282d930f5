"""Picking up a dropped call, on both databases."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from aftercall.app import App
from aftercall.ids import hash_caller
from aftercall.model.calls import LiveCall
from fakes import START, make_call, make_live_call

ENDED = START + timedelta(seconds=60)


def drop(app: App, **fields: Any) -> str:
    row, _ = app.journal.ingest(make_call(ended_at=ENDED, **fields))
    return row.live.id


def ring_back(after_s: float, **fields: object) -> LiveCall:
    return make_live_call(started_at=ENDED + timedelta(seconds=after_s), **fields)


def test_a_caller_who_rings_back_inside_the_window_is_known(app: App) -> None:
    dropped = drop(app)
    state = app.resume.peek(ring_back(12))
    assert state is not None
    assert (state.call_id, state.ended_at) == (dropped, ENDED)


def test_the_last_moment_of_the_window_counts_and_the_next_does_not(app: App) -> None:
    drop(app)
    assert app.resume.peek(ring_back(300)) is not None
    assert app.resume.peek(ring_back(300.001)) is None


def test_another_caller_another_agent_and_a_withheld_number_pick_up_nothing(
    app: App,
) -> None:
    drop(app)
    assert app.resume.peek(ring_back(1, caller="+15550199")) is None
    assert app.resume.peek(ring_back(1, agent_id="other")) is None
    assert app.resume.peek(ring_back(1, caller=None)) is None


def test_a_withheld_number_leaves_nothing_to_pick_up(app: App) -> None:
    drop(app, caller=None)
    assert app.resume.peek(ring_back(1, caller=None)) is None


def test_peeking_takes_nothing_away(app: App) -> None:
    drop(app)
    assert app.resume.peek(ring_back(1)) == app.resume.peek(ring_back(2)) is not None


async def test_consuming_joins_the_new_call_to_the_conversation(app: App) -> None:
    dropped = drop(app)
    record = await app.journal.open(ring_back(5))
    state = app.resume.peek(record.call)
    assert state is not None
    joined = app.resume.consume(state, record.call)
    assert joined is not None
    record.call = joined
    sealed = await app.journal.seal(
        record, end_reason="caller_hung_up", ended_at=ENDED + timedelta(seconds=20)
    )
    call, _ = app.archive.read(sealed.name)
    assert (call.resumes, call.conversation) == (dropped, dropped)
    assert app.store.get(call.id).live.conversation == dropped


async def test_a_third_leg_continues_the_same_conversation(app: App) -> None:
    first = drop(app)
    legs = [first]
    for number in (1, 2):
        record = await app.journal.open(ring_back(10 * number))
        state = app.resume.peek(record.call)
        assert state is not None
        assert state.call_id == legs[-1]
        record.call = app.resume.consume(state, record.call) or record.call
        await app.journal.seal(
            record,
            end_reason="caller_hung_up",
            ended_at=ENDED + timedelta(seconds=10 * number + 5),
        )
        legs.append(record.call.id)
    assert {app.store.get(leg).live.conversation for leg in legs} == {first}


async def test_of_two_calls_that_try_one_wins(app: App) -> None:
    drop(app)
    records = await asyncio.gather(*(app.journal.open(ring_back(5)) for _ in range(8)))
    state = app.resume.peek(records[0].call)
    assert state is not None
    with ThreadPoolExecutor(8) as pool:
        joined = list(
            pool.map(lambda record: app.resume.consume(state, record.call), records)
        )
    assert sum(call is not None for call in joined) == 1
    assert app.resume.peek(ring_back(6)) is None


def test_an_older_call_sealed_late_does_not_replace_a_newer_one(app: App) -> None:
    newest = drop(app)
    app.journal.ingest(make_call(started_at=START - timedelta(hours=1)))
    state = app.resume.peek(ring_back(1))
    assert state is not None
    assert state.call_id == newest


def test_an_empty_call_still_counts_as_a_reconnect(app: App) -> None:
    dropped = drop(app, said=())
    state = app.resume.peek(ring_back(1))
    assert state is not None
    assert state.call_id == dropped


def test_expired_states_are_swept_away(app: App) -> None:
    drop(app)
    assert app.resume.delete_expired(ENDED + timedelta(seconds=300)) == 0
    assert app.resume.delete_expired(ENDED + timedelta(seconds=301)) == 1


def test_the_number_itself_is_not_kept(app: App) -> None:
    drop(app)
    state = app.resume.peek(ring_back(1))
    assert state is not None
    assert state.caller_hash == hash_caller("+15550100")
