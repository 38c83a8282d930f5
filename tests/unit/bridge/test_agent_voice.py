"""What reached the caller's ear: by marks, by the clock between them, and never more than was
sent.
"""

from hypothesis import given
from hypothesis import strategies as st

from aftercall.bridge.agent_voice import (
    BYTES_PER_S,
    MARK_INTERVAL_BYTES,
    Playback,
    cut_text,
    heard_text,
)
from fakes import START

SECOND = BYTES_PER_S


def test_a_speech_is_settled_when_its_last_mark_was_played() -> None:
    playback = Playback()
    speech = playback.start("s1", START)
    first = playback.record_sent(speech, SECOND, 0.0)
    assert first is not None
    assert playback.finish(speech) is None  # everything is marked already
    assert playback.pop_played(0.5) == []
    playback.on_mark_played(first, 1.0)
    (heard,) = playback.pop_played(1.0)
    assert (heard.heard_ms, heard.was_cut) == (1_000, False)
    assert playback.is_idle


def test_a_mark_is_sent_with_every_piece_long_enough_and_behind_the_end() -> None:
    playback = Playback()
    speech = playback.start("s1", START)
    names = [playback.record_sent(speech, 160, 0.0) for _ in range(25)]
    assert sum(name is not None for name in names) == 25 * 160 // MARK_INTERVAL_BYTES
    assert playback.finish(speech) is not None


def test_the_clock_is_not_believed_beyond_a_mark_that_is_out() -> None:
    playback = Playback()
    speech = playback.start("s1", START)
    playback.record_sent(speech, SECOND, 0.0)
    assert playback.playhead(0.5) == SECOND // 2
    assert playback.playhead(1.5) == SECOND - 1


def test_a_mark_that_never_comes_back_does_not_hold_the_call_up() -> None:
    playback = Playback()
    speech = playback.start("s1", START)
    playback.record_sent(speech, SECOND, 0.0)
    playback.finish(speech)
    playback.record_sent(playback.start("s2", START), 10 * SECOND, 0.0)
    assert [heard.speech.key for heard in playback.pop_played(4.0)] == ["s1"]


def test_what_is_sent_after_a_pause_is_counted_from_then() -> None:
    playback = Playback()
    speech = playback.start("s1", START)
    name = playback.record_sent(speech, SECOND, 0.0)
    playback.finish(speech)
    playback.on_mark_played(str(name), 1.0)
    playback.pop_played(1.0)
    later = playback.start("s2", START)
    playback.record_sent(later, 2 * SECOND, 60.0)
    (heard,) = playback.clear(60.5)
    assert (heard.heard_ms, heard.was_cut) == (500, True)


def test_of_two_speeches_in_the_buffer_each_is_cut_where_it_was() -> None:
    playback = Playback()
    for key in ("s1", "s2"):
        speech = playback.start(key, START)
        playback.record_sent(speech, SECOND, 0.0)
        playback.finish(speech)
    playback.on_mark_played("m1", 1.0)
    cut = {heard.speech.key: heard.heard_ms for heard in playback.clear(1.25)}
    assert cut == {"s1": 1_000, "s2": 250}
    assert playback.is_idle


def test_marks_of_another_time_change_nothing() -> None:
    playback = Playback()
    speech = playback.start("s1", START)
    playback.record_sent(speech, SECOND, 0.0)
    playback.clear(0.1)
    playback.on_mark_played("m1", 5.0)
    playback.on_mark_played("made up", 5.0)
    assert playback.playhead(9.0) == SECOND // 10


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["send", "finish", "mark", "clear", "wait"]),
            st.integers(1, 20_000),
        ),
        max_size=40,
    )
)
def test_the_playhead_never_runs_backwards_nor_past_what_was_sent(
    steps: list[tuple[str, int]],
) -> None:
    playback, now_s, names, last, sent, total = Playback(), 0.0, [], 0, 0, 0
    for number, (step, size) in enumerate(steps):
        now_s += 0.05
        speech = playback.list_unfinished()[-1] if playback.list_unfinished() else None
        if step == "send":
            names.append(
                playback.record_sent(
                    speech or playback.start(f"s{number}", START), size, now_s
                )
            )
            sent += size
        elif step == "finish" and speech:
            names.append(playback.finish(speech))
        elif step == "mark" and names:
            playback.on_mark_played(str(names.pop(0)), now_s)
        elif step == "clear":
            total += sum(heard.heard_ms for heard in playback.clear(now_s))
            names.clear()
        elif step == "wait":
            now_s += size / 4_000
        total += sum(heard.heard_ms for heard in playback.pop_played(now_s))
        head = playback.playhead(now_s)
        assert last <= head <= sent
        last = head
    assert total * 8 <= sent


def test_words_are_kept_whole_when_more_than_half_of_them_was_heard() -> None:
    assert cut_text("one two three", 0, 1_000) == ""
    assert cut_text("one two three", 400, 1_000) == "one"
    assert cut_text("one two three", 480, 1_000) == "one two"
    assert cut_text("one two three", 1_000, 1_000) == "one two three"
    assert cut_text("", 10, 0) == ""


@given(st.text(max_size=200), st.integers(0, 5_000), st.integers(0, 5_000))
def test_what_was_heard_is_a_beginning_of_what_was_said(
    text: str, heard_ms: int, length_ms: int
) -> None:
    assert text.startswith(cut_text(text, heard_ms, length_ms))


def test_a_speech_whose_end_never_came_is_measured_by_how_fast_agents_talk() -> None:
    playback = Playback()
    speech = playback.start("s1", START)
    speech.text = "one two three four five six seven eight nine ten"
    playback.record_sent(speech, SECOND, 0.0)
    (heard,) = playback.clear(0.99)
    assert heard_text(heard) == "one two three"
