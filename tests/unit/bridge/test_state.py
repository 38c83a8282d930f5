"""The table of a streamed call's states: every way through it ends, and ends for a reason."""

from hypothesis import given
from hypothesis import strategies as st

from aftercall.bridge.state import TABLE, Action, Course, Signal, State


@given(st.lists(st.sampled_from(list(Signal)), max_size=30))
def test_whatever_happens_the_caller_leaving_ends_the_call_with_a_reason(signals: list[Signal]) -> None:
    course = Course()
    for signal in signals:
        course.take(signal)
    course.take(Signal.CALLER_GONE)
    assert course.is_over
    assert course.reason


def test_a_caller_who_talks_into_the_goodbye_is_heard_and_not_hung_up_on() -> None:
    course = Course()
    for signal in (Signal.ENGINE_READY, Signal.AGENT_ENDS, Signal.CALLER_TALKS):
        course.take(signal)
    assert (course.state, course.reason) == (State.TALKING_ON, None)
    course.take(Signal.TOO_LONG)
    course.take(Signal.CALLER_TALKS)
    assert (course.state, course.reason) == (State.LEAVING, "max_duration")


@given(st.lists(st.sampled_from(list(Signal)), max_size=30))
def test_the_engine_is_asked_back_at_most_once_and_nothing_happens_after_the_end(signals: list[Signal]) -> None:
    course = Course()
    actions = [course.take(signal) for signal in signals]
    assert actions.count(Action.RECONNECT) <= 1
    assert actions.count(Action.APOLOGISE) <= 1
    assert actions.count(Action.HANG_UP) <= 1
    if Action.HANG_UP in actions:
        assert set(actions[actions.index(Action.HANG_UP) + 1 :]) <= {Action.NONE}


def test_the_first_reason_stands() -> None:
    course = Course()
    for signal in (Signal.ENGINE_READY, Signal.SILENT_TOO_LONG, Signal.CALLER_GONE):
        course.take(signal)
    assert course.reason == "caller_silent"


def test_from_every_state_silence_or_loss_of_the_engine_leads_to_the_end() -> None:
    for state in State:
        if state is not State.ENDED:
            assert (state, Signal.CALLER_GONE) in TABLE
    assert not [state for state, _ in TABLE if state is State.ENDED]


def test_an_engine_that_refuses_is_not_asked_again() -> None:
    course = Course()
    assert course.take(Signal.ENGINE_REFUSED) is Action.APOLOGISE
    assert course.reason == "engine_lost"
