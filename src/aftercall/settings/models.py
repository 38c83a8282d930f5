"""Who reads calls, and where documents are kept elsewhere."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from aftercall.settings.section import Env, Section


class ReadingSettings(Section):
    timeout_s: float = Field(default=60, gt=0, le=600, description="how long the model may take for one answer")
    max_tokens: int = Field(default=4096, ge=64, le=64_000, description="the longest answer of the model")
    part_chars: int = Field(default=60_000, ge=500, description="longer transcripts are read in parts of this many characters")


class AnthropicSettings(Section):
    api_key: Annotated[SecretStr | None, Env("ANTHROPIC_API_KEY")] = Field(default=None, description="key for Claude")
    base_url: Annotated[str | None, Env("ANTHROPIC_BASE_URL")] = Field(default=None, description="another address of the API")


class OpenAISettings(Section):
    api_key: Annotated[SecretStr | None, Env("OPENAI_API_KEY")] = Field(default=None, description="key for OpenAI, models and Realtime")
    base_url: Annotated[str | None, Env("OPENAI_BASE_URL")] = Field(
        default=None, description="another address of the API; the server of `openai-compatible:`"
    )
    realtime_model: str = Field(default="gpt-realtime", min_length=1, description="model that speaks on the phone")
    transcription_model: str = Field(default="gpt-4o-transcribe", min_length=1, description="model that writes down the caller's words")
    voice: str = Field(default="marin", min_length=1, description="the agent's voice")


class XaiSettings(Section):
    api_key: Annotated[SecretStr | None, Env("XAI_API_KEY")] = Field(default=None, description="key for Grok")
    base_url: Annotated[str | None, Env("XAI_BASE_URL")] = Field(default=None, description="another address of the API")


class RememSettings(Section):
    api_key: Annotated[SecretStr | None, Env("REMEM_API_KEY")] = Field(default=None, description="key for remote document memory")
    api_url: Annotated[str | None, Env("REMEM_API_URL")] = Field(
        default=None, pattern=r"^https?://[^\s/]+.*$", description="address of remote document memory; `https://api.remem.io` if unset"
    )
    dialect: Literal["ingest", "documents"] = Field(
        default="ingest", description="`ingest` as its clients write, `documents` as its first description has it"
    )
    namespace: str | None = Field(
        default=None, description="namespace to write into, with `{caller}` one for each caller; the key's own if unset"
    )
