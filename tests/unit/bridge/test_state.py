"""The table of a streamed call's states: every way through it ends, and ends for a reason."""

from hypothesis import given
from hypothesis import strategies as st

from aftercall.bridge.state import (
    TRANSITIONS,
    CallAction,
    CallPhase,
    CallSignal,
    CallState,
)


@given(st.lists(st.sampled_from(list(CallSignal)), max_size=30))
def test_whatever_happens_the_caller_leaving_ends_the_call_with_a_reason(
    signals: list[CallSignal],
) -> None:
    course = CallState()
    for signal in signals:
        course.apply(signal)
    course.apply(CallSignal.CALLER_GONE)
    assert course.is_over
    assert course.end_reason


def test_a_caller_who_talks_into_the_goodbye_is_heard_and_not_hung_up_on() -> None:
    course = CallState()
    for signal in (
        CallSignal.ENGINE_READY,
        CallSignal.AGENT_ENDS,
        CallSignal.CALLER_TALKS,
    ):
        course.apply(signal)
    assert (course.phase, course.end_reason) == (CallPhase.TALKING_ON, None)
    course.apply(CallSignal.TOO_LONG)
    course.apply(CallSignal.CALLER_TALKS)
    assert (course.phase, course.end_reason) == (CallPhase.LEAVING, "max_duration")


@given(st.lists(st.sampled_from(list(CallSignal)), max_size=30))
def test_the_engine_is_asked_back_at_most_once_and_nothing_happens_after_the_end(
    signals: list[CallSignal],
) -> None:
    course = CallState()
    actions = [course.apply(signal) for signal in signals]
    assert actions.count(CallAction.RECONNECT) <= 1
    assert actions.count(CallAction.APOLOGISE) <= 1
    assert actions.count(CallAction.HANG_UP) <= 1
    if CallAction.HANG_UP in actions:
        assert set(actions[actions.index(CallAction.HANG_UP) + 1 :]) <= {
            CallAction.NONE
        }


def test_the_first_reason_stands() -> None:
    course = CallState()
    for signal in (
        CallSignal.ENGINE_READY,
        CallSignal.SILENT_TOO_LONG,
        CallSignal.CALLER_GONE,
    ):
        course.apply(signal)
    assert course.end_reason == "caller_silent"


def test_from_every_state_silence_or_loss_of_the_engine_leads_to_the_end() -> None:
    for state in CallPhase:
        if state is not CallPhase.ENDED:
            assert (state, CallSignal.CALLER_GONE) in TRANSITIONS
    assert not [state for state, _ in TRANSITIONS if state is CallPhase.ENDED]


def test_an_engine_that_refuses_is_not_asked_again() -> None:
    course = CallState()
    assert course.apply(CallSignal.ENGINE_REFUSED) is CallAction.APOLOGISE
    assert course.end_reason == "engine_lost"
