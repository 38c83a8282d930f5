"""A memory that all share, and one of them is erased: what only they said goes, wherever it is
kept; what others said too stays.
"""

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from aftercall.app import App
from aftercall.db.tables import fact_occurrences, facts, passages
from aftercall.memory.extraction import Extractor
from aftercall.memory.fact_store import FactFilter
from aftercall.model.calls import Call
from aftercall.model.passages import SearchScope
from aftercall.settings import Settings
from fact_drafts import each, say
from fakes import VirtualClock
from opened_apps import OpenApp

GOES, STAYS = "+15550142", "+15550199"
BOTH = "The boiler is in the cellar"


@pytest.fixture
def shared(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> App:
    kept = {"facts_days": 30, "action": {"facts": "archive"}}
    return open_app(
        Settings.model_validate(
            settings.model_dump(exclude={"briefing"})
            | {"memory": {"scope": "shared"}, "retention": kept}
        ),
        clock,
    )


def tell(app: App, caller: str, *sentences: str, day: float = 0) -> Call:
    call = say(*sentences, day=day, caller=caller)
    app.journal.ingest(call)
    Extractor(app.settings, app.facts, app.clock).extract(call, each(call))
    return call


def tell_all(app: App) -> None:
    tell(app, GOES, "I like walnut bread", "I live in Zanzibar", BOTH, day=0)
    tell(app, GOES, "I live in Utrecht now", "Marmalade is upstairs", day=1)
    tell(app, STAYS, BOTH, "The hedge is cut in spring", day=2)


def contents(app: App) -> set[str]:
    return {fact.content for fact in app.facts.page(FactFilter(include_retired=True))}


def files(app: App) -> list[Path]:
    return sorted((app.settings.home / "retired").rglob("*.json"))


def test_what_only_the_erased_caller_said_goes_retired_or_not(shared: App) -> None:
    tell_all(shared)
    assert "I live in Zanzibar" in contents(shared)  # retired by the move
    shared.eraser.erase(GOES)
    assert contents(shared) == {BOTH, "The hedge is cut in spring"}


def test_what_others_said_too_is_counted_and_found_by_their_words_alone(
    shared: App,
) -> None:
    tell_all(shared)
    shared.eraser.erase(GOES)
    with shared.database.read() as connection:
        (known,) = connection.execute(
            select(facts).where(facts.c.content == BOTH)
        ).all()
        said = connection.execute(
            select(fact_occurrences).where(fact_occurrences.c.fact_id == known.id)
        ).all()
        (passage,) = connection.execute(
            select(passages).where(passages.c.ref == known.id)
        ).all()
    assert known.occurrence_count == len(said) == passage.mentions == 1
    assert "walnut" not in f"{passage.around} {said}"
    assert (
        shared.search.find("boiler cellar", SearchScope("main", "*"))[0].passage.text
        == BOTH
    )


def test_what_was_let_go_of_into_the_retired_folder_goes_as_well(
    shared: App, clock: VirtualClock
) -> None:
    tell_all(shared)
    clock.move(60 * 86_400)
    shared.retention.apply()
    assert contents(shared) == set()
    assert "walnut" in str([file.read_text() for file in files(shared)])
    receipt = shared.eraser.erase(GOES)
    left = {
        kept["content"]: kept
        for kept in (json.loads(file.read_text()) for file in files(shared))
    }
    assert set(left) == {BOTH, "The hedge is cut in spring"}
    assert left[BOTH]["occurrence_count"] == len(left[BOTH]["occurrences"]) == 1
    assert "walnut" not in str(left)
    assert receipt.retired == 5
    assert shared.eraser.erase(GOES).retired == 0
