"""A rebuild from the archive alone tells and greets every caller as before; on both databases."""

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from aftercall.app import App
from aftercall.briefing.composer import brief_ring
from aftercall.briefing.render import render
from aftercall.cli.context import wait_for_steps
from aftercall.clock import SystemClock
from aftercall.encryption import KEY_FILE
from aftercall.journal.journal import recover
from aftercall.journal.replay import to_entry
from aftercall.journal.spill import SpillFolder, call_entry, end_entry
from aftercall.model.calls import Turn
from aftercall.postcall.steps import STEPS
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import WorkSettings
from fakes import START, FakePhone, VirtualClock, make_call, make_live_call
from followup_work import follow
from opened_apps import OpenApp

NUMBER = "+15550100"
SAID = (
    "My name is Rosa Lind, please order ten boxes of paper.",
    "Could you call the plumber about the leak on Friday?",
)


def leave_part(app: App, said: str, caller: str | None, after_s: float) -> None:
    """What one of two processes recorded of a call while the database was away."""
    at = START + timedelta(seconds=after_s)
    call = make_live_call(sid="S1", caller=caller, started_at=at)
    turn = Turn(seq=1, speaker="caller", text=said, at=at)
    ended = end_entry(call.id, at, "caller_hung_up")
    folder = SpillFolder(app.settings.home / "spill")
    folder.write([call_entry(call), to_entry(call.id, turn), ended])
    folder.close()


def work_off(app: App) -> None:
    """The steps of all calls that are due, the oldest first."""
    due = app.steps.list_due()
    app.steps.mark_started(due)
    for call_id in due:
        app.step_runner.run_by_hand(call_id, list(STEPS), "")


async def list_briefings(app: App, clock: VirtualClock) -> dict[str, tuple[str, str]]:
    told = {}
    for number in {row.live.caller for row in app.store.list_page(limit=50)}:
        ring = make_live_call(
            caller=number, verified=True, sid="ring", id="ring", started_at=clock.now()
        )
        _, briefing = await brief_ring(app.composer, ring, clock)
        told[str(number)] = (briefing.greeting, render(briefing, app.settings.zone))
    return told


def rebuild(app: App, open_app: OpenApp, home: Path) -> App:
    shutil.copytree(app.settings.home / "archive", home / "archive")
    shutil.copy(app.settings.home / KEY_FILE, home)
    other = open_app(Settings(home=home), app.clock)
    made = other.rebuilder.rebuild()
    assert (made.failed, made.undone) == ((), ())
    return other


@pytest.mark.parametrize("callers", [(None, NUMBER), (NUMBER, None)])
@pytest.mark.parametrize("starts", [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("is_worked_on_between", [True, False])
async def test_parts_of_a_call_are_their_callers_before_and_after_a_rebuild(
    app: App,
    clock: VirtualClock,
    open_app: OpenApp,
    tmp_path: Path,
    callers: tuple[str | None, str | None],
    starts: tuple[int, int],
    is_worked_on_between: bool,
) -> None:
    for said, caller, after_s in zip(SAID, callers, starts, strict=True):
        leave_part(app, said, caller, after_s)
        recover(app.journal)
        if is_worked_on_between:
            work_off(app)
    work_off(app)
    (conversation,) = {row.live.conversation for row in app.store.list_page(limit=9)}
    clock.move(3600)
    follow(app.work, conversation)
    other = rebuild(app, open_app, tmp_path / "other")
    before = await list_briefings(app, clock)
    assert await list_briefings(other, clock) == before
    assert list(before) == [NUMBER]
    greeting, told = before[NUMBER]
    assert "Rosa" in greeting
    assert all(told.count(words) >= 2 for words in ("boxes of paper", "plumber"))


async def test_work_done_before_the_caller_was_known_is_done_again(
    settings: Settings, open_app: OpenApp
) -> None:
    quiet = settings.model_copy(update={"work": WorkSettings(enabled=False)})
    app = open_app(quiet, SystemClock())
    async with running(app):
        for said, caller in zip(SAID, (None, NUMBER), strict=True):
            leave_part(app, said, caller, 0)
            await asyncio.to_thread(recover, app.journal)
            for row in await asyncio.to_thread(lambda: app.store.list_page(limit=5)):
                await wait_for_steps(app, row.live.id)
        while {row.whose for row in app.store.list_page(limit=5)} != {NUMBER}:
            await asyncio.sleep(0.05)
        for row in app.store.list_page(limit=5):
            steps = await wait_for_steps(app, row.live.id)
            assert {step.name: step.state for step in steps}["document"] == "done"
    assert app.steps.list_due() == {}


@pytest.mark.parametrize("is_reversed", [False, True])
def test_of_calls_that_began_together_one_is_the_last_however_they_are_read(
    app: App, clock: VirtualClock, is_reversed: bool
) -> None:
    calls = [make_call([("caller", said)], caller=NUMBER) for said in SAID]
    for call in calls:
        app.journal.ingest(call)
    for call in reversed(calls) if is_reversed else calls:
        app.step_runner.run_by_hand(call.id, list(STEPS), "")
    clock.move(3600)
    greeting = app.composer.preview(NUMBER).greeting
    assert greeting.startswith("Hey Rosa, last time you asked me to call the plumber")
    recent = [call.summary for call in app.composer.preview(NUMBER).recent]
    assert ["paper" in summary for summary in recent] == [True, False]


async def test_a_greeting_that_a_call_has_used_up_does_not_come_back(
    app: App, clock: VirtualClock, open_app: OpenApp, tmp_path: Path
) -> None:
    app.journal.ingest(make_call([("caller", SAID[1])], caller=NUMBER))
    work_off(app)
    clock.move(3600)
    _, heard = await FakePhone(app.phone.turn_parts).ring("Thank you, bye.")
    assert "plumber" in heard[0]
    work_off(app)
    clock.move(3600)
    before = await list_briefings(app, clock)
    assert "plumber" not in before[NUMBER][0]
    assert (
        await list_briefings(rebuild(app, open_app, tmp_path / "other"), clock)
        == before
    )
