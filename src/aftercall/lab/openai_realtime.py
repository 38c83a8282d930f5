"""An emulated OpenAI Realtime server: refuses what the real one refuses, answers by a script.

It has the names of the general release; those of the beta are refused. Instructions of a
response name the words to say after their first colon.
"""

import asyncio
import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aftercall.lab.engine import (
    CHUNK_BYTES,
    Act,
    EmulatedEngine,
    EngineBehaviour,
    EngineCall,
    EngineConnection,
    Peer,
    Script,
    ScriptDrop,
    ScriptSilence,
    ScriptToolCall,
    to_acts,
)
from aftercall.lab.speech import utter
from aftercall.model.json_fields import Json

BYTES_PER_MS = 8


class _RealtimeForm(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Event(_RealtimeForm):
    event_id: str | None = None


class _Pcm(_RealtimeForm):
    type: Literal["audio/pcm"]
    rate: Literal[24000] | None = None


class _G711(_RealtimeForm):
    type: Literal["audio/pcmu", "audio/pcma"]


_Format = Annotated[_Pcm | _G711, Field(discriminator="type")]


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
    format: _Format | None = None
    transcription: _Transcription | None = None
    turn_detection: _TurnDetection | None = None
    noise_reduction: Json | None = None


class _RealtimeOutput(_RealtimeForm):
    format: _Format | None = None
    voice: str | dict[str, str] | None = None
    speed: float | None = None


class _RealtimeAudio(_RealtimeForm):
    input: _RealtimeInput | None = None
    output: _RealtimeOutput | None = None


class _Tool(_RealtimeForm):
    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: Json | None = None


class RealtimeSettings(_RealtimeForm):
    type: Literal["realtime"]
    model: str | None = None
    instructions: str | None = None
    output_modalities: (
        Annotated[list[Literal["audio", "text"]], Field(min_length=1, max_length=1)]
        | None
    ) = None
    audio: _RealtimeAudio | None = None
    tools: list[_Tool] | None = None
    tool_choice: str | Json | None = None
    max_output_tokens: int | Literal["inf"] | None = None
    include: list[str] | None = None


class SessionUpdate(_Event):
    type: Literal["session.update"]
    session: RealtimeSettings


class _Append(_Event):
    type: Literal["input_audio_buffer.append"]
    audio: str


class _Commit(_Event):
    type: Literal["input_audio_buffer.commit", "input_audio_buffer.clear"]


class _Item(_RealtimeForm):
    id: str | None = None
    type: Literal["message", "function_call", "function_call_output"]
    role: Literal["user", "assistant", "system"] | None = None
    content: list[Json] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | None = None
    status: str | None = None


class _CreateItem(_Event):
    type: Literal["conversation.item.create"]
    item: _Item
    previous_item_id: str | None = None


class _Truncate(_Event):
    type: Literal["conversation.item.truncate"]
    item_id: str
    content_index: int
    audio_end_ms: int = Field(ge=0)


class _CreateResponse(_Event):
    type: Literal["response.create"]
    response: Json | None = None


class _CancelResponse(_Event):
    type: Literal["response.cancel"]
    response_id: str | None = None


CLIENT_EVENTS: dict[str, type[BaseModel]] = {
    "session.update": SessionUpdate,
    "input_audio_buffer.append": _Append,
    "input_audio_buffer.commit": _Commit,
    "input_audio_buffer.clear": _Commit,
    "conversation.item.create": _CreateItem,
    "conversation.item.truncate": _Truncate,
    "response.create": _CreateResponse,
    "response.cancel": _CancelResponse,
}


class RealtimeConnection(EngineConnection):
    """One session of the emulated OpenAI Realtime; it refuses what the real one refuses."""

    def __init__(
        self, peer: Peer, call: EngineCall, behaviour: EngineBehaviour, script: Script
    ) -> None:
        super().__init__(peer, call, behaviour, script)
        self._transcribes_late = behaviour is EngineBehaviour.LATE
        self._caller_item = ""
        self._lengths: dict[str, int] = {}
        self._response: str | None = None
        self._open_tool_calls: set[str] = set()
        self._remaining_acts: list[Act] = []

    async def run(self) -> None:
        await self._send_session(
            "session.created", type="realtime", model="gpt-realtime"
        )
        while True:
            await self._on_message(await self._peer.receive())

    async def _on_message(self, raw: str | bytes) -> None:
        try:
            event = json.loads(raw)
            CLIENT_EVENTS[event["type"]].model_validate(event)
        except ValidationError:
            await self._refuse("unknown_parameter")
        except (ValueError, KeyError, TypeError):
            await self._refuse("invalid_value")
        else:
            await self._run_event(event)

    async def _run_event(self, event: Json) -> None:
        match event["type"]:
            case "session.update":
                session = SessionUpdate.model_validate(event).session
                self._call.settings = session.model_dump(mode="json", exclude_none=True)
                await self._send_session("session.updated", **self._call.settings)
            case "input_audio_buffer.append":
                await self._on_audio(event["audio"])
            case "conversation.item.create":
                await self._add_item(event["item"])
            case "conversation.item.truncate":
                await self._truncate(event)
            case "response.create":
                await self._create_response(event.get("response") or {})
            case "response.cancel" if self._response is None:
                await self._refuse("response_cancel_not_active")
            case "response.cancel":
                await self._cancel("client_cancelled")

    async def _create_response(self, response: Json) -> None:
        if self._response is not None:
            await self._refuse("conversation_already_has_active_response")
        elif self.speaks:
            instructions = response.get("instructions") or ""
            words = instructions.partition(": ")[2]
            self._reply_task.start(
                self._respond(to_acts(words) if instructions else self._remaining_acts)
            )

    async def _on_audio(self, encoded: str) -> None:
        try:
            audio = b64decode(encoded, validate=True)
        except ValueError:
            await self._refuse("invalid_value")
        else:
            await self.receive_audio(audio)

    async def on_speech_started(self) -> None:
        item = self._caller_item = _new_id("item")
        await self._send(
            "input_audio_buffer.speech_started", audio_start_ms=0, item_id=item
        )
        if self._response is not None:
            await self._cancel("turn_detected")

    async def on_words(self, text: str) -> None:
        item = self._caller_item
        await self._send(
            "input_audio_buffer.speech_stopped", audio_end_ms=0, item_id=item
        )
        await self._send(
            "input_audio_buffer.committed", item_id=item, previous_item_id=None
        )
        content = [{"type": "input_audio", "transcript": None}]
        message = _make_message(item, "user", "completed", content)
        await self._send("conversation.item.added", item=message, previous_item_id=None)
        if text:
            self._call.heard.append(text)
        if not self.speaks:
            return
        if not self._transcribes_late:
            await self._transcribe(item, text)
        self._reply_task.start(
            self._respond(to_acts(self._reply_to(text)), late=(item, text))
        )

    async def _transcribe(self, item: str, text: str) -> None:
        usage = {"type": "duration", "seconds": 1}
        kind = "conversation.item.input_audio_transcription.completed"
        await self._send(
            kind, item_id=item, content_index=0, transcript=text, usage=usage
        )

    async def _respond(
        self, acts: Sequence[Act], *, late: tuple[str, str] | None = None
    ) -> None:
        response = self._response = _new_id("resp")
        created = {
            "id": response,
            "object": "realtime.response",
            "status": "in_progress",
        }
        await self._send("response.created", response=created | {"output": []})
        for number, act in enumerate(acts):
            if isinstance(act, ScriptToolCall):
                self._remaining_acts = list(acts[number + 1 :])
                await self._call_tool(response, act)
                break
            if isinstance(act, ScriptDrop):
                self._peer.abort()
                return
            if isinstance(act, ScriptSilence):
                await asyncio.Event().wait()
            else:
                await self._say(response, act.text)
        if late is not None and self._transcribes_late:
            await self._transcribe(*late)
        await self._finish(response, "completed")

    async def _say(self, response: str, text: str) -> None:
        item = _new_id("item")
        self._call.said.append(text)
        message = _make_message(item, "assistant", "in_progress", [])
        await self._send_item("response.output_item.added", response, message)
        await self._stream_words(response, item, text)
        content = [{"type": "output_audio", "transcript": text}]
        message |= {"status": "completed", "content": content}
        await self._send_item("response.output_item.done", response, message)

    async def _stream_words(self, response: str, item: str, text: str) -> None:
        """Sends audio and transcript side by side; the transcript runs a little ahead."""
        place = {
            "response_id": response,
            "item_id": item,
            "output_index": 0,
            "content_index": 0,
        }
        self._lengths[item] = 0
        audio = utter(text)
        first, *others = text.split(" ")
        words = iter([first, *(f" {word}" for word in others)])
        for start in range(0, len(audio), CHUNK_BYTES):
            if (word := next(words, None)) is not None:
                await self._send(
                    "response.output_audio_transcript.delta", **place, delta=word
                )
            piece = audio[start : start + CHUNK_BYTES]
            self._lengths[item] += len(piece)
            delta = b64encode(piece).decode("ascii")
            await self._send("response.output_audio.delta", **place, delta=delta)
        for word in words:
            await self._send(
                "response.output_audio_transcript.delta", **place, delta=word
            )
        await self._send("response.output_audio.done", **place)
        await self._send(
            "response.output_audio_transcript.done", **place, transcript=text
        )

    async def _call_tool(self, response: str, act: ScriptToolCall) -> None:
        call_id = _new_id("call")
        self._open_tool_calls.add(call_id)
        item = {
            "id": _new_id("item"),
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            "name": act.tool,
            "arguments": json.dumps(dict(act.arguments)),
        }
        await self._send_item("response.output_item.done", response, item)

    async def _add_item(self, item: Json) -> None:
        if item["type"] == "function_call_output":
            if item.get("call_id") not in self._open_tool_calls:
                await self._refuse("invalid_tool_call_id")
                return
            self._open_tool_calls.discard(item["call_id"])
            self._call.tool_results.append((item["call_id"], item["output"]))
        added = {"id": _new_id("item"), "status": "completed", **item}
        await self._send("conversation.item.added", item=added, previous_item_id=None)
        await self._send("conversation.item.done", item=added, previous_item_id=None)

    async def _truncate(self, event: Json) -> None:
        item = event["item_id"]
        end_ms = event["audio_end_ms"]
        if item not in self._lengths or end_ms > self._lengths[item] // BYTES_PER_MS:
            await self._refuse("invalid_value")
            return
        self._call.truncations.append((item, end_ms))
        kind = "conversation.item.truncated"
        await self._send(kind, item_id=item, content_index=0, audio_end_ms=end_ms)

    async def _cancel(self, reason: str) -> None:
        self._reply_task.stop()
        if self._response is not None:
            await self._finish(
                self._response, "cancelled", {"type": "cancelled", "reason": reason}
            )

    async def _finish(
        self, response: str, status: str, details: dict[str, str] | None = None
    ) -> None:
        self._response = None
        done: Json = {
            "id": response,
            "object": "realtime.response",
            "status": status,
        }
        await self._send(
            "response.done", response=done | {"status_details": details, "output": []}
        )

    async def _refuse(self, code: str) -> None:
        self._call.error_codes.append(code)
        error = {"type": "invalid_request_error", "code": code, "message": "refused"}
        await self._send("error", error=error | {"param": None, "event_id": None})

    async def _send_session(self, kind: str, **fields: Any) -> None:
        session = {"id": _new_id("sess"), "object": "realtime.session", **fields}
        await self._send(kind, session=session)

    async def _send_item(self, kind: str, response: str, item: Json) -> None:
        await self._send(kind, response_id=response, output_index=0, item=item)

    async def _send(self, kind: str, **fields: Any) -> None:
        await self.send_json(type=kind, event_id=_new_id("event"), **fields)


class EmulatedRealtime(EmulatedEngine):
    path = "/v1/realtime"
    scheme = "Bearer"
    connection_type = RealtimeConnection

    @property
    def base_url(self) -> str:
        return f"http://{self.address}/v1"


def _make_message(item: str, role: str, status: str, content: list[Json]) -> Json:
    message = {"id": item, "type": "message", "role": role, "status": status}
    return message | {"content": content}


def _new_id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(8)}"
