"""Settings of outside services: object storage, models, carriers, platforms, sinks, tests."""

import re
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    model_validator,
)

from aftercall.settings.fields import (
    Env,
    SecretUrl,
    Section,
    Token,
    Words,
    parse_pairs,
)


def _split_command(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


Command = Annotated[tuple[str, ...], BeforeValidator(_split_command)]


class ArchiveSettings(Section):
    url: str = Field(
        default="",
        pattern=r"^(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=-]+)*/?)?$",
        description=(
            "where sealed calls and recordings lie: `s3://bucket/prefix`; folders of the "
            "home if empty"
        ),
    )
    endpoint: Annotated[str | None, Env("AWS_ENDPOINT_URL")] = Field(
        default=None,
        pattern=r"^https?://[^\s/]+/?$",
        description="address of an S3-compatible service; Amazon's if unset",
    )
    region: Annotated[str, Env("AWS_REGION")] = Field(
        default="us-east-1", min_length=1, description="region of the bucket"
    )
    access_key_id: Annotated[str | None, Env("AWS_ACCESS_KEY_ID")] = Field(
        default=None, description="key of the bucket; the machine's role if unset"
    )
    secret_access_key: Annotated[SecretStr | None, Env("AWS_SECRET_ACCESS_KEY")] = (
        Field(default=None, description="secret of that key")
    )
    session_token: Annotated[SecretStr | None, Env("AWS_SESSION_TOKEN")] = Field(
        default=None, description="token of a key that expires"
    )
    encrypt: bool = Field(
        default=False,
        description=(
            "encrypt new archive files and recordings with the secret key; "
            "`aftercall archive cat` prints them"
        ),
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
        default=None,
        description="another address of the API; also the server of `openai-compatible:`",
    )
    realtime_model: str = Field(
        default="gpt-realtime",
        min_length=1,
        description="model that speaks on the phone",
    )
    transcription_model: str = Field(
        default="gpt-4o-transcribe",
        min_length=1,
        description="model that transcribes the caller",
    )
    voice: str = Field(default="marin", min_length=1, description="the agent's voice")


class XaiSettings(Section):
    api_key: Annotated[SecretStr | None, Env("XAI_API_KEY")] = Field(
        default=None, description="key for Grok"
    )
    base_url: Annotated[str | None, Env("XAI_BASE_URL")] = Field(
        default=None, description="another address of the API"
    )


class DeepgramSettings(Section):
    api_key: Annotated[SecretStr | None, Env("DEEPGRAM_API_KEY")] = Field(
        default=None, description="key for the voice agent"
    )
    url: str = Field(
        default="wss://agent.deepgram.com/v1/agent/converse",
        description="voice agent socket",
    )
    listen_model: str = Field(
        default="nova-3", min_length=1, description="model that hears the caller"
    )
    language: str = Field(
        default="en", min_length=2, description="language the caller speaks"
    )
    think_provider: str = Field(
        default="open_ai",
        min_length=1,
        description="provider of the model that thinks, as Deepgram names it",
    )
    think_model: str = Field(
        default="gpt-4o-mini", min_length=1, description="model that thinks"
    )
    voice: str = Field(
        default="aura-2-thalia-en", min_length=1, description="the agent's voice"
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
        description="`ingest` as its clients write, `documents` as its first description says",
    )
    namespace: str | None = Field(
        default=None,
        description="namespace to write to, `{caller}` for one per caller; the key's if unset",
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
        description="voice of the receptionist, as Telnyx names it",
    )
    language: str = Field(
        default="en-US", description="language it speaks and understands"
    )


class ElevenLabsSettings(Section):
    api_key: Annotated[SecretStr | None, Env("ELEVENLABS_API_KEY")] = Field(
        default=None, description="key; `reconcile` lists calls with it"
    )
    api_url: str = Field(
        default="https://api.elevenlabs.io", description="REST address"
    )
    webhook_secret: Annotated[SecretStr | None, Env("ELEVENLABS_WEBHOOK_SECRET")] = (
        Field(default=None, description="checks webhook signatures")
    )
    start_secret: Annotated[Token | None, Env("ELEVENLABS_START_SECRET")] = Field(
        default=None,
        description="bearer token of the start of a conversation and of tools",
    )
    agents: Words = Field(
        default=(),
        description="ids of the agents whose calls to store; all of the account if empty",
    )


class VapiSettings(Section):
    webhook_secret: Annotated[Token | None, Env("VAPI_WEBHOOK_SECRET")] = Field(
        default=None, description="checks webhooks"
    )
    assistant_id: Annotated[str | None, Env("VAPI_ASSISTANT_ID")] = Field(
        default=None, description="assistant that takes a call that asks for one"
    )
    api_key: Annotated[SecretStr | None, Env("VAPI_API_KEY")] = Field(
        default=None, description="private key; `reconcile` lists calls with it"
    )
    api_url: str = Field(default="https://api.vapi.ai", description="REST address")


class RetellSettings(Section):
    api_key: Annotated[SecretStr | None, Env("RETELL_API_KEY")] = Field(
        default=None, description="checks webhook signatures; lists calls"
    )
    api_url: str = Field(default="https://api.retellai.com", description="REST address")


class BlandSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("BLAND_WEBHOOK_SECRET")] = Field(
        default=None, description="checks webhook signatures"
    )
    start_secret: Annotated[Token | None, Env("BLAND_START_SECRET")] = Field(
        default=None, description="bearer token of dynamic data and of tools"
    )
    api_key: Annotated[SecretStr | None, Env("BLAND_API_KEY")] = Field(
        default=None, description="key; `reconcile` lists calls with it"
    )
    api_url: str = Field(default="https://api.bland.ai", description="REST address")


