"""A call is read once for all questions, and no call waits for the reading of another."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Event
from zoneinfo import ZoneInfo

import pytest

from aftercall.llm.model.questions import format_call_data
from aftercall.llm.reader import CachedReader, LocalReader
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import Call
from aftercall.model.reading import Profile, Reading
from fakes import make_call

SLOW, QUICK = make_call(), make_call()


class SlowReader(CachedReader):
    """Reads one call when it is let; fails at first if it is told to."""

    name = "slow"

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.may_read = Event()
        self.calls: list[str] = []
        self._failures = failures

    def read(self, call: Call) -> Reading:
        self.calls.append(call.id)
        if len(self.calls) <= self._failures:
            raise ValueError("not today")
        if call is SLOW:
            self.may_read.wait()
        return Reading(language="en", summary="", profile=Profile(name=call.id))


@pytest.fixture
def steps() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def test_steps_that_ask_at_the_same_time_get_one_reading(
    steps: ThreadPoolExecutor,
) -> None:
    reader = SlowReader()
    asked = [steps.submit(reader.find_profile, SLOW) for _ in range(4)]
    reader.may_read.set()
    assert {each.result().value.name for each in asked} == {SLOW.id}
    assert reader.calls == [SLOW.id]


def test_a_call_does_not_wait_for_the_reading_of_another(
    steps: ThreadPoolExecutor,
) -> None:
    reader = SlowReader()
    slow = steps.submit(reader.find_profile, SLOW)
    assert reader.find_profile(QUICK).value.name == QUICK.id
    assert not slow.done()
    reader.may_read.set()
    assert slow.result().value.name == SLOW.id


def test_a_reading_that_failed_is_made_again() -> None:
    reader = SlowReader(failures=1)
    with pytest.raises(ValueError, match="not today"):
        reader.find_profile(QUICK)
    assert reader.find_profile(QUICK).value.name == QUICK.id


def test_a_forgotten_reading_is_made_again() -> None:
    reader = SlowReader()
    reader.find_profile(QUICK)
    reader.forget(QUICK.id)
    reader.find_profile(QUICK)
    assert reader.calls == [QUICK.id] * 2


@pytest.mark.parametrize(
    ("zone", "started", "due"),
    [
        ("UTC", datetime(2026, 11, 9, 22, 30, tzinfo=UTC), "2026-11-10"),
        ("Australia/Sydney", datetime(2026, 11, 9, 22, 30, tzinfo=UTC), "2026-11-11"),
        ("America/New_York", datetime(2026, 11, 10, 1, 30, tzinfo=UTC), "2026-11-10"),
    ],
)
def test_tomorrow_is_the_day_after_the_day_in_the_zone(
    zone: str, started: datetime, due: str
) -> None:
    call = make_call(
        [("agent", "Hello!"), ("caller", "Please call the plumber tomorrow.")],
        started_at=started,
    )
    (request,) = LocalReader(RulesReader(), ZoneInfo(zone)).read(call).requests
    assert str(request.due) == due


def test_a_model_is_told_the_time_by_the_clocks_of_the_zone() -> None:
    class Teller(SlowReader):
        def read(self, call: Call) -> Reading:
            asked = format_call_data(call, ["caller: Hello."])
            return Reading(language="en", summary=asked, profile=Profile())

    call = make_call(started_at=datetime(2026, 11, 9, 22, 30, tzinfo=UTC))
    told = LocalReader(Teller(), ZoneInfo("Australia/Sydney")).read(call).summary
    assert "Tuesday 2026-11-10 09:30 AEDT." in told
