"""Rules read a call and a model checks them: one short question about one item at a time.

A small model cannot write a reading of a whole call, but it can say what a few words are. Rules
find what may be a request; the model says whether it is one, and whether it was called off. Where
the two disagree, a person decides: the item is *unclear*. Where the model gives no usable answer,
the rules decide.
"""

import json
from collections.abc import Iterable
from threading import Lock
from typing import TypeVar

from pydantic import BaseModel

from aftercall.english.dates import find_dates
from aftercall.errors import ModelError, ModelRefused
from aftercall.llm.model import questions
from aftercall.llm.model.client import (
    AnswerCache,
    CompletionClient,
    NullAnswerCache,
    QuestionAsker,
    Usage,
)
from aftercall.llm.model.questions import Question, fence, format_turns
from aftercall.llm.reader import CachedReader, Reader
from aftercall.llm.rules.titles import summarise
from aftercall.log import get_logger
from aftercall.model.calls import Call, Turn
from aftercall.model.reading import (
    ItemDecision,
    Reading,
    ReadingResult,
    ReadingTrace,
    Request,
    RequestsReading,
    UnclearRequest,
)

DOUBTED = 0.5  # confidence of what the rules take for a request and the model does not
MAX_SHOWN_CHARS = 6_000  # of a call, from the item on
F = TypeVar("F", bound=BaseModel)
Item = Request | UnclearRequest

log = get_logger("model")


class CheckedReader(CachedReader):
    """The rules' reading of a call, with the model's decision about every request in it."""

    def __init__(
        self,
        rules: Reader,
        client: CompletionClient,
        answers: AnswerCache | None = None,
    ) -> None:
        super().__init__()
        self.name = f"{rules.name}+{client.name}"
        self._rules = rules
        self._client = client
        self._asker = QuestionAsker(client, answers or NullAnswerCache())
        self._usages: dict[str, Usage] = {}
        self._usage_lock = Lock()

    def read(self, call: Call) -> Reading:
        reading = self._rules.read(call)
        check = CallCheck(call, self._client, self._asker)
        checked = check.decide(reading)
        with self._usage_lock:
            self._usages[call.id] = check.usage
        if checked.requests == reading.requests:
            return checked
        return checked.model_copy(update={"summary": summarise(checked)})

    def find_requests(self, call: Call) -> ReadingResult[RequestsReading]:
        """Its trace has the tokens of all questions about the call."""
        value = super().find_requests(call).value
        with self._usage_lock:
            used = self._usages.get(call.id, Usage())
        tokens = (used.input_tokens, used.output_tokens)
        trace = ReadingTrace(self.name, questions.SAID.hash, *tokens, used.cost)
        return ReadingResult(value, trace)

    def forget(self, call_id: str) -> None:
        super().forget(call_id)
        self._rules.forget(call_id)
        with self._usage_lock:
            self._usages.pop(call_id, None)


class CallCheck:
    """The questions about one call, and what was decided."""

    def __init__(
        self, call: Call, client: CompletionClient, asker: QuestionAsker
    ) -> None:
        self._call = call
        self._model = client.name
        self._max_chars = min(client.part_chars, MAX_SHOWN_CHARS)
        self._asker = asker
        self._is_away = False
        self._decisions: list[ItemDecision] = []
        self.usage = Usage()

    def decide(self, reading: Reading) -> Reading:
        wanted = {id(item): self._is_wanted(item) for item in reading.requests}
        promoted = {id(item): self._promote(item) for item in reading.unclear}
        return reading.model_copy(
            update={
                "requests": (
                    *(item for item in reading.requests if wanted[id(item)]),
                    *filter(None, promoted.values()),
                ),
                "unclear": (
                    *(item for item in reading.unclear if not promoted[id(item)]),
                    *(
                        _doubt(item)
                        for item in reading.requests
                        if not wanted[id(item)]
                    ),
                ),
                "decisions": tuple(self._decisions),
            }
        )

    def _is_wanted(self, request: Request) -> bool:
        """Rules and model must agree; without an answer the rules decide."""
        if self._tell_what(request) in (None, "request"):
            return self._tell_outcome(request) != "called off"
        return False

    def _promote(self, item: UnclearRequest) -> Request | None:
        """What the rules were not sure of is a request if the model says so."""
        if self._tell_what(item) != "request":
            return None
        if self._tell_outcome(item) == "called off":
            return None
        asked = f"Of what kind is {_quote(item.words)}?"
        kind = self._ask(questions.KIND, self._show(item), asked)
        days = find_dates(item.words, self._call.started_at.date())
        return Request(
            kind=kind.kind if kind else "other",
            title=item.title,
            due=days[0].day if len(days) == 1 else None,
            turns=item.turns,
            words=item.words,
        )

    def _tell_what(self, item: Item) -> str | None:
        asked = f"What is {_quote(item.words)}?"
        form = self._ask(questions.SAID, self._show(item), asked)
        return self._note(item, "what it is", form.answer if form else None)

    def _tell_outcome(self, item: Item) -> str | None:
        """Of a long call, as much is shown as fits, from the item on."""
        later = [
            turn
            for turn in self._call.turns
            if turn.seq > max(item.turns) and turn.speaker == "caller"
        ]
        if not later:
            return "still wanted"
        asked = f"What became of {_quote(item.words)}?"
        form = self._ask(questions.OUTCOME, (*self._show(item), *later), asked)
        return self._note(item, "what became of it", form.answer if form else None)

    def _show(self, item: Item) -> tuple[Turn, ...]:
        """The turns that the item rests on, and the one before them."""
        shown = {min(item.turns) - 1, *item.turns}
        return tuple(turn for turn in self._call.turns if turn.seq in shown)

    def _ask(
        self, question: Question[F], turns: Iterable[Turn], asked: str
    ) -> F | None:
        """None if the model is away or answers in no usable form. Raises ModelRefused."""
        if self._is_away:
            return None
        lines = "\n".join(format_turns(turns, self._max_chars))
        data = f"{fence('transcript', lines)}\n\n{asked}"
        try:
            form, usage = self._asker.ask(question, data, self._call.id)
        except ModelRefused:
            raise  # a person must mend the settings
        except ModelError as error:
            log.warning("the model gave no answer; the rules decide", code=error.code)
            self._is_away = error.retryable  # further questions would wait as long
            return None
        self.usage += usage
        return form

    def _note(self, item: Item, about: str, answer: str | None) -> str | None:
        by = self._model if answer else "rules"
        noted = ItemDecision(title=item.title, about=about, answer=answer, by=by)
        self._decisions.append(noted)
        return answer


def _quote(text: str) -> str:
    """The caller's words as a JSON string: they cannot leave their quotes."""
    return json.dumps(text, ensure_ascii=False)


def _doubt(request: Request) -> UnclearRequest:
    return UnclearRequest(
        title=request.title,
        turns=request.turns,
        words=request.words,
        confidence=DOUBTED,
    )
