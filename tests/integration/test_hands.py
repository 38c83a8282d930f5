"""Decisions on the pages: for one or many, with a message, a link to what was made, and undo."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient

from aftercall.app import App
from aftercall.db.corrections import Correction
from aftercall.errors import NotWaiting
from aftercall.ids import new_id
from aftercall.memory.extraction import Extractor
from aftercall.model.followups import TO_DO, FollowUp
from aftercall.postcall.runner import rerun
from aftercall.work import deliver
from aftercall.work.store import FollowUpTransition
from api_client import csrf_of, make_client
from fact_drafts import draft, reader_of
from fakes import VirtualClock, make_call
from followup_work import (
    RecordingSink,
    attempt,
    follow,
    hold_call,
    hold_requests,
    with_sink,
)

CALLER = "+15550142"
TO_DO_QUERY = "&".join(f"state={name}" for name in TO_DO)


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """SQLite only; contract tests hold the stores to both databases."""
    return f"sqlite:///{tmp_path / 'home' / 'aftercall.db'}"


@pytest.fixture
def client(app: App) -> TestClient:
    return make_client(app, follow_redirects=False)


def decide(
    client: TestClient, decision: str, ids: Sequence[str], **fields: str
) -> httpx2.Response:
    form = {"csrf": csrf_of(client.get("/followups").text), "decision": decision}
    return client.post("/followups/decide", data=form | {"of": list(ids)} | fields)


def test_many_are_approved_at_once_and_one_of_them_is_undone(
    app: App, client: TestClient, clock: VirtualClock
) -> None:
    plumber, painter, baker = hold_requests(app, "plumber", "painter", "baker")
    answer = decide(client, "approve", [plumber.id, painter.id, "none"])
    assert answer.headers["location"] == "/followups"
    page = client.get("/followups").text
    assert "Approved: 2." in page
    assert "1 could not be" in page
    assert "Undo" in page
    assert "Approved: 2." not in client.get("/followups").text
    assert decide(client, "undo", [painter.id]).status_code == 303
    undone = app.work.followups.get(painter.id)
    assert (undone.state, undone.reason) == ("held", painter.reason)
    undo_s = timedelta(seconds=app.settings.work.undo_s)
    assert app.work.followups.queued(clock.now() - undo_s) == []
    clock.move(undo_s.total_seconds())
    due = app.work.followups.queued(clock.now() - undo_s)
    assert [row.id for row in due] == [plumber.id]
    assert app.work.followups.get(baker.id).state == "held"


def test_the_message_links_to_what_was_made(app: App, client: TestClient) -> None:
    (row,) = hold_requests(app, "plumber")
    sink = RecordingSink("tasks")
    decide(client, "approve", [row.id])
    attempt(with_sink(app, sink), row.id)
    link = f'href="{app.work.followups.get(row.id).link}"'
    assert link in client.get("/followups").text
    standing = client.get(f"/followups/{row.id}/standing").text
    assert link in standing
    assert "hx-trigger" not in standing


def test_what_was_carried_out_is_not_undone(app: App, client: TestClient) -> None:
    (row,) = hold_requests(app, "plumber")
    decide(client, "approve", [row.id])
    attempt(with_sink(app, RecordingSink("tasks")), row.id)
    assert decide(client, "undo", [row.id]).status_code == 409
    assert app.work.followups.get(row.id).state == "done"


def test_an_approval_by_a_program_is_carried_out_at_once(
    app: App, client: TestClient, clock: VirtualClock
) -> None:
    (row,) = hold_requests(app, "plumber")
    client.post(f"/api/followups/{row.id}/approve")
    far = clock.now() - timedelta(days=1)
    assert [one.id for one in app.work.followups.queued(far)] == [row.id]
    with pytest.raises(NotWaiting):
        deliver.undo(app.work, row.id, "me")


def test_a_rejection_is_undone_to_what_it_was(app: App, client: TestClient) -> None:
    (row,) = hold_requests(app, "plumber")
    decide(client, "reject", [row.id])
    assert "Rejected or settled." in client.get("/").text
    decide(client, "undo", [row.id])
    assert app.work.followups.get(row.id).state == "held"
    assert [entry.deed for entry in app.audit.list_recent()] == ["undone", "rejected"]


def test_a_request_taken_back_while_it_starts_is_not_delivered(app: App) -> None:
    (row,) = hold_requests(app, "plumber")
    sink = RecordingSink("tasks")
    desk = with_sink(app, sink)
    deliver.approve(desk, row.id, "me", can_undo=True)
    stale = desk.followups.get(row.id)

    class LateFollowUps:
        """Shows the row as it was before it was taken back."""

        def __getattr__(self, name: str) -> object:
            return getattr(app.work.followups, name)

        def get(self, followup_id: str) -> FollowUp:
            return stale

    deliver.undo(desk, row.id, "me")
    late = replace(desk, followups=LateFollowUps())  # type: ignore[arg-type]
    deliver.deliver_request(late, row.id)
    assert sink.effects == []
    assert app.work.followups.get(row.id).state == "held"


def test_due_days_are_set_for_many_and_only_late_ones_are_red(
    app: App, client: TestClient, clock: VirtualClock
) -> None:
    rows = hold_requests(app, "plumber", "painter")
    decide(client, "due", [row.id for row in rows], due="2026-02-14")
    page = client.get("/followups?state=held").text
    assert ">overdue</span>" not in page
    assert "Put right" in page
    undo = {"csrf": csrf_of(page), "of": [one.id for one in list_corrections(app)]}
    assert client.post("/corrections/undo", data=undo).status_code == 303
    assert [app.work.followups.get(row.id).due for row in rows] == [
        row.due for row in rows
    ]
    for due in (
        "2026-02-14",
        "2026-01-02",
    ):  # the second had passed before it was asked for
        decide(client, "due", [rows[0].id], due=due)
        clock.move(3 * 24 * 3600)
        page = client.get("/followups?state=held").text
        assert page.count(">overdue</span>") == (due == "2026-02-14")


def test_what_was_noted_is_listed_by_day_until_a_person_has_done_it(
    app: App, client: TestClient, clock: VirtualClock
) -> None:
    today = clock.now().date()
    days = {"no day": None, "later": 9, "tomorrow": 1, "day has passed": -1, "today": 0}
    rows = {}
    for name, day in days.items():
        call = hold_call(app, [("caller", "Please order paper.")], caller=CALLER)
        (row,) = follow(app.work, call.conversation)
        due = None if day is None else f"{today + timedelta(days=day)}"
        app.corrections.correct("due", row.id, due, "me")
        app.corrections.correct("request", row.id, f"<b>Paper for {name}", "me")
        rows[name] = row.id
    for path in ("/followups", f"/followups?{TO_DO_QUERY}"):
        page = client.get(path).text
        places = [page.index(f">To do: {name}</h2>") for name in (*days,)[::-1]]
        assert places == sorted(places)
        assert all(f'id="followup-{row}"' in page for row in rows.values())
        assert CALLER in page
        assert "&lt;b&gt;Paper" in page
        assert "<b>Paper" not in page
    front = client.get("/").text
    assert "To do <small>5</small>" in front
    assert front.index(rows["today"]) < front.index(rows["day has passed"])
    answer = decide(client, "done", [rows["today"]])
    assert answer.status_code == 303
    page = client.get("/followups").text
    assert "Marked as done" in page
    assert ">To do: today</h2>" not in page
    undo = {"csrf": csrf_of(page), "of": [list_corrections(app)[0].id]}
    assert client.post("/corrections/undo", data=undo).status_code == 303
    assert ">To do: today</h2>" in client.get("/followups").text


def test_a_promise_stands_with_what_was_asked_for(app: App, client: TestClient) -> None:
    said = [
        ("caller", "Please tell Graham that lunch has to move to Wednesday."),
        ("agent", "I will give him that message."),
    ]
    request, promise = follow(app.work, hold_call(app, said, sid="1").conversation)
    page = client.get("/followups").text
    assert page.count('<li class="item') == 1
    assert f'promised: <a href="/followups/{promise.id}">' in page
    kept = client.get(f"/followups/{promise.id}").text
    assert "kept when the request is done" in kept
    assert f'href="/followups/{request.id}"' in kept
    history = client.get(f"/followups/{request.id}").text
    assert "<b>noted</b>" in history
    assert "<b>done</b>" not in history


def test_a_long_list_of_what_is_to_do_goes_on_by_day(
    app: App, client: TestClient
) -> None:
    said = [("caller", "Please order paper.")]
    (row,) = follow(app.work, hold_call(app, said).conversation)
    copies = [replace(row, id=new_id(), key=new_id()) for _ in range(51)]
    app.work.followups.record(copies, [], set(), app.clock.now())
    first = client.get(f"/followups?{TO_DO_QUERY}").text
    assert first.count('<li class="item') == 50
    (more,) = re.findall(r'href="([^"]+)">More to do', first)
    rest = client.get(unescape(more)).text
    assert rest.count('<li class="item') == 2
    for odd in ("~", "x", "9" * 60):
        assert client.get(f"/followups?{TO_DO_QUERY}&before={odd}").status_code == 200


def test_every_page_and_program_counts_the_same_as_to_do(
    app: App, client: TestClient
) -> None:
    """A promise that a request keeps is done with it, whichever page the request is on."""
    tell = [
        ("caller", "Please tell Graham that lunch has to move to Wednesday."),
        ("agent", "I will give him that message."),
    ]
    invoice = [
        ("caller", "Could you send me the invoice?"),
        ("agent", "Sure, I'll email you the invoice."),
    ]
    asked = hold_call(app, tell, sid="1", caller=CALLER)
    request, promise = follow(app.work, asked.conversation)
    owed = hold_call(app, invoice, sid="2", caller=CALLER, is_handed_in=True)
    follow(app.work, owed.conversation)
    copies = [
        replace(request, id=new_id(), key=new_id(), due="2026-02-14") for _ in range(49)
    ]
    app.work.followups.record(copies, [], set(), app.clock.now())
    app.corrections.correct("due", promise.id, "2026-02-14", "me")
    pages = [
        client.get(f"/followups?{TO_DO_QUERY}&before={skip}").text for skip in (0, 50)
    ]
    count = sum(page.count('<li class="item') for page in pages)
    assert sum(page.count('aria-label="Done: ') for page in pages) == count
    assert f"to do <small>{count}</small>" in pages[0]
    assert f"To do <small>{count}</small>" in client.get("/").text
    assert f"<b>{count} to do</b>" in client.get("/people").text
    assert client.get("/api/statistics").json()["to_do"] == count
    listed = client.get("/api/followups?state=to do&limit=40").json()
    rest = client.get(f"/api/followups?state=to do&before={listed['next']}").json()
    assert len(listed["followups"]) + len(rest["followups"]) == count


def test_a_call_that_was_read_says_what_is_to_do(app: App, client: TestClient) -> None:
    call = hold_call(app, [("caller", "Please order paper.")])
    (row,) = follow(app.work, call.conversation)
    for path in ("/calls", f"/calls/{call.id}"):
        assert "<b>1 to do</b>" in client.get(path).text
    decide(client, "done", [row.id])
    for path in ("/calls", f"/calls/{call.id}"):
        assert "to do</b>" not in client.get(path).text


def test_a_row_says_what_a_sink_did_and_what_a_person_must_do(app: App) -> None:
    (row,) = hold_requests(app, "plumber")
    told = {
        sinks: replace(row, state="done", sink=sinks).told_standing
        for sinks in ("tasks", "tasks+message+webhook", "agent", "tasks+person", "")
    }
    assert told == {
        "tasks": "only written down: a person must do it",
        "tasks+message+webhook": "passed on by message and webhook",
        "agent": "done by agent",
        "tasks+person": "done by a person",
        "": "done",
    }


def test_what_is_hidden_belongs_to_a_row_and_stands_in_no_list(
    app: App, client: TestClient
) -> None:
    said = [
        ("caller", "Please send the crew to the pump house."),
        ("agent", "Which code opens the gate?"),
        ("caller", "The gate code is 4711."),
        ("agent", "They will come on Friday."),
        ("caller", "I have a daughter in Porto, she was born in 1958."),
    ]
    call = hold_call(app, said, caller=CALLER)
    extractor = Extractor(app.settings, app.facts, app.clock)
    told = [
        draft("The gate code is 4711", visibility="secret", turns=(3,)),
        draft("I have a daughter in Porto", visibility="private", turns=(5,)),
    ]
    extractor.extract(call, reader_of(*told))
    rerun(app.step_runner, call.id, "summary")
    (row, *_) = follow(app.work, call.conversation)
    for path in ("/", "/followups", "/calls", "/people"):
        page = client.get(path).text
        assert "4711" not in page
        assert "Porto" not in page
    assert "(private)" in client.get("/calls").text
    page = client.get(f"/followups/{row.id}").text
    assert "Which code opens the gate?" in page
    assert ">a secret</a>" in page
    assert "4711" not in page


def list_corrections(app: App) -> list[Correction]:
    return app.corrections.store.page(limit=50)


def test_one_form_corrects_every_field_that_was_changed(
    app: App, client: TestClient
) -> None:
    (row,) = hold_requests(app, "plumber")
    form = {
        "csrf": csrf_of(client.get(f"/followups/{row.id}").text),
        "title": "Call the plumber about the tap",
        "kind": row.request_kind,
        "due": row.due or "",
        "person": "Sam",
    }
    client.post(f"/followups/{row.id}/edit", data=form)
    made = app.corrections.store.page(limit=9)
    assert {one.what for one in made} == {"request", "person"}
    assert "Sam" in client.get(f"/followups/{row.id}").text


def test_an_unclear_reading_is_answered_beside_its_words(
    app: App, client: TestClient
) -> None:
    first, second = hold_requests(app, "plumber", "painter")
    for row in (first, second):
        app.work.followups.change_state(
            row.id,
            FollowUpTransition("unclear", "test"),
            app.clock.now(),
            only_from=("held",),
        )
    page = client.get("/followups/unclear").text
    assert "2 to answer" in page
    assert "Please call the plumber by Friday." in page
    assert 'data-key="y"' in page
    assert 'data-key="n"' in page
    back = "/followups/unclear"
    assert decide(client, "yes", [first.id], back=back).headers["location"] == back
    assert decide(client, "withdraw", [second.id], back=back).status_code == 303
    assert app.work.followups.get(first.id).state == "held"
    assert app.work.followups.get(second.id).state == "withdrawn"
    assert "The reader was sure" in client.get(back).text


def test_the_front_page_and_the_page_work_count_the_same_as_waiting(
    app: App, client: TestClient
) -> None:
    assert "All is well" in client.get("/").text
    hold_requests(app, *(f"number {number}" for number in range(7)))
    front = client.get("/").text
    assert "All is well" not in front
    assert "To decide <small>7</small>" in front
    link = re.search(r'href="([^"]+)">7 items wait for you', front)
    assert link
    assert f'href="{link[1]}">to decide <small>7</small>' in (
        client.get("/followups").text
    )
    assert client.get(unescape(link[1])).text.count('<li class="item pick"') == 7


def test_the_tabs_count_and_their_addresses_filter(
    app: App, client: TestClient
) -> None:
    hold_requests(app, *(f"number {number}" for number in range(17)))
    page = client.get("/followups").text
    assert 'href="/followups?state=held">to approve <small>17</small>' in page
    assert page.count('<li class="item pick"') == 15
    assert "All of “to approve”" in page
    assert client.get("/followups?state=held").text.count('<li class="item pick"') == 17
    assert "Nothing here" in client.get("/followups?state=failed&state=broken").text
    assert client.get("/followups?state=nonsense").status_code == 422
    started = make_call(caller=CALLER).started_at
    assert f"{started:%H:%M}</a>" in page
