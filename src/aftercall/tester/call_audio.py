"""Everything of a call on two channels, and the turns read back from them: times from what was
audible, words from who said them.
"""

from aftercall.speech.sound import FRAME_S, SAMPLE_RATE_HZ
from aftercall.tester.line import AgentTick, CallerTick
from aftercall.tester.record import LineEvent, Span
from aftercall.tester.segments import Segment, find_segments
from aftercall.tester.speaking import CallerUtterance

AGENT_GAP_S = 0.5
MAX_WORD_LEAD_S = 0.15  # a word's mark may come this long before it is heard


class CallAudio:
    def __init__(self) -> None:
        self.caller = bytearray()
        self.agent = bytearray()
        self.events: list[LineEvent] = []
        self._words: list[tuple[float, str]] = []
        self._ideals: list[tuple[float, str]] = []
        self._said: list[CallerUtterance] = []
        self._words_taken = 0
        self._said_taken = 0

    @property
    def duration_s(self) -> float:
        return len(self.agent) / SAMPLE_RATE_HZ

    def add(self, at_s: float, near: CallerTick, far: AgentTick) -> None:
        self.caller += near.frame
        self.agent += far.frame
        self._words += [
            (at_s if far.words_at_s is None else far.words_at_s, word) for word in far.words
        ]
        if far.ideal:
            self._ideals.append((at_s if far.words_at_s is None else far.words_at_s, far.ideal))
        self.events += [LineEvent(at_s, kind, detail) for kind, detail in far.events]
        if near.digits:
            self.events.append(LineEvent(at_s, "dtmf"))

    def note(self, at_s: float, kind: str, detail: str = "") -> None:
        self.events.append(LineEvent(at_s, kind, detail))

    def note_said(self, utterance: CallerUtterance) -> None:
        self._said.append(utterance)

    def pop_ended_turns(self, agent_end_s: float | None) -> list[Span]:
        """Turns that ended since this was last asked; the agent's only when it fell silent,
        which is told.
        """
        spans = [
            _said_span(said, said.start_s, said.end_s) for said in self._said[self._said_taken :]
        ]
        self._said_taken = len(self._said)
        words = self._words[self._words_taken :]
        if words and agent_end_s is not None:
            start_s = words[0][0]
            spans.append(
                Span(
                    "agent", start_s, max(start_s, agent_end_s), " ".join(word for _, word in words)
                )
            )
            self._words_taken = len(self._words)
        return sorted(spans, key=lambda span: span.start_s)

    def spans(self) -> tuple[Span, ...]:
        """Turns of both sides, by when they were first heard."""
        spans = self._agent_spans() + self._caller_spans()
        return tuple(sorted(spans, key=lambda span: (span.start_s, span.who)))

    def _agent_spans(self) -> list[Span]:
        segments = find_segments(bytes(self.agent), AGENT_GAP_S)
        texts, ideals = _give_words(self._words, segments), _give_words(self._ideals, segments)
        cuts = {round(event.at_s, 2) for event in self.events if event.kind == "agent_cut"}
        return [
            Span(
                "agent",
                segment.start_s,
                segment.end_s,
                text,
                is_cut=any(abs(cut - segment.end_s) < 0.2 for cut in cuts),
                ideal=ideal,
            )
            for segment, text, ideal in zip(segments, texts, ideals, strict=True)
        ]

    def _caller_spans(self) -> list[Span]:
        segments = find_segments(bytes(self.caller), 0.0)
        spans = []
        for said in self._said:
            within = [
                piece
                for piece in segments
                if piece.start_s < said.end_s - FRAME_S / 2 and piece.end_s > said.start_s
            ]
            start, end = (
                (within[0].start_s, within[-1].end_s) if within else (said.start_s, said.end_s)
            )
            spans.append(_said_span(said, start, end))
        return spans


def _said_span(said: CallerUtterance, start_s: float, end_s: float) -> Span:
    text = f"[keys {said.move.text}]" if said.move.kind == "press" else said.move.text
    return Span(
        "caller", start_s, end_s, text, said.move.why, is_planned_overlap=said.is_overlapping
    )


def _give_words(words: list[tuple[float, str]], segments: list[Segment]) -> list[str]:
    """Each word to the last segment that had begun when it came."""
    given: list[list[str]] = [[] for _ in segments]
    for at_s, word in words:
        begun = [
            number
            for number, segment in enumerate(segments)
            if segment.start_s <= at_s + MAX_WORD_LEAD_S
        ]
        if segments:
            given[begun[-1] if begun else 0].append(word)
    return [" ".join(texts) for texts in given]
