"""The caller: follows the script of a scenario, or a model plays the part.

Answers questions before anything else, repeats nothing unless asked, and ends the call when the
goal shows in the agent's words, when it gives up, or when the agent says goodbye.
"""

import random
import re
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal

from aftercall.errors import LineFailed
from aftercall.tester.openai_client import ChatMessage, Complete
from aftercall.tester.phrases import (
    asked_fields,
    find_any,
    likeness,
    questions_of,
    sentences_of,
)
from aftercall.tester.scenario import PlannedCall, Scenario, ScenarioStage, ScriptedTurn

_GOODBYE = (
    "goodbye|good bye|bye",
    r"/have a (?:good|nice|great|wonderful|lovely) (?:day|one|evening|weekend)/",
    "thank you for calling|thanks for calling",
)
_ANYTHING_ELSE = (
    "anything else|something else|what else|anything more|any other questions",
)
_HOLD = (
    "one moment|one second|just a moment|just a second|hold on|please hold|bear with me",
    "let me check|let me look|let me see|give me a moment|checking",
)
_CONFIRM = (
    r"/\b(?:is that (?:correct|right|ok|okay)|does that (?:work|sound)|right\?|correct\?)/",
    r"/\b(?:shall i|should i|would you like|do you want|can i go ahead|okay\?)/",
)
_STILL_THERE = ("still there|are you there|can you hear me|still on the line",)
_GIVING_UP = "I have told you that several times now. I will try again later. Goodbye."
_FILLERS = {
    "here": ("Yes, I'm here.", "Yes, still here."),
    "yes": ("Yes, please.", "Yes, that's right.", "Yes."),
    "unknown": ("I'm not sure, sorry.", "I don't know that.", "I can't say."),
    "okay": ("Okay.", "All right.", "I see."),
}
MAX_REPEATS = 4
MAX_IDLE_TURNS = 4

END = "[END]"
MAX_WORDS = 60
MAX_ANSWER_TOKENS = 100  # people on the phone say a sentence or two
MAX_SENTENCES = 3
_MAX_ECHO = 0.8
_LABEL = re.compile(
    r"^(?:(?:you|caller|me|patient|customer|user)(?: says?)?\s*:\s*)+", re.IGNORECASE
)
_AGENT_WORDS = (
    "how can i help you|how may i help you|how can i assist you|how may i assist you",
    "thank you for calling|thanks for calling",
    "the agent says|as an ai|as a language model",
)
_FROM_SCRIPT = ("answer:", "turn:", "hold", "goodbye", "gave_up")
_CUT = (
    "i need",
    "i would like",
    "i want",
    "can you",
    "could you",
    "my name is",
    "i am",
    "i'm",
)


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
    has_seen_goal: bool = False
    has_opened: bool = False
    is_closing: bool = False


class Caller:
    def __init__(self, scenario: Scenario, plan: PlannedCall, seed: int) -> None:
        self._scenario = scenario
        self._plan = plan
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
        goals = [criterion.said for criterion in self._scenario.success]
        state.has_seen_goal = state.has_seen_goal or any(
            find_any(said, text) for said in goals
        )
        if self._is_farewell(text):
            return self._leave()
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
        self._state.is_closing = True
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
        parts = [self._phrase(known[name].answer, answered[name]) for name in asked]
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
            if fitting and words == asked and not find_any(_ANYTHING_ELSE, asked):
                return fitting[0]
        return None

    def _name(self, stage: ScenarioStage) -> str:
        return stage.name or str(self._context.response_stages.index(stage) + 1)

    def _carry_on(self, text: str) -> CallerMove:
        """Nothing in the script answers this."""
        state = self._state
        is_question = bool(questions_of(text))
        if find_any(_HOLD, text) and not is_question:
            return CallerMove("wait", why="hold")
        if state.is_closing:
            return self._leave()
        pending = self._pending_stage()
        is_open = not is_question or find_any(_ANYTHING_ELSE, text)
        if pending is not None and (is_open or not pending.when):
            name = self._name(pending)
            state.stages[name] += 1
            state.idle_turns = 0
            return self._say(pending.say[0], f"stage:{name}")
        state.idle_turns += 1
        is_done = state.turn >= len(self._plan.turns) and pending is None
        if is_done or state.idle_turns > MAX_IDLE_TURNS:
            return self._close(text)
        return self._fill(text)

    def _pending_stage(self) -> ScenarioStage | None:
        left = [
            stage
            for stage in self._context.response_stages
            if stage.needed and not self._state.stages[self._name(stage)]
        ]
        return next(
            (stage for stage in left if not stage.when), left[0] if left else None
        )

    def _close(self, text: str) -> CallerMove:
        state = self._state
        may_fill = questions_of(text) and not find_any(_ANYTHING_ELSE, text)
        if may_fill and state.idle_turns <= MAX_IDLE_TURNS:
            return self._fill(text)
        wants_proof = any(criterion.said for criterion in self._scenario.success)
        has_asked = bool(state.fillers["confirm"]) or bool(self._plan.turns)
        if wants_proof and not state.has_seen_goal and not has_asked:
            state.fillers["confirm"] += 1
            return self._say("Could you confirm that this is done?", "filler:confirm")
        state.is_closing = True
        return self._say(state.random.choice(self._context.closing), "closing")

    def _fill(self, text: str) -> CallerMove:
        if find_any(_STILL_THERE, text):
            kind = "here"
        elif find_any(_CONFIRM, text):
            kind = "yes"
        else:
            kind = "unknown" if questions_of(text) else "okay"
        used = self._state.fillers[kind]
        self._state.fillers[kind] += 1
        return self._say(_FILLERS[kind][used % len(_FILLERS[kind])], f"filler:{kind}")

    def _say(self, text: str, why: str) -> CallerMove:
        self._state.own_turns += 1
        return CallerMove("say", text, why)


