"""The tester's instruments: onsets to the sample, calibration, and statistics against what can
be counted by hand.
"""

from itertools import combinations, product
from math import comb
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.clock import SystemClock
from aftercall.speech.sound import (
    SAMPLE_RATE_HZ,
    cached_loudness,
    decode,
    encode,
    from_pcm,
    read_wav,
    resample,
    tone,
    write_wav,
)
from aftercall.tester.alignment import find_segments
from aftercall.tester.calibrate import calibrate
from aftercall.tester.scenario import LineNoise, LineQuality
from aftercall.tester.statistics import (
    compare,
    e_value,
    paired_difference,
    pass_at_k,
    pass_hat_k,
    sign_flip,
    wilson,
)
from aftercall.tester.target import CallSetup
from aftercall.tester.voice import EspeakVoice, LineQualityFilter, ToneVoice, press_keys


@settings(max_examples=30)
@given(
    st.integers(0, 2 * SAMPLE_RATE_HZ),
    st.integers(SAMPLE_RATE_HZ // 10, SAMPLE_RATE_HZ),
    st.integers(0, SAMPLE_RATE_HZ),
)
def test_an_onset_is_found_within_milliseconds(
    before: int, length: int, after: int
) -> None:
    sound = (
        b"\xff" * before + encode(tone(300, length / SAMPLE_RATE_HZ)) + b"\xff" * after
    )
    (segment,) = find_segments(sound, 0.5)
    assert segment.start_s == pytest.approx(before / SAMPLE_RATE_HZ, abs=0.004)
    assert segment.end_s == pytest.approx((before + length) / SAMPLE_RATE_HZ, abs=0.004)


def test_silence_and_noise_alone_are_nobody_speaking() -> None:
    assert find_segments(b"\xff" * SAMPLE_RATE_HZ, 0.5) == []
    assert find_segments(b"", 0.5) == []
    quality = LineQualityFilter(LineQuality(), LineNoise(kind="white", snr_db=40), 1)
    assert (
        find_segments(
            b"".join(quality.apply(b"\xff" * 160, at * 0.02) for at in range(100)), 0.5
        )
        == []
    )


def test_gaps_between_words_do_not_cut_a_turn() -> None:
    sound = ToneVoice().speak("one two three four").sound
    assert len(find_segments(sound, 0.5)) == 1
    assert len(find_segments(sound, 0.0)) == 4


@given(st.binary(min_size=1, max_size=400))
def test_sound_survives_coding_twice(mulaw: bytes) -> None:
    assert decode(encode(decode(mulaw))) == decode(mulaw)


@given(
    st.binary(max_size=600),
    st.sampled_from([8000, 16_000, 22_050, 44_100, 48_000]),
    st.sampled_from([1, 2]),
)
def test_any_samples_of_any_rate_become_sound_of_the_right_length(
    raw: bytes, rate: int, channels: int
) -> None:
    sound = from_pcm(raw, rate, channels)
    assert abs(len(sound) - len(raw) // 2 // channels * SAMPLE_RATE_HZ / rate) <= 2


def test_two_channels_survive_a_wav_file() -> None:
    left, right = encode(tone(300, 0.2)), encode(tone(500, 0.1))
    assert read_wav(write_wav(left, right)) == [left, right.ljust(len(left), b"\xff")]
    assert read_wav(write_wav(left)) == [left]
    for broken in (b"", b"RIFF", write_wav(left)[:20]):
        with pytest.raises(ValueError, match="WAV"):
            read_wav(broken)


def test_upsampling_keeps_the_loudness() -> None:
    samples = tone(300, 0.5)
    assert cached_loudness(
        encode(resample(samples, SAMPLE_RATE_HZ, 16_000))
    ) == pytest.approx(cached_loudness(encode(samples)), rel=0.05)


def test_espeak_is_asked_once_for_each_sentence(tmp_path: Path) -> None:
    folder = tmp_path
    (folder / "out.wav").write_bytes(write_wav(encode(tone(300, 0.4))))
    program = folder / "espeak-ng"
    program.write_text(f"#!/bin/sh\necho x >> {folder}/asked\ncat {folder}/out.wav\n")
    program.chmod(0o700)
    voice = EspeakVoice(str(program))
    clips = [voice.speak("Hello there") for _ in range(2)]
    assert len(clips[0].sound) / SAMPLE_RATE_HZ == pytest.approx(0.4, abs=0.01)
    assert [word for _, word in clips[0].words] == ["Hello", "there"]
    assert (folder / "asked").read_text() == "x\n"


def test_keys_sound_as_long_as_there_are_keys() -> None:
    assert len(press_keys("12#").sound) / SAMPLE_RATE_HZ == pytest.approx(0.6)
    assert len(find_segments(press_keys("12#").sound, 0.05)) == 3


@given(st.floats(0, 0.9), st.integers(1, 10), st.integers(0, 99))
def test_the_same_seed_loses_the_same_frames(
    loss: float, burst: int, seed: int
) -> None:
    frame = encode(tone(300, 0.02))
    runs = []
    for _ in range(2):
        quality = LineQualityFilter(
            LineQuality(loss=loss, burst=burst), LineNoise(), seed
        )
        runs.append([quality.apply(frame, at * 0.02) for at in range(100)])
    assert runs[0] == runs[1]


async def test_the_tester_is_off_by_less_than_thirty_milliseconds() -> None:
    for line in await calibrate(CallSetup(SystemClock()), turns=15):
        assert line.turns == 15
        assert line.latency_p95_ms <= 30, line
        assert line.overlap_ms <= 30, line
        assert (line.false_barge_ins, line.word_error_rate) == (0, 0.0)
        assert line.false_barge_in_interval == wilson(0, 15)
        assert 0.0 < line.word_error_interval[1] < 0.05


def test_pass_rates_are_what_counting_gives() -> None:
    for runs, passed, k in product(range(1, 6), range(6), range(1, 6)):
        if passed > runs or k > runs:
            continue
        chosen = list(combinations([True] * passed + [False] * (runs - passed), k))
        assert pass_at_k(runs, passed, k) == pytest.approx(
            sum(any(some) for some in chosen) / len(chosen)
        )
        assert pass_hat_k(runs, passed, k) == pytest.approx(
            sum(all(some) for some in chosen) / len(chosen)
        )
    with pytest.raises(ValueError, match="makes no sense"):
        pass_at_k(3, 4, 1)


@pytest.mark.parametrize(
    ("passed", "runs", "low", "high"),
    [
        (25, 25, 0.867, 1.0),
        (1, 1, 0.207, 1.0),
        (0, 1, 0.0, 0.793),
        (0, 25, 0.0, 0.133),
        (5, 10, 0.237, 0.763),
        (0, 0, 0.0, 1.0),
    ],
)
def test_a_rate_has_wilsons_interval(
    passed: int, runs: int, low: float, high: float
) -> None:
    assert wilson(passed, runs) == pytest.approx((low, high), abs=0.001)


@given(st.integers(0, 200), st.integers(1, 200))
def test_an_interval_holds_its_rate_and_is_never_a_point(
    passed: int, runs: int
) -> None:
    passed = min(passed, runs)
    low, high = wilson(passed, runs)
    assert 0.0 <= low <= passed / runs <= high <= 1.0
    assert high - low > 0.0


def test_a_paired_difference_keeps_its_width_when_no_pair_is_split() -> None:
    low, high = paired_difference(
        [(True, True)] * 36 + [(True, False)] * 12 + [(False, True)] * 2
    )
    assert -1.0 < low < -0.2 < high < 0.0
    assert paired_difference([(True, True)] * 25) == pytest.approx(
        (-0.133, 0.133), abs=0.001
    )
    assert paired_difference([]) == (-1.0, 1.0)


def test_a_difference_in_every_scenario_is_rarely_chance() -> None:
    assert sign_flip([1.0] * 6) == pytest.approx(2 / 64)
    assert sign_flip([0.0, 0.0]) == 1.0
    assert sign_flip([0.4] * 20) < 0.01


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_evidence_from_fair_coins_is_one_on_average(count: int) -> None:
    """What makes stopping early honest: whatever the length, fair coins give evidence of one on
    average.
    """
    total = sum(
        comb(count, heads) * e_value(heads, count - heads) for heads in range(count + 1)
    )
    assert total / 2**count == pytest.approx(1.0, rel=1e-3)


def test_is_b_worse_than_a() -> None:
    worse = compare({f"s{number}": [(True, False)] for number in range(12)})
    same = compare({f"s{number}": [(True, True)] for number in range(25)})
    few = compare({"s": [(True, False), (True, True)]})
    assert (worse.answer, same.answer, few.answer) == (
        "worse",
        "not worse",
        "undecided",
    )
    assert few.more_pairs
    assert "more pairs would decide it" in few.sentence
    assert "A 100 % (95 %: 87 to 100 %), B 100 % (95 %: 87 to 100 %)" in same.sentence
