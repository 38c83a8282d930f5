"""What a test call leaves: who said what and when, on two channels, and how it ended."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from aftercall.speech.transcription import TranscribedAudio
from aftercall.tester.line import Kind, Outcome
from aftercall.tester.segments import Segment, Side

EndedBy = Literal["agent", "caller", "line", "limit", "nobody"]


@dataclass(frozen=True)
class Span:
    """One contribution as it was audible; `why` is the caller's reason, from their script."""

    who: Side
    start_s: float
    end_s: float
    text: str
    why: str = ""
    is_cut: bool = False
    is_planned_overlap: bool = False
    confidence: float | None = None
    ideal: str = ""
    is_estimated: bool = False
    """Its times come from the number of its words: good for reading along, not for measuring."""

    @property
    def segment(self) -> Segment:
        return Segment(self.start_s, self.end_s)

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class LineEvent:
    at_s: float
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class CallRecord:
    """One finished test call."""

    id: str
    scenario: str
    number: int
    run: int
    line: Kind
    caller: str | None
    started_at: datetime
    duration_s: float
    outcome: Outcome
    ended_by: EndedBy
    end_why: str
    spans: tuple[Span, ...]
    events: tuple[LineEvent, ...] = ()
    caller_sound: bytes = field(default=b"", repr=False)
    agent_sound: bytes = field(default=b"", repr=False)
    is_read_out: bool = False
    whisper: TranscribedAudio | None = None
    """A second opinion on the agent's words, made from the recording when the call is over."""
    sid: str | None = None

    @property
    def agent_spans(self) -> list[Span]:
        return [span for span in self.spans if span.who == "agent"]

    @property
    def caller_spans(self) -> list[Span]:
        return [span for span in self.spans if span.who == "caller"]

    def said_by_agent(self) -> str:
        return " ".join(span.text for span in self.agent_spans)


def record_json(record: CallRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "scenario": record.scenario,
        "call": record.number,
        "run": record.run,
        "line": record.line,
        "caller": record.caller,
        "sid": record.sid,
        "started_at": record.started_at.isoformat().replace("+00:00", "Z"),
        "duration_s": round(record.duration_s, 3),
        "outcome": record.outcome,
        "ended_by": record.ended_by,
        "end_why": record.end_why,
        "recording": "read out by the tester" if record.is_read_out else "recorded",
        "turns": [
            {"turn": number} | span_json(span) for number, span in enumerate(record.spans, 1)
        ],
        "events": [
            {"at_s": round(event.at_s, 3), "kind": event.kind, "detail": event.detail}
            for event in record.events
        ],
        "whisper": _transcript_json(record.whisper),
    }


def _transcript_json(transcript: TranscribedAudio | None) -> dict[str, Any] | None:
    if transcript is None:
        return None
    segments = [
        {"start_s": round(start, 3), "end_s": round(end, 3), "text": text}
        for start, end, text in transcript.segments
    ]
    return {
        "text": transcript.text,
        "language": transcript.language,
        "duration_s": transcript.duration_s,
        "segments": segments,
    }


def span_json(span: Span) -> dict[str, Any]:
    return {
        "who": span.who,
        "start_s": round(span.start_s, 3),
        "end_s": round(span.end_s, 3),
        "text": span.text,
        "why": span.why,
        "is_cut": span.is_cut,
        "confidence": span.confidence,
        "is_estimated": span.is_estimated,
    }
