"""Asking a model one question: prompt, completion, usage, cached answers, one repair attempt."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import Lock
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from aftercall.errors import ModelCutOff, ModelDeclined, ModelOffForm
from aftercall.llm.model.questions import Question

Finish = Literal["whole", "cut_off", "declined"]


@dataclass(frozen=True)
class Prompt:
    instructions: str
    data: str
    schema: dict[str, Any]
    name: str
    repair: tuple[str, str] | None = (
        None  # the invalid answer, and what was wrong with it
    )


@dataclass(frozen=True)
class Completion:
    text: str
    finish: Finish = "whole"
    usage: "Usage" = field(default_factory=lambda: Usage())


@dataclass(frozen=True)
class Usage:
    """What an answer cost; `cost` is None if the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(costs) if costs else None,
        )


@dataclass(frozen=True)
class CachedAnswer:
    """A valid answer as JSON, and what it cost."""

    text: str
    usage: Usage


class AnswerCache(Protocol):
    def find(self, key: str) -> CachedAnswer | None: ...

    def keep(self, key: str, call_id: str, kept: CachedAnswer) -> None:
        """Does not replace an earlier answer to the same question."""
        ...


class NullAnswerCache:
    """Stores nothing."""

    def find(self, key: str) -> CachedAnswer | None:
        return None

    def keep(self, key: str, call_id: str, kept: CachedAnswer) -> None:
        return


def make_answer_key(question: str, data: str, model: str) -> str:
    """One key for the same question about the same words to the same model."""
    parts = (question, sha256(data.encode()).hexdigest(), model)
    return sha256("\n".join(parts).encode()).hexdigest()


F = TypeVar("F", bound=BaseModel)


class CompletionClient(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def part_chars(self) -> int: ...

    def ask(self, prompt: Prompt) -> Completion: ...


class QuestionAsker:
    def __init__(self, client: CompletionClient, answers: AnswerCache) -> None:
        self._client = client
        self._answers = answers
        self._flights: dict[str, tuple[Lock, int]] = {}
        self._lock = Lock()

    def ask(self, question: Question[F], data: str, call_id: str) -> tuple[F, Usage]:
        """The answer and its cost, which is zero for a cached answer.

        Steps that ask the same question at once share one answer.
        """
        key = make_answer_key(question.hash, data, self._client.name)
        with self._single_flight(key):
            if cached := self._answers.find(key):
                return question.form.model_validate_json(cached.text), Usage()
            form, usage = ask_question(self._client, question, data)
            self._answers.keep(
                key, call_id, CachedAnswer(form.model_dump_json(), usage)
            )
            return form, usage

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


def ask_question(
    client: CompletionClient, question: Question[F], data: str
) -> tuple[F, Usage]:
    """Asks once more with the reason if the first answer is invalid."""
    prompt = Prompt(question.prompt, data, question.schema, question.name)
    first = client.ask(prompt)
    try:
        return parse_answer(first, question, client.name), first.usage
    except InvalidAnswer as error:
        repair = replace(prompt, repair=(first.text, str(error)))
    second = client.ask(repair)
    try:
        return parse_answer(second, question, client.name), first.usage + second.usage
    except InvalidAnswer:
        raise ModelOffForm(
            f"{client.name}: its answer about {question.name} was not in its form, twice; use a "
            "more able model"
        ) from None


class InvalidAnswer(Exception):
    """An answer that may be repaired. Its text goes back to the model only."""


def parse_answer(completion: Completion, question: Question[F], name: str) -> F:
    if completion.finish == "declined":
        raise ModelDeclined(
            f"{name}: will not answer about {question.name} for this call; read it with "
            "another model, or by rules"
        )
    if completion.finish == "cut_off":
        raise ModelCutOff(
            f"{name}: its answer about {question.name} was cut off; raise reading.max_tokens "
            "and run the step again"
        )
    try:
        return question.form.model_validate(find_json(completion.text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidAnswer(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from None


def find_json(text: str) -> object:
    """The first JSON object in an answer: bare, fenced or within prose."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            return decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
    raise InvalidAnswer("there is no JSON object in it")
