"""Two ends of an emulated line: what one end says is what the other end hears, if it listens,
and as far as it listened.
"""

from dataclasses import dataclass, field

from aftercall.lab.timeline import Alarm, Timeline

SECONDS_PER_WORD = 0.4
SECONDS_PER_KEY = 0.25
END_SILENCE_S = 1.0


class HungUp(Exception):
    """The line is closed; whoever was speaking or listening has nobody left."""


@dataclass
class LineUtterance:
    """Something said: its words, cut where it was broken off."""

    words: list[str]
    began_s: float
    ended_s: float | None = None
    seconds_per_word: float = SECONDS_PER_WORD

    @property
    def duration_s(self) -> float:
        return len(self.words) * self.seconds_per_word

    def words_after(self, moment_s: float) -> str:
        """The words from this moment on: who begins to listen late has missed the first ones."""
        missed = max(0.0, moment_s - self.began_s) / self.seconds_per_word
        return " ".join(self.words[round(missed) :])


@dataclass
class LineEnd:
    """One end of the line."""

    timeline: Timeline
    said: list[LineUtterance] = field(default_factory=list)
    is_open: bool = True
    interrupt: Exception | None = None
    """Raised at the next wait: new orders for whoever holds this end."""
    _other: "LineEnd | None" = None
    _speaking: LineUtterance | None = None
    _listens_since_s: float | None = None
    _may_be_interrupted: bool = False
    _heard: list[LineUtterance] = field(default_factory=list)
    _keys: str = ""
    _alarm: Alarm | None = None

    @property
    def other(self) -> "LineEnd":
        assert self._other is not None  # noqa: S101 - `connect` joins two ends
        return self._other

    async def say(self, text: str) -> bool:
        """Speak; False if the other end broke in (only while we listen, too)."""
        utterance = self._speaking = LineUtterance(text.split(), self.timeline.now_s())
        self.said.append(utterance)
        if self.other.is_listening:
            self.other.wake()
        broken_off = False
        try:
            while (
                not broken_off
                and (rest_s := utterance.began_s + utterance.duration_s - self.timeline.now_s())
                > 1e-9
            ):
                await self._wait(rest_s)
                broken_off = self._may_be_interrupted and self.other._speaking is not None
        finally:
            self._finish(utterance)
        return not broken_off

    def start_speaking(self) -> None:
        """Speak words that are known only when they have been said; nothing changes if we speak
        already.
        """
        if self._speaking is None:
            self._speaking = LineUtterance([], self.timeline.now_s())
            self.said.append(self._speaking)
            if self.other.is_listening:
                self.other.wake()

    def finish_speaking(self, text: str) -> None:
        """The words of what `begin_speaking` began."""
        utterance = self._speaking
        if utterance is None:
            return
        utterance.words = text.split()
        spoken_s = self.timeline.now_s() - utterance.began_s
        utterance.seconds_per_word = spoken_s / max(1, len(utterance.words)) or SECONDS_PER_WORD
        self._end_speaking(utterance)

    async def press(self, digits: str) -> None:
        """Keys reach the other end if it listens, one after the other."""
        for digit in digits:
            await self.pause(SECONDS_PER_KEY)
            if self.other.is_listening:
                self.other._keys += digit
                self.other.wake()

    def pop_digits(self) -> str:
        """What the other end has pressed while we listened."""
        keys, self._keys = self._keys, ""
        return keys

    def start_listening(self, *, takes_interruptions: bool = True) -> None:
        """What is said from now on is heard; what was said before is not."""
        self._listens_since_s, self._may_be_interrupted = self.timeline.now_s(), takes_interruptions
        self._heard.clear()
        self._keys = ""

    async def listen(self, timeout_s: float, end_silence_s: float | None = None) -> str:
        """What the other end says until it pauses; empty if it says nothing for so long, or
        presses keys instead.
        """
        if self._listens_since_s is None:
            self.start_listening()
        since_s, deadline_s = self._listens_since_s or 0.0, self.timeline.now_s() + timeout_s
        pause_s = END_SILENCE_S if end_silence_s is None else end_silence_s
        try:
            while True:
                now_s = self.timeline.now_s()
                if self.other._speaking is not None:
                    await self._wait(None)
                elif self._heard:
                    rest_s = (self._heard[-1].ended_s or now_s) + pause_s - now_s
                    if rest_s <= 1e-9:
                        return " ".join(
                            filter(None, (piece.words_after(since_s) for piece in self._heard))
                        )
                    await self._wait(rest_s)
                elif now_s >= deadline_s - 1e-9:
                    return ""
                else:
                    pressed = self._keys
                    await self._wait(pause_s if pressed else deadline_s - now_s)
                    if pressed and pressed == self._keys:
                        return ""
        finally:
            self._listens_since_s, self._may_be_interrupted = None, False
            self._heard.clear()

    async def pause(self, seconds: float) -> None:
        until_s = self.timeline.now_s() + seconds
        while (rest_s := until_s - self.timeline.now_s()) > 1e-9:
            await self._wait(rest_s)

    @property
    def is_listening(self) -> bool:
        return self._listens_since_s is not None

    def hang_up(self) -> None:
        """Either end closes the line for both."""
        for end in (self, self.other):
            end.is_open = False
            end.wake()

    def wake(self) -> None:
        if self._alarm is not None:
            self.timeline.wake(self._alarm)

    async def _wait(self, seconds: float | None) -> None:
        self.raise_if_interrupted()
        self._alarm = Alarm()
        try:
            await self.timeline.wait(self._alarm, seconds)
        finally:
            self._alarm = None
        self.raise_if_interrupted()

    def raise_if_interrupted(self) -> None:
        """Raises HungUp when the line is closed, or the new orders for whoever holds this end."""
        if not self.is_open:
            raise HungUp
        if self.interrupt is not None:
            orders, self.interrupt = self.interrupt, None
            raise orders

    def _finish(self, utterance: LineUtterance) -> None:
        spoken = round((self.timeline.now_s() - utterance.began_s) / SECONDS_PER_WORD)
        del utterance.words[max(0, spoken) :]
        self._end_speaking(utterance)

    def _end_speaking(self, utterance: LineUtterance) -> None:
        utterance.ended_s, self._speaking = self.timeline.now_s(), None
        if utterance.words and self.other.is_listening:
            self.other._heard.append(utterance)
        self.other.wake()


def make_line(timeline: Timeline) -> tuple[LineEnd, LineEnd]:
    one, two = LineEnd(timeline), LineEnd(timeline)
    one._other, two._other = two, one
    return one, two
