"""Which model reads calls, and the client that talks to it."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.util import find_spec
from threading import Lock, Thread
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from pydantic import BaseModel, SecretStr, ValidationError

from aftercall import telemetry
from aftercall.errors import (
    ConfigError,
    ModelCutOff,
    ModelDeclined,
    ModelOffForm,
    ModelUnavailable,
)
from aftercall.llm.model.questions import Question
from aftercall.log import get_logger
from aftercall.model.json_fields import Json
from aftercall.settings import Settings
from aftercall.settings.providers import AnthropicSettings, OpenAISettings, XaiSettings
from aftercall.settings.sections import ReadingSettings

Finish = Literal["whole", "cut_off", "declined"]


@dataclass(frozen=True)
class Prompt:
    instructions: str
    data: str
    schema: Json
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
    """Asks a model one question and checks that the answer fits."""

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


if TYPE_CHECKING:
    from aftercall.llm.model.provider_client import ProviderClient


Provider = Literal["anthropic", "openai", "xai", "openai-compatible"]
DEFAULT_MODELS: dict[Provider, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5.4-mini",
    "xai": "grok-4",
}
CHECKED_PREFIX = "rules+"
XAI_URL = "https://api.x.ai/v1"

log = get_logger("model")


@dataclass(frozen=True)
class ModelChoice:
    provider: Provider
    model: str
    api_key: SecretStr
    base_url: str | None
    limits: ReadingSettings
    checks_rules: bool = False
    """The rules read the calls; the model answers yes or no to what they found."""

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def takes_temperature(self) -> bool:
        """Hosted models refuse it, at least newer ones; a self-hosted server may need it."""
        return self.provider == "openai-compatible"


def choose_model(settings: Settings) -> ModelChoice | None:
    """None: read by rules. Raises ConfigError for a configured model that cannot be used."""
    if settings.model == "rules":
        return None
    if settings.model is None:
        return _by_keys(settings)
    if not _is_installed():
        raise ConfigError(
            f"model: {settings.model} needs the packages for models; install "
            "aftercall[models], or set AFTERCALL_MODEL=rules"
        )
    checked = settings.model.removeprefix(CHECKED_PREFIX)
    provider, _, name = checked.partition(":")
    choice = _named(settings, _provider(provider), name)
    return replace(choice, checks_rules=checked != settings.model)


def _by_keys(settings: Settings) -> ModelChoice | None:
    present: dict[Provider, SecretStr | None] = {
        "anthropic": settings.anthropic.api_key,
        "openai": settings.openai.api_key,
        "xai": settings.xai.api_key,
    }
    found = next((provider for provider, key in present.items() if key), None)
    if found is None:
        return None
    if not _is_installed():
        log.warning(
            "a key is set but the packages for models are missing; calls are read by rules "
            "(install aftercall[models])"
        )
        return None
    return _named(settings, found, DEFAULT_MODELS[found])


def _named(settings: Settings, provider: Provider, name: str) -> ModelChoice:
    sections: dict[Provider, AnthropicSettings | OpenAISettings | XaiSettings] = {
        "anthropic": settings.anthropic,
        "xai": settings.xai,
        "openai": settings.openai,
        "openai-compatible": settings.openai,
    }
    section = sections[provider]
    key, url = section.api_key, section.base_url
    if provider == "openai-compatible":
        if not url:
            raise ConfigError(
                f"model: openai-compatible:{name} needs an address; set OPENAI_BASE_URL"
            )
        key = key or SecretStr("none")  # self-hosted servers often need no key
    if not key:
        raise ConfigError(
            f"model: {provider}:{name} needs a key; set {provider.upper()}_API_KEY"
        )
    if provider == "xai":
        url = url or XAI_URL
    return ModelChoice(provider, name, key, url, settings.reading)


def _provider(name: str) -> Provider:
    match name:
        case "anthropic" | "openai" | "xai" | "openai-compatible":
            return name
    raise ConfigError(f"model: there is no provider {name!r}")


def _is_installed() -> bool:
    return all(find_spec(package) for package in ("pydantic_ai", "anthropic", "openai"))


CLOSE_TIMEOUT_S = 5.0


class ModelClient:
    """One client with an event loop in a thread, shared by steps in threads and live calls."""

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._lock = Lock()
        self._open: tuple[asyncio.AbstractEventLoop, Thread, ProviderClient] | None = (
            None
        )
        self._is_closed = False

    @property
    def name(self) -> str:
        return self._choice.name

    @property
    def part_chars(self) -> int:
        return self._choice.limits.part_chars

    @property
    def checks_rules(self) -> bool:
        return self._choice.checks_rules

    def open(self) -> tuple[asyncio.AbstractEventLoop, "ProviderClient"]:
        """Connects at the first question: the packages for models take seconds to load."""
        with self._lock:
            if self._is_closed:
                raise ModelUnavailable(f"{self.name}: the client was closed")
            if self._open is None:
                from aftercall.llm.model import provider_client  # noqa: PLC0415 - slow to load

                loop = asyncio.new_event_loop()
                thread = Thread(
                    target=loop.run_forever, name="aftercall-model", daemon=True
                )
                thread.start()
                self._open = (
                    loop,
                    thread,
                    provider_client.ProviderClient(self._choice),
                )
            return self._open[0], self._open[2]

    def ask(self, prompt: Prompt) -> Completion:
        """For threads. Raises a ModelError."""
        loop, client = self.open()
        asked = self._ask(client, prompt, self._choice.limits.timeout_s)
        return asyncio.run_coroutine_threadsafe(asked, loop).result()

    async def ask_within(self, prompt: Prompt, timeout_s: float) -> Completion:
        """For live calls, which cannot wait long. Raises a ModelError."""
        loop, client = await asyncio.to_thread(self.open)
        asking = self._ask(client, prompt, timeout_s)
        asked = asyncio.run_coroutine_threadsafe(asking, loop)
        return await asyncio.wrap_future(asked)

    async def _ask(
        self, client: "ProviderClient", prompt: Prompt, timeout_s: float
    ) -> Completion:
        with telemetry.timed("model", model=self.name):
            completion = await client.ask(prompt, timeout_s)
        used = completion.usage
        for direction, tokens in (
            ("in", used.input_tokens),
            ("out", used.output_tokens),
        ):
            telemetry.count(
                "model_tokens", tokens, model=self.name, direction=direction
            )
        telemetry.count("model_cost_dollars", used.cost or 0.0, model=self.name)
        return completion

    def close(self) -> None:
        with self._lock:
            was_open, self._open, self._is_closed = self._open, None, True
        if was_open is None:
            return
        loop, thread, client = was_open
        asyncio.run_coroutine_threadsafe(_finish(client), loop).result(CLOSE_TIMEOUT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_TIMEOUT_S)
        loop.close()


async def _finish(client: "ProviderClient") -> None:
    """Cancels open questions: their steps run again."""
    others = [
        task for task in asyncio.all_tasks() if task is not asyncio.current_task()
    ]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.close()
