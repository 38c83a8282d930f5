"""Every setting, with its default and its description; config.py reads them."""

from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from aftercall.settings.fields import Key, Section, Token
from aftercall.settings.providers import (
    AgentSettings,
    AnthropicSettings,
    ArchiveSettings,
    BlandSettings,
    DeepgramSettings,
    ElevenLabsSettings,
    EmailSettings,
    EventSettings,
    GitHubSettings,
    McpSettings,
    MessageSettings,
    OpenAISettings,
    ReconcileSettings,
    RememSettings,
    RetellSettings,
    TelnyxSettings,
    TesterSettings,
    TwilioSettings,
    VapiSettings,
    WebhookSettings,
    XaiSettings,
)
from aftercall.settings.sections import (
    BridgeSettings,
    BriefingSettings,
    CallsSettings,
    DatabaseSettings,
    ExtractionSettings,
    LimitSettings,
    LiveSettings,
    MemorySettings,
    Networks,
    PagesSettings,
    ReadingSettings,
    ReceptionistSettings,
    RecordingsSettings,
    RetentionSettings,
    WebSettings,
    WorkSettings,
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
        default=None,
        description="where the markdown lives; `<home>/workspace` if unset",
    )
    agent_id: str = Field(
        default="main",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
        description="whose workspace; other than `main` a sub-folder",
    )
    public_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s/]+.*$",
        description="the address carriers see",
    )
    engine: Literal["receptionist", "deepgram", "openai"] | None = Field(
        default=None, description="voice engine; by the keys present if unset"
    )
    model: str | None = Field(
        default=None,
        pattern=r"^(rules|(rules\+)?(anthropic|openai|xai|openai-compatible):\S+)$",
        description=(
            "reader of calls: `rules`, `anthropic:NAME`, `openai:NAME`, `xai:NAME`, "
            "`openai-compatible:NAME`, or `rules+` one of them: the rules read and the model "
            "checks; by the keys present if unset"
        ),
    )
    timezone: str = Field(
        default="UTC",
        description="time zone of everything people read, and of days that callers name",
    )
    post_call_extraction: bool = Field(
        default=True, description="master switch of all work after hang-up"
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
    secret_key: Key | None = Field(
        default=None,
        description="key for secrets at rest and signed cookies; made at first start if unset",
    )
    api_token: Token | None = Field(
        default=None,
        description="bearer token of API and pages; made at first start if unset",
    )
    trusted_proxies: Networks = Field(
        default=(),
        description=(
            "addresses or networks of your reverse proxies; only their X-Forwarded-For and "
            "X-Forwarded-Proto are believed"
        ),
    )

    database: DatabaseSettings = DatabaseSettings()
    archive: ArchiveSettings = ArchiveSettings()
    calls: CallsSettings = CallsSettings()
    live: LiveSettings = LiveSettings()
    limits: LimitSettings = LimitSettings()
    briefing: BriefingSettings = BriefingSettings()
    memory: MemorySettings = MemorySettings()
    extraction: ExtractionSettings = ExtractionSettings()
    reading: ReadingSettings = ReadingSettings()
    receptionist: ReceptionistSettings = ReceptionistSettings()
    pages: PagesSettings = PagesSettings()
    web: WebSettings = WebSettings()
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
    reconcile: ReconcileSettings = ReconcileSettings()
    remem: RememSettings = RememSettings()
    work: WorkSettings = WorkSettings()
    github: GitHubSettings = GitHubSettings()
    webhook: WebhookSettings = WebhookSettings()
    events: EventSettings = EventSettings()
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
        """As set, else by the keys present."""
        if self.engine is not None:
            return self.engine
        if self.deepgram.api_key is not None:
            return "deepgram"
        return "receptionist" if self.openai.api_key is None else "openai"

    @property
    def zone(self) -> ZoneInfo:
        """The configured zone; UTC if it is unknown, so that a typo loses no summary."""
        return find_zone(self.timezone) or ZoneInfo("UTC")


def find_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None
