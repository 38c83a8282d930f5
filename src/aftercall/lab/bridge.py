"""Joins a leg that streams its audio to an end of the line that speaks in words.

What the far end says becomes the lab's own speech on the stream, at the line's pace. What the stream says in the lab's own
speech becomes words on the line; the far end knows that somebody speaks as soon as they begin, so they can interrupt it.
"""

from aftercall.lab.line import SECONDS_A_WORD, End, Utterance
from aftercall.lab.media import FRAME_S, MediaPhone
from aftercall.lab.speech import utter

FRAMES_A_WORD = round(SECONDS_A_WORD / FRAME_S)


class Bridge:
    def __init__(self, end: End, phone: MediaPhone) -> None:
        """`end` is the streaming leg's own end of the line, `phone` its stream."""
        self._end = end
        self._phone = phone
        self._seen = sum(said.ended_s is not None for said in end.other.said)
        self._understood = 0
        self._playing: Utterance | None = None
        self._word_count = 0

    def pass_on(self, others: MediaPhone | None = None) -> None:
        """Whatever was said on either side since the last time; `others` is the far end's stream while it has one."""
        self._phone.connect_to(others)
        if others is None:
            self._pass_words()
        self._seen = len(self._end.other.said)
        self._pass_sound()

    def _pass_words(self) -> None:
        if self._playing is not None and len(self._playing.words) < self._word_count:
            self._phone.stop_saying()
            self._playing = None
        for said in self._end.other.said[self._seen :]:
            self._playing, self._word_count = said, len(said.words)
            words = said.after(self._end.timeline.now_s())
            self._phone.begin_to_sound(utter(words, FRAMES_A_WORD), quiet_after=b"")

    def _pass_sound(self) -> None:
        fresh = self._phone.heard[self._understood :]
        self._understood += len(fresh)
        for text in fresh:
            self._end.begin_speaking()
            self._end.finish_speaking(text)
        if self._phone.is_hearing:
            self._end.begin_speaking()
