"""The lists of the pages, on both databases: who called last comes first, whoever called most."""

from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from aftercall.app import App
from aftercall.ids import new_id
from aftercall.web.page_store import CallFilter, PageStore
from fakes import START, make_call, make_live_call
from followup_work import follow, hold_call

BILL, ANNA, CARL = "+15550142", "+15550143", "+15550144"


def ring(app: App, caller: str | None, minute: int, source: str = "twilio") -> None:
    app.journal.ingest(
        make_call(
            caller=caller,
            sid=f"{source}-{minute}",
            source=source,
            started_at=START + timedelta(minutes=minute),
        )
    )


def test_people_come_by_their_last_call_each_once_and_with_all_their_calls(
    app: App,
) -> None:
    for minute, caller in enumerate([BILL, ANNA, BILL, None, CARL, BILL, ANNA]):
        ring(app, caller, minute)
    store = PageStore(app.database)
    assert [
        (person.caller, person.calls) for person in store.list_people(limit=10)
    ] == [
        (ANNA, 2),
        (BILL, 3),
        (CARL, 1),
    ]
    assert [person.last_at for person in store.list_people(limit=1)] == [
        START + timedelta(minutes=6)
    ]
    assert [person.caller for person in store.list_people(limit=1, offset=1)] == [BILL]
    assert store.list_people(limit=10, offset=3) == []


def test_two_calls_in_one_millisecond_are_one_person(app: App) -> None:
    ring(app, BILL, 1)
    ring(app, BILL, 1, source="vapi")
    assert [
        (person.caller, person.calls)
        for person in PageStore(app.database).list_people(limit=10)
    ] == [(BILL, 2)]


def test_every_line_that_calls_came_over_is_named_once(app: App) -> None:
    assert PageStore(app.database).list_sources() == []
    for minute, source in enumerate(["vapi", "twilio", "telnyx", "twilio"]):
        ring(app, BILL, minute, source)
    assert PageStore(app.database).list_sources() == ["telnyx", "twilio", "vapi"]


async def test_live_and_sealed_calls_are_told_apart(app: App) -> None:
    ring(app, BILL, 1)
    record = await app.journal.open(make_live_call(caller=ANNA, sid="live"))
    store = PageStore(app.database)
    assert store.list_live_ids() == [record.call.id]
    assert [
        row.live.caller for row in store.list_calls(CallFilter(state="live"), limit=5)
    ] == [ANNA]
    assert [
        row.live.caller for row in store.list_calls(CallFilter(state="sealed"), limit=5)
    ] == [BILL]
    await app.journal.seal(record, end_reason="caller_hung_up")
    assert store.list_live_ids() == []


def test_what_is_to_do_comes_in_the_order_in_which_it_can_still_be_saved(
    app: App,
) -> None:
    said = [("caller", "Please order paper.")]
    (row,) = follow(app.work, hold_call(app, said).conversation)
    zone = ZoneInfo("Australia/Sydney")
    now = datetime(2026, 2, 13, 9, tzinfo=zone)
    dues = (
        "2026-02-12T20:00:00.000Z",  # in Sydney the morning of the thirteenth
        "2026-02-13",
        "2026-02-12",
        "2026-02-12T01:00:00.000Z",
        "2026-01-02",
        "2026-02-13T20:00:00.000Z",
        "2026-02-14",
        None,
    )
    rows = [replace(row, id=new_id(), key=new_id(), due=due) for due in dues[::-1]]
    broken = replace(row, id=new_id(), key=new_id(), kind="promise", state="broken")
    app.corrections.mark_done(row.id, "me")
    app.work.followups.record([*rows, broken], [], set(), app.clock.now())
    store = PageStore(app.database)
    first, *others = store.list_to_do(now, limit=50)
    assert first.id == broken.id
    todays, late, coming = dues[:2], dues[2:5], dues[5:]
    listed = [one.due for one in others]
    assert set(listed[:2]) == set(todays)
    assert set(listed[2:4]) == set(late[:2])
    assert listed[4:] == [late[2], *coming]
    assert [one.id for one in store.list_to_do(now, limit=2, skip=7)] == [
        one.id for one in others[6:]
    ]
