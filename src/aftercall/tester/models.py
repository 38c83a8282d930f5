"""Models at a server of the OpenAI kind: chat plays a caller or judges, audio transcribes."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Literal

import httpx2
from pydantic import SecretStr

from aftercall.errors import LineFailed
from aftercall.settings.providers import make_key_headers
from aftercall.speech.transcription import (
    TranscribedAudio,
    make_upload,
    parse_transcription,
)
from aftercall.tester.caller import Caller, CallerMove
from aftercall.tester.phrases import find_any, likeness, sentences_of
from aftercall.tester.scenario import PlannedCall, Scenario

OPENAI_URL = "https://api.openai.com/v1"
TRANSCRIPTION_MODEL = "whisper-1"


@dataclass(frozen=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    content: str


Complete = Callable[[Sequence[ChatMessage], int], Awaitable[str]]
"""The model's next words for these messages, at most so many tokens; raises LineFailed."""


class ChatModel:
    """`POST /chat/completions`."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        base_url: str,
        model: str,
        key: SecretStr | None = None,
    ) -> None:
        self._http = http
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = make_key_headers("openai", key)

    async def complete(self, messages: Sequence[ChatMessage], max_tokens: int) -> str:
        body = {
            "model": self._model,
            "messages": [asdict(message) for message in messages],
            "max_completion_tokens": max_tokens,
        }
        try:
            answer = await self._http.post(self._url, json=body, headers=self._headers)
            choice = answer.raise_for_status().json()["choices"][0]
            text = choice["message"]["content"]
        except httpx2.HTTPStatusError as error:
            raise LineFailed(
                f"the model answered {error.response.status_code}"
            ) from None
        except (httpx2.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
            raise LineFailed(
                f"the model gave no answer ({type(error).__name__})"
            ) from None
        if isinstance(text, str) and choice.get("finish_reason") == "length":
            # whole sentences count
            text = text[: max(text.rfind(end) for end in ".?!") + 1]
        if not isinstance(text, str) or not text.strip():
            raise LineFailed("the model's answer is empty or cut off")
        return text.strip()


async def transcribe(
    http: httpx2.AsyncClient, base_url: str, key: SecretStr, wav: bytes
) -> TranscribedAudio:
    """The words, and where they are in the sound."""
    try:
        answer = await http.post(
            base_url.rstrip("/") + "/audio/transcriptions",
            data={"model": TRANSCRIPTION_MODEL, "response_format": "verbose_json"},
            files={"file": make_upload(wav)},
            headers=make_key_headers("openai", key),
        )
        return parse_transcription(answer.raise_for_status().json())
    except (httpx2.HTTPError, ValueError) as error:
        reason = type(error).__name__
        raise LineFailed(f"the recording could not be transcribed ({reason})") from None


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
_FROM_SCRIPT = ("answer:", "turn:", "hold", "goodbye", "gave_up", "check")
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


class ModelCaller(Caller):
    """Answers about identity come word for word from the script; the rest in the model's words.

    When the model fails, the script goes on alone.
    """

    def __init__(
        self,
        scenario: Scenario,
        plan: PlannedCall,
        seed: int,
        model: Complete,
        today: date = date(2000, 1, 1),
    ) -> None:
        super().__init__(scenario, plan, seed, today)
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
