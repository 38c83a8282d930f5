"""What the next call is told, as text and in full."""

import asyncio
import os
from datetime import UTC, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aftercall.briefing.render import CLOSING_TAG, OPENING_TAG, render
from aftercall.memory.extraction import list_briefed_facts
from aftercall.model.briefing import Briefing, RecentCall, ResumedCall
from aftercall.settings import Settings
from fakes import START, FakePhone, VirtualClock, make_call
from opened_apps import OpenApp
from step_stages import take_call

words = st.text(max_size=80)


@given(words, words, words)
def test_remembered_words_can_neither_close_the_fence_nor_open_another(
    greeting: str, summary: str, said: str
) -> None:
    turns = make_call([("caller", said)]).turns
    told = render(
        Briefing(
            greeting,
            "Bill",
            (RecentCall(START, summary),),
            ResumedCall("c", START, turns),
        ),
        UTC,
    )
    assert told.startswith(f"{OPENING_TAG}\n")
    assert told.endswith(f"\n{CLOSING_TAG}")
    assert (told.count("<"), told.count(">")) == (2, 2)
    assert len(told.split("\n")) == 8


def test_a_preview_tells_what_the_call_will_be_told_and_uses_nothing_up(
    tmp_path: Path, open_app: OpenApp
) -> None:
    clock = VirtualClock()
    app = open_app(Settings.model_validate({"home": tmp_path}), clock)
    take_call(app, "+15550100", "This is Bill. Please call the plumber.")
    clock.move(3_600)
    first, second = app.composer.preview("+15550100"), app.composer.preview("+15550100")
    assert first == second
    assert first.greeting.startswith(
        "Hey Bill, last time you asked me to call the plumber"
    )
    assert [call.summary for call in first.recent] == [
        "Bill asked for: Call the plumber."
    ]
    assert app.composer.preview("+15550199") == Briefing(
        app.settings.receptionist.greeting, at=clock.now()
    )


def test_inside_the_window_the_dropped_call_is_told_and_later_not(
    tmp_path: Path, open_app: OpenApp
) -> None:
    clock = VirtualClock()
    app = open_app(Settings.model_validate({"home": tmp_path}), clock)
    take_call(app, "+15550100", "Please call the plumber.")
    clock.move(10)
    told = app.composer.preview("+15550100")
    assert told.pick_up is not None
    assert "Caller: Please call the plumber." in render(told, UTC)
    clock.move(3_600)
    assert app.composer.preview("+15550100").pick_up is None


def test_an_old_greeting_is_no_greeting_any_more(
    tmp_path: Path, open_app: OpenApp
) -> None:
    clock = VirtualClock()
    app = open_app(Settings.model_validate({"home": tmp_path}), clock)
    take_call(app, "+15550100", "This is Bill. Please call the plumber.")
    left = tmp_path / "workspace" / "people" / "+15550100" / "NEXT_GREETING.txt"
    long_ago = (START - timedelta(days=60)).timestamp()
    os.utime(left, (long_ago, long_ago))
    clock.move(3_600)
    assert app.composer.preview("+15550100").greeting == "Hey Bill!"


def test_facts_are_told_with_their_day_and_secrets_never(
    tmp_path: Path, open_app: OpenApp
) -> None:
    clock = VirtualClock()
    app = open_app(Settings.model_validate({"home": tmp_path}), clock)
    take_call(
        app,
        "+15550100",
        "I prefer to be called in the evening.",
        "My PIN is 4471.",
        "My sister Ann lives in Porto.",
    )
    clock.move(86_400)
    told = app.composer.preview("+15550100")
    text = render(told, UTC)
    assert "Told us on 13 February 2026: " in text
    assert "evening" in text
    assert "4471" not in text
    assert app.composer.preview("+15550199").facts == ()


def test_what_a_call_was_told_is_kept_with_it_and_repeating_it_is_no_news(
    tmp_path: Path, open_app: OpenApp
) -> None:
    clock = VirtualClock()
    app = open_app(Settings.model_validate({"home": tmp_path}), clock)
    take_call(
        app,
        "+15550100",
        "I prefer to be called in the evening.",
        "Yes, that is so.",
        "Thank you.",
    )
    clock.move(86_400)
    told = [fact.id for fact in app.composer.preview("+15550100").facts]

    async def ring() -> str:
        call, _ = await FakePhone(app.phone.turn_parts).ring("Hello again.")
        return call.call.id

    kept, _ = app.archive.read(str(app.store.get(asyncio.run(ring())).archive_name))
    assert list_briefed_facts(kept) == set(told) != set()
