"""A summary that comes late, or not at all, on both databases: words are found and counted
without it, its page waits for it.
"""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from aftercall.app import App
from aftercall.db.tables import passages
from aftercall.errors import UNEXPECTED, ModelDeclined, ModelUnavailable
from aftercall.memory.embedding import Embedder
from aftercall.model.calls import Call
from aftercall.model.passages import SearchScope
from aftercall.model.reading import (
    Identity,
    Profile,
    Reading,
    ReadingResult,
    Request,
    Summary,
)
from aftercall.postcall.runner import UNENDED, StepRunner, rerun
from aftercall.postcall.steps import list_steps
from fakes import FakeReader, VirtualClock, make_call
from step_stages import run_late_steps, run_steps

SUMMARY = "The caller wants the gutter mended."
FOUND = Reading(
    language="en",
    summary=SUMMARY,
    profile=Profile(name="Bill"),
    identity=Identity(name="Wren"),
    requests=(
        Request(
            kind="task", title="Mend the gutter", turns=(2,), words="mend the gutter"
        ),
    ),
)
SAID = (
    ("agent", "Hello!"),
    ("caller", "Please mend the gutter above the larkspur."),
    ("agent", "Noted."),
)
DECLINED = ModelDeclined("the model declined to answer")
DOWN = ModelUnavailable("the model does not answer")


class Speechless(FakeReader):
    """Fails at the summary, so many times and so; everything else it finds."""

    def __init__(self, *faults: Exception) -> None:
        super().__init__(FOUND)
        self.summaries = 0
        self._left = list(faults)

    def summarise(self, call: Call) -> ReadingResult[Summary]:
        self.summaries += 1
        if self._left:
            raise self._left.pop(0)
        return super().summarise(call)


class Numbers:
    """An embedder that counts letters."""

    name = "numbers"

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]


def at_work(
    app: App, *faults: Exception, embedder: Embedder | None = None
) -> tuple[StepRunner, Call, Speechless]:
    reader = Speechless(*faults)
    call = make_call(SAID, started_at=app.clock.now())
    app.journal.ingest(call)
    runner = replace(app, reader=reader).step_runner
    with_embedder = replace(runner, context=replace(runner.context, embedder=embedder))
    return with_embedder, call, reader


def states(app: App, call: Call) -> dict[str, tuple[str, str]]:
    return {step.name: (step.state, step.reason) for step in app.steps.of_call(call.id)}


def kinds(app: App, call: Call) -> list[str]:
    query = (
        select(passages.c.kind)
        .where(passages.c.call_id == call.id, passages.c.ref.is_(None))
        .order_by(passages.c.kind)
    )
    with app.database.read() as connection:
        return list(connection.execute(query).scalars())


def found(app: App, words: str) -> set[str]:
    return {
        hit.passage.kind
        for hit in app.search.find(words, SearchScope("main", "+15550100"))
    }


def assert_all_stands_once(app: App, call: Call) -> None:
    assert {state for state, _ in states(app, call).values()} == {"done"}
    assert kinds(app, call) == ["summary", "turn", "turn", "turn"]
    assert found(app, "gutter") == {"turn", "summary"}
    assert len(app.documents.search("gutter", 10)) == 1
    assert (app.settings.home / "workspace" / "CALLS.md").read_text().count(
        SUMMARY
    ) == 1


def test_without_a_summary_the_words_are_found_and_pins_are_counted(app: App) -> None:
    runner, call, reader = at_work(app, DECLINED)
    assert run_steps(runner, call.id, list_steps(runner.context)) == {}
    ended = states(app, call)
    assert ended.pop("summary") == ("failed", "the model declined to answer")
    assert ended.pop("document") == ("failed", "waits for the summary, which failed")
    assert {state for state, _ in ended.values()} == {"done"}
    assert found(app, "larkspur") == {"turn"}
    assert kinds(app, call) == ["turn"] * 3
    # nobody asks a reader for the page's or the pins' sake who has just failed
    assert reader.summaries == 1


@pytest.mark.parametrize("name", ["summary", ""])
def test_a_summary_run_again_by_hand_brings_its_passage_its_page_and_the_pins(
    app: App, name: str
) -> None:
    runner, call, _ = at_work(app, DECLINED)
    run_steps(runner, call.id, list_steps(runner.context))
    attempts = {step.name: step.attempts for step in rerun(runner, call.id, name)}
    assert_all_stands_once(app, call)
    assert {name for name, count in attempts.items() if count == 2} == {
        "summary",
        "document",
        "pins",
    }
    rerun(runner, call.id, "summary")
    assert_all_stands_once(app, call)