class ModelCaller(Caller):
    """Answers about identity come word for word from the script; the rest in the model's words.

    When the model fails, the script goes on alone.
    """

    def __init__(
        self, scenario: Scenario, plan: PlannedCall, seed: int, model: Complete
    ) -> None:
        super().__init__(scenario, plan, seed)
        self._complete = model
        self._history = [ChatMessage("system", write_prompt(scenario, plan))]
        self._said: list[str] = []

    def undo_response(self) -> None:
        super().undo_response()
        del self._history[-2:]

    async def respond(self, text: str) -> CallerMove:
        move = await super().respond(text)
        self._history.append(ChatMessage("user", f"The agent says: {text}"))
        if not move.why.startswith(_FROM_SCRIPT):
            move = await self._play(move, text)
        self._history.append(ChatMessage("assistant", move.text or END))
        return move

    async def _play(self, scripted: CallerMove, heard: str) -> CallerMove:
        try:
            words = await self._complete(self._history, MAX_ANSWER_TOKENS)
        except LineFailed:
            return scripted
        is_over = END in words
        words = _first_words(words.replace(END, ""))
        is_repeated = words in self._said or likeness(words, heard) > _MAX_ECHO
        if is_repeated or _is_unusable(words):
            return (
                CallerMove("hang_up", scripted.text, "closing") if is_over else scripted
            )
        self._said.append(words)
        return CallerMove("hang_up" if is_over else "say", words, "model")


def _first_words(words: str) -> str:
    """A few sentences of the first paragraph: small models go on with both sides of the call."""
    paragraph = words.strip().partition("\n")[0]
    return " ".join(
        sentences_of(_LABEL.sub("", paragraph).strip().strip('"'))[:MAX_SENTENCES]
    )


def _is_unusable(words: str) -> bool:
    """Empty, cut off, too long, or the agent's part: small models change sides."""
    is_cut = not words or words.lower().rstrip(".… ") in _CUT
    return (
        is_cut
        or len(words.split()) > MAX_WORDS
        or find_any(_AGENT_WORDS, words) is not None
    )


def write_prompt(scenario: Scenario, plan: PlannedCall) -> str:
    context = plan.caller_context
    lines = [
        "You play a person who calls a business on the phone. You are the caller, never the agent.",
        f"You want: {scenario.goal}" if scenario.goal else "",
        f"About you: {context.background}" if context.background else "",
        f"Your manner: {context.tone}" if context.tone else "",
    ]
    for name, item in context.verification.answers.items():
        lines.append(f"If asked for your {name}: {item.answer}")
    for stage in context.response_stages:
        cue = " or ".join(stage.when) or "nothing in particular"
        lines.append(f"When the agent says something like {cue}: {stage.say[0]}")
    lines += [
        f"Rule: {rule}" for rule in (*context.anti_repetition.rules, *scenario.notes)
    ]
    lines.append(
        "Answer the agent's question first, before anything else. Never say the same thing "
        "twice unless asked to repeat it."
    )
    lines.append(
        "Invent no names, numbers or dates. One or two short sentences, as people speak on "
        "the phone."
    )
    lines.append(
        f"When your goal is reached, or cannot be, say goodbye and write {END} after it."
    )
    return "\n".join(line for line in lines if line)
