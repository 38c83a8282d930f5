"""The caller: follows the script of a scenario.

Answers questions before anything else, repeats nothing unless asked, and ends the call when the
goal shows in the agent's words, when it gives up, or when the agent says goodbye.
"""

import random
import re
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from aftercall.tester.claims import (
    guess_deed,
    is_said_done,
    is_settled,
    promises_answer,
)
from aftercall.tester.criterion import Criterion
from aftercall.tester.phrases import (
    ANYTHING_ELSE,
    MAILBOX,
    asked_fields,
    find_any,
    likeness,
    questions_of,
)
from aftercall.tester.scenario import PlannedCall, Scenario, ScenarioStage, ScriptedTurn
from aftercall.tester.slots import WantedSlot, answer_usual, find_slots

_GOODBYE = (
    "goodbye|good bye|bye|take care",
    r"/have a (?:good|nice|great|wonderful|lovely|pleasant) (?:day|one|evening|weekend|rest)/",
    "thank you for calling|thanks for calling",
)
_HOLD = (
    "one moment|one second|just a moment|just a second|hold on|please hold|bear with me",
    "let me check|let me look|let me see|give me a moment|checking|a moment please",
)
_GIVING_UP = "I have told you that several times now. I will try again later. Goodbye."
_OKAY = ("Okay.", "All right.", "I see.")
_NOT_UNDERSTOOD = (
    "I'm sorry, I don't know what to answer to that.",
    "I'm sorry, I can't answer that.",
)
_ASK_NOTED = "Could you tell me what you have noted down for me?"
_SPELL = re.compile(r"\bspell|\bletter by letter|how is that written", re.IGNORECASE)
_SLOT = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|today)"
    r"(?: (?:at|around) \w+(?: thirty)?)?",
    re.IGNORECASE,
)
# facts about the caller that nobody can guess
_OWN_FIELDS = ("email", "address", "zip", "account", "passcode")
MAX_REPEATS = 4
MAX_IDLE_TURNS = 4
MAX_CHECKS = 2
HANG_UP_WAIT_S = 8.0


@dataclass(frozen=True)
class CallerMove:
    """What the caller does next; `why` is the line of the script."""

    kind: Literal["say", "press", "wait", "hang_up"]
    text: str = ""
    why: str = ""
    seconds: float = 0.0
    clip: str | None = None


@dataclass
class _CallerState:
    """How far the caller has come in the script."""

    random: random.Random
    turn: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    fillers: Counter[str] = field(default_factory=Counter)
    agent_turns: int = 0
    own_turns: int = 0
    idle_turns: int = 0
    heard: list[str] = field(default_factory=list)
    slot: str = ""
    last_words: str = ""
    has_waited: bool = False
    has_opened: bool = False
    is_closing: bool = False

    def remember(self, text: str) -> None:
        """What the caller said last, and the day it named last."""
        self.last_words = text
        if slots := list(_SLOT.finditer(text)):
            self.slot = slots[-1].group(0)


@dataclass(frozen=True)
class CallGoals:
    """What a call should achieve, as far as the agent's words can show it."""

    criteria: tuple[Criterion, ...]
    today: date

    @classmethod
    def of_call(cls, scenario: Scenario, plan: PlannedCall, today: date) -> "CallGoals":
        number = scenario.calls.index(plan) + 1
        found = (
            item
            for item in scenario.success
            if item.call in (None, number) and (item.deed or item.said)
        )
        return cls(tuple(found), today)

    def find_open_question(self, heard: list[str], asked: Counter[str]) -> str | None:
        """The question about the first criterion that the agent's words leave open."""
        for criterion in self.criteria:
            question = criterion.ask or _usual_check(criterion)
            is_left = question and asked[f"check {question}"] < MAX_CHECKS
            if is_left and not self._is_settled(criterion, heard):
                return question
        return None

    def _is_settled(self, criterion: Criterion, heard: list[str]) -> bool:
        return any(
            is_settled(criterion, text, self.today)
            or (criterion.deed == "answer" and promises_answer(text))
            for text in heard
        )

    def are_said_done(self, heard: list[str]) -> bool:
        return bool(self.criteria) and all(
            any(is_said_done(item, text, self.today) for text in heard)
            for item in self.criteria
        )


