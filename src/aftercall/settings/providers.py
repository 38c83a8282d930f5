"""Settings of outside services: models, carriers, hosted platforms and sinks."""

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr

from aftercall.settings.fields import Env, SecretUrl, Section, Token, Words


def _split_command(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


Command = Annotated[tuple[str, ...], BeforeValidator(_split_command)]


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
    webhook_secret: Annotated[SecretStr | None, Env("ELEVENLABS_WEBHOOK_SECRET")] = (
        Field(default=None, description="checks webhook signatures")
    )
    start_secret: Annotated[Token | None, Env("ELEVENLABS_START_SECRET")] = Field(
        default=None,
        description="bearer token of the request at the start of a conversation",
    )
    agents: Words = Field(
        default=(),
        description="ids of the agents whose calls to store; all of the account if empty",
    )


class VapiSettings(Section):
    webhook_secret: Annotated[Token | None, Env("VAPI_WEBHOOK_SECRET")] = Field(
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
