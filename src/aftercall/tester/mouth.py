"""The caller's mouth: what is being said, frame by frame."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aftercall.speech.sound import FRAME, FRAME_S
from aftercall.tester.caller import Move
from aftercall.tester.line import QUIET_NEAR, Near
from aftercall.tester.voice import Clip, Voice, press_keys, read_clip


class Sounds(Protocol):
    voice: Voice
    clips: Path


@dataclass
class Utterance:
    """One thing the caller says, from its first frame to its last."""

    move: Move
    clip: Clip
    start_s: float
    is_overlapping: bool
    sent: int = 0

    @property
    def end_s(self) -> float:
        return self.start_s + self.sent / FRAME * FRAME_S


class Mouth:
    def __init__(self) -> None:
        self._now: Utterance | None = None
        self.last: Utterance | None = None

    @property
    def is_busy(self) -> bool:
        return self._now is not None

    def say(self, move: Move, sounds: Sounds, at_s: float, *, overlaps: bool) -> None:
        if move.kind == "press":
            clip = press_keys(move.text)
        elif move.clip is not None:
            clip = read_clip(sounds.clips / move.clip, move.text)
        else:
            clip = sounds.voice.speak(move.text)
        self._now = Utterance(move, clip, at_s, overlaps)

    def next(self, at_s: float) -> Near:
        now = self._now
        if now is None:
            return QUIET_NEAR
        frame = now.clip.sound[now.sent : now.sent + FRAME].ljust(FRAME, b"\xff")
        now.sent += FRAME
        if now.sent < len(now.clip.sound):
            return Near(frame)
        self._now, self.last = None, now
        return Near(frame, digits=now.move.text) if now.move.kind == "press" else Near(frame, said=now.move.text)
