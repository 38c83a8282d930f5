"""Words that arrive after the seal are read and acted on like the others; on both databases."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from aftercall.app import App, build
from aftercall.clock import SystemClock
from aftercall.journal.store import CallRow
from aftercall.model.calls import Event, Turn
from aftercall.postcall.store import are_finished
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import VirtualClock, make_call
from opened_apps import OpenApp

SAID = (
    ("agent", "Hello!"),
    ("caller", "It's Bill Harker. Please open a bug about the broken thumbnails."),
    ("agent", "Noted."),
)
LATE = "And please order ten chairs for the office."


def add_late_words(app: App, row: CallRow, *texts: str) -> None:
    seq = app.store.get(row.live.id).turn_count
    at = app.clock.now()
    app.journal.add_addendum(
        app.store.get(row.live.id),
        [
            Turn(seq=seq + number, speaker="caller", text=text, at=at)
            for number, text in enumerate(texts, 1)
        ],
    )


async def until(is_so: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(is_so):
        await asyncio.sleep(0.05)


def is_over(app: App, row: CallRow) -> bool:
    """Nothing is due or under way: neither of the call nor of its conversation."""
    return (
        row.live.id not in app.steps.list_due()
        and bool(app.steps.of_call(row.live.id))
        and are_finished(app.steps.of_call(row.live.id))
        and not app.work.runs.is_pending(row.live.conversation)
    )


def titles(app: App, row: CallRow) -> list[str]:
    rows = app.work.followups.of_conversation(row.live.conversation)
    return sorted(item.title.casefold() for item in rows if item.kind == "request")


def open_live(open_app: OpenApp, settings: Settings) -> App:
    soon = settings.model_copy(update={"reconnect_window_s": 0.1})
    return open_app(soon, SystemClock())


async def test_late_words_are_summed_up_and_acted_on(
    open_app: OpenApp, settings: Settings
) -> None:
    app = open_live(open_app, settings)
    async with running(app):
        row, _ = await asyncio.to_thread(app.journal.ingest, make_call(SAID))
        await until(lambda: is_over(app, row))
        (first,) = titles(app, row)
        assert "chairs" not in app.steps.result_of(row.live.id, "summary")
        await asyncio.to_thread(add_late_words, app, row, LATE)
        await until(lambda: len(titles(app, row)) > 1 and is_over(app, row))
    asked = titles(app, row)
    assert first in asked
    assert len(asked) == 2
    assert "chairs" in "".join(asked)
    assert "chairs" in app.steps.result_of(row.live.id, "summary")


async def test_late_words_before_and_during_the_work_are_read_too(
    open_app: OpenApp, settings: Settings
) -> None:
    app = open_live(open_app, settings)
    row, _ = app.journal.ingest(make_call(SAID))
    add_late_words(app, row, "And the login page is broken.")
    async with running(app):
        await asyncio.to_thread(add_late_words, app, row, LATE)
        await until(lambda: is_over(app, row) and "chairs" in "".join(titles(app, row)))
    assert app.store.get(row.live.id).addenda == 2
    assert len([title for title in titles(app, row) if "chairs" in title]) == 1
    assert "chairs" in app.steps.result_of(row.live.id, "summary")


async def test_late_events_without_words_start_nothing(
    open_app: OpenApp, settings: Settings
) -> None:
    app = open_live(open_app, settings)
    async with running(app):
        row, _ = await asyncio.to_thread(app.journal.ingest, make_call(SAID))
        await until(lambda: is_over(app, row))
        late = [Event(seq=1, kind="note", at=app.clock.now())]
        sealed = app.store.get(row.live.id)
        await asyncio.to_thread(app.journal.add_addendum, sealed, late)
        assert await asyncio.to_thread(is_over, app, row)


def test_a_start_that_was_overtaken_by_late_words_leaves_the_call_due(app: App) -> None:
    row, _ = app.journal.ingest(make_call(SAID))
    seen = app.steps.list_due()
    add_late_words(app, row, LATE)
    app.steps.mark_started(seen)
    assert app.steps.list_due() == {row.live.id: 1}
    app.steps.mark_started(app.steps.list_due())
    assert app.steps.list_due() == {}


def test_a_rebuild_reads_late_words_and_counts_them(
    tmp_path: Path, clock: VirtualClock, open_app: OpenApp
) -> None:
    first = build(Settings(home=tmp_path), clock)
    row, _ = first.journal.ingest(make_call(SAID))
    add_late_words(first, row, LATE)
    counted = first.store.get(row.live.id)
    first.close()
    other = DatabaseSettings(url=f"sqlite:///{tmp_path / 'other.db'}")
    second = open_app(Settings(home=tmp_path, database=other), clock)
    second.rebuilder.rebuild()
    rebuilt = second.store.get(row.live.id)
    assert (rebuilt.addenda, rebuilt.turn_count) == (1, 4)
    assert (counted.addenda, counted.turn_count) == (1, 4)
    assert "chairs" in second.steps.result_of(row.live.id, "summary")
    assert any("chairs" in title for title in titles(second, row))
    assert second.webhooks.publish() == 0  # nobody is told of it again
