"""Where a call of streamed audio stands, and when something is due. No await and no I/O.

`TRANSITIONS` is the table: which signals each phase accepts, the phase they lead to, and what to
do. A signal that a phase does not list changes nothing. `CallTimers` measures two silences: when
the caller has spoken and the agent does not answer, something is wrong on our side; when the
agent has spoken and the caller does not, they are asked, and later the call ends.
"""

from dataclasses import dataclass
from enum import StrEnum

from aftercall.settings.sections import BridgeSettings

GREETING_TIMEOUT_S = 4.0
HOLD_ON_AFTER_S = 4.0
ANSWER_TIMEOUT_S = 15.0
MAX_MONOLOGUE_S = 120.0  # longer without a transcribed word, it was no speech
KEEP_ALIVE_S = 8.0


class CallPhase(StrEnum):
    CONNECTING = "the caller is on the line, the engine is not yet"
    TALKING = "both are on the line"
    RECONNECTING = "the engine was lost and is reconnected, once"
    TALKING_ON = "the engine is back; it will not be reconnected again"
    APOLOGISING = "the engine is gone for good; the caller hears the apology"
    PARTING = "the agent says its last words; the caller can still interrupt"
    LEAVING = "the agent says its last words; the call ends after them"
    ENDED = "the line is free"


class CallSignal(StrEnum):
    ENGINE_READY = "the engine sent its first audio"
    ENGINE_LOST = "the engine broke, or did not answer in time"
    ENGINE_CHANGED = "the session was dropped: another person is calling than assumed"
    ENGINE_REFUSED = "the engine refused the connection; a retry cannot help"
    AGENT_ENDS = "the agent wants to hang up"
    SILENT_TOO_LONG = "the caller has been silent for too long"
    TOO_LONG = "the call reached its maximum length"
    NO_ROOM = "nothing more can be written down"
    PLAYED_OUT = "everything was played"
    CALLER_TALKS = "the caller began to talk"
    CALLER_GONE = "the caller hung up, or the line broke"


class CallAction(StrEnum):
    NONE = "go on"
    RECONNECT = "open a new session with the turns so far"
    CHANGE = "stop speaking, and open another session"
    APOLOGISE = "play the apology, then hang up"
    FINISH_SPEAKING = "let the agent finish, then hang up"
    SAY_GOODBYE = "make the agent say goodbye, then hang up"
    HANG_UP = "free the line"


# What the caller hears from the bridge itself.
STILL_THERE = "Are you still there?"
THANK_YOU = "Thank you. Please go on."
GO_ON = "Sorry, I lost you for a moment. Please go on."
SILENT_GOODBYE = "I can't hear you, so I will hang up now. Please call again. Goodbye!"
NOT_WRITTEN_GOODBYE = (
    "I'm sorry, I can't take anything down right now. Please call again later. Goodbye."
)
LONG_GOODBYE = (
    "I am sorry, but I have to end this call now. What you told me is written down. Please "
    "call again. Goodbye!"
)
GOODBYES = {
    CallSignal.TOO_LONG: LONG_GOODBYE,
    CallSignal.SILENT_TOO_LONG: SILENT_GOODBYE,
    CallSignal.NO_ROOM: NOT_WRITTEN_GOODBYE,
}


@dataclass(frozen=True, slots=True)
class CallTransition:
    """`end_reason` is why the call ends. The first one stands, unless the call goes on."""

    phase: CallPhase
    action: CallAction
    end_reason: str | None = None


def _make_transitions() -> dict[tuple[CallPhase, CallSignal], CallTransition]:
    """The table of a call; a signal that it does not list for a phase changes nothing."""
    phase = CallPhase
    signal = CallSignal
    action = CallAction
    to = CallTransition
    sorry = to(phase.APOLOGISING, action.APOLOGISE, "engine_lost")
    over = to(phase.ENDED, action.HANG_UP)
    table = {
        (phase.CONNECTING, signal.ENGINE_READY): to(phase.TALKING, action.NONE),
        (phase.CONNECTING, signal.ENGINE_LOST): sorry,
        (phase.CONNECTING, signal.TOO_LONG): sorry,
        (phase.TALKING, signal.ENGINE_LOST): to(phase.RECONNECTING, action.RECONNECT),
        (phase.TALKING, signal.ENGINE_CHANGED): to(phase.CONNECTING, action.CHANGE),
        (phase.RECONNECTING, signal.ENGINE_READY): to(phase.TALKING_ON, action.NONE),
        (phase.RECONNECTING, signal.ENGINE_LOST): sorry,
        (phase.RECONNECTING, signal.TOO_LONG): sorry,
        (phase.TALKING_ON, signal.ENGINE_LOST): sorry,
        (phase.TALKING_ON, signal.ENGINE_CHANGED): to(
            phase.RECONNECTING, action.CHANGE
        ),
        (phase.APOLOGISING, signal.PLAYED_OUT): over,
        (phase.PARTING, signal.CALLER_TALKS): to(phase.TALKING_ON, action.NONE),
        (phase.PARTING, signal.TOO_LONG): to(phase.LEAVING, action.NONE),
    }
    for state in (phase.TALKING, phase.TALKING_ON):
        table |= {
            (state, signal.TOO_LONG): to(
                phase.LEAVING, action.SAY_GOODBYE, "max_duration"
            ),
            (state, signal.NO_ROOM): to(
                phase.LEAVING, action.SAY_GOODBYE, "not_written"
            ),
            (state, signal.AGENT_ENDS): to(
                phase.PARTING, action.FINISH_SPEAKING, "agent_hung_up"
            ),
            (state, signal.SILENT_TOO_LONG): to(
                phase.PARTING, action.SAY_GOODBYE, "caller_silent"
            ),
        }
    for state in (
        phase.CONNECTING,
        phase.TALKING,
        phase.RECONNECTING,
        phase.TALKING_ON,
    ):
        table[state, signal.ENGINE_REFUSED] = sorry
    for state in (phase.PARTING, phase.LEAVING):
        for end in (signal.PLAYED_OUT, signal.ENGINE_LOST, signal.ENGINE_REFUSED):
            table[state, end] = over
    for state in phase:
        if state is not phase.ENDED:
            table[state, signal.CALLER_GONE] = to(
                phase.ENDED, action.HANG_UP, "caller_hung_up"
            )
    return table


