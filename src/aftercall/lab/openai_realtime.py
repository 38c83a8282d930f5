"""An emulated OpenAI Realtime server with the names of the general release: refuses what the
real one refuses, answers by a script.

What the model is told to say word for word is what follows the first colon of its instructions.
"""

import asyncio
import json
import secrets
from base64 import b64decode, b64encode
from typing import Any

from pydantic import ValidationError

from aftercall.lab.engine import CHUNK_BYTES, EmulatedEngine, EngineCall, EngineConnection
from aftercall.lab.openai_messages import CLIENT_EVENTS, SessionUpdate
from aftercall.lab.peer import Peer
from aftercall.lab.script import (
    EngineBehaviour,
    Script,
    ScriptDrop,
    ScriptSilence,
    ScriptToolCall,
    to_acts,
)
from aftercall.lab.speech import ToneBegan, utter

BYTES_PER_MS = 8


class EmulatedRealtime(EmulatedEngine):
    path = "/v1/realtime"
    scheme = "Bearer"

    def __init__(
        self, key: str, script: Script, *, transcribes_late: bool = False, **options: Any
    ) -> None:
        """With `transcribes_late` the caller's words come after the answer to them, as they may
        in truth.
        """
        super().__init__(key, script, **options)
        self.transcribes_late = transcribes_late

    @property
    def base_url(self) -> str:
        return f"http://{self.address}/v1"

    def _make_connection(
        self, peer: Peer, call: EngineCall, behaviour: EngineBehaviour, script: Script
    ) -> EngineConnection:
        return RealtimeConnection(
            peer, call, behaviour, script, transcribes_late=self.transcribes_late
        )