class ReconcileSettings(Section):
    every_minutes: int = Field(
        default=60,
        ge=0,
        le=10_080,
        description="how often a server compares the services' lists of calls; 0 is never",
    )
    days: int = Field(
        default=3, ge=1, le=60, description="how many days back the lists are compared"
    )


class GitHubSettings(Section):
    token: Annotated[SecretStr | None, Env("GITHUB_TOKEN")] = Field(
        default=None, description="token that may open issues"
    )
    repository: str | None = Field(
        default=None,
        pattern=r"^[\w.-]+/[\w.-]+$",
        description="repository for issues, `owner/name`",
    )
    api_url: str = Field(default="https://api.github.com", description="REST address")
    labels: Words = Field(default=(), description="labels of new issues")


class WebhookSettings(Section):
    url: SecretUrl | None = Field(
        default=None, description="where follow-ups are posted"
    )
    secret: SecretStr | None = Field(
        default=None, description="signs the posts (Standard Webhooks, `whsec_…`)"
    )


EventType = Literal[
    "call.sealed",
    "call.summarised",
    "request.created",
    "request.held",
    "request.done",
    "promise.broken",
    "fact.changed",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)


def _check_names(hooks: dict[str, SecretUrl]) -> dict[str, SecretUrl]:
    for name in hooks:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name):
            raise ValueError(f"{name!r} is not a short name in small letters")
    return hooks


def _check_types(only: dict[str, str]) -> dict[str, str]:
    for types in only.values():
        for type_ in types.split("+"):
            if type_ not in EVENT_TYPES:
                raise ValueError(f"{type_!r} is not one of {', '.join(EVENT_TYPES)}")
    return only


class EventSettings(Section):
    keep_days: int = Field(
        default=30, ge=1, le=3650, description="days that the event log is kept"
    )
    webhooks: Annotated[
        dict[str, SecretUrl], BeforeValidator(parse_pairs), AfterValidator(_check_names)
    ] = Field(
        default={},
        description="where events are posted, by a name of yours: `crm=https://…`",
    )
    secrets: Annotated[dict[str, SecretStr], BeforeValidator(parse_pairs)] = Field(
        default={},
        description="signs the posts to each name (Standard Webhooks): `crm=whsec_…`",
    )
    only: Annotated[
        dict[str, str], BeforeValidator(parse_pairs), AfterValidator(_check_types)
    ] = Field(
        default={},
        description="events of a name, if not all: `crm=call.sealed+request.done`",
    )
    allow_private: bool = Field(
        default=False,
        description="post events to addresses in your own network and on this machine too",
    )

    @model_validator(mode="after")
    def _check_secrets(self) -> Self:
        for name in (*self.secrets, *self.only):
            if name not in self.webhooks:
                raise ValueError(f"has no webhook {name!r}, which secrets or only name")
        for name in self.webhooks:
            if name not in self.secrets:
                raise ValueError(
                    f"needs a secret for {name!r}; `openssl rand -base64 32` prints one"
                )
        return self


