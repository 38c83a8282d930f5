"""The order of turns: that in which they began, whatever order their words come in."""

from hypothesis import given
from hypothesis import strategies as st

from aftercall.bridge.turn_log import JOIN_WINDOW_S, MISSING_WORDS_TIMEOUT_S, TurnDrafts
from aftercall.model.calls import Speaker
from fakes import START


def texts(
    transcript: TurnDrafts, now_s: float, *, everything: bool = False
) -> list[tuple[str, str]]:
    return [
        (draft.speaker, draft.text)
        for draft in transcript.pop_ready(now_s, everything=everything)
    ]


def test_an_answer_waits_for_the_words_it_answers() -> None:
    transcript = TurnDrafts()
    transcript.start("caller", "t1", START, 0.0)
    transcript.start("agent", "s1", START, 1.0)
    transcript.set_text("agent", "s1", "Noted.", START, 2.0)
    assert texts(transcript, 2.0) == []
    transcript.set_text("caller", "t1", "Call Jim.", START, 3.0)
    assert texts(transcript, 3.0) == [("caller", "Call Jim."), ("agent", "Noted.")]


def test_words_that_never_come_hold_nothing_up_for_long() -> None:
    transcript = TurnDrafts()
    transcript.start("caller", "t1", START, 0.0)
    transcript.set_text("agent", "s1", "Hello?", START, 1.0)
    assert texts(transcript, 1.0 + MISSING_WORDS_TIMEOUT_S - 0.1) == []
    assert texts(transcript, 1.0 + MISSING_WORDS_TIMEOUT_S) == [("agent", "Hello?")]


def test_words_of_the_caller_wait_a_moment_for_more_of_them() -> None:
    transcript = TurnDrafts()
    transcript.set_text("caller", "t1", "Call", START, 0.0, 0.9)
    assert texts(transcript, JOIN_WINDOW_S / 2) == []
    transcript.set_text("caller", "t2", " Jim. ", START, JOIN_WINDOW_S / 2, 0.8)
    assert texts(transcript, JOIN_WINDOW_S / 2) == []
    (draft,) = transcript.pop_ready(2 * JOIN_WINDOW_S)
    assert (draft.text, draft.confidence) == ("Call Jim.", 0.8)


def test_the_agent_beginning_to_speak_ends_the_wait() -> None:
    transcript = TurnDrafts()
    transcript.set_text("caller", "t1", "Call Jim.", START, 0.0)
    transcript.start("agent", "s1", START, 0.1)
    assert texts(transcript, 0.1) == [("caller", "Call Jim.")]


def test_turns_without_a_word_are_left_out() -> None:
    transcript = TurnDrafts()
    transcript.set_text("agent", "s1", "", START, 0.0)
    transcript.set_text("agent", "s2", "Hi.", START, 0.0)
    assert texts(transcript, 0.0) == [("agent", "Hi.")]
    transcript.start("caller", "t1", START, 0.0)
    assert transcript.is_missing_words
    assert texts(transcript, 0.0, everything=True) == []
    assert not transcript.is_missing_words


Steps = st.lists(
    st.tuples(
        st.sampled_from(["begin", "know", "take"]),
        st.sampled_from(["agent", "caller"]),
        st.integers(0, 5),
    ),
    max_size=40,
)


@given(Steps)
def test_no_word_is_lost_or_told_twice(steps: list[tuple[str, Speaker, int]]) -> None:
    transcript, said, kept = TurnDrafts(), [], []
    for number, (step, speaker, key) in enumerate(steps):
        if step == "begin":
            transcript.start(speaker, str(key), START, float(number))
        elif step == "know":
            said.append(f"w{number}")
            transcript.set_text(speaker, str(key), f"w{number}", START, float(number))
        else:
            kept += [
                word
                for _, text in texts(transcript, float(number))
                for word in text.split()
            ]
    kept += [
        word
        for _, text in texts(transcript, 1e9, everything=True)
        for word in text.split()
    ]
    assert sorted(kept) == sorted(said)
