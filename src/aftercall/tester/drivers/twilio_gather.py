"""A real phone by Twilio in `gather` mode: Twilio listens and speaks for the caller.

The caller cannot interrupt here. Webhooks report what was said, not when: times of turns are
estimates until the two-channel recording is in.
"""

import asyncio
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from xml.etree.ElementTree import Element, SubElement, tostring

from aftercall.clock import Clock, with_timeout
from aftercall.errors import LineFailed
from aftercall.tester.alignment import align_recording, expected_s
from aftercall.tester.call import ScriptedCall
from aftercall.tester.caller import CallerMove
from aftercall.tester.drivers.dialer import SpendingLimit, TwilioDialer
from aftercall.tester.line import Outcome
from aftercall.tester.phrases import find_any
from aftercall.tester.record import CallRecord, EndedBy, LineEvent, Span

VOICE = "Polly.Matthew-Neural"
PAUSE_S = 1
RECORDING_TIMEOUT_S = 60.0
GRACE_S = 30.0
SPEECH_TIMEOUT_S = 3  # shorter cuts the agent off in the middle of a sentence
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def answer_move(move: CallerMove | None, listen_at: str, wait_s: float) -> str:
    """TwiML that does this, then listens."""
    response = Element("Response")
    if move is not None and move.kind == "press":
        SubElement(response, "Play", digits=move.text)
    elif move is not None and move.text:
        SubElement(response, "Pause", length=str(PAUSE_S))
        SubElement(response, "Say", voice=VOICE).text = _NOT_XML.sub("", move.text)
    elif move is not None and move.kind == "wait" and move.seconds:
        SubElement(response, "Pause", length=str(max(1, round(move.seconds))))
    if move is not None and move.kind == "hang_up":
        SubElement(response, "Hangup")
    else:
        SubElement(
            response,
            "Gather",
            input="speech",
            action=listen_at,
            method="POST",
            timeout=str(max(1, round(wait_s))),
            speechTimeout=str(SPEECH_TIMEOUT_S),
            actionOnEmptyResult="true",
        )
    return '<?xml version="1.0" encoding="UTF-8"?>' + tostring(
        response, encoding="unicode"
    )


_OVER: dict[str, Outcome] = {
    "completed": "answered",
    "busy": "busy",
    "no-answer": "no-answer",
    "failed": "failed",
    "canceled": "no-answer",
}
Form = Mapping[str, str]


@dataclass
class GatherCall:
    """One call, as the webhooks report it."""

    id: str
    plan: ScriptedCall
    clock: Clock
    logged: int = 0
    sid: str = ""
    spans: list[Span] = field(default_factory=list)
    events: list[LineEvent] = field(default_factory=list)
    answered_s: float | None = None
    carrier_s: float = 0.0
    """Its length, as the carrier reports it."""
    outcome: Outcome | None = None
    ended_by: EndedBy = "agent"
    end_why: str = "hung up"
    silences: int = 0
    last_body: tuple[tuple[str, str], ...] = ()
    last_answer: str = ""
    recording: bytes = b""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    recorded: asyncio.Event = field(default_factory=asyncio.Event)

    def at_s(self) -> float:
        return (
            self.clock.monotonic() - self.answered_s
            if self.answered_s is not None
            else 0.0
        )

    def last_s(self) -> float:
        return self.spans[-1].end_s if self.spans else 0.0


