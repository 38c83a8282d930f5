"""What of the agent's voice has reached the caller's ear: what was sent, which marks came back,
how much time has passed.

Everything sent to the line lies on one scale of bytes, each speech a stretch of it. A carrier
plays it from the front; a `Clear` throws away the rest. Between two marks the clock says where
the carrier is; it is never believed beyond a mark that has not come back, unless that mark is
long overdue: some carriers lose them.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from aftercall.phone.wire import BYTES_PER_MS

MARK_INTERVAL_BYTES = 200 * BYTES_PER_MS
BYTES_PER_S = 1_000 * BYTES_PER_MS
MARK_OVERDUE_BYTES = 2 * BYTES_PER_S


@dataclass(slots=True)
class QueuedSpeech:
    """One contribution of the agent, on its way to the caller."""

    key: str
    at: datetime
    start_byte: int
    text: str = field(default="", repr=False)
    sent_bytes: int = 0
    is_done: bool = False

    @property
    def end_byte(self) -> int:
        return self.start_byte + self.sent_bytes


@dataclass(frozen=True, slots=True)
class HeardSpeech:
    """A speech that is over for the caller, and how much of it they heard."""

    speech: QueuedSpeech
    heard_ms: int
    was_cut: bool


class Playback:
    def __init__(self) -> None:
        self._speeches: deque[QueuedSpeech] = deque()
        self._marks: deque[tuple[str, int]] = deque()
        self._sent = 0
        self._marked = self._played = 0
        self._anchor = (0, 0.0)
        self._number = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being said and nothing is left to be played."""
        return not self._speeches

    @property
    def is_waiting(self) -> bool:
        """Whether the agent has begun something and the rest of it has still to come from the
        engine.
        """
        return bool(self.list_unfinished())

    def list_unfinished(self) -> list[QueuedSpeech]:
        return [speech for speech in self._speeches if not speech.is_done]

    def find(self, key: str) -> QueuedSpeech | None:
        return next((speech for speech in reversed(self._speeches) if speech.key == key), None)

    def start(self, key: str, at: datetime) -> QueuedSpeech:
        speech = QueuedSpeech(key, at, self._sent)
        self._speeches.append(speech)
        return speech

    def record_sent(self, speech: QueuedSpeech, count: int, now_s: float) -> str | None:
        """So many bytes go out; the name of a mark to send behind them, when one is due."""
        if self.playhead(now_s) >= self._sent:
            self._anchor = (self._sent, now_s)
        if speech.sent_bytes == 0:
            speech.start_byte = self._sent
        speech.sent_bytes += count
        self._sent += count
        return self._mark() if self._sent - self._last_mark() >= MARK_INTERVAL_BYTES else None

    def finish(self, speech: QueuedSpeech) -> str | None:
        """The engine has given all of it; a mark tells when it was played.

        Nothing sent, nothing to wait for.
        """
        speech.is_done = True
        return self._mark() if self._sent > self._last_mark() else None

    def on_mark_played(self, name: str, now_s: float) -> None:
        """A mark was played, and with it everything before it."""
        if not any(name == known for known, _ in self._marks):
            return
        while self._marks:
            known, position = self._marks.popleft()
            if known == name:
                self._marked = position
                self._anchor = (position, now_s)
                return

    def playhead(self, now_s: float) -> int:
        """How far the carrier has played; never back from where it was believed to be before."""
        anchor, since_s = self._anchor
        guess = min(self._sent, anchor + int((now_s - since_s) * BYTES_PER_S))
        if self._marks and guess - self._marks[0][1] < MARK_OVERDUE_BYTES:
            guess = min(guess, max(self._marks[0][1] - 1, self._marked))
        self._played = max(self._played, guess, self._marked)
        return self._played

    def pop_played(self, now_s: float) -> list[HeardSpeech]:
        """Speeches that have been played to their end."""
        settled = []
        playhead = self.playhead(now_s)
        while (
            self._speeches and self._speeches[0].is_done and self._speeches[0].end_byte <= playhead
        ):
            speech = self._speeches.popleft()
            settled.append(HeardSpeech(speech, speech.sent_bytes // BYTES_PER_MS, was_cut=False))
        return settled

    def clear(self, now_s: float) -> list[HeardSpeech]:
        """Nothing more is played: what the caller heard of each speech that was not over."""
        playhead = self.playhead(now_s)
        cut = [_cut(speech, playhead) for speech in self._speeches]
        self._speeches.clear()
        self._marks.clear()
        self._sent = self._marked = playhead
        self._anchor = (playhead, now_s)
        return cut

    def _mark(self) -> str:
        self._number += 1
        name = f"m{self._number}"
        self._marks.append((name, self._sent))
        return name

    def _last_mark(self) -> int:
        return self._marks[-1][1] if self._marks else self._marked


def _cut(speech: QueuedSpeech, playhead: int) -> HeardSpeech:
    heard = max(0, min(playhead - speech.start_byte, speech.sent_bytes))
    return HeardSpeech(
        speech, heard // BYTES_PER_MS, was_cut=not speech.is_done or heard < speech.sent_bytes
    )
