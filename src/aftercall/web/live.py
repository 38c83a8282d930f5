"""`/api/live`: agents elsewhere report their calls while these go on.

Each operation is a request, and a message of the websocket that carries any number of calls:
`{"ref": 7, "op": "turns", "call": …, …}` is answered by `{"ref": 7, "result": …}` or
`{"ref": 7, "error": {"code": …, "message": …, "retryable": …}}`. Without a `ref`, the socket
tells that a call's briefing has changed (`"op": "briefing"`) or that its lease ran out
(`"op": "ended"`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from fastapi import APIRouter, Body, Depends, HTTPException, Response, WebSocket
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.websockets import WebSocketDisconnect

from aftercall.app import App
from aftercall.bridge.remote_call import (
    RemoteCall,
    RemoteStart,
    SentEvent,
    SentTurn,
    find_clock_shift,
)
from aftercall.bridge.tools import list_tools
from aftercall.briefing.render import briefing_json
from aftercall.clock import Instant
from aftercall.engine.voice import END_CALL
from aftercall.errors import AftercallError, RefusedInput, to_aftercall_error
from aftercall.log import get_logger, get_place
from aftercall.model.calls import (
    MAX_DURATION,
    Direction,
    Id,
    LiveCall,
    Sid,
    to_refused_input,
)
from aftercall.model.json_fields import Json
from aftercall.model.plain_json import refuse_many_values
from aftercall.phone import telnyx, twilio
from aftercall.phone.notices import RingNotice
from aftercall.phone.signature import (
    Signature,
    SignatureFlaw,
    SignedRequest,
    TelnyxSignature,
    TwilioSignature,
)
from aftercall.web.api_models import (
    CarrierWebhook,
    LiveBriefingAnswer,
    LiveEndAnswer,
    LiveStartAnswer,
    LiveToolAnswer,
    LiveToolDescription,
    LiveTurnsAnswer,
)
from aftercall.web.auth import BrowserAuth, may_open
from aftercall.web.limits import CLOSE_REFUSED
from aftercall.web.page_store import refuse_unknown_query
from aftercall.web.routes import add_section

MAX_BODY_BYTES = 1024 * 1024
MAX_SID_CHARS = 190  # a later leg adds its number
MAX_ITEMS = 500
MAX_WAITING = 1_000  # messages of one socket that are not answered yet
TOOLS = [tool for tool in list_tools() if tool.name != END_CALL]
ToolName = Literal["search_memory", "take_request"]

log = get_logger("live")


class LiveMessage(BaseModel):
    """`sent_at` is the sender's clock, by which its times are put right."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sender: str = Field(default="", pattern=r"^[A-Za-z0-9_-]{0,64}$")
    sent_at: Instant | None = None

    def find_shift(self, app: App) -> timedelta:
        return find_clock_shift(self.sent_at, app.clock.now())


class LiveStart(LiveMessage):
    version: int = Field(default=1, ge=1, le=1)
    source: str = Field(
        description="names the sender's system; `twilio` or `telnyx` with `carrier`"
    )
    sid: Sid = Field(
        max_length=MAX_SID_CHARS, description="the sender's own id of the call"
    )
    agent: Id | None = Field(default=None, description="whose workspace; `agent_id`")
    caller: str | None = None
    callee: str | None = None
    direction: Direction = "inbound"
    verified: bool = Field(
        default=False, description="believed with `calls.believe_posted` only"
    )
    carrier: CarrierWebhook | None = Field(
        default=None, description="proves number and attestation by its signature"
    )
    started_at: Instant | None = None
    turns: int = Field(
        default=0, ge=0, description="how many turns the sender knows to be stored"
    )
    metadata: Json = Field(default_factory=dict)


class LiveTurns(LiveMessage):
    turns: list[SentTurn] = Field(min_length=1, max_length=MAX_ITEMS)


class LiveEvents(LiveMessage):
    events: list[SentEvent] = Field(min_length=1, max_length=MAX_ITEMS)


class LiveToolUse(LiveMessage):
    arguments: Json | str = Field(default_factory=dict)
    seq: int | None = Field(
        default=None, ge=1, description="among the events; a repeat is done once"
    )


class LiveEnd(LiveMessage):
    reason: str = Field(default="completed", pattern=r"^[a-z][a-z0-9_]{0,63}$")
    ended_at: Instant | None = None


