"""Summaries of calls that ended together, made before the durable engine hears of them, on both
databases.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event, select

from aftercall.app import App
from aftercall.db.tables import passages
from aftercall.memory.fact_store import FactStore
from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft, Reading, ReadingResult, Summary
from aftercall.postcall.ahead import sum_up_together
from aftercall.postcall.office import Office
from aftercall.postcall.shift import Shift
from aftercall.postcall.steps import names_for
from aftercall.testing import FakeReader, make_calls
from aftercall.workspace import files

SAID = (("agent", "Hello!"), ("caller", "Please mend the gutter."), ("agent", "Noted."))


class Rules(FakeReader):
    name = "rules"

    def __init__(self, stumbles_over: str = "") -> None:
        super().__init__(Reading(language="en", summary="About the gutter."))
        self._stumbles_over = stumbles_over

    def summarise(self, call: Call) -> ReadingResult[Summary]:
        if call.sid == self._stumbles_over:
            raise ValueError("over this one")
        return super().summarise(call)


def hold_calls(app: App, count: int = 3) -> list[Call]:
    calls = make_calls(count, SAID)
    for call in calls:
        app.journal.ingest(call)
    return calls


def at_work(app: App, **reader: str) -> Office:
    return replace(app, reader=Rules(**reader)).office


def summaries(app: App, calls: list[Call]) -> list[tuple[str, str, int]]:
    return [
        (step.name, step.state, step.attempts)
        for call in calls
        for step in app.steps.of_call(call.id)
    ]


def found(app: App) -> Counter[str]:
    with app.database.read() as connection:
        return Counter(
            connection.execute(
                select(passages.c.call_id).where(passages.c.kind == "summary")
            ).scalars()
        )


def page(app: App) -> str:
    return (app.settings.home / "workspace" / "CALLS.md").read_text()


def test_calls_that_ended_together_are_summed_up_in_one_edit_and_two_transactions(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = hold_calls(app)
    edits: list[Path] = []
    edit = files.edit

    def count(path: Path, change: files.Change) -> bool:
        edits.append(path)
        return edit(path, change)

    monkeypatch.setattr("aftercall.postcall.steps.files.edit", count)
    commits: list[object] = []
    event.listen(app.database.engine, "commit", commits.append)
    office = at_work(app)
    sum_up_together(office, [call.id for call in calls])
    assert summaries(app, calls) == [("summary", "done", 1)] * 3
    assert found(app) == {call.id: 1 for call in calls}
    assert [page(app).count(f"<!-- call: {call.id} -->") for call in calls] == [1] * 3
    assert len(edits) == 1
    assert len(commits) == 2  # whose they are, and how they ended
    sum_up_together(office, [call.id for call in calls])
    assert summaries(app, calls) == [("summary", "done", 1)] * 3
    assert found(app) == {call.id: 1 for call in calls}


def test_one_that_cannot_be_summed_up_is_left_to_its_own_step_and_keeps_no_other_back(
    app: App,
) -> None:
    first, second, third = calls = hold_calls(app)
    sum_up_together(
        at_work(app, stumbles_over=second.sid), [*(call.id for call in calls), "no such call"]
    )
    assert [len(app.steps.of_call(call.id)) for call in calls] == [1, 0, 1]
    assert set(found(app)) == {first.id, third.id}
    assert second.id not in page(app)


def test_what_could_not_be_entered_or_recorded_is_left_to_its_own_step(app: App) -> None:
    calls = hold_calls(app)
    (app.settings.home / "workspace" / "CALLS.md").mkdir(parents=True)
    sum_up_together(at_work(app), [call.id for call in calls])
    assert summaries(app, calls) == []
    assert found(app) == {}


async def test_the_other_steps_find_the_summary_made_and_the_call_read(app: App) -> None:
    (call,) = hold_calls(app, 1)
    reader = Rules()
    shift = Shift.of(replace(app, reader=reader).office)
    await shift.sum_up_ahead([call.id])
    await shift.take(call.id, names_for(shift.office.desk), 1)
    shift.end()
    states = {step.name: (step.state, step.attempts) for step in app.steps.of_call(call.id)}
    assert states["summary"] == states["document"] == states["index"] == ("done", 1)
    assert len(reader.calls) == 1


def test_a_summary_made_again_ahead_tells_nothing_that_was_confided(app: App) -> None:
    (call,) = hold_calls(app, 1)
    office = at_work(app)
    draft = FactDraft(
        category="person",
        text="The gutter.",
        summary="The gutter",
        visibility="secret",
        confidence=0.9,
        turns=(2,),
        words="mend the gutter",
    )
    secret = replace(
        app, reader=FakeReader(Reading(language="en", summary="", facts=(draft,)))
    ).office
    secret.begin(call.id, ["facts"])
    secret.do(call.id, "facts")
    assert FactStore.list_confided_words(app.facts, call.id) == ["mend the gutter"]
    reading = Reading(language="en", summary="They want us to mend the gutter.")
    office = replace(app, reader=FakeReader(reading)).office
    sum_up_together(office, [call.id])
    assert "gutter" not in page(app)
    assert all("gutter" not in (step.result or "") for step in app.steps.of_call(call.id))
