"""Every setting, with its default and its description.

Reading them from file and environment is config.py's work.
"""

from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, SecretStr

from aftercall.settings.sections import SINKS as SINKS
from aftercall.settings.sections import AgentSettings as AgentSettings
from aftercall.settings.sections import AnthropicSettings as AnthropicSettings
from aftercall.settings.sections import BlandSettings as BlandSettings
from aftercall.settings.sections import BridgeSettings as BridgeSettings
from aftercall.settings.sections import BriefingSettings as BriefingSettings
from aftercall.settings.sections import CallsSettings as CallsSettings
from aftercall.settings.sections import DeepgramSettings as DeepgramSettings
from aftercall.settings.sections import ElevenLabsSettings as ElevenLabsSettings
from aftercall.settings.sections import EmailSettings as EmailSettings
from aftercall.settings.sections import Env as Env
from aftercall.settings.sections import ExtractionSettings as ExtractionSettings
from aftercall.settings.sections import GitHubSettings as GitHubSettings
from aftercall.settings.sections import McpSettings as McpSettings
from aftercall.settings.sections import MemorySettings as MemorySettings
from aftercall.settings.sections import MessageSettings as MessageSettings
from aftercall.settings.sections import OpenAISettings as OpenAISettings
from aftercall.settings.sections import ReadingSettings as ReadingSettings
from aftercall.settings.sections import ReceptionistSettings as ReceptionistSettings
from aftercall.settings.sections import RecordingsSettings as RecordingsSettings
from aftercall.settings.sections import RememSettings as RememSettings
from aftercall.settings.sections import RetellSettings as RetellSettings
from aftercall.settings.sections import RetentionKind as RetentionKind
from aftercall.settings.sections import RetentionSettings as RetentionSettings
from aftercall.settings.sections import Section as Section
from aftercall.settings.sections import TelnyxSettings as TelnyxSettings
from aftercall.settings.sections import TwilioSettings as TwilioSettings
from aftercall.settings.sections import VapiSettings as VapiSettings
from aftercall.settings.sections import WebhookSettings as WebhookSettings
from aftercall.settings.sections import WorkSettings as WorkSettings
from aftercall.settings.sections import XaiSettings as XaiSettings


class DatabaseSettings(Section):
    url: str = Field(
        default="",
        description=(
            "SQLAlchemy URL; `postgresql+psycopg://…` for several machines that share the "
            "home; empty is SQLite in the home"
        ),
    )


class PagesSettings(Section):
    password_hash: SecretStr | None = Field(
        default=None,
        description=(
            "opens the pages with a password, besides the API token; `aftercall password` makes it"
        ),
    )
    session_hours: float = Field(
        default=168, gt=0, le=8_760, description="how long a browser stays logged in"
    )


class TesterSettings(Section):
    scenarios: str = Field(
        default="", description="folder of your own scenarios; `<home>/scenarios` if unset"
    )
    allow_numbers: str = Field(
        default="",
        description="numbers that may be dialled by `test run`, with commas between them",
    )
    spend_limit: float = Field(
        default=5.0, ge=0, description="most that test calls by phone may cost in a day"
    )
    price_per_minute: float = Field(
        default=0.05, ge=0, description="what a minute of a test call by phone is taken to cost"
    )
    parallel: int = Field(default=4, ge=1, le=200, description="test calls at a time")
    voice: Literal["", "espeak", "tones", "words"] = Field(
        default="",
        description="the caller's voice; the best there is if unset; `words` is the lab's own",
    )
    redact: bool = Field(
        default=True, description="names, numbers and dates of birth are left out of reports"
    )
    port: int = Field(
        default=8089,
        ge=1,
        le=65_535,
        description="where `test run` takes the carrier's webhooks; `public_url` must lead there",
    )
    model: str | None = Field(
        default=None,
        description=(
            "model for played callers and judged criteria, at `openai.base_url`; scripts and "
            "rules alone if unset"
        ),
    )
    phone_mode: Literal["gather", "media"] = Field(
        default="gather",
        description=(
            "who listens and speaks on phones: Twilio, or we, with sound both ways (needs the "
            "OpenAI audio API)"
        ),
    )
    whisper: bool = Field(
        default=False, description="second transcript of phone calls from the OpenAI audio API"
    )


