"""Every setting, with its default and its description. Reading them from file and environment is config.py's work."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr


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
    realtime_model: str = Field(default="gpt-realtime", min_length=1, description="model that speaks on the phone")
    transcription_model: str = Field(default="gpt-4o-transcribe", min_length=1, description="model that writes down the caller's words")
    voice: str = Field(default="marin", min_length=1, description="the agent's voice")


class XaiSettings(Section):
    api_key: Annotated[SecretStr | None, Env("XAI_API_KEY")] = Field(default=None, description="key for Grok")
    base_url: Annotated[str | None, Env("XAI_BASE_URL")] = Field(default=None, description="another address of the API")


class DeepgramSettings(Section):
    api_key: Annotated[SecretStr | None, Env("DEEPGRAM_API_KEY")] = Field(default=None, description="key for the voice agent")
    url: str = Field(default="wss://agent.deepgram.com/v1/agent/converse", description="voice agent socket")
    listen_model: str = Field(default="nova-3", min_length=1, description="model that hears the caller")
    language: str = Field(default="en", min_length=2, description="language the caller speaks")
    think_provider: str = Field(default="open_ai", min_length=1, description="whose model thinks, as Deepgram names it")
    think_model: str = Field(default="gpt-4o-mini", min_length=1, description="model that thinks")
    voice: str = Field(default="aura-2-thalia-en", min_length=1, description="the agent's voice")


class BridgeSettings(Section):
    silence_prompt_s: float = Field(default=15, gt=0, le=3600, description="seconds of silence after which the caller is asked")
    silence_goodbye_s: float = Field(default=45, gt=0, le=3600, description="seconds of silence after which the agent says goodbye")
    max_duration_s: float = Field(default=3600, gt=0, le=86_400, description="longest call; the agent says goodbye")
    drain_s: float = Field(default=1.5, ge=0, le=30, description="seconds to wait for late words after hang-up; later ones are an addendum")


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
    bridge: BridgeSettings = BridgeSettings()
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
    def speaks(self) -> Literal["receptionist", "deepgram", "openai"]:
        """Who speaks on the phone: as set, else by the keys present."""
        if self.engine is not None:
            return self.engine
        if self.deepgram.api_key is not None:
            return "deepgram"
        return "receptionist" if self.openai.api_key is None else "openai"

    @property
    def zone(self) -> ZoneInfo:
        """The configured zone; UTC where it is unknown, so that no summary is lost over a typing mistake."""
        return find_zone(self.timezone) or ZoneInfo("UTC")


def find_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None
