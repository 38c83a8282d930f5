"""A caller played by a model, with the scenario as its script.

What it says is checked against the script afterwards.
"""

import re

from aftercall.errors import LineFailed
from aftercall.tester.caller import CallerMove, ScriptedCaller
from aftercall.tester.phrases import find_any, likeness, sentences_of
from aftercall.tester.scenario import PlannedCall, Scenario, ScriptedTurn
from aftercall.tester.speaker import ChatMessage, Speaker

END = "[END]"
MAX_WORDS = 60
MAX_ANSWER_TOKENS = 100  # people on the phone say a sentence or two
MAX_SENTENCES = 3
_ECHO = 0.8
_LABEL = re.compile(
    r"^(?:(?:you|caller|me|patient|customer|user)(?: says?)?\s*:\s*)+", re.IGNORECASE
)
_OTHER_SIDE = (
    (
        "how can i help you|how may i help you|how can i assist you|how may i assist you|thank "
        "you for calling|thanks for calling"
    ),
    "the agent says|as an ai|as a language model",
)
_CUT = ("i need", "i would like", "i want", "can you", "could you", "my name is", "i am", "i'm")


class ModelCaller:
    """Identity is answered from the script, word for word; the rest in the model's words.

    Without the model, the script alone goes on.
    """

    def __init__(self, scenario: Scenario, plan: PlannedCall, seed: int, speaker: Speaker) -> None:
        self._script = ScriptedCaller(scenario, plan, seed)
        self._speaker = speaker
        self._history = [ChatMessage("system", write_prompt(scenario, plan))]
        self._said: list[str] = []

    async def open(self) -> CallerMove:
        return await self._script.open()

    async def nudge(self, times: int) -> CallerMove:
        return await self._script.nudge(times)

    def interjection(self) -> ScriptedTurn | None:
        return self._script.interjection()

    def pop_interjection(self) -> CallerMove:
        return self._script.pop_interjection()

    def undo_response(self) -> None:
        self._script.undo_response()
        while len(self._history) > 1 and self._history[-1].role == "assistant":
            self._history.pop()
        if len(self._history) > 1:
            self._history.pop()

    async def respond(self, text: str) -> CallerMove:
        scripted = await self._script.respond(text)
        self._history.append(ChatMessage("user", f"The agent says: {text}"))
        move = (
            scripted
            if scripted.why.startswith(("answer:", "turn:", "hold", "goodbye", "gave_up"))
            else await self._play(scripted, text)
        )
        self._history.append(ChatMessage("assistant", move.text or END))
        return move

    async def _play(self, scripted: CallerMove, heard: str) -> CallerMove:
        try:
            words = await self._speaker.complete(self._history, MAX_ANSWER_TOKENS)
        except LineFailed:
            return scripted
        is_over = END in words
        words = _first_words(words.replace(END, ""))
        if (
            _is_unusable(words) or words in self._said or likeness(words, heard) > _ECHO
        ):  # the script's words are better
            return CallerMove("hang_up", scripted.text, "closing") if is_over else scripted
        self._said.append(words)
        return CallerMove("hang_up" if is_over else "say", words, "model")


def _first_words(words: str) -> str:
    """The first paragraph, and of it a few sentences: models that do not know when to stop go
    on with both sides of the talk.
    """
    paragraph = words.strip().partition("\n")[0]
    return " ".join(sentences_of(_LABEL.sub("", paragraph).strip().strip('"'))[:MAX_SENTENCES])


def _is_unusable(words: str) -> bool:
    """Nothing, a sentence without an end, a speech, or the agent's part: small models take the
    wrong side of the line.
    """
    is_cut = not words or words.lower().rstrip(".… ") in _CUT
    return is_cut or len(words.split()) > MAX_WORDS or find_any(_OTHER_SIDE, words) is not None


def write_prompt(scenario: Scenario, plan: PlannedCall) -> str:
    context = plan.caller_context
    lines = [
        "You play a person who calls a business on the phone. You are the caller, never the agent.",
        f"You want: {scenario.goal}" if scenario.goal else "",
        f"About you: {context.background}" if context.background else "",
        f"Your manner: {context.tone}" if context.tone else "",
        *(
            f"If asked for your {name}: {item.answer}"
            for name, item in context.verification.answers.items()
        ),
        *(
            (
                "When the agent says something like "
                f"{' or '.join(stage.when) or 'nothing in particular'}: {stage.say[0]}"
            )
            for stage in context.response_stages
        ),
        *(f"Rule: {rule}" for rule in (*context.anti_repetition.rules, *scenario.notes)),
        (
            "Answer the agent's question first, before anything else. Never say the same thing "
            "twice unless asked to repeat it."
        ),
        (
            "Invent no names, numbers or dates. One or two short sentences, as people speak on "
            "the phone."
        ),
        f"When your goal is reached, or cannot be, say goodbye and write {END} after it.",
    ]
    return "\n".join(line for line in lines if line)
