"""The times of a call: when somebody has been silent for too long, and what follows.

Values only; the clock is the caller's.

Two silences differ. When the caller has spoken and the agent does not answer, something is
wrong on our side. When the agent has spoken and the caller does not, they are asked, and after
a while let go.
"""

from dataclasses import dataclass
from enum import StrEnum

from aftercall.settings.sections import BridgeSettings

GREETING_TIMEOUT_S = 4.0
HOLD_ON_AFTER_S = 4.0
ANSWER_TIMEOUT_S = 15.0
MAX_MONOLOGUE_S = 120.0  # longer without a word written down, it was no speech
KEEP_ALIVE_S = 8.0


class TimerDue(StrEnum):
    ENGINE_SILENT = "the engine has not greeted, or not answered for so long that it never will"
    HOLD_ON = "the caller has waited for an answer and should hear that one is coming"
    PROMPT = "the caller should be asked whether they are there"
    GOODBYE = "the caller has been silent for too long"
    TOO_LONG = "the call has lasted as long as it may"
    KEEP_ALIVE = "the engine has not had any audio for a while"


@dataclass
class CallTimers:
    """Moments on the monotonic clock; None is something that is not being waited for."""

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
        """Its own prompt does not start the caller's silence anew."""
        self.greeting_since_s = self.answer_since_s = self.talk_since_s = None
        self.was_asked_to_hold = False
        if not self.was_prompted:
            self.quiet_since_s = None

    def on_silence(self, now_s: float) -> None:
        """The agent has nothing more to say; unless somebody else is at it or owes a word, the
        silence begins.
        """
        is_talking = self.talk_since_s is not None and now_s - self.talk_since_s < MAX_MONOLOGUE_S
        if (
            self.quiet_since_s is None
            and self.answer_since_s is None
            and self.greeting_since_s is None
            and not is_talking
        ):
            self.quiet_since_s = now_s

    def on_engine_started(self, now_s: float) -> None:
        """A session was begun, or begun anew: it owes a first word."""
        self.greeting_since_s, self.answer_since_s, self.was_asked_to_hold = now_s, None, False

    def find_due(self, now_s: float) -> TimerDue | None:
        """The most urgent thing that is due; each is named once."""
        if now_s - self.started_s >= self.settings.max_duration_s:
            return TimerDue.TOO_LONG
        if _is_past(self.greeting_since_s, GREETING_TIMEOUT_S, now_s) or _is_past(
            self.answer_since_s, ANSWER_TIMEOUT_S, now_s
        ):
            self.greeting_since_s = self.answer_since_s = None
            return TimerDue.ENGINE_SILENT
        if not self.was_asked_to_hold and _is_past(self.answer_since_s, HOLD_ON_AFTER_S, now_s):
            self.was_asked_to_hold = True
            return TimerDue.HOLD_ON
        if _is_past(self.quiet_since_s, self.settings.silence_goodbye_s, now_s):
            self.quiet_since_s = None
            return TimerDue.GOODBYE
        if not self.was_prompted and _is_past(
            self.quiet_since_s, self.settings.silence_prompt_s, now_s
        ):
            self.was_prompted = True
            return TimerDue.PROMPT
        if now_s - self.audio_at_s >= KEEP_ALIVE_S:
            self.audio_at_s = now_s
            return TimerDue.KEEP_ALIVE
        return None


def _is_past(since_s: float | None, limit_s: float, now_s: float) -> bool:
    return since_s is not None and now_s - since_s >= limit_s
