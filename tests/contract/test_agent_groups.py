"""Agents that share a memory, on both databases: what one was told openly the others know, with
who heard it.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aftercall.app import App
from aftercall.briefing.composer import fill_cache
from aftercall.briefing.render import render
from aftercall.memory.extraction import Extractor
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.search import find_facts, make_key_scope
from aftercall.model.calls import Call
from aftercall.model.facts import MemoryKey
from aftercall.privacy.export import Exporter
from aftercall.settings import Settings
from fact_drafts import draft, reader_of, say
from fakes import START, VirtualClock, make_live_call
from opened_apps import OpenApp

ANN, BOB = "+15550100", "+15550142"
GROUP = [["main", "sales"], ["clinic"]]


def as_agent(open_app: OpenApp, app: App, agent_id: str) -> App:
    """The same database, as another agent's process opens it."""
    return open_app(app.settings.model_copy(update={"agent_id": agent_id}), app.clock)


@pytest.fixture
def main(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> App:
    return open_app(
        Settings.model_validate(
            settings.model_dump(exclude={"briefing"}) | {"memory": {"agents": GROUP}}
        ),
        clock,
    )


@pytest.fixture
def sales(main: App, open_app: OpenApp) -> App:
    return as_agent(open_app, main, "sales")


def hear(
    app: App, words: str, caller: str = ANN, day: float = 0, visibility: str = "shared"
) -> Call:
    call = say(words, "Thanks", day=day, caller=caller, agent_id=app.settings.agent_id)
    app.journal.ingest(call)
    Extractor(app.settings, app.facts, app.clock).extract(
        call, reader_of(draft(words, visibility=visibility))
    )
    return call


def told(app: App, caller: str = ANN) -> dict[str, str]:
    """The facts of a briefing, each with the other agent that heard it."""
    call = make_live_call(
        agent_id=app.settings.agent_id, caller=caller, started_at=START
    )
    return {
        fact.text: fact.heard_by
        for fact in app.composer.recompose(call, caller, "verified").facts
    }


def listed(app: App, caller: str = ANN) -> dict[str, str]:
    wanted = FactFilter(
        key=MemoryKey(app.settings.agent_id, caller), include_group=True
    )
    return {fact.content: fact.key.agent_id for fact in app.facts.page(wanted)}


def found(app: App, query: str, caller: str = ANN) -> set[str]:
    where = make_key_scope(
        app.settings, app.settings.agent_id, MemoryKey(app.settings.agent_id, caller)
    )
    return {
        fact.content for fact in find_facts(app.search, app.facts, query, where, 10)
    }


def test_a_shared_fact_is_known_to_the_group_with_who_heard_it(
    main: App, sales: App
) -> None:
    hear(sales, "I prefer oat milk")
    hear(main, "I like the window seat")
    assert told(main) == {"I like the window seat": "", "I prefer oat milk": "sales"}
    assert listed(main) == {
        "I like the window seat": "main",
        "I prefer oat milk": "sales",
    }
    assert found(main, "which milk") == {"I prefer oat milk"}
    call = make_live_call(agent_id="main", caller=ANN, started_at=START)
    text = render(main.composer.recompose(call, ANN, "verified"), main.settings.zone)
    assert "(heard by sales): I prefer oat milk" in text
    (line,) = main.recall.find("main", ANN, "verified", "oat milk")
    assert "(heard by sales)" in line


def test_what_is_private_or_secret_another_callers_or_only_said_stays_with_its_agent(
    main: App, sales: App
) -> None:
    hear(sales, "I sing in the milk bar", visibility="private")
    hear(sales, "my milk locker code is 4471", visibility="secret")
    hear(sales, "I drink goat milk", caller=BOB)
    sales.step_runner.run(
        hear(sales, "Nobody reads my milk turn", visibility="private").id, "index"
    )
    assert (
        told(main),
        listed(main),
        found(main, "milk"),
        main.recall.find("main", ANN, "verified", "milk"),
    ) == ({}, {}, set(), [])


def test_agents_outside_the_group_and_without_the_setting_know_nothing(
    main: App, sales: App, open_app: OpenApp
) -> None:
    hear(sales, "I prefer oat milk")
    clinic = as_agent(open_app, main, "clinic")
    alone = open_app(
        main.settings.model_copy(update={"memory": Settings().memory}), main.clock
    )
    for app in (clinic, alone):
        assert (told(app), listed(app), found(app, "milk")) == ({}, {}, set())


def test_of_what_two_agents_heard_of_one_attribute_the_last_said_is_told(
    main: App, sales: App
) -> None:
    hear(main, "I live in Porto", day=0)
    hear(sales, "I live in Lisbon", day=1)
    assert told(main) == {"I live in Lisbon": "sales"}
    assert told(sales) == {"I live in Lisbon": ""}
    assert listed(main) == {"I live in Porto": "main", "I live in Lisbon": "sales"}


def test_a_prepared_briefing_sees_what_the_other_agent_hears(
    main: App, sales: App
) -> None:
    hear(main, "I like the window seat")
    due = main.briefings.start("main", ANN, rests_on_all=False)
    assert main.briefings.save(
        due,
        main.composer.settings_hash,
        main.composer.load_remembered("main", ANN),
        main.clock.now(),
    )
    hear(sales, "I prefer oat milk")
    assert main.briefings.read("main", ANN, main.composer.settings_hash) is None
    assert fill_cache(main.composer) == 2  # of both agents
    known = main.briefings.read("main", ANN, main.composer.settings_hash)
    assert known is not None
    assert {fact.text for fact in known.facts} == {
        "I like the window seat",
        "I prefer oat milk",
    }


def test_erasing_and_retention_take_the_groups_facts_too(
    main: App, sales: App, clock: VirtualClock
) -> None:
    hear(sales, "I prefer oat milk")
    hear(main, "I like the window seat")
    main.eraser.erase(ANN)
    assert (told(main), listed(main), listed(sales)) == ({}, {}, {})
    hear(sales, "I prefer soy milk", caller=BOB)
    days = main.settings.retention.model_copy(update={"facts_days": 30})
    clock.move(60 * 86_400)
    replace(
        main, settings=main.settings.model_copy(update={"retention": days})
    ).retention.apply()
    assert (told(main, BOB), listed(main, BOB)) == ({}, {})


def test_an_export_holds_what_every_agent_of_the_group_heard(
    main: App, sales: App, tmp_path: Path
) -> None:
    hear(sales, "I prefer oat milk")
    hear(sales, "I sing in a bar", visibility="private")
    hear(main, "I like the window seat")
    exporter: Exporter = main.exporter
    exporter.export(ANN, tmp_path / "ann")
    lines = [
        json.loads(line)
        for line in (tmp_path / "ann" / "facts.jsonl").read_text().splitlines()
    ]
    expected = {
        ("main", "I like the window seat"),
        ("sales", "I prefer oat milk"),
        ("sales", "I sing in a bar"),
    }
    assert {(line["agent_id"], line["content"]) for line in lines} == expected
    assert len(lines) == 3
