"""An emulated Deepgram Voice Agent: refuses what the real one refuses, hears our speech, and answers by a script."""

import asyncio
import json
import secrets
from typing import Any

from pydantic import ValidationError

from aftercall.lab.deepgram_messages import CLIENT_MESSAGES, Settings
from aftercall.lab.engine import CHUNK, EmulatedEngine, EngineCall, Visit
from aftercall.lab.peer import Peer
from aftercall.lab.script import Drop, Mood, Say, Script, Use, acts_of
from aftercall.lab.speech import Began, utter

SILENCE_LIMIT_S = 15.0
REFUSED = 1008


class EmulatedDeepgram(EmulatedEngine):
    path = "/v1/agent/converse"
    scheme = "Token"

    @property
    def url(self) -> str:
        return f"ws://{self.address}{self.path}"

    def _begin(self, peer: Peer, call: EngineCall, mood: Mood, script: Script) -> Visit:
        return AgentVisit(peer, call, mood, script)


class _Refusal(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class AgentVisit(Visit):
    def __init__(self, peer: Peer, call: EngineCall, mood: Mood, script: Script) -> None:
        super().__init__(peer, call, mood, script)
        self._answers: dict[str, asyncio.Future[str]] = {}

    @property
    def _speaks(self) -> bool:
        return self._mood in (Mood.FINE, Mood.STRICT)

    async def hold(self) -> None:
        await self._send("Welcome", request_id=secrets.token_hex(8))
        try:
            settings = _read_settings(await self._receive())
            self._call.opening = settings.model_dump(mode="json", exclude_none=True)
            await self._send("SettingsApplied")
            if settings.agent.greeting and self._speaks:
                self._tongue.begin(self._say(settings.agent.greeting))
            while True:
                await self._take(await self._receive())
        except _Refusal as refusal:
            self._call.faults.append(refusal.code)
            await self._send("Error", code=refusal.code, description="refused")
            await self._peer.close(REFUSED)

    async def _receive(self) -> str | bytes:
        try:
            async with asyncio.timeout(SILENCE_LIMIT_S):
                return await self.receive()
        except TimeoutError:
            raise _Refusal("CLIENT_MESSAGE_TIMEOUT") from None

    async def _take(self, raw: str | bytes) -> None:
        if isinstance(raw, bytes):
            for sound in self._ear.hear(raw):
                await self._hear("" if isinstance(sound, Began) else sound.text, begins=isinstance(sound, Began))
            return
        message = _parse(raw)
        if message["type"] == "Settings":
            raise _Refusal("SETTINGS_ALREADY_APPLIED")
        form = CLIENT_MESSAGES.get(message["type"])
        is_untaken = self._mood is Mood.STRICT and message["type"] == "InjectUserMessage"  # as some have met it
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
            case "InjectAgentMessage" if self._ear.is_hearing or (self._tongue.is_busy and message.get("behavior") != "interrupt"):
                await self._send("InjectionRefused", message="somebody is talking")
            case "InjectAgentMessage" if self._speaks:
                self._tongue.begin(self._say(message["message"]))
            case "InjectUserMessage":
                await self._hear(message["content"], begins=False)
            case "FunctionCallResponse" if waiting := self._answers.pop(message.get("id") or "", None):
                self._call.answers.append((message["name"], message["content"]))
                waiting.set_result(message["content"])

    async def _hear(self, text: str, *, begins: bool) -> None:
        if begins:
            self._tongue.stop()
            await self._send("UserStartedSpeaking")
            return
        if not text:
            return
        self._call.heard.append(text)
        await self._send("ConversationText", role="user", content=text)
        if self._speaks:
            self._tongue.begin(self._answer(text))

    async def _answer(self, heard: str) -> None:
        for act in acts_of(self._reply_to(heard)):
            if isinstance(act, Say):
                await self._say(act.text)
            elif isinstance(act, Use):
                await self._use(act)
            elif isinstance(act, Drop):
                self._peer.abort()

    async def _use(self, act: Use) -> None:
        call_id = f"fc_{secrets.token_hex(4)}"
        self._answers[call_id] = asyncio.get_running_loop().create_future()
        wanted = {"id": call_id, "name": act.tool, "arguments": json.dumps(dict(act.arguments)), "client_side": True}
        await self._send("FunctionCallRequest", functions=[wanted])
        await self._answers[call_id]

    async def _say(self, text: str) -> None:
        self._call.said.append(text)
        await self._send("ConversationText", role="assistant", content=text)
        audio = utter(text)
        for start in range(0, len(audio), CHUNK):
            await self._peer.send(audio[start : start + CHUNK])
        await self._send("AgentAudioDone")

    async def _send(self, kind: str, **fields: Any) -> None:
        await self.tell(type=kind, **fields)


def _read_settings(raw: str | bytes) -> Settings:
    message = _parse(raw) if isinstance(raw, str) else {"type": ""}
    if message["type"] != "Settings":
        raise _Refusal("NON_SETTINGS_MESSAGE_BEFORE_SETTINGS")
    try:
        return Settings.model_validate(message)
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
