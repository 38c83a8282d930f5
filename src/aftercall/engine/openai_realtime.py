"""OpenAI Realtime: JSON only, audio in base64, named items.

The server detects an interruption and cancels its answer. The rest of the cancelled item is
dropped here, and the item is truncated to what was heard: otherwise the model believes that it
said all of it.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from urllib.parse import urlencode, urlsplit, urlunsplit

from aftercall.engine.voice import (
    AgentAudio,
    AgentDone,
    AgentText,
    CallerBegan,
    CallerSaid,
    CallerUnclear,
    EngineOpening,
    Tool,
    ToolCall,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import EngineLost, EngineRefused
from aftercall.log import get_logger
from aftercall.model.calls import Turn
from aftercall.model.json_fields import Json
from aftercall.settings.providers import OpenAISettings, make_key_headers
from aftercall.sockets.client import EngineSocket, clean_code, parse_message, text_of
from aftercall.sockets.mailbox import Handler, Work, handle_each
from aftercall.speech.sound import BYTES_PER_MS

NAME = "OpenAI Realtime"
API = "https://api.openai.com/v1"
MAX_TRACKED_SPEECHES = 8  # no carrier has more of them unplayed
_PCMU = {"type": "audio/pcmu"}

log = get_logger("openai")


class OpenAIRealtime:
    """Opens sessions with OpenAI Realtime."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings

    async def connect(
        self, opening: EngineOpening, tools: Sequence[Tool]
    ) -> VoiceSession:
        headers = make_key_headers("openai", self._settings.api_key)
        socket = await EngineSocket.open(socket_url(self._settings), headers, NAME)
        try:
            _check_accepted(await socket.receive_json("session.created", "error"))
            socket.send_json(make_update(self._settings, opening, tools))
            _check_accepted(await socket.receive_json("session.updated", "error"))
            for turn in opening.history:
                socket.send_json(_history_item(turn))
            socket.send_json(_create_response(opening.greeting))
        except BaseException:
            socket.abort()
            raise
        return RealtimeSession(socket)


class RealtimeSession:
    """One call with OpenAI Realtime."""

    def __init__(self, socket: EngineSocket) -> None:
        self._socket = socket
        self._sent: dict[str, int] = {}
        self._speaking: str | None = None
        self._void: str | None = None
        self._unanswered: set[str] = set()

    async def run(self, on_event: Handler[VoiceEvent]) -> None:
        def handle(raw: str | bytes) -> Work | None:
            message = parse_message(raw)
            if message["type"] == "response.output_audio.delta":
                audio = self._read_audio(message)
                return on_event(audio) if audio else None
            return handle_each(tuple(self._read(message)), on_event)

        await self._socket.deliver(handle)

    def send_audio(self, payload: bytes) -> None:
        if self._socket.has_room:
            audio = b64encode(payload).decode("ascii")
            self._socket.send(
                f'{{"type":"input_audio_buffer.append","audio":"{audio}"}}'
            )

    async def truncate_speech(self, speech: str, heard_ms: int) -> None:
        """Never past the length that was sent: the server would refuse and keep all of it."""
        length_ms = self._sent.get(speech, 0) // BYTES_PER_MS
        if heard_ms < length_ms:
            cut = {
                "item_id": speech,
                "content_index": 0,
                "audio_end_ms": max(0, heard_ms),
            }
            self._socket.send_json({"type": "conversation.item.truncate", **cut})

    async def say(self, text: str) -> None:
        self._socket.send_json(_create_response(text))

    async def answer_tool(self, call: ToolCall, answer: str) -> None:
        """The model continues when all the tools it called have answered."""
        item = {"type": "function_call_output", "call_id": call.id, "output": answer}
        self._socket.send_json({"type": "conversation.item.create", "item": item})
        self._unanswered.discard(call.id)
        if not self._unanswered:
            self._socket.send('{"type":"response.create"}')

    async def keep_alive(self) -> None:
        """The pings of the websocket are enough."""

    async def close(self) -> None:
        await self._socket.close()

    def _read_audio(self, message: Json) -> AgentAudio | None:
        speech = text_of(message.get("item_id"))
        if speech == self._void:
            return None
        try:
            payload = b64decode(text_of(message.get("delta")), validate=True)
        except ValueError:
            return None
        self._speaking = speech
        self._sent[speech] = self._sent.get(speech, 0) + len(payload)
        while len(self._sent) > MAX_TRACKED_SPEECHES:
            del self._sent[next(iter(self._sent))]
        return AgentAudio(speech, payload) if payload else None

    def _read(self, message: Json) -> Iterator[VoiceEvent]:
        item = text_of(message.get("item_id"))
        match message["type"]:
            case "input_audio_buffer.speech_started":
                self._void, self._speaking = self._speaking, None
                yield CallerBegan(item)
            case "conversation.item.input_audio_transcription.completed":
                text = text_of(message.get("transcript")).strip()
                yield CallerSaid(item, text) if text else CallerUnclear(item)
            case "conversation.item.input_audio_transcription.failed":
                yield CallerUnclear(item)
            case "response.output_audio_transcript.delta" if item != self._void:
                yield AgentText(item, text_of(message.get("delta")))
            case "response.output_audio.done" if item != self._void:
                self._speaking = None
                yield AgentDone(item)
            case "response.output_item.done":
                yield from self._read_call(message.get("item"))
            case "response.done":
                _check_response(message.get("response"))
            case "error":
                log.warning("the engine warns", engine=NAME, warning=_code_of(message))

    def _read_call(self, item: object) -> Iterator[ToolCall]:
        """Only completed calls: an interrupted one has its arguments cut off."""
        if (
            isinstance(item, dict)
            and item.get("type") == "function_call"
            and item.get("status") == "completed"
        ):
            call = ToolCall(
                text_of(item.get("call_id")),
                text_of(item.get("name")),
                text_of(item.get("arguments")),
            )
            self._unanswered.add(call.id)
            yield call


