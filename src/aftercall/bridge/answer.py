"""One call of streamed audio, from the stream's start to the archive: it brings line, engine, minutes and clock together.

What happens next is the table's to say (`state.py`), when is the watch's (`watch.py`); here it is done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass

from aftercall.bridge.acquaintance import Acquaintance
from aftercall.bridge.clips import clip
from aftercall.bridge.conversation import Conversation
from aftercall.bridge.lobby import Guest
from aftercall.bridge.minutes import Minutes
from aftercall.bridge.mouth import Mouth
from aftercall.bridge.pump import Pump
from aftercall.bridge.state import Action, Course, Signal, State
from aftercall.bridge.tools import Recall, Toolbox
from aftercall.bridge.turn_call import NOT_WRITTEN, WRITE_WITHIN_S, Attend, within
from aftercall.bridge.watch import Due, Watch
from aftercall.bridge.winding_up import Ending, wind_up
from aftercall.clock import Clock
from aftercall.engine.voice import Opening, VoiceEngine
from aftercall.errors import AftercallError
from aftercall.journal.record import Journal
from aftercall.journal.resume import ResumeDesk
from aftercall.journal.store import ResumeState
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.turns import Turn
from aftercall.phone.wire import AudioIn, Digit, MarkPlayed, Refused, Stopped, StopReason, WireEvent
from aftercall.settings import BridgeSettings

TICK_S = 0.25
LOOK_EVERY_S = 1.0
CLOSE_WITHIN_S = 2.0
STUCK_S = 10.0
FINISH_WITHIN_S = 1.5
GOODBYE_WITHIN_S = 4.0
PARTS_WITHIN_S = 30.0
PAUSE_S = 0.5
HISTORY_CHARACTERS = 20_000
OUR_ENDINGS = frozenset({"agent_hung_up", "engine_lost", "caller_silent", "max_duration", "not_written"})
STILL_THERE = "Are you still there?"
SILENT_GOODBYE = "I can't hear you, so I will hang up now. Please call again. Goodbye!"
LONG_GOODBYE = "I am sorry, but I have to end this call now. What you told me is written down. Please call again. Goodbye!"
GOODBYES = {Signal.TOO_LONG: LONG_GOODBYE, Signal.SILENT_TOO_LONG: SILENT_GOODBYE, Signal.NO_ROOM: NOT_WRITTEN.text}
THANK_YOU = "Thank you. Please go on."
GO_ON = "Sorry, I lost you for a moment. Please go on."

log = get_logger("bridge")


@dataclass(frozen=True)
class VoiceParts:
    """What every call of streamed audio stands on."""

    journal: Journal
    resume: ResumeDesk
    engine: VoiceEngine
    instruct: Callable[[Briefing], str]
    recall: Recall
    hang_up: Callable[[LiveCall], Awaitable[None]]
    """For carriers that keep a call open when its socket closes."""
    settings: BridgeSettings
    clock: Clock
    attend: Attend | None = None
    """Who listens for who is calling; nobody if unset: every call is its number's owner's."""


class VoiceCall:
    def __init__(self, parts: VoiceParts, guest: Guest, pump: Pump) -> None:
        self._parts = parts
        self._guest = guest
        self._pump = pump
        self._clock = parts.clock
        self._course = Course()
        self._over = asyncio.Event()
        self._joining: asyncio.Task[None] | None = None
        self._parting: tuple[float, float] = (0.0, 0.0)

    async def hold(self) -> None:
        """Returns when the call is in the archive, or left to recovery."""
        now_s = self._clock.monotonic()
        self._minutes = Minutes(self._guest.record, self._clock)
        self._mouth = Mouth(self._pump, self._minutes, self._clock)
        self._watch = Watch(self._parts.settings, now_s, greeting_since_s=now_s, audio_at_s=now_s)
        self._who = Acquaintance(self._guest.call, self._minutes, self._parts.recall, self._change, self._clock)
        tools = Toolbox(self._guest.call, self._minutes, self._who.recall, self._clock)
        self._talk = Conversation(
            self._parts.engine, self._mouth, self._minutes, self._watch, tools, self._signal, self._clock, self._who.overhear
        )
        sides = [asyncio.create_task(self._guard(work)) for work in (self._listen(), self._keep_time(), self._mind_line())]
        conversing = asyncio.create_task(self._guard(self._converse()))
        try:
            await self._over.wait()
        finally:
            for task in sides:
                task.cancel()
            await asyncio.shield(self._end(conversing))
            await asyncio.gather(*sides, conversing, return_exceptions=True)

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        """Whatever breaks in a call, it ends and is kept; one that goes on without its watch would never end."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the edge of a call
            log.error("the call broke", call=self._guest.call.id, error=type(error).__name__)  # noqa: TRY400 - a trace may hold speech
            await self._lose_caller("broken")

    async def _listen(self) -> None:
        """The caller's side, frame by frame."""
        self._pump.listen(self._hear)
        while not self._course.is_over:
            for event in await self._pump.receive():
                if isinstance(event, AudioIn):
                    self._hear(event.payload)
                else:
                    await self._tell(event)

    def _hear(self, payload: bytes) -> None:
        self._watch.audio_at_s = self._clock.monotonic()
        self._talk.hear(payload)

    async def _tell(self, event: WireEvent) -> None:
        match event:
            case MarkPlayed(name):
                self._mouth.mark_played(name)
            case Digit(digit):
                self._minutes.note("key.pressed", {"digit": digit})
            case Stopped(reason):
                await self._lose_caller("caller_hung_up" if reason is StopReason.ENDED else "line_lost")
            case Refused():
                await self._lose_caller("stream_refused")

    async def _lose_caller(self, reason: str) -> None:
        self._course.reason = self._course.reason or reason
        await self._signal(Signal.CALLER_GONE)

    async def _converse(self) -> None:
        """The agent's side: a session, and if it is lost in the middle, one more that knows what was said."""
        state, briefing = await self._guest.prepared
        self._who.begin(self._parts.attend, briefing)
        instructions = self._parts.instruct(briefing)
        await self._talk.run(Opening(instructions, briefing.first_words, briefing=briefing), lambda: self._engine_ready(state))
        while self._course.state in (State.MENDING, State.CONNECTING):  # connecting anew: somebody else is calling
            self._watch.engine_asked(self._clock.monotonic())
            await self._try(WRITE_WITHIN_S / 2, self._minutes.write_all())
            first_words = GO_ON
            if newcomer := self._who.take_newcomer():
                briefing = newcomer
                instructions, first_words = self._parts.instruct(newcomer), newcomer.greeting if newcomer.recent else THANK_YOU
            again = Opening(instructions, first_words, newest(self._who.history(), HISTORY_CHARACTERS), briefing)
            await self._talk.run(again, lambda: self._engine_ready(None))

    def _change(self) -> None:
        """Somebody else is calling than was thought. In a call that is ending nothing is told any more, and it ends."""
        if self._course.state in (State.TALKING, State.TALKING_ON):
            self._talk.change()

    async def _try(self, seconds: float, work: Awaitable[None]) -> None:
        """For what should be done but must not hold the call up."""
        try:
            await within(self._clock, seconds, work)
        except AftercallError as error:
            log.warning("left undone", call=self._guest.call.id, reason=str(error))

    async def _engine_ready(self, state: ResumeState | None) -> None:
        """The caller hears the agent: only now is the call really connected."""
        await self._signal(Signal.ENGINE_READY)
        if self._who.has_newcomer:  # who spoke into the greeting, or before it
            self._change()
        if state is not None:
            self._joining = asyncio.create_task(self._join(state))

    async def _join(self, state: ResumeState) -> None:
        record, call = self._guest.record, self._guest.call
        try:
            joined = await within(self._clock, WRITE_WITHIN_S, asyncio.to_thread(self._parts.resume.consume, state, call))
        except AftercallError as error:
            log.warning("the call could not be joined to the one before", call=call.id, error=error.code)
        else:
            record.call = joined or call

    async def _keep_time(self) -> None:
        while not self._course.is_over:
            await self._clock.sleep(TICK_S)
            self._mouth.settle()
            self._minutes.write_ready()
            await self._mouth.finish_stalled()
            if self._mouth.is_idle:
                self._watch.nobody_speaks(self._clock.monotonic())
            if self._course.state in (State.PARTING, State.LEAVING, State.APOLOGISING):
                await self._part()
            elif self._minutes.has_no_room:
                await self._signal(Signal.NO_ROOM)
            elif due := self._watch.find_due(self._clock.monotonic()):
                await self._do_due(due)

    async def _mind_line(self) -> None:
        """Whether the caller is still there. A task of its own: the others may be waiting for the very line that is stuck."""
        while not self._course.is_over:
            await self._clock.sleep(LOOK_EVERY_S)
            if self._guest.gone or self._pump.stuck_s() > STUCK_S:
                await self._lose_caller(self._guest.gone or "line_lost")

    async def _do_due(self, due: Due) -> None:
        match due:
            case Due.ENGINE_SILENT:
                self._talk.drop()
            case Due.HOLD_ON:
                await self._mouth.play_clip(clip("one_moment"))
            case Due.PROMPT:
                await self._talk.say(STILL_THERE)
            case Due.GOODBYE:
                await self._signal(Signal.SILENT_TOO_LONG)
            case Due.TOO_LONG:
                await self._signal(Signal.TOO_LONG)
            case Due.KEEP_ALIVE:
                await self._talk.keep_alive()

    async def _part(self) -> None:
        """Hang up when the last words were heard, or when they do not come."""
        began_s, patience_s = self._parting
        lasted_s = self._clock.monotonic() - began_s
        idle_s = self._mouth.idle_s()
        has_spoken = idle_s < lasted_s
        if (idle_s >= PAUSE_S and has_spoken) or (self._mouth.is_idle and lasted_s >= patience_s) or lasted_s >= PARTS_WITHIN_S:
            await self._signal(Signal.PLAYED_OUT)

    async def _signal(self, signal: Signal) -> None:
        action = self._course.take(signal)
        if action in (Action.NONE, Action.RECONNECT, Action.CHANGE):
            if action is Action.RECONNECT:
                self._minutes.note("engine.lost")
                await self._mouth.finish_all()
            if action is Action.CHANGE:
                await self._mouth.interrupt()
            return
        log.info("the call turns", call=self._guest.call.id, signal=signal.name.lower(), state=self._course.state.name.lower())
        if action is Action.HANG_UP:
            self._over.set()
            return
        self._parting = (self._clock.monotonic(), GOODBYE_WITHIN_S if action is Action.SAY_GOODBYE else FINISH_WITHIN_S)
        if action is Action.APOLOGISE:
            self._minutes.note("engine.lost")
            await self._mouth.interrupt()
            await self._mouth.play_clip(clip("apology"))
        elif action is Action.SAY_GOODBYE:
            await self._talk.say(GOODBYES[signal])

    async def _end(self, conversing: "asyncio.Task[None]") -> None:
        ended_at = self._clock.now()
        self._mouth.fall_silent()
        if self._pump.oddities:
            self._minutes.note("line.oddities", {reason.name.lower(): times for reason, times in self._pump.oddities.items()})
        await self._try(CLOSE_WITHIN_S, self._pump.close())
        if self._joining is not None:
            await asyncio.gather(self._joining, return_exceptions=True)
        reason = self._course.reason or "interrupted"
        self._guest.gone = self._guest.gone or reason
        if reason in OUR_ENDINGS:
            await self._try(CLOSE_WITHIN_S, self._parts.hang_up(self._guest.call))
        ending = Ending(reason, ended_at, self._parts.settings.drain_s)
        await wind_up(self._parts.journal, self._guest.record, self._minutes, self._talk, ending, self._clock)
        conversing.cancel()


def newest(turns: Sequence[Turn], characters: int) -> Sequence[Turn]:
    """As many of the last turns as that many characters hold."""
    kept = 0
    for number, turn in enumerate(reversed(turns)):
        kept += len(turn.text)
        if kept > characters:
            return turns[len(turns) - number :]
    return turns