class GatherCalls:
    """Dials and answers webhooks."""

    def __init__(
        self,
        dialer: TwilioDialer,
        public_url: str,
        to: str,
        spending_limit: SpendingLimit,
        clock: Clock,
    ) -> None:
        self._dialer = dialer
        self._address = public_url.rstrip("/") + "/tester"
        self._to = to
        self._spending_limit = spending_limit
        self._clock = clock
        self._calls: dict[str, GatherCall] = {}

    async def call(self, plan: ScriptedCall) -> CallRecord:
        call = GatherCall(plan.new_id(), plan, self._clock)
        self._calls[call.id] = call
        limits, started_at = plan.scenario.limits, self._clock.now()
        reserved = self._spending_limit.reserve(limits.max_duration_s)
        try:
            times = {"ring_s": limits.ring_s, "limit_s": limits.max_duration_s}
            call.sid = await self._dialer.dial(
                self._to, self._address, call.id, **times
            )
            if plan.log is not None:
                await plan.log.add(sid=call.sid)
            await self._wait(call.over, limits.ring_s + limits.max_duration_s + GRACE_S)
            if call.outcome == "answered":
                await self._wait(call.recorded, RECORDING_TIMEOUT_S)
        except LineFailed as error:
            call.outcome, call.ended_by, call.end_why = "failed", "line", str(error)
        finally:
            self._spending_limit.refund_unused(
                reserved, max(call.at_s(), call.carrier_s)
            )
            del self._calls[call.id]
        return self._record(call, started_at)

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        with suppress(TimeoutError):
            await with_timeout(self._clock, seconds, event.wait())

    def _record(self, call: GatherCall, started_at: datetime) -> CallRecord:
        outcome: Outcome = call.outcome or "failed"
        is_unanswered = outcome != "answered" and call.ended_by == "agent"
        record = CallRecord(
            id=call.id,
            scenario=call.plan.scenario.name,
            number=call.plan.number,
            run=call.plan.run,
            line="phone",
            caller=None,
            started_at=started_at,
            duration_s=max(call.carrier_s or call.at_s(), call.last_s()),
            outcome=outcome,
            ended_by="nobody" if is_unanswered else call.ended_by,
            end_why=call.end_why,
            spans=tuple(call.spans),
            events=tuple(call.events),
            sid=call.sid or None,
        )
        return align_recording(record, call.recording) if call.recording else record

    async def answer(self, page: str, call_id: str, form: Form) -> str | None:
        """TwiML for a webhook, or None where Twilio wants none.

        A repeated webhook gets the same answer and changes nothing.
        """
        call = self._calls.get(call_id)
        if call is None:
            is_asked = page in ("voice", "agent")
            return (
                answer_move(CallerMove("hang_up"), "", wait_s=1) if is_asked else None
            )
        if page == "status":
            self._on_status(call, form)
            return None
        if page == "recording":
            await self._on_recording(call, form)
            return None
        body = tuple(sorted(form.items()))
        if body == call.last_body and call.last_answer:
            call.events.append(LineEvent(call.at_s(), "duplicate_event", page))
            return call.last_answer
        twiml = (
            self._begin(call, form) if page == "voice" else await self._hear(call, form)
        )
        call.last_body, call.last_answer = body, twiml
        await self._write_turns(call)
        return twiml

    async def _write_turns(self, call: GatherCall) -> None:
        """Called before the carrier gets its answer."""
        if call.plan.log is not None:
            fresh, call.logged = call.spans[call.logged :], len(call.spans)
            await call.plan.log.add(*fresh)

    def _begin(self, call: GatherCall, form: Form) -> str:
        """The agent speaks first; we listen."""
        call.answered_s = self._clock.monotonic()
        if form.get("AnsweredBy", "").startswith(("machine", "fax")):
            call.outcome = "voicemail"
            if call.plan.scenario.outcome != "voicemail":
                call.ended_by, call.end_why = "caller", "a mailbox answered"
                return self._listen(call, CallerMove("hang_up"), 1.0)
        return self._listen(call, None, call.plan.scenario.limits.greeting_s)

    async def _hear(self, call: GatherCall, form: Form) -> str:
        text = form.get("SpeechResult", "").strip()
        if not text:
            call.silences += 1
            call.events.append(LineEvent(call.at_s(), "dead_air"))
            is_first = not call.spans
            move = await (
                call.plan.caller.open()
                if is_first
                else call.plan.caller.nudge(call.silences)
            )
        else:
            call.silences = 0
            call.spans.append(_agent_span(call, text, form.get("Confidence")))
            move = _interject(call, text) or await call.plan.caller.respond(text)
        if move.kind in ("say", "press") or (move.kind == "hang_up" and move.text):
            call.spans.append(_caller_span(call, move))
        if move.kind == "hang_up":
            call.ended_by, call.end_why = "caller", move.why
        return self._listen(call, move, call.plan.scenario.limits.max_silence_s)

    def _listen(self, call: GatherCall, move: CallerMove | None, wait_s: float) -> str:
        if len(call.spans) >= call.plan.scenario.limits.max_turns:
            call.ended_by, call.end_why = "limit", "max_turns"
            move = CallerMove("hang_up")
        return answer_move(move, f"{self._address}/agent?call={call.id}", wait_s)

    def _on_status(self, call: GatherCall, form: Form) -> None:
        state = _OVER.get(form.get("CallStatus", ""))
        if state is None or call.over.is_set():
            return
        with suppress(ValueError):
            call.carrier_s = float(form.get("CallDuration", ""))
        if call.outcome != "voicemail" or state != "answered":
            call.outcome = state
        call.over.set()

    async def _on_recording(self, call: GatherCall, form: Form) -> None:
        """Comes before or after the end of the call; a missing recording is final."""
        if form.get("RecordingStatus", "completed") == "completed" and form.get(
            "RecordingUrl"
        ):
            try:
                call.recording = await self._dialer.download(form["RecordingUrl"])
            except LineFailed as error:
                call.events.append(LineEvent(call.at_s(), "missing_event", str(error)))
        else:
            call.events.append(
                LineEvent(call.at_s(), "missing_event", "there is no recording")
            )
        call.recorded.set()


def _interject(call: GatherCall, text: str) -> CallerMove | None:
    """A turn that starts at an event; on this line it waits until the agent is done."""
    turn = call.plan.caller.interjection()
    if turn is None or turn.after is None:
        return None
    if turn.after.words and not find_any(turn.after.words, text):
        return None
    if turn.after.event not in ("agent_stops", "call_starts"):
        call.events.append(LineEvent(call.at_s(), "not_interrupted", turn.after.event))
    return call.plan.caller.pop_interjection()


def _agent_span(call: GatherCall, text: str, confidence: str | None) -> Span:
    """Ended when the carrier's silence began, but not before there was time to say it."""
    seconds, sure = expected_s(text), _read_confidence(confidence)
    end_s = max(call.at_s() - SPEECH_TIMEOUT_S, call.last_s() + seconds)
    return Span(
        "agent", end_s - seconds, end_s, text, confidence=sure, is_estimated=True
    )


def _read_confidence(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return min(1.0, max(0.0, value)) if math.isfinite(value) else None


def _caller_span(call: GatherCall, move: CallerMove) -> Span:
    is_keys = move.kind == "press"
    start_s = max(call.at_s(), call.last_s()) + (0 if is_keys else PAUSE_S)
    end_s = start_s + expected_s(move.text, is_keys=is_keys)
    text = f"[keys {move.text}]" if is_keys else move.text
    return Span("caller", start_s, end_s, text, move.why, is_estimated=True)