def test_a_page_waits_while_the_summary_may_still_come_and_is_made_when_it_has(
    app: App,
) -> None:
    runner, call, _ = at_work(app, DOWN)
    assert set(run_steps(runner, call.id, list_steps(runner.context))) == {"summary"}
    ended = states(app, call)
    assert ended["document"] == ("waiting", "waits for the summary")
    assert (ended["index"][0], ended["pins"][0]) == ("done", "done")
    assert run_late_steps(runner, call.id) == {}  # too early
    assert states(app, call)["document"] == ("waiting", "waits for the summary")
    assert run_steps(runner, call.id, ["summary"], 2) == {}
    assert run_late_steps(runner, call.id) == {}
    assert_all_stands_once(app, call)


async def test_a_page_that_waits_is_not_taken_for_stuck_while_the_summary_is_tried(
    app: App,
) -> None:
    runner, call, _ = at_work(app, DOWN, DOWN)
    run_steps(runner, call.id, list_steps(runner.context))
    assert isinstance(app.clock, VirtualClock)
    await app.clock.advance(3600)
    run_steps(runner, call.id, ["summary"], 2)
    now = app.clock.now()
    assert (
        app.health.stuck_calls(now - timedelta(days=3), now - timedelta(minutes=30))
        == {}
    )


def test_a_page_fails_with_the_summary_it_waited_for(app: App) -> None:
    runner, call, _ = at_work(app, DOWN, DECLINED)
    run_steps(runner, call.id, list_steps(runner.context))
    assert run_steps(runner, call.id, ["summary"], 2) == {}
    assert run_late_steps(runner, call.id) == {}
    assert states(app, call)["document"] == (
        "failed",
        "waits for the summary, which failed",
    )


def test_a_vain_try_by_hand_does_not_take_the_place_of_the_one_that_is_scheduled(
    app: App,
) -> None:
    runner, call, _ = at_work(app, DOWN, DOWN)
    run_steps(runner, call.id, list_steps(runner.context))
    rerun(runner, call.id, "summary")
    assert (states(app, call)["summary"][0], states(app, call)["document"][0]) == (
        "waiting",
        "waiting",
    )
    assert run_steps(runner, call.id, ["summary"], 2) == {}
    assert run_late_steps(runner, call.id) == {}
    assert_all_stands_once(app, call)


def test_a_late_summary_is_found_by_its_meaning_too(app: App) -> None:
    runner, call, _ = at_work(app, DOWN, embedder=Numbers())
    run_steps(runner, call.id, list_steps(runner.context))
    run_steps(runner, call.id, ["summary"], 2)
    with app.database.read() as connection:
        vectors = connection.exec_driver_sql(
            "SELECT count(*) FROM passage_vectors"
        ).scalar()
    assert vectors == len(kinds(app, call)) == 4


def test_a_summary_of_an_outbound_call_is_not_searched(app: App) -> None:
    reader = FakeReader(FOUND)
    call = make_call(SAID, direction="outbound", callee="+15550177")
    app.journal.ingest(call)
    runner = replace(app, reader=reader).step_runner
    run_steps(runner, call.id, ["summary", "index"])
    assert kinds(app, call) == []


def test_an_unforeseen_error_of_a_try_by_hand_is_recorded_without_its_words(
    app: App,
) -> None:
    runner, call, _ = at_work(app, ValueError("the canary sings"))
    rerun(runner, call.id, "summary")
    assert states(app, call)["summary"] == ("failed", UNEXPECTED)
    rerun(runner, call.id, "summary")
    assert states(app, call)["summary"] == ("done", "")


def test_a_try_by_hand_that_was_cut_off_leaves_the_scheduled_one_to_come(
    app: App,
) -> None:
    runner, call, _ = at_work(app, DOWN)
    run_steps(runner, call.id, list_steps(runner.context))
    # and the power goes
    app.steps.claim_by_hand(call.id, ["summary"], app.clock.now(), UNENDED)
    assert states(app, call)["summary"] == ("running", "")
    assert run_steps(runner, call.id, ["summary"], 2) == {}
    assert run_late_steps(runner, call.id) == {}
    assert_all_stands_once(app, call)


def test_a_try_by_hand_before_the_work_began_leaves_the_step_to_it(app: App) -> None:
    runner, call, _ = at_work(app)
    # and the power goes
    app.steps.claim_by_hand(call.id, ["summary"], app.clock.now(), UNENDED)
    assert states(app, call)["summary"] == ("running", "")
    run_steps(runner, call.id, list_steps(runner.context))
    assert_all_stands_once(app, call)


def test_a_step_by_hand_without_a_workflow_shows_as_failed_until_it_has_ended(
    app: App,
) -> None:
    runner, call, _ = at_work(app)
    app.steps.mark_started({call.id: 0})
    # and the power goes
    app.steps.claim_by_hand(call.id, ["summary"], app.clock.now(), UNENDED)
    assert states(app, call)["summary"] == ("failed", UNENDED)
    assert {step.name: step.state for step in rerun(runner, call.id)}[
        "summary"
    ] == "done"
