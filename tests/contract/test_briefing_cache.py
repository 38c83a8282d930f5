"""Briefings that are prepared before the phone rings, on both databases: never out of date,
never in the way.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import select, update

from aftercall.app import App
from aftercall.briefing.composer import brief_ring, fill_cache
from aftercall.briefing.render import briefing_variables, render
from aftercall.db.briefing_cache import BriefingCache
from aftercall.db.tables import briefings, facts
from aftercall.memory.fact_store import FactFilter
from aftercall.model.briefing import CallerMemory
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.work import deliver
from aftercall.workspace.paths import Workspace
from fakes import FakePhone, VirtualClock, make_live_call
from followup_work import RecordingSink, follow, hold_call, with_sink
from opened_apps import OpenApp
from step_stages import take_call

ANN, BOB = "+15550100", "+15550142"


def prepare_all(app: App) -> None:
    while app.briefings.list_stale(100):
        assert fill_cache(app.composer) > 0


def is_prepared(app: App, caller: str = ANN) -> bool:
    """That the row is there, is believed, and says what composing afresh says."""
    known = app.briefings.read("main", caller, app.composer.settings_hash)
    assert known is None or known == app.composer.load_remembered("main", caller)
    return known is not None


@contextmanager
def not_composing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At ring time nothing is composed, or the test fails."""
    from aftercall.briefing.composer import Composer

    def refuse(self: Composer, agent_id: str, caller: str) -> CallerMemory:
        raise AssertionError("composed at ring time")

    with monkeypatch.context() as patched:
        patched.setattr(Composer, "load_remembered", refuse)
        yield


