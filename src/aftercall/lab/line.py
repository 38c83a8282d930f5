"""An emulated line with two ends: what one end says, the other hears while it listens.

Text stands for speech and takes the time that speaking takes. A participant either works (it
asks a webhook, for instance) or waits. In virtual time the clock stands still while a
participant works; when all wait it jumps to the first that is due.
"""

import asyncio
import heapq
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from aftercall.clock import Clock

SECONDS_PER_WORD = 0.4
SECONDS_PER_KEY = 0.25
END_SILENCE_S = 1.0
TOLERANCE_S = 1e-9


class Alarm:
    """One wait of one participant. Others may cut it short."""

    def __init__(self) -> None:
        self.woken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


class Timeline(Protocol):
    def now_s(self) -> float: ...

    def join(self) -> None:
        """Adds a participant, which works."""
        ...

    def leave(self) -> None: ...

    async def wait(self, alarm: Alarm, seconds: float | None) -> bool:
        """Waits this long, or until woken; True if woken."""
        ...

    def wake(self, alarm: Alarm) -> None: ...


class VirtualTimeline:
    """Time that jumps to the next event."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._active_count = 0
        self._waiting: list[tuple[float, int, Alarm]] = []
        self._order = count()

    def now_s(self) -> float:
        return self._now_s

    def join(self) -> None:
        self._active_count += 1

    def leave(self) -> None:
        self._active_count -= 1
        self._advance()

    async def wait(self, alarm: Alarm, seconds: float | None) -> bool:
        if seconds is not None:
            due_s = self._now_s + max(0.0, seconds)
            heapq.heappush(self._waiting, (due_s, next(self._order), alarm))
        self._active_count -= 1
        self._advance()
        try:
            return await alarm.woken
        except asyncio.CancelledError:
            if alarm.woken.cancelled():
                self._active_count += (
                    1  # a cancelled participant leaves as a working one
                )
            raise

    def wake(self, alarm: Alarm) -> None:
        if not alarm.woken.done():
            self._active_count += 1
            alarm.woken.set_result(True)

    def _advance(self) -> None:
        while self._active_count == 0 and self._waiting:
            due_s, _, alarm = heapq.heappop(self._waiting)
            if not alarm.woken.done():
                self._now_s = max(self._now_s, due_s)
                self._active_count += 1
                alarm.woken.set_result(False)


class RealTimeline:
    """The clock on the wall."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_s(self) -> float:
        return self._clock.monotonic()

    def join(self) -> None:
        return

    def leave(self) -> None:
        return

    async def wait(self, alarm: Alarm, seconds: float | None) -> bool:
        if seconds is None:
            return await alarm.woken
        rest = asyncio.ensure_future(self._clock.sleep(max(0.0, seconds)))
        either: set[asyncio.Future[Any]] = {alarm.woken, rest}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rest.cancel()
        return alarm.woken.done()

    def wake(self, alarm: Alarm) -> None:
        if not alarm.woken.done():
            alarm.woken.set_result(True)


class HungUp(Exception):
    """The line is closed."""


@dataclass
class LineUtterance:
    """Words said on the line, cut where the speaker broke off."""

    words: list[str]
    began_s: float
    ended_s: float | None = None
    seconds_per_word: float = SECONDS_PER_WORD

    @property
    def end_s(self) -> float:
        """When the last word ends if nothing interrupts it."""
        return self.began_s + len(self.words) * self.seconds_per_word

    def words_after(self, moment_s: float) -> str:
        """The words from this moment on: a late listener misses the first ones."""
        missed = max(0.0, moment_s - self.began_s) / self.seconds_per_word
        return " ".join(self.words[round(missed) :])