def _expand(path: Path) -> Path:
    return path.expanduser().absolute()


FolderPath = Annotated[Path, AfterValidator(_expand)]


class Settings(Section):
    home: FolderPath = Field(
        default=Path("~/.aftercall"),
        validate_default=True,
        description="state: database, archive, recordings, workspace",
    )
    workspace: FolderPath | None = Field(
        default=None, description="where the markdown lives; `<home>/workspace` if unset"
    )
    agent_id: str = Field(
        default="main",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
        description="whose workspace; other than `main` a sub-folder",
    )
    public_url: str | None = Field(
        default=None, pattern=r"^https?://[^\s/]+.*$", description="the address carriers see"
    )
    engine: Literal["receptionist", "deepgram", "openai"] | None = Field(
        default=None, description="who speaks; by the keys present if unset"
    )
    model: str | None = Field(
        default=None,
        pattern=r"^(rules|(anthropic|openai|xai|openai-compatible):\S+)$",
        description=(
            "who reads; `rules`, `anthropic:NAME`, `openai:NAME`, `xai:NAME`, "
            "`openai-compatible:NAME`; by the keys if unset"
        ),
    )
    timezone: str = Field(default="UTC", description="for everything people read")
    post_call_extraction: bool = Field(
        default=True, description="master switch of what happens after hang-up"
    )
    reconnect_window_s: float = Field(
        default=300,
        ge=0,
        le=86_400,
        description="reconnect window, and the wait before follow-up work",
    )
    owner: str | None = Field(
        default=None,
        description="the owner's number: the workspace root is theirs, notices go to them",
    )
    secret_key: SecretStr | None = Field(
        default=None,
        description="key for secrets at rest and signed cookies; made at first start if unset",
    )
    api_token: SecretStr | None = Field(
        default=None,
        description="bearer token of API and pages; without it only loopback is served",
    )

    database: DatabaseSettings = DatabaseSettings()
    calls: CallsSettings = CallsSettings()
    briefing: BriefingSettings = BriefingSettings()
    memory: MemorySettings = MemorySettings()
    extraction: ExtractionSettings = ExtractionSettings()
    reading: ReadingSettings = ReadingSettings()
    receptionist: ReceptionistSettings = ReceptionistSettings()
    pages: PagesSettings = PagesSettings()
    retention: RetentionSettings = RetentionSettings()
    anthropic: AnthropicSettings = AnthropicSettings()
    openai: OpenAISettings = OpenAISettings()
    xai: XaiSettings = XaiSettings()
    deepgram: DeepgramSettings = DeepgramSettings()
    bridge: BridgeSettings = BridgeSettings()
    twilio: TwilioSettings = TwilioSettings()
    telnyx: TelnyxSettings = TelnyxSettings()
    recordings: RecordingsSettings = RecordingsSettings()
    elevenlabs: ElevenLabsSettings = ElevenLabsSettings()
    vapi: VapiSettings = VapiSettings()
    retell: RetellSettings = RetellSettings()
    bland: BlandSettings = BlandSettings()
    remem: RememSettings = RememSettings()
    work: WorkSettings = WorkSettings()
    github: GitHubSettings = GitHubSettings()
    webhook: WebhookSettings = WebhookSettings()
    email: EmailSettings = EmailSettings()
    message: MessageSettings = MessageSettings()
    mcp: McpSettings = McpSettings()
    agent: AgentSettings = AgentSettings()
    tester: TesterSettings = TesterSettings()

    @property
    def database_url(self) -> str:
        return self.database.url or f"sqlite:///{self.home / 'aftercall.db'}"

    @property
    def voice_engine(self) -> Literal["receptionist", "deepgram", "openai"]:
        """Who speaks on the phone: as set, else by the keys present."""
        if self.engine is not None:
            return self.engine
        if self.deepgram.api_key is not None:
            return "deepgram"
        return "receptionist" if self.openai.api_key is None else "openai"

    @property
    def zone(self) -> ZoneInfo:
        """The configured zone; UTC where it is unknown, so that no summary is lost over a
        typing mistake.
        """
        return find_zone(self.timezone) or ZoneInfo("UTC")


def find_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None