class RealtimeConnection(EngineConnection):
    def __init__(
        self,
        peer: Peer,
        call: EngineCall,
        behaviour: EngineBehaviour,
        script: Script,
        *,
        transcribes_late: bool,
    ) -> None:
        super().__init__(peer, call, behaviour, script)
        self._transcribes_late = transcribes_late
        self._caller_item = ""
        self._lengths: dict[str, int] = {}
        self._response: str | None = None
        self._unanswered: set[str] = set()
        self._rest: list[Any] = []

    async def run(self) -> None:
        session = {
            "type": "realtime",
            "object": "realtime.session",
            "id": _new("sess"),
            "model": "gpt-realtime",
        }
        await self._send("session.created", session=session)
        while True:
            await self._on_message(await self.receive())

    async def _on_message(self, raw: str | bytes) -> None:
        try:
            event = json.loads(raw)
            form = CLIENT_EVENTS[event["type"]]
            form.model_validate(event)
        except (ValueError, KeyError, TypeError) as error:
            await self._refuse(
                "unknown_parameter" if isinstance(error, ValidationError) else "invalid_value"
            )
            return
        await self._obey(event)

    async def _obey(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "session.update":
                self._call.settings = SessionUpdate.model_validate(event).session.model_dump(
                    mode="json", exclude_none=True
                )
                await self._send(
                    "session.updated",
                    session={
                        "id": _new("sess"),
                        "object": "realtime.session",
                        **self._call.settings,
                    },
                )
            case "input_audio_buffer.append":
                await self._receive_audio(event["audio"])
            case "conversation.item.create":
                await self._add(event["item"])
            case "conversation.item.truncate":
                await self._truncate(event)
            case "response.create" if self._response is not None:
                await self._refuse("conversation_already_has_active_response")
            case "response.create" if self._behaviour is EngineBehaviour.FINE:
                instructions = (event.get("response") or {}).get("instructions") or ""
                acts = to_acts(instructions.partition(": ")[2]) if instructions else self._rest
                self._reply_task.start(self._respond(acts))
            case "response.cancel" if self._response is None:
                await self._refuse("response_cancel_not_active")
            case "response.cancel":
                await self._cancel("client_cancelled")

    async def _receive_audio(self, encoded: str) -> None:
        try:
            audio = b64decode(encoded, validate=True)
        except ValueError:
            await self._refuse("invalid_value")
            return
        for sound in self._detector.detect(audio):
            if isinstance(sound, ToneBegan):
                self._caller_item = _new("item")
                await self._send(
                    "input_audio_buffer.speech_started", audio_start_ms=0, item_id=self._caller_item
                )
                if self._response is not None:
                    await self._cancel("turn_detected")
            else:
                await self._end_turn(sound.text)

    async def _end_turn(self, text: str) -> None:
        item = self._caller_item
        await self._send("input_audio_buffer.speech_stopped", audio_end_ms=0, item_id=item)
        await self._send("input_audio_buffer.committed", item_id=item, previous_item_id=None)
        content = [{"type": "input_audio", "transcript": None}]
        message = {
            "id": item,
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": content,
        }
        await self._send("conversation.item.added", item=message, previous_item_id=None)
        if text:
            self._call.heard.append(text)
        if self._behaviour is not EngineBehaviour.FINE:
            return
        if not self._transcribes_late:
            await self._transcribe(item, text)
        self._reply_task.start(self._respond(to_acts(self._reply_to(text)), late=(item, text)))

    async def _transcribe(self, item: str, text: str) -> None:
        usage = {"type": "duration", "seconds": 1}
        kind = "conversation.item.input_audio_transcription.completed"
        await self._send(kind, item_id=item, content_index=0, transcript=text, usage=usage)

    async def _respond(self, acts: Any, *, late: tuple[str, str] | None = None) -> None:
        response = self._response = _new("resp")
        await self._send(
            "response.created",
            response={
                "id": response,
                "object": "realtime.response",
                "status": "in_progress",
                "output": [],
            },
        )
        for number, act in enumerate(acts):
            if isinstance(act, ScriptToolCall):
                self._rest = list(acts[number + 1 :])
                await self._use(response, act)
                break
            if isinstance(act, ScriptDrop):
                self._peer.abort()
                return
            if isinstance(act, ScriptSilence):
                await asyncio.Event().wait()
            await self._say(response, act.text)
        if late is not None and self._transcribes_late:
            await self._transcribe(*late)
        await self._finish(response, "completed")

    async def _say(self, response: str, text: str) -> None:
        item, audio = _new("item"), utter(text)
        place = {"response_id": response, "item_id": item, "output_index": 0, "content_index": 0}
        self._call.said.append(text)
        self._lengths[item] = 0
        message = {
            "id": item,
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        await self._send(
            "response.output_item.added", response_id=response, output_index=0, item=message
        )
        words = iter(text.split(" "))
        for number, start in enumerate(range(0, len(audio), CHUNK_BYTES)):
            if (word := next(words, None)) is not None:
                await self._send(
                    "response.output_audio_transcript.delta",
                    **place,
                    delta=f" {word}" if number else word,
                )
            piece = audio[start : start + CHUNK_BYTES]
            self._lengths[item] += len(piece)
            await self._send(
                "response.output_audio.delta", **place, delta=b64encode(piece).decode("ascii")
            )
        for word in words:
            await self._send("response.output_audio_transcript.delta", **place, delta=f" {word}")
        await self._send("response.output_audio.done", **place)
        await self._send("response.output_audio_transcript.done", **place, transcript=text)
        content = [{"type": "output_audio", "transcript": text}]
        await self._send(
            "response.output_item.done",
            response_id=response,
            output_index=0,
            item=message | {"status": "completed", "content": content},
        )

    async def _use(self, response: str, act: ScriptToolCall) -> None:
        call_id, item = _new("call"), _new("item")
        arguments = json.dumps(dict(act.arguments))
        self._unanswered.add(call_id)
        wanted = {
            "id": item,
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            "name": act.tool,
            "arguments": arguments,
        }
        await self._send(
            "response.output_item.done", response_id=response, output_index=0, item=wanted
        )

    async def _add(self, item: dict[str, Any]) -> None:
        if item["type"] == "function_call_output":
            if item.get("call_id") not in self._unanswered:
                await self._refuse("invalid_tool_call_id")
                return
            self._unanswered.discard(item["call_id"])
            self._call.tool_results.append((item["call_id"], item["output"]))
        added = {"id": _new("item"), "status": "completed", **item}
        await self._send("conversation.item.added", item=added, previous_item_id=None)
        await self._send("conversation.item.done", item=added, previous_item_id=None)

    async def _truncate(self, event: dict[str, Any]) -> None:
        item, end_ms = event["item_id"], event["audio_end_ms"]
        if item not in self._lengths or end_ms > self._lengths[item] // BYTES_PER_MS:
            await self._refuse("invalid_value")
            return
        self._call.truncations.append((item, end_ms))
        await self._send(
            "conversation.item.truncated", item_id=item, content_index=0, audio_end_ms=end_ms
        )

    async def _cancel(self, reason: str) -> None:
        self._reply_task.stop()
        if self._response is not None:
            await self._finish(self._response, "cancelled", {"type": "cancelled", "reason": reason})

    async def _finish(
        self, response: str, status: str, details: dict[str, str] | None = None
    ) -> None:
        self._response = None
        done: dict[str, Any] = {
            "id": response,
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [],
        }
        await self._send("response.done", response=done)

    async def _refuse(self, code: str) -> None:
        self._call.error_codes.append(code)
        error = {
            "type": "invalid_request_error",
            "code": code,
            "message": "refused",
            "param": None,
            "event_id": None,
        }
        await self._send("error", error=error)

    async def _send(self, kind: str, **fields: Any) -> None:
        await self.send_json(type=kind, event_id=_new("event"), **fields)


def _new(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(8)}"