class LiveApi:
    """The operations, the same for requests and for messages of a socket."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._calls = app.phone.remote_calls

    async def start(self, start: LiveStart) -> RemoteCall:
        self._app.load.check_live_call(start.source, start.sid)
        now = self._app.clock.now()
        started_at = min((start.started_at or now) + start.find_shift(self._app), now)
        if now - started_at > MAX_DURATION:
            raise RefusedInput("started_at", "lies more than 48 hours back")
        fields: Json = start.model_dump(
            include={"source", "sid", "caller", "callee", "direction", "metadata"}
        )
        is_believed = self._app.settings.calls.believe_posted
        fields["verified"] = start.verified and is_believed
        if start.carrier is not None:
            ring = self._read_ring(start.source, start.carrier)
            if ring.sid != start.sid:
                raise RefusedInput("sid", f"is not the one that {ring.source} signed")
            for name in ("caller", "callee", "direction", "verified"):
                fields[name] = getattr(ring, name)
            fields["metadata"] = {**start.metadata, **ring.metadata}
        fields["agent_id"] = start.agent or self._app.settings.agent_id
        call = LiveCall.model_validate({**fields, "started_at": started_at})
        return await self._calls.start(RemoteStart(call, start.sender, start.turns))

    async def find(self, call_id: str, message: LiveMessage) -> RemoteCall:
        return await self._calls.get(call_id, message.sender)

    async def write_turns(self, call: RemoteCall, sent: LiveTurns) -> Json:
        await call.write_turns(sent.turns, sent.find_shift(self._app))
        return {"turns": call.turns}

    async def write_events(self, call: RemoteCall, sent: LiveEvents) -> Json:
        shift = sent.find_shift(self._app)
        for event in sent.events:
            await call.write_event(event, shift)
        return {"turns": call.turns}

    async def use_tool(
        self, call: RemoteCall, name: ToolName, use: LiveToolUse
    ) -> Json:
        given = use.arguments
        arguments = given if isinstance(given, str) else json.dumps(given)
        return {"text": await call.run_tool(name, arguments, use.seq)}

    async def end(self, call: RemoteCall, end: LiveEnd) -> Json:
        shift = end.find_shift(self._app)
        now = self._app.clock.now()
        await call.end(
            end.reason, min(end.ended_at + shift, now) if end.ended_at else None
        )
        return {"call": call.call.id, "reason": call.end_reason, "turns": call.turns}

    async def brief(self, call: RemoteCall) -> Json:
        briefing = await call.get_briefing()
        shown = briefing_json(briefing, self._app.settings.zone)
        return shown | {"first_words": briefing.first_words}

    async def describe(self, call: RemoteCall) -> Json:
        """The answer to a start."""
        briefing = await self.brief(call)
        return {
            "call": call.call.id,
            "conversation": call.call.conversation,
            "resumes": call.call.resumes,
            "turns": call.turns,
            "lease_s": self._app.settings.live.lease_s,
            "greeting": briefing["first_words"],
            "briefing": briefing,
            "tools": [
                {name: getattr(tool, name) for name in LiveToolDescription.model_fields}
                for tool in TOOLS
            ],
        }

    def _read_ring(self, source: str, webhook: CarrierWebhook) -> RingNotice:
        """The ring that the carrier signed. One signed too long ago attests nothing."""
        settings = self._app.settings
        body = webhook.body.encode()
        place = urlsplit(webhook.url)
        target = f"{place.path}?{place.query}" if place.query else place.path
        signature: Signature
        if source == twilio.SOURCE:
            origin = f"{place.scheme}://{place.netloc}"
            signature = TwilioSignature(settings.twilio.auth_token, origin)
        elif source == telnyx.SOURCE:
            signature = TelnyxSignature(settings.telnyx.public_key, self._app.clock)
        else:
            raise RefusedInput("source", "is not a carrier that signs: twilio, telnyx")
        flaw = signature.find_flaw(SignedRequest(target, webhook.headers, body))
        if flaw not in (None, SignatureFlaw.STALE):
            raise HTTPException(403, f"carrier: {flaw}")
        notice = (
            twilio.read_ring(twilio.read_form(body))
            if source == twilio.SOURCE
            else telnyx.read_event(body)
        )
        if not isinstance(notice, RingNotice):
            raise RefusedInput("carrier.body", "does not announce a call")
        return replace(notice, verified=False) if flaw else notice


def add_routes(parent: APIRouter, app: App) -> None:
    router = add_section(
        parent, "/api/live", [Depends(refuse_unknown_query)], tags=["live calls"]
    )
    api = LiveApi(app)

    @router.post(
        "",
        status_code=201,
        summary="A call begins, or its sender comes back to it; answers with the briefing",
        responses={200: {"description": "Known already", "model": LiveStartAnswer}},
        response_model=LiveStartAnswer,
    )
    async def post_live(
        start: Annotated[LiveStart, Body()], response: Response
    ) -> Json:
        if app.phone.remote_calls.find_live(start.source, start.sid) is None:
            app.phone.intake.refuse_if_closed()
        call = await _convert(api.start(start))
        response.status_code = 200 if call.turns else 201
        return await api.describe(call)

    @router.post(
        "/{call_id}/turns",
        summary="Turns that were said; answered when they are stored, repeats change nothing",
        response_model=LiveTurnsAnswer,
    )
    async def post_live_turns(call_id: str, sent: Annotated[LiveTurns, Body()]) -> Json:
        return await api.write_turns(await api.find(call_id, sent), sent)

    @router.post(
        "/{call_id}/events",
        summary="What happened besides: a tool used, an interruption (`barge_in`)",
        response_model=LiveTurnsAnswer,
    )
    async def post_live_events(
        call_id: str, sent: Annotated[LiveEvents, Body()]
    ) -> Json:
        return await api.write_events(await api.find(call_id, sent), sent)

    _add_agent_routes(router, app, api)


def _add_agent_routes(router: APIRouter, app: App, api: LiveApi) -> None:
    """What the agent asks for, and how it says that the call goes on or is over."""

    @router.get(
        "/{call_id}/briefing",
        summary="The briefing of the person it is by now",
        response_model=LiveBriefingAnswer,
    )
    async def get_live_briefing(call_id: str, sender: str = "") -> Json:
        return await api.brief(await app.phone.remote_calls.get(call_id, sender))

    @router.post(
        "/{call_id}/tools/{name}",
        summary="Search the memory, or take a request down",
        response_model=LiveToolAnswer,
    )
    async def post_live_tool(
        call_id: str, name: ToolName, use: Annotated[LiveToolUse, Body()]
    ) -> Json:
        return await api.use_tool(await api.find(call_id, use), name, use)

    @router.post(
        "/{call_id}/heartbeat",
        summary="The call goes on; renews its lease",
        response_model=LiveTurnsAnswer,
    )
    async def post_live_heartbeat(
        call_id: str, message: Annotated[LiveMessage, Body()]
    ) -> Json:
        return {"turns": (await api.find(call_id, message)).turns}

    @router.post(
        "/{call_id}/end",
        summary="The call is over; answered when it is sealed",
        response_model=LiveEndAnswer,
    )
    async def post_live_end(call_id: str, end: Annotated[LiveEnd, Body()]) -> Json:
        return await api.end(await api.find(call_id, end), end)


def add_socket(router: APIRouter, app: App, auth: BrowserAuth) -> None:
    @router.websocket("/api/live")
    async def live_calls(socket: WebSocket) -> None:
        """Live calls of agents elsewhere, any number over one socket."""
        if not await may_open(auth, socket):
            await socket.close(CLOSE_REFUSED)
            return
        await socket.accept()
        await LiveSocket(LiveApi(app), socket).run()


async def _convert(work: Awaitable[RemoteCall]) -> RemoteCall:
    """A call that does not fit its form is refused with the name of the field."""
    try:
        return await work
    except ValidationError as error:
        raise to_refused_input(error) from None


M = TypeVar("M", bound=LiveMessage)
Operation = Callable[[Json], Awaitable[Json]]


class LiveSocket:
    """The messages of one socket. Those of one call are carried out in their order."""

    def __init__(self, api: LiveApi, socket: WebSocket) -> None:
        self._api = api
        self._socket = socket
        self._calls: dict[str, RemoteCall] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(MAX_WAITING)
        self._operations: dict[str, Operation] = {
            "start": self._start,
            "turns": self._write_turns,
            "events": self._write_events,
            "briefing": self._brief,
            "tool": self._use_tool,
            "heartbeat": self._renew,
            "end": self._end,
        }

    async def run(self) -> None:
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] != "websocket.receive":
                    return
                await self._places.acquire()  # a sender that does not wait is not read
                text: str = message.get("text") or ""
                self._start_task(self._answer(text))
        except WebSocketDisconnect:
            pass
        finally:
            for call in self._calls.values():
                call.notify = None

    def _start_task(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, text: str) -> None:
        answer: Json = {"ref": None}
        try:
            fields = _parse(text)
            answer["ref"] = fields.pop("ref", None)
            operation = self._find_operation(fields.pop("op", None))
            answer["result"] = await operation(fields)
        except (AftercallError, ValidationError, HTTPException) as error:
            answer["error"] = _describe_error(error)
        except Exception as error:  # noqa: BLE001 - the edge of a message
            log.error(
                "message failed", error=type(error).__name__, place=get_place(error)
            )
            answer["error"] = _describe_error(error)
        finally:
            self._places.release()
        await self._send(answer)

    def _find_operation(self, name: object) -> Operation:
        if not isinstance(name, str) or name not in self._operations:
            raise RefusedInput("op", f"is not one of {', '.join(self._operations)}")
        return self._operations[name]

    async def _send(self, message: Json) -> None:
        """To a closed socket nothing is sent: the sender comes back and asks what is stored."""
        with suppress(WebSocketDisconnect, RuntimeError, OSError):
            await self._socket.send_text(json.dumps(message, separators=(",", ":")))

    async def _start(self, fields: Json) -> Json:
        call = await self._api.start(LiveStart.model_validate(fields))
        call_id = call.call.id
        self._calls[call_id] = call
        call.notify = lambda op, said: self._start_task(self._tell(call, op, said))
        return await self._api.describe(call)

    async def _tell(self, call: RemoteCall, op: str, said: Json) -> None:
        if op == "briefing":
            said = {"briefing": await self._api.brief(call)}
        await self._send({"op": op, "call": call.call.id, **said})

    async def _find(self, fields: Json, message: LiveMessage) -> RemoteCall:
        return await self._api.find(str(fields.get("call", "")), message)

    async def _write_turns(self, fields: Json) -> Json:
        sent = _read(LiveTurns, fields)
        return await self._api.write_turns(await self._find(fields, sent), sent)

    async def _write_events(self, fields: Json) -> Json:
        sent = _read(LiveEvents, fields)
        return await self._api.write_events(await self._find(fields, sent), sent)

    async def _brief(self, fields: Json) -> Json:
        call = await self._find(fields, _read(LiveMessage, fields))
        return await self._api.brief(call)

    async def _use_tool(self, fields: Json) -> Json:
        name = fields.pop("name", "")
        if name not in [tool.name for tool in TOOLS]:
            raise RefusedInput("name", "is not search_memory or take_request")
        use = _read(LiveToolUse, fields)
        return await self._api.use_tool(await self._find(fields, use), name, use)

    async def _renew(self, fields: Json) -> Json:
        """Without `call`: all calls that were begun over this socket."""
        message = _read(LiveMessage, fields)
        if "call" in fields:
            await self._find(fields, message)
        else:
            for call in self._calls.values():
                call.renew()
        return {}

    async def _end(self, fields: Json) -> Json:
        end = _read(LiveEnd, fields)
        call = await self._find(fields, end)
        self._calls.pop(call.call.id, None)
        return await self._api.end(call, end)


def _parse(text: str) -> Json:
    raw = text.encode("utf-8", "replace")
    refuse_many_values(raw, "message")
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise RefusedInput("message", "is not a JSON object")
    return fields


def _read(form: type[M], fields: Json) -> M:
    own = {name: value for name, value in fields.items() if name != "call"}
    return form.model_validate(own)


def _describe_error(error: Exception) -> Json:
    if isinstance(error, HTTPException):
        code = f"http.{error.status_code}"
        message = str(error.detail)
        return {"code": code, "message": message, "retryable": False}
    known = (
        to_refused_input(error)
        if isinstance(error, ValidationError)
        else to_aftercall_error(error)
    )
    retryable = known.retryable or known.code == "unexpected"
    return {"code": known.code, "message": str(known), "retryable": retryable}
