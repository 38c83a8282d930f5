"""The settings: one TOML file, overridden by the environment, read once at start and frozen.

`[section] name` in the file is `AFTERCALL_<SECTION>_<NAME>` in the environment; a provider's own settings
keep the names that its users know. Each part is handed its own section; nobody reads the environment again.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from aftercall.errors import ConfigError

PREFIX = "AFTERCALL_"

# Names that are fixed already, of parts that are still to come: who sets one is told that nothing listens to it.
NOT_YET = (
    *("secret_key", "extraction", "anthropic", "openai", "xai", "deepgram", "telnyx", "remem"),
    *("twilio.account_sid", "twilio.phone_number", "twilio.api_url"),
)
_ONLY = {"engine": "receptionist", "model": "rules"}


@dataclass(frozen=True)
class Env:
    """The environment name of a setting where it is not the regular one."""

    name: str


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DatabaseSettings(Section):
    url: str = Field(default="", description="SQLAlchemy URL; `postgresql+psycopg://…` for several machines; empty is SQLite in the home")


class CallsSettings(Section):
    max_entries: int = Field(default=50, ge=0, description="entries kept in CALLS.md")


class BriefingSettings(Section):
    calls: int = Field(default=3, ge=0, le=50, description="recent summaries told to the next call")


class MemorySettings(Section):
    scope: Literal["per_caller", "shared", "none"] = Field(default="per_caller", description="whose memory a call opens")


class ReceptionistSettings(Section):
    greeting: str = Field(
        default="Hello! I'm the assistant. What can I do for you?",
        min_length=1,
        max_length=200,
        description="what a caller hears whom nothing better is known for",
    )


class ExtractionSettings(Section):
    min_turns: int = Field(default=3, ge=0, description="shorter calls are not searched for facts")
    max_per_minute: int = Field(default=10, ge=1, description="calls searched for facts in a minute; the rest wait")
    known_facts: int = Field(default=50, ge=0, description="known facts shown to the reader")


class AnthropicSettings(Section):
    api_key: Annotated[SecretStr | None, Env("ANTHROPIC_API_KEY")] = Field(default=None, description="key for Claude")
    base_url: Annotated[str | None, Env("ANTHROPIC_BASE_URL")] = Field(default=None, description="another address of the API")


class OpenAISettings(Section):
    api_key: Annotated[SecretStr | None, Env("OPENAI_API_KEY")] = Field(default=None, description="key for OpenAI, models and Realtime")
    base_url: Annotated[str | None, Env("OPENAI_BASE_URL")] = Field(default=None, description="another address of the API")


class XaiSettings(Section):
    api_key: Annotated[SecretStr | None, Env("XAI_API_KEY")] = Field(default=None, description="key for Grok")
    base_url: Annotated[str | None, Env("XAI_BASE_URL")] = Field(default=None, description="another address of the API")


class DeepgramSettings(Section):
    api_key: Annotated[SecretStr | None, Env("DEEPGRAM_API_KEY")] = Field(default=None, description="key for the voice agent")
    url: str = Field(default="wss://agent.deepgram.com/v1/agent/converse", description="voice agent socket")


class TwilioSettings(Section):
    account_sid: Annotated[str | None, Env("TWILIO_ACCOUNT_SID")] = Field(default=None, description="account")
    auth_token: Annotated[SecretStr | None, Env("TWILIO_AUTH_TOKEN")] = Field(default=None, description="token; also checks signatures")
    phone_number: Annotated[str | None, Env("TWILIO_PHONE_NUMBER")] = Field(default=None, description="number for outgoing calls and SMS")
    api_url: str = Field(default="https://api.twilio.com", description="REST address")


class TelnyxSettings(Section):
    api_key: Annotated[SecretStr | None, Env("TELNYX_API_KEY")] = Field(default=None, description="key")
    public_key: Annotated[str | None, Env("TELNYX_PUBLIC_KEY")] = Field(default=None, description="key that checks webhook signatures")
    api_url: str = Field(default="https://api.telnyx.com", description="REST address")


class ElevenLabsSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("ELEVENLABS_WEBHOOK_SECRET")] = Field(
        default=None, description="checks webhook signatures"
    )


class VapiSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("VAPI_WEBHOOK_SECRET")] = Field(default=None, description="checks webhooks")


class RetellSettings(Section):
    api_key: Annotated[SecretStr | None, Env("RETELL_API_KEY")] = Field(default=None, description="checks webhook signatures")


class BlandSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("BLAND_WEBHOOK_SECRET")] = Field(default=None, description="checks webhook signatures")


class RememSettings(Section):
    api_key: Annotated[SecretStr | None, Env("REMEM_API_KEY")] = Field(default=None, description="key for remote document memory")
    api_url: Annotated[str | None, Env("REMEM_API_URL")] = Field(default=None, description="address of remote document memory")


def _expand(path: Path) -> Path:
    return path.expanduser().absolute()


FolderPath = Annotated[Path, AfterValidator(_expand)]


class Settings(Section):
    home: FolderPath = Field(
        default=Path("~/.aftercall"), validate_default=True, description="state: database, archive, recordings, workspace"
    )
    workspace: FolderPath | None = Field(default=None, description="where the markdown lives; `<home>/workspace` if unset")
    agent_id: str = Field(
        default="main", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="whose workspace; other than `main` a sub-folder"
    )
    public_url: str | None = Field(default=None, pattern=r"^https?://[^\s/]+.*$", description="the address carriers see")
    engine: Literal["receptionist", "deepgram", "openai"] | None = Field(
        default=None, description="who speaks; by the keys present if unset"
    )
    model: str | None = Field(
        default=None,
        pattern=r"^(rules|(anthropic|openai|xai|openai-compatible):\S+)$",
        description="who reads; `rules`, `anthropic:NAME`, `openai:NAME`, `xai:NAME`, `openai-compatible:NAME`; by the keys if unset",
    )
    timezone: str = Field(default="UTC", description="for everything people read")
    post_call_extraction: bool = Field(default=True, description="master switch of what happens after hang-up")
    reconnect_window_s: float = Field(default=300, ge=0, le=86_400, description="reconnect window, and the wait before follow-up work")
    owner: str | None = Field(default=None, description="the owner's number: the workspace root is theirs, notices go to them")
    secret_key: SecretStr | None = Field(
        default=None, description="key for secrets at rest and signed cookies; made at first start if unset"
    )
    api_token: SecretStr | None = Field(default=None, description="bearer token of API and pages; without it only loopback is served")

    database: DatabaseSettings = DatabaseSettings()
    calls: CallsSettings = CallsSettings()
    briefing: BriefingSettings = BriefingSettings()
    memory: MemorySettings = MemorySettings()
    extraction: ExtractionSettings = ExtractionSettings()
    receptionist: ReceptionistSettings = ReceptionistSettings()
    anthropic: AnthropicSettings = AnthropicSettings()
    openai: OpenAISettings = OpenAISettings()
    xai: XaiSettings = XaiSettings()
    deepgram: DeepgramSettings = DeepgramSettings()
    twilio: TwilioSettings = TwilioSettings()
    telnyx: TelnyxSettings = TelnyxSettings()
    elevenlabs: ElevenLabsSettings = ElevenLabsSettings()
    vapi: VapiSettings = VapiSettings()
    retell: RetellSettings = RetellSettings()
    bland: BlandSettings = BlandSettings()
    remem: RememSettings = RememSettings()

    @property
    def database_url(self) -> str:
        return self.database.url or f"sqlite:///{self.home / 'aftercall.db'}"

    @property
    def zone(self) -> ZoneInfo:
        """The configured zone; UTC where it is unknown, so that no summary is lost over a typing mistake."""
        return find_zone(self.timezone) or ZoneInfo("UTC")


def find_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None


@dataclass(frozen=True)
class Value:
    """One setting as it stands: for `aftercall config`."""

    key: str
    env: str
    value: Any
    origin: str
    description: str

    @property
    def shown(self) -> str:
        if isinstance(self.value, SecretStr):
            return "(set, hidden)"
        if self.value is None:
            return ""
        return re.sub(r"(://[^:/@]+:)[^@]*@", r"\1***@", str(self.value))


@dataclass(frozen=True)
class Loaded:
    settings: Settings
    values: tuple[Value, ...]
    warnings: tuple[str, ...]


def load(file: Path | None = None, environ: Mapping[str, str] | None = None) -> Loaded:
    """Read the settings: `file` if named, else ./aftercall.toml if it is there, then the environment over it."""
    environ = os.environ if environ is None else environ
    path = file or Path("aftercall.toml")
    data = _read_toml(path) if file or path.is_file() else {}
    _refuse_unknown(data, path)
    origins: dict[str, str] = {}
    for key, env, _ in known_settings():
        if _get(data, key) is not None:
            origins[key] = str(path)
        if environ.get(env, "") != "":
            _put(data, key, environ[env])
            origins[key] = env
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        raise _unusable(error, origins) from None
    values = tuple(
        Value(key, env, _get(settings, key), origins.get(key, "default"), field.description or "") for key, env, field in known_settings()
    )
    return Loaded(settings, values, tuple(_warnings(settings, environ, set(origins))))


def known_settings() -> Iterator[tuple[str, str, FieldInfo]]:
    """Every setting as key, environment name and field; sections as `section.name`."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            for inner, inner_field in field.annotation.model_fields.items():
                yield f"{name}.{inner}", _env_name(f"{name}.{inner}", inner_field), inner_field
        else:
            yield name, _env_name(name, field), field


