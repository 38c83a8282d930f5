"""`WS /browser/call`: a call from a web page, in text. The browser recognises and speaks.

From the page: `{"type": "say", "text": …, "confidence": …}`, `{"type": "hang_up"}`.
To the page: `{"type": "agent", "text": …}`, `{"type": "ended", "reason": …, "call": …}`,
`{"type": "refused", "reason": …}`.
"""

import json
from typing import Any

from fastapi import APIRouter, HTTPException, WebSocket, WebSocketDisconnect

from aftercall.app import App
from aftercall.bridge.turn_call import TurnCall
from aftercall.errors import AftercallError, RefusedInput
from aftercall.ids import new_id
from aftercall.model.calls import LiveCall
from aftercall.model.people import normalise_caller
from aftercall.model.turns import MAX_TURN_CHARS
from aftercall.web.auth import BrowserAuth
from aftercall.web.origin import CLOSE_REFUSED


def make_router(app: App, auth: BrowserAuth) -> APIRouter:
    router = APIRouter()

    @router.websocket("/browser/call")
    async def browser_call(socket: WebSocket, caller: str = "") -> None:
        """A call from a web page, in text."""
        if not await _is_allowed(auth, socket):
            await socket.close(CLOSE_REFUSED)
            return
        await socket.accept()
        try:
            call = TurnCall(app.phone.turn_parts, _make_call(app, caller))
            await _run_call(socket, call)
        except AftercallError as error:
            await socket.send_json({"type": "refused", "reason": str(error)})
            await socket.close(CLOSE_REFUSED)

    return router


async def _is_allowed(auth: BrowserAuth, socket: WebSocket) -> bool:
    try:
        return await auth.is_allowed(socket)
    except HTTPException:  # too many wrong tokens; a socket has no status code
        return False


async def _run_call(socket: WebSocket, call: TurnCall) -> None:
    try:
        await _send_agent_text(socket, call, (await call.start()).text)
        while call.end_reason is None:
            message = _parse(await socket.receive_text())
            if message["type"] == "hang_up":
                await call.end("caller_hung_up")
                break
            reply = await call.answer(message["text"], message.get("confidence"))
            await _send_agent_text(socket, call, reply.text)
        await socket.send_json(
            {"type": "ended", "reason": call.end_reason, "call": call.call.id}
        )
        await socket.close()
    except WebSocketDisconnect:
        await call.end("caller_hung_up")
    finally:
        await call.end("interrupted")


async def _send_agent_text(socket: WebSocket, call: TurnCall, text: str) -> None:
    await socket.send_json({"type": "agent", "text": text, "call": call.call.id})


def _make_call(app: App, caller: str) -> LiveCall:
    try:
        number = normalise_caller(caller)
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None
    return LiveCall(
        source="browser",
        sid=new_id(),
        agent_id=app.settings.agent_id,
        caller=number,
        started_at=app.clock.now(),
    )


def _parse(raw: str) -> dict[str, Any]:
    try:
        message = json.loads(raw)
    except ValueError:
        raise RefusedInput("message", "is not valid JSON") from None
    if not isinstance(message, dict) or message.get("type") not in ("say", "hang_up"):
        raise RefusedInput("message.type", "is not say or hang_up")
    text, confidence = message.get("text", ""), message.get("confidence")
    if not isinstance(text, str) or len(text) > MAX_TURN_CHARS:
        raise RefusedInput(
            "message.text", f"is not text of at most {MAX_TURN_CHARS:,} characters"
        )
    if message["type"] == "say" and not text.strip():
        raise RefusedInput("message.text", "is empty")
    is_number = isinstance(confidence, int | float)
    if confidence is not None and not (is_number and 0 <= confidence <= 1):
        raise RefusedInput("message.confidence", "is not a number from 0 to 1")
    return message
