"""Calls with agents of every kind, the difficult ones included: each comes to an end, and each
is a result.
"""

from itertools import count

import pytest

from aftercall.errors import LineFailed
from aftercall.speech.kit import find_espeak
from aftercall.speech.sound import FRAME_BYTES, FRAME_S, SILENCE, tone
from aftercall.tester.drivers.text_agent import (
    AudioAgentConnection,
    Interruption,
    load_function,
)
from aftercall.tester.line import (
    UNADDRESSED,
    AgentAnswer,
    AgentTick,
    CallerTick,
    DialedCall,
    Kind,
    Outcome,
)
from aftercall.tester.scenario import LineNoise, LineQuality, SpeakingManner
from aftercall.tester.score import score
from aftercall.tester.voice import LineQualityFilter, ToneVoice, choose_voice
from unit.tester.calls import (
    LineAgent,
    answering,
    end_of,
    hold,
    kinds,
    scenario_of,
    try_agent,
    try_practice,
)

BOOK = scenario_of("""
caller_context:
  opening: I'd like to book a table.
  verification: {name: Ann Lee, dob: "May 1st, 1990"}
success: [{said: booked}]
limits: {max_duration_s: 90, max_silence_s: 4}
""")


async def test_an_agent_that_never_speaks_is_found_out_and_left() -> None:
    scored = await try_agent(LineAgent(greeting=None), BOOK)
    assert ("never_spoke", "agent") in kinds(scored)
    assert scored.records[0].end_why == "nobody answers"


async def test_an_agent_that_talks_without_end_is_cut_off_by_the_limit() -> None:
    scored = await try_agent(
        LineAgent(greeting="And so on and on it goes, " * 60), BOOK
    )
    assert {("monologue", "agent"), ("ran_on", "agent")} <= kinds(scored)
    assert scored.records[0].ended_by == "limit"


async def test_an_agent_that_hangs_up_at_once_is_told_so() -> None:
    agent = LineAgent(AgentAnswer("Bye.", ends_call=True), greeting="Hello.")
    assert ("hung_up_early", "agent") in kinds(await try_agent(agent, BOOK))


async def test_an_agent_that_echoes_is_told_so() -> None:
    scored = score(
        BOOK,
        1,
        [
            await hold(
                answering(lambda text: AgentAnswer(text or "Hello.", delay_s=0.4)), BOOK
            )
        ],
    )
    assert ("echoes", "agent") in kinds(scored)


async def test_an_exception_in_the_agent_is_the_agents_and_no_crash() -> None:
    def broken(text: str) -> str:
        raise ZeroDivisionError

    record = await hold(answering(broken), BOOK)
    assert (record.outcome, record.ended_by) == ("answered", "agent")
    assert "ZeroDivisionError" in record.end_why
    scored = score(BOOK, 1, [record])
    assert kinds(scored) == {("agent_error", "agent")}
    assert scored.verdict == "failed"


@pytest.mark.parametrize("outcome", ["busy", "no-answer", "failed", "voicemail"])
async def test_a_call_that_is_not_answered_is_a_result_of_its_own(
    outcome: Outcome,
) -> None:
    class Unanswered:
        kind: Kind = "audio"

        async def connect(self, dial: DialedCall) -> Outcome:
            return outcome

        async def tick(self, at_s: float, near: CallerTick) -> AgentTick:
            return AgentTick(ended="agent" if at_s > 1 else "")

        async def hang_up(self) -> None:
            return

    scored = score(BOOK, 1, [await hold(Unanswered(), BOOK)])
    assert [finding.kind for finding in scored.findings] == [
        f"outcome_{outcome.replace('-', '_')}"
    ]
    assert scored.verdict == "inconclusive"
    assert scored.bugs == []


