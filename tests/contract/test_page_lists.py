"""The lists of the pages, on both databases: who called last comes first, whoever called most."""

from datetime import timedelta

from aftercall.app import App
from aftercall.web.page_store import CallFilter, PageStore
from fakes import START, make_call, make_live_call

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
