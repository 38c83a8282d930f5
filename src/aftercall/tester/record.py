"""What a test call leaves: who said what and when, on two channels, and how it ended.

While the call goes on, its turns are in `calls/<id>.jsonl`, one JSON line each.
"""

import asyncio
import json
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from aftercall.faults import fault_point
from aftercall.model.json_fields import Json, pick_fields
from aftercall.speech.transcription import TranscribedAudio
from aftercall.tester.line import Kind, Outcome

Side = Literal["agent", "caller"]
EndedBy = Literal["agent", "caller", "line", "limit", "nobody"]


@dataclass(frozen=True)
class Segment:
    """A stretch of sound."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    def overlap_s(self, other: "Segment") -> float:
        return max(0.0, min(self.end_s, other.end_s) - max(self.start_s, other.start_s))


@dataclass(frozen=True)
class Span:
    """One turn as it was audible; `why` is the line of the script that the caller followed."""

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
    """The times come from the number of words: too coarse for measuring."""

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
    """A second transcript of the agent's words, made from the recording after the call."""
    sid: str | None = None

    @property
    def agent_spans(self) -> list[Span]:
        return [span for span in self.spans if span.who == "agent"]

    @property
    def caller_spans(self) -> list[Span]:
        return [span for span in self.spans if span.who == "caller"]


def record_json(record: CallRecord) -> Json:
    return {
        **pick_fields(record, "id scenario"),
        "call": record.number,
        **pick_fields(record, "run line caller sid"),
        "started_at": format_time(record.started_at),
        "duration_s": round(record.duration_s, 3),
        **pick_fields(record, "outcome ended_by end_why"),
        "recording": "read out by the tester" if record.is_read_out else "recorded",
        "turns": [
            {"turn": turn} | span_json(span)
            for turn, span in enumerate(record.spans, 1)
        ],
        "events": [
            {"at_s": round(event.at_s, 3), **pick_fields(event, "kind detail")}
            for event in record.events
        ],
        "whisper": _transcript_json(record.whisper),
    }


def format_time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _transcript_json(transcript: TranscribedAudio | None) -> Json | None:
    if transcript is None:
        return None
    segments = [
        {"start_s": round(start, 3), "end_s": round(end, 3), "text": text}
        for start, end, text in transcript.segments
    ]
    told = pick_fields(transcript, "text language duration_s")
    return told | {"segments": segments}


def span_json(span: Span) -> Json:
    return {
        "who": span.who,
        "start_s": round(span.start_s, 3),
        "end_s": round(span.end_s, 3),
        **pick_fields(span, "text why is_cut confidence is_estimated"),
    }


class CallLog:
    """The turns of one unfinished call."""

    def __init__(self, path: Path) -> None:
        self.call_id = path.stem
        self._path = path

    async def add(self, *spans: Span, sid: str | None = None) -> None:
        """Returns when they are on disk."""
        lines = [{"turn": span_json(span)} for span in spans] + (
            [{"sid": sid}] if sid else []
        )
        if lines:
            await asyncio.to_thread(append_lines, self._path, *lines)
            fault_point("tester.after_turn")


def read_call_log(path: Path) -> Json:
    """An unfinished call, with the fields of a finished one."""
    about, *lines = [json.loads(line) for line in whole_lines(path)] or [
        {"id": path.stem}
    ]
    logged = [line["turn"] for line in lines if "turn" in line]
    turns = [{"turn": number} | turn for number, turn in enumerate(logged, 1)]
    unfinished = {
        "scenario": "",
        "call": 1,
        "run": 1,
        "sid": next((line["sid"] for line in lines if "sid" in line), None),
        "duration_s": max((turn["end_s"] for turn in turns), default=0.0),
        "outcome": "unfinished",
        "ended_by": "nobody",
        "end_why": "the test run was cut short, or is going on",
        "turns": turns,
        "events": [],
        "whisper": None,
        "measures": None,
        "findings": [],
    }
    return {**unfinished, **about}


def whole_lines(path: Path) -> list[bytes]:
    """Leaves out a last line without its end: a crash cut it off."""
    return [
        line
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    ]


def append_lines(path: Path, *lines: Json) -> None:
    """Appends JSON lines and syncs them to disk."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
