"""The scripted caller: stages and verification pick the reply, no model needed.

Answers questions before it pushes its own matter, says nothing twice unless asked twice, and
ends the call when its goal is seen in the agent's words, when it was given up, or when the
agent says goodbye.
"""

import random
from collections import Counter
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from aftercall.tester.phrases import asked_fields, find_any, questions_of
from aftercall.tester.scenario import PlannedCall, Scenario, ScenarioStage, ScriptedTurn

_GOODBYE = (
    "goodbye|good bye|bye",
    r"/have a (?:good|nice|great|wonderful|lovely) (?:day|one|evening|weekend)/",
    "thank you for calling|thanks for calling",
)
_ANYTHING_ELSE = ("anything else|something else|what else|anything more|any other questions",)
_HOLD = (
    "one moment|one second|just a moment|just a second|hold on|please hold|bear with me",
    "let me check|let me look|let me see|give me a moment|checking",
)
_CONFIRM = (
    (
        r"/\b(?:is that (?:correct|right|ok|okay)|does that (?:work|sound)|right\?|correct\?"
        "|shall i|should i)/"
    ),
    r"/\b(?:would you like|do you want|can i go ahead|okay\?)/",
)
_STILL_THERE = ("still there|are you there|can you hear me|still on the line",)
_MAX_REPEATS = 4
_IDLE_TURNS = 4


@dataclass(frozen=True)
class CallerMove:
    """What the caller does next, and the line of the script it comes from."""

    kind: Literal["say", "press", "wait", "hang_up"]
    text: str = ""
    why: str = ""
    seconds: float = 0.0
    clip: str | None = None


class Caller(Protocol):
    """Who is on the phone for the tester."""

    async def open(self) -> CallerMove:
        """The agent did not speak first."""
        ...

    async def respond(self, text: str) -> CallerMove: ...

    def undo_response(self) -> None:
        """The agent went on before an answer was given: what was heard last counts as not heard
        yet.
        """
        ...

    async def nudge(self, times: int) -> CallerMove:
        """The agent owes an answer and is silent."""
        ...

    def interjection(self) -> ScriptedTurn | None:
        """The next turn, if it begins at an event rather than after the agent's words."""
        ...

    def pop_interjection(self) -> CallerMove: ...


