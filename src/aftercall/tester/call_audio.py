"""The sound of a call that goes on: what the caller says, what the agent says, both channels.

Times come from what is audible; words come from the caller's script and from the line.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from aftercall.errors import LineFailed
from aftercall.speech.sound import FRAME_BYTES, FRAME_S, SAMPLE_RATE_HZ, LoudnessMeter
from aftercall.tester.alignment import find_segments
from aftercall.tester.caller import CallerMove
from aftercall.tester.line import QUIET_NEAR, UNADDRESSED, AgentTick, CallerTick
from aftercall.tester.phrases import find_any
from aftercall.tester.record import LineEvent, Segment, Span
from aftercall.tester.voice import VoiceClip

AGENT_GAP_S = 0.5
HANGOVER_S = 0.12  # a gap between two words is no silence
MAX_WORD_LEAD_S = 0.15  # a word's mark may come this long before it is audible
MIN_SPEECH_S = 0.1
FINISH_TIMEOUT_S = 20.0
PAUSE_TICKS = round(0.4 / FRAME_S)  # a pause this long ends a piece of speech

Recognise = Callable[[bytes], Awaitable[str]]
"""μ-law sound to words; raises LineFailed."""
TimedWords = list[tuple[float, str]]
"""Words, and when each was heard."""


@dataclass
class CallerUtterance:
    """One thing the caller says, from the first frame to the last."""

    move: CallerMove
    clip: VoiceClip
    start_s: float
    is_overlapping: bool
    sent: int = 0

    @property
    def end_s(self) -> float:
        return self.start_s + self.sent / FRAME_BYTES * FRAME_S


class CallerSpeech:
    """Sends what the caller says, frame by frame."""

    def __init__(self) -> None:
        self._now: CallerUtterance | None = None
        self.last: CallerUtterance | None = None

    @property
    def is_busy(self) -> bool:
        return self._now is not None

    def say(
        self, move: CallerMove, clip: VoiceClip, at_s: float, *, overlaps: bool
    ) -> None:
        self._now = CallerUtterance(move, clip, at_s, overlaps)

    def next(self) -> CallerTick:
        now = self._now
        if now is None:
            return QUIET_NEAR
        frame = now.clip.sound[now.sent : now.sent + FRAME_BYTES].ljust(
            FRAME_BYTES, b"\xff"
        )
        now.sent += FRAME_BYTES
        is_addressed = now.move.why not in UNADDRESSED
        is_over = now.sent >= len(now.clip.sound)
        if is_over:
            self._now = None
        if not is_over or not is_addressed:
            return CallerTick(frame, is_addressed=is_addressed)
        self.last = now
        if now.move.kind == "press":
            return CallerTick(frame, digits=now.move.text)
        return CallerTick(frame, said=now.move.text)


class AgentListener:
    """Whether the agent is speaking, has finished, and what it said: from the line alone."""

    def __init__(self) -> None:
        self._meter = LoudnessMeter()
        self._words: TimedWords = []
        self.awaits_words = False
        self.started_at_s: float | None = None
        self.last_s: float | None = None
        self.is_speaking = False
        self.has_turn = False
        self.turns = 0

    def receive_tick(self, at_s: float, far: AgentTick) -> None:
        self._words += [(at_s, word) for word in far.words]
        self.awaits_words = far.has_words_to_come
        for heard_at_s, frame in far.frames(at_s):
            if self._meter.is_loud(frame):
                self._hear_voice(heard_at_s)
        if self._silent_s(at_s) > HANGOVER_S:
            self.is_speaking = False

    def _silent_s(self, at_s: float) -> float:
        return at_s - self.last_s if self.last_s is not None else float("inf")

    def _hear_voice(self, at_s: float) -> None:
        """A short gap inside a turn does not begin a new one."""
        goes_on = self.has_turn and self._silent_s(at_s) < AGENT_GAP_S
        if not self.is_speaking and not goes_on:
            self.started_at_s = at_s
        self.is_speaking = True
        self.last_s = at_s + FRAME_S
        self.has_turn = True

    def is_turn_over(self, at_s: float, patience_s: float) -> bool:
        if self.awaits_words or self.is_speaking or self.last_s is None:
            return False
        return self.has_turn and at_s - self.last_s >= patience_s

    def said_at(self, patterns: tuple[str, ...]) -> float | None:
        """When these words were complete, if they were said in this turn."""
        return (
            self._words[-1][0]
            if self._words and find_any(patterns, self._text())
            else None
        )

    def pop_turn(self) -> str:
        """The agent's words since the last call."""
        text = self._text()
        self._words = []
        self.turns += self.has_turn
        self.has_turn = False
        return text

    def restore_turn(self, text: str, at_s: float) -> None:
        """Undoes `pop_turn`: the agent goes on."""
        self._words = [(at_s, text), *self._words]
        self.turns -= 1
        self.has_turn = True

    def start_turn(self) -> None:
        """The caller has spoken: forgets the agent's words unless the agent still speaks."""
        if not self.is_speaking:
            self._words = []
            self.has_turn = False

    def _text(self) -> str:
        return " ".join(word for _, word in self._words)