def _env_name(key: str, field: FieldInfo) -> str:
    named = [item.name for item in field.metadata if isinstance(item, Env)]
    return named[0] if named else PREFIX + key.replace(".", "_").upper()


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not valid UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML ({error})") from None


def _refuse_unknown(data: dict[str, Any], path: Path) -> None:
    known = [key for key, _, _ in known_settings()]
    sections = {key.partition(".")[0] for key in known if "." in key}
    for name, value in data.items():
        if name in sections and not isinstance(value, dict):
            raise ConfigError(f"{path}: {name} is a section; write [{name}] and its settings below it")
        keys = [f"{name}.{inner}" for inner in value] if name in sections else [name]
        for key in keys:
            if key not in known:
                raise ConfigError(f"{path}: unknown setting {key!r}{_nearest(key, known)}")


def _nearest(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else "; `aftercall config` lists all"


def _unusable(error: ValidationError, origins: Mapping[str, str]) -> ConfigError:
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"][:2])
    return ConfigError(f"{origins.get(key, 'settings')}: {key} {first['msg'][:1].lower()}{first['msg'][1:]}")


def is_not_yet(key: str) -> bool:
    return key in NOT_YET or key.partition(".")[0] in NOT_YET


def _warnings(settings: Settings, environ: Mapping[str, str], given: set[str]) -> Iterator[str]:
    for key in sorted(given):
        if is_not_yet(key):
            yield f"{key}: is set, but no part of this version uses it yet"
        elif key in _ONLY and _get(settings, key) != _ONLY[key]:
            yield f"{key}: only {_ONLY[key]!r} is there in this version, and is used"
    if find_zone(settings.timezone) is None:
        yield f"timezone: {settings.timezone!r} is not a known zone; UTC is used"
    known = [env for _, env, _ in known_settings()]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and name not in ("AFTERCALL_FAULT", "AFTERCALL_SOAK"):
            yield f"{name}: no such setting{_nearest(name, known)}"


def _get(data: Any, key: str) -> Any:
    for part in key.split("."):
        data = data.get(part) if isinstance(data, dict) else getattr(data, part)
        if data is None:
            return None
    return data


def _put(data: dict[str, Any], key: str, value: str) -> None:
    *sections, name = key.split(".")
    for section in sections:
        data = data.setdefault(section, {})
    data[name] = value
