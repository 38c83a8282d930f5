"""What the next call is told of the work, on both databases: its own caller's, since their last
call.
"""

from dataclasses import replace

import pytest

from aftercall.app import App
from aftercall.briefing.render import FollowUpNews, render
from aftercall.errors import NotWaiting
from aftercall.ids import new_id
from aftercall.labels import iter_corrected_calls
from aftercall.model.followups import EFFECTS, followup_json
from aftercall.work import deliver
from aftercall.work.deliver import notice_work
from aftercall.workspace.paths import Workspace
from fakes import VirtualClock
from followup_work import RecordingSink, follow, hold_call, with_sink


def test_only_the_caller_who_asked_is_told_what_was_done_and_what_waits(
    app: App, clock: VirtualClock
) -> None:
    desk = with_sink(
        app, RecordingSink(), policy={"unknown.issue": "do", "unknown.note": "hold"}
    )
    call = hold_call(app)
    clock.move(400)
    follow(desk, call.conversation)
    told = app.composer.preview(call.caller)
    assert told.work == (
        "Done: Open a bug about the broken thumbnails, number 41",
        "Written down: Remind me to follow up with Markus on Tuesday",
        "Waits for the owner's approval: File a note about the Carl conversation",
    )
    assert (
        "Work from earlier calls. Done: Open a bug about the broken thumbnails, number 41"
        in render(told, app.settings.zone)
    )
    assert app.composer.preview("+15550142").work == ()
    assert app.composer.preview(None).work == ()


def test_nobody_is_told_that_a_thing_was_done_which_was_only_written_down(
    app: App, clock: VirtualClock
) -> None:
    said = [
        ("caller", "Please send Dana the signed contract."),
        ("agent", "I will send Dana the signed contract."),
    ]
    call = hold_call(app, said)
    clock.move(400)
    rows = follow(app.work, call.conversation)
    assert [(row.kind, row.state, row.standing) for row in rows] == [
        ("request", "done", "noted"),
        ("promise", "done", "noted"),
    ]
    told = app.composer.preview(call.caller)
    assert told.work == ("Written down: Send Dana the signed contract",)
    assert followup_json(rows[0])["standing"] == "noted"
    notice = notice_work(app.work.runs.get(call.conversation), rows, "key")
    assert notice.title.endswith("called: 1 asked for, 1 written down")
    assert notice.details.startswith("noted: Send Dana")
    (journal,) = (app.settings.home / "workspace" / "journal").rglob("*.md")
    written = journal.read_text()
    assert written.count("Send Dana the signed contract — noted: tasks/") == 2
    assert (
        "done"
        not in written
        + notice.title
        + notice.details
        + render(told, app.settings.zone).lower()
    )


def test_what_a_person_has_done_is_told_as_done_whatever_is_read_later(
    app: App, clock: VirtualClock
) -> None:
    said = [
        ("caller", "Please call me back about the roof."),
        ("agent", "I will call you back about the roof."),
    ]
    call = hold_call(app, said, is_handed_in=True)
    clock.move(400)
    request, promise = follow(app.work, call.conversation)
    assert (request.standing, promise.standing) == ("noted", "unknown")
    done = app.corrections.correct("done", request.id, "done", "Ann")
    assert (done.who, done.old, done.new) == ("Ann", "noted", "done")
    app.work.runs.make_due(call.conversation, clock.now())
    rows = follow(app.work, call.conversation)
    assert [row.standing for row in rows] == ["done", "done"]
    day = f"{clock.now():%d %B %Y}"
    assert app.composer.preview(call.caller).work == (
        f"Done on {day}: Call me back about the roof",
    )
    with pytest.raises(NotWaiting, match="cannot be marked as done"):
        app.corrections.mark_done(request.id, "Ben")
    app.corrections.undo(done.id, "Ben")
    rows = app.work.followups.of_conversation(call.conversation)
    assert [row.standing for row in rows] == ["noted", "unknown"]
    told = app.composer.preview(call.caller).work
    assert told == ("Written down: Call me back about the roof",)