class AgentTranscriber:
    """Recognises the agent's words when it pauses, on a line that carries only sound.

    Silence is never sent to the recogniser: some answer it with invented words.
    """

    def __init__(self, recognise: Recognise, *, is_live: bool) -> None:
        self._recognise = recognise
        self._is_live = is_live
        self._meter = LoudnessMeter()
        self._sound = bytearray()
        self._started_s = 0.0
        self._quiet_ticks = 0
        self._loud_ticks = 0
        self._ideal: list[str] = []
        self._tasks: list[tuple[float, str, asyncio.Future[str]]] = []

    async def process(self, at_s: float, far: AgentTick) -> AgentTick:
        """The tick with words that were recognised; words of the line become the ideal."""
        self._ideal += far.words
        for heard_at_s, frame in far.frames(at_s):
            self._collect(heard_at_s, frame)
        if self._tasks and not self._is_live:
            await asyncio.wait([task for _, _, task in self._tasks])
        is_open = far.has_words_to_come
        if not self._tasks or not self._tasks[0][2].done():
            to_come = is_open or bool(self._tasks or self._sound)
            return replace(far, words=(), has_words_to_come=to_come)
        started_s, ideal, task = self._tasks.pop(0)
        try:
            words = tuple(task.result().split())
        except LineFailed as error:
            return replace(
                far, words=(), events=(*far.events, ("missing_event", str(error)))
            )
        to_come = is_open or bool(self._tasks or self._sound)
        return replace(
            far,
            words=words,
            words_at_s=started_s,
            ideal=ideal,
            has_words_to_come=to_come,
        )

    async def finish(self) -> list[tuple[float, str, str]]:
        """What was said last: the agent may hang up before its pause. Time, words, ideal."""
        self._end_piece()
        found = []
        for started_s, ideal, task in self._tasks:
            try:
                async with asyncio.timeout(FINISH_TIMEOUT_S):
                    found.append((started_s, await task, ideal))
            except (LineFailed, TimeoutError):
                continue
        self._tasks = []
        return found

    def cancel(self) -> None:
        for _, _, task in self._tasks:
            task.cancel()

    def _collect(self, at_s: float, frame: bytes) -> None:
        """A piece begins with the first loud frame and ends after a pause."""
        is_loud = self._meter.is_loud(frame)
        if not self._sound:
            if not is_loud:
                return
            self._started_s = at_s
        self._sound += frame
        self._loud_ticks += is_loud
        self._quiet_ticks = 0 if is_loud else self._quiet_ticks + 1
        if self._quiet_ticks >= PAUSE_TICKS:
            self._end_piece()

    def _end_piece(self) -> None:
        """Sends what was heard since the last pause to the recogniser."""
        if self._loud_ticks * FRAME_S >= MIN_SPEECH_S:
            task = asyncio.ensure_future(self._recognise(bytes(self._sound)))
            self._tasks.append((self._started_s, " ".join(self._ideal), task))
            self._ideal = []
        self._sound.clear()
        self._loud_ticks = self._quiet_ticks = 0


