"""`WS /browser/call`: a call from a web page, in text; listening and speaking is the browser's business.

From the page: `{"type": "say", "text": …, "confidence": …}`, `{"type": "hang_up"}`.
To the page: `{"type": "agent", "text": …}`, `{"type": "ended", "reason": …, "call": …}`, `{"type": "refused", "reason": …}`.
"""

import json
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from aftercall.app import App
from aftercall.bridge.turn_call import TurnCall
from aftercall.errors import AftercallError, RefusedInput
from aftercall.ids import new_id
from aftercall.model.calls import LiveCall
from aftercall.model.people import normalise_caller
from aftercall.model.turns import MAX_TURN_TEXT
from aftercall.web.auth import is_same_origin
from aftercall.web.door import Door

REFUSED = 1008


def make_router(app: App, door: Door) -> APIRouter:
    router = APIRouter()

    @router.websocket("/browser/call")
    async def browser_call(socket: WebSocket, caller: str = "") -> None:
        """A call from a web page, in text."""
        if not door.lets_in(socket) or not is_same_origin(socket):
            await socket.close(REFUSED)
            return
        await socket.accept()
        try:
            call = TurnCall(app.turn_parts, _make_call(app, caller))
            await _hold(socket, call)
        except AftercallError as error:
            await socket.send_json({"type": "refused", "reason": str(error)})
            await socket.close(REFUSED)

    return router


async def _hold(socket: WebSocket, call: TurnCall) -> None:
    try:
        await _tell(socket, call, (await call.begin()).text)
        while call.ended is None:
            message = _parse(await socket.receive_text())
            if message["type"] == "hang_up":
                await call.end("caller_hung_up")
                break
            reply = await call.hear(message["text"], message.get("confidence"))
            await _tell(socket, call, reply.text)
        await socket.send_json({"type": "ended", "reason": call.ended, "call": call.call.id})
        await socket.close()
    except WebSocketDisconnect:
        await call.end("caller_hung_up")
    finally:
        await call.end("interrupted")


async def _tell(socket: WebSocket, call: TurnCall, text: str) -> None:
    await socket.send_json({"type": "agent", "text": text, "call": call.call.id})


def _make_call(app: App, caller: str) -> LiveCall:
    try:
        number = normalise_caller(caller)
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None
    return LiveCall(source="browser", sid=new_id(), agent_id=app.settings.agent_id, caller=number, started_at=app.clock.now())


def _parse(raw: str) -> dict[str, Any]:
    try:
        message = json.loads(raw)
    except ValueError:
        raise RefusedInput("message", "is not valid JSON") from None
    if not isinstance(message, dict) or message.get("type") not in ("say", "hang_up"):
        raise RefusedInput("message.type", "is not say or hang_up")
    text = message.get("text", "")
    if not isinstance(text, str) or len(text) > MAX_TURN_TEXT or (message["type"] == "say" and not text.strip()):
        raise RefusedInput("message.text", "is not text that can be said")
    confidence = message.get("confidence")
    if confidence is not None and not (isinstance(confidence, int | float) and 0 <= confidence <= 1):
        raise RefusedInput("message.confidence", "is not a number from 0 to 1")
    return message
