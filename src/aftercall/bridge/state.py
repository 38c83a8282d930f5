"""Where a call of streamed audio stands, as a table: what may happen in each state, what it leads to, what is to be done.

No await and no I/O: whoever holds the call asks the table and does what it says. What a state does not list changes nothing.
"""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    CONNECTING = "the caller is on the line, the engine is not yet"
    TALKING = "both are"
    MENDING = "the engine went away and is asked back, once"
    TALKING_ON = "it came back; it will not be asked back again"
    APOLOGISING = "there is no engine any more; the caller hears so"
    PARTING = "the agent says its last words; a caller who talks into them is heard"
    LEAVING = "the agent says its last words, and that is that"
    ENDED = "the line is free"


class Signal(StrEnum):
    ENGINE_READY = "the engine is there"
    ENGINE_LOST = "the engine broke, or gave no answer in time"
    ENGINE_CHANGED = "the engine was let go: another session begins, for another caller than was thought"
    ENGINE_REFUSED = "the engine will not have us; asking again is no use"
    AGENT_ENDS = "the agent wants to hang up"
    SILENT_TOO_LONG = "the caller has not said anything for long"
    TOO_LONG = "the call has lasted as long as a call may"
    NO_ROOM = "nothing that is said can be kept any more"
    PLAYED_OUT = "everything that was to be said has been"
    CALLER_TALKS = "the caller has begun to talk"
    CALLER_GONE = "the caller hung up, or the line broke"


class Action(StrEnum):
    NONE = "go on"
    RECONNECT = "ask the engine back, with what was said so far"
    CHANGE = "fall silent, and open another session"
    APOLOGISE = "play the apology, then hang up"
    FINISH_SPEAKING = "let the agent finish, then hang up"
    SAY_GOODBYE = "have the agent say goodbye, then hang up"
    HANG_UP = "free the line"


@dataclass(frozen=True, slots=True)
class Step:
    state: State
    action: Action
    reason: str | None = None
    """Why the call ends, once that is decided. The first reason stands, unless the call goes on after all."""


_LIVE = (State.CONNECTING, State.TALKING, State.MENDING, State.TALKING_ON)
_SORRY = Step(State.APOLOGISING, Action.APOLOGISE, "engine_lost")
_OVER = Step(State.ENDED, Action.HANG_UP)

TABLE: dict[tuple[State, Signal], Step] = {
    (State.CONNECTING, Signal.ENGINE_READY): Step(State.TALKING, Action.NONE),
    (State.CONNECTING, Signal.ENGINE_LOST): _SORRY,
    (State.TALKING, Signal.ENGINE_LOST): Step(State.MENDING, Action.RECONNECT),
    (State.MENDING, Signal.ENGINE_READY): Step(State.TALKING_ON, Action.NONE),
    (State.MENDING, Signal.ENGINE_LOST): _SORRY,
    (State.TALKING_ON, Signal.ENGINE_LOST): _SORRY,
    (State.TALKING, Signal.ENGINE_CHANGED): Step(State.CONNECTING, Action.CHANGE),
    (State.TALKING_ON, Signal.ENGINE_CHANGED): Step(State.MENDING, Action.CHANGE),
    **{(state, Signal.ENGINE_REFUSED): _SORRY for state in _LIVE},
    **{(state, Signal.TOO_LONG): Step(State.LEAVING, Action.SAY_GOODBYE, "max_duration") for state in (State.TALKING, State.TALKING_ON)},
    **{(state, Signal.NO_ROOM): Step(State.LEAVING, Action.SAY_GOODBYE, "not_written") for state in (State.TALKING, State.TALKING_ON)},
    **{(state, Signal.TOO_LONG): _SORRY for state in (State.CONNECTING, State.MENDING)},
    **{
        (state, signal): Step(State.PARTING, action, reason)
        for state in (State.TALKING, State.TALKING_ON)
        for signal, action, reason in (
            (Signal.AGENT_ENDS, Action.FINISH_SPEAKING, "agent_hung_up"),
            (Signal.SILENT_TOO_LONG, Action.SAY_GOODBYE, "caller_silent"),
        )
    },
    (State.PARTING, Signal.CALLER_TALKS): Step(State.TALKING_ON, Action.NONE),
    (State.PARTING, Signal.TOO_LONG): Step(State.LEAVING, Action.NONE),
    **{
        (state, signal): _OVER
        for state in (State.PARTING, State.LEAVING)
        for signal in (Signal.PLAYED_OUT, Signal.ENGINE_LOST, Signal.ENGINE_REFUSED)
    },
    (State.APOLOGISING, Signal.PLAYED_OUT): _OVER,
    **{(state, Signal.CALLER_GONE): Step(State.ENDED, Action.HANG_UP, "caller_hung_up") for state in State if state is not State.ENDED},
}


class Course:
    """One call's way through the table."""

    def __init__(self) -> None:
        self.state = State.CONNECTING
        self.reason: str | None = None

    @property
    def is_over(self) -> bool:
        return self.state is State.ENDED

    def take(self, signal: Signal) -> Action:
        step = TABLE.get((self.state, signal))
        if step is None:
            return Action.NONE
        self.state = step.state
        self.reason = None if signal is Signal.CALLER_TALKS else self.reason or step.reason
        return step.action
