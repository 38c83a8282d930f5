"""A call as a timeline: what was said, what happened, and what each turn led to, in one order.

`make_timeline` merges turns and events and hangs on each turn what was made of it. `draw_lanes`
and `draw_waveform` give the overview: both sides over time.
"""

import io
import wave
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text as sql

from aftercall.clock import format_duration
from aftercall.db.connect import Database
from aftercall.journal.view import find_interruptions
from aftercall.memory.visibility import redact_turns
from aftercall.model.calls import BARGE_IN, BRIEFED_EVENT, REQUEST_EVENT, Event, Turn
from aftercall.speech.transcription import make_upload

SLOW_ANSWER_MS = 2_000
UNSURE_BELOW = 0.6
MS_PER_CHARACTER = 60  # speed of speech: a turn has no end of its own
LANE_HEIGHT = 24
LANES = {"caller": 4, "agent": 36}
MARK_TOP = 30
MARK_HEIGHT = 4
WAVE_POINTS = 800
MAX_SAMPLE = 32_768
_WORDS = {
    BRIEFED_EVENT: "The agent was told what is known of the caller",
    REQUEST_EVENT: "The agent took down a request",
    "key.pressed": "The caller pressed a key",
    "engine.lost": "The voice engine was lost",
    "line.oddities": "The line sent something odd",
    "tool.used": "The agent used a tool",
}


_FACTS_OF_CALL = sql(
    """
    SELECT facts.id, facts.content, facts.visibility, said.first_turn, said.words
    FROM fact_occurrences AS said
    JOIN facts ON facts.id = said.fact_id
    WHERE said.call_id = :call_id
    ORDER BY said.first_turn, facts.id
    """
)


@dataclass(frozen=True)
class MadeItem:
    """What a turn led to: a request, a promise or a fact."""

    kind: str
    text: str
    link: str
    state: str = ""
    seq: int | None = None
    """The turn where it was said; None if that was in another call."""
    words: str = ""


@dataclass(frozen=True)
class TimelineRow:
    """One line of the timeline. `seq` and `speaker` belong to turns only."""

    at: datetime
    text: str
    seq: int | None = None
    speaker: str = "event"
    unheard: str = ""
    """What the agent went on to say after the caller had cut in."""
    delay_ms: int | None = None
    confidence: float | None = None
    made: tuple[MadeItem, ...] = ()

    @classmethod
    def from_turn(
        cls, turn: Turn, unheard: str = "", made: Sequence[MadeItem] = ()
    ) -> "TimelineRow":
        """A row of what was said, with what was made of it."""
        return cls(
            turn.at,
            turn.text,
            turn.seq,
            turn.speaker,
            unheard,
            turn.delay_ms,
            turn.confidence,
            tuple(made),
        )

    @property
    def is_unsure(self) -> bool:
        return self.confidence is not None and self.confidence < UNSURE_BELOW

    @property
    def has_notes(self) -> bool:
        return bool(self.unheard) or self.is_unsure or self.delay_ms is not None

    @property
    def is_slow(self) -> bool:
        return self.delay_ms is not None and self.delay_ms >= SLOW_ANSWER_MS

    @property
    def delay(self) -> str:
        return format_duration((self.delay_ms or 0) / 1_000)


def list_made_facts(database: Database, call_id: str) -> list[MadeItem]:
    """By the turns where they were said; of a secret neither content nor words."""
    made = []
    with database.read() as connection:
        for row in connection.execute(_FACTS_OF_CALL, {"call_id": call_id}):
            is_secret = row.visibility == "secret"
            text, words = ("a secret", "") if is_secret else (row.content, row.words)
            link = f"/memory/facts/{row.id}"
            made.append(MadeItem("fact", text, link, "", row.first_turn, words))
    return made


def make_timeline(
    turns: Sequence[Turn],
    events: Sequence[Event],
    made: Sequence[MadeItem],
    secrets: Sequence[str],
) -> list[TimelineRow]:
    """In the order of time; nothing that is secret is in it."""
    cut = find_interruptions(turns, events)
    tails = _redact_all(
        {seq: said[len(heard) :].strip() for seq, (said, heard) in cut.items()},
        turns,
        secrets,
    )
    by_turn: dict[int, list[MadeItem]] = defaultdict(list)
    for item in made:
        if item.seq is not None:
            by_turn[item.seq].append(item)
    rows = [
        TimelineRow.from_turn(turn, tails.get(turn.seq, ""), by_turn[turn.seq])
        for turn in redact_turns(tuple(turns), secrets)
    ]
    rows += [
        TimelineRow(event.at, describe_event(event))
        for event in events
        if event.kind != BARGE_IN
    ]
    return sorted(rows, key=lambda row: row.at)  # stable: a turn before its events


