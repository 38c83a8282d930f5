"""How long a step waits, on virtual time; the clock that the engine asks SQLite for."""

import time

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from aftercall.durable import (
    MAX_REQUESTED_PAUSE_S,
    MAX_STEP_ATTEMPTS,
    MAX_STEP_PAUSE_S,
    next_pause_s,
)
from aftercall.errors import ModelUnavailable
from fakes import VirtualClock


async def test_a_model_away_for_an_hour_is_asked_again_within_ten_minutes() -> None:
    clock = VirtualClock()
    tries = 0

    def ask() -> None:
        if clock.monotonic() < 3600:
            raise ModelUnavailable("away")

    while True:
        tries += 1
        try:
            ask()
            break
        except ModelUnavailable as error:
            pause_s = next_pause_s(tries, error.retry_after_s)
            assert pause_s is not None
            clock.move(pause_s)
    assert 3600 <= clock.monotonic() <= 3600 + MAX_STEP_PAUSE_S
    assert tries < 20


def test_it_gives_up_after_about_a_day() -> None:
    pauses = [next_pause_s(tries) for tries in range(1, MAX_STEP_ATTEMPTS)]
    assert 20 * 3600 < sum(pause or 0 for pause in pauses) < 28 * 3600
    assert next_pause_s(MAX_STEP_ATTEMPTS) is None


@given(st.integers(1, MAX_STEP_ATTEMPTS - 1), st.none() | st.floats(0, 1e9))
def test_it_waits_as_long_as_it_was_asked_to_within_reason(
    tries: int, asked_s: float | None
) -> None:
    pause_s = next_pause_s(tries, asked_s)
    assert pause_s is not None
    assert min(asked_s or 0, MAX_REQUESTED_PAUSE_S) <= pause_s <= MAX_REQUESTED_PAUSE_S


def test_the_engine_has_its_clock_whatever_sqlite_this_python_brings() -> None:
    engine = create_engine("sqlite://")
    before = time.time()
    with engine.connect() as connection:
        told = connection.execute(text("SELECT unixepoch('subsec')")).scalar_one()
    engine.dispose()
    assert before - 0.002 <= told <= time.time() + 0.002  # whole milliseconds, rounded
