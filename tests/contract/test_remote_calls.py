"""Senders of live calls that repeat, skip, come late, come back, or are two, on both databases."""

from datetime import timedelta
from typing import Any

import pytest

from aftercall.app import App
from aftercall.bridge.remote_call import (
    RemoteCall,
    RemoteStart,
    SentEvent,
    SentTurn,
    find_clock_shift,
)
from aftercall.errors import (
    CallElsewhere,
    CallNotLive,
    CallTaken,
    JournalConflict,
    JournalGap,
    NotFound,
    RefusedInput,
)
from aftercall.model.calls import MAX_DURATION, Call
from fakes import VirtualClock, make_live_call
from opened_apps import OpenApp, crashed

SID, LEASE_S = "S1", 60


async def start(app: App, **fields: Any) -> RemoteCall:
    sender, turns = fields.pop("sender", "agent-1"), fields.pop("turns", 0)
    call = make_live_call(**({"sid": SID, "started_at": app.clock.now()} | fields))
    return await app.phone.remote_calls.start(RemoteStart(call, sender, turns))


async def say(call: RemoteCall, *texts: str, seq: int | None = None) -> None:
    first = call.turns + 1 if seq is None else seq
    turns = [
        SentTurn(seq=number, speaker="caller", text=text)
        for number, text in enumerate(texts, first)
    ]
    await call.write_turns(turns)


def read_texts(app: App, call: RemoteCall) -> list[str]:
    return [turn.text for turn in read_sealed(app, call).turns]


def read_sealed(app: App, call: RemoteCall) -> Call:
    row = app.store.get(call.call.id)
    return app.archive.read(str(row.archive_name))[0]


async def lose_sender(app: App, clock: VirtualClock) -> None:
    clock.move(LEASE_S + 1)
    await app.phone.remote_calls.end_expired()


async def test_a_turn_sent_twice_is_written_once(app: App) -> None:
    call = await start(app)
    await say(call, "one", "two")
    await say(call, "two", "three", seq=2)
    await call.end("completed")
    assert read_texts(app, call) == ["one", "two", "three"]


async def test_a_turn_that_skips_a_number_is_refused_and_one_with_other_words(
    app: App,
) -> None:
    call = await start(app)
    await say(call, "one")
    with pytest.raises(JournalGap, match="turn 3 came where 2 is next"):
        await say(call, "three", seq=3)
    with pytest.raises(JournalConflict, match="turn 1"):
        await say(call, "other", seq=1)
    await call.end("completed")
    assert read_texts(app, call) == ["one"]


async def test_after_the_end_nothing_is_taken_and_the_first_end_counts(
    app: App,
) -> None:
    call = await start(app)
    await call.end("caller_hung_up")
    await call.end("completed")
    with pytest.raises(CallNotLive):
        await say(call, "late")
    with pytest.raises(CallNotLive):
        await call.write_event(SentEvent(kind="tool.used"))
    with pytest.raises(CallNotLive, match="has ended"):
        await start(app)
    assert read_sealed(app, call).end_reason == "caller_hung_up"


async def test_a_second_sender_and_a_second_agent_get_no_part_of_the_call(
    app: App,
) -> None:
    call = await start(app)
    for other in (
        {"sender": "agent-2"},
        {"agent_id": "sales"},
        {"caller": "+15550199"},
        {"direction": "outbound"},
    ):
        with pytest.raises(CallTaken):
            await start(app, **other)
    with pytest.raises(CallTaken):
        await app.phone.remote_calls.get(call.call.id, "agent-2")
    with pytest.raises(NotFound):
        await app.phone.remote_calls.get("unknown", "agent-1")
    assert await start(app) is call
    await call.end("completed")
    with pytest.raises(CallTaken):  # also when it is over
        await start(app, sender="agent-2")


async def test_a_call_that_we_answer_ourselves_belongs_to_no_sender(app: App) -> None:
    record = await app.journal.open(make_live_call(sid=SID))
    with pytest.raises(CallTaken):
        await start(app)
    await app.journal.seal(record, end_reason="completed")
    with pytest.raises(CallTaken):
        await start(app)


async def test_a_forgotten_call_is_sealed_as_interrupted_when_its_lease_runs_out(
    app: App, clock: VirtualClock
) -> None:
    told: list[str] = []
    call = await start(app)
    call.notify = lambda kind, said: told.append(kind)
    await say(call, "one")
    said_at = clock.now()
    clock.move(LEASE_S - 1)
    await app.phone.remote_calls.get(call.call.id, "agent-1")  # any sign of life
    clock.move(LEASE_S)
    await app.phone.remote_calls.end_expired()
    assert app.store.get(call.call.id).state == "live"
    await lose_sender(app, clock)
    sealed = read_sealed(app, call)
    assert (sealed.end_reason, sealed.ended_at) == ("interrupted", said_at)
    assert told == ["ended"]


async def test_a_sender_that_comes_back_after_its_lease_goes_on_in_another_leg(
    app: App, clock: VirtualClock
) -> None:
    first = await start(app, caller=None)
    await say(first, "one", "two")
    await lose_sender(app, clock)
    second = await start(app, caller=None)
    assert second.turns == 2
    await say(second, "two", "three", seq=2)
    await lose_sender(app, clock)
    third = await start(app, caller=None)
    await say(third, "four", seq=4)
    await third.end("completed")
    legs = [first, second, third]
    assert [read_texts(app, leg) for leg in legs] == [
        ["one", "two"],
        ["three"],
        ["four"],
    ]
    assert [leg.call.sid for leg in legs] == ["S1", "S1.2", "S1.3"]
    assert {leg.call.conversation for leg in legs} == {first.call.id}
    assert read_sealed(app, third).resumes == second.call.id


