"""What is past its time goes, kind by kind, out of every place; the archive stays proven and
the rest stays as it was.
"""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, text, update

from aftercall.app import App
from aftercall.db.tables import (
    answers,
    calls,
    documents,
    fact_occurrences,
    facts,
    passages,
    recordings,
    steps,
)
from aftercall.errors import NotFound
from aftercall.journal.verify import verify_archive
from aftercall.journal.view import call_json
from aftercall.model.briefing import KnownCaller
from aftercall.model.calls import Call, Turn
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS
from aftercall.privacy.retention import KINDS
from aftercall.settings import Settings
from fakes import VirtualClock, make_call
from opened_apps import OpenApp

DAYS = {
    "recordings_days": 90,
    "transcripts_days": 30,
    "facts_days": 30,
    "documents_days": 30,
}
CALLER = "+15550142"


def open_with(
    open_app: OpenApp, settings: Settings, clock: VirtualClock, **retention: Any
) -> App:
    return open_app(
        Settings.model_validate(
            settings.model_dump(exclude={"briefing"}) | {"retention": retention}
        ),
        clock,
    )


def take_in(app: App, word: str, sid: str) -> Call:
    said = [
        ("agent", "Hello!"),
        ("caller", f"I prefer {word} tea in the evening."),
        ("agent", "Noted."),
        ("caller", f"My sister {word.capitalize()} lives in Utrecht."),
    ]
    call = make_call(said, caller=CALLER, sid=sid, started_at=app.clock.now())
    row, _ = app.journal.ingest(call)
    app.journal.add_addendum(
        row,
        [Turn(seq=5, speaker="caller", text=f"And {word} bread.", at=call.ended_at)],
    )
    for name in STEPS:
        app.step_runner.run(call.id, name)
    app.steps.add_waiting([call.id], list(STEPS), app.clock.now())
    app.steps.mark_started({call.id: 1})
    app.work.runs.mark_running(call.conversation, 1, app.clock.now())
    app.work.runs.finish(call.conversation, 1, "done", "", app.clock.now())
    return call


def record(app: App, call: Call) -> str:
    path = f"recordings/{call.id}.wav"
    file = app.settings.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"sound of " + call.id.encode())
    row = {
        "id": f"r{call.id}",
        "call_id": call.id,
        "carrier": "twilio",
        "sid": call.sid,
        "state": "here",
        "path": path,
        "reason": "",
    }
    with app.database.write() as connection:
        connection.execute(insert(recordings), row | {"changed_at": app.clock.now()})
        kept = {
            "key": call.id,
            "call_id": call.id,
            "answer": "{}",
            "input_tokens": 1,
            "output_tokens": 1,
            "kept_at": app.clock.now(),
        }
        connection.execute(insert(answers), kept)
    return path


def found(app: App, word: str) -> list[str]:
    """Tables, full text and files that still hold the word."""
    places = []
    with app.database.read() as connection:
        for table in (facts, fact_occurrences, passages, documents, answers):
            places += [
                table.name
                for row in connection.execute(select(table))
                if word in str(tuple(row)).lower()
            ]
        if app.database.dialect == "sqlite":
            query = text(
                "SELECT count(*) FROM passages_fts WHERE passages_fts MATCH :word"
            )
            places += ["passages_fts"] * int(
                connection.execute(query, {"word": f'"{word}"'}).scalar_one()
            )
    return places + [
        name
        for name in app.archive.place.list_names()
        if word.encode() in app.archive.place.read(name)
    ]


def test_by_default_only_old_recordings_go(app: App, clock: VirtualClock) -> None:
    call = take_in(app, "juniper", "c1")
    path = record(app, call)
    clock.move(timedelta(days=400).total_seconds())
    assert {
        kind: len(items) for kind, items in app.retention.find_expired().items()
    } == {kind: int(kind == "recordings") for kind in KINDS}
    before = found(app, "juniper")
    app.retention.apply()
    assert not (app.settings.home / path).exists()
    assert found(app, "juniper") == before != []
    assert not any(app.retention.find_expired().values())


