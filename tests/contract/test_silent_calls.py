"""Calls in which the caller said nothing take no other call's place; on both databases."""

from datetime import timedelta
from typing import Any

from aftercall.app import App
from aftercall.journal.store import CallRow
from aftercall.model.calls import Turn
from aftercall.postcall.steps import STEPS
from aftercall.web.page_store import PageStore
from aftercall.workspace import files, greeting
from aftercall.workspace.paths import Workspace
from fakes import VirtualClock, make_call, make_live_call
from followup_work import follow, later

CALLER = "+15550100"
REAL = [
    ("agent", "Hello!"),
    ("caller", "This is Bill. Please open a bug about the broken thumbnails."),
    ("agent", "Noted."),
]
SILENT = [
    ("agent", "Hello! What can I do for you?"),
    ("agent", "Are you still there?"),
    ("caller", "  "),
    ("caller", "..."),
]


def hold(app: App, said: Any, minutes: float, **fields: Any) -> CallRow:
    """A call, and everything that comes right after it."""
    start = later(60 * minutes)
    row, _ = app.journal.ingest(
        make_call(
            said, started_at=start, ended_at=start + timedelta(seconds=30), **fields
        )
    )
    for name in STEPS:
        if name != "remem":
            app.step_runner.claim(row.live.id, [name])
            app.step_runner.run(row.live.id, name)
    return app.store.get(row.live.id)


def hold_silent(app: App, count: int = 3) -> list[CallRow]:
    return [hold(app, SILENT, 60 * number) for number in range(1, count + 1)]


def test_silent_calls_leave_recent_calls_and_the_greeting_alone(
    app: App, clock: VirtualClock
) -> None:
    for number, thing in enumerate(("thumbnails", "printers", "invoices")):
        hold(
            app,
            [
                ("agent", "Hello!"),
                ("caller", f"This is Bill. Please open a bug about broken {thing}."),
            ],
            number,
        )
    clock.move(3600 * 5)
    before = app.composer.preview(CALLER)
    assert len(before.recent) == 3
    hold_silent(app)
    after = app.composer.preview(CALLER)
    assert (after.recent, after.greeting) == (before.recent, before.greeting)


def test_a_call_handed_in_late_leaves_the_greeting_of_a_later_call(
    app: App, clock: VirtualClock
) -> None:
    hold(app, REAL, 0)
    clock.move(3600)
    before = app.composer.preview(CALLER).greeting
    late = hold(
        app,
        [("agent", "Hello!"), ("caller", "This is Bill. Please book a table for two.")],
        -60 * 24 * 7,
        sid="late",
    )
    assert app.composer.preview(CALLER).greeting == before
    (step,) = [
        step for step in app.steps.of_call(late.live.id) if step.name == "greeting"
    ]
    assert (step.state, step.reason) == ("skipped", "the caller has called since")


def test_silent_calls_stand_in_lists_and_in_no_page(app: App) -> None:
    hold(app, REAL, 0)
    workspace = Workspace.from_settings(app.settings)
    page = files.read(workspace.calls)
    silent = hold_silent(app)
    assert files.read(workspace.calls) == page
    assert len(app.store.list_page(limit=10)) == 4
    assert {
        step.state for row in silent for step in app.steps.of_call(row.live.id)
    } == {"skipped"}


def test_a_greeting_that_a_silent_call_used_up_is_left_again(
    app: App, clock: VirtualClock
) -> None:
    hold(app, REAL, 0)
    person = Workspace.from_settings(app.settings).find_person(CALLER)
    assert person is not None
    left, dated = (
        greeting.peek_greeting(person, clock.now()),
        person.greeting.stat().st_mtime,
    )
    assert left is not None
    clock.move(3600)
    assert greeting.claim_greeting(person, clock.now()) == left
    hold(app, SILENT, 60)
    assert greeting.peek_greeting(person, clock.now()) == left
    assert person.greeting.stat().st_mtime == dated


def test_news_of_work_is_told_though_a_silent_call_came_between(
    app: App, clock: VirtualClock
) -> None:
    real = hold(app, REAL, 0, verified=True)
    clock.move(600)
    follow(app.work, real.live.conversation)
    told = app.composer.load_remembered("main", CALLER).work
    assert told
    clock.move(3600)
    hold(app, SILENT, 30)
    assert app.composer.load_remembered("main", CALLER).work == told


def test_a_dropped_call_is_picked_up_behind_a_silent_leg(app: App) -> None:
    first = hold(app, REAL, 0)
    hold(app, SILENT, 1, conversation=first.live.conversation, resumes=first.live.id)
    call = make_live_call(caller=CALLER, started_at=later(120))
    briefing = app.composer.recompose(call, CALLER, "known")
    assert briefing.pick_up is not None
    assert [turn.text for turn in briefing.pick_up.turns] == [text for _, text in REAL]


def test_a_silent_call_does_not_replace_a_dropped_call_it_has_no_part_in(
    app: App,
) -> None:
    first = hold(app, REAL, 0)
    app.journal.ingest(make_call((), started_at=later(60), ended_at=later(62)))
    state = app.resume.peek(make_live_call(started_at=later(120)))
    assert state is not None
    assert state.call_id == first.live.id


def test_a_persons_last_call_is_the_last_with_words_in_it(app: App) -> None:
    hold(app, REAL, 0)
    hold(app, SILENT, 60)
    hold(app, SILENT, 30, caller="+15550142")
    people = PageStore(app.database).list_people(limit=10)
    assert [(person.caller, person.last_at) for person in people] == [
        ("+15550142", later(1800)),
        (CALLER, later(0)),
    ]


def test_late_words_of_the_caller_end_the_silence(app: App) -> None:
    row = hold(app, SILENT, 0)
    assert row.is_silent
    late = Turn(seq=4, speaker="caller", text="Hello?", at=later(40))
    app.journal.add_addendum(row, [late])
    assert not app.store.get(row.live.id).is_silent
