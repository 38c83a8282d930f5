"""Deepgram's Voice Agent: JSON messages and raw audio on one socket.

The first message is Settings; a field that Deepgram does not know ends the session. Deepgram
names no speeches and no turns, so they are counted here. After an interruption the rest of the
old speech is dropped until the next text: an interrupted speech may never report its end.
"""

from collections.abc import Iterator, Sequence

from aftercall.engine.voice import (
    AgentAudio,
    AgentDone,
    AgentText,
    CallerBegan,
    CallerSaid,
    EngineOpening,
    Tool,
    ToolCall,
    ToolCancelled,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import EngineLost, EngineRefused
from aftercall.log import get_logger
from aftercall.model.json_fields import Json
from aftercall.settings.providers import DeepgramSettings
from aftercall.sockets.client import EngineSocket, clean_code, parse_message, text_of
from aftercall.sockets.mailbox import Handler, Work, handle_each

NAME = "Deepgram"
MAX_PROMPT_CHARS = 25_000
_FORMAT = {"encoding": "mulaw", "sample_rate": 8000}
_OUR_FAULT = frozenset(
    {"INVALID_SETTINGS", "UNPARSABLE_CLIENT_MESSAGE", "USER_AUDIO_FORMAT"}
)

log = get_logger("deepgram")


class DeepgramAgent:
    def __init__(self, settings: DeepgramSettings) -> None:
        self._settings = settings

    async def connect(
        self, opening: EngineOpening, tools: Sequence[Tool]
    ) -> VoiceSession:
        key = (
            self._settings.api_key.get_secret_value() if self._settings.api_key else ""
        )
        socket = await EngineSocket.open(
            self._settings.url, {"Authorization": f"Token {key}"}, NAME
        )
        try:
            _check_accepted(await socket.receive_json("Welcome", "Error"))
            socket.send_json(make_settings(self._settings, opening, tools))
            _check_accepted(await socket.receive_json("SettingsApplied", "Error"))
        except BaseException:
            socket.abort()
            raise
        return DeepgramSession(socket)


class DeepgramSession:
    """One call with Deepgram's voice agent."""

    def __init__(self, socket: EngineSocket) -> None:
        self._socket = socket
        self._speeches = 0
        self._speech: str | None = None
        self._has_text = False
        self._is_void = False
        self._turns = 0
        self._turn: str | None = None

    async def run(self, on_event: Handler[VoiceEvent]) -> None:
        def handle(message: str | bytes) -> Work | None:
            if isinstance(message, str):
                return handle_each(tuple(self._read(parse_message(message))), on_event)
            if self._is_void or not message:
                return None
            return on_event(AgentAudio(self._current_speech(), message))

        await self._socket.deliver(handle)

    def send_audio(self, payload: bytes) -> None:
        if self._socket.has_room:
            self._socket.send(payload)

    async def truncate_speech(self, speech: str, heard_ms: int) -> None:
        """Deepgram tracks by itself what it stopped saying."""

    async def say(self, text: str) -> None:
        self._is_void = False
        self._socket.send_json({"type": "InjectAgentMessage", "message": text})

    async def answer_tool(self, call: ToolCall, answer: str) -> None:
        self._socket.send_json(
            {
                "type": "FunctionCallResponse",
                "id": call.id,
                "name": call.name,
                "content": answer,
            }
        )

    async def keep_alive(self) -> None:
        self._socket.send('{"type":"KeepAlive"}')

    async def close(self) -> None:
        await self._socket.close()

    def _read(self, message: Json) -> Iterator[VoiceEvent]:
        match message["type"]:
            case "ConversationText":
                yield from self._read_text(
                    text_of(message.get("role")), text_of(message.get("content"))
                )
            case "UserStartedSpeaking":
                self._is_void = self._speech is not None
                self._speech = None
                yield CallerBegan(self._current_turn())
            case "AgentStartedSpeaking" | "AgentThinking":
                self._is_void = False
            case "AgentAudioDone":
                if self._speech is not None:
                    yield AgentDone(self._speech)
                self._speech = None
                self._is_void = False
            case "FunctionCallRequest":
                yield from _read_calls(message)
            case "FunctionCallCancelled":
                yield from (
                    ToolCancelled(text_of(item.get("id")))
                    for item in _functions(message)
                )
            case "Error":
                raise _lost(message)
            case "Warning" | "InjectionRefused":
                log.warning("the engine warns", engine=NAME, warning=_code_of(message))

    def _read_text(self, role: str, text: str) -> Iterator[VoiceEvent]:
        self._is_void = False
        if role == "user" and text.strip():
            yield CallerSaid(self._current_turn(), text)
            self._turn = None
        elif role == "assistant" and text.strip():
            speech = self._current_speech()
            yield AgentText(speech, f" {text}" if self._has_text else text)
            self._has_text = True

    def _current_speech(self) -> str:
        if self._speech is None:
            self._speeches += 1
            self._speech = f"s{self._speeches}"
            self._has_text = False
        return self._speech

    def _current_turn(self) -> str:
        if self._turn is None:
            self._turns += 1
            self._turn = f"t{self._turns}"
        return self._turn


def make_settings(
    settings: DeepgramSettings, opening: EngineOpening, tools: Sequence[Tool]
) -> Json:
    """The first message. A field that the server does not know would end the session."""
    functions = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
        }
        for tool in tools
    ]
    agent: Json = {
        "greeting": opening.greeting,
        "listen": {"provider": _listen_provider(settings)},
        "think": {
            "provider": {
                "type": settings.think_provider,
                "model": settings.think_model,
            },
            "prompt": opening.instructions[:MAX_PROMPT_CHARS],
            "functions": functions,
        },
        "speak": {"provider": {"type": "deepgram", "model": settings.voice}},
    }
    if opening.history:
        roles = {"caller": "user", "agent": "assistant"}
        messages = [
            {"type": "History", "role": roles[turn.speaker], "content": turn.text}
            for turn in opening.history
        ]
        agent["context"] = {"messages": messages}
    return {
        "type": "Settings",
        "audio": {"input": _FORMAT, "output": _FORMAT | {"container": "none"}},
        "agent": agent,
    }


def _listen_provider(settings: DeepgramSettings) -> dict[str, str]:
    """Flux models detect the end of a turn and have the language in their name."""
    provider = {"type": "deepgram", "model": settings.listen_model}
    if settings.listen_model.startswith("flux"):
        return provider | {"version": "v2"}
    return provider | {"version": "v1", "language": settings.language}


def _read_calls(message: Json) -> Iterator[ToolCall]:
    for item in _functions(message):
        if item.get("client_side", True):
            yield ToolCall(
                text_of(item.get("id")),
                text_of(item.get("name")),
                text_of(item.get("arguments")),
            )


def _functions(message: Json) -> list[Json]:
    functions = message.get("functions")
    if not isinstance(functions, list):
        return []
    return [item for item in functions if isinstance(item, dict)]


def _lost(message: Json) -> EngineLost:
    """Every error ends the session. Only its code is logged: the description may hold speech."""
    code = _code_of(message)
    kind = EngineRefused if code in _OUR_FAULT else EngineLost
    return kind(f"{NAME} reported {code}")


def _check_accepted(message: Json) -> None:
    if message["type"] == "Error":
        raise _lost(message)


def _code_of(message: Json) -> str:
    return clean_code(message.get("code"), message["type"])