async def test_sound_in_stereo_at_44_kilohertz_is_heard_at_the_right_time() -> None:
    loud = tone(300, 1.0)
    ticks = count()

    def agent(frame: bytes) -> bytes:
        """Half a second of silence, then one second of tone, 20 ms at a time, both channels the
        same.
        """
        at = next(ticks) - 25
        size = int(44_100 * FRAME_S)
        if not 0 <= at < 50:
            return bytes(4 * size)
        return b"".join(
            loud[
                (at * FRAME_BYTES + number * FRAME_BYTES // size) % len(loud)
            ].to_bytes(2, "little", signed=True)
            * 2
            for number in range(size)
        )

    record = await hold(AudioAgentConnection(agent, rate=44_100, channels=2), BOOK)
    first = record.agent_spans[0]
    assert first.start_s == pytest.approx(0.5, abs=0.03)
    assert first.seconds == pytest.approx(1.0, abs=0.05)


async def test_latency_counts_from_the_first_audible_sample() -> None:
    agent = LineAgent(
        AgentAnswer("Certainly.", delay_s=1.3),
        "You are booked.",
        AgentAnswer("Goodbye!", ends_call=True),
    )
    scored = await try_agent(agent, BOOK)
    assert scored.measures[0]["latency_s"][0] == pytest.approx(1.3, abs=0.005)
    assert scored.measures[0]["first_word_s"] == pytest.approx(0.3, abs=0.005)


async def test_a_barge_in_cuts_the_agents_words_and_its_yield_is_measured() -> None:
    scenario = scenario_of("""
turns:
  - {say: Stop right there please., after: {event: agent_starts, delay_ms: 700}}
  - {hang_up: true}
""")
    agent = LineAgent(
        "All right.",
        greeting="This is a very long greeting that nobody ever wants to hear to its end.",
    )
    scored = await try_agent(agent, scenario)
    caller, first = scored.records[0].caller_spans[0], scored.records[0].agent_spans[0]
    assert caller.start_s - first.start_s == pytest.approx(0.7, abs=0.05)
    assert first.is_cut
    assert (
        first.text
        != "This is a very long greeting that nobody ever wants to hear to its end."
    )
    assert scored.measures[0]["barge_ins"] == 1
    assert 0 < scored.measures[0]["yield_s"][0] < 0.6
    assert kinds(scored) == set()


async def test_an_interjection_waits_for_the_words_it_answers() -> None:
    scenario = scenario_of("""
caller_context: {opening: Tell me about it.}
turns:
  - {say: That is wrong., after: {event: agent_says, words: forty two}}
""")
    agent = LineAgent(
        "The answer to everything is forty two and nothing else at all, believe me.",
        greeting="Hello, ask me.",
    )
    record = await hold(end_of(agent), scenario)
    turn = next(span for span in record.caller_spans if span.why == "turn:1")
    assert turn.is_planned_overlap


async def test_keys_arrive_as_keys() -> None:
    agent = LineAgent("Appointments.", "Thank you.")
    await hold(end_of(agent), scenario_of("turns: [{dtmf: '12#'}, {hang_up: true}]"))
    assert agent.heard == ["[12#]"]
    assert agent.has_ended


async def test_silence_of_the_caller_lasts_as_long_as_it_says() -> None:
    agent = LineAgent("Thank you.")
    record = await hold(
        end_of(agent),
        scenario_of(
            "turns: [{silence: 6}, {say: Here I am.}, {hang_up: true}]\nlimits: {max_silence_s: 20}"
        ),
    )
    assert record.caller_spans[0].start_s - record.agent_spans[
        0
    ].end_s == pytest.approx(6.9, abs=0.3)


async def test_a_pause_in_the_agents_words_is_waited_out() -> None:
    """The agent goes on while the caller thinks: the caller hears both parts as one turn, and
    does not talk over them.
    """

    class Pausing(LineAgent):
        async def start(self, dial: DialedCall) -> list[AgentAnswer]:
            return [
                AgentAnswer("Let me see."),
                AgentAnswer("What is your name?", delay_s=0.8),
            ]

    record = await hold(end_of(Pausing("You are booked. Goodbye!")), BOOK)
    assert record.caller_spans[0].text == "Ann Lee"
    assert all(
        span.segment.overlap_s(record.caller_spans[0].segment) == 0
        for span in record.agent_spans
    )


async def test_an_agent_that_talks_over_the_caller_is_blamed_and_the_caller_is_not() -> (
    None
):
    end = end_of(
        LineAgent("You are booked."),
        Interruption(0.6, "Let me stop you there for a second."),
    )
    scored = score(BOOK, 1, [await hold(end, BOOK)])
    assert ("talks_over_caller", "agent") in kinds(scored)
    assert all(who == "agent" for _, who in kinds(scored))


def test_a_function_that_is_not_there_is_named() -> None:
    with pytest.raises(LineFailed, match="nowhere:agent cannot be loaded"):
        load_function("nowhere:agent")


async def test_an_agent_whose_words_nobody_recognised_is_judged_by_its_timing_alone() -> (
    None
):
    ticks, sound = count(), tone(300, FRAME_S).tobytes()
    record = await hold(
        AudioAgentConnection(
            lambda _: sound if next(ticks) % 300 < 50 else None, rate=8000
        ),
        BOOK,
    )
    scored = score(BOOK, 1, [record])
    assert record.agent_spans
    assert [checked.state for checked in scored.criteria] == ["unknown"]
    assert "goal_missed" not in {finding.kind for finding in scored.findings}


async def test_a_murmur_or_a_word_to_somebody_else_is_no_turn() -> None:
    scenario = scenario_of("""
caller_context:
  opening: Good day.
  habits: {backchannels: 0.5, side_speech: ['Not now, Tom.', 'Put that down.']}
success: [{said: pleasure}]
""")
    long = "This is a rather long answer that goes on and on until somebody is tired."
    agent = LineAgent(long, "A pleasure. " + long, greeting=long)
    record = await hold(end_of(agent), scenario)
    spoken = [event.kind for event in record.events]
    assert spoken.count("side_speech") == 2 or "backchannel" in spoken
    assert not any("Tom" in text or "Mhm" in text for text in agent.heard)
    assert all(span.text not in ("Mhm.", "Not now, Tom.") for span in record.spans)
    at_s = next(item.at_s for item in record.events if item.kind in UNADDRESSED)
    heard = record.caller_sound[int(at_s * 8000) : int(at_s * 8000) + 2400]
    assert heard.strip(b"\xff"), "it is in the caller's sound"
    assert score(scenario, 1, [record]).bugs == []


IMPATIENT = scenario_of("""
caller_context:
  opening: I'd like to book an appointment for Monday at eleven, please.
  verification: {name: Rosa Jimenez, dob: "August 14th, 1992"}
  habits: {interruptions: 1.0}
success: [{said: booked}]
""")


@pytest.mark.parametrize("run", [1, 2, 3])
async def test_a_caller_who_breaks_in_at_random_finds_who_does_not_yield(
    run: int,
) -> None:
    good = await try_practice(IMPATIENT, run=run)
    bad = await try_practice(IMPATIENT, "does_not_yield", run=run)
    (record,) = good.records
    broken_into = [span.text for span in record.caller_spans if span.is_planned_overlap]
    assert broken_into
    assert (good.verdict, good.bugs) == ("passed", [])
    assert ("does_not_yield", "agent") in kinds(bad)


async def test_the_seed_decides_where_the_caller_breaks_in() -> None:
    runs = [await try_practice(IMPATIENT, run=run) for run in (1, 1, 2)]
    first, again, other = [
        [span.start_s for span in scored.records[0].caller_spans] for scored in runs
    ]
    assert first == again
    assert first != other


async def test_a_caller_does_not_break_in_before_there_is_something_to_answer() -> None:
    scenario = scenario_of("""
caller_context:
  opening: Good day.
  habits: {interruptions: 1.0}
success: [{said: pleasure}]
""")
    long = "This is a rather long answer that goes on and on until somebody is tired."
    agent = LineAgent(long, f"A pleasure. {long}")
    record = await hold(end_of(agent), scenario)
    late = record.caller_spans[1:]
    assert not any(span.is_planned_overlap for span in late)
    assert score(scenario, 1, [record]).bugs == []


async def test_a_line_that_breaks_before_the_answer_is_not_the_agents_silence() -> None:
    class CutAgent(LineAgent):
        async def respond(self, text: str) -> list[AgentAnswer]:
            raise LineFailed("the network is gone")

    scenario = scenario_of("""
turns: [{say: Good day., expect: {said: pleasure}}]
""")
    scored = await try_agent(CutAgent(greeting=None), scenario)
    assert scored.verdict == "inconclusive"
    assert {who for _, who in kinds(scored)} == {"line"}


def test_frames_that_jitter_come_late_in_order_and_none_is_lost() -> None:
    clip = ToneVoice().speak("one two three four five six seven eight nine ten")
    frames = [
        clip.sound[at : at + FRAME_BYTES]
        for at in range(0, len(clip.sound), FRAME_BYTES)
    ]
    jitter = LineQualityFilter(LineQuality(jitter_ms=120), LineNoise(), seed=3)
    arrived = [
        jitter.apply(frame, at * 0.02)
        for at, frame in enumerate(frames + [SILENCE] * 20)
    ]
    loud = [frame for frame in arrived if frame != SILENCE]
    assert loud == [frame for frame in frames if frame != SILENCE]
    assert arrived[: len(frames)] != frames, "some came late"
    assert not jitter.lost_s


@pytest.mark.skipif(find_espeak() is None, reason="needs espeak-ng")
def test_a_callers_accent_and_speed_are_in_the_sound() -> None:
    text, voice = "I would like to book an appointment.", choose_voice("espeak")
    usual = voice.adapt(SpeakingManner(), "en").speak(text)
    fast = voice.adapt(SpeakingManner(words_per_minute=300), "en").speak(text)
    scottish = voice.adapt(SpeakingManner(accent="en-gb-scotland"), "en").speak(text)
    assert len(fast.sound) < 0.75 * len(usual.sound)
    assert scottish.sound != usual.sound
    assert [word for _, word in fast.words] == text.split()
