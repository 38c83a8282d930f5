"""One test call, tick by tick: when the caller speaks, and what ends the call."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from aftercall.errors import AgentBroke, AgentRefused, LineFailed
from aftercall.ids import new_id
from aftercall.speech.sound import FRAME_S
from aftercall.tester.call_audio import (
    AGENT_GAP_S,
    AgentListener,
    AgentTranscriber,
    CallAudio,
    CallerSpeech,
    Recognise,
)
from aftercall.tester.caller import Caller, CallerMove
from aftercall.tester.line import (
    CALLER_FIRST,
    AgentConnection,
    AgentTick,
    CallerTick,
    DialedCall,
    Outcome,
    TickPace,
)
from aftercall.tester.record import CallLog, CallRecord, EndedBy, LineEvent, Span
from aftercall.tester.scenario import After, CallerHabits, PlannedCall, Scenario
from aftercall.tester.voice import (
    CallerVoice,
    LineQualityFilter,
    VoiceClip,
    press_keys,
    read_clip,
)

FAREWELL_S = 2.0
MIN_HABIT_S, MAX_HABIT_S = 1.0, 2.5  # into the agent's turn
MIN_INTERRUPTION_S, MAX_INTERRUPTION_S = 0.6, 4.0
INTERRUPTING = (
    "opening",
    "answer:",
    "stage:",
    "turn:",
)  # words of the script that cannot wait
MAX_LAST_WORDS_S = (
    6.0  # an agent that speaks after the goodbye is heard out for so long
)


@dataclass
class CallRig:
    """What every test call needs; `recognise` is for lines that carry only sound."""

    voice: CallerVoice
    pace: TickPace
    clips: Path = field(default_factory=Path)
    recognise: Recognise | None = None


@dataclass(frozen=True)
class ScriptedCall:
    """One call of a run: who calls, and the scenario it belongs to.

    Each turn is in the log before the call goes on.
    """

    caller: Caller
    scenario: Scenario
    number: int = 1
    run: int = 1
    log: CallLog | None = None

    @property
    def plan(self) -> PlannedCall:
        return self.scenario.calls[self.number - 1]

    @property
    def seed(self) -> int:
        return self.scenario.seed + self.run

    def new_id(self) -> str:
        return self.log.call_id if self.log else new_id()


async def run_call(
    rig: CallRig, connection: AgentConnection, call: ScriptedCall
) -> CallRecord:
    """Dials, talks and hangs up; every failure becomes part of the record."""
    scenario, number, log = call.scenario, call.number, call.log
    side = _CallerSide(rig, call)
    quality = LineQualityFilter(scenario.line, scenario.noise, call.seed)
    started_at = rig.pace.clock.now()
    caller_number = call.plan.caller_context.number
    dial = DialedCall(caller_number, scenario.name, number, scenario.limits.ring_s)
    outcome = await _dial(side, connection, dial)
    rig.pace.start()
    if outcome == "voicemail" and scenario.outcome != "voicemail":
        side.end("caller", "a mailbox answered")
        with suppress(LineFailed):
            await connection.hang_up()
    if outcome in ("answered", "voicemail") and side.ended_by is None:
        await _talk(rig, side, connection, quality, log)
    lost = [LineEvent(at_s, "frame_lost") for at_s in quality.lost_s]
    return CallRecord(
        id=call.new_id(),
        scenario=scenario.name,
        number=number,
        run=call.run,
        line=connection.kind,
        caller=caller_number,
        started_at=started_at,
        duration_s=side.audio.duration_s,
        outcome=outcome,
        ended_by=side.ended_by or "nobody",
        end_why=side.end_why,
        spans=side.audio.spans(),
        events=tuple(sorted([*side.audio.events, *lost], key=lambda event: event.at_s)),
        caller_sound=bytes(side.audio.caller),
        agent_sound=bytes(side.audio.agent),
        is_read_out=connection.kind == "text",
    )


async def _dial(
    side: "_CallerSide", connection: AgentConnection, dial: DialedCall
) -> Outcome:
    try:
        outcome = await connection.connect(dial)
    except AgentBroke as error:
        side.end_broken(0.0, error)
        return "answered"
    except LineFailed as error:
        side.end_broken(0.0, error)
        return "failed"
    if side.ended_by is None and outcome not in ("answered", "voicemail"):
        side.end("nobody", outcome)
    return outcome


async def _talk(
    rig: CallRig,
    side: "_CallerSide",
    connection: AgentConnection,
    quality: LineQualityFilter,
    log: CallLog | None,
) -> None:
    transcriber = None
    if rig.recognise is not None:
        transcriber = AgentTranscriber(rig.recognise, is_live=rig.pace.is_live)
    tick = 0
    try:
        while not side.ended_by:
            at_s = tick * FRAME_S
            near = side.send()
            if log is not None:
                # before the agent hears the turn: its answer may take long
                await log.add(*side.audio.pop_ended_turns(None))
            far = await connection.tick(at_s, side.degrade(near, quality, at_s))
            if transcriber is not None:
                far = await transcriber.process(at_s, far)
            await side.process_tick(at_s, near, far)
            if log is not None:
                await log.add(*side.pop_ended_turns(at_s))
            tick += 1
            await rig.pace.wait_until(tick * FRAME_S)
            if lateness_s := rig.pace.pop_lateness_s():
                side.audio.events.append(
                    LineEvent(at_s, "tester_late", f"{lateness_s:.2f}")
                )
        if transcriber is not None:
            side.audio.add_words(await transcriber.finish())
    except LineFailed as error:
        side.end_broken(tick * FRAME_S, error)
    finally:
        if transcriber is not None:
            transcriber.cancel()
        with suppress(LineFailed):  # the other side may be gone
            await connection.hang_up()


class _HabitDraws:
    """Draws, once for each of the agent's turns, what the caller does in it, and when."""

    def __init__(self, habits: CallerHabits, seed: int) -> None:
        self._habits = habits
        self._random = random.Random(seed)
        self._asides = list(habits.side_speech)
        self._turn_s = -1.0
        self._due: tuple[float, CallerMove] | None = None
        # draws of its own: a scenario without interruptions keeps its murmurs
        self._points = random.Random(f"interruptions {seed}")
        self._interrupted_s = -1.0
        self._point_s: float | None = None

    def pop_interruption(self, started_s: float, at_s: float) -> bool:
        """Whether the caller breaks into this turn now; at most once in a turn."""
        if started_s != self._interrupted_s:
            self._interrupted_s = started_s
            wants_to = self._points.random() < self._habits.interruptions
            point_s = self._points.uniform(MIN_INTERRUPTION_S, MAX_INTERRUPTION_S)
            self._point_s = started_s + point_s if wants_to else None
        if self._point_s is None or at_s < self._point_s:
            return False
        self._point_s = None
        return True

    def pop_due(self, started_s: float, at_s: float) -> CallerMove | None:
        if started_s != self._turn_s:
            self._turn_s, self._due = started_s, self._draw(started_s)
        if self._due is None or at_s < self._due[0]:
            return None
        (_, move), self._due = self._due, None
        return move

    def _draw(self, started_s: float) -> tuple[float, CallerMove] | None:
        due_s = started_s + self._random.uniform(MIN_HABIT_S, MAX_HABIT_S)
        if self._random.random() < self._habits.backchannels:
            return due_s, CallerMove("say", "Mhm.", "backchannel")
        if self._asides:
            return due_s, CallerMove("say", self._asides.pop(0), "side_speech")
        return None


