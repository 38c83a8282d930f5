"""When somebody begins to talk and when they have finished: by loudness alone, frame by frame,
cheap enough for every live call.

Words are another's matter. Somebody has begun when most of a short while was loud, and has
finished when it was quiet for a longer one. While our own voice is in their ear they must be
louder for longer: it may come back over their loudspeaker.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from aftercall.speech.sound import FRAME_BYTES, LoudnessMeter, measure_loudness

LEAD_FRAMES = 15  # kept from before the onset: the first sound of a word is its softest
WINDOW_FRAMES = 12
ONSET_FRAMES = 4
GUARDED_ONSET_FRAMES = 9
QUIET_FRAMES = 35
MAX_SPEECH_FRAMES = 1_200


@dataclass(frozen=True)
class SpeechBegan:
    """Somebody has begun to talk."""


@dataclass(frozen=True)
class SpeechEnded:
    """What they said, with a little silence around it; with `goes_on` they have not finished."""

    sound: bytes = field(repr=False)
    goes_on: bool = False


class Listener:
    def __init__(self, quiet_frames: int = QUIET_FRAMES) -> None:
        self._meter = LoudnessMeter(measure_loudness)
        self._quiet_frames = quiet_frames
        self._rest = b""
        self._recent: deque[bytes] = deque(maxlen=LEAD_FRAMES + WINDOW_FRAMES)
        self._loud: deque[bool] = deque(maxlen=WINDOW_FRAMES)
        self._sound = bytearray()
        self._quiet = 0
        self.is_in_speech = False

    def receive_audio(
        self, payload: bytes, *, is_guarded: bool = False
    ) -> Iterator[SpeechBegan | SpeechEnded]:
        """Audio in pieces of any size; `is_guarded` while our own voice may be heard."""
        audio = self._rest + payload
        whole = len(audio) - len(audio) % FRAME_BYTES
        self._rest = audio[whole:]
        onset = GUARDED_ONSET_FRAMES if is_guarded else ONSET_FRAMES
        for start in range(0, whole, FRAME_BYTES):
            yield from self._receive_frame(audio[start : start + FRAME_BYTES], onset)

    def _receive_frame(self, frame: bytes, onset: int) -> Iterator[SpeechBegan | SpeechEnded]:
        is_loud = self._meter.is_loud(frame)
        if self.is_in_speech:
            yield from self._follow(frame, is_loud)
            return
        self._recent.append(frame)
        self._loud.append(is_loud)
        if sum(self._loud) >= onset:
            self.is_in_speech, self._quiet = True, 0
            self._sound += b"".join(self._recent)
            self._recent.clear()
            self._loud.clear()
            yield SpeechBegan()

    def _follow(self, frame: bytes, is_loud: bool) -> Iterator[SpeechEnded]:
        self._sound += frame
        self._quiet = 0 if is_loud else self._quiet + 1
        is_over = self._quiet >= self._quiet_frames
        if is_over or len(self._sound) >= MAX_SPEECH_FRAMES * FRAME_BYTES:
            sound = bytes(self._sound)
            self._sound.clear()
            self.is_in_speech = not is_over
            yield SpeechEnded(sound, goes_on=not is_over)
