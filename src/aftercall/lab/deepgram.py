"""An emulated Deepgram Voice Agent: refuses what the real one refuses, hears the lab's speech,
and answers by a script.

The forms of client messages are strict: the real one ends a session over an unknown field.
"""

import asyncio
import json
import secrets
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aftercall.lab.engine import (
    CHUNK_BYTES,
    EmulatedEngine,
    EngineBehaviour,
    EngineCall,
    EngineConnection,
    Peer,
    Script,
    ScriptDrop,
    ScriptSay,
    ScriptToolCall,
    to_acts,
)
from aftercall.lab.speech import utter
from aftercall.model.json_fields import Json

CLIENT_TIMEOUT_S = 15.0
POLICY_VIOLATION = 1008


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Provider(BaseModel):
    """Each provider has more fields."""

    model_config = ConfigDict(extra="allow", frozen=True)
    type: str
    model: str | None = None


class _Endpoint(_Message):
    url: str
    method: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)


class _Function(_Message):
    name: str
    description: str | None = None
    parameters: Json | None = None
    endpoint: _Endpoint | None = None
    defer_until_eot: bool | None = None


class _Think(_Message):
    provider: _Provider
    endpoint: _Endpoint | None = None
    prompt: str | None = None
    context_length: int | Literal["max"] | None = None
    functions: list[_Function] = Field(default_factory=list)


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


_InputEncoding = (
    Literal["linear16", "linear32", "flac", "alaw", "mulaw", "amr-nb"]
    | Literal["amr-wb", "opus", "ogg-opus", "speex", "g729"]
)


class _AgentInput(_Message):
    encoding: _InputEncoding
    sample_rate: int


class _AgentOutput(_Message):
    encoding: Literal["linear16", "mulaw", "alaw", "mp3", "opus", "flac", "aac"] = (
        "linear16"
    )
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


_FORMS = (
    KeepAlive,
    UpdatePrompt,
    InjectAgentMessage,
    InjectUserMessage,
    FunctionCallResponse,
)
CLIENT_MESSAGES: dict[str, type[BaseModel]] = {form.__name__: form for form in _FORMS}


class _Refusal(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class DeepgramConnection(EngineConnection):
    """One session of the emulated Deepgram agent."""

    def __init__(
        self, peer: Peer, call: EngineCall, behaviour: EngineBehaviour, script: Script
    ) -> None:
        super().__init__(peer, call, behaviour, script)
        self._answers: dict[str, asyncio.Future[str]] = {}

    async def run(self) -> None:
        await self._send("Welcome", request_id=secrets.token_hex(8))
        try:
            settings = _read_settings(await self._receive())
            self._call.settings = settings.model_dump(mode="json", exclude_none=True)
            await self._send("SettingsApplied")
            if settings.agent.greeting and self.speaks:
                self._reply_task.start(self._say(settings.agent.greeting))
            while True:
                await self._on_message(await self._receive())
        except _Refusal as refusal:
            self._call.error_codes.append(refusal.code)
            await self._send("Error", code=refusal.code, description="refused")
            await self._peer.close(POLICY_VIOLATION)

    async def _receive(self) -> str | bytes:
        try:
            async with asyncio.timeout(CLIENT_TIMEOUT_S):
                return await self._peer.receive()
        except TimeoutError:
            raise _Refusal("CLIENT_MESSAGE_TIMEOUT") from None

    async def _on_message(self, raw: str | bytes) -> None:
        if isinstance(raw, bytes):
            await self.receive_audio(raw)
            return
        message = _parse(raw)
        if message["type"] == "Settings":
            raise _Refusal("SETTINGS_ALREADY_APPLIED")
        is_strict = self._behaviour is EngineBehaviour.STRICT
        if is_strict and message["type"] == "InjectUserMessage":
            # seen on some real sessions
            raise _Refusal("UNPARSABLE_CLIENT_MESSAGE")
        try:
            CLIENT_MESSAGES[message["type"]].model_validate(message)
        except (KeyError, ValidationError):
            raise _Refusal("UNPARSABLE_CLIENT_MESSAGE") from None
        await self._run_message(message)

    async def _run_message(self, message: Json) -> None:
        match message["type"]:
            case "KeepAlive":
                self._call.keep_alives += 1
            case "UpdatePrompt":
                await self._send("PromptUpdated")
            case "InjectAgentMessage":
                await self._inject(message)
            case "InjectUserMessage":
                await self.on_words(message["content"])
            case "FunctionCallResponse":
                answer = self._answers.pop(message.get("id") or "", None)
                if answer is not None:
                    self._call.tool_results.append(
                        (message["name"], message["content"])
                    )
                    answer.set_result(message["content"])

    async def _inject(self, message: Json) -> None:
        may_interrupt = message.get("behavior") == "interrupt"
        if self._detector.is_speech_active or (
            self._reply_task.is_busy and not may_interrupt
        ):
            await self._send("InjectionRefused", message="somebody is talking")
        elif self.speaks:
            self._reply_task.start(self._say(message["message"]))

    async def on_speech_started(self) -> None:
        self._reply_task.stop()
        await self._send("UserStartedSpeaking")

    async def on_words(self, text: str) -> None:
        if not text:
            return
        self._call.heard.append(text)
        await self._send("ConversationText", role="user", content=text)
        if self.speaks:
            self._reply_task.start(self._answer(text))

    async def _answer(self, heard: str) -> None:
        for act in to_acts(self._reply_to(heard)):
            if isinstance(act, ScriptSay):
                await self._say(act.text)
            elif isinstance(act, ScriptToolCall):
                await self._call_tool(act)
            elif isinstance(act, ScriptDrop):
                self._peer.abort()

    async def _call_tool(self, act: ScriptToolCall) -> None:
        call_id = f"fc_{secrets.token_hex(4)}"
        self._answers[call_id] = asyncio.get_running_loop().create_future()
        function = {"id": call_id, "name": act.tool, "client_side": True}
        function["arguments"] = json.dumps(dict(act.arguments))
        await self._send("FunctionCallRequest", functions=[function])
        await self._answers[call_id]

    async def _say(self, text: str) -> None:
        self._call.said.append(text)
        await self._send("ConversationText", role="assistant", content=text)
        audio = utter(text)
        for start in range(0, len(audio), CHUNK_BYTES):
            await self._peer.send(audio[start : start + CHUNK_BYTES])
        await self._send("AgentAudioDone")

    async def _send(self, kind: str, **fields: Any) -> None:
        await self.send_json(type=kind, **fields)


class EmulatedDeepgram(EmulatedEngine):
    path = "/v1/agent/converse"
    scheme = "Token"
    connection_type = DeepgramConnection

    @property
    def url(self) -> str:
        return f"ws://{self.address}{self.path}"


def _read_settings(raw: str | bytes) -> AgentSettingsMessage:
    message = _parse(raw) if isinstance(raw, str) else {"type": ""}
    if message["type"] != "Settings":
        raise _Refusal("NON_SETTINGS_MESSAGE_BEFORE_SETTINGS")
    try:
        return AgentSettingsMessage.model_validate(message)
    except ValidationError as error:
        unknown = any(item["type"] == "extra_forbidden" for item in error.errors())
        raise _Refusal(
            "UNPARSABLE_CLIENT_MESSAGE" if unknown else "INVALID_SETTINGS"
        ) from None


def _parse(raw: str) -> Json:
    try:
        message = json.loads(raw)
    except ValueError:
        raise _Refusal("UNPARSABLE_CLIENT_MESSAGE") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise _Refusal("UNPARSABLE_CLIENT_MESSAGE")
    return message
