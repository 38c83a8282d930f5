"""Which model reads calls, and the client that talks to it."""

import asyncio
from threading import Lock, Thread
from typing import TYPE_CHECKING

from aftercall import telemetry
from aftercall.errors import ModelUnavailable
from aftercall.llm.model.completion import Completion, Prompt

if TYPE_CHECKING:
    from aftercall.llm.model.provider_client import ProviderClient
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from pydantic import SecretStr

from aftercall.errors import ConfigError
from aftercall.log import get_logger
from aftercall.settings import Settings
from aftercall.settings.providers import AnthropicSettings, OpenAISettings, XaiSettings
from aftercall.settings.sections import ReadingSettings

Provider = Literal["anthropic", "openai", "xai", "openai-compatible"]
DEFAULT_MODELS: dict[Provider, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5.4-mini",
    "xai": "grok-4",
}
XAI_URL = "https://api.x.ai/v1"

log = get_logger("model")


@dataclass(frozen=True)
class ModelChoice:
    provider: Provider
    model: str
    api_key: SecretStr
    base_url: str | None
    limits: ReadingSettings

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
    provider, _, name = settings.model.partition(":")
    return _named(settings, _provider(provider), name)


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
