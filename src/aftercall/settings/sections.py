"""What is kept of calls, for how long, and what the next call is told."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
)


@dataclass(frozen=True)
class Env:
    """The environment name of a setting where it is not the regular one."""

    name: str


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def parse_list(value: Any) -> Any:
    """In the environment a list is one text, its items separated by commas."""
    return (
        [item.strip() for item in value.split(",") if item.strip()]
        if isinstance(value, str)
        else value
    )


def parse_pairs(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {
        key.strip(): level.strip()
        for key, _, level in (item.partition("=") for item in parse_list(value))
    }


def parse_groups(value: Any) -> Any:
    """In the environment groups are separated by semicolons: `main,sales;clinic`."""
    return (
        [parse_list(group) for group in value.split(";") if group.strip()]
        if isinstance(value, str)
        else value
    )


Words = Annotated[tuple[str, ...], BeforeValidator(parse_list)]


class CallsSettings(Section):
    max_entries: int = Field(default=50, ge=0, description="entries kept in CALLS.md")


class BriefingSettings(Section):
    calls: int = Field(default=3, ge=0, le=50, description="recent summaries told to the next call")
    facts: int = Field(default=10, ge=0, le=100, description="facts told to the next call")
    max_tokens: int = Field(
        default=2_000, ge=100, le=100_000, description="about how long a briefing may be"
    )
    timeout_ms: int = Field(
        default=300, ge=1, le=10_000, description="how long a ringing call waits for its briefing"
    )


class MemorySettings(Section):
    scope: Literal["per_caller", "shared", "none"] = Field(
        default="per_caller", description="whose memory a call opens"
    )
    agents: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(parse_groups)] = Field(
        default=(),
        description=(
            'groups of agents that know each other\'s `shared` facts: `[["main", "sales"], '
            '["clinic"]]`'
        ),
    )
    release: Literal["shared", "private"] = Field(
        default="private",
        description=(
            "up to which level facts are told to any caller of their number; above it only to "
            "verified ones"
        ),
    )
    embedder: str = Field(
        default="",
        description="vectors for search: `openai:MODEL`, `openai-compatible:MODEL`, "
        "`module:factory`",
    )
    visibility: Annotated[
        dict[str, Literal["shared", "private", "secret"]], BeforeValidator(parse_pairs)
    ] = Field(
        default={},
        description=(
            "level by category or topic, `routine=private,emotional=secret`; a reader's "
            "higher level always stands"
        ),
    )
    secret_words: Words = Field(
        default=(),
        description="a fact that holds one of these words is secret; separated by commas",
    )
    pin_after: int = Field(
        default=3,
        ge=0,
        le=100,
        description="conversations after which a topic is pinned; 0 pins none",
    )
    pin_stale_days: int = Field(
        default=60,
        ge=0,
        description="days without a word after which a topic is unpinned; 0: never",
    )

    @field_validator("agents")
    @classmethod
    def _check_groups(cls, groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        named = [agent_id for group in groups for agent_id in group]
        if twice := next((agent_id for agent_id in named if named.count(agent_id) > 1), None):
            raise ValueError(f"{twice!r} is named twice; an agent belongs to one group")
        return groups

    def list_others_in_group(self, agent_id: str) -> tuple[str, ...]:
        """The other agents whose `shared` facts this one knows."""
        group = next((group for group in self.agents if agent_id in group), ())
        return tuple(other for other in group if other != agent_id)


RetentionKind = Literal["recordings", "transcripts", "facts", "documents"]


Actions = Annotated[dict[RetentionKind, Literal["delete", "archive"]], BeforeValidator(parse_pairs)]


class RetentionSettings(Section):
    recordings_days: int = Field(
        default=90, ge=0, description="after how many days recordings go; 0 keeps them for good"
    )
    transcripts_days: int = Field(
        default=0, ge=0, description="after how many days sealed calls go; 0 keeps them for good"
    )
    facts_days: int = Field(
        default=0,
        ge=0,
        description="after how many days facts go that were not said again; 0 keeps them for good",
    )
    documents_days: int = Field(
        default=0, ge=0, description="after how many days documents go; 0 keeps them for good"
    )
    action: Actions = Field(
        default={},
        description=(
            "`delete` (if unset) or `archive`, by kind; `transcripts=archive` moves them to "
            "`<home>/retired`"
        ),
    )


class ExtractionSettings(Section):
    min_turns: int = Field(default=3, ge=0, description="shorter calls are not searched for facts")
    max_per_minute: int = Field(
        default=10,
        ge=1,
        description=(
            "calls searched for facts in a minute, the rest wait; the rules reader is limited "
            "only if this is set"
        ),
    )
    known_facts: int = Field(
        default=50, ge=0, description="known facts shown to the reader, secrets never"
    )
    min_confidence: float = Field(
        default=0.6,
        ge=0,
        le=1,
        description="facts that a reader is less sure of are dropped and counted",
    )
    max_facts: int = Field(
        default=100, ge=1, description="facts taken out of one call; more are dropped and counted"
    )


class ReadingSettings(Section):
    timeout_s: float = Field(
        default=60, gt=0, le=600, description="how long the model may take for one answer"
    )
    max_tokens: int = Field(
        default=4096, ge=64, le=64_000, description="the longest answer of the model"
    )
    part_chars: int = Field(
        default=60_000,
        ge=500,
        description="longer transcripts are read in parts of this many characters",
    )


class AnthropicSettings(Section):
    api_key: Annotated[SecretStr | None, Env("ANTHROPIC_API_KEY")] = Field(
        default=None, description="key for Claude"
    )
    base_url: Annotated[str | None, Env("ANTHROPIC_BASE_URL")] = Field(
        default=None, description="another address of the API"
    )


class OpenAISettings(Section):
    api_key: Annotated[SecretStr | None, Env("OPENAI_API_KEY")] = Field(
        default=None, description="key for OpenAI, models and Realtime"
    )
    base_url: Annotated[str | None, Env("OPENAI_BASE_URL")] = Field(
        default=None, description="another address of the API; the server of `openai-compatible:`"
    )
    realtime_model: str = Field(
        default="gpt-realtime", min_length=1, description="model that speaks on the phone"
    )
    transcription_model: str = Field(
        default="gpt-4o-transcribe",
        min_length=1,
        description="model that writes down the caller's words",
    )
    voice: str = Field(default="marin", min_length=1, description="the agent's voice")


class XaiSettings(Section):
    api_key: Annotated[SecretStr | None, Env("XAI_API_KEY")] = Field(
        default=None, description="key for Grok"
    )
    base_url: Annotated[str | None, Env("XAI_BASE_URL")] = Field(
        default=None, description="another address of the API"
    )


class RememSettings(Section):
    api_key: Annotated[SecretStr | None, Env("REMEM_API_KEY")] = Field(
        default=None, description="key for remote document memory"
    )
    api_url: Annotated[str | None, Env("REMEM_API_URL")] = Field(
        default=None,
        pattern=r"^https?://[^\s/]+.*$",
        description="address of remote document memory; `https://api.remem.io` if unset",
    )
    dialect: Literal["ingest", "documents"] = Field(
        default="ingest",
        description="`ingest` as its clients write, `documents` as its first description has it",
    )
    namespace: str | None = Field(
        default=None,
        description=(
            "namespace to write into, with `{caller}` one for each caller; the key's own if unset"
        ),
    )


class ReceptionistSettings(Section):
    greeting: str = Field(
        default="Hello! I'm the assistant. What can I do for you?",
        min_length=1,
        max_length=200,
        description="what a caller hears whom nothing better is known for",
    )
    speech: bool = Field(
        default=False,
        description="speak and listen on this machine instead of through the carrier; "
        "needs `[speech]`",
    )
    voice: str = Field(
        default="en-us",
        pattern=r"^[\w+-]{1,40}$",
        description="its own voice, as espeak-ng names it",
    )


class DeepgramSettings(Section):
    api_key: Annotated[SecretStr | None, Env("DEEPGRAM_API_KEY")] = Field(
        default=None, description="key for the voice agent"
    )
    url: str = Field(
        default="wss://agent.deepgram.com/v1/agent/converse", description="voice agent socket"
    )
    listen_model: str = Field(
        default="nova-3", min_length=1, description="model that hears the caller"
    )
    language: str = Field(default="en", min_length=2, description="language the caller speaks")
    think_provider: str = Field(
        default="open_ai", min_length=1, description="whose model thinks, as Deepgram names it"
    )
    think_model: str = Field(default="gpt-4o-mini", min_length=1, description="model that thinks")
    voice: str = Field(default="aura-2-thalia-en", min_length=1, description="the agent's voice")


class BridgeSettings(Section):
    silence_prompt_s: float = Field(
        default=15, gt=0, le=3600, description="seconds of silence after which the caller is asked"
    )
    silence_goodbye_s: float = Field(
        default=45,
        gt=0,
        le=3600,
        description="seconds of silence after which the agent says goodbye",
    )
    max_duration_s: float = Field(
        default=3600, gt=0, le=86_400, description="longest call; the agent says goodbye"
    )
    drain_s: float = Field(
        default=1.5,
        ge=0,
        le=30,
        description="seconds to wait for late words after hang-up; later ones are an addendum",
    )


class TwilioSettings(Section):
    account_sid: Annotated[str | None, Env("TWILIO_ACCOUNT_SID")] = Field(
        default=None, description="account"
    )
    auth_token: Annotated[SecretStr | None, Env("TWILIO_AUTH_TOKEN")] = Field(
        default=None, description="token; also checks signatures"
    )
    phone_number: Annotated[str | None, Env("TWILIO_PHONE_NUMBER")] = Field(
        default=None, description="number for outgoing calls and SMS"
    )
    api_url: str = Field(default="https://api.twilio.com", description="REST address")


class TelnyxSettings(Section):
    api_key: Annotated[SecretStr | None, Env("TELNYX_API_KEY")] = Field(
        default=None, description="key"
    )
    public_key: Annotated[str | None, Env("TELNYX_PUBLIC_KEY")] = Field(
        default=None, description="key that checks webhook signatures"
    )
    phone_number: Annotated[str | None, Env("TELNYX_PHONE_NUMBER")] = Field(
        default=None, description="number for SMS"
    )
    api_url: str = Field(default="https://api.telnyx.com", description="REST address")
    voice: str = Field(
        default="AWS.Polly.Joanna-Neural",
        description="the voice that speaks for the receptionist, as Telnyx names it",
    )
    language: str = Field(default="en-US", description="the language it speaks and hears")


class RecordingsSettings(Section):
    enabled: bool = Field(
        default=False,
        description="record calls at the carrier and keep the audio; the law may want callers told",
    )
    max_bytes: int = Field(
        default=256 * 1024 * 1024, ge=1, description="larger recordings are not fetched"
    )
    transcribe: bool = Field(
        default=False,
        description="have recordings transcribed by OpenAI, beside the transcript of the call",
    )


class ElevenLabsSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("ELEVENLABS_WEBHOOK_SECRET")] = Field(
        default=None, description="checks webhook signatures"
    )
    agents: Words = Field(
        default=(),
        description="ids of the agents whose calls are ours (all of the workspace's when empty)",
    )


class VapiSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("VAPI_WEBHOOK_SECRET")] = Field(
        default=None, description="checks webhooks"
    )


class RetellSettings(Section):
    api_key: Annotated[SecretStr | None, Env("RETELL_API_KEY")] = Field(
        default=None, description="checks webhook signatures"
    )


class BlandSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("BLAND_WEBHOOK_SECRET")] = Field(
        default=None, description="checks webhook signatures"
    )


def _split_command(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


_TRUSTS = ("verified", "known", "unknown")


_KINDS = ("issue", "task", "reminder", "note", "message", "booking", "other")


SINKS = ("tasks", "people", "github", "webhook", "email", "message", "mcp", "agent")


def _check_policy(policy: dict[str, str]) -> dict[str, str]:
    for name in policy:
        trust, dot, kind = name.partition(".")
        if trust not in _TRUSTS or (dot and kind not in _KINDS):
            raise ValueError(
                f"{name!r} is not TRUST or TRUST.KIND ({', '.join(_TRUSTS)}; {', '.join(_KINDS)})"
            )
    return policy


def _check_sinks(names: str) -> str:
    for name in re.split(r"\s*\+\s*", names) if names else ():
        if name not in SINKS:
            raise ValueError(f"{name!r} is not one of {', '.join(SINKS)}")
    return names.replace(" ", "")


def _check_routes(routes: dict[str, str]) -> dict[str, str]:
    for kind in routes:
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is not one of {', '.join(_KINDS)}")
    return {kind: _check_sinks(names) for kind, names in routes.items()}


Command = Annotated[tuple[str, ...], BeforeValidator(_split_command)]


SinkNames = Annotated[str, AfterValidator(_check_sinks)]


Policy = Annotated[
    dict[str, Literal["do", "hold", "refuse"]],
    BeforeValidator(parse_pairs),
    AfterValidator(_check_policy),
]


Routes = Annotated[dict[str, str], BeforeValidator(parse_pairs), AfterValidator(_check_routes)]


class WorkSettings(Section):
    enabled: bool = Field(
        default=True,
        description="whether what was asked for is done once the reconnect window has passed",
    )
    dry_run: bool = Field(
        default=False, description="everything is held, with what would have been done"
    )
    trusted: Words = Field(
        default=(),
        description="numbers that count as known, and as verified when the carrier vouches "
        "for them",
    )
    passcode: SecretStr | None = Field(
        default=None, min_length=4, description="spoken words or digits that make a caller verified"
    )
    passcode_tries: int = Field(
        default=3,
        ge=1,
        le=10,
        description="wrong passcodes in a day before a caller's no longer count",
    )
    policy: Policy = Field(
        default={},
        description="`do`, `hold` or `refuse` by `TRUST.KIND` or `TRUST`, e.g. `unknown.issue=do`",
    )
    routes: Routes = Field(
        default={},
        description=(
            "which sinks a kind goes to, e.g. `issue=github+webhook`; by what is configured "
            "if unset"
        ),
    )
    daily_limit: int = Field(
        default=20, ge=0, description="requests of one caller in a day; more are held"
    )
    hold_days: int = Field(
        default=30, ge=1, description="how long something waits for approval before it expires"
    )
    notice: SinkNames = Field(
        default="", description="the sink that tells the owner of each conversation"
    )
    reminders: SinkNames = Field(default="", description="the sink that reminds of what is due")
    reminder_hour: int = Field(
        default=9,
        ge=0,
        le=23,
        description="the hour of the day at which something due that day is reminded of",
    )


class GitHubSettings(Section):
    token: Annotated[SecretStr | None, Env("GITHUB_TOKEN")] = Field(
        default=None, description="token that may open issues"
    )
    repository: str | None = Field(
        default=None,
        pattern=r"^[\w.-]+/[\w.-]+$",
        description="where issues are opened, `owner/name`",
    )
    api_url: str = Field(default="https://api.github.com", description="REST address")
    labels: Words = Field(default=(), description="labels of the issues opened")


class WebhookSettings(Section):
    url: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="where follow-ups are posted"
    )
    secret: SecretStr | None = Field(
        default=None, description="signs them (Standard Webhooks, `whsec_…`)"
    )


class EmailSettings(Section):
    host: str | None = Field(default=None, description="SMTP server")
    port: int = Field(default=587, ge=1, le=65535, description="SMTP port")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="how the connection is protected"
    )
    username: str | None = Field(default=None, description="SMTP user")
    password: SecretStr | None = Field(default=None, description="SMTP password")
    sender: str | None = Field(default=None, description="the From address")
    to: str | None = Field(
        default=None, description="the owner's address; nothing is sent to one that was only spoken"
    )


class MessageSettings(Section):
    carrier: Literal["twilio", "telnyx"] | None = Field(
        default=None, description="who sends text messages; by the keys present if unset"
    )
    sender: str | None = Field(
        default=None, description="the number they come from; `twilio.phone_number` if unset"
    )


class McpSettings(Section):
    command: Command = Field(default=(), description="a Model Context Protocol server to start")
    url: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="one that is running"
    )
    tool: str | None = Field(default=None, description="its tool that takes requests")
    timeout_s: float = Field(
        default=60, gt=0, le=3600, description="how long one use of the tool may take"
    )


class AgentSettings(Section):
    command: Command = Field(
        default=(),
        description="a command that does requests: JSON on standard input, results as JSON lines",
    )
    per: Literal["conversation", "request"] = Field(
        default="conversation",
        description="what it is run for: once for all requests of a conversation, or for each "
        "request",
    )
    timeout_s: float = Field(default=600, gt=0, le=86_400, description="how long it may run")
    folder: Path | None = Field(
        default=None, description="where it runs; a folder of its own in the home if unset"
    )
    environment: Words = Field(
        default=(),
        description="names of the environment variables it is given; no others but PATH, HOME "
        "and LANG",
    )
