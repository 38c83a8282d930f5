"""An emulated Deepgram Voice Agent: refuses what the real one refuses, hears our speech, and
answers by a script.
"""

import asyncio
import json
import secrets
from typing import Any

from pydantic import ValidationError

from aftercall.lab.deepgram_messages import CLIENT_MESSAGES, AgentSettingsMessage
from aftercall.lab.engine import CHUNK_BYTES, EmulatedEngine, EngineCall, EngineConnection
from aftercall.lab.peer import Peer
from aftercall.lab.script import (
    EngineBehaviour,
    Script,
    ScriptDrop,
    ScriptSay,
    ScriptToolCall,
    to_acts,
)
from aftercall.lab.speech import ToneBegan, utter

CLIENT_TIMEOUT_S = 15.0
POLICY_VIOLATION = 1008


class EmulatedDeepgram(EmulatedEngine):
    path = "/v1/agent/converse"
    scheme = "Token"

    @property
    def url(self) -> str:
        return f"ws://{self.address}{self.path}"

    def _make_connection(
        self, peer: Peer, call: EngineCall, behaviour: EngineBehaviour, script: Script
    ) -> EngineConnection:
        return DeepgramConnection(peer, call, behaviour, script)


class _Refusal(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class DeepgramConnection(EngineConnection):
    def __init__(
        self, peer: Peer, call: EngineCall, behaviour: EngineBehaviour, script: Script
    ) -> None:
        super().__init__(peer, call, behaviour, script)
        self._answers: dict[str, asyncio.Future[str]] = {}

    @property
    def _speaks(self) -> bool:
        return self._behaviour in (EngineBehaviour.FINE, EngineBehaviour.STRICT)

    async def run(self) -> None:
        await self._send("Welcome", request_id=secrets.token_hex(8))
        try:
            settings = _read_settings(await self._receive())
            self._call.settings = settings.model_dump(mode="json", exclude_none=True)
            await self._send("SettingsApplied")
            if settings.agent.greeting and self._speaks:
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
                return await self.receive()
        except TimeoutError:
            raise _Refusal("CLIENT_MESSAGE_TIMEOUT") from None

    async def _on_message(self, raw: str | bytes) -> None:
        if isinstance(raw, bytes):
            for sound in self._detector.detect(raw):
                await self._on_speech(
                    "" if isinstance(sound, ToneBegan) else sound.text,
                    begins=isinstance(sound, ToneBegan),
                )
            return
        message = _parse(raw)
        if message["type"] == "Settings":
            raise _Refusal("SETTINGS_ALREADY_APPLIED")
        form = CLIENT_MESSAGES.get(message["type"])
        is_untaken = (
            self._behaviour is EngineBehaviour.STRICT and message["type"] == "InjectUserMessage"
        )  # as some have met it
        if form is None or is_untaken:
            raise _Refusal("UNPARSABLE_CLIENT_MESSAGE")
        try:
            form.model_validate(message)
        except ValidationError:
            raise _Refusal("UNPARSABLE_CLIENT_MESSAGE") from None
        await self._obey(message)

    async def _obey(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "KeepAlive":
                self._call.keep_alives += 1
            case "UpdatePrompt":
                await self._send("PromptUpdated")
            case "InjectAgentMessage" if self._detector.is_speech_active or (
                self._reply_task.is_busy and message.get("behavior") != "interrupt"
            ):
                await self._send("InjectionRefused", message="somebody is talking")
            case "InjectAgentMessage" if self._speaks:
                self._reply_task.start(self._say(message["message"]))
            case "InjectUserMessage":
                await self._on_speech(message["content"], begins=False)
            case "FunctionCallResponse" if waiting := self._answers.pop(
                message.get("id") or "", None
            ):
                self._call.tool_results.append((message["name"], message["content"]))
                waiting.set_result(message["content"])

    async def _on_speech(self, text: str, *, begins: bool) -> None:
        if begins:
            self._reply_task.stop()
            await self._send("UserStartedSpeaking")
            return
        if not text:
            return
        self._call.heard.append(text)
        await self._send("ConversationText", role="user", content=text)
        if self._speaks:
            self._reply_task.start(self._answer(text))

    async def _answer(self, heard: str) -> None:
        for act in to_acts(self._reply_to(heard)):
            if isinstance(act, ScriptSay):
                await self._say(act.text)
            elif isinstance(act, ScriptToolCall):
                await self._use(act)
            elif isinstance(act, ScriptDrop):
                self._peer.abort()

    async def _use(self, act: ScriptToolCall) -> None:
        call_id = f"fc_{secrets.token_hex(4)}"
        self._answers[call_id] = asyncio.get_running_loop().create_future()
        wanted = {
            "id": call_id,
            "name": act.tool,
            "arguments": json.dumps(dict(act.arguments)),
            "client_side": True,
        }
        await self._send("FunctionCallRequest", functions=[wanted])
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


def _read_settings(raw: str | bytes) -> AgentSettingsMessage:
    message = _parse(raw) if isinstance(raw, str) else {"type": ""}
    if message["type"] != "Settings":
        raise _Refusal("NON_SETTINGS_MESSAGE_BEFORE_SETTINGS")
    try:
        return AgentSettingsMessage.model_validate(message)
    except ValidationError as error:
        unknown = any(item["type"] == "extra_forbidden" for item in error.errors())
        raise _Refusal("UNPARSABLE_CLIENT_MESSAGE" if unknown else "INVALID_SETTINGS") from None


def _parse(raw: str) -> dict[str, Any]:
    try:
        message = json.loads(raw)
    except ValueError:
        raise _Refusal("UNPARSABLE_CLIENT_MESSAGE") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise _Refusal("UNPARSABLE_CLIENT_MESSAGE")
    return message
