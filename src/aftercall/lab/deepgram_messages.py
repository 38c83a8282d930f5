"""What a Deepgram Voice Agent takes from its client: strict, for the real one ends a session
over a field it does not know.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Provider(BaseModel):
    """Providers have fields of their own beside these."""

    model_config = ConfigDict(extra="allow", frozen=True)
    type: str
    model: str | None = None


class _Endpoint(_Message):
    url: str
    method: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)


class Function(_Message):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    endpoint: _Endpoint | None = None
    defer_until_eot: bool | None = None


class _Think(_Message):
    provider: _Provider
    endpoint: _Endpoint | None = None
    prompt: str | None = None
    context_length: int | Literal["max"] | None = None
    functions: list[Function] = Field(default_factory=list)


class _Speak(_Message):
    provider: _Provider
    endpoint: _Endpoint | None = None


class _Listen(_Message):
    provider: _Provider


class _CalledFunction(_Message):
    id: str
    name: str
    client_side: bool
    arguments: str
    response: str


class _History(_Message):
    type: Literal["History"]
    role: Literal["user", "assistant"] | None = None
    content: str | None = None
    function_calls: list[_CalledFunction] | None = None


class _Context(_Message):
    messages: list[_History] = Field(default_factory=list)


class _Agent(_Message):
    language: str | None = None
    context: _Context | None = None
    listen: _Listen | None = None
    think: _Think | list[_Think] | None = None
    speak: _Speak | list[_Speak] | None = None
    greeting: str | None = None


class _AgentInput(_Message):
    encoding: Literal[
        "linear16",
        "linear32",
        "flac",
        "alaw",
        "mulaw",
        "amr-nb",
        "amr-wb",
        "opus",
        "ogg-opus",
        "speex",
        "g729",
    ]
    sample_rate: int


class _AgentOutput(_Message):
    encoding: Literal["linear16", "mulaw", "alaw", "mp3", "opus", "flac", "aac"] = "linear16"
    sample_rate: int | None = None
    bitrate: int | None = None
    container: Literal["none", "wav", "ogg"] | None = None


class _AgentAudio(_Message):
    input: _AgentInput | None = None
    output: _AgentOutput | None = None


class AgentSettingsMessage(_Message):
    type: Literal["Settings"]
    tags: list[str] | None = None
    experimental: bool | None = None
    mip_opt_out: bool | None = None
    flags: dict[str, bool] | None = None
    audio: _AgentAudio
    agent: _Agent


class KeepAlive(_Message):
    type: Literal["KeepAlive"]


class UpdatePrompt(_Message):
    type: Literal["UpdatePrompt"]
    prompt: str


class InjectAgentMessage(_Message):
    type: Literal["InjectAgentMessage"]
    message: str
    behavior: Literal["default", "queue", "interrupt"] | None = None


class InjectUserMessage(_Message):
    type: Literal["InjectUserMessage"]
    content: str


class FunctionCallResponse(_Message):
    type: Literal["FunctionCallResponse"]
    id: str | None = None
    name: str
    content: str


CLIENT_MESSAGES: dict[str, type[BaseModel]] = {
    form.__name__: form
    for form in (
        KeepAlive,
        UpdatePrompt,
        InjectAgentMessage,
        InjectUserMessage,
        FunctionCallResponse,
    )
}
