"""Emulated ElevenLabs, Vapi, Retell and Bland: they run a call themselves and tell of it.

Each asks for a briefing, uses our tools, reports the call and lists its calls. Their agent
takes down what begins with "please". A report can be dropped, as on a bad day.
"""

import hmac
import json
import secrets
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, ClassVar, Literal
from uuid import uuid4

import httpx2
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from aftercall.clock import Clock, format_instant, parse_instant
from aftercall.lab.carrier import NO_DELIVERY_FAULTS, EmulatedCarrier, refuse_by_fault
from aftercall.lab.line import SECONDS_PER_WORD
from aftercall.lab.rest import Refusal
from aftercall.model.json_fields import Json
from aftercall.rest import Headers

Reports = list[tuple[str, Json]]
HostedFault = Literal["drop_webhook", "rate_limit", "server_error"]
LAB_AGENT, LAB_ASSISTANT = "agent_lab", "assistant-lab"
REPLY = "I have written that down. Anything else?"


@dataclass
class LabHostedCall:
    """`turns` are who spoke (`agent` or `user`), the words, and when."""

    id: str
    agent_url: str
    caller: str
    callee: str
    started_at: datetime
    variables: Json = field(default_factory=dict)
    turns: list[tuple[str, str, datetime]] = field(default_factory=list)
    ended_at: datetime | None = None
    refused: list[int] = field(default_factory=list)
    """Statuses of webhooks that were not taken; 0 is no answer."""

    @property
    def seconds(self) -> float:
        return ((self.ended_at or self.started_at) - self.started_at).total_seconds()


