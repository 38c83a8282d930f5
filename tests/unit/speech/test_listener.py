"""When somebody begins and when they have finished, by loudness alone."""

import random
from array import array

from hypothesis import given
from hypothesis import strategies as st

from aftercall.speech.sound import (
    FRAME_BYTES,
    MAX_SPEECH_FRAMES,
    QUIET_FRAMES,
    SILENCE,
    Listener,
    SpeechBegan,
    SpeechEnded,
    encode,
    tone,
)

VOICE = encode(tone(300, 0.02))
PAUSE = SILENCE * (QUIET_FRAMES + 1)


def hear(
    sound: bytes, size: int = FRAME_BYTES, *, is_guarded: bool = False
) -> list[SpeechBegan | SpeechEnded]:
    listener = Listener()
    return [
        event
        for at in range(0, len(sound), size)
        for event in listener.receive_audio(
            sound[at : at + size], is_guarded=is_guarded
        )
    ]


@given(st.integers(1, 1_000))
def test_the_size_of_the_pieces_changes_nothing(size: int) -> None:
    sound = SILENCE * 20 + VOICE * 40 + PAUSE + VOICE * 20 + PAUSE
    assert hear(sound, size) == hear(sound)


def test_each_utterance_comes_once_whole_and_with_a_little_before_it() -> None:
    events = hear(SILENCE * 50 + VOICE * 40 + PAUSE + VOICE * 20 + PAUSE)
    assert [type(event) for event in events] == [
        SpeechBegan,
        SpeechEnded,
        SpeechBegan,
        SpeechEnded,
    ]
    first = events[1]
    assert isinstance(first, SpeechEnded)
    assert first.sound.count(VOICE) == 40
    assert first.sound.startswith(SILENCE * 5)
    assert not first.goes_on


def test_a_pause_between_words_is_no_end() -> None:
    events = hear(VOICE * 20 + SILENCE * (QUIET_FRAMES - 1) + VOICE * 20 + PAUSE)
    assert [type(event) for event in events] == [SpeechBegan, SpeechEnded]


def test_a_click_is_nobody() -> None:
    assert hear((SILENCE * 20 + VOICE * 2) * 10) == []


def test_over_our_own_voice_a_cough_is_nobody_and_a_sentence_is() -> None:
    cough = SILENCE * 20 + VOICE * 6 + PAUSE
    assert [type(event) for event in hear(cough)] == [SpeechBegan, SpeechEnded]
    assert hear(cough, is_guarded=True) == []
    assert [
        type(event)
        for event in hear(SILENCE * 20 + VOICE * 30 + PAUSE, is_guarded=True)
    ] == [
        SpeechBegan,
        SpeechEnded,
    ]


def test_steady_noise_is_nobody_and_speech_over_it_is() -> None:
    noise = random.Random(4)
    hiss = [
        encode(array("h", (int(noise.gauss(0, 300)) for _ in range(FRAME_BYTES))))
        for _ in range(250)
    ]
    # it takes a moment to know the line
    assert [type(event) for event in hear(b"".join(hiss))].count(SpeechBegan) <= 1
    events = hear(b"".join(hiss) + VOICE * 40 + b"".join(hiss[:60]))
    assert isinstance(events[-1], SpeechEnded)
    assert events[-1].sound.count(VOICE) == 40


def test_who_never_stops_is_given_out_in_pieces_and_memory_stays_bounded() -> None:
    events = hear(VOICE * (2 * MAX_SPEECH_FRAMES + 100) + PAUSE)
    assert [(type(event), getattr(event, "goes_on", None)) for event in events] == [
        (SpeechBegan, None),
        (SpeechEnded, True),
        (SpeechEnded, True),
        (SpeechEnded, False),
    ]
    assert (
        max(len(event.sound) for event in events if isinstance(event, SpeechEnded))
        <= MAX_SPEECH_FRAMES * FRAME_BYTES
    )


@given(st.binary(max_size=20_000), st.integers(1, 700))
def test_whatever_comes_over_the_line_somebody_begins_before_they_finish(
    sound: bytes, size: int
) -> None:
    is_talking = False
    for event in hear(sound, size):
        if isinstance(event, SpeechBegan):
            assert not is_talking
            is_talking = True
        else:
            assert is_talking
            is_talking = event.goes_on
