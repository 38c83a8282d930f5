"""The caller's ear: is the agent speaking, has it finished, and what did it say.

Knows only what came down the line.
"""

from aftercall.speech.sound import FRAME_S, LoudnessMeter
from aftercall.tester.line import AgentTick
from aftercall.tester.phrases import find_any

HANGOVER_S = 0.12  # a gap between two words is no silence


class AgentListener:
    def __init__(self) -> None:
        self._gauge = LoudnessMeter()
        self.awaits_words = False
        self._words: list[tuple[float, str]] = []
        self.started_at_s: float | None = None
        self.last_s: float | None = None
        self.is_speaking = False
        self.has_turn = False
        self.turns = 0

    def receive_tick(self, at_s: float, far: AgentTick) -> None:
        self._words += [(at_s, word) for word in far.words]
        self.awaits_words = far.has_words_to_come
        if self._gauge.is_loud(far.frame):
            if not self.is_speaking:
                self.is_speaking = True
                self.started_at_s = at_s if not self._is_same_breath(at_s) else self.started_at_s
            self.last_s = at_s + FRAME_S
            self.has_turn = True
        elif self.is_speaking and self.last_s is not None and at_s - self.last_s > HANGOVER_S:
            self.is_speaking = False

    def _is_same_breath(self, at_s: float) -> bool:
        return self.has_turn and self.last_s is not None and at_s - self.last_s < 0.5

    def is_turn_over(self, at_s: float, patience_s: float) -> bool:
        if self.awaits_words or self.is_speaking or self.last_s is None:
            return False
        return self.has_turn and at_s - self.last_s >= patience_s

    def said_at(self, patterns: tuple[str, ...]) -> float | None:
        """When these words were complete, if they were said in this turn."""
        text = " ".join(word for _, word in self._words)
        return self._words[-1][0] if self._words and find_any(patterns, text) else None

    def pop_turn(self) -> str:
        """The agent's words since they were last asked for."""
        text = " ".join(word for _, word in self._words)
        self._words = []
        self.turns += self.has_turn
        self.has_turn = False
        return text

    def restore_turn(self, text: str, at_s: float) -> None:
        """The turn was not over after all."""
        self._words = [(at_s, text), *self._words]
        self.turns -= 1
        self.has_turn = True

    def start_turn(self) -> None:
        """The caller has spoken: what comes now is the answer; what was half heard before is
        let go unless it goes on.
        """
        if not self.is_speaking:
            self._words = []
            self.has_turn = False