def socket_url(settings: OpenAISettings) -> str:
    parts = urlsplit(settings.base_url or API)
    scheme = {"https": "wss", "http": "ws"}.get(parts.scheme, parts.scheme)
    path = f"{parts.path.rstrip('/')}/realtime"
    query = urlencode({"model": settings.realtime_model})
    return urlunsplit((scheme, parts.netloc, path, query, ""))


def make_update(
    settings: OpenAISettings, opening: EngineOpening, tools: Sequence[Tool]
) -> Json:
    """The session as the engine is told of it when the call begins."""
    detection = {
        "type": "server_vad",
        "create_response": True,
        "interrupt_response": True,
    }
    listening = {
        "format": _PCMU,
        "transcription": {"model": settings.transcription_model},
        "turn_detection": detection,
    }
    functions = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
        }
        for tool in tools
    ]
    session = {
        "type": "realtime",
        "instructions": opening.instructions,
        "output_modalities": ["audio"],
        "audio": {
            "input": listening,
            "output": {"format": _PCMU, "voice": settings.voice},
        },
        "tools": functions,
        "tool_choice": "auto",
    }
    return {"type": "session.update", "session": session}


def _create_response(text: str) -> Json:
    return {
        "type": "response.create",
        "response": {"instructions": f"Say exactly this and nothing else: {text}"},
    }


def _history_item(turn: Turn) -> Json:
    role, kind = (
        ("user", "input_text")
        if turn.speaker == "caller"
        else ("assistant", "output_text")
    )
    item = {
        "type": "message",
        "role": role,
        "content": [{"type": kind, "text": turn.text}],
    }
    return {"type": "conversation.item.create", "item": item}


def _check_accepted(message: Json) -> None:
    if message["type"] == "error":
        raise EngineRefused(f"{NAME} reported {_code_of(message)}")


def _check_response(response: object) -> None:
    """A failed answer leaves the caller in silence, so it counts as a lost engine."""
    if isinstance(response, dict) and response.get("status") == "failed":
        raise EngineLost(f"{NAME} could not answer")


def _code_of(message: Json) -> str:
    """The message beside the code may hold speech and is not logged."""
    given = message.get("error")
    error: Json = given if isinstance(given, dict) else {}
    return clean_code(error.get("code") or error.get("type"), "error")
