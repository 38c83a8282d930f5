"""Which model reads, by the settings: the one that is named, else by the keys present, else
none.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from pydantic import SecretStr

from aftercall.errors import ConfigError
from aftercall.log import get_logger
from aftercall.settings import (
    AnthropicSettings,
    OpenAISettings,
    ReadingSettings,
    Settings,
    XaiSettings,
)

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
    """One model at one address. Nobody above asks which provider it is."""

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
        """The hosted ones refuse it, some for every model and some for the newer ones; a server
        of one's own may need it.
        """
        return self.provider == "openai-compatible"


def choose_model(settings: Settings) -> ModelChoice | None:
    """None is: read by rules. Raises ConfigError for a model that is named and cannot be used."""
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
            "a key is there but no packages for models; calls are read by rules (install "
            "aftercall[models])"
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
        key = key or SecretStr("none")  # servers of one's own often ask for no key
    if not key:
        raise ConfigError(f"model: {provider}:{name} needs a key; set {provider.upper()}_API_KEY")
    return ModelChoice(
        provider, name, key, url or (XAI_URL if provider == "xai" else None), settings.reading
    )


def _provider(name: str) -> Provider:
    match name:
        case "anthropic" | "openai" | "xai" | "openai-compatible":
            return name
    raise ConfigError(f"model: there is no provider {name!r}")


def _is_installed() -> bool:
    return all(find_spec(package) for package in ("pydantic_ai", "anthropic", "openai"))