TRANSITIONS = _make_transitions()


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
            None
            if signal is CallSignal.CALLER_TALKS
            else self.end_reason or step.end_reason
        )
        return step.action


class TimerDue(StrEnum):
    ENGINE_SILENT = "the engine did not greet, or did not answer"
    HOLD_ON = "the caller waits for an answer and should hear that one is coming"
    PROMPT = "the caller should be asked whether they are there"
    GOODBYE = "the caller has been silent for too long"
    TOO_LONG = "the call reached its maximum length"
    KEEP_ALIVE = "the engine has had no audio for a while"


@dataclass
class CallTimers:
    """Moments on the monotonic clock. None: this timer does not run."""

    settings: BridgeSettings
    started_s: float
    greeting_since_s: float | None
    answer_since_s: float | None = None
    talk_since_s: float | None = None
    quiet_since_s: float | None = None
    audio_at_s: float = 0.0
    was_asked_to_hold: bool = False
    was_prompted: bool = False

    def on_caller_began(self, now_s: float) -> None:
        self.talk_since_s = now_s
        self.quiet_since_s = self.answer_since_s = None
        self.was_asked_to_hold = self.was_prompted = False

    def on_caller_said(self, now_s: float) -> None:
        self.on_caller_began(now_s)
        self.talk_since_s = None
        self.answer_since_s = now_s

    def on_agent_speaks(self) -> None:
        """The agent's own prompt does not restart the caller's silence."""
        self.greeting_since_s = self.answer_since_s = self.talk_since_s = None
        self.was_asked_to_hold = False
        if not self.was_prompted:
            self.quiet_since_s = None

    def on_silence(self, now_s: float) -> None:
        """Nothing is playing. The silence begins, unless a greeting, an answer or speech is due."""
        is_talking = (
            self.talk_since_s is not None
            and now_s - self.talk_since_s < MAX_MONOLOGUE_S
        )
        is_awaited = (
            self.answer_since_s is not None or self.greeting_since_s is not None
        )
        if self.quiet_since_s is None and not is_awaited and not is_talking:
            self.quiet_since_s = now_s

    def on_engine_started(self, now_s: float) -> None:
        """A new session owes a greeting."""
        self.greeting_since_s, self.answer_since_s, self.was_asked_to_hold = (
            now_s,
            None,
            False,
        )

    def find_due(self, now_s: float) -> TimerDue | None:
        """The most urgent timer that is due. Each is reported once."""

        def is_past(since_s: float | None, limit_s: float) -> bool:
            return since_s is not None and now_s - since_s >= limit_s

        settings = self.settings
        if now_s - self.started_s >= settings.max_duration_s:
            return TimerDue.TOO_LONG
        is_greeting_late = is_past(self.greeting_since_s, GREETING_TIMEOUT_S)
        if is_greeting_late or is_past(self.answer_since_s, ANSWER_TIMEOUT_S):
            self.greeting_since_s = self.answer_since_s = None
            return TimerDue.ENGINE_SILENT
        if not self.was_asked_to_hold and is_past(self.answer_since_s, HOLD_ON_AFTER_S):
            self.was_asked_to_hold = True
            return TimerDue.HOLD_ON
        if is_past(self.quiet_since_s, settings.silence_goodbye_s):
            self.quiet_since_s = None
            return TimerDue.GOODBYE
        if not self.was_prompted and is_past(
            self.quiet_since_s, settings.silence_prompt_s
        ):
            self.was_prompted = True
            return TimerDue.PROMPT
        if now_s - self.audio_at_s >= KEEP_ALIVE_S:
            self.audio_at_s = now_s
            return TimerDue.KEEP_ALIVE
        return None