@dataclass
class LineEnd:
    """One end of an emulated line: speaks, listens, presses keys."""

    timeline: Timeline
    said: list[LineUtterance] = field(default_factory=list)
    is_open: bool = True
    interrupt: Exception | None = None
    """Raised at the next wait: the call is redirected."""
    _other: "LineEnd | None" = None
    _speaking: LineUtterance | None = None
    _listens_since_s: float | None = None
    _heard: list[LineUtterance] = field(default_factory=list)
    _keys: str = ""
    _alarm: Alarm | None = None

    @property
    def other(self) -> "LineEnd":
        assert self._other is not None  # noqa: S101 - `make_line` joins two ends
        return self._other

    async def say(self, text: str) -> bool:
        """Returns False if the other end interrupted, which it can only while this end listens."""
        utterance = self._speaking = LineUtterance(text.split(), self.timeline.now_s())
        self.said.append(utterance)
        self._wake_listener()
        is_interrupted = False
        try:
            while not is_interrupted:
                rest_s = utterance.end_s - self.timeline.now_s()
                if rest_s <= TOLERANCE_S:
                    break
                await self._wait(rest_s)
                is_interrupted = self.is_listening and self.other._speaking is not None
        finally:
            spoken = round(
                (self.timeline.now_s() - utterance.began_s) / SECONDS_PER_WORD
            )
            del utterance.words[max(0, spoken) :]
            self._end_speaking(utterance)
        return not is_interrupted

    def start_speaking(self) -> None:
        """Starts an utterance whose words are known only at its end, unless one is under way."""
        if self._speaking is None:
            self._speaking = LineUtterance([], self.timeline.now_s())
            self.said.append(self._speaking)
            self._wake_listener()

    def finish_speaking(self, text: str) -> None:
        """Ends the utterance of `start_speaking` with its words."""
        utterance = self._speaking
        if utterance is None:
            return
        utterance.words = text.split()
        spoken_s = self.timeline.now_s() - utterance.began_s
        utterance.seconds_per_word = (
            spoken_s / max(1, len(utterance.words)) or SECONDS_PER_WORD
        )
        self._end_speaking(utterance)

    async def press(self, digits: str) -> None:
        """Presses keys one after the other. The other end gets those it listens to."""
        for digit in digits:
            await self.pause(SECONDS_PER_KEY)
            if self.other.is_listening:
                self.other._keys += digit
                self.other.wake()

    def pop_digits(self) -> str:
        """The keys that the other end pressed while this one listened."""
        keys, self._keys = self._keys, ""
        return keys

    def start_listening(self) -> None:
        """Hears what is said from now on."""
        self._listens_since_s = self.timeline.now_s()
        self._heard.clear()
        self._keys = ""

    async def listen(self, timeout_s: float, end_silence_s: float | None = None) -> str:
        """What the other end says until it pauses; empty after a timeout or when it presses
        keys instead.
        """
        if self._listens_since_s is None:
            self.start_listening()
        since_s, deadline_s = (
            self._listens_since_s or 0.0,
            self.timeline.now_s() + timeout_s,
        )
        pause_s = END_SILENCE_S if end_silence_s is None else end_silence_s
        try:
            while True:
                now_s = self.timeline.now_s()
                if self.other._speaking is not None:
                    await self._wait(None)
                elif self._heard:
                    rest_s = (self._heard[-1].ended_s or now_s) + pause_s - now_s
                    if rest_s <= TOLERANCE_S:
                        pieces = [piece.words_after(since_s) for piece in self._heard]
                        return " ".join(filter(None, pieces))
                    await self._wait(rest_s)
                elif now_s >= deadline_s - TOLERANCE_S:
                    return ""
                else:
                    pressed = self._keys
                    await self._wait(pause_s if pressed else deadline_s - now_s)
                    if pressed and pressed == self._keys:
                        return ""
        finally:
            self._listens_since_s = None
            self._heard.clear()

    async def pause(self, seconds: float) -> None:
        until_s = self.timeline.now_s() + seconds
        while (rest_s := until_s - self.timeline.now_s()) > TOLERANCE_S:
            await self._wait(rest_s)

    @property
    def is_listening(self) -> bool:
        return self._listens_since_s is not None

    def hang_up(self) -> None:
        """Closes the line for both ends."""
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
        """Raises HungUp on a closed line, or the waiting `interrupt`."""
        if not self.is_open:
            raise HungUp
        if self.interrupt is not None:
            interrupt, self.interrupt = self.interrupt, None
            raise interrupt

    def _wake_listener(self) -> None:
        if self.other.is_listening:
            self.other.wake()

    def _end_speaking(self, utterance: LineUtterance) -> None:
        utterance.ended_s = self.timeline.now_s()
        self._speaking = None
        if utterance.words and self.other.is_listening:
            self.other._heard.append(utterance)
        self.other.wake()


def make_line(timeline: Timeline) -> tuple[LineEnd, LineEnd]:
    one = LineEnd(timeline)
    two = LineEnd(timeline)
    one._other = two
    two._other = one
    return one, two