class CallAudio:
    """Both channels of a call, and the turns read back from them."""

    def __init__(self) -> None:
        self.caller = bytearray()
        self.agent = bytearray()
        self.events: list[LineEvent] = []
        self._words: TimedWords = []
        self._ideals: TimedWords = []
        self._said: list[CallerUtterance] = []
        self._words_taken = 0
        self._said_taken = 0

    @property
    def duration_s(self) -> float:
        return len(self.agent) / SAMPLE_RATE_HZ

    def add(self, at_s: float, near: CallerTick, far: AgentTick) -> None:
        """Sound that came late is put over the silence that stood in its place."""
        self.caller += near.frame
        self.agent += far.frame.ljust(FRAME_BYTES, b"\xff")
        if far.late:
            start = max(0, round(far.late_at_s * SAMPLE_RATE_HZ))
            end = min(start + len(far.late), len(self.agent))
            self.agent[start:end] = far.late[: end - start]
        words_at_s = at_s if far.words_at_s is None else far.words_at_s
        self._words += [(words_at_s, word) for word in far.words]
        if far.ideal:
            self._ideals.append((words_at_s, far.ideal))
        self.events += [LineEvent(at_s, kind, detail) for kind, detail in far.events]
        if near.digits:
            self.events.append(LineEvent(at_s, "dtmf"))

    def add_words(self, pieces: list[tuple[float, str, str]]) -> None:
        """Words that were recognised after the call: when they began, the words, the ideal."""
        for started_s, text, ideal in pieces:
            self._words += [(started_s, word) for word in text.split()]
            if ideal:
                self._ideals.append((started_s, ideal))

    def add_said(self, utterance: CallerUtterance) -> None:
        self._said.append(utterance)

    def pop_ended_turns(self, agent_end_s: float | None) -> list[Span]:
        """Turns that ended since the last call; the agent's only if it fell silent."""
        said = self._said[self._said_taken :]
        spans = [_caller_span(item, item.start_s, item.end_s) for item in said]
        self._said_taken = len(self._said)
        words = self._words[self._words_taken :]
        if words and agent_end_s is not None:
            start_s = words[0][0]
            text = " ".join(word for _, word in words)
            spans.append(Span("agent", start_s, max(start_s, agent_end_s), text))
            self._words_taken = len(self._words)
        return sorted(spans, key=lambda span: span.start_s)

    def spans(self) -> tuple[Span, ...]:
        """Turns of both sides, by when they were first audible."""
        spans = self._agent_spans() + self._caller_spans()
        return tuple(sorted(spans, key=lambda span: (span.start_s, span.who)))

    def _agent_spans(self) -> list[Span]:
        """Turns by what is audible; the line's words are given to them."""
        segments = find_segments(bytes(self.agent), AGENT_GAP_S)
        texts, ideals = (
            _assign_words(self._words, segments),
            _assign_words(self._ideals, segments),
        )
        cuts = [
            round(event.at_s, 2) for event in self.events if event.kind == "agent_cut"
        ]
        spans = []
        for segment, text, ideal in zip(segments, texts, ideals, strict=True):
            start_s, end_s = segment.start_s, segment.end_s
            is_cut = any(abs(cut - end_s) < 0.2 for cut in cuts)
            spans.append(
                Span("agent", start_s, end_s, text, is_cut=is_cut, ideal=ideal)
            )
        return spans

    def _caller_spans(self) -> list[Span]:
        segments = find_segments(bytes(self.caller), 0.0)
        spans = []
        for said in self._said:
            within = [
                segment
                for segment in segments
                if segment.start_s < said.end_s - FRAME_S / 2
                and segment.end_s > said.start_s
            ] or [Segment(said.start_s, said.end_s)]
            spans.append(_caller_span(said, within[0].start_s, within[-1].end_s))
        return spans


def _caller_span(said: CallerUtterance, start_s: float, end_s: float) -> Span:
    move, overlaps = said.move, said.is_overlapping
    text = f"[keys {move.text}]" if move.kind == "press" else move.text
    return Span("caller", start_s, end_s, text, move.why, is_planned_overlap=overlaps)


def _assign_words(words: TimedWords, segments: list[Segment]) -> list[str]:
    """Gives each word to the last segment that had started when the word came."""
    texts: list[list[str]] = [[] for _ in segments]
    for at_s, word in words if segments else ():
        started = sum(segment.start_s <= at_s + MAX_WORD_LEAD_S for segment in segments)
        texts[max(0, started - 1)].append(word)
    return [" ".join(text) for text in texts]
