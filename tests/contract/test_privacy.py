"""What is kept of a person can be handed out, and made again from the archive alone."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aftercall.app import App, build
from aftercall.db.tables import documents, fact_occurrences, facts, passages
from aftercall.errors import UNEXPECTED, ModelDeclined, RefusedInput
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import Call, parse_call_json
from aftercall.model.reading import FactDraft, KnownFact, ReadingResult, Summary
from aftercall.postcall.runner import rerun
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import VirtualClock, make_call
from opened_apps import OpenApp

CALLER = "+15550142"
TALKS = (
    (
        ("agent", "Hello!"),
        ("caller", "Hi, I'm Dana. I prefer to be called in the morning."),
        ("agent", "Noted."),
        ("caller", "My PIN is 4471."),
    ),
    (
        ("agent", "Hello!"),
        ("caller", "Actually I prefer to be called in the evening now."),
        ("agent", "Noted."),
        ("caller", "My brother is Carl."),
    ),
    (
        ("agent", "Hello!"),
        ("caller", "I prefer to be called in the evening."),
        ("agent", "I know."),
        ("caller", "Please call the plumber."),
    ),
)


def take_in(app: App) -> None:
    for number, said in enumerate(TALKS):
        row, _ = app.journal.ingest(make_call(said, caller=CALLER, sid=f"c{number}"))
        for step in ("summary", "profile", "facts", "index", "document"):
            app.step_runner.run(row.live.id, step)


def memory_of(app: App) -> dict[str, Any]:
    """Everything but ids, times of writing, and the sealed bytes of secrets, which differ each
    time by design.
    """
    with app.database.read() as connection:
        known = {row.id: row for row in connection.execute(facts.select())}
        named = {fact_id: row.identity for fact_id, row in known.items()}
        return {
            "facts": sorted(
                (
                    row.identity,
                    row.visibility,
                    row.is_active,
                    row.occurrence_count,
                    str(row.valid_from),
                    str(row.valid_until),
                    named.get(row.supersedes),
                )
                for row in known.values()
            ),
            "occurrences": sorted(
                (named[row.fact_id], row.call_id, row.first_turn, str(row.at))
                for row in connection.execute(fact_occurrences.select())
            ),
            "documents": sorted(
                (row.id, row.title, row.content)
                for row in connection.execute(documents.select())
            ),
            "passages": sorted(
                (row.kind, row.call_id, row.seq, row.text)
                for row in connection.execute(passages.select())
            ),
        }


def test_a_memory_made_anew_is_the_same(app: App) -> None:
    take_in(app)
    before = memory_of(app)
    assert len(before["facts"]) >= 3
    made = app.rebuilder.rebuild()
    assert (made.calls, made.adopted, made.failed) == (3, 0, ())
    assert memory_of(app) == before


def test_a_memory_is_made_from_the_archive_into_an_empty_database(
    tmp_path: Path, clock: VirtualClock, open_app: OpenApp
) -> None:
    first = build(Settings(home=tmp_path), clock)
    take_in(first)
    before = memory_of(first)
    first.close()
    second = open_app(
        Settings(
            home=tmp_path,
            database=DatabaseSettings(url=f"sqlite:///{tmp_path / 'other.db'}"),
        ),
        clock,
    )
    made = second.rebuilder.rebuild()
    assert (made.calls, made.adopted, made.failed) == (3, 3, ())
    assert memory_of(second) == before
    # what was asked for is not done a second time
    assert second.work.runs.due(clock.now(), 0) == []
    assert second.steps.list_due() == {}
    # nobody knows who answered
    assert all(
        second.store.is_handed_in(call_id)
        for call_id in second.store.list_sealed_files()
    )


class Halting(RulesReader):
    """Reads as rules do, but for what is asked of certain calls."""

    def __init__(
        self, summaries: dict[str, Exception], facts: dict[str, Exception]
    ) -> None:
        super().__init__()
        self._summaries, self._facts = summaries, facts

    def summarise(self, call: Call) -> ReadingResult[Summary]:
        if call.sid in self._summaries:
            raise self._summaries[call.sid]
        return super().summarise(call)

    def find_facts(
        self, call: Call, known: Sequence[KnownFact] = ()
    ) -> ReadingResult[tuple[FactDraft, ...]]:
        if call.sid in self._facts:
            raise self._facts[call.sid]
        return super().find_facts(call, known)


def test_a_step_that_fails_in_a_rebuild_shows_and_stops_no_other(app: App) -> None:
    take_in(app)
    before = memory_of(app)
    first, second, third = (
        row.live.id for row in reversed(app.store.list_page(limit=3))
    )
    reader = Halting(
        {"c0": ModelDeclined("will not answer")}, {"c1": ValueError("my PIN is 4471")}
    )
    made = replace(app, reader=reader).rebuilder.rebuild()
    told = {(left.call_id, left.step): left.reason for left in made.undone}
    assert (made.calls, made.failed) == (3, ())
    assert told.pop((first, "summary")) == "will not answer"
    assert told.pop((first, "document")).startswith("waits for the summary")
    assert told == {(second, "facts"): UNEXPECTED}
    states = {
        call_id: {step.name: step.state for step in app.steps.of_call(call_id)}
        for call_id in (first, second, third)
    }
    assert {name for name, state in states[first].items() if state == "failed"} == {
        "summary",
        "document",
    }
    assert {name for name, state in states[second].items() if state == "failed"} == {
        "facts"
    }
    assert set(states[third].values()) <= {"done", "skipped"}
    assert "running" not in {
        state for steps in states.values() for state in steps.values()
    }
    again = app.rebuilder.rebuild()
    assert (again.failed, again.undone) == ((), ())
    assert memory_of(app) == before


def test_what_a_rebuild_left_undone_is_done_by_running_it_again(app: App) -> None:
    take_in(app)
    before = memory_of(app)
    made = replace(
        app, reader=Halting({"c2": ModelDeclined("will not answer")}, {})
    ).rebuilder.rebuild()
    assert {left.step for left in made.undone} == {"summary", "document"}
    assert memory_of(app) != before
    steps = rerun(app.step_runner, made.undone[0].call_id)
    assert "failed" not in {step.state for step in steps}
    assert memory_of(app) == before


def test_an_export_is_whole_and_keeps_secrets_closed(app: App, tmp_path: Path) -> None:
    take_in(app)
    made = app.exporter.export(CALLER, tmp_path / "out")
    assert (made.calls, made.documents) == (3, 3)
    lines = [
        json.loads(line)
        for line in (tmp_path / "out" / "facts.jsonl").read_text().splitlines()
    ]
    assert len(lines) == made.facts >= 3
    assert all("4471" not in str(line) for line in lines)
    assert len(list((tmp_path / "out" / "calls").iterdir())) == 3
    revealed = app.exporter.export(CALLER, tmp_path / "open", reveal=True)
    assert "4471" in (revealed.folder / "facts.jsonl").read_text()
    assert [line.deed for line in app.audit.list_recent()] == ["exported", "exported"]


def test_calls_of_an_export_can_be_handed_in_elsewhere(
    app: App, tmp_path: Path
) -> None:
    take_in(app)
    made = app.exporter.export(CALLER, tmp_path / "out")
    for file in (made.folder / "calls").iterdir():
        assert parse_call_json(file.read_bytes()).caller == CALLER


def test_an_export_holds_what_every_agent_keeps(app: App, tmp_path: Path) -> None:
    call = make_call(TALKS[0], caller=CALLER, agent_id="sales")
    app.journal.ingest(call)
    for step in ("summary", "profile", "facts"):
        app.step_runner.run(call.id, step)
    made = app.exporter.export(CALLER, tmp_path / "out")
    assert "morning" in (made.folder / "facts.jsonl").read_text()
    page = made.folder / "pages" / "agent-sales" / "USER.md"
    assert "Dana" in page.read_text()


def test_an_export_overwrites_nothing(app: App, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(RefusedInput, match="not empty"):
        app.exporter.export(CALLER, tmp_path / "out")
