"""After hang-up, on both databases: each step ends, shows how, and leaves its thing once."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.errors import (
    UNEXPECTED,
    DatabaseUnreachable,
    WorkspaceBusy,
    WorkspaceReadOnly,
)
from aftercall.llm.reader import Reader
from aftercall.memory.documents import RememClient
from aftercall.model.calls import Call
from aftercall.model.reading import (
    Identity,
    Profile,
    Reading,
    Request,
    Step,
    StepOutcome,
    done,
)
from aftercall.postcall import workflow
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS, StepContext
from aftercall.postcall.store import are_finished
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.providers import RememSettings
from aftercall.settings.sections import WorkSettings
from fakes import FakeReader, make_call
from opened_apps import OpenApp
from step_stages import run_steps

ASKED = Reading(
    language="en",
    summary="Bill asked for a bug to be opened.",
    profile=Profile(name="Bill Harker", call_name="Bill"),
    identity=Identity(name="Wren"),
    requests=(
        Request(kind="issue", title="Open a bug", turns=(2,), words="open a bug"),
    ),
)
SAID = (
    ("agent", "Hello!"),
    ("caller", "It's Bill Harker. Please open a bug."),
    ("agent", "Noted."),
)


@pytest.fixture
def live(settings: Settings, open_app: OpenApp) -> App:
    # which has tests of its own
    return open_app(
        settings.model_copy(update={"work": WorkSettings(enabled=False)}), SystemClock()
    )


def with_reader(app: App, reader: Reader) -> App:
    return replace(app, reader=reader)


async def finish(app: App, *calls: Call) -> list[dict[str, Step]]:
    async def wait(call_id: str) -> dict[str, Step]:
        steps = app.steps.of_call(call_id)
        while not are_finished(steps):
            await app.clock.sleep(0.02)
            steps = await asyncio.to_thread(app.steps.of_call, call_id)
        return {step.name: step for step in steps}

    async with running(app):
        for call in calls:
            await asyncio.to_thread(app.journal.ingest, call)
        return [await wait(call.id) for call in calls]


def workspace(app: App) -> dict[str, str]:
    root = app.settings.home / "workspace"
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.suffix in (".md", ".txt")
    }


async def test_a_call_leaves_summary_profile_identity_and_greeting(live: App) -> None:
    (steps,) = await finish(
        with_reader(live, FakeReader(ASKED)), make_call(SAID, caller="+15551234567")
    )
    assert {name: step.state for name, step in steps.items()} == dict.fromkeys(
        (
            "summary",
            "profile",
            "identity",
            "greeting",
            "index",
            "facts",
            "document",
            "pins",
        ),
        "done",
    )
    pages = workspace(live)
    assert "Bill asked for a bug to be opened." in pages["CALLS.md"]
    assert "- **Name:** Bill Harker" in pages["people/+15551234567/USER.md"]
    assert "- **Name:** Wren" in pages["IDENTITY.md"]
    assert pages["people/+15551234567/NEXT_GREETING.txt"].startswith(
        "Hey Bill, last time you asked me to open a bug"
    )


async def test_greeting_and_page_use_the_name_that_the_same_call_gave(
    live: App,
) -> None:
    said = ASKED.model_copy(
        update={"profile": Profile(name="Samuel Great", call_name="Sam")}
    )
    await finish(with_reader(live, FakeReader(said)), make_call(SAID))
    pages = workspace(live)
    assert pages["people/+15550100/NEXT_GREETING.txt"].startswith("Hey Sam,")
    (found,) = live.documents.search("bug", 10)
    assert "**Caller:** Sam (+15550100)" in live.documents.get(found.id).content


async def test_one_steps_failure_never_stops_the_others_and_shows(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(context: StepContext, call: Call) -> None:
        raise WorkspaceReadOnly("USER.md: may not be changed")

    monkeypatch.setitem(STEPS, "profile", read_only)
    (steps,) = await finish(with_reader(live, FakeReader(ASKED)), make_call())
    assert (steps["profile"].state, steps["profile"].reason) == (
        "failed",
        "USER.md: may not be changed",
    )
    assert {
        steps[name].state
        for name in ("summary", "identity", "greeting", "index", "document")
    } == {"done"}


async def test_a_failed_step_can_be_run_again_by_hand(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = with_reader(live, FakeReader(ASKED))
    call = make_call()

    def broken(context: StepContext, call: Call) -> None:
        raise ValueError("the canary sings")

    with monkeypatch.context() as fault:
        fault.setitem(STEPS, "summary", broken)
        (steps,) = await finish(app, call)
    assert (steps["summary"].state, steps["summary"].reason) == ("failed", UNEXPECTED)
    again = {step.name: step for step in rerun(app.step_runner, call.id)}
    assert (
        again["summary"].state,
        again["summary"].reason,
        again["summary"].attempts,
    ) == (
        "done",
        "",
        2,
    )
    assert workspace(app)["CALLS.md"].count("### ") == 1


async def test_what_may_pass_is_tried_again_by_itself(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = FakeReader(ASKED, WorkspaceBusy("held"), WorkspaceBusy("held"))
    # its follow-up is not due yet
    (steps,) = await finish(
        with_reader(live, reader), make_call(SAID, started_at=live.clock.now())
    )
    assert {step.state for step in steps.values()} == {"done"}
    assert sum(step.attempts for step in steps.values()) >= len(steps) + 2


async def test_a_step_that_runs_again_after_a_late_summary_is_tried_again_too(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first run was tried again as well: the two next attempts are not taken for one."""
    keep_pins, summarise = STEPS["pins"], STEPS["summary"]
    states: list[str | None] = []  # of the summary, at each failure of the pins

    def summarise_late(context: StepContext, call: Call) -> StepOutcome:
        if context.steps.state_of(call.id, "pins") != "done":
            raise WorkspaceBusy("held")
        return summarise(context, call)

    def fail_once_each_time(context: StepContext, call: Call) -> StepOutcome:
        state = context.steps.state_of(call.id, "summary")
        if ("done" in states) if state == "done" else states:
            return keep_pins(context, call)
        states.append(state)
        raise WorkspaceBusy("held")

    monkeypatch.setattr(workflow, "POLL_S", 0.1)
    monkeypatch.setitem(STEPS, "summary", summarise_late)
    monkeypatch.setitem(STEPS, "pins", fail_once_each_time)
    (steps,) = await finish(with_reader(live, FakeReader(ASKED)), make_call(SAID))
    assert {step.state for step in steps.values()} == {"done"}
    assert states[1:] == ["done"]
    assert steps["pins"].attempts == 4


