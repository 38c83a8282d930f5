"""The threads that take steps: the urgent first, and nothing lost."""

from concurrent.futures import CancelledError
from functools import partial
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.postcall.crew import Crew


@settings(max_examples=25)
@given(st.lists(st.integers(0, 2), max_size=30))
def test_the_urgent_come_first_and_among_equals_who_came_first(urgencies: list[int]) -> None:
    crew, hold, taken = Crew(1), Event(), list[tuple[int, int]]()
    first = crew.submit(9, hold.wait)  # the one hand is busy while the others arrive
    while not first.running():
        pass
    jobs = [
        crew.submit(urgency, partial(taken.append, (urgency, n)))
        for n, urgency in enumerate(urgencies)
    ]
    hold.set()
    for job in jobs:
        job.result(10)
    crew.close()
    assert taken == sorted((urgency, n) for n, urgency in enumerate(urgencies))


def test_what_a_step_raises_is_raised_where_its_end_is_awaited() -> None:
    crew = Crew(2)

    def fail() -> None:
        raise ValueError("the canary sings")

    with pytest.raises(ValueError, match="the canary sings"):
        crew.submit(1, fail).result(10)
    assert crew.submit(1, lambda: "still at work").result(10) == "still at work"
    crew.close()


def test_what_was_not_begun_when_the_crew_goes_home_is_cancelled_and_what_goes_on_ends() -> None:
    crew, hold, begun = Crew(1), Event(), Event()

    def work() -> str:
        begun.set()
        hold.wait()
        return "done"

    going_on, waiting = crew.submit(1, work), crew.submit(0, lambda: "never")
    begun.wait(10)
    crew.close()
    hold.set()
    assert going_on.result(10) == "done"
    with pytest.raises(CancelledError):
        waiting.result(10)


def test_while_only_the_urgent_is_wanted_nothing_else_is_begun_and_all_of_it_afterwards() -> None:
    crew, taken = Crew(2), list[str]()
    with crew.only_urgent(), crew.only_urgent():
        others = [crew.submit(1, partial(taken.append, "other")) for _ in range(5)]
        for _ in range(5):
            crew.submit(0, partial(taken.append, "urgent")).result(10)
        assert taken == ["urgent"] * 5
    for other in others:
        other.result(10)
    crew.close()
    assert taken == ["urgent"] * 5 + ["other"] * 5