class _CallerSide:
    """The caller's side of a call: listens, speaks, and decides what to say next and when."""

    def __init__(self, rig: CallRig, call: ScriptedCall) -> None:
        context = call.plan.caller_context
        self._voice = rig.voice.adapt(context.manner, call.scenario.language)
        self._habits = _HabitDraws(context.habits, call.seed)
        self._rig = rig
        self._caller = call.caller
        self._plan = call.plan
        self._limits = call.scenario.limits
        self._patience_s = context.patience_ms / 1000
        self._think_s = context.think_ms / 1000
        self._listener = AgentListener()
        self._speech = CallerSpeech()
        self._next: CallerMove | None = None
        self._next_at_s = 0.0
        self._heard: str | None = None
        self._armed_at_s = 0.0
        self._quiet_since_s = 0.0
        self._nudges = 0
        self._turns = 0
        self._silent_until_s = 0.0
        self._leaving_at_s: float | None = None
        self.audio = CallAudio()
        self.ended_by: EndedBy | None = None
        self.end_why = ""

    def end(self, who: EndedBy, why: str) -> None:
        self.ended_by, self.end_why = who, why

    def end_broken(self, at_s: float, error: LineFailed) -> None:
        """The agent's own failure ends the call in its name."""
        if isinstance(error, AgentBroke):
            self.audio.events.append(LineEvent(at_s, "agent_error", str(error)))
            self.end("agent", str(error))
            return
        if isinstance(error, AgentRefused):
            self.audio.events.append(LineEvent(at_s, "not_reached", str(error)))
        self.end("line", str(error))

    def send(self) -> CallerTick:
        near = self._speech.next()
        if self._speech.last is not None and (
            near.said is not None or near.digits is not None
        ):
            self.audio.add_said(self._speech.last)
        return near

    def degrade(
        self, near: CallerTick, quality: LineQualityFilter, at_s: float
    ) -> CallerTick:
        """What the caller sent, as it arrives: lost frames take their words with them."""
        if quality.is_clean:
            return near
        frame, said = quality.apply(near.frame, at_s), near.said
        if said is not None and self._speech.last is not None and quality.lost_s:
            said = quality.find_arrived_words(
                self._speech.last.clip, self._speech.last.start_s
            )
        return replace(near, frame=frame, said=said)

    async def process_tick(self, at_s: float, near: CallerTick, far: AgentTick) -> None:
        """Both frames of this tick are known."""
        self.audio.add(at_s, near, far)
        self._listener.receive_tick(at_s, far)
        after_s = at_s + FRAME_S
        if self._listener.is_speaking or self._speech.is_busy:
            self._quiet_since_s = after_s
        if near.said is not None or near.digits is not None:
            self._finish_turn(after_s)
        turns = self._turns + self._listener.turns
        if far.ended:
            self.end(far.ended, "hung up" if far.ended == "agent" else "the line broke")
        elif after_s >= self._limits.max_duration_s:
            self.end("limit", "max_duration_s")
        elif turns >= self._limits.max_turns and not self._speech.is_busy:
            self.end("limit", "max_turns")
        else:
            await self._decide(after_s)

    def pop_ended_turns(self, at_s: float) -> list[Span]:
        """Turns for the log; the agent's has ended after a pause, or when the call ended."""
        listener = self._listener
        last_s = listener.last_s or 0.0
        is_quiet = not listener.is_speaking and at_s - last_s >= AGENT_GAP_S
        has_ended = self.ended_by or (is_quiet and not listener.awaits_words)
        return self.audio.pop_ended_turns(last_s if has_ended else None)

    def _finish_turn(self, at_s: float) -> None:
        self._turns += 1
        self._armed_at_s = at_s
        self._listener.start_turn()
        if (
            self._plan.hangs_up_after is not None
            and self._turns >= self._plan.hangs_up_after
        ):
            self.end("line", "the line broke, as the scenario has it")

    async def _decide(self, at_s: float) -> None:
        if self._leaving_at_s is not None:
            is_heard_out = at_s >= self._leaving_at_s + MAX_LAST_WORDS_S
            is_quiet = not self._speech.is_busy and not self._listener.is_speaking
            if at_s >= self._leaving_at_s and (is_quiet or is_heard_out):
                self.end("caller", self.end_why)
            return
        if self._speech.is_busy or await self._speak_over(at_s):
            return
        if self._next is not None:
            self._speak_when_due(at_s)
        elif at_s < self._silent_until_s:
            return
        elif self._silent_until_s and not self._listener.is_speaking:
            self._silent_until_s = 0.0
            await self._respond(at_s)
        elif (
            self._listener.is_turn_over(at_s, self._patience_s)
            and not self._waits_for_event()
        ):
            self._nudges = 0
            await self._respond(at_s)
        else:
            await self._break_silence(at_s)

    async def _respond(self, at_s: float) -> None:
        self._heard = self._listener.pop_turn()
        self._plan_move(await self._caller.respond(self._heard), at_s)

    def _waits_for_event(self) -> bool:
        """Whether the next turn starts at the agent's next start or stop."""
        turn = self._caller.interjection()
        after = turn.after if turn is not None else None
        return after is not None and after.event in ("agent_starts", "agent_stops")

    def _interject(self, at_s: float) -> bool:
        turn = self._caller.interjection()
        if turn is None or turn.after is None:
            return False
        event_s = self._event_time(turn.after)
        if event_s is None or at_s < event_s + turn.after.delay_ms / 1000:
            return False
        self._next = None
        self._perform(
            self._caller.pop_interjection(), at_s, overlaps=self._listener.is_speaking
        )
        return True

    def _speak_by_habit(self, at_s: float) -> bool:
        listener = self._listener
        if not listener.is_speaking or listener.started_at_s is None:
            return False
        move = self._habits.pop_due(listener.started_at_s, at_s)
        if move is None:
            return False
        self.audio.events.append(LineEvent(at_s, move.why, move.text))
        self._perform(move, at_s, overlaps=True)
        return True

    async def _speak_over(self, at_s: float) -> bool:
        """Whether the caller has begun to speak without waiting for the agent's end."""
        if self._interject(at_s) or self._speak_by_habit(at_s):
            return True
        return await self._interrupt(at_s)

    async def _interrupt(self, at_s: float) -> bool:
        """Answers before the agent has finished, if what it said so far calls for an answer."""
        listener = self._listener
        if not listener.is_speaking or listener.started_at_s is None:
            return False
        if not self._habits.pop_interruption(listener.started_at_s, at_s):
            return False
        heard = listener.pop_turn()
        move = await self._caller.respond(heard)
        if not heard or not move.why.startswith(INTERRUPTING) or move.kind != "say":
            self._caller.undo_response()
            listener.restore_turn(heard, at_s)
            return False
        self._next = self._heard = None
        self._perform(move, at_s, overlaps=True)
        return True

    def _event_time(self, after: After) -> float | None:
        """When the event happened, if it did."""
        listener = self._listener
        if after.event == "call_starts":
            return 0.0
        if after.event == "agent_says":
            return listener.said_at(after.words)
        if after.event == "agent_stops":
            return (
                listener.last_s
                if listener.has_turn and not listener.is_speaking
                else None
            )
        started_s = listener.started_at_s
        is_new = started_s is not None and started_s >= self._armed_at_s - FRAME_S
        return started_s if is_new else None

    def _plan_move(self, move: CallerMove, at_s: float) -> None:
        if move.kind == "wait":
            self._silent_until_s = at_s + move.seconds if move.seconds else 0.0
            self._quiet_since_s = at_s
            return
        self._next, self._next_at_s = move, at_s + self._think_s
        if self._rig.pace.is_live and move.kind == "say":
            # voices keep what they have said: no tick waits for it when it is due
            asyncio.get_running_loop().run_in_executor(None, self._warm_up, move.text)

    def _warm_up(self, text: str) -> None:
        with suppress(LineFailed):
            self._voice.speak(text)

    def _speak_when_due(self, at_s: float) -> None:
        if self._next is None:
            return
        if self._listener.is_speaking:
            # the agent goes on: decide again when it is done
            if self._heard is not None:
                self._caller.undo_response()
                self._listener.restore_turn(self._heard, at_s)
            self._next = self._heard = None
        elif at_s >= self._next_at_s:
            move, self._next, self._heard = self._next, None, None
            self._perform(move, at_s, overlaps=False)

    def _perform(self, move: CallerMove, at_s: float, *, overlaps: bool) -> None:
        if move.kind == "wait":
            self._plan_move(move, at_s)
            return
        if move.text:
            self._speech.say(move, self._make_clip(move), at_s, overlaps=overlaps)
        if move.kind == "hang_up":
            self.end_why = move.why
            self._leaving_at_s = at_s + (FAREWELL_S if move.text else 0.0)

    def _make_clip(self, move: CallerMove) -> VoiceClip:
        if move.kind == "press":
            return press_keys(move.text)
        if move.clip is not None:
            return read_clip(self._rig.clips / move.clip, move.text)
        return self._voice.speak(move.text)

    async def _break_silence(self, at_s: float) -> None:
        first = (
            self._listener.turns == 0
            and self._turns == 0
            and not self._listener.has_turn
        )
        limit_s = self._limits.greeting_s if first else self._limits.max_silence_s
        if first and any(event.kind == CALLER_FIRST for event in self.audio.events):
            limit_s = 0.0
        if at_s - self._quiet_since_s < limit_s:
            return
        self._quiet_since_s = at_s
        self._nudges += 1
        if not first:
            self.audio.events.append(LineEvent(at_s, "dead_air", f"{limit_s:g}"))
        if first and self._nudges == 1:
            move = await self._caller.open()
        else:
            move = await self._caller.nudge(self._nudges)
        self._next, self._next_at_s = move, at_s
        self._speak_when_due(at_s)
        if move.kind == "hang_up" and self.end_why == "":
            self.end_why = move.why
