"""One call of streamed audio, from the stream's start to the archive: it brings line, engine,
minutes and clock together.

What happens next is the table's to say (`state.py`), when is the watch's (`watch.py`); here it
is done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass

from aftercall.bridge.agent_voice import AgentVoice, load_clip
from aftercall.bridge.caller_tracker import CallerTracker
from aftercall.bridge.conversation import EngineConversation
from aftercall.bridge.finish import CallEnding, finish_call
from aftercall.bridge.pending_calls import PendingCall
from aftercall.bridge.pump import MediaPump
from aftercall.bridge.state import CallAction, CallPhase, CallSignal, CallState
from aftercall.bridge.timers import CallTimers, TimerDue
from aftercall.bridge.tools import Recall, Toolbox
from aftercall.bridge.turn_call import NOT_WRITTEN, WRITE_TIMEOUT_S, MakeIdentity, with_timeout
from aftercall.bridge.turn_log import TurnLog
from aftercall.clock import Clock
from aftercall.engine.voice import EngineOpening, VoiceEngine
from aftercall.errors import AftercallError
from aftercall.journal.record import Journal
from aftercall.journal.resume import ResumeState, ResumeStates
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.turns import Turn
from aftercall.phone.wire import (
    AudioIn,
    Digit,
    MarkPlayed,
    StopReason,
    StreamRefused,
    StreamStopped,
    WireEvent,
)
from aftercall.settings.sections import BridgeSettings

TICK_S = 0.25
LINE_CHECK_INTERVAL_S = 1.0
CLOSE_TIMEOUT_S = 2.0
SOCKET_STUCK_TIMEOUT_S = 10.0
FINISH_SPEAKING_TIMEOUT_S = 1.5
GOODBYE_TIMEOUT_S = 4.0
ENDING_TIMEOUT_S = 30.0
FINAL_PAUSE_S = 0.5
MAX_HISTORY_CHARS = 20_000
LOCAL_END_REASONS = frozenset(
    {"agent_hung_up", "engine_lost", "caller_silent", "max_duration", "not_written"}
)
STILL_THERE = "Are you still there?"
SILENT_GOODBYE = "I can't hear you, so I will hang up now. Please call again. Goodbye!"
LONG_GOODBYE = (
    "I am sorry, but I have to end this call now. What you told me is written down. Please "
    "call again. Goodbye!"
)
GOODBYES = {
    CallSignal.TOO_LONG: LONG_GOODBYE,
    CallSignal.SILENT_TOO_LONG: SILENT_GOODBYE,
    CallSignal.NO_ROOM: NOT_WRITTEN.text,
}
THANK_YOU = "Thank you. Please go on."
GO_ON = "Sorry, I lost you for a moment. Please go on."

log = get_logger("bridge")


@dataclass(frozen=True)
class VoiceCallParts:
    """What every call of streamed audio stands on."""

    journal: Journal
    resume: ResumeStates
    engine: VoiceEngine
    make_instructions: Callable[[Briefing], str]
    recall: Recall
    hang_up: Callable[[LiveCall], Awaitable[None]]
    """For carriers that keep a call open when its socket closes."""
    settings: BridgeSettings
    clock: Clock
    make_identity: MakeIdentity | None = None
    """Who listens for who is calling; nobody if unset: every call is its number's owner's."""


class VoiceCall:
    def __init__(self, parts: VoiceCallParts, pending: PendingCall, pump: MediaPump) -> None:
        self._parts = parts
        self._pending = pending
        self._pump = pump
        self._clock = parts.clock
        self._state = CallState()
        self._over = asyncio.Event()
        self._joining: asyncio.Task[None] | None = None
        self._parting: tuple[float, float] = (0.0, 0.0)

    async def run(self) -> None:
        """Returns when the call is in the archive, or left to recovery."""
        now_s = self._clock.monotonic()
        self._turn_log = TurnLog(self._pending.record, self._clock)
        self._voice = AgentVoice(self._pump, self._turn_log, self._clock)
        self._timers = CallTimers(
            self._parts.settings, now_s, greeting_since_s=now_s, audio_at_s=now_s
        )
        self._caller = CallerTracker(
            self._pending.call,
            self._turn_log,
            self._parts.recall,
            self._change_session,
            self._clock,
        )
        tools = Toolbox(self._pending.call, self._turn_log, self._caller.recall, self._clock)
        self._conversation = EngineConversation(
            self._parts.engine,
            self._voice,
            self._turn_log,
            self._timers,
            tools,
            self._signal,
            self._clock,
            self._caller.on_speech,
        )
        sides = [
            asyncio.create_task(self._guard(work))
            for work in (self._listen(), self._run_timers(), self._watch_line())
        ]
        conversing = asyncio.create_task(self._guard(self._run_conversation()))
        try:
            await self._over.wait()
        finally:
            for task in sides:
                task.cancel()
            await asyncio.shield(self._end(conversing))
            await asyncio.gather(*sides, conversing, return_exceptions=True)

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        """Whatever breaks in a call, it ends and is kept; one that goes on without its watch
        would never end.
        """
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the edge of a call
            log.error("the call broke", call=self._pending.call.id, error=type(error).__name__)
            await self._lose_caller("broken")

    async def _listen(self) -> None:
        """The caller's side, frame by frame."""
        self._pump.set_audio_callback(self._on_audio)
        while not self._state.is_over:
            for event in await self._pump.receive():
                if isinstance(event, AudioIn):
                    self._on_audio(event.payload)
                else:
                    await self._on_wire_event(event)

    def _on_audio(self, payload: bytes) -> None:
        self._timers.audio_at_s = self._clock.monotonic()
        self._conversation.send_audio(payload)

    async def _on_wire_event(self, event: WireEvent) -> None:
        match event:
            case MarkPlayed(name):
                self._voice.on_mark_played(name)
            case Digit(digit):
                self._turn_log.add_event("key.pressed", {"digit": digit})
            case StreamStopped(reason):
                await self._lose_caller(
                    "caller_hung_up" if reason is StopReason.ENDED else "line_lost"
                )
            case StreamRefused():
                await self._lose_caller("stream_refused")

    async def _lose_caller(self, reason: str) -> None:
        self._state.end_reason = self._state.end_reason or reason
        await self._signal(CallSignal.CALLER_GONE)

    async def _run_conversation(self) -> None:
        """The agent's side: a session, and if it is lost in the middle, one more that knows
        what was said.
        """
        state, briefing = await self._pending.briefing_task
        self._caller.start(self._parts.make_identity, briefing)
        instructions = self._parts.make_instructions(briefing)
        await self._conversation.run(
            EngineOpening(instructions, briefing.first_words, briefing=briefing),
            lambda: self._engine_ready(state),
        )
        while self._state.phase in (
            CallPhase.RECONNECTING,
            CallPhase.CONNECTING,
        ):  # connecting anew: somebody else is calling
            self._timers.on_engine_started(self._clock.monotonic())
            await self._try(WRITE_TIMEOUT_S / 2, self._turn_log.flush_all())
            first_words = GO_ON
            if newcomer := self._caller.pop_new_caller_briefing():
                briefing = newcomer
                instructions, first_words = (
                    self._parts.make_instructions(newcomer),
                    newcomer.greeting if newcomer.recent else THANK_YOU,
                )
            again = EngineOpening(
                instructions,
                first_words,
                newest_turns(self._caller.history(), MAX_HISTORY_CHARS),
                briefing,
            )
            await self._conversation.run(again, lambda: self._engine_ready(None))

    def _change_session(self) -> None:
        """Somebody else is calling than was thought.

        In a call that is ending nothing is told any more, and it ends.
        """
        if self._state.phase in (CallPhase.TALKING, CallPhase.TALKING_ON):
            self._conversation.change_session()

    async def _try(self, seconds: float, work: Awaitable[None]) -> None:
        """For what should be done but must not hold the call up."""
        try:
            await with_timeout(self._clock, seconds, work)
        except AftercallError as error:
            log.warning("left undone", call=self._pending.call.id, reason=str(error))

    async def _engine_ready(self, state: ResumeState | None) -> None:
        """The caller hears the agent: only now is the call really connected."""
        await self._signal(CallSignal.ENGINE_READY)
        if self._caller.has_new_caller:  # who spoke into the greeting, or before it
            self._change_session()
        if state is not None:
            self._joining = asyncio.create_task(self._join(state))

    async def _join(self, state: ResumeState) -> None:
        record, call = self._pending.record, self._pending.call
        try:
            joined = await with_timeout(
                self._clock,
                WRITE_TIMEOUT_S,
                asyncio.to_thread(self._parts.resume.consume, state, call),
            )
        except AftercallError as error:
            log.warning(
                "the call could not be joined to the one before", call=call.id, error=error.code
            )
        else:
            record.call = joined or call

    async def _run_timers(self) -> None:
        while not self._state.is_over:
            await self._clock.sleep(TICK_S)
            self._voice.record_played()
            self._turn_log.flush_ready()
            await self._voice.finish_stalled()
            if self._voice.is_idle:
                self._timers.on_silence(self._clock.monotonic())
            if self._state.phase in (CallPhase.PARTING, CallPhase.LEAVING, CallPhase.APOLOGISING):
                await self._hang_up_when_done()
            elif self._turn_log.is_full:
                await self._signal(CallSignal.NO_ROOM)
            elif due := self._timers.find_due(self._clock.monotonic()):
                await self._on_timer_due(due)

    async def _watch_line(self) -> None:
        """Whether the caller is still there.

        A task of its own: the others may be waiting for the very line that is stuck.
        """
        while not self._state.is_over:
            await self._clock.sleep(LINE_CHECK_INTERVAL_S)
            if self._pending.end_reason or self._pump.stuck_s() > SOCKET_STUCK_TIMEOUT_S:
                await self._lose_caller(self._pending.end_reason or "line_lost")

    async def _on_timer_due(self, due: TimerDue) -> None:
        match due:
            case TimerDue.ENGINE_SILENT:
                self._conversation.drop_session()
            case TimerDue.HOLD_ON:
                await self._voice.play_clip(load_clip("one_moment"))
            case TimerDue.PROMPT:
                await self._conversation.say(STILL_THERE)
            case TimerDue.GOODBYE:
                await self._signal(CallSignal.SILENT_TOO_LONG)
            case TimerDue.TOO_LONG:
                await self._signal(CallSignal.TOO_LONG)
            case TimerDue.KEEP_ALIVE:
                await self._conversation.keep_alive()

    async def _hang_up_when_done(self) -> None:
        """Hang up when the last words were heard, or when they do not come."""
        began_s, patience_s = self._parting
        lasted_s = self._clock.monotonic() - began_s
        idle_s = self._voice.idle_s()
        has_spoken = idle_s < lasted_s
        if (
            (idle_s >= FINAL_PAUSE_S and has_spoken)
            or (self._voice.is_idle and lasted_s >= patience_s)
            or lasted_s >= ENDING_TIMEOUT_S
        ):
            await self._signal(CallSignal.PLAYED_OUT)

    async def _signal(self, signal: CallSignal) -> None:
        action = self._state.apply(signal)
        if action in (CallAction.NONE, CallAction.RECONNECT, CallAction.CHANGE):
            if action is CallAction.RECONNECT:
                self._turn_log.add_event("engine.lost")
                await self._voice.finish_all()
            if action is CallAction.CHANGE:
                await self._voice.interrupt()
            return
        log.info(
            "the call turns",
            call=self._pending.call.id,
            signal=signal.name.lower(),
            state=self._state.phase.name.lower(),
        )
        if action is CallAction.HANG_UP:
            self._over.set()
            return
        self._parting = (
            self._clock.monotonic(),
            GOODBYE_TIMEOUT_S if action is CallAction.SAY_GOODBYE else FINISH_SPEAKING_TIMEOUT_S,
        )
        if action is CallAction.APOLOGISE:
            self._turn_log.add_event("engine.lost")
            await self._voice.interrupt()
            await self._voice.play_clip(load_clip("apology"))
        elif action is CallAction.SAY_GOODBYE:
            await self._conversation.say(GOODBYES[signal])

    async def _end(self, conversing: "asyncio.Task[None]") -> None:
        ended_at = self._clock.now()
        self._voice.discard_unplayed()
        if self._pump.oddities:
            self._turn_log.add_event(
                "line.oddities",
                {reason.name.lower(): times for reason, times in self._pump.oddities.items()},
            )
        await self._try(CLOSE_TIMEOUT_S, self._pump.close())
        if self._joining is not None:
            await asyncio.gather(self._joining, return_exceptions=True)
        reason = self._state.end_reason or "interrupted"
        self._pending.end_reason = self._pending.end_reason or reason
        if reason in LOCAL_END_REASONS:
            await self._try(CLOSE_TIMEOUT_S, self._parts.hang_up(self._pending.call))
        ending = CallEnding(reason, ended_at, self._parts.settings.drain_s)
        await finish_call(
            self._parts.journal,
            self._pending.record,
            self._turn_log,
            self._conversation,
            ending,
            self._clock,
        )
        conversing.cancel()


def newest_turns(turns: Sequence[Turn], max_chars: int) -> Sequence[Turn]:
    """As many of the last turns as that many characters hold."""
    kept = 0
    for number, turn in enumerate(reversed(turns)):
        kept += len(turn.text)
        if kept > max_chars:
            return turns[len(turns) - number :]
    return turns
