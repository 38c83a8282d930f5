"""Programs elsewhere are told what happened: every event once, in an order without gaps."""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol

import pytest
from pydantic import SecretStr
from sqlalchemy import delete, func, select
from standardwebhooks import Webhook, WebhookVerificationError

from aftercall.app import App
from aftercall.db.event_log import EventLog, LoggedEvent, events, write_events
from aftercall.db.tables import deliveries
from aftercall.errors import RefusedInput
from aftercall.model.followups import Delivery
from aftercall.privacy.store import erase_rows, load_subject
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.providers import EventSettings
from aftercall.work import deliver
from aftercall.work.events import PAUSES_S, Webhooks
from fakes import START, VirtualClock
from followup_work import RecordingSink, follow, hold_call, with_sink
from opened_apps import OpenApp
from step_stages import take_call
from waiting import until
from webhook_receiver import Receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CALLER = "+15550100"
DAY_S = 86_400.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


class TellingApp(Protocol):
    def __call__(self, *, runs: bool = False, **more: Any) -> App:
        """An app with a webhook and these settings of events; `runs` on real time."""
        ...


@pytest.fixture
def tell(
    settings: Settings, clock: VirtualClock, open_app: OpenApp, receiver: Receiver
) -> TellingApp:
    def open_telling(*, runs: bool = False, **more: Any) -> App:
        hooks = EventSettings(
            webhooks={"crm": SecretStr(receiver.url)},
            secrets={"crm": SecretStr(SECRET)},
            **{"allow_private": True} | more,
        )
        told = settings.model_copy(update={"events": hooks})
        return open_app(told, None if runs else clock)

    return open_telling


def read_log(app: App) -> list[dict[str, Any]]:
    app.webhooks.publish()
    return [app.webhooks.view.to_json(event) for event in app.webhooks.log.page()]


def list_types(app: App) -> list[str]:
    return [event["type"] for event in read_log(app)]


def write_event(app: App, subject: str, caller: str = CALLER) -> None:
    with app.database.write() as connection:
        event = LoggedEvent("fact.changed", subject, app.clock.now(), "main", caller)
        write_events(connection, [event])


def list_deliveries(hooks: Webhooks) -> list[str]:
    return [key for key, _, _ in hooks.list_due()]


def send_all(app: App, attempt: int = 1) -> list[float | None]:
    """The due deliveries, as the workflow sends them; the pause that each asks for."""
    pauses = []
    for key in list_deliveries(app.webhooks):
        app.webhooks.mark_started(key)
        pauses.append(deliver.send_event(app.work, key, attempt))
    return pauses


def get_only(app: App) -> Delivery:
    with app.database.read() as connection:
        key = connection.execute(select(deliveries.c.key)).scalar_one()
    return app.work.deliveries.get(key)


def test_a_call_tells_that_it_was_sealed_and_then_its_summary(app: App) -> None:
    call = take_call(app, CALLER, "I live in Porto.", "I prefer tea.", "Thanks.")
    told = read_log(app)
    sealed = next(event for event in told if event["type"] == "call.sealed")
    assert told[0] == sealed
    assert (sealed["data"]["id"], sealed["data"]["caller"]) == (call.id, CALLER)
    summary = next(event for event in told if event["type"] == "call.summarised")
    assert summary["data"]["summary"]
    facts = [event["data"] for event in told if event["type"] == "fact.changed"]
    assert any("Porto" in fact["content"] for fact in facts)


def test_requests_and_promises_tell_what_becomes_of_them(app: App) -> None:
    call = hold_call(app)
    desk = with_sink(app, RecordingSink(), routes={"issue": "github"})
    rows = follow(desk, call.conversation)
    told = read_log(app)
    for row in rows:
        types = [one["type"] for one in told if one["data"]["id"] == row.id]
        assert types[:1] == (["request.created"] if row.kind == "request" else [])
        ended = {"held": "request.held", "done": "request.done"}.get(row.state)
        assert ended is None or row.kind == "promise" or types[-1] == ended
    assert {"request.created", "request.done"} <= {one["type"] for one in told}


