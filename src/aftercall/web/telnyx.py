"""Telnyx's webhooks: one address for every event.

Only what Telnyx signed is believed; events come twice and out of order.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, HTTPException, Request

from aftercall.app import App
from aftercall.bridge.switchboard import Switchboard
from aftercall.log import get_logger
from aftercall.phone.signature import Signature, SignatureFlaw, SignedRequest, TelnyxSignature
from aftercall.phone.telnyx_webhooks import MAX_BODY_BYTES, read_event
from aftercall.web.queries import read_body
from aftercall.web.telnyx_calls import LiveAudio, TelnyxCalls

NOT_SET_UP = (
    "Telnyx is not set up here: set TELNYX_API_KEY and TELNYX_PUBLIC_KEY, and install "
    "aftercall[telnyx]"
)

log = get_logger("carrier")


def make_router(app: App, audio: LiveAudio | None = None) -> APIRouter:
    """`audio` answers calls on the media socket; without it the receptionist speaks through
    Telnyx itself.
    """
    signature = _make_signature(app)
    calls = (
        TelnyxCalls(app, Switchboard(app.turn_parts, app.clock), app.telnyx, audio)
        if app.telnyx
        else None
    )

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        if calls is not None:
            await calls.close()

    router = APIRouter(prefix="/telnyx", tags=["carriers"], lifespan=lifespan)

    @router.post("/events", summary="Telnyx: everything that happens in a call")
    async def post_event(request: Request) -> dict[str, str]:
        if calls is None or signature is None:
            raise HTTPException(503, NOT_SET_UP)
        notice = read_event(await _read_signed(request, signature))
        if notice is not None:
            await calls.process_notice(notice)
        return {"result": "ok"}

    return router


def _make_signature(app: App) -> Signature | None:
    if not app.settings.telnyx.public_key:
        return None
    try:
        return TelnyxSignature(app.settings.telnyx.public_key, app.clock)
    except ModuleNotFoundError:
        return None


async def _read_signed(request: Request, signature: Signature) -> bytes:
    body = await read_body(request, MAX_BODY_BYTES)
    flaw = signature.find_flaw(SignedRequest(request.url.path, dict(request.headers), body))
    if flaw is SignatureFlaw.NO_KEY:
        raise HTTPException(503, NOT_SET_UP)
    if flaw is not None:
        log.warning("a webhook was refused", flaw=flaw.name.lower(), path=request.url.path)
        raise HTTPException(403, "the signature is not Telnyx'")
    return body