async def test_after_the_reconnect_window_the_leg_is_a_conversation_of_its_own(
    app: App, clock: VirtualClock
) -> None:
    first = await start(app)
    await say(first, "one")
    await lose_sender(app, clock)
    clock.move(300)
    second = await start(app)
    assert (second.turns, second.call.resumes) == (1, None)
    await second.end("completed")


async def test_a_sender_comes_back_to_the_call_of_a_process_that_died(
    app: App,
) -> None:
    with crashed(app) as other:
        first = await start(other)
        await say(first, "one", "two")
        await first.write_event(SentEvent(seq=1, kind="tool.used"))
        await other.journal.close()
    second = await start(app)
    await say(second, "three", seq=3)
    await second.write_event(SentEvent(seq=1, kind="tool.used"))
    await second.write_event(SentEvent(seq=2, kind="tool.used"))
    await second.end("completed")
    assert read_sealed(app, first).end_reason == "interrupted"
    assert read_texts(app, second) == ["three"]
    assert [event.data for event in read_sealed(app, second).events] == [
        {"sender_seq": 2}
    ]
    assert second.call.conversation == first.call.id


async def test_a_call_that_is_live_in_another_process_is_to_be_tried_again(
    app: App, open_app: OpenApp
) -> None:
    other = open_app(app.settings, app.clock)
    call = await start(other)
    with pytest.raises(CallElsewhere) as refused:
        await start(app)
    assert refused.value.retry_after_s
    with pytest.raises(CallElsewhere, match="all requests of a call to one process"):
        await app.phone.remote_calls.get(call.call.id, "agent-1")
    with pytest.raises(CallTaken):
        await start(app, sender="agent-2")
    await call.end("completed")
    with pytest.raises(CallNotLive):
        await app.phone.remote_calls.get(call.call.id, "agent-1")


async def test_a_process_that_stops_lets_calls_of_agents_elsewhere_finish(
    app: App, clock: VirtualClock
) -> None:
    call = await start(app)
    intake = app.phone.intake
    intake.close()
    await say(call, "one")
    assert not intake.is_finished()
    await call.end("completed")
    assert intake.is_finished()
    assert read_sealed(app, call).end_reason == "completed"


async def test_a_process_that_stops_waits_for_no_call_longer_than_it_may(
    app: App, clock: VirtualClock
) -> None:
    call = await start(app)
    app.phone.intake.close()
    clock.move(app.settings.bridge.finish_s)
    assert app.phone.intake.is_finished()
    await call.end("completed")


async def test_a_sender_that_knows_of_more_turns_than_we_is_believed(app: App) -> None:
    call = await start(app, turns=5)
    await say(call, "six", seq=6)
    await call.end("completed")
    assert (read_texts(app, call), call.turns) == (["six"], 6)


async def test_a_clock_that_is_a_day_behind_is_put_right(
    app: App, clock: VirtualClock
) -> None:
    call = await start(app)
    begun = clock.now()
    clock.move(10)
    behind = clock.now() - timedelta(days=1)
    shift = find_clock_shift(behind, clock.now())
    turn = SentTurn(speaker="caller", text="Hi.", at=behind - timedelta(seconds=3))
    await call.write_turns([turn], shift)
    late = SentTurn(speaker="caller", text="Soon.", at=behind + timedelta(days=9))
    await call.write_turns([late], shift)
    await call.end("completed")
    times = [turn.at - begun for turn in read_sealed(app, call).turns]
    assert times == [timedelta(seconds=7), timedelta(seconds=10)]
    assert find_clock_shift(clock.now() - timedelta(seconds=2), clock.now()) == (
        timedelta()
    )


async def test_what_only_we_may_write_is_refused_from_a_sender(app: App) -> None:
    call = await start(app)
    for kind in ("passcode.right", "caller.named", "request.taken", "briefing.told"):
        with pytest.raises(RefusedInput, match=kind):
            await call.write_event(SentEvent(kind=kind))
    with pytest.raises(RefusedInput, match="65,536"):
        await call.write_event(SentEvent(kind="tool.used", data={"x": "y" * 70_000}))
    await call.end("completed")
    assert read_sealed(app, call).events == ()


async def test_a_request_that_is_sent_twice_is_taken_down_once(app: App) -> None:
    call = await start(app)
    for _ in range(2):
        told = await call.run_tool("take_request", '{"title": "Ring Jim"}', 1)
        assert told.startswith("Taken down.")
    assert "cannot be used" in await call.run_tool("take_request", "{}", 2)
    await call.end("completed")
    assert [event.data["title"] for event in read_sealed(app, call).events] == [
        "Ring Jim"
    ]


async def test_a_call_that_never_ends_is_ended_after_two_days(
    app: App, clock: VirtualClock
) -> None:
    call = await start(app)
    clock.move(MAX_DURATION.total_seconds() + 1)
    call.renew()
    await app.phone.remote_calls.end_expired()
    assert call.end_reason == "interrupted"
