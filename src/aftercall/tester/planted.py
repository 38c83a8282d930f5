"""Faults planted on purpose, and the finding each must lead to: by what the agent does, how it speaks, the line, or the tester."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aftercall.errors import LineFailed
from aftercall.tester.caller import Move, ScriptedCaller
from aftercall.tester.drivers.spoken import Interruption
from aftercall.tester.line import Dial, Reply, TextAgent
from aftercall.tester.practice import Clinic, PracticeAgent
from aftercall.tester.scenario import LineQuality, PlannedCall, Scenario, ScriptedTurn, Who


@dataclass(frozen=True)
class Planted:
    """One fault: which scenario shows it, which finding it is, and whose."""

    name: str
    finding: str
    who: Who = "agent"
    scenario: str = "appointment_scheduling"
    place: str = "deeds"
    line: LineQuality = field(default_factory=LineQuality)


_BURSTS = LineQuality(loss=0.8, burst=40)

FAULTS: tuple[Planted, ...] = (
    Planted("asks_again", "asks_again"),
    Planted("skips_verification", "verification_skipped", scenario="prescription_refill"),
    Planted("leaks", "leak", scenario="no_leak_across_callers"),
    Planted("forgets", "goal_missed", scenario="memory_across_calls"),
    Planted("slot_changed", "slot_changed", scenario="edge_topic_detour"),
    Planted("wrong_name", "wrong_name", scenario="edge_misheard_name"),
    Planted("obeys_orders", "forbidden_words", scenario="edge_prompt_injection"),
    Planted("ignores_keys", "expectation_missed", scenario="edge_dtmf_menu"),
    Planted("never_finishes", "goal_missed"),
    Planted("contradicts", "contradiction", scenario="prescription_refill"),
    Planted("wrong_weekday", "wrong_weekday"),
    Planted("does_not_yield", "does_not_yield", scenario="edge_barge_in"),
    Planted("slow", "slow_answer", place="manners"),
    Planted("silent_turn", "no_answer", place="manners"),
    Planted("mute", "never_spoke", place="manners"),
    Planted("talks_over", "talks_over_caller", place="manners"),
    Planted("says_again", "says_again", place="manners"),
    Planted("refusal_loop", "refusal_loop", place="manners"),
    Planted("stalls", "stalls", place="manners"),
    Planted("echo", "echoes", place="manners"),
    Planted("hangs_up", "hung_up_early", place="manners"),
    Planted("breaks_off", "broken_off", place="manners"),
    Planted("monologue", "monologue", place="manners"),
    Planted("other_language", "other_language", place="manners"),
    Planted("unspeakable", "unspeakable", place="manners"),
    Planted("late_greeting", "slow_greeting", place="manners"),
    Planted("deaf_line", "sound_lost", "line", place="line", line=_BURSTS),
    Planted("line_breaks", "line_broke", "line", place="line"),
    Planted("not_connected", "outcome_failed", "line", place="line"),
    Planted("caller_wrong_answer", "caller_off_script", "tester", place="tester"),
    Planted("caller_ignores", "caller_off_script", "tester", place="tester"),
    Planted("caller_leaves", "caller_left_early", "tester", place="tester"),
)
BY_NAME = {planted.name: planted for planted in FAULTS}


def make_agent(clinic: Clinic, *faults: str) -> TextAgent:
    deeds = [name for name in faults if BY_NAME[name].place == "deeds"]
    agent: TextAgent = PracticeAgent(clinic, *deeds)
    for name in faults:
        if BY_NAME[name].place in ("manners", "line"):
            agent = FaultyAgent(agent, name)
    return agent


def interruption_of(*faults: str) -> Interruption | None:
    return Interruption(0.7, "Right, let me tell you about our new opening hours first.") if "talks_over" in faults else None


class FaultyAgent:
    """A sound agent whose words come out wrong in one way."""

    def __init__(self, agent: TextAgent, fault: str) -> None:
        self._agent = agent
        self._fault = fault
        self._count = 0

    async def begin(self, dial: Dial) -> Sequence[Reply]:
        if self._fault == "not_connected":
            raise LineFailed("the practice line is down")
        replies = await self._agent.begin(dial)
        if self._fault == "mute":
            return ()
        if self._fault == "late_greeting":
            return [Reply(reply.text, delay_s=8.0) for reply in replies]
        return replies

    async def hear(self, text: str) -> Sequence[Reply]:
        self._count += 1
        if self._fault == "line_breaks" and self._count == 2:
            raise LineFailed("the practice line broke")
        replies = await self._agent.hear(text)
        change = _CHANGES.get(self._fault)
        return change(self._count, text, replies) if change else replies

    async def press(self, digits: str) -> Sequence[Reply]:
        return await self._agent.press(digits)

    async def idle(self, seconds: int) -> Sequence[Reply]:
        return () if self._fault in ("mute", "silent_turn", "slow", "late_greeting", "stalls") else await self._agent.idle(seconds)

    async def hang_up(self) -> None:
        await self._agent.hang_up()


def _slow(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply(reply.text, reply.ends_call, delay_s=6.0) for reply in replies]


def _silent(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return () if count == 2 else replies


def _again(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply(f"We value every single patient of ours. {reply.text}", reply.ends_call, reply.delay_s) for reply in replies]


def _refusing(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply("I'm sorry, I cannot help you with that request.", delay_s=0.7)] if count <= 4 else replies


def _stalling(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply("One moment, let me check that for you.", delay_s=0.7)] if 2 <= count <= 5 else replies


def _echo(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply(heard, delay_s=0.7)]


def _hanging_up(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply("Please hold.", ends_call=True, delay_s=0.7)]


def _breaking_off(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply("Certainly. In order to do that I will first need to", delay_s=0.7)] if count == 2 else replies


def _monologue(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply(" ".join([_STORY] * 6) + " " + replies[0].text, delay_s=0.7)] if count == 1 else replies


def _spanish(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply("Gracias por su llamada, en que le puedo ayudar con una cita para usted.", delay_s=0.7)] if count == 2 else replies


def _unspeakable(count: int, heard: str, replies: Sequence[Reply]) -> Sequence[Reply]:
    return [Reply(f"**Note** {reply.text}", reply.ends_call, reply.delay_s) for reply in replies]


_STORY = (
    "Our clinic was founded many years ago by two doctors, who loved the sea and who wanted to help everybody "
    "along the whole harbor, and so"
)
_CHANGES: dict[str, Callable[[int, str, Sequence[Reply]], Sequence[Reply]]] = {
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
    """A caller who does not keep to the script: the tester's own mistakes, for seeing that they are named as such."""

    def __init__(self, fault: str, scenario: Scenario, plan: PlannedCall, seed: int) -> None:
        self._fault = fault
        self._caller = ScriptedCaller(scenario, plan, seed)

    async def open(self) -> Move:
        return await self._caller.open()

    async def nudge(self, times: int) -> Move:
        return await self._caller.nudge(times)

    def unhear(self) -> None:
        self._caller.unhear()

    def interjection(self) -> ScriptedTurn | None:
        return self._caller.interjection()

    def take_interjection(self) -> Move:
        return self._caller.take_interjection()

    async def hear(self, text: str) -> Move:
        move = await self._caller.hear(text)
        if not move.why.startswith("answer:"):
            return move
        if self._fault == "caller_wrong_answer":
            return Move("say", "Ernest Poole, December 24th, 1900", move.why)
        if self._fault == "caller_ignores":
            return Move("say", "What lovely weather today.", "filler:okay")
        return Move("hang_up", why="")
