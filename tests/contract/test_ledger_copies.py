"""Object storage alone gives the briefings back: what became of requests, and corrections too."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select

from aftercall.app import App, build
from aftercall.briefing.render import render
from aftercall.db.event_log import events
from aftercall.db.tables import deliveries, followup_history, followups
from aftercall.errors import CallErased, SinkRefused
from aftercall.journal.journal import ingest_call
from aftercall.memory.fact_store import FactFilter
from aftercall.model.calls import Call
from aftercall.model.facts import Fact, MemoryKey
from aftercall.model.followups import FollowUp
from aftercall.postcall.steps import list_steps
from aftercall.settings import Settings
from aftercall.work.context import WorkContext
from aftercall.work.deliver import approve
from aftercall.work.plan import REBUILT
from fakes import VirtualClock, make_call
from followup_work import RecordingSink, attempt, follow, with_sink
from opened_apps import OpenApp
from s3_server import S3Server

ROSA, TOM = "+15550100", "+15550101"
ME = "me"


@pytest.fixture
def stored(
    settings: Settings, s3: S3Server, clock: VirtualClock, open_app: OpenApp
) -> App:
    in_bucket = settings.model_copy(update={"archive": s3.make_bucket()})
    return open_app(in_bucket, clock)


def desk_of(app: App, *faults: Exception, verdict: str = "do") -> WorkContext:
    """Follow-up work whose tasks leave the machine."""
    policy = dict.fromkeys(("verified", "known", "unknown"), verdict)
    sink = RecordingSink("github", *faults)
    return with_sink(app, sink, routes={"task": "github"}, policy=policy)


def take_call(
    app: App, desk: WorkContext, said: str, caller: str | None = ROSA, **fields: Any
) -> Call:
    """A call, an hour after the one before, with everything that follows it."""
    assert isinstance(app.clock, VirtualClock)
    call = make_call(
        [
            ("agent", "Hello!"),
            ("caller", said),
            ("agent", "Noted."),
            ("caller", "Bye."),
        ],
        caller=caller,
        verified=caller is not None,
        started_at=app.clock.now(),
        **fields,
    )
    app.clock.move(3600)
    app.journal.ingest(call)
    app.step_runner.run_by_hand(call.id, list_steps(app.step_runner.context), "")
    follow(desk, call.conversation)
    return call


def copy_all(app: App) -> None:
    assert isinstance(app.clock, VirtualClock)
    app.clock.move(3600)
    app.archive.place.upload_waiting()
    assert app.ledger_copies
    app.ledger_copies.copy_changed()


@pytest.fixture
def rebuilt(stored: App, clock: VirtualClock, open_app: OpenApp, tmp_path: Path) -> Any:
    def rebuild() -> App:
        """Another app, made from nothing but the bucket and the key."""
        home = tmp_path / "new"
        home.mkdir()
        key = (stored.settings.home / "secret.key").read_bytes()
        (home / "secret.key").write_bytes(key)
        empty = Settings(home=home, archive=stored.settings.archive)
        build(empty, clock, purpose="rebuild").close()
        other = open_app(empty, clock)
        made = other.rebuilder.rebuild()
        assert (made.failed, made.undone) == ((), ())
        other.corrections.write_pending()
        return other

    return rebuild


def brief(app: App, caller: str) -> str:
    return render(app.composer.preview(caller, is_verified=True), app.settings.zone)


def list_rows(app: App) -> list[FollowUp]:
    return app.work.followups.page(limit=50)


def list_facts(app: App) -> list[Fact]:
    key = MemoryKey("main", ROSA)
    return app.facts.page(FactFilter(key=key, include_retired=True))


def list_copies(app: App, s3: S3Server) -> list[str]:
    keys = s3.list_keys(app.settings.archive)
    return [key for key in keys if key.startswith(("ledger/", "corrections/"))]


def test_what_became_of_each_request_is_told_as_before(
    stored: App, rebuilt: Any
) -> None:
    desk = desk_of(stored)
    take_call(stored, desk, "Please order ten boxes of paper.")
    careful = desk_of(stored, verdict="hold")
    held = take_call(stored, careful, "Please order a new printer.", TOM)
    (waiting,) = stored.work.followups.of_conversation(held.conversation)
    assert waiting.state == "held"
    approve(desk, waiting.id, ME)
    attempt(desk, waiting.id)
    take_call(stored, desk, "Please order a catalogue.", None)  # a withheld number
    refusing = desk_of(stored, SinkRefused("no such repository"))
    take_call(stored, refusing, "Could you order a new chair?", TOM)
    copy_all(stored)
    other = rebuilt()
    assert list_rows(other) == list_rows(stored)
    assert {row.state for row in list_rows(other)} == {"done", "failed"}
    for row in list_rows(stored):
        history = other.work.followups.history(row.id)
        assert history == stored.work.followups.history(row.id)
        sent = other.work.deliveries.of_followup(row.id)
        assert sent == stored.work.deliveries.of_followup(row.id)
    for caller in (ROSA, TOM):
        assert brief(other, caller) == brief(stored, caller)
    assert "number 41" in brief(other, ROSA)


def test_what_was_delivered_and_then_taken_back_stays_so(
    stored: App, rebuilt: Any
) -> None:
    desk = desk_of(stored)
    first = take_call(stored, desk, "Please order ten boxes of paper.")
    take_call(
        stored,
        desk,
        "I changed my mind, please do not order the paper.",
        conversation=first.conversation,
    )
    before = list_rows(stored)
    assert [row.state for row in before if row.kind == "request"] == ["done"]
    copy_all(stored)
    other = rebuilt()
    assert list_rows(other) == before
    assert brief(other, ROSA) == brief(stored, ROSA)


def test_what_people_put_right_is_in_the_briefings_of_the_rebuilt_database(
    stored: App, rebuilt: Any
) -> None:
    desk = desk_of(stored)
    said = "This is Rosa Lind. My brother is Carl. Please order ten boxes of paper."
    call = take_call(stored, desk, said)
    (asked,) = stored.work.followups.of_conversation(call.conversation)
    stored.corrections.correct("request", asked.id, "Order ten boxes of card", ME)
    stored.corrections.mark_done(asked.id, ME)
    stored.corrections.correct("name", ROSA, "Rosalind Lind", ME)
    undone = stored.corrections.correct("call_name", ROSA, "Lindy", ME)
    copy_all(stored)
    stored.corrections.undo(undone.id, ME)
    stored.corrections.write_pending()
    copy_all(stored)
    other = rebuilt()
    told = brief(other, ROSA)
    assert told == brief(stored, ROSA)
    assert "Rosalind Lind" in told
    assert "ten boxes of card" in told
    assert "Lindy" not in told
    before, after = (app.corrections.store.page(limit=9) for app in (stored, other))
    assert [one.id for one in after] == [one.id for one in before]
    # they stay in the bucket, and count when the call is read again
    copy_all(other)
    other.work.runs.make_due(call.conversation, other.clock.now())
    (again,) = follow(other.work, call.conversation)
    assert (again.title, again.standing) == ("Order ten boxes of card", "done")


def test_a_copy_from_before_the_delivery_delivers_nothing_again(
    stored: App, rebuilt: Any
) -> None:
    """The power went before the next copy: whether it was delivered is not known."""
    call = make_call([("caller", "Please order ten boxes of paper by Friday.")])
    stored.journal.ingest(call)
    stored.work.record_followups(call.conversation, 1)
    copy_all(stored)
    other = rebuilt()
    (row,) = list_rows(other)
    assert (row.state, row.reason) == ("done", REBUILT)
    with other.database.read() as connection:
        assert connection.execute(select(followups.c.queued)).scalars().all() == [None]
        assert connection.execute(select(deliveries)).all() == []
    assert other.work.runs.due(other.clock.now(), 0) == []


def test_a_leg_that_the_copy_does_not_know_is_read(stored: App, rebuilt: Any) -> None:
    desk = desk_of(stored)
    first = take_call(stored, desk, "Please order ten boxes of paper.")
    copy_all(stored)
    late = make_call(
        [("caller", "And please call the plumber.")],
        caller=ROSA,
        started_at=stored.clock.now(),
        conversation=first.conversation,
    )
    stored.journal.ingest(late)
    stored.clock.move(3600)  # type: ignore[attr-defined]
    stored.archive.place.upload_waiting()
    other = rebuilt()
    rows = {row.title: row for row in list_rows(other)}
    assert len(rows) == 2
    assert rows["Order ten boxes of paper"].sink == "github"
    assert rows["Call the plumber"].reason == REBUILT


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_an_erased_caller_leaves_no_copy(
    settings: Settings,
    clock: VirtualClock,
    open_app: OpenApp,
    s3: S3Server,
    *,
    is_encrypted: bool,
) -> None:
    archive = s3.make_bucket().model_copy(update={"encrypt": is_encrypted})
    app = open_app(settings.model_copy(update={"archive": archive}), clock)
    desk = desk_of(app)
    take_call(app, desk, "Please order ten boxes of paper.")
    take_call(app, desk, "Please order a new printer.", TOM)
    app.corrections.correct("name", ROSA, "Rosalind Lind", ME)
    copy_all(app)
    copies = list_copies(app, s3)
    assert len(copies) == 3
    held = b"".join(s3.send("GET", s3.path_of(archive, key)) for key in copies)
    assert (b"boxes" in held) is not is_encrypted
    app.eraser.erase(ROSA)
    (left,) = list_copies(app, s3)
    assert b"boxes" not in s3.send("GET", s3.path_of(archive, left))


def test_a_copy_made_while_the_caller_was_erased_is_removed_at_the_next_start(
    stored: App, s3: S3Server, clock: VirtualClock, open_app: OpenApp
) -> None:
    """The copying process died in between: only its object is left."""
    call = take_call(stored, desk_of(stored), "Please order ten boxes of paper.")
    copy_all(stored)
    (key,) = list_copies(stored, s3)
    body = s3.send("GET", s3.path_of(stored.settings.archive, key))
    stored.eraser.erase(ROSA)
    s3.send("PUT", s3.path_of(stored.settings.archive, key), body)
    assert call.conversation in key
    copy_all(open_app(stored.settings, clock))
    assert list_copies(stored, s3) == []


def test_an_erased_call_is_refused_by_the_rebuilt_database_too(
    stored: App, rebuilt: Any
) -> None:
    desk = desk_of(stored)
    call = take_call(stored, desk, "Please order ten boxes of paper.")
    take_call(stored, desk, "Please order a new printer.", TOM)
    stored.eraser.erase(ROSA)
    copy_all(stored)
    other = rebuilt()
    with pytest.raises(CallErased):
        ingest_call(other.journal, call)
    assert [row.caller for row in list_rows(other)] == [TOM]


def test_a_rebuild_tells_nobody_of_facts_that_replaced_others(
    stored: App, rebuilt: Any
) -> None:
    desk = desk_of(stored)
    take_call(stored, desk, "I live in Port Ellen.")
    take_call(stored, desk, "I live in Glasgow now.")
    assert not all(fact.is_active for fact in list_facts(stored))
    copy_all(stored)
    other = rebuilt()
    with other.database.read() as connection:
        told = connection.execute(select(events.c.type)).scalars().all()
    assert "fact.changed" not in told


def test_a_number_that_is_used_again_is_copied_all_the_same(
    stored: App, s3: S3Server
) -> None:
    """SQLite numbers a line like an erased one."""
    desk = desk_of(stored)
    take_call(stored, desk, "Please order ten boxes of paper.")
    copy_all(stored)
    with stored.database.write() as connection:
        connection.execute(delete(followup_history))
    call = take_call(stored, desk, "Please order a new printer.", TOM)
    copy_all(stored)
    assert any(call.conversation in key for key in list_copies(stored, s3))


def test_a_rebuild_that_was_cut_off_loses_no_correction(
    stored: App, s3: S3Server, clock: VirtualClock, open_app: OpenApp, tmp_path: Path
) -> None:
    take_call(stored, desk_of(stored), "This is Rosa Lind.")
    stored.corrections.correct("name", ROSA, "Rosalind Lind", ME)
    copy_all(stored)
    copies = list_copies(stored, s3)
    empty = Settings(home=tmp_path / "new", archive=stored.settings.archive)
    build(empty, clock, purpose="rebuild").close()  # it took the bucket over, and died
    copy_all(open_app(empty, clock))
    assert list_copies(stored, s3) == copies
