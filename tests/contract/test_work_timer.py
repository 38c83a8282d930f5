"""When follow-up work is due, on both databases: after the last leg's window, never while a leg
is live, one run at a time.
"""

from aftercall.app import App
from fakes import VirtualClock, make_call, make_live_call
from followup_work import follow, hold_call, later

WINDOW = 300.0


def due(app: App, clock: VirtualClock) -> list[str]:
    return [run.conversation for run in app.work.runs.due(clock.now(), WINDOW)]


def test_a_conversation_is_due_only_once_its_window_has_passed(
    app: App, clock: VirtualClock
) -> None:
    call = hold_call(app, ended_at=later(0), said=())
    clock.move(WINDOW)
    # the window's last millisecond still counts for a reconnect
    assert due(app, clock) == []
    clock.move(0.001)
    assert due(app, clock) == [call.conversation]


def test_a_later_leg_pushes_the_timer(app: App, clock: VirtualClock) -> None:
    first = hold_call(app, ended_at=later(0), said=())
    clock.move(200)
    hold_call(
        app,
        (),
        conversation=first.conversation,
        resumes=first.id,
        started_at=later(150),
        ended_at=later(200),
    )
    clock.move(200)
    assert due(app, clock) == []
    clock.move(101)
    assert due(app, clock) == [first.conversation]


def test_a_leg_sealed_out_of_order_does_not_turn_the_timer_back(
    app: App, clock: VirtualClock
) -> None:
    last = hold_call(
        app, (), conversation="talk", started_at=later(150), ended_at=later(200)
    )
    hold_call(app, (), conversation="talk", ended_at=later(0))
    assert app.work.runs.get(last.conversation).ended_at == later(200)


async def test_nothing_is_due_while_a_leg_is_live(
    app: App, clock: VirtualClock
) -> None:
    first = hold_call(app, ended_at=later(0), said=())
    record = await app.journal.open(
        make_live_call(
            conversation=first.conversation, resumes=first.id, caller="+15550199"
        )
    )
    clock.move(WINDOW * 10)
    assert due(app, clock) == []
    await app.journal.seal(record, end_reason="caller_hung_up")
    assert due(app, clock) == []
    clock.move(WINDOW + 1)
    assert due(app, clock) == [first.conversation]


async def test_nothing_is_due_while_a_call_of_the_same_caller_may_still_join(
    app: App, clock: VirtualClock
) -> None:
    first = hold_call(app, ended_at=later(0), said=())
    other = hold_call(app, ended_at=later(0), said=(), caller="+15550142")
    await app.journal.open(make_live_call(caller=first.caller))
    clock.move(WINDOW + 1)
    assert due(app, clock) == [other.conversation]


def test_a_run_that_was_started_is_not_started_again(
    app: App, clock: VirtualClock
) -> None:
    call = hold_call(app, ended_at=later(0), said=())
    clock.move(WINDOW + 1)
    app.work.runs.mark_running(call.conversation, 1, clock.now())
    assert due(app, clock) == []
    app.work.runs.mark_running(call.conversation, 1, clock.now())
    assert app.work.runs.get(call.conversation).run == 1


def test_a_leg_sealed_while_a_run_is_under_way_gets_a_run_of_its_own_afterwards(
    app: App, clock: VirtualClock
) -> None:
    first = hold_call(app)
    clock.move(WINDOW + 60)
    app.work.runs.mark_running(first.conversation, 1, clock.now())
    said = [("agent", "Hello."), ("caller", "Please order paper for the printer.")]
    app.journal.ingest(
        make_call(
            said,
            conversation=first.conversation,
            started_at=later(1),
            ended_at=later(10),
        )
    )
    clock.move(WINDOW)
    assert due(app, clock) == []  # one run of a conversation at a time
    app.work.finish_run(first.conversation, 1)
    assert due(app, clock) == [first.conversation]
    rows = follow(app.work, first.conversation)
    assert "Order paper for the printer" in [row.title for row in rows]
    assert app.work.runs.get(first.conversation).state == "done"
    assert due(app, clock) == []
