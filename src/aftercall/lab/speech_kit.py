"""An ear and a mouth for the lab's own speech: what is heard is what was said, and no
recogniser is needed.
"""

from aftercall.errors import EngineLost
from aftercall.lab.speech import ToneDetector, ToneEnded, utter
from aftercall.speech.kit import SpeechKit


class LabRecogniser:
    def __init__(self) -> None:
        self.is_lost = False

    async def recognise(self, sound: bytes) -> str:
        if self.is_lost:
            raise EngineLost("the lab's ear was told to go")
        ear = ToneDetector()
        heard = [piece.text for piece in ear.detect(sound) if isinstance(piece, ToneEnded)]
        return " ".join([*heard, ear.finish()]).strip()


class LabSynthesiser:
    async def speak(self, text: str) -> bytes:
        return utter(text)


def make_lab_speech_kit() -> SpeechKit:
    return SpeechKit(LabRecogniser(), LabSynthesiser())