class ScriptedCaller:
    def __init__(self, scenario: Scenario, plan: PlannedCall, seed: int) -> None:
        self._scenario = scenario
        self._plan = plan
        self._context = plan.caller_context
        self._random = random.Random(seed)
        self._turn = 0
        self._stages: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._fillers: Counter[str] = Counter()
        self._agent_turns = 0
        self._own_turns = 0
        self._goal_seen = False
        self._closing = False
        self._opened = False
        self._idle = 0
        self._before: dict[str, Any] = {}

    async def open(self) -> CallerMove:
        if self._plan.turns and self._turn == 0 and self._plan.turns[0].after is None:
            return self._take_turn()
        return self._say("Hello?", "nudge")

    async def nudge(self, times: int) -> CallerMove:
        if times > 2 or self._closing:
            return CallerMove("hang_up", why="nobody answers")
        return self._say(("Hello?", "Are you still there?")[min(times, 2) - 1], "nudge")

    def interjection(self) -> ScriptedTurn | None:
        turn = self._plan.turns[self._turn] if self._turn < len(self._plan.turns) else None
        return turn if turn is not None and turn.after is not None else None

    def pop_interjection(self) -> CallerMove:
        return self._take_turn()

    async def respond(self, text: str) -> CallerMove:
        self._before = {key: copy(value) for key, value in vars(self).items() if key != "_before"}
        self._agent_turns += 1
        self._goal_seen = self._goal_seen or self._sees_goal(text)
        if self._is_farewell(text):
            return self._leave()
        return (
            self._answer(text)
            or self._follow_list(text)
            or self._follow_stage(text)
            or self._carry_on(text)
        )

    def undo_response(self) -> None:
        vars(self).update(self._before)

    def _is_farewell(self, text: str) -> bool:
        """Never before both have spoken twice: agents thank for calling in their first sentence."""
        return (
            self._agent_turns >= 2
            and self._own_turns >= 2
            and not questions_of(text)
            and find_any(_GOODBYE, text) is not None
        )

    def _leave(self) -> CallerMove:
        self._closing = True
        return CallerMove("hang_up", "Goodbye.", "goodbye")

    def _answer(self, text: str) -> CallerMove | None:
        """Questions of identity, the important ones first."""
        known = self._context.verification.answers
        asked = [
            name
            for name in asked_fields(text, {name: item.asked_as for name, item in known.items()})
            if name in known
        ]
        if not asked:
            return None
        priority = {name: place for place, name in enumerate(self._context.question_priority)}
        asked.sort(key=lambda name: priority.get(name, len(priority)))
        parts = [self._phrase(known[name].answer, self._answered[name]) for name in asked]
        for name in asked:
            self._answered[name] += 1
        if max(self._answered[name] for name in asked) > _MAX_REPEATS:
            return self._give_up(asked[0])
        return self._say(" ".join(parts), "answer:" + ",".join(asked))

    def _give_up(self, matter: str) -> CallerMove:
        self._closing = True
        return CallerMove(
            "hang_up",
            "I have told you that several times now. I will try again later. Goodbye.",
            f"gave_up:{matter}",
        )

    def _phrase(self, answer: str, times: int) -> str:
        again = self._context.anti_repetition
        if times == 0 or not again.enabled or not again.again:
            return answer
        return again.again[(times - 1) % len(again.again)].replace("{answer}", answer)

    def _follow_list(self, text: str) -> CallerMove | None:
        if self._turn >= len(self._plan.turns) or self.interjection() is not None:
            return None
        if find_any(_HOLD, text) and not questions_of(text):
            return CallerMove("wait", why="hold")
        return self._take_turn()

    def _take_turn(self) -> CallerMove:
        turn = self._plan.turns[self._turn]
        self._turn += 1
        why = f"turn:{self._turn}"
        if turn.say is not None:
            self._own_turns += 1
            return CallerMove("say", turn.say, why, clip=turn.clip)
        if turn.dtmf is not None:
            self._own_turns += 1
            return CallerMove("press", turn.dtmf, why)
        if turn.hang_up:
            self._closing = True
            return CallerMove("hang_up", why=why)
        return CallerMove("wait", why=why, seconds=turn.silence_s or 0.0)

    def _follow_stage(self, text: str) -> CallerMove | None:
        if not self._opened and self._context.opening:
            return self._say_opening()
        stage = self._match_stage(text)
        if stage is None:
            return None
        name = self._name(stage)
        times = self._stages[name]
        self._stages[name] += 1
        if times >= _MAX_REPEATS:
            return self._give_up(name)
        said = stage.say[times] if times < len(stage.say) else self._phrase(stage.say[-1], times)
        return self._say(said, f"stage:{name}")

    def _say_opening(self) -> CallerMove:
        self._opened = True
        return self._say(self._random.choice(self._context.opening), "opening")

    def _match_stage(self, text: str) -> ScenarioStage | None:
        """A stage for a question goes before one for a statement, and one that was not said yet
        before one that was.
        """
        stages = self._context.response_stages
        asked = " ".join(questions_of(text))
        for words in (asked, text):
            fitting = [
                stage for stage in stages if words and stage.when and find_any(stage.when, words)
            ]
            fresh = [stage for stage in fitting if not self._stages[self._name(stage)]]
            if fresh:
                return fresh[0]
            if fitting and words == asked and not find_any(_ANYTHING_ELSE, asked):
                return fitting[0]
        return None

    def _name(self, stage: ScenarioStage) -> str:
        return stage.name or str(self._context.response_stages.index(stage) + 1)

    def _carry_on(self, text: str) -> CallerMove:
        """Nothing in the script answers this."""
        if find_any(_HOLD, text) and not questions_of(text):
            return CallerMove("wait", why="hold")
        if self._closing:
            return self._leave()
        pending = self._pending()
        if pending is not None and (
            not pending.when or find_any(_ANYTHING_ELSE, text) or not questions_of(text)
        ):
            self._stages[self._name(pending)] += 1
            self._idle = 0
            return self._say(pending.say[0], f"stage:{self._name(pending)}")
        self._idle += 1
        if self._is_done() or self._idle > _IDLE_TURNS:
            return self._close(text)
        return self._fill(text)

    def _pending(self) -> ScenarioStage | None:
        left = [
            stage
            for stage in self._context.response_stages
            if stage.needed and not self._stages[self._name(stage)]
        ]
        return next((stage for stage in left if not stage.when), left[0] if left else None)

    def _is_done(self) -> bool:
        return self._turn >= len(self._plan.turns) and self._pending() is None

    def _close(self, text: str) -> CallerMove:
        wants_proof = any(criterion.said for criterion in self._scenario.success)
        if questions_of(text) and not find_any(_ANYTHING_ELSE, text) and self._idle <= _IDLE_TURNS:
            return self._fill(text)
        if (
            wants_proof
            and not self._goal_seen
            and not self._fillers["confirm"]
            and not self._plan.turns
        ):
            self._fillers["confirm"] += 1
            return self._say("Could you confirm that this is done?", "filler:confirm")
        self._closing = True
        return self._say(self._random.choice(self._context.closing), "closing")

    def _fill(self, text: str) -> CallerMove:
        if find_any(_STILL_THERE, text):
            return self._say(
                self._vary("here", ("Yes, I'm here.", "Yes, still here.")), "filler:here"
            )
        if find_any(_CONFIRM, text):
            return self._say(
                self._vary("yes", ("Yes, please.", "Yes, that's right.", "Yes.")), "filler:yes"
            )
        if questions_of(text):
            return self._say(
                self._vary(
                    "unknown", ("I'm not sure, sorry.", "I don't know that.", "I can't say.")
                ),
                "filler:unknown",
            )
        return self._say(self._vary("okay", ("Okay.", "All right.", "I see.")), "filler:okay")

    def _vary(self, kind: str, variants: tuple[str, ...]) -> str:
        self._fillers[kind] += 1
        return variants[(self._fillers[kind] - 1) % len(variants)]

    def _say(self, text: str, why: str) -> CallerMove:
        self._own_turns += 1
        return CallerMove("say", text, why)

    def _sees_goal(self, text: str) -> bool:
        return any(
            find_any(criterion.said, text) for criterion in self._scenario.success if criterion.said
        )
