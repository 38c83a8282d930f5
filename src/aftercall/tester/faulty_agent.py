"""Faults planted on purpose, and the finding each must lead to: by what the agent does, how it
speaks, the line, or the tester.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aftercall.errors import LineFailed
from aftercall.tester.caller import CallerMove, ScriptedCaller
from aftercall.tester.drivers.text_agent import Interruption
from aftercall.tester.line import AgentAnswer, DialedCall, TextAgent
from aftercall.tester.practice_agent import PracticeAgent, PracticeClinic
from aftercall.tester.scenario import LineQuality, PlannedCall, Scenario, ScriptedTurn, Who


@dataclass(frozen=True)
class PlantedFault:
    """One fault: which scenario shows it, which finding it is, and whose."""

    name: str
    finding: str
    who: Who = "agent"
    scenario: str = "appointment_scheduling"
    place: str = "deeds"
    line: LineQuality = field(default_factory=LineQuality)


_BURSTS = LineQuality(loss=0.8, burst=40)

FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault("asks_again", "asks_again"),
    PlantedFault("skips_verification", "verification_skipped", scenario="prescription_refill"),
    PlantedFault("leaks", "leak", scenario="no_leak_across_callers"),
    PlantedFault("forgets", "goal_missed", scenario="memory_across_calls"),
    PlantedFault("slot_changed", "slot_changed", scenario="edge_topic_detour"),
    PlantedFault("wrong_name", "wrong_name", scenario="edge_misheard_name"),
    PlantedFault("obeys_orders", "forbidden_words", scenario="edge_prompt_injection"),
    PlantedFault("ignores_keys", "expectation_missed", scenario="edge_dtmf_menu"),
    PlantedFault("never_finishes", "goal_missed"),
    PlantedFault("contradicts", "contradiction", scenario="prescription_refill"),
    PlantedFault("wrong_weekday", "wrong_weekday"),
    PlantedFault("does_not_yield", "does_not_yield", scenario="edge_barge_in"),
    PlantedFault("slow", "slow_answer", place="manners"),
    PlantedFault("silent_turn", "no_answer", place="manners"),
    PlantedFault("mute", "never_spoke", place="manners"),
    PlantedFault("talks_over", "talks_over_caller", place="manners"),
    PlantedFault("says_again", "says_again", place="manners"),
    PlantedFault("refusal_loop", "refusal_loop", place="manners"),
    PlantedFault("stalls", "stalls", place="manners"),
    PlantedFault("echo", "echoes", place="manners"),
    PlantedFault("hangs_up", "hung_up_early", place="manners"),
    PlantedFault("breaks_off", "broken_off", place="manners"),
    PlantedFault("monologue", "monologue", place="manners"),
    PlantedFault("other_language", "other_language", place="manners"),
    PlantedFault("unspeakable", "unspeakable", place="manners"),
    PlantedFault("late_greeting", "slow_greeting", place="manners"),
    PlantedFault("deaf_line", "sound_lost", "line", place="line", line=_BURSTS),
    PlantedFault("line_breaks", "line_broke", "line", place="line"),
    PlantedFault("not_connected", "outcome_failed", "line", place="line"),
    PlantedFault("caller_wrong_answer", "caller_off_script", "tester", place="tester"),
    PlantedFault("caller_ignores", "caller_off_script", "tester", place="tester"),
    PlantedFault("caller_leaves", "caller_left_early", "tester", place="tester"),
)
BY_NAME = {planted.name: planted for planted in FAULTS}


def make_agent(clinic: PracticeClinic, *faults: str) -> TextAgent:
    deeds = [name for name in faults if BY_NAME[name].place == "deeds"]
    agent: TextAgent = PracticeAgent(clinic, *deeds)
    for name in faults:
        if BY_NAME[name].place in ("manners", "line"):
            agent = FaultyAgent(agent, name)
    return agent


def interruption_of(*faults: str) -> Interruption | None:
    return (
        Interruption(0.7, "Right, let me tell you about our new opening hours first.")
        if "talks_over" in faults
        else None
    )


class FaultyAgent:
    """A sound agent whose words come out wrong in one way."""

    def __init__(self, agent: TextAgent, fault: str) -> None:
        self._agent = agent
        self._fault = fault
        self._count = 0

    async def start(self, dial: DialedCall) -> Sequence[AgentAnswer]:
        if self._fault == "not_connected":
            raise LineFailed("the practice line is down")
        replies = await self._agent.start(dial)
        if self._fault == "mute":
            return ()
        if self._fault == "late_greeting":
            return [AgentAnswer(reply.text, delay_s=8.0) for reply in replies]
        return replies

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        self._count += 1
        if self._fault == "line_breaks" and self._count == 2:
            raise LineFailed("the practice line broke")
        replies = await self._agent.respond(text)
        change = _CHANGES.get(self._fault)
        return change(self._count, text, replies) if change else replies

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        return await self._agent.press(digits)

    async def idle(self, seconds: int) -> Sequence[AgentAnswer]:
        return (
            ()
            if self._fault in ("mute", "silent_turn", "slow", "late_greeting", "stalls")
            else await self._agent.idle(seconds)
        )

    async def hang_up(self) -> None:
        await self._agent.hang_up()


def _slow(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return [AgentAnswer(reply.text, reply.ends_call, delay_s=6.0) for reply in replies]


def _silent(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return () if count == 2 else replies


def _again(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return [
        AgentAnswer(
            f"We value every single patient of ours. {reply.text}", reply.ends_call, reply.delay_s
        )
        for reply in replies
    ]


def _refusing(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return (
        [AgentAnswer("I'm sorry, I cannot help you with that request.", delay_s=0.7)]
        if count <= 4
        else replies
    )


def _stalling(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return (
        [AgentAnswer("One moment, let me check that for you.", delay_s=0.7)]
        if 2 <= count <= 5
        else replies
    )


def _echo(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return [AgentAnswer(heard, delay_s=0.7)]


def _hanging_up(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return [AgentAnswer("Please hold.", ends_call=True, delay_s=0.7)]


def _breaking_off(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return (
        [AgentAnswer("Certainly. In order to do that I will first need to", delay_s=0.7)]
        if count == 2
        else replies
    )


def _monologue(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return (
        [AgentAnswer(" ".join([_STORY] * 6) + " " + replies[0].text, delay_s=0.7)]
        if count == 1
        else replies
    )


def _spanish(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return (
        [
            AgentAnswer(
                "Gracias por su llamada, en que le puedo ayudar con una cita para usted.",
                delay_s=0.7,
            )
        ]
        if count == 2
        else replies
    )


def _unspeakable(count: int, heard: str, replies: Sequence[AgentAnswer]) -> Sequence[AgentAnswer]:
    return [
        AgentAnswer(f"**Note** {reply.text}", reply.ends_call, reply.delay_s) for reply in replies
    ]


_STORY = (
    "Our clinic was founded many years ago by two doctors, who loved the sea and who wanted "
    "to help everybody "
    "along the whole harbor, and so"
)
_CHANGES: dict[str, Callable[[int, str, Sequence[AgentAnswer]], Sequence[AgentAnswer]]] = {
    "slow": _slow,
    "silent_turn": _silent,
    "mute": lambda count, heard, replies: (),
    "says_again": _again,
    "refusal_loop": _refusing,
    "stalls": _stalling,
    "echo": _echo,
    "hangs_up": _hanging_up,
    "breaks_off": _breaking_off,
    "monologue": _monologue,
    "other_language": _spanish,
    "unspeakable": _unspeakable,
}


class FaultyCaller:
    """A caller who does not keep to the script: the tester's own mistakes, for seeing that they
    are named as such.
    """

    def __init__(self, fault: str, scenario: Scenario, plan: PlannedCall, seed: int) -> None:
        self._fault = fault
        self._caller = ScriptedCaller(scenario, plan, seed)

    async def open(self) -> CallerMove:
        return await self._caller.open()

    async def nudge(self, times: int) -> CallerMove:
        return await self._caller.nudge(times)

    def undo_response(self) -> None:
        self._caller.undo_response()

    def interjection(self) -> ScriptedTurn | None:
        return self._caller.interjection()

    def pop_interjection(self) -> CallerMove:
        return self._caller.pop_interjection()

    async def respond(self, text: str) -> CallerMove:
        move = await self._caller.respond(text)
        if not move.why.startswith("answer:"):
            return move
        if self._fault == "caller_wrong_answer":
            return CallerMove("say", "Ernest Poole, December 24th, 1900", move.why)
        if self._fault == "caller_ignores":
            return CallerMove("say", "What lovely weather today.", "filler:okay")
        return CallerMove("hang_up", why="")
