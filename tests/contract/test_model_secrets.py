"""What only a model takes for a secret stands in the sealed archive, opens when asked for by
name, and is nowhere else.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from aftercall.app import App
from aftercall.briefing.composer import BriefingParts
from aftercall.briefing.render import make_instructions
from aftercall.db.tables import metadata
from aftercall.journal.view import call_json
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.visibility import redact_call
from aftercall.model.passages import SearchScope
from aftercall.model.reading import Profile, Reading
from fact_drafts import draft
from fakes import FakeReader, make_call

CANARY = "Zwingli"
SAID = [
    ("agent", "Hello, who is there?"),
    (
        "caller",
        "It's Bill. My mother's maiden name is Zwingli, and I collect stamps from Ghana.",
    ),
    ("agent", "Zwingli, thank you."),
    ("caller", "The stamps are all from before the war, you see."),
]
READING = Reading(
    language="en",
    summary="Bill, whose mother was born Zwingli, collects stamps.",
    profile=Profile(name="Bill Harker", notes="mother born Zwingli"),
    facts=(
        draft(
            "The mother's maiden name is Zwingli",
            words="My mother's maiden name is Zwingli",
            visibility="secret",
            category="person",
        ),
        draft(
            "I collect stamps from Ghana",
            words="I collect stamps from Ghana",
            category="preference",
        ),
    ),
)
STEPS = ("facts", "summary", "profile", "greeting", "index", "document")
ORDERS = [
    STEPS,
    STEPS[::-1],
    ("summary", "index", "facts", "profile", "document", "greeting"),
]


def listen(app: App, order: Sequence[str]) -> tuple[App, str]:
    """A call whose steps are taken in this order by a reader that knows the secret."""
    told = replace(app, reader=FakeReader(READING))
    row, _ = told.journal.ingest(make_call(SAID))
    told.step_runner.claim(row.live.id, order)
    for name in order:
        told.step_runner.run(row.live.id, name)
    return told, row.live.id


def rows_with_the_canary(app: App) -> list[str]:
    with app.database.read() as connection:
        rows = [
            (table.name, str(row).lower())
            for table in metadata.sorted_tables
            for row in connection.execute(select(table))
        ]
    assert len(rows) > 10
    return [name for name, row in rows if CANARY.lower() in row]


@pytest.mark.parametrize(
    "order", ORDERS, ids=["facts first", "facts last", "facts between"]
)
def test_whichever_step_comes_last_hides_what_the_facts_took_for_a_secret(
    app: App, order: Sequence[str], tmp_path: Path
) -> None:
    told, call_id = listen(app, order)
    assert rows_with_the_canary(told) == []
    assert [
        hit.passage.text for hit in told.search.find(CANARY, SearchScope("main", None))
    ] == []
    assert (
        "stamps"
        in told.search.find("Ghana", SearchScope("main", "+15550100"))[0].passage.text
    )
    files = [
        path
        for path in told.settings.home.rglob("*")
        if path.suffix in (".md", ".txt", ".json") and "archive" not in path.parts
    ]
    assert [path.name for path in files if CANARY in path.read_text()] == []
    assert {path.name for path in files} >= {"CALLS.md", "USER.md"}
    assert "collects stamps" in str(told.steps.of_call(call_id))
    row = told.store.get(call_id)
    shown = redact_call(
        call_json(told.store, told.archive, row),
        told.facts.list_confided_words(call_id),
    )
    found = BriefingParts(party=row.live.caller)
    told.composer.gather(row.live, found, dropped=call_id)
    assert found.pick_up is not None
    briefed = make_instructions(
        told.composer.make_briefing(row.live, found), told.settings.zone
    )
    told.exporter.export("+15550100", tmp_path / "out")
    exported = "".join(
        path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()
    )
    for text in (str(shown), briefed, exported):
        assert (CANARY in text, "stamps" in text) == (False, True)


def test_the_archive_and_whoever_asks_by_name_have_it(app: App, tmp_path: Path) -> None:
    told, call_id = listen(app, STEPS)
    assert CANARY in str(told.archive.read(str(told.store.get(call_id).archive_name)))
    (secret,) = told.facts.page(FactFilter(visibility="secret"))
    assert CANARY in told.facts.reveal(secret).content
    told.exporter.export("+15550100", tmp_path / "out", reveal=True)
    assert CANARY in "".join(
        path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()
    )


def test_a_crash_before_hiding_is_made_good_when_the_step_is_taken_again(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, call_id = listen(app, ("summary", "index"))
    with monkeypatch.context() as broken:
        broken.setattr(
            "aftercall.postcall.runner.redact_secrets",
            lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(KeyboardInterrupt):
            told.step_runner.run(call_id, "facts")
    assert rows_with_the_canary(told) != []
    told.step_runner.run(call_id, "facts")
    assert rows_with_the_canary(told) == []


def test_a_secret_found_when_the_call_is_read_again_is_hidden_too(app: App) -> None:
    plainly = READING.model_copy(update={"facts": READING.facts[1:]})
    told, call_id = listen(replace(app, reader=FakeReader(plainly)), STEPS)
    again = replace(told, reader=FakeReader(READING))
    again.step_runner.claim(call_id, ["facts"], again=True)
    again.step_runner.run(call_id, "facts")
    assert rows_with_the_canary(again) == []
    assert (
        CANARY not in told.settings.home.joinpath("workspace", "CALLS.md").read_text()
    )


class Forgetful(FakeReader):
    """Notes which calls it was told to forget."""

    def __init__(self) -> None:
        super().__init__(READING)
        self.forgotten: list[str] = []

    def forget(self, call_id: str) -> None:
        self.forgotten.append(call_id)
        super().forget(call_id)


def test_after_its_last_step_nothing_of_a_call_stays_in_memory(app: App) -> None:
    reader = Forgetful()
    told = replace(app, reader=reader)
    row, _ = told.journal.ingest(make_call(SAID))
    told.step_runner.run_by_hand(row.live.id, STEPS, "cut off")
    assert reader.forgotten == [row.live.id]
    assert CANARY not in repr(vars(told.step_runner))


def test_a_summary_made_again_tells_nothing_that_was_confided(app: App) -> None:
    told, call_id = listen(app, STEPS)
    told.step_runner.claim(call_id, ["summary"], again=True)
    told.step_runner.run(call_id, "summary")
    assert rows_with_the_canary(told) == []
    assert (
        CANARY not in told.settings.home.joinpath("workspace", "CALLS.md").read_text()
    )