def test_a_promise_that_a_person_kept_stays_kept(app: App, clock: VirtualClock) -> None:
    call = hold_call(app, [("caller", "Hi."), ("agent", "I will email you the plan.")])
    clock.move(400)
    (promise,) = follow(app.work, call.conversation)
    assert promise.standing == "broken"
    app.corrections.mark_done(promise.id, "Ann")
    app.work.settle_promises(call.conversation)
    assert app.work.followups.get(promise.id).standing == "done"
    assert list(iter_corrected_calls(app)) == []  # it says nothing of the reading


def test_nobody_is_reminded_of_what_a_person_has_done(
    app: App, clock: VirtualClock
) -> None:
    settings = app.settings.model_copy(
        update={"work": app.settings.work.model_copy(update={"reminders": "tasks"})}
    )
    desk = replace(app.work, settings=settings)
    corrections = replace(app.corrections, work=desk)
    call = hold_call(app)
    rows = follow(desk, call.conversation)
    (due,) = [row for row in rows if row.due]
    assert desk.followups.next_reminder() == due.remind_at
    done = corrections.correct("done", due.id, "done", "Ann")
    assert desk.followups.next_reminder() is None
    corrections.undo(done.id, "Ann")
    assert desk.followups.next_reminder() == due.remind_at


@pytest.mark.parametrize("sink", ["", *EFFECTS, "tasks+person", "github+email"])
def test_the_database_sees_a_standing_as_people_do(app: App, sink: str) -> None:
    (row, *_) = follow(app.work, hold_call(app).conversation)
    rows = [
        replace(row, kind="request", request_kind="task"),
        replace(row, kind="request", request_kind="issue"),
        replace(row, kind="promise", request_kind="other"),
    ]
    rows = [replace(each, id=new_id(), key=new_id(), sink=sink) for each in rows]
    app.work.followups.record(rows, [], set(), app.clock.now())
    for each in rows:
        found = app.work.followups.page(limit=50, standings=[each.standing])
        assert each.id in {one.id for one in found}


def test_what_was_told_is_not_told_again_after_the_next_call_but_what_waits_is(
    app: App, clock: VirtualClock
) -> None:
    desk = with_sink(app, RecordingSink())
    call = hold_call(app)
    clock.move(400)
    follow(desk, call.conversation)
    clock.move(400)
    hold_call(
        app,
        [("agent", "Hello."), ("caller", "Just saying hi.")],
        started_at=clock.now(),
    )
    assert app.composer.preview(call.caller).work == (
        "Waits for the owner's approval: Open a bug about the broken thumbnails",
    )
    (held,) = app.work.followups.page(limit=10, state="held")
    deliver.reject(desk, held.id, "me")
    clock.move(400)
    assert app.composer.preview(call.caller).work == ()


def test_memory_scope_decides_whose_work_is_told(app: App, clock: VirtualClock) -> None:
    call = hold_call(app)
    clock.move(400)
    follow(app.work, call.conversation)

    def tell(scope: str, caller: str | None) -> int:
        memory = app.settings.memory.model_copy(update={"scope": scope})
        return len(
            FollowUpNews(
                app.settings.model_copy(update={"memory": memory}), app.work.followups
            ).list_lines("main", caller)
        )

    assert (
        tell("none", call.caller),
        tell("shared", "+15550142"),
        tell("per_caller", call.caller),
    ) == (0, 3, 3)


def test_a_broken_workspace_never_costs_the_greeting(app: App) -> None:
    person = Workspace.from_settings(app.settings).find_person("+15550100")
    assert person is not None
    person.greeting.mkdir(parents=True)
    person.user.mkdir()
    assert (
        app.composer.preview("+15550100").greeting == app.settings.receptionist.greeting
    )