def test_a_step_whose_end_is_on_record_is_not_run_again(live: App) -> None:
    """As after a crash between our record and the engine's: the engine repeats the stage."""
    call = make_call(SAID)
    live.journal.ingest(call)
    runner = with_reader(live, FakeReader(ASKED)).step_runner
    assert run_steps(runner, call.id, ["summary", "document"]) == {}
    # cut off in the middle
    live.steps.claim(call.id, ["document"], live.clock.now(), again=True)
    assert run_steps(runner, call.id, ["summary", "document", "index"]) == {}
    attempts = {
        step.name: (step.state, step.attempts) for step in live.steps.of_call(call.id)
    }
    assert attempts == {
        "summary": ("done", 1),
        "document": ("done", 3),
        "index": ("done", 1),
    }


async def test_the_summaries_of_calls_that_end_together_come_first(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    all_queued = threading.Event()

    def note(name: str) -> Callable[[StepContext, Call], StepOutcome]:
        def run(context: StepContext, call: Call) -> StepOutcome:
            all_queued.wait()
            order.append(name)
            return done(name)

        return run

    for name in ("summary", "profile"):
        monkeypatch.setitem(STEPS, name, note(name))
    monkeypatch.setattr(workflow, "MODEL_THREADS", 1)
    calls = [make_call(SAID) for _ in range(4)]
    for call in calls:
        live.journal.ingest(call)
    async with running(with_reader(live, FakeReader(ASKED))):
        await asyncio.to_thread(all_queued.wait, 2.0)
        all_queued.set()
        for call in calls:
            while not are_finished(
                await asyncio.to_thread(live.steps.of_call, call.id)
            ):
                await live.clock.sleep(0.02)
    assert order == ["summary"] * 4 + ["profile"] * 4


def test_nothing_a_step_wrote_stays_when_its_end_cannot_be_recorded(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = make_call(SAID)
    live.journal.ingest(call)
    app = with_reader(live, FakeReader(ASKED))
    outcome = app.step_runner.execute(call.id, "document")
    assert isinstance(outcome, StepOutcome)

    def write_and_fall(connection: Connection) -> None:
        assert outcome.write is not None
        outcome.write(connection)
        raise DatabaseUnreachable("no connection to the database")

    with pytest.raises(DatabaseUnreachable):
        app.step_runner.record(
            call.id, {"document": replace(outcome, write=write_and_fall)}
        )
    assert app.documents.search("bug", 10) == []
    app.step_runner.run(call.id, "document")
    assert len(app.documents.search("bug", 10)) == 1


def test_a_step_whose_end_cannot_be_recorded_fails_no_other_of_its_stage(
    live: App,
) -> None:
    call = make_call(SAID)
    live.journal.ingest(call)
    runner = with_reader(live, FakeReader(ASKED)).step_runner

    def fall(connection: Connection) -> None:
        raise ValueError("the canary sings")

    names = runner.claim(call.id, ["summary", "index", "identity"])
    results = {name: runner.execute(call.id, name) for name in names}
    assert runner.record_ends(call.id, {**results, "index": done(write=fall)}, 1) == {}
    steps = {
        step.name: (step.state, step.reason) for step in live.steps.of_call(call.id)
    }
    assert steps == {
        "summary": ("done", ""),
        "index": ("failed", UNEXPECTED),
        "identity": ("done", ""),
    }


async def test_calls_sealed_while_nobody_worked_are_worked_on_at_the_next_start(
    live: App,
) -> None:
    calls = [make_call() for _ in range(3)]
    for call in calls:
        live.journal.ingest(call)
    assert list(live.steps.list_due()) == sorted(call.id for call in calls)
    results = await finish(with_reader(live, FakeReader(ASKED)), *calls)
    assert all(are_finished(list(steps.values())) for steps in results)
    assert workspace(live)["CALLS.md"].count("### ") == 3


async def test_the_last_calls_of_this_caller_and_no_other_are_told_oldest_first(
    live: App,
) -> None:
    app = with_reader(live, FakeReader(ASKED))
    await finish(
        app,
        *[make_call(caller="+15550100") for _ in range(2)],
        make_call(caller="+15550199"),
    )
    assert len(app.steps.recent_summaries("main", "+15550100", 3)) == 2
    assert len(app.steps.recent_summaries("main", "+15550100", 1)) == 1
    assert app.steps.recent_summaries("other", "+15550100", 3) == []


async def test_a_step_that_waits_says_why_and_holds_no_place_in_the_queue(
    live: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAX_CALLS", "MAX_SHARED_CALLS", "MAX_DIRECT_SHARED_CALLS"):
        monkeypatch.setattr(workflow, name, 3)
    nobody = RememSettings.model_validate(
        {"api_key": "x", "api_url": "http://127.0.0.1:9"}
    )
    app = replace(live, reader=FakeReader(ASKED), remem=RememClient(nobody))
    calls = [make_call() for _ in range(workflow.MAX_CALLS + 2)]
    async with running(app):
        for call in calls:
            await asyncio.to_thread(app.journal.ingest, call)
        waiting = {call.id for call in calls}
        while waiting:
            await app.clock.sleep(0.05)
            for call_id in list(waiting):
                steps = {
                    step.name: step
                    for step in await asyncio.to_thread(app.steps.of_call, call_id)
                }
                if steps and steps["remem"].reason and steps["summary"].state == "done":
                    waiting.discard(call_id)
                    assert steps["remem"].state == "waiting"
                    assert "remem: no answer" in steps["remem"].reason
                    assert "tried again at" in steps["remem"].reason
    assert app.remem is not None
    app.remem.close()
