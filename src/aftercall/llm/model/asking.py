"""Putting one question: from the kept answers if it was answered before, else to the model,
with one chance to put its answer right.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from aftercall.errors import ModelCutOff, ModelDeclined, ModelOffForm
from aftercall.llm.model.completion import (
    AnswerCache,
    CachedAnswer,
    Completion,
    Prompt,
    Usage,
    make_answer_key,
)
from aftercall.llm.model.questions import Question

F = TypeVar("F", bound=BaseModel)


class CompletionClient(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def part_chars(self) -> int: ...

    def ask(self, prompt: Prompt) -> Completion: ...


class QuestionAsker:
    def __init__(self, line: CompletionClient, answers: AnswerCache) -> None:
        self._line = line
        self._answers = answers
        self._flights: dict[str, tuple[Lock, int]] = {}
        self._lock = Lock()

    def ask(self, question: Question[F], data: str, call_id: str) -> tuple[F, Usage]:
        """The answer, and what it cost now: nothing if it was kept.

        Steps that ask the same at once share one answer.
        """
        key = make_answer_key(question.hash, data, self._line.name)
        with self._single_flight(key):
            kept = self._answers.find(key)
            if kept:
                return question.form.model_validate_json(kept.text), Usage()
            form, paid = ask_question(self._line, question, data)
            self._answers.keep(key, call_id, CachedAnswer(form.model_dump_json(), paid))
            return form, paid

    @contextmanager
    def _single_flight(self, key: str) -> Iterator[None]:
        with self._lock:
            lock, waiting = self._flights.get(key, (Lock(), 0))
            self._flights[key] = (lock, waiting + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                _, waiting = self._flights[key]
                if waiting == 1:
                    del self._flights[key]
                else:
                    self._flights[key] = (lock, waiting - 1)


def ask_question(line: CompletionClient, question: Question[F], data: str) -> tuple[F, Usage]:
    put = Prompt(question.prompt, data, question.schema, question.name)
    said = line.ask(put)
    try:
        return parse_answer(said, question, line.name), said.usage
    except InvalidAnswer as wrong:
        repair = Prompt(
            question.prompt, data, question.schema, question.name, (said.text, str(wrong))
        )
    again = line.ask(repair)
    paid = said.usage + again.usage
    try:
        return parse_answer(again, question, line.name), paid
    except InvalidAnswer:
        raise ModelOffForm(
            f"{line.name}: its answer about {question.name} was not in its form, twice; use a "
            "more able model"
        ) from None


class InvalidAnswer(Exception):
    """An answer that may be put right. Its text goes back to the model and nowhere else."""


def parse_answer(said: Completion, question: Question[F], name: str) -> F:
    if said.finish == "declined":
        raise ModelDeclined(
            f"{name}: will not answer about {question.name} for this call; read it with "
            "another model, or by rules"
        )
    if said.finish == "cut_off":
        raise ModelCutOff(
            f"{name}: its answer about {question.name} was cut off; raise reading.max_tokens "
            "and run the step again"
        )
    try:
        return question.form.model_validate(find_json(said.text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidAnswer(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def find_json(text: str) -> object:
    """The JSON object in an answer, whether bare, between fences or in the middle of prose."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            return decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
    raise InvalidAnswer("there is no JSON object in it")