class EmailSettings(Section):
    host: str | None = Field(default=None, description="SMTP server")
    port: int = Field(default=587, ge=1, le=65535, description="SMTP port")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="encryption of the connection"
    )
    username: str | None = Field(default=None, description="SMTP user")
    password: SecretStr | None = Field(default=None, description="SMTP password")
    sender: str | None = Field(default=None, description="the From address")
    to: str | None = Field(
        default=None, description="the owner's address; spoken addresses are never used"
    )


class MessageSettings(Section):
    carrier: Literal["twilio", "telnyx"] | None = Field(
        default=None,
        description="carrier for text messages; by the keys present if unset",
    )
    sender: str | None = Field(
        default=None,
        description="number that sends text messages; the carrier's `phone_number` if unset",
    )


class McpSettings(Section):
    command: Command = Field(
        default=(), description="a Model Context Protocol server to start"
    )
    url: SecretUrl | None = Field(
        default=None, description="address of a running server"
    )
    tool: str | None = Field(
        default=None, description="the server's tool that takes requests"
    )
    timeout_s: float = Field(
        default=60, gt=0, le=3600, description="time limit for one use of the tool"
    )


class AgentSettings(Section):
    command: Command = Field(
        default=(),
        description="command that does requests: JSON on standard input, results as JSON lines",
    )
    per: Literal["conversation", "request"] = Field(
        default="conversation",
        description="run once for all requests of a conversation, or once for each request",
    )
    timeout_s: float = Field(
        default=600, gt=0, le=86_400, description="time limit of the command"
    )
    folder: Path | None = Field(
        default=None,
        description="working folder; one in the home for each run if unset",
    )
    environment: Words = Field(
        default=(),
        description="environment variables it gets besides PATH, HOME and LANG",
    )


class TesterSettings(Section):
    scenarios: str = Field(
        default="", description="folder of your scenarios; `<home>/scenarios` if unset"
    )
    agents: str = Field(
        default="",
        description="agents that the Tests page may call besides its own, separated by commas",
    )
    allow_numbers: str = Field(
        default="", description="numbers that `test run` may dial, separated by commas"
    )
    spend_limit: float = Field(
        default=5.0, ge=0, description="most that test calls by phone may cost in a day"
    )
    price_per_minute: float = Field(
        default=0.05,
        ge=0,
        description="assumed price of a minute of a test call by phone",
    )
    parallel: int = Field(default=4, ge=1, le=200, description="test calls at a time")
    voice: Literal["", "espeak", "tones", "words"] = Field(
        default="",
        description="the caller's voice; the best installed one if unset; `words` is the lab's",
    )
    redact: bool = Field(
        default=True,
        description="leave names, numbers and dates of birth out of reports",
    )
    port: int = Field(
        default=8089,
        ge=1,
        le=65_535,
        description="port for the carrier's webhooks in `test run`; `public_url` must lead there",
    )
    model: str | None = Field(
        default=None,
        description=(
            "model for played callers and judged criteria, at `openai.base_url`; scripts "
            "and rules if unset"
        ),
    )
    phone_mode: Literal["gather", "media"] = Field(
        default="gather",
        description=(
            "who listens and speaks on phones: `gather` Twilio, `media` the tester "
            "(needs the OpenAI audio API)"
        ),
    )
    whisper: bool = Field(
        default=False,
        description="make a second transcript of phone calls with the OpenAI audio API",
    )


_KEY_HEADERS = {"elevenlabs": "xi-api-key", "bland": "authorization"}


def make_key_headers(service: str, key: SecretStr | None) -> dict[str, str]:
    """The header that carries the key of a carrier or platform; none without a key."""
    if key is None:
        return {}
    if header := _KEY_HEADERS.get(service):
        return {header: key.get_secret_value()}
    return {"Authorization": f"Bearer {key.get_secret_value()}"}
