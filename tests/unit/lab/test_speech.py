"""Speech that a program can hear: what arrives whole is heard whole, what was cut is not."""

from hypothesis import given
from hypothesis import strategies as st

from aftercall.lab.speech import ToneBegan, ToneDetector, ToneEnded, utter
from aftercall.speech.sound import FRAME_BYTES, SILENCE

WORDS = st.lists(
    st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20),
    min_size=1,
    max_size=8,
)


@given(WORDS, st.integers(1, 5_000))
def test_what_was_said_is_heard_in_pieces_of_any_size(
    words: list[str], size: int
) -> None:
    audio = utter(" ".join(words)) + 10 * SILENCE
    ear = ToneDetector()
    heard = [
        sound
        for start in range(0, len(audio), size)
        for sound in ear.detect(audio[start : start + size])
    ]
    assert heard == [ToneBegan(), ToneEnded(" ".join(words))]


def test_of_a_cut_sentence_the_first_words_are_heard() -> None:
    ear = ToneDetector()
    audio = utter("one two three")
    assert list(ear.detect(audio[: 14 * FRAME_BYTES])) == [ToneBegan()]
    assert ear.finish() == "one"


def test_the_same_word_twice_is_two_words() -> None:
    ear = ToneDetector()
    list(ear.detect(utter("no no")))
    assert ear.finish() == "no no"


def test_silence_and_noise_say_nothing() -> None:
    ear = ToneDetector()
    assert list(ear.detect(50 * SILENCE + b"\x12" * 8_000)) == []
    assert ear.finish() == ""
