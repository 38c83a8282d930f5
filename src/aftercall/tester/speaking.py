"""The caller's mouth: what is being said, frame by frame."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aftercall.speech.sound import FRAME_BYTES, FRAME_S
from aftercall.tester.caller import CallerMove
from aftercall.tester.line import QUIET_NEAR, CallerTick
from aftercall.tester.voice import CallerVoice, VoiceClip, press_keys, read_clip


class Sounds(Protocol):
    voice: CallerVoice
    clips: Path


@dataclass
class CallerUtterance:
    """One thing the caller says, from its first frame to its last."""

    move: CallerMove
    clip: VoiceClip
    start_s: float
    is_overlapping: bool
    sent: int = 0

    @property
    def end_s(self) -> float:
        return self.start_s + self.sent / FRAME_BYTES * FRAME_S


class CallerSpeech:
    def __init__(self) -> None:
        self._now: CallerUtterance | None = None
        self.last: CallerUtterance | None = None

    @property
    def is_busy(self) -> bool:
        return self._now is not None

    def say(self, move: CallerMove, sounds: Sounds, at_s: float, *, overlaps: bool) -> None:
        if move.kind == "press":
            clip = press_keys(move.text)
        elif move.clip is not None:
            clip = read_clip(sounds.clips / move.clip, move.text)
        else:
            clip = sounds.voice.speak(move.text)
        self._now = CallerUtterance(move, clip, at_s, overlaps)

    def next(self, at_s: float) -> CallerTick:
        now = self._now
        if now is None:
            return QUIET_NEAR
        frame = now.clip.sound[now.sent : now.sent + FRAME_BYTES].ljust(FRAME_BYTES, b"\xff")
        now.sent += FRAME_BYTES
        if now.sent < len(now.clip.sound):
            return CallerTick(frame)
        self._now, self.last = None, now
        return (
            CallerTick(frame, digits=now.move.text)
            if now.move.kind == "press"
            else CallerTick(frame, said=now.move.text)
        )
