"""What OpenAI Realtime takes from its client: the names of the general release; those of the
beta are refused, as in truth.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _RealtimeForm(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Event(_RealtimeForm):
    event_id: str | None = None


class _Pcm(_RealtimeForm):
    type: Literal["audio/pcm"]
    rate: Literal[24000] | None = None


class _G711(_RealtimeForm):
    type: Literal["audio/pcmu", "audio/pcma"]


Format = Annotated[_Pcm | _G711, Field(discriminator="type")]


class _Transcription(_RealtimeForm):
    model: str | None = None
    language: str | None = None
    prompt: str | None = None


class _TurnDetection(_RealtimeForm):
    type: Literal["server_vad", "semantic_vad"]
    threshold: float | None = None
    prefix_padding_ms: int | None = None
    silence_duration_ms: int | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None
    idle_timeout_ms: int | None = None
    eagerness: Literal["low", "medium", "high", "auto"] | None = None


class _RealtimeInput(_RealtimeForm):
    format: Format | None = None
    transcription: _Transcription | None = None
    turn_detection: _TurnDetection | None = None
    noise_reduction: dict[str, Any] | None = None


class _RealtimeOutput(_RealtimeForm):
    format: Format | None = None
    voice: str | dict[str, str] | None = None
    speed: float | None = None


class _RealtimeAudio(_RealtimeForm):
    input: _RealtimeInput | None = None
    output: _RealtimeOutput | None = None


class _Tool(_RealtimeForm):
    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class RealtimeSettings(_RealtimeForm):
    type: Literal["realtime"]
    model: str | None = None
    instructions: str | None = None
    output_modalities: (
        Annotated[list[Literal["audio", "text"]], Field(min_length=1, max_length=1)] | None
    ) = None
    audio: _RealtimeAudio | None = None
    tools: list[_Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    max_output_tokens: int | Literal["inf"] | None = None
    include: list[str] | None = None


class SessionUpdate(_Event):
    type: Literal["session.update"]
    session: RealtimeSettings


class Append(_Event):
    type: Literal["input_audio_buffer.append"]
    audio: str


class Commit(_Event):
    type: Literal["input_audio_buffer.commit", "input_audio_buffer.clear"]


class _Item(_RealtimeForm):
    id: str | None = None
    type: Literal["message", "function_call", "function_call_output"]
    role: Literal["user", "assistant", "system"] | None = None
    content: list[dict[str, Any]] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | None = None
    status: str | None = None


class CreateItem(_Event):
    type: Literal["conversation.item.create"]
    item: _Item
    previous_item_id: str | None = None


class Truncate(_Event):
    type: Literal["conversation.item.truncate"]
    item_id: str
    content_index: int
    audio_end_ms: int = Field(ge=0)


class CreateResponse(_Event):
    type: Literal["response.create"]
    response: dict[str, Any] | None = None


class CancelResponse(_Event):
    type: Literal["response.cancel"]
    response_id: str | None = None


CLIENT_EVENTS: dict[str, type[BaseModel]] = {
    "session.update": SessionUpdate,
    "input_audio_buffer.append": Append,
    "input_audio_buffer.commit": Commit,
    "input_audio_buffer.clear": Commit,
    "conversation.item.create": CreateItem,
    "conversation.item.truncate": Truncate,
    "response.create": CreateResponse,
    "response.cancel": CancelResponse,
}
