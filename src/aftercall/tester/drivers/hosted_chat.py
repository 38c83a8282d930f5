"""Agents at Vapi, Retell and ElevenLabs, by the chat interface that each platform offers.

A key or an agent that the platform does not take is a wrong set-up, its rate limit is nobody's
fault, and a server error is the agent's: whoever calls the agent meets it, too.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
from websockets.exceptions import ConnectionClosed

from aftercall.errors import AgentBroke, AgentRefused, LineFailed, UnknownTestName
from aftercall.model.json_fields import Json
from aftercall.rest import Headers
from aftercall.settings import Settings
from aftercall.settings.providers import make_key_headers
from aftercall.tester.drivers.remote import (
    WebSocketAgent,
    blame_close,
    blame_no_answer,
    read_answer,
)
from aftercall.tester.line import (
    CALLER_FIRST,
    AgentAnswer,
    AgentAnswers,
    DialedCall,
    TextAgent,
)

NO_TOOL = "this tool is not there in a test"


@dataclass(frozen=True)
class PlatformApi:
    """A platform's REST address, and the headers that carry its key."""

    name: str
    url: str
    headers: Headers
    http: httpx2.AsyncClient

    async def request(
        self, method: str, path: str, body: Json | None = None
    ) -> tuple[Json, float]:
        """The answer, and how many seconds it took."""
        url = self.url.rstrip("/") + path
        began_s = time.perf_counter()
        try:
            answer = await self.http.request(
                method, url, json=body, headers=self.headers
            )
        except httpx2.HTTPError as error:
            raise await blame_no_answer(self.url, error, has_answered=False) from None
        took_s = time.perf_counter() - began_s
        if answer.status_code >= 400:
            raise self._blame(answer.status_code)
        if not answer.content:
            return {}, took_s
        try:
            data = answer.json()
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise AgentBroke(f"{self.name}: the answer is not a JSON object")
        return data, took_s

    def _blame(self, status: int) -> LineFailed:
        if status == 429:
            hint = "the platform's rate limit; make fewer calls at once"
            return LineFailed(f"{self.name}: answered 429, {hint}")
        if status >= 500:
            return AgentBroke(f"{self.name}: answered {status}")
        reason = {401: "is the key right?", 403: "is the key right?"}.get(
            status, "is there such an agent?"
        )
        return AgentRefused(f"{self.name}: answered {status}; {reason}")


class VapiChat(TextAgent):
    """Each turn is a chat that names the one before.

    The assistant never speaks first, and the interface does not report a hang-up.
    """

    def __init__(self, api: PlatformApi, agent: str) -> None:
        self._api = api
        self._agent = agent
        self._chat: str | None = None

    async def start(self, dial: DialedCall) -> AgentAnswers:
        """Looks the assistant up: a wrong key or name shows before the first word."""
        await self._api.request("GET", f"/assistant/{quote(self._agent)}")
        return [AgentAnswer("", note=CALLER_FIRST)]

    async def respond(self, text: str) -> AgentAnswers:
        body = {"assistantId": self._agent, "input": text}
        if self._chat is not None:
            body["previousChatId"] = self._chat
        chat, took_s = await self._api.request("POST", "/chat", body)
        self._chat = chat.get("id")
        output = [
            item
            for item in chat.get("output") or ()
            if isinstance(item, dict) and item.get("role") == "assistant"
        ]
        return [_join_messages(output, took_s)]


class RetellChat(TextAgent):
    """A chat with a chat agent; what it says when it is made is the greeting."""

    def __init__(self, api: PlatformApi, agent: str) -> None:
        self._api = api
        self._agent = agent
        self._chat = ""
        self._has_ended = False

    async def start(self, dial: DialedCall) -> AgentAnswers:
        body = {"agent_id": self._agent}
        chat, _ = await self._api.request("POST", "/create-chat", body)
        self._chat = str(chat.get("chat_id", ""))
        greeting = self._read(chat.get("message_with_tool_calls"), None)
        return [greeting if greeting.text else AgentAnswer("", note=CALLER_FIRST)]

    async def respond(self, text: str) -> AgentAnswers:
        if self._has_ended:
            return [AgentAnswer("", ends_call=True)]
        body = {"chat_id": self._chat, "content": text}
        path = "/create-chat-completion"
        answer, took_s = await self._api.request("POST", path, body)
        return [self._read(answer.get("messages"), took_s)]

    async def hang_up(self) -> None:
        if self._chat:
            await self._api.request("PATCH", f"/end-chat/{quote(self._chat)}")

    def _read(self, messages: Any, took_s: float | None) -> AgentAnswer:
        roles = ("agent", "tool_call_invocation")
        listed = [
            item
            for item in messages or ()
            if isinstance(item, dict) and item.get("role") in roles
        ]
        answer = _join_messages(listed, took_s)
        self._has_ended = answer.ends_call
        return answer