class EmulatedPlatform(EmulatedCarrier, ABC):
    name: ClassVar[str]
    list_path: ClassVar[str]
    get_path: ClassVar[str]
    list_method: ClassVar[str] = "GET"
    key_header: ClassVar[str] = "authorization"
    key_prefix: ClassVar[str] = "Bearer "

    def __init__(
        self,
        key: str,
        webhook_secret: str,
        start_secret: str = "",
        *,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__("http://lab.invalid", NO_DELIVERY_FAULTS, clock, transport)
        self.key = key
        self.webhook_secret = webhook_secret
        self.start_secret = start_secret
        self.calls: dict[str, LabHostedCall] = {}

    async def ring(
        self, agent_url: str, *, caller: str, callee: str = "+15550101"
    ) -> LabHostedCall:
        """Returns when the agent has greeted; with what it was told if it was told anything."""
        call = LabHostedCall(
            self._make_id(), agent_url, caller, callee, self.clock.now()
        )
        self.calls[call.id] = call
        call.variables = self.read_variables(await self._begin(call))
        greeting = call.variables.get("first_words") or "Hello, how can I help?"
        self.add_turn(call, "agent", greeting)
        return call

    async def say(self, call: LabHostedCall, text: str) -> None:
        self.add_turn(call, "user", text)
        if text.lower().startswith("please"):
            await self.use_tool(call, "take_request", {"title": text[:200]})
        self.add_turn(call, "agent", REPLY)

    def add_turn(self, call: LabHostedCall, who: str, text: str) -> None:
        call.turns.append((who, text, self._find_time(call)))

    def _find_time(self, call: LabHostedCall) -> datetime:
        words = sum(len(said.split()) for _, said, _ in call.turns)
        return call.started_at + timedelta(seconds=words * SECONDS_PER_WORD)

    async def use_tool(self, call: LabHostedCall, name: str, arguments: Json) -> str:
        return self.read_result(await self._use_tool(call, name, arguments))

    async def hang_up(self, call: LabHostedCall) -> None:
        if call.ended_at is not None:
            return
        call.ended_at = self._find_time(call)
        self.recordings.add(call.id, call.id)
        if "drop_webhook" in self.faults:
            self.faults.remove("drop_webhook")
            return
        for kind, event in self.make_reports(call):
            await self._deliver(call, kind, event)

    async def post(
        self, call: LabHostedCall, path: str, event: Json, *, has_token: bool = False
    ) -> Json:
        """One webhook, signed, or with the token where the platform does not sign."""
        raw = json.dumps(event).encode()
        headers = {"Content-Type": "application/json"}
        if has_token:
            headers["Authorization"] = f"Bearer {self.start_secret}"
        else:
            headers |= self.sign(raw)
        url = f"{call.agent_url}/hosted/{self.name}{path}"
        status, answer = 0, {}
        with suppress(httpx2.HTTPError):
            response = await self.http.post(url, content=raw, headers=headers)
            status, answer = response.status_code, response.json()
        if status == 200:
            return answer
        call.refused.append(status)
        return {}

    async def _deliver(self, call: LabHostedCall, kind: str, event: Json) -> None:
        async def send() -> None:
            await self.post(call, "", event)

        await self.webhook_sender.deliver(kind, send)

    def _make_id(self) -> str:
        return str(uuid4())

    async def _begin(self, call: LabHostedCall) -> Json:
        return await self.post(call, "/start", self.make_context(call), has_token=True)

    async def _use_tool(self, call: LabHostedCall, name: str, arguments: Json) -> Json:
        body = self.make_context(call) | arguments
        return await self.post(call, f"/tools/{name}", body, has_token=True)

    def make_context(self, call: LabHostedCall) -> Json:
        return {}

    def read_variables(self, answer: Json) -> Json:
        return answer

    def read_result(self, answer: Json) -> str:
        return str(answer.get("result", ""))

    @abstractmethod
    def sign(self, raw: bytes) -> Headers: ...

    @abstractmethod
    def make_reports(self, call: LabHostedCall) -> Reports:
        """Kind and body of each webhook of a call that is over."""

    @abstractmethod
    def describe(self, call: LabHostedCall) -> Json:
        """The whole call, as the platform's REST API shows it."""

    @abstractmethod
    def list_page(self, asked: Json) -> Any:
        """One page; `asked` is the query or the body."""

    def make_router(self) -> APIRouter:
        router = APIRouter(tags=[self.name])

        @router.api_route(self.list_path, methods=[self.list_method])
        async def list_calls(request: Request) -> Response:
            self.check(request)
            body = json.loads(await request.body() or b"{}")
            return JSONResponse(self.list_page(dict(request.query_params) | body))

        @router.get(self.get_path + "/{call_id}")
        async def get_call(call_id: str, request: Request) -> Response:
            self.check(request)
            if call_id not in self.calls:
                raise Refusal(JSONResponse({"message": "Not Found"}, 404))
            return JSONResponse(self.describe(self.calls[call_id]))

        self.recordings.add_route(router, self.audio_path)
        return router

    def check(self, request: Request) -> None:
        given = request.headers.get(self.key_header, "").encode()
        if not hmac.compare_digest(given, (self.key_prefix + self.key).encode()):
            raise Refusal(JSONResponse({"message": "Unauthorized"}, 401))
        refuse_by_fault(self)

    def _list(self, since: datetime | None = None) -> list[LabHostedCall]:
        found = sorted(self.calls.values(), key=lambda call: call.started_at)
        return [call for call in found if since is None or call.started_at >= since]


class EmulatedVapi(EmulatedPlatform):
    name, audio_path = "vapi", "/vapi-recordings/{sid}"
    list_path = get_path = "/call"

    def sign(self, raw: bytes) -> Headers:
        return {"X-Vapi-Secret": self.webhook_secret}

    async def _begin(self, call: LabHostedCall) -> Json:
        answer = await self.post(call, "", self._message(call, "assistant-request"))
        status = self._message(call, "status-update", status="in-progress")
        await self._deliver(call, "status-update", status)
        return answer

    def read_variables(self, answer: Json) -> Json:
        overrides = answer.get("assistantOverrides", {})
        variables: Json = overrides.get("variableValues", {})
        return variables | {"first_words": overrides.get("firstMessage", "")}

    async def _use_tool(self, call: LabHostedCall, name: str, arguments: Json) -> Json:
        function = {"name": name, "arguments": json.dumps(arguments)}
        used = {"id": f"call_{secrets.token_hex(8)}", "type": "function"}
        listed = [used | {"function": function}]
        event = self._message(call, "tool-calls", toolCallList=listed)
        return await self.post(call, "", event)

    def read_result(self, answer: Json) -> str:
        return " ".join(item["result"] for item in answer.get("results", ()))

    def make_reports(self, call: LabHostedCall) -> Reports:
        whole = self.describe(call)
        names = ("endedReason", "startedAt", "endedAt", "artifact", "analysis")
        details = {name: whole[name] for name in names}
        report = self._message(call, "end-of-call-report", **details)
        status = self._message(call, "status-update", status="ended")
        return [("status-update", status), ("end-of-call-report", report)]

    def _message(self, call: LabHostedCall, kind: str, **details: Any) -> Json:
        whole = self.describe(call)
        names = ("id", "orgId", "type", "status", "createdAt", "updatedAt")
        message = {name: whole[name] for name in ("customer", "phoneNumber")}
        message["type"] = kind
        message["timestamp"] = int(self.clock.now().timestamp() * 1000)
        message["call"] = {name: whole[name] for name in names}
        return {"message": message | details}

    def describe(self, call: LabHostedCall) -> Json:
        started = format_instant(call.started_at)
        messages = [
            {
                "role": "bot" if who == "agent" else "user",
                "message": text,
                "time": at.timestamp() * 1000,
                "secondsFromStart": (at - call.started_at).total_seconds(),
            }
            for who, text, at in call.turns
        ]
        recording = {"stereoUrl": self.recordings.find_url(call.id)}
        shown: Json = {
            "id": call.id,
            "orgId": "org-lab",
            "type": "inboundPhoneCall",
            "status": "ended" if call.ended_at else "in-progress",
            "createdAt": started,
            "updatedAt": format_instant(call.ended_at or call.started_at),
            "startedAt": started,
            "assistantId": LAB_ASSISTANT,
            "customer": {"number": call.caller},
            "phoneNumber": {"number": call.callee},
            "artifact": {"messages": messages, "recording": recording},
            "analysis": {"summary": "A call in the lab."},
        }
        if call.ended_at:
            shown["endedAt"] = format_instant(call.ended_at)
            shown["endedReason"] = "customer-ended-call"
        return shown

    def list_page(self, asked: Json) -> Any:
        since, until = asked.get("createdAtGe"), asked.get("createdAtLe")
        found = self._list(parse_instant(since) if since else None)
        if until:
            found = [call for call in found if call.started_at <= parse_instant(until)]
        newest = found[::-1][: int(asked.get("limit", "100"))]
        return [self.describe(call) for call in newest]


class EmulatedRetell(EmulatedPlatform):
    name, audio_path = "retell", "/retell-recordings/{sid}"
    list_path, get_path, list_method = "/v3/list-calls", "/v2/get-call", "POST"

    def sign(self, raw: bytes) -> Headers:
        at = str(int(self.clock.now().timestamp() * 1000))
        signature = _sign(self.webhook_secret, raw + at.encode())
        return {"x-retell-signature": f"v={at},d={signature}"}

    async def _begin(self, call: LabHostedCall) -> Json:
        whole = self.describe(call)
        names = ("agent_id", "agent_version", "from_number", "to_number")
        inbound = {name: whole[name] for name in names}
        event = {"event": "call_inbound", "call_inbound": inbound}
        answer = await self.post(call, "", event)
        event = {"event": "call_started", "call": whole}
        await self._deliver(call, "call_started", event)
        return answer

    def read_variables(self, answer: Json) -> Json:
        variables: Json = answer.get("call_inbound", {}).get("dynamic_variables", {})
        return variables

    async def _use_tool(self, call: LabHostedCall, name: str, arguments: Json) -> Json:
        body = {"name": name, "call": self.describe(call), "args": arguments}
        return await self.post(call, "", body)

    def make_reports(self, call: LabHostedCall) -> Reports:
        return [
            (event, {"event": event, "call": self.describe(call)})
            for event in ("call_ended", "call_analyzed")
        ]

    def describe(self, call: LabHostedCall) -> Json:
        shown: Json = {
            "call_id": call.id,
            "call_type": "phone_call",
            "agent_id": LAB_AGENT,
            "agent_version": 1,
            "call_status": "ended" if call.ended_at else "ongoing",
            "direction": "inbound",
            "from_number": call.caller,
            "to_number": call.callee,
            "recording_multi_channel_url": self.recordings.find_url(call.id),
            "start_timestamp": int(call.started_at.timestamp() * 1000),
            "transcript_object": [
                {"role": who, "content": text, "words": [_first_word(call, text, at)]}
                for who, text, at in call.turns
            ],
        }
        if call.ended_at:
            shown["end_timestamp"] = int(call.ended_at.timestamp() * 1000)
            shown["disconnection_reason"] = "user_hangup"
        return shown

    def list_page(self, asked: Json) -> Any:
        criteria = asked.get("filter_criteria", {}).get("start_timestamp")
        since_ms = criteria["value"] if criteria else 0
        found = self._list(datetime.fromtimestamp(since_ms / 1000, UTC))
        first, size = int(asked.get("pagination_key", 0)), asked.get("limit", 50)
        items = [self.describe(call) for call in found[first : first + size]]
        for item in items:
            del item["transcript_object"]
        has_more = first + size < len(found)
        following = {"pagination_key": str(first + size)} if has_more else {}
        return {"has_more": has_more, "items": items, **following}


class EmulatedElevenLabs(EmulatedPlatform):
    name = "elevenlabs"
    list_path = get_path = "/v1/convai/conversations"
    audio_path = "/v1/convai/conversations/{sid}/audio"
    key_header, key_prefix = "xi-api-key", ""

    def _make_id(self) -> str:
        return f"conv_{secrets.token_hex(12)}"

    def sign(self, raw: bytes) -> Headers:
        at = str(int(self.clock.now().timestamp()))
        signature = _sign(self.webhook_secret, at.encode() + b"." + raw)
        return {"ElevenLabs-Signature": f"t={at},v0={signature}"}

    def make_context(self, call: LabHostedCall) -> Json:
        return {
            "caller_id": call.caller,
            "agent_id": LAB_AGENT,
            "called_number": call.callee,
            "call_sid": f"CA{sha256(call.id.encode()).hexdigest()[:32]}",
            "conversation_id": call.id,
        }

    def read_variables(self, answer: Json) -> Json:
        return dict(answer.get("dynamic_variables", {}))

    def make_reports(self, call: LabHostedCall) -> Reports:
        kind = "post_call_transcription"
        at_s = int(self.clock.now().timestamp())
        event = {"type": kind, "event_timestamp": at_s, "data": self.describe(call)}
        return [(kind, event)]

    def describe(self, call: LabHostedCall) -> Json:
        phone = {
            "type": "twilio",
            "direction": "inbound",
            "phone_number_id": "pn_lab",
            "agent_number": call.callee,
            "external_number": call.caller,
            "stream_sid": "MZlab",
            "call_sid": self.make_context(call)["call_sid"],
        }
        return {
            "agent_id": LAB_AGENT,
            "conversation_id": call.id,
            "status": "done" if call.ended_at else "in-progress",
            "transcript": [
                {
                    "role": who,
                    "message": text,
                    "time_in_call_secs": int((at - call.started_at).total_seconds()),
                }
                for who, text, at in call.turns
            ],
            "metadata": {
                "start_time_unix_secs": int(call.started_at.timestamp()),
                "call_duration_secs": int(call.seconds),
                "phone_call": phone,
            },
            "has_audio": call.id in self.recordings.by_sid,
            "has_user_audio": False,
            "has_response_audio": False,
        }

    def list_page(self, asked: Json) -> Any:
        since_s = int(asked.get("call_start_after_unix", 0))
        found = self._list(datetime.fromtimestamp(since_s, UTC))[::-1]
        first = int(asked.get("cursor") or 0)
        end = first + int(asked.get("page_size", 30))
        page = [
            {
                "agent_id": LAB_AGENT,
                "conversation_id": call.id,
                "start_time_unix_secs": int(call.started_at.timestamp()),
                "call_duration_secs": int(call.seconds),
                "message_count": len(call.turns),
                "status": "done" if call.ended_at else "in-progress",
                "call_successful": "success",
            }
            for call in found[first:end]
        ]
        has_more = end < len(found)
        following = str(end) if has_more else None
        return {"conversations": page, "has_more": has_more, "next_cursor": following}


class EmulatedBland(EmulatedPlatform):
    name, audio_path = "bland", "/bland-recordings/{sid}"
    list_path = get_path = "/v1/calls"
    key_prefix = ""

    def sign(self, raw: bytes) -> Headers:
        return {"X-Webhook-Signature": _sign(self.webhook_secret, raw)}

    def make_context(self, call: LabHostedCall) -> Json:
        return {"call_id": call.id, "from": call.caller, "to": call.callee}

    def make_reports(self, call: LabHostedCall) -> Reports:
        return [("call", self.describe(call))]

    def describe(self, call: LabHostedCall) -> Json:
        return {
            "call_id": call.id,
            "to": call.callee,
            "from": call.caller,
            "inbound": True,
            "completed": call.ended_at is not None,
            "call_length": call.seconds / 60,
            "created_at": format_instant(call.started_at),
            "end_at": format_instant(call.ended_at) if call.ended_at else None,
            "call_ended_by": "USER",
            "recording_url": self.recordings.find_url(call.id),
            "transcripts": [
                {
                    "id": number,
                    "created_at": format_instant(at),
                    "text": text,
                    "user": "assistant" if who == "agent" else "user",
                }
                for number, (who, text, at) in enumerate(call.turns, 1)
            ],
        }

    def list_page(self, asked: Json) -> Any:
        first, size = int(asked.get("from", 0)), int(asked.get("limit", 1000))
        page = self._list()[::-1][first : first + size]
        shown = [self.describe(call) for call in page]
        for call in shown:
            del call["transcripts"]
        return {"count": len(shown), "calls": shown}


def _first_word(call: LabHostedCall, text: str, at: datetime) -> Json:
    start_s = (at - call.started_at).total_seconds()
    end_s = start_s + SECONDS_PER_WORD
    return {"word": text.partition(" ")[0], "start": start_s, "end": end_s}


def _sign(secret: str, signed: bytes) -> str:
    return hmac.digest(secret.encode(), signed, sha256).hex()
