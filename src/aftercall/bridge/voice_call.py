"""One call of streamed audio, from the start of the stream to the archive.

`state.py` says what happens next and when; this module does it, with the line, the engine, the
turn log and the clock.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field

from aftercall import telemetry
from aftercall.bridge.agent_voice import AgentVoice, CallTaps, MediaPump, load_clip
from aftercall.bridge.caller_tracker import (
    WRITE_TIMEOUT_S,
    CallerTracker,
    MakeIdentity,
    join_call,
)
from aftercall.bridge.conversation import ConversationParts, EngineConversation
from aftercall.bridge.pending_calls import PendingCall
from aftercall.bridge.state import (
    GO_ON,
    GOODBYES,
    STILL_THERE,
    THANK_YOU,
    CallAction,
    CallPhase,
    CallSignal,
    CallState,
    CallTimers,
    TimerDue,
)
from aftercall.bridge.tools import Recall, Toolbox
from aftercall.bridge.turn_log import TurnLog
from aftercall.clock import Clock, attempt
from aftercall.engine.voice import EngineOpening, VoiceEngine
from aftercall.errors import AftercallError, CallNotLive
from aftercall.journal.journal import Journal
from aftercall.journal.recorder import ResumeState, ResumeStates
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall, Turn
from aftercall.phone.wire import (
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
LATE_WORDS_TIMEOUT_S = 5.0
DRAIN_INTERVAL_S = 0.1
MAX_HISTORY_CHARS = 20_000
LOCAL_END_REASONS = frozenset(
    {"agent_hung_up", "engine_lost", "caller_silent", "max_duration", "not_written"}
)

log = get_logger("bridge")


@dataclass(frozen=True)
class VoiceCallParts:
    """What all calls of streamed audio share."""

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
    """Identifies callers by their words. If unset, a call belongs to the owner of its number."""
    taps: CallTaps = field(default_factory=CallTaps)


class VoiceCall:
    """One call with audio: the carrier's stream on one side, the engine on the other.

    It goes on when the engine is lost: a new one is told what was said so far.
    """

    def __init__(
        self, parts: VoiceCallParts, pending: PendingCall, pump: MediaPump
    ) -> None:
        self._parts = parts
        self._pending = pending
        self._pump = pump
        self._clock = parts.clock
        self._state = CallState()
        self._over = asyncio.Event()
        self._is_answered = False
        self._joining: asyncio.Task[None] | None = None
        self._parting: tuple[float, float] = (0.0, 0.0)

    async def run(self) -> None:
        """Returns when the call is in the archive, or left to recovery."""
        self._prepare()
        tasks = [
            asyncio.create_task(self._guard(work))
            for work in (
                self._pump.run(self._conversation.send_audio, self._on_wire_event),
                self._run_timers(),
                self._watch_line(),
            )
        ]
        conversing = asyncio.create_task(self._guard(self._run_conversation()))
        try:
            with self._parts.taps.open(self._pending.call.id, self._pump):
                await self._over.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.shield(self._end(conversing))
            await asyncio.gather(*tasks, conversing, return_exceptions=True)

    def _prepare(self) -> None:
        parts = self._parts
        call = self._pending.call
        clock = self._clock
        now_s = clock.monotonic()
        turn_log = self._turn_log = TurnLog(self._pending.recorder, clock)
        self._voice = AgentVoice(self._pump, turn_log, clock)
        self._timers = CallTimers(
            parts.settings, now_s, greeting_since_s=now_s, audio_at_s=now_s
        )
        self._caller = CallerTracker(
            call, turn_log, parts.recall, self._change_session, clock
        )
        tools = Toolbox(call, turn_log.write_event, self._caller.recall, clock)
        self._conversation = EngineConversation(
            ConversationParts(
                parts.engine,
                self._pump,
                self._voice,
                turn_log,
                self._timers,
                tools,
                clock,
            ),
            self._signal,
            self._caller.on_speech,
        )

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        """A failure in any task ends the call and keeps it: without its timers it never ends."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the edge of a call
            log.error(
                "the call broke", call=self._pending.call.id, error=type(error).__name__
            )
            await self._lose_caller("failed")

    async def _on_wire_event(self, event: WireEvent) -> None:
        match event:
            case MarkPlayed(name):
                self._voice.on_mark_played(name)
            case Digit(digit):
                self._turn_log.add_event("key.pressed", {"digit": digit})
            case StreamStopped(reason):
                is_ended = reason is StopReason.ENDED
                await self._lose_caller("caller_hung_up" if is_ended else "line_lost")
            case StreamRefused():
                await self._lose_caller("stream_refused")

    async def _lose_caller(self, reason: str) -> None:
        self._state.end_reason = self._state.end_reason or reason
        await self._signal(CallSignal.CALLER_GONE)

    async def _run_conversation(self) -> None:
        """Run a session. If it is lost, run another one that knows the turns so far."""
        state, briefing = await self._pending.briefing_task
        self._caller.start(self._parts.make_identity, briefing)
        instructions = self._parts.make_instructions(briefing)
        opening = EngineOpening(instructions, briefing.first_words, briefing=briefing)
        await self._conversation.run(opening, lambda: self._engine_ready(state))
        # CONNECTING again: another person is calling
        while self._state.phase in (CallPhase.RECONNECTING, CallPhase.CONNECTING):
            self._timers.on_engine_started(self._clock.monotonic())
            await self._try(WRITE_TIMEOUT_S / 2, self._turn_log.flush_all())
            first_words = GO_ON
            if new_briefing := self._caller.pop_new_caller_briefing():
                briefing = new_briefing
                instructions = self._parts.make_instructions(briefing)
                first_words = briefing.greeting if briefing.recent else THANK_YOU
            history = newest_turns(self._caller.history(), MAX_HISTORY_CHARS)
            opening = EngineOpening(instructions, first_words, history, briefing)
            await self._conversation.run(opening, lambda: self._engine_ready(None))

    def _change_session(self) -> None:
        """Another person is calling. A call that is ending just ends."""
        if self._state.phase in (CallPhase.TALKING, CallPhase.TALKING_ON):
            self._conversation.change_session()

    async def _try(self, seconds: float, work: Awaitable[None]) -> None:
        """For work that should be done but must not delay the call."""
        try:
            await attempt(self._clock, seconds, work)
        except AftercallError as error:
            log.warning("left undone", call=self._pending.call.id, reason=str(error))

    async def _engine_ready(self, state: ResumeState | None) -> None:
        """The caller hears the agent: only now is the call connected."""
        await self._signal(CallSignal.ENGINE_READY)
        if not self._is_answered:
            self._is_answered = True
            waited = self._clock.now() - self._pending.call.started_at
            telemetry.record("ring", waited.total_seconds(), self._pending.call.id)
        if self._caller.has_new_caller:
            # the caller spoke during the greeting, or before it
            self._change_session()
        if state is not None:
            joining = join_call(
                self._parts.resume, state, self._pending.recorder, self._clock
            )
            self._joining = asyncio.create_task(joining)

    async def _run_timers(self) -> None:
        while not self._state.is_over:
            await self._clock.sleep(TICK_S)
            self._voice.record_played()
            self._turn_log.flush_ready()
            self._voice.finish_stalled()
            if self._voice.is_idle:
                self._timers.on_silence(self._clock.monotonic())
            if self._state.phase in (
                CallPhase.PARTING,
                CallPhase.LEAVING,
                CallPhase.APOLOGISING,
            ):
                await self._hang_up_when_done()
            elif self._turn_log.is_full:
                await self._signal(CallSignal.NO_ROOM)
            elif due := self._timers.find_due(self._clock.monotonic()):
                await self._on_timer_due(due)

    async def _watch_line(self) -> None:
        """Notices a caller who is gone. A separate task: the others may wait for a stuck line."""
        while not self._state.is_over:
            await self._clock.sleep(LINE_CHECK_INTERVAL_S)
            if (
                self._pending.end_reason
                or self._pump.stuck_s() > SOCKET_STUCK_TIMEOUT_S
            ):
                await self._lose_caller(self._pending.end_reason or "line_lost")

    async def _on_timer_due(self, due: TimerDue) -> None:
        match due:
            case TimerDue.ENGINE_SILENT:
                self._conversation.drop_session()
            case TimerDue.HOLD_ON:
                self._voice.play_clip(load_clip("one_moment"))
            case TimerDue.PROMPT:
                await self._conversation.say(STILL_THERE)
            case TimerDue.GOODBYE:
                await self._signal(CallSignal.SILENT_TOO_LONG)
            case TimerDue.TOO_LONG:
                await self._signal(CallSignal.TOO_LONG)
            case TimerDue.KEEP_ALIVE:
                await self._conversation.keep_alive()

    async def _hang_up_when_done(self) -> None:
        """Hang up when the last words were heard, or do not come."""
        began_s, timeout_s = self._parting
        lasted_s = self._clock.monotonic() - began_s
        idle_s = self._voice.idle_s()
        has_spoken = idle_s < lasted_s
        is_heard = has_spoken and idle_s >= FINAL_PAUSE_S
        is_silent = self._voice.is_idle and lasted_s >= timeout_s
        if is_heard or is_silent or lasted_s >= ENDING_TIMEOUT_S:
            await self._signal(CallSignal.PLAYED_OUT)

    async def _signal(self, signal: CallSignal) -> None:
        match self._state.apply(signal):
            case CallAction.NONE:
                return
            case CallAction.RECONNECT:
                self._turn_log.add_event("engine.lost")
                self._voice.finish_all()
                return
            case CallAction.CHANGE:
                self._voice.interrupt()
                return
            case CallAction.HANG_UP:
                self._over.set()
            case CallAction.FINISH_SPEAKING:
                self._parting = (self._clock.monotonic(), FINISH_SPEAKING_TIMEOUT_S)
            case CallAction.APOLOGISE:
                self._parting = (self._clock.monotonic(), FINISH_SPEAKING_TIMEOUT_S)
                self._turn_log.add_event("engine.lost")
                self._voice.interrupt()
                self._voice.play_clip(load_clip("apology"))
            case CallAction.SAY_GOODBYE:
                self._parting = (self._clock.monotonic(), GOODBYE_TIMEOUT_S)
                await self._conversation.say(GOODBYES[signal])
        log.info(
            "the call changed its phase",
            call=self._pending.call.id,
            signal=signal.name.lower(),
            state=self._state.phase.name.lower(),
        )

    async def _end(self, conversing: asyncio.Task[None]) -> None:
        """Free the line, wait for late words, seal the call, attach words that come even later."""
        ended_at = self._clock.now()
        self._voice.discard_unplayed()
        if self._pump.oddities:
            counts = {
                reason.name.lower(): times
                for reason, times in self._pump.oddities.items()
            }
            self._turn_log.add_event("line.oddities", counts)
        await self._try(CLOSE_TIMEOUT_S, self._pump.close())
        if self._joining is not None:
            await asyncio.gather(self._joining, return_exceptions=True)
        reason = self._state.end_reason or "interrupted"
        self._pending.end_reason = self._pending.end_reason or reason
        if reason in LOCAL_END_REASONS:
            await self._try(CLOSE_TIMEOUT_S, self._parts.hang_up(self._pending.call))
        self._conversation.mute()
        await self._drain(self._parts.settings.drain_s)
        is_missing_words = (
            self._turn_log.is_missing_words and self._conversation.is_connected
        )
        await self._turn_log.close()
        recorder = self._pending.recorder
        try:
            await self._parts.journal.seal(
                recorder, end_reason=reason, ended_at=ended_at
            )
        except CallNotLive:
            pass  # another process has the call and seals it
        except AftercallError as error:
            log.error(
                "could not seal the call yet", call=recorder.call.id, error=error.code
            )
        else:
            if is_missing_words:
                await self._attach_late_words()
        await self._conversation.close()
        conversing.cancel()

    async def _drain(self, drain_s: float) -> None:
        """Wait for words while a session is connected: nothing announces that some will come."""
        until_s = self._clock.monotonic() + drain_s
        while self._conversation.is_connected and self._clock.monotonic() < until_s:
            await self._clock.sleep(min(DRAIN_INTERVAL_S, drain_s))
            self._turn_log.flush_ready()

    async def _attach_late_words(self) -> None:
        journal = self._parts.journal
        recorder = self._pending.recorder
        until_s = self._clock.monotonic() + LATE_WORDS_TIMEOUT_S
        drafts = self._turn_log.pop_unwritten()
        while (
            not drafts
            and self._conversation.is_connected
            and self._clock.monotonic() < until_s
        ):
            await self._clock.sleep(DRAIN_INTERVAL_S)
            drafts = self._turn_log.pop_unwritten()
        if not drafts:
            return
        late = [
            draft.to_turn(seq)
            for seq, draft in enumerate(drafts, recorder.next_turn_seq)
        ]
        try:
            row = await asyncio.to_thread(journal.store.get, recorder.call.id)
            await asyncio.to_thread(journal.add_addendum, row, late)
        except AftercallError as error:
            log.error(
                "late words could not be attached",
                call=recorder.call.id,
                error=error.code,
            )


def newest_turns(turns: Sequence[Turn], max_chars: int) -> Sequence[Turn]:
    """The last turns, as many as fit."""
    kept = 0
    for number, turn in enumerate(reversed(turns)):
        kept += len(turn.text)
        if kept > max_chars:
            return turns[len(turns) - number :]
    return turns
