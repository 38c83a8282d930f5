"""A limit a minute is a queue: later calls wait their turn, and none is lost."""

import asyncio
from dataclasses import replace

import pytest

from aftercall.app import App, build
from aftercall.clock import SystemClock
from aftercall.memory.extraction import limit_per_minute
from aftercall.postcall import workflow
from aftercall.postcall.store import are_finished
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import ExtractionSettings
from fact_drafts import each, say
from fakes import FakeReader
from opened_apps import OpenApp


@pytest.fixture(params=["from the first start", "set later"])
async def live(
    settings: Settings, request: pytest.FixtureRequest, open_app: OpenApp
) -> App:
    if request.param == "set later":
        unlimited = build(settings, SystemClock())
        async with running(unlimited):
            pass
        unlimited.close()
    limited = settings.model_copy(
        update={"extraction": ExtractionSettings(max_per_minute=1)}
    )
    return open_app(limited, SystemClock())


async def test_calls_beyond_the_limit_wait_and_are_searched_later(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "MINUTE_S", 4.0)
    calls = [say("I like tea", "I like jazz", day=day) for day in range(2)]
    app = replace(live, reader=each(calls[0]))

    def states(name: str) -> list[str]:
        steps = [
            {step.name: step.state for step in app.steps.of_call(call.id)}
            for call in calls
        ]
        return sorted(step.get(name, "waiting") for step in steps)

    async with running(app):
        for call in calls:
            await asyncio.to_thread(app.journal.ingest, call)
        while states("facts") == ["waiting", "waiting"] or "done" not in states(
            "facts"
        ):
            await app.clock.sleep(0.05)
        seen = states("facts")
        while not all(are_finished(app.steps.of_call(call.id)) for call in calls):
            await app.clock.sleep(0.05)
    assert seen == ["done", "waiting"]
    assert states("facts") == ["done", "done"]
    assert [
        app.facts.get(fact_id).occurrence_count
        for fact_id in app.facts.list_ids_of_call(calls[0].id)
    ] == [2, 2]


def test_rules_cost_nothing_and_are_limited_only_where_asked_for() -> None:
    rules, model = FakeReader(), FakeReader()
    rules.name, model.name = "rules", "anthropic:some"
    asked = Settings(extraction=ExtractionSettings(max_per_minute=10))
    assert [
        limit_per_minute(settings, reader)
        for settings in (Settings(), asked)
        for reader in (rules, model)
    ] == [None, 10, 10, 10]
