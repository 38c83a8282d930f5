"""Where a call of streamed audio stands, as a table: what may happen in each state, what it
leads to, what is to be done.

No await and no I/O: whoever holds the call asks the table and does what it says. What a state
does not list changes nothing.
"""

from dataclasses import dataclass
from enum import StrEnum


class CallPhase(StrEnum):
    CONNECTING = "the caller is on the line, the engine is not yet"
    TALKING = "both are"
    RECONNECTING = "the engine went away and is asked back, once"
    TALKING_ON = "it came back; it will not be asked back again"
    APOLOGISING = "there is no engine any more; the caller hears so"
    PARTING = "the agent says its last words; a caller who talks into them is heard"
    LEAVING = "the agent says its last words, and that is that"
    ENDED = "the line is free"


class CallSignal(StrEnum):
    ENGINE_READY = "the engine is there"
    ENGINE_LOST = "the engine broke, or gave no answer in time"
    ENGINE_CHANGED = (
        "the engine was let go: another session begins, for another caller than was thought"
    )
    ENGINE_REFUSED = "the engine will not have us; asking again is no use"
    AGENT_ENDS = "the agent wants to hang up"
    SILENT_TOO_LONG = "the caller has not said anything for long"
    TOO_LONG = "the call has lasted as long as a call may"
    NO_ROOM = "nothing that is said can be kept any more"
    PLAYED_OUT = "everything that was to be said has been"
    CALLER_TALKS = "the caller has begun to talk"
    CALLER_GONE = "the caller hung up, or the line broke"


class CallAction(StrEnum):
    NONE = "go on"
    RECONNECT = "ask the engine back, with what was said so far"
    CHANGE = "fall silent, and open another session"
    APOLOGISE = "play the apology, then hang up"
    FINISH_SPEAKING = "let the agent finish, then hang up"
    SAY_GOODBYE = "have the agent say goodbye, then hang up"
    HANG_UP = "free the line"


@dataclass(frozen=True, slots=True)
class CallTransition:
    phase: CallPhase
    action: CallAction
    end_reason: str | None = None
    """Why the call ends, once that is decided.

    The first reason stands, unless the call goes on after all.
    """


_LIVE = (CallPhase.CONNECTING, CallPhase.TALKING, CallPhase.RECONNECTING, CallPhase.TALKING_ON)
_SORRY = CallTransition(CallPhase.APOLOGISING, CallAction.APOLOGISE, "engine_lost")
_OVER = CallTransition(CallPhase.ENDED, CallAction.HANG_UP)

TRANSITIONS: dict[tuple[CallPhase, CallSignal], CallTransition] = {
    (CallPhase.CONNECTING, CallSignal.ENGINE_READY): CallTransition(
        CallPhase.TALKING, CallAction.NONE
    ),
    (CallPhase.CONNECTING, CallSignal.ENGINE_LOST): _SORRY,
    (CallPhase.TALKING, CallSignal.ENGINE_LOST): CallTransition(
        CallPhase.RECONNECTING, CallAction.RECONNECT
    ),
    (CallPhase.RECONNECTING, CallSignal.ENGINE_READY): CallTransition(
        CallPhase.TALKING_ON, CallAction.NONE
    ),
    (CallPhase.RECONNECTING, CallSignal.ENGINE_LOST): _SORRY,
    (CallPhase.TALKING_ON, CallSignal.ENGINE_LOST): _SORRY,
    (CallPhase.TALKING, CallSignal.ENGINE_CHANGED): CallTransition(
        CallPhase.CONNECTING, CallAction.CHANGE
    ),
    (CallPhase.TALKING_ON, CallSignal.ENGINE_CHANGED): CallTransition(
        CallPhase.RECONNECTING, CallAction.CHANGE
    ),
    **{(state, CallSignal.ENGINE_REFUSED): _SORRY for state in _LIVE},
    **{
        (state, CallSignal.TOO_LONG): CallTransition(
            CallPhase.LEAVING, CallAction.SAY_GOODBYE, "max_duration"
        )
        for state in (CallPhase.TALKING, CallPhase.TALKING_ON)
    },
    **{
        (state, CallSignal.NO_ROOM): CallTransition(
            CallPhase.LEAVING, CallAction.SAY_GOODBYE, "not_written"
        )
        for state in (CallPhase.TALKING, CallPhase.TALKING_ON)
    },
    **{
        (state, CallSignal.TOO_LONG): _SORRY
        for state in (CallPhase.CONNECTING, CallPhase.RECONNECTING)
    },
    **{
        (state, signal): CallTransition(CallPhase.PARTING, action, reason)
        for state in (CallPhase.TALKING, CallPhase.TALKING_ON)
        for signal, action, reason in (
            (CallSignal.AGENT_ENDS, CallAction.FINISH_SPEAKING, "agent_hung_up"),
            (CallSignal.SILENT_TOO_LONG, CallAction.SAY_GOODBYE, "caller_silent"),
        )
    },
    (CallPhase.PARTING, CallSignal.CALLER_TALKS): CallTransition(
        CallPhase.TALKING_ON, CallAction.NONE
    ),
    (CallPhase.PARTING, CallSignal.TOO_LONG): CallTransition(CallPhase.LEAVING, CallAction.NONE),
    **{
        (state, signal): _OVER
        for state in (CallPhase.PARTING, CallPhase.LEAVING)
        for signal in (CallSignal.PLAYED_OUT, CallSignal.ENGINE_LOST, CallSignal.ENGINE_REFUSED)
    },
    (CallPhase.APOLOGISING, CallSignal.PLAYED_OUT): _OVER,
    **{
        (state, CallSignal.CALLER_GONE): CallTransition(
            CallPhase.ENDED, CallAction.HANG_UP, "caller_hung_up"
        )
        for state in CallPhase
        if state is not CallPhase.ENDED
    },
}


class CallState:
    """One call's way through the table."""

    def __init__(self) -> None:
        self.phase = CallPhase.CONNECTING
        self.end_reason: str | None = None

    @property
    def is_over(self) -> bool:
        return self.phase is CallPhase.ENDED

    def apply(self, signal: CallSignal) -> CallAction:
        step = TRANSITIONS.get((self.phase, signal))
        if step is None:
            return CallAction.NONE
        self.phase = step.phase
        self.end_reason = (
            None if signal is CallSignal.CALLER_TALKS else self.end_reason or step.end_reason
        )
        return step.action