class Caller:
    """The scripted caller: what to say next, and whether the agent's words were understood."""

    def __init__(
        self,
        scenario: Scenario,
        plan: PlannedCall,
        seed: int,
        today: date = date(2000, 1, 1),
    ) -> None:
        """`today` is needed where an agent names a day by its date."""
        self._scenario = scenario
        self._plan = plan
        self._today = today
        self._goals = CallGoals.of_call(scenario, plan, today)
        self._context = plan.caller_context
        self._state = _CallerState(random.Random(seed))
        self._before = self._state

    async def open(self) -> CallerMove:
        """The agent did not speak first."""
        if (
            self._plan.turns
            and self._state.turn == 0
            and self._plan.turns[0].after is None
        ):
            return self.pop_interjection()
        return self._say("Hello?", "nudge")

    async def nudge(self, times: int) -> CallerMove:
        """The agent owes an answer and is silent."""
        if times > 2 or self._state.is_closing:
            return CallerMove("hang_up", why="nobody answers")
        return self._say("Hello?" if times < 2 else "Are you still there?", "nudge")

    def interjection(self) -> ScriptedTurn | None:
        """The next turn, if it starts at an event rather than after the agent's words."""
        left = self._plan.turns[self._state.turn :]
        return left[0] if left and left[0].after is not None else None

    def pop_interjection(self) -> CallerMove:
        """Follows the next turn of the list."""
        state = self._state
        turn = self._plan.turns[state.turn]
        state.turn += 1
        why = f"turn:{state.turn}"
        if turn.say is not None:
            state.own_turns += 1
            state.remember(turn.say)
            return CallerMove("say", turn.say, why, clip=turn.clip)
        if turn.dtmf is not None:
            state.own_turns += 1
            return CallerMove("press", turn.dtmf, why)
        if turn.hang_up:
            state.is_closing = True
            return CallerMove("hang_up", why=why)
        return CallerMove("wait", why=why, seconds=turn.silence_s or 0.0)

    async def respond(self, text: str) -> CallerMove:
        self._before = deepcopy(self._state)
        state = self._state
        state.agent_turns += 1
        if likeness(text, state.last_words) < 0.8:  # an echo is no answer
            state.heard.append(text)
        wants_person = self._scenario.outcome == "answered"
        if wants_person and state.agent_turns <= 2 and find_any(MAILBOX, text):
            return CallerMove("hang_up", why="a mailbox answered")
        if self._is_farewell(text):
            return self._check_details() or self._leave()
        return (
            self._answer(text)
            or self._follow_list(text)
            or self._follow_stage(text)
            or self._carry_on(text)
        )

    def undo_response(self) -> None:
        """The agent went on before the caller answered: forgets the last `respond`."""
        self._state = self._before

    def _is_farewell(self, text: str) -> bool:
        """Never before both have spoken twice: agents thank for calling in the first sentence."""
        if (
            self._state.agent_turns < 2
            or self._state.own_turns < 2
            or questions_of(text)
        ):
            return False
        return find_any(_GOODBYE, text) is not None

    def _leave(self) -> CallerMove:
        state = self._state
        state.is_closing = True
        last = self._plan.turns[-1].expect if self._plan.turns else None
        if last is not None and last.hangs_up and not state.has_waited:
            state.has_waited = True
            return CallerMove("wait", why="hold", seconds=HANG_UP_WAIT_S)
        return CallerMove("hang_up", "Goodbye.", "goodbye")

    def _answer(self, text: str) -> CallerMove | None:
        """Answers questions about the caller's identity, in the order of their priority."""
        known = self._context.verification.answers
        ways = {name: item.asked_as for name, item in known.items()}
        asked = [name for name in asked_fields(text, ways) if name in known]
        if not asked:
            return None
        priority = {
            name: place for place, name in enumerate(self._context.question_priority)
        }
        asked.sort(key=lambda name: priority.get(name, len(priority)))
        answered = self._state.answered
        parts = [
            _spell(known[name].answer)
            if name == "name" and answered[name] and _SPELL.search(text)
            else self._phrase(known[name].answer, answered[name])
            for name in asked
        ]
        answered.update(asked)
        if max(answered[name] for name in asked) > MAX_REPEATS:
            return self._give_up(asked[0])
        return self._say(" ".join(parts), "answer:" + ",".join(asked))

    def _give_up(self, matter: str) -> CallerMove:
        self._state.is_closing = True
        return CallerMove("hang_up", _GIVING_UP, f"gave_up:{matter}")

    def _phrase(self, answer: str, times: int) -> str:
        rules = self._context.anti_repetition
        if times == 0 or not rules.enabled or not rules.again:
            return answer
        return rules.again[(times - 1) % len(rules.again)].replace("{answer}", answer)

    def _follow_list(self, text: str) -> CallerMove | None:
        if self._state.turn >= len(self._plan.turns) or self.interjection() is not None:
            return None
        if find_any(_HOLD, text) and not questions_of(text):
            return CallerMove("wait", why="hold")
        return self.pop_interjection()

    def _follow_stage(self, text: str) -> CallerMove | None:
        state = self._state
        if not state.has_opened and self._context.opening:
            state.has_opened = True
            return self._say(state.random.choice(self._context.opening), "opening")
        stage = self._match_stage(text)
        if stage is None:
            return None
        name = self._name(stage)
        times = state.stages[name]
        state.stages[name] += 1
        if times >= MAX_REPEATS:
            return self._give_up(name)
        said = (
            stage.say[times]
            if times < len(stage.say)
            else self._phrase(stage.say[-1], times)
        )
        return self._say(said, f"stage:{name}")

    def _match_stage(self, text: str) -> ScenarioStage | None:
        """Stages for a question come before those for a statement, unsaid ones before said ones."""
        asked = " ".join(questions_of(text))
        for words in (asked, text):
            fitting = [
                stage
                for stage in self._context.response_stages
                if words and stage.when and find_any(stage.when, words)
            ]
            fresh = [
                stage for stage in fitting if not self._state.stages[self._name(stage)]
            ]
            if fresh:
                return fresh[0]
            if fitting and words == asked and not _offers_more(asked):
                return fitting[0]
        return None

    def _name(self, stage: ScenarioStage) -> str:
        return stage.name or str(self._context.response_stages.index(stage) + 1)

    def _carry_on(self, text: str) -> CallerMove:
        """Nothing in the script answers this."""
        state = self._state
        asks = bool(questions_of(text))
        if find_any(_HOLD, text) and not asks:
            return CallerMove("wait", why="hold")
        if state.is_closing:
            return self._leave()
        pending = self._pending_stage()
        is_open = not asks or _offers_more(text) or state.idle_turns >= MAX_IDLE_TURNS
        if pending is not None and (is_open or not pending.when):
            name = self._name(pending)
            state.stages[name] += 1
            state.idle_turns = 0
            return self._say(pending.say[0], f"stage:{name}")
        state.idle_turns += 1
        if state.idle_turns > MAX_IDLE_TURNS:
            return self._close()
        is_done = state.turn >= len(self._plan.turns) and pending is None
        if asks and not _offers_more(text):
            return self._answer_question(text, is_done=is_done)
        return self._close() if is_done else self._say_in_turn(_OKAY, "filler:okay")

    def _say_in_turn(self, lines: tuple[str, ...], why: str) -> CallerMove:
        used = self._state.fillers[why]
        self._state.fillers[why] += 1
        return self._say(lines[used % len(lines)], why)

    def _answer_question(self, text: str, *, is_done: bool) -> CallerMove:
        """What anybody would say, where the script has no answer; never an invented fact."""
        state = self._state
        if any(name in _OWN_FIELDS for name in asked_fields(text)):
            return self._say_in_turn(_NOT_UNDERSTOOD, "gap")
        wanted = None
        if slot := state.slot or self._script_slot():
            wanted = WantedSlot(slot, find_slots(slot, self._today))
        reasons = self._context.opening or [
            turn.say for turn in self._plan.turns[:1] if turn.say
        ]
        asked = find_slots(" ".join(questions_of(text)), self._today)
        found = answer_usual(text, asked, wanted, list(reasons))
        if found is not None:
            return self._say(found[1], f"filler:{found[0]}")
        if is_done and self._goals.are_said_done(state.heard):
            return self._close()  # whatever it asks: the caller has what it rang up for
        return self._say_in_turn(_NOT_UNDERSTOOD, "gap")

    def _pending_stage(self) -> ScenarioStage | None:
        left = [
            stage
            for stage in self._context.response_stages
            if stage.needed and not self._state.stages[self._name(stage)]
        ]
        return next(
            (stage for stage in left if not stage.when), left[0] if left else None
        )

    def _script_slot(self) -> str:
        """The first day that the script names."""
        stages = [text for stage in self._context.response_stages for text in stage.say]
        turns = [turn.say or "" for turn in self._plan.turns]
        found = _SLOT.search(" ".join([*self._context.opening, *turns, *stages]))
        return found.group(0) if found else ""

    def _close(self) -> CallerMove:
        if check := self._check_details():
            return check
        self._state.is_closing = True
        return self._say(self._state.random.choice(self._context.closing), "closing")

    def _check_details(self) -> CallerMove | None:
        """Asks an open question about what the agent should have named and has not."""
        asked = self._state.fillers
        question = self._goals.find_open_question(self._state.heard, asked)
        if question is None or self._state.is_closing or self._state.own_turns == 0:
            return None
        prefix = "I didn't get that. " if asked[f"check {question}"] else ""
        asked[f"check {question}"] += 1
        return self._say(prefix + question, "check")

    def _say(self, text: str, why: str) -> CallerMove:
        self._state.own_turns += 1
        self._state.remember(text)
        return CallerMove("say", text, why)


def _offers_more(text: str) -> bool:
    """The agent's last question leaves it to the caller to go on."""
    asked = questions_of(text)
    return bool(asked) and find_any(ANYTHING_ELSE, asked[-1]) is not None


def _usual_check(criterion: Criterion) -> str:
    return _ASK_NOTED if criterion.said and guess_deed(criterion.said) else ""


def _spell(name: str) -> str:
    return f"{name}. That's " + ", ".join(
        " ".join(part.upper()) for part in name.split()
    )