def test_a_fact_that_is_said_again_is_no_news(app: App, clock: VirtualClock) -> None:
    take_call(app, CALLER, "I live in Porto.", "I prefer tea.", "Thanks.")
    before = list_types(app).count("fact.changed")
    clock.move(DAY_S)
    take_call(app, CALLER, "I live in Porto.", "I prefer tea.", "Thanks.")
    assert before >= 1
    assert list_types(app).count("fact.changed") == before


def test_what_was_confided_is_told_to_nobody(app: App) -> None:
    take_call(
        app,
        CALLER,
        "The wifi password is sunflowerseven. And I like tea.",
        "Yes.",
        "Thanks.",
    )
    told = json.dumps(read_log(app))
    assert "call.summarised" in told
    assert "sunflowerseven" not in told


def test_a_summary_waits_until_its_secrets_are_known(app: App) -> None:
    call = hold_call(app, [("agent", "Hello!"), ("caller", "I live in Porto.")])
    now, names = app.clock.now(), ("summary", "facts")
    app.steps.add_waiting([call.id], names, now)
    app.step_runner.run(call.id, "summary")
    assert list_types(app) == ["call.sealed"]
    app.step_runner.run(call.id, "facts")
    assert "call.summarised" in list_types(app)


def test_an_event_that_is_committed_late_comes_late_and_is_not_skipped(
    app: App,
) -> None:
    if app.database.dialect == "sqlite":
        pytest.skip("has one writer at a time")
    with app.database.write() as slow:
        event = LoggedEvent("fact.changed", "slow", START, "main", CALLER)
        write_events(slow, [event])
        write_event(app, "quick")
        assert [one["data"]["id"] for one in read_log(app)] == ["quick"]
        last = app.webhooks.log.page()[-1].id
    app.webhooks.publish()
    (late,) = app.webhooks.log.page(after=last)
    assert late.subject == "slow"
    assert late.id > last


def test_what_is_rolled_back_is_not_told(app: App) -> None:
    event = LoggedEvent("fact.changed", "F1", START, "main", CALLER)
    with suppress(ZeroDivisionError), app.database.write() as connection:
        write_events(connection, [event])
        _ = 1 / 0
    assert read_log(app) == []


def test_a_reader_goes_on_where_it_stopped(app: App) -> None:
    for number in range(5):
        write_event(app, f"F{number}")
    app.webhooks.publish()
    seen: list[str] = []
    after = ""
    while page := app.webhooks.log.page(after=after, limit=2):
        seen += [event.subject for event in page]
        after = page[-1].id
    assert seen == [f"F{number}" for number in range(5)]
    with pytest.raises(RefusedInput, match="is not the id of an event"):
        app.webhooks.log.page(after="5")


def test_ids_go_on_when_the_log_was_emptied(app: App, clock: VirtualClock) -> None:
    write_event(app, "F1")
    first = read_log(app)[0]["id"]
    clock.move(1)
    with app.database.write() as connection:
        connection.execute(delete(events))
    write_event(app, "F2")
    assert read_log(app)[0]["id"] > first


def test_the_log_is_kept_for_as_long_as_the_settings_say(
    clock: VirtualClock, tell: TellingApp
) -> None:
    told = tell()
    write_event(told, "F1")
    told.webhooks.publish()
    clock.move(31 * DAY_S)
    write_event(told, "F2")
    told.webhooks.publish()
    told.webhooks.log.delete_before(clock.now() - timedelta(days=30))
    assert [event.subject for event in told.webhooks.log.page()] == ["F2"]
    assert len(list_deliveries(told.webhooks)) == 1


def test_a_webhook_is_signed_as_standard_webhooks_want_it(
    app: App, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tell: TellingApp
) -> None:
    told = tell()
    write_event(told, "F1")
    told.webhooks.publish()
    assert send_all(told) == [None]
    (posted,) = receiver.posted
    judge = Webhook(SECRET)
    monkeypatch.setattr(judge, "_Webhook__verify_timestamp", lambda _: app.clock.now())
    event = judge.verify(posted.body, posted.headers)
    assert (event["type"], event["data"]["id"]) == ("fact.changed", "F1")
    assert posted.headers["webhook-id"] == event["id"]
    with pytest.raises(WebhookVerificationError):
        judge.verify(posted.body + b" ", posted.headers)
    assert get_only(told).state == "done"


