"""What an interrupted speech said up to the point where it was cut: whole words, by their share of the audio."""

import re

from aftercall.bridge.playback import Heard
from aftercall.phone.wire import BYTES_PER_MS

MS_PER_CHARACTER = 60  # how fast agents talk, for a speech whose end never came
_WORD = re.compile(r"\S+\s*")


def heard_text(heard: Heard) -> str:
    """The words that reached the caller; a word counts when more than half of it did."""
    text = heard.speech.text.strip()
    if not heard.was_cut:
        return text
    length_ms = heard.speech.sent // BYTES_PER_MS
    if not heard.speech.is_done:
        length_ms = max(length_ms, len(text) * MS_PER_CHARACTER)
    return cut_text(text, heard.heard_ms, length_ms)


def cut_text(text: str, heard_ms: int, length_ms: int) -> str:
    if length_ms <= 0 or heard_ms <= 0:
        return ""
    reach = len(text) * heard_ms / length_ms
    end = 0
    for word in _WORD.finditer(text):
        if (word.start() + word.end()) / 2 >= reach:
            break
        end = word.end()
    return text[:end].rstrip()
