"""One test call, tick by tick: what the agent sounds like, when the caller speaks, and what
ends it.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from aftercall.errors import LineFailed
from aftercall.ids import new_id
from aftercall.speech.sound import FRAME_S
from aftercall.tester.call_audio import AGENT_GAP_S, CallAudio
from aftercall.tester.call_log import CallLog
from aftercall.tester.caller import Caller, CallerMove
from aftercall.tester.line import (
    AgentConnection,
    AgentTick,
    CallerTick,
    DialedCall,
    Outcome,
    TickPace,
)
from aftercall.tester.listening import AgentListener
from aftercall.tester.quality import LineQualityFilter
from aftercall.tester.record import CallRecord, EndedBy, LineEvent, Span
from aftercall.tester.scenario import After, CallLimits, PlannedCall, Scenario
from aftercall.tester.speaking import CallerSpeech
from aftercall.tester.voice import CallerVoice

FAREWELL_S = 2.0


@dataclass
class CallRig:
    """What every test call stands on."""

    voice: CallerVoice
    pace: TickPace
    clips: Path = field(default_factory=Path)


async def run_call(
    rig: CallRig,
    connection: AgentConnection,
    caller: Caller,
    scenario: Scenario,
    *,
    number: int = 1,
    run: int = 1,
    log: CallLog | None = None,
) -> CallRecord:
    """Ring, talk, hang up; whatever happens is a result.

    Each turn is in the log before the call goes on.
    """
    plan = scenario.calls[number - 1]
    talk = _CallerSide(rig, caller, plan, scenario.limits)
    quality = LineQualityFilter(scenario.line, scenario.noise, scenario.seed + run)
    started_at = rig.pace.clock.now()
    outcome = await _ring(
        talk,
        connection,
        DialedCall(plan.caller_context.number, scenario.name, number, scenario.limits.ring_s),
    )
    rig.pace.start()
    if outcome in ("answered", "voicemail"):
        await _talk(talk, connection, quality, rig.pace, log)
    lost = [LineEvent(at_s, "frame_lost") for at_s in quality.lost_s]
    return CallRecord(
        id=log.call_id if log else new_id(),
        scenario=scenario.name,
        number=number,
        run=run,
        line=connection.kind,
        caller=plan.caller_context.number,
        started_at=started_at,
        duration_s=talk.audio.duration_s,
        outcome=outcome,
        ended_by=talk.ended_by or "nobody",
        end_why=talk.end_why,
        spans=talk.audio.spans(),
        events=tuple(sorted([*talk.audio.events, *lost], key=lambda event: event.at_s)),
        caller_sound=bytes(talk.audio.caller),
        agent_sound=bytes(talk.audio.agent),
        is_read_out=connection.kind == "text",
    )


async def _ring(talk: "_CallerSide", far: AgentConnection, dial: DialedCall) -> Outcome:
    try:
        outcome = await far.connect(dial)
    except LineFailed as error:
        talk.end("line", str(error))
        return "failed"
    if outcome not in ("answered", "voicemail"):
        talk.end("nobody", outcome)
    return outcome


async def _talk(
    talk: "_CallerSide",
    far: AgentConnection,
    quality: LineQualityFilter,
    pace: TickPace,
    log: CallLog | None,
) -> None:
    try:
        await _run(talk, far, quality, pace, log)
    except LineFailed as error:
        talk.end("line", str(error))
    finally:
        with suppress(LineFailed):  # whoever is gone need not be told
            await far.hang_up()


async def _run(
    talk: "_CallerSide",
    far: AgentConnection,
    quality: LineQualityFilter,
    pace: TickPace,
    log: CallLog | None,
) -> None:
    tick = 0
    while not talk.ended_by:
        at_s = tick * FRAME_S
        near = talk.send(at_s)
        if log is not None:
            await log.add(
                *talk.audio.pop_ended_turns(None)
            )  # before the agent hears it, who may take long to answer
        came = await far.tick(
            at_s, near if quality.is_clean else talk.apply_line_quality(near, quality, at_s)
        )
        await talk.process_tick(at_s, near, came)
        if log is not None:
            await log.add(*talk.pop_ended_turns(at_s))
        tick += 1
        await pace.wait_until(tick * FRAME_S)


class _CallerSide:
    """The caller's side of the call as it goes on: an ear, a mouth, and what is going to be
    said.
    """

    def __init__(self, rig: CallRig, caller: Caller, plan: PlannedCall, limits: CallLimits) -> None:
        self._rig = rig
        self._caller = caller
        self._plan = plan
        self._limits = limits
        self._patience_s = plan.caller_context.patience_ms / 1000
        self._think_s = plan.caller_context.think_ms / 1000
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

    def send(self, at_s: float) -> CallerTick:
        near = self._speech.next(at_s)
        if self._speech.last is not None and (near.said is not None or near.digits is not None):
            self.audio.note_said(self._speech.last)
        return near

    def apply_line_quality(
        self, near: CallerTick, quality: LineQualityFilter, at_s: float
    ) -> CallerTick:
        """What the caller sent, as it arrives: words go with the frames that held them."""
        frame, said = quality.apply(near.frame, at_s), near.said
        if said is not None and self._speech.last is not None and quality.lost_s:
            said = quality.find_arrived_words(self._speech.last.clip, self._speech.last.start_s)
        return CallerTick(frame, said, near.digits)

    async def process_tick(self, at_s: float, near: CallerTick, far: AgentTick) -> None:
        """Both frames of this tick are known."""
        self.audio.add(at_s, near, far)
        self._listener.receive_tick(at_s, far)
        after_s = at_s + FRAME_S
        if self._listener.is_speaking or self._speech.is_busy:
            self._quiet_since_s = after_s
        if near.said is not None or near.digits is not None:
            self._finish_turn(after_s)
        if far.ended:
            self.end(far.ended, "hung up" if far.ended == "agent" else "the line broke")
        elif after_s >= self._limits.max_duration_s:
            self.end("limit", "max_duration_s")
        elif (
            self._turns + self._listener.turns >= self._limits.max_turns
            and not self._speech.is_busy
        ):
            self.end("limit", "max_turns")
        else:
            await self._decide(after_s)

    def pop_ended_turns(self, at_s: float) -> list[Span]:
        """Turns to write down.

        The agent's has ended when a pause follows it, or the call has ended.
        """
        last_s = self._listener.last_s or 0.0
        is_quiet = (
            not self._listener.is_speaking
            and at_s - last_s >= AGENT_GAP_S
            and not self._listener.awaits_words
        )
        return self.audio.pop_ended_turns(last_s if is_quiet or self.ended_by else None)

    def _finish_turn(self, at_s: float) -> None:
        self._turns += 1
        self._armed_at_s = at_s
        self._listener.start_turn()
        if self._plan.hangs_up_after is not None and self._turns >= self._plan.hangs_up_after:
            self.end("line", "the line broke, as the scenario has it")

    async def _decide(self, at_s: float) -> None:
        if self._leaving_at_s is not None:
            if at_s >= self._leaving_at_s and not self._speech.is_busy:
                self.end("caller", self.end_why)
            return
        if self._speech.is_busy:
            return
        if self._interject(at_s):
            return
        if self._next is not None:
            self._speak_when_due(at_s)
        elif at_s < self._silent_until_s:
            return
        elif self._silent_until_s and not self._listener.is_speaking:
            self._silent_until_s = 0.0
            await self._hear(at_s)
        elif self._listener.is_turn_over(at_s, self._patience_s) and not self._waits_for_event():
            self._nudges = 0
            await self._hear(at_s)
        else:
            await self._break_silence(at_s)

    async def _hear(self, at_s: float) -> None:
        self._heard = self._listener.pop_turn()
        self._plan_move(await self._caller.respond(self._heard), at_s)

    def _waits_for_event(self) -> bool:
        """A turn that begins at an event is next: words in between are let pass, for a while."""
        turn = self._caller.interjection()
        return (
            turn is not None
            and turn.after is not None
            and turn.after.event in ("agent_starts", "agent_stops")
        )

    def _interject(self, at_s: float) -> bool:
        turn = self._caller.interjection()
        if turn is None or turn.after is None:
            return False
        due_s = self._due(turn.after)
        if due_s is None or at_s < due_s + turn.after.delay_ms / 1000:
            return False
        self._next = None
        self._perform(self._caller.pop_interjection(), at_s, overlaps=self._listener.is_speaking)
        return True

    def _due(self, after: After) -> float | None:
        """When what is waited for happened, if it has."""
        match after.event:
            case "call_starts":
                return 0.0
            case "agent_starts":
                started = self._listener.started_at_s
                return (
                    started
                    if started is not None and started >= self._armed_at_s - FRAME_S
                    else None
                )
            case "agent_stops":
                return (
                    self._listener.last_s
                    if self._listener.has_turn and not self._listener.is_speaking
                    else None
                )
            case _:
                return self._listener.said_at(after.words)

    def _plan_move(self, move: CallerMove, at_s: float) -> None:
        if move.kind == "wait":
            self._silent_until_s = at_s + move.seconds if move.seconds else 0.0
            self._quiet_since_s = at_s
            return
        self._next, self._next_at_s = move, at_s + self._think_s

    def _speak_when_due(self, at_s: float) -> None:
        if self._next is None:
            return
        if self._listener.is_speaking:  # it goes on: think again when it is done
            if self._heard is not None:
                self._caller.undo_response()
                self._listener.restore_turn(self._heard, at_s)
            self._next = self._heard = None
        elif at_s >= self._next_at_s:
            move, self._next = self._next, None
            self._heard = None
            self._perform(move, at_s, overlaps=False)

    def _perform(self, move: CallerMove, at_s: float, *, overlaps: bool) -> None:
        if move.kind == "hang_up":
            self.end_why = move.why
            self._leaving_at_s = at_s
        if move.kind == "wait":
            self._plan_move(move, at_s)
        elif move.text:
            self._speech.say(move, self._rig, at_s, overlaps=overlaps)
            if move.kind == "hang_up":
                self._leaving_at_s = at_s + FAREWELL_S

    async def _break_silence(self, at_s: float) -> None:
        first = self._listener.turns == 0 and self._turns == 0 and not self._listener.has_turn
        limit_s = self._limits.greeting_s if first else self._limits.max_silence_s
        if at_s - self._quiet_since_s < limit_s:
            return
        self._quiet_since_s = at_s
        self._nudges += 1
        if not first:
            self.audio.note(at_s, "dead_air", f"{limit_s:g}")
        move = (
            await self._caller.open()
            if first and self._nudges == 1
            else await self._caller.nudge(self._nudges)
        )
        self._next, self._next_at_s = move, at_s
        self._speak_when_due(at_s)
        if move.kind == "hang_up" and self.end_why == "":
            self.end_why = move.why