def test_a_webhook_gets_the_events_it_asked_for(
    receiver: Receiver, tell: TellingApp
) -> None:
    told = tell(only={"crm": "call.sealed"})
    take_call(told, CALLER, "I live in Porto.", "I prefer tea.", "Thanks.")
    told.webhooks.publish()
    send_all(told)
    types = [json.loads(posted.body)["type"] for posted in receiver.posted]
    assert types == ["call.sealed"]


def test_a_webhook_that_fails_is_tried_for_more_than_a_day_and_then_waits(
    receiver: Receiver, tell: TellingApp
) -> None:
    told = tell()
    receiver.answers.extend([503, 404, 0] + [500] * 6)
    write_event(told, "F1")
    told.webhooks.publish()
    pauses = send_all(told)
    key = get_only(told).key
    while pauses[-1] is not None:
        assert get_only(told).state == "waiting"
        pauses.append(deliver.send_event(told.work, key, len(pauses) + 1))
    assert pauses == [*PAUSES_S, None]
    assert sum(PAUSES_S) > DAY_S
    (dead,) = told.work.deliveries.dead()
    assert (dead.sink, dead.attempts) == ("events.crm", len(PAUSES_S) + 1)
    assert told.report_health().counts.dead == 1


def test_a_dead_event_is_sent_again_under_its_old_id(
    receiver: Receiver, tell: TellingApp
) -> None:
    told = tell()
    receiver.answers.append(410)
    write_event(told, "F1")
    told.webhooks.publish()
    assert send_all(told) == [None]
    (dead,) = told.work.deliveries.dead()
    assert deliver.resend(told.work, dead.key).state == "due"
    assert send_all(told) == [None]
    first, again = receiver.posted
    assert first.headers["webhook-id"] == again.headers["webhook-id"]
    assert get_only(told).state == "done"


def test_a_webhook_never_posts_into_our_own_network(
    receiver: Receiver, tell: TellingApp
) -> None:
    told = tell(allow_private=False)
    write_event(told, "F1")
    told.webhooks.publish()
    send_all(told)
    (dead,) = told.work.deliveries.dead()
    assert "not public" in dead.reason
    assert receiver.posted == []


def test_a_webhook_that_was_removed_is_given_up(app: App, tell: TellingApp) -> None:
    told = tell()
    write_event(told, "F1")
    told.webhooks.publish()
    assert app.webhooks.fail_removed() == 1
    assert [one.reason for one in app.work.deliveries.dead()] == [
        "is not set up any more"
    ]


def test_erasing_a_caller_erases_their_events(app: App, tell: TellingApp) -> None:
    told = tell()
    take_call(told, CALLER, "I live in Porto.", "I prefer tea.", "Thanks.")
    write_event(told, "F2", caller="+15550111")
    told.webhooks.publish()
    send_all(told)
    with app.database.write() as connection:
        erase_rows(connection, load_subject(app.database, CALLER))
    assert [event.caller for event in app.webhooks.log.page()] == ["+15550111"]
    with app.database.read() as connection:
        count = connection.execute(select(func.count()).select_from(deliveries))
        assert count.scalar_one() == 1


def test_an_event_whose_subject_is_gone_says_so(app: App) -> None:
    write_event(app, "F1")
    assert read_log(app)[0]["data"] == {"id": "F1", "is_deleted": True}


def test_two_publishers_give_every_event_one_id(app: App) -> None:
    write_event(app, "F1")
    other = EventLog(app.database)
    published: list[LoggedEvent] = []
    other.publish(app.clock.now(), lambda _, rows: published.extend(rows))
    assert len(published) == 1
    assert app.webhooks.publish() == 0


async def test_the_engine_tries_again_after_a_pause(
    receiver: Receiver, tell: TellingApp
) -> None:
    told = tell(runs=True)
    receiver.answers.append(503)
    write_event(told, "F1")
    async with running(told):
        await until(lambda: get_only(told).state == "done")
    ids = [posted.headers["webhook-id"] for posted in receiver.posted]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert get_only(told).attempts == 2