def _join_messages(messages: list[Json], took_s: float | None) -> AgentAnswer:
    """The messages of one turn. A tool of Retell's kind `end_call` hangs up."""
    said: list[str] = []
    tools: list[str] = []
    ends_call = False
    for message in messages:
        is_tool = message.get("role") == "tool_call_invocation"
        ends_call = ends_call or (is_tool and message.get("type") == "end_call")
        for reply in read_answer({"tool_calls": [message]} if is_tool else message):
            said.append(reply.text)
            tools += reply.tool_calls
    return AgentAnswer(
        " ".join(part for part in said if part),
        ends_call=ends_call,
        tool_calls=tuple(tools),
        took_s=took_s,
    )


class ElevenLabsChat(WebSocketAgent):
    """A conversation by text; the sound of an agent that also speaks is left aside.

    With a key the address is a signed one; without, the agent must be a public one.
    """

    def __init__(self, api: PlatformApi, agent: str) -> None:
        super().__init__("")
        self._api = api
        self._agent = agent
        self._has_begun = False

    async def start(self, dial: DialedCall) -> AgentAnswers:
        query = urlencode({"agent_id": self._agent})
        path = f"/v1/convai/conversation?{query}"
        self._url = f"ws{self._api.url.rstrip('/').removeprefix('http')}{path}"
        if self._api.headers:
            path = f"/v1/convai/conversation/get-signed-url?{query}"
            signed, _ = await self._api.request("GET", path)
            self._url = str(signed.get("signed_url", ""))
        await self._open(self._url)
        data: Json = {"type": "conversation_initiation_client_data"}
        if dial.caller:
            data["user_id"] = dial.caller
        with suppress(LineFailed):  # why it was closed is read below
            await self._send(data, "")
        self._sent_s = None  # the greeting is no answer
        return await self._collect(self._greeting_timeout_s) or [
            AgentAnswer("", note=CALLER_FIRST)
        ]

    async def respond(self, text: str) -> AgentAnswers:
        await self._send({"type": "user_message", "text": text}, "")
        return await self._collect(self._answer_timeout_s)

    async def hang_up(self) -> None:
        if self._socket is not None:
            with suppress(ConnectionClosed):
                await self._socket.close()

    def _blame(self, closed: ConnectionClosed) -> LineFailed:
        """Who is not let in is closed on before the conversation begins."""
        if self._has_begun or closed.rcvd is None:
            return blame_close("elevenlabs", closed)
        return AgentRefused(
            f"elevenlabs: closed with {closed.rcvd.code}; is there such an agent, "
            "and is it public, or the key right?"
        )

    async def _read_message(self, data: Json) -> list[AgentAnswer]:
        kind = data.get("type")
        event = data.get(f"{kind}_event")
        event = event if isinstance(event, dict) else {}
        if kind == "conversation_initiation_metadata":
            self._has_begun = True
        elif kind == "agent_response":
            return read_answer(event.get("agent_response"))
        elif kind == "ping":
            await self._reply({"type": "pong", "event_id": event.get("event_id")})
        elif kind == "client_tool_call":
            return await self._refuse_tool(data.get("client_tool_call"))
        return []

    async def _refuse_tool(self, called: Any) -> list[AgentAnswer]:
        """The call is evidence; the tool itself lives in the client, which is not there."""
        if not isinstance(called, dict):
            return []
        result = {
            "type": "client_tool_result",
            "tool_call_id": called.get("tool_call_id"),
            "result": NO_TOOL,
            "is_error": True,
        }
        await self._reply(result)
        return read_answer({"tool_calls": [called]})


def open_chat(
    settings: Settings, name: str, agent: str, http: httpx2.AsyncClient
) -> Callable[[], TextAgent]:
    """Makes the chat of one call; raises UnknownTestName if the agent or the key is missing."""
    platform = name.partition(":")[0]
    section = getattr(settings, platform)
    if not agent:
        raise UnknownTestName(f"{name}: write {platform}:AGENT_ID")
    if not section.api_key and platform != "elevenlabs":
        raise UnknownTestName(f"{name}: set {platform.upper()}_API_KEY")
    headers = make_key_headers(platform, section.api_key)
    api = PlatformApi(platform, section.api_url, headers, http)
    chat = CHATS[platform]
    return lambda: chat(api, agent)


CHATS: dict[str, Callable[[PlatformApi, str], TextAgent]] = {
    "vapi": VapiChat,
    "retell": RetellChat,
    "elevenlabs": ElevenLabsChat,
}