def _redact_all(
    texts: Mapping[int, str], turns: Sequence[Turn], secrets: Sequence[str]
) -> dict[int, str]:
    """The texts as the turns of these numbers would show them."""
    if not texts:
        return {}
    whole = [
        turn.model_copy(update={"text": texts.get(turn.seq, turn.text)})
        for turn in turns
    ]
    shown = redact_turns(tuple(whole), secrets)
    return {turn.seq: turn.text for turn in shown if turn.seq in texts}


def describe_event(event: Event) -> str:
    """In words. Of its data only what can hold no speech, number or key."""
    words = _WORDS.get(event.kind, event.kind.replace(".", " ").replace("_", " "))
    tool = event.data.get("tool")
    ms = event.data.get("ms")
    if event.kind == "tool.used" and isinstance(tool, str) and isinstance(ms, int):
        return f"{words}: {tool.replace('_', ' ')}, {format_duration(ms / 1_000)}"
    return words


def draw_lanes(
    rows: Sequence[TimelineRow], start: datetime, length_s: float
) -> dict[str, str]:
    """A bar for each turn and a mark for what was made of it, as one path for each kind.

    A path is in seconds from the start of the call. The longest call has thousands of turns.
    """
    said = [row for row in rows if row.seq is not None]
    nexts = [(row.at - start).total_seconds() for row in said[1:]] + [length_s]
    paths: dict[str, str] = defaultdict(str)
    for row, until_s in zip(said, nexts, strict=False):  # a call may have no turn yet
        at_s = max(0.0, (row.at - start).total_seconds())
        spoken_s = len(row.text) * MS_PER_CHARACTER / 1_000
        width_s = max(min(spoken_s, until_s - at_s), length_s / 400)
        kind = f"{row.speaker} cut" if row.unheard else row.speaker
        paths[kind] += _draw_bar(at_s, LANES[row.speaker], width_s, LANE_HEIGHT)
        if row.made:
            mark_s = min(length_s / 250, width_s)
            paths[row.made[0].kind] += _draw_bar(at_s, MARK_TOP, mark_s, MARK_HEIGHT)
    return paths


def _draw_bar(x: float, y: int, width: float, height: int) -> str:
    return f"M{x:.2f} {y}h{width:.2f}v{height}h-{width:.2f}z"


@dataclass(frozen=True)
class Waveform:
    """The loudness of a recording: one outline for each of up to two channels."""

    length_s: float
    outlines: tuple[str, ...]


def draw_waveform(sound: bytes) -> Waveform | None:
    """None for a file that is not a WAV file of 16-bit samples or of μ-law."""
    try:
        with wave.open(io.BytesIO(make_upload(sound)[1]), "rb") as file:
            if file.getsampwidth() != 2 or not file.getnframes():
                return None
            channels = file.getnchannels()
            rate = file.getframerate()
            samples = array("h", file.readframes(file.getnframes()))
    except (wave.Error, EOFError):
        return None
    length_s = len(samples) / channels / rate
    outlines = [
        _outline(samples[number::channels], length_s, middle + LANE_HEIGHT / 2)
        for number, middle in zip(range(channels), LANES.values(), strict=False)
    ]
    return Waveform(length_s, tuple(outlines))


def _outline(samples: "array[int]", length_s: float, middle: float) -> str:
    """A closed path around the middle of a lane, along its upper edge and back along the lower.

    It is as high as the loudest sample of each stretch.
    """
    width = max(1, len(samples) // WAVE_POINTS)
    stretches = [
        samples[place : place + width] for place in range(0, len(samples), width)
    ]
    heights = [
        max(max(part), -min(part)) / MAX_SAMPLE * LANE_HEIGHT / 2 for part in stretches
    ]
    step = length_s / len(heights)

    def draw_edge(sign: int) -> list[str]:
        return [
            f"{number * step:.2f} {middle - sign * height:.1f}"
            for number, height in enumerate(heights)
        ]

    there = draw_edge(1)
    back = draw_edge(-1)
    back.reverse()
    return f"M{'L'.join(there + back)}Z"
