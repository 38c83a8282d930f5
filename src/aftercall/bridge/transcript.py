"""The order of a call's turns: that in which they began, whatever order their words arrive in.

A turn of the agent is known when it was played or cut, one of the caller when its words come, which may be after the answer
to them. Pieces of one speaker that follow each other become one turn; for that, words of the caller wait a moment.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from aftercall.model.turns import MAX_TURN_TEXT, Speaker

JOIN_WITHIN_S = 1.0
WORDS_WITHIN_S = 5.0


@dataclass(slots=True)
class Draft:
    """A turn before it has a number."""

    speaker: Speaker
    key: str
    at: datetime
    since_s: float
    text: str = field(default="", repr=False)
    confidence: float | None = None
    is_known: bool = False


class Transcript:
    def __init__(self) -> None:
        self._drafts: deque[Draft] = deque()

    @property
    def is_missing_words(self) -> bool:
        """Whether the caller said something of which no words have come yet."""
        return any(draft.speaker == "caller" and not draft.is_known for draft in self._drafts)

    def begin(self, speaker: Speaker, key: str, at: datetime, now_s: float) -> None:
        if self._find(speaker, key) is None:
            self._drafts.append(Draft(speaker, key, at, now_s))

    def know(self, speaker: Speaker, key: str, text: str, at: datetime, now_s: float, confidence: float | None = None) -> None:
        """The words of a turn; empty ones mean that there was nothing after all."""
        draft = self._find(speaker, key)
        if draft is None:
            draft = Draft(speaker, key, at, now_s)
            self._drafts.append(draft)
        draft.text = _join(draft.text, text)
        draft.confidence = _lower(draft.confidence, confidence)
        draft.is_known, draft.since_s = True, now_s

    def take(self, now_s: float, *, everything: bool = False) -> list[Draft]:
        """The turns that can be written down now. With `everything`, also what might still grow; never words that are missing."""
        ready: list[Draft] = []
        while self._drafts and (everything or self._is_ready(now_s)):
            draft = self._drafts.popleft()
            if not draft.text:
                continue
            if ready and ready[-1].speaker == draft.speaker:
                ready[-1].text = _join(ready[-1].text, draft.text)
                ready[-1].confidence = _lower(ready[-1].confidence, draft.confidence)
            else:
                ready.append(draft)
        return ready

    def _is_ready(self, now_s: float) -> bool:
        first = self._drafts[0]
        other = next((draft for draft in self._drafts if draft.speaker != first.speaker), None)
        if not first.is_known:
            return first.speaker == "caller" and other is not None and now_s - other.since_s >= WORDS_WITHIN_S
        return first.speaker == "agent" or other is not None or now_s - first.since_s >= JOIN_WITHIN_S

    def _find(self, speaker: Speaker, key: str) -> Draft | None:
        return next((draft for draft in self._drafts if draft.key == key and draft.speaker == speaker), None)


def _join(before: str, after: str) -> str:
    return f"{before} {after.strip()}".strip()[:MAX_TURN_TEXT]


def _lower(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return min(known, default=None)