def test_after_a_call_the_next_ring_reads_one_row_and_composes_nothing(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_call(
        app,
        ANN,
        "This is Ann. Please call the plumber.",
        "I prefer to be called in the evening.",
    )
    clock.move(3_600)
    prepare_all(app)
    afresh = app.composer.load_remembered("main", ANN)
    with not_composing(monkeypatch):
        told = app.composer.preview(ANN)
    assert (told.recent, told.facts, told.work) == (
        afresh.recent,
        afresh.facts,
        afresh.work,
    )
    assert told.facts
    assert told.recent


def test_whatever_a_briefing_rests_on_is_seen_at_the_next_ring(
    app: App, clock: VirtualClock
) -> None:
    desk = with_sink(
        app, RecordingSink(), policy={"unknown.issue": "hold", "unknown.note": "hold"}
    )
    call = hold_call(app, caller=ANN)
    clock.move(400)
    prepare_all(app)
    assert is_prepared(app)

    def changes(change: object) -> None:
        assert not is_prepared(app), change
        prepare_all(app)
        assert is_prepared(app), change

    rerun(app.step_runner, call.id, "summary")
    changes("the summary")
    rerun(app.step_runner, call.id, "document")
    changes("the document")
    app.documents.update_content(
        app.documents.search("call", 1)[0].id,
        "### Context for Next Call\nAsk about the cat.",
        appends=True,
        now=clock.now(),
    )
    changes("a page edited by a client")
    assert app.composer.preview(ANN).recent[-1].context == "Ask about the cat."
    follow(desk, call.conversation)
    changes("follow-up work")
    held = app.work.followups.page(limit=10, state="held")
    deliver.reject(desk, held[0].id, "me")
    changes("a follow-up rejected")
    take_call(app, ANN, "I live in Porto.", "I prefer tea.", "Thanks.")
    changes("another call")
    take_call(app, ANN, "I moved, I live in Lisbon now.", "Yes.", "Thanks.")
    changes("a fact retired")
    retired = [
        fact
        for fact in app.facts.page(FactFilter(include_retired=True))
        if not fact.is_active
    ]
    assert retired, "no fact was retired: nothing is shown"
    assert all(
        fact.id not in [told.id for told in app.composer.preview(ANN).facts]
        for fact in retired
    )
    app.corrections.restore(retired[0].id, "me")
    changes("a fact restored")


def test_a_shared_memory_tells_of_other_numbers_calls_with_whose_they_were(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    shared = open_app(
        settings.model_copy(
            update={"memory": settings.memory.model_copy(update={"scope": "shared"})}
        ),
        clock,
    )
    take_call(shared, BOB, "This is Bob. Please call the plumber about the boiler.")
    clock.move(60)
    take_call(shared, None, "Please order a cake.")
    clock.move(60)
    prepare_all(shared)
    assert [call.whose for call in shared.composer.preview(ANN).recent] == [BOB]
    take_call(shared, ANN, "This is Ann. Please water the roses.")
    prepare_all(shared)
    assert is_prepared(shared)
    told = shared.composer.preview(ANN)
    assert [call.whose for call in told.recent] == [BOB, ""]
    text = render(told, shared.settings.zone)
    assert f"from {BOB}: " in text
    assert "boiler" in text
    assert "cake" not in text
    assert (
        briefing_variables(told, shared.settings.zone)["last_call"]
        == told.recent[-1].summary
    )
    shared.eraser.erase(BOB)
    assert [call.whose for call in shared.composer.preview(ANN).recent] == [""]


def test_a_page_edited_by_hand_is_seen_at_once(app: App) -> None:
    take_call(app, ANN, "This is Ann. Please call the plumber.")
    prepare_all(app)
    root = app.settings.home / "workspace"
    (root / "people" / ANN / "USER.md").write_text(
        "- **Name:** Ann Lee\n- **Pronouns:** she/her\n- **Timezone:** Asia/Tokyo\n"
    )
    (root / "IDENTITY.md").write_text("- **Name:** Robin\n- **Vibe:** calm\n")
    told = app.composer.preview(ANN)
    assert (told.caller.name, told.caller.pronouns, told.caller.timezone) == (
        "Ann Lee",
        "she/her",
        "Asia/Tokyo",
    )
    assert (told.persona.name, told.persona.vibe) == ("Robin", "calm")


def test_a_fact_that_was_retired_or_hidden_behind_our_back_is_not_told_all_the_same(
    app: App, clock: VirtualClock
) -> None:
    take_call(
        app,
        ANN,
        "I prefer to be called in the evening.",
        "My sister Ann lives in Porto.",
        "Thanks.",
    )
    clock.move(3_600)
    prepare_all(app)
    first, *_ = app.composer.preview(ANN).facts
    for change in ({"is_active": False}, {"is_active": True, "visibility": "secret"}):
        with app.database.write() as connection:
            # somebody with a database client: no mark is left
            connection.execute(
                update(facts).where(facts.c.id == first.id).values(change)
            )
        assert first not in app.composer.preview(ANN).facts


def test_what_was_composed_while_it_changed_is_not_kept(app: App) -> None:
    take_call(app, ANN, "I prefer tea.", "Yes.", "Thanks.")
    due = app.briefings.start("main", ANN, rests_on_all=False)
    old = app.composer.load_remembered("main", ANN)
    take_call(app, ANN, "I live in Porto.", "Yes.", "Thanks.")
    assert not app.briefings.save(due, app.composer.settings_hash, old, app.clock.now())
    assert not is_prepared(app)


def test_a_row_that_was_erased_is_not_filled_by_whoever_was_at_it(app: App) -> None:
    take_call(app, ANN, "I prefer tea.", "Yes.", "Thanks.")
    due = app.briefings.start("main", ANN, rests_on_all=False)
    old = app.composer.load_remembered("main", ANN)
    app.eraser.erase(ANN)
    # they ring again at that very moment
    app.briefings.start("main", ANN, rests_on_all=False)
    assert not app.briefings.save(due, app.composer.settings_hash, old, app.clock.now())


def test_erasing_takes_the_prepared_briefing_too(app: App) -> None:
    take_call(app, ANN, "My marker is heliotrope.", "I prefer tea.", "Thanks.")
    take_call(app, BOB, "I prefer coffee.", "Yes.", "Thanks.")
    prepare_all(app)
    app.eraser.erase(ANN)
    with app.database.read() as connection:
        left = [row.caller for row in connection.execute(select(briefings))]
    assert left == [BOB]
    assert app.composer.preview(ANN).facts == ()


@pytest.mark.parametrize(("scope", "stays"), [("per_caller", True), ("shared", False)])
def test_another_callers_news_changes_nothing_unless_memory_is_shared(
    settings: Settings, clock: VirtualClock, scope: str, stays: bool, open_app: OpenApp
) -> None:
    app = open_app(
        settings.model_copy(
            update={"memory": settings.memory.model_copy(update={"scope": scope})}
        ),
        clock,
    )
    take_call(app, ANN, "I prefer tea.", "Yes.", "Thanks.")
    prepare_all(app)
    take_call(app, BOB, "I prefer coffee.", "Yes.", "Thanks.")
    assert is_prepared(app) is stays
    prepare_all(app)
    assert is_prepared(app)


def test_under_other_settings_a_prepared_briefing_is_of_no_use(
    app: App, clock: VirtualClock, open_app: OpenApp
) -> None:
    take_call(app, ANN, "I prefer tea.", "I live in Porto.", "Thanks.")
    prepare_all(app)
    fewer = app.settings.briefing.model_copy(update={"facts": 1})
    other = open_app(app.settings.model_copy(update={"briefing": fewer}), clock)
    assert len(other.composer.preview(ANN).facts) == 1
    other.briefings.invalidate_other_forms(other.composer.settings_hash)
    assert len(other.briefings.list_stale(10)) == 1


async def test_a_slow_database_costs_the_memory_and_not_the_call(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_call(app, ANN, "This is Ann. Please call the plumber.")
    clock.move(3_600)
    release = threading.Event()

    def hang(
        self: BriefingCache, agent_id: str, caller: str, form: str
    ) -> CallerMemory | None:
        release.wait(30)
        return None

    monkeypatch.setattr(BriefingCache, "read", hang)
    ringing = asyncio.create_task(
        brief_ring(
            app.composer, make_live_call(caller=ANN, started_at=clock.now()), clock
        )
    )
    async with asyncio.timeout(20):
        while not ringing.done():
            await asyncio.sleep(0.02)
            await clock.advance(0.1)
    _, told = await ringing
    release.set()
    # what is there is told
    assert (told.caller_name, told.facts, told.recent) == (
        "Ann",
        (),
        (),
    )


async def test_a_call_that_rings_back_hears_what_the_last_one_was_about(
    app: App, clock: VirtualClock
) -> None:
    phone = FakePhone(app.phone.turn_parts)
    first, _ = await phone.ring(
        "Hi, this is Ann. Please book the Tesla in for its service on Tuesday.",
        "That's all, thanks.",
    )
    for name in STEPS:
        await asyncio.to_thread(rerun, app.step_runner, first.call.id, name)
    clock.move(3_600)
    await asyncio.to_thread(prepare_all, app)
    _, heard = await phone.ring("Hello, what did we talk about last time?")
    assert "Tesla" in heard[1]


def test_a_prepare_that_was_cut_off_is_still_due(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_call(app, ANN, "I prefer tea.", "Yes.", "Thanks.")

    def die(self: BriefingCache, *_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(BriefingCache, "save", die)
        with pytest.raises(KeyboardInterrupt):
            fill_cache(app.composer)
    assert len(app.briefings.list_stale(10)) == 1
    prepare_all(app)
    assert is_prepared(app)


def test_a_name_corrected_by_hand_is_used_in_what_was_prepared_before(
    app: App, clock: VirtualClock
) -> None:
    take_call(
        app, ANN, "My name is Bil. Please open a bug about the broken thumbnails."
    )
    prepare_all(app)
    clock.move(3600)
    person = Workspace.from_settings(app.settings).find_person(ANN)
    assert person is not None
    assert "Bil " in app.composer.preview(ANN).recent[0].summary
    person.user.write_text(person.user.read_text().replace("Bil", "Will Harker"))
    briefing = app.composer.preview(ANN)
    assert briefing.greeting.startswith(
        "Hey Will, last time you asked me to open a bug"
    )
    assert briefing.recent[0].summary.startswith("Will asked")
    assert briefing.recent[0].context.startswith("Will may ask about")
    assert "Bil " not in render(briefing, app.settings.zone)