@pytest.mark.parametrize("action", ["delete", "archive"])
def test_what_is_past_its_time_is_gone_from_every_place_and_the_rest_stays(
    settings: Settings, clock: VirtualClock, action: str, open_app: OpenApp
) -> None:
    app = open_with(
        open_app, settings, clock, **DAYS, action=dict.fromkeys(KINDS, action)
    )
    old = take_in(app, "juniper", "c1")
    path = record(app, old)
    clock.move(timedelta(days=100).total_seconds())
    new = take_in(app, "cardamom", "c2")
    kept = found(app, "cardamom")
    would = app.retention.find_expired()
    assert {kind: len(items) for kind, items in would.items()} == {
        "recordings": 1,
        "transcripts": 1,
        "facts": 2,
        "documents": 1,
    }
    assert found(app, "juniper") != []  # a look changes nothing
    assert app.retention.apply() == would
    assert found(app, "juniper") == []
    assert found(app, "cardamom") == kept
    assert verify_archive(app.archive.place, app.store).faults == ()
    assert not (app.settings.home / path).exists()
    retired = [
        file for file in (app.settings.home / "retired").rglob("*") if file.is_file()
    ]
    # a recording, a call with its addendum, two facts, a document
    assert len(retired) == (0 if action == "delete" else 6)
    # USER.md is its owner's to edit
    told = replace(app.composer.preview(CALLER), caller=KnownCaller())
    assert "juniper" not in str(told) + str(
        app.recall.find("main", CALLER, "verified", "juniper tea")
    )
    assert call_json(app.store, app.archive, app.store.get(old.id))["turns"] == []
    with pytest.raises(NotFound, match="past their time"):
        rerun(app.step_runner, old.id, "facts")
    assert app.journal.ingest(old)[1] is False  # a late webhook does not bring it back
    assert not any(app.retention.apply().values())
    app.eraser.erase(CALLER)
    assert [
        file for file in (app.settings.home / "retired").rglob("*") if file.is_file()
    ] == []
    assert app.store.list_page(limit=5) == []
    assert new.id != old.id


def test_what_was_archived_can_be_read_and_secrets_stay_sealed(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    app = open_with(
        open_app, settings, clock, facts_days=30, action={"facts": "archive"}
    )
    call = make_call(
        [
            ("agent", "Hello!"),
            ("caller", "My PIN is 4471."),
            ("agent", "Noted."),
            ("caller", "My brother is Carl."),
        ],
        caller=CALLER,
    )
    app.journal.ingest(call)
    app.step_runner.run(call.id, "facts")
    clock.move(timedelta(days=31).total_seconds())
    app.retention.apply()
    kept = [
        file.read_text()
        for file in (app.settings.home / "retired" / "facts").rglob("*.json")
    ]
    assert any("Carl" in json.loads(one)["content"] for one in kept)
    assert "4471" not in "".join(kept)


def test_a_fact_that_is_said_again_stays(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    app = open_with(open_app, settings, clock, facts_days=30)
    take_in(app, "juniper", "c1")
    clock.move(timedelta(days=20).total_seconds())
    take_in(app, "juniper", "c2")
    clock.move(timedelta(days=20).total_seconds())
    assert app.retention.apply()["facts"] == []


def test_facts_outlive_the_words_they_rest_on_and_a_rebuild(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    app = open_with(open_app, settings, clock, transcripts_days=30)
    take_in(app, "juniper", "c1")
    clock.move(timedelta(days=31).total_seconds())
    take_in(app, "cardamom", "c2")
    app.retention.apply()
    believed = sorted(
        fact.content
        for fact in app.facts.list_recent(app.facts.get(_any_fact(app)).key, 20)
    )
    assert any("juniper" in content for content in believed)
    made = app.rebuilder.rebuild()
    assert (made.calls, made.failed) == (1, ())
    assert (
        sorted(
            fact.content
            for fact in app.facts.list_recent(app.facts.get(_any_fact(app)).key, 20)
        )
        == believed
    )
    assert verify_archive(app.archive.place, app.store).faults == ()


def _any_fact(app: App) -> str:
    with app.database.read() as connection:
        return str(connection.execute(select(facts.c.id)).scalars().first())


def test_a_call_whose_work_is_not_done_stays(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    app = open_with(open_app, settings, clock, transcripts_days=30)
    row, _ = app.journal.ingest(make_call(caller=CALLER))
    clock.move(timedelta(days=31).total_seconds())
    assert app.retention.find_expired()["transcripts"] == []
    with app.database.read() as connection:
        assert (
            connection.execute(
                select(calls.c.archive_name).where(calls.c.id == row.live.id)
            ).scalar()
            is not None
        )


def test_answers_and_traces_go_after_their_time_and_what_they_cost_stays(
    open_app: OpenApp, settings: Settings, clock: VirtualClock
) -> None:
    app = open_with(open_app, settings, clock, answers_days=30)
    old = take_in(app, "mint", "S1")
    clock.move(timedelta(days=20).total_seconds())
    new = take_in(app, "rose", "S2")
    with app.database.write() as connection:
        connection.execute(update(steps).values(trace={"reader": "m"}, cost=0.5))
    for call in (old, new):
        record(app, call)
    clock.move(timedelta(days=11).total_seconds())
    assert app.retention.expire_answers() == 1
    assert app.retention.expire_answers() == 0
    with app.database.read() as connection:
        kept = connection.execute(select(answers.c.call_id)).scalars().all()
        traced = select(steps.c.call_id).where(steps.c.trace.is_not(None)).distinct()
        assert connection.execute(traced).scalars().all() == [new.id]
        paid = select(steps.c.call_id).where(steps.c.cost == 0.5).distinct()
        assert set(connection.execute(paid).scalars()) == {old.id, new.id}
    assert kept == [new.id]
    assert all(step.trace is None for step in app.steps.of_call(old.id))
