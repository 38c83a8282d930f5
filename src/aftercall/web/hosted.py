"""`POST /hosted/…`: finished calls from platforms that ran them.

An error on our side gets a status code that makes the platform deliver again.
"""

from collections.abc import Mapping

from fastapi import APIRouter, HTTPException, Request
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.briefing.render import briefing_variables
from aftercall.hosted.adapters import Bland, ElevenLabs, Retell, Vapi
from aftercall.hosted.platform import Platform, parse_event
from aftercall.journal.journal import ingest_call
from aftercall.journal.store import CallRow
from aftercall.log import get_logger

MAX_START_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024  # a webhook may carry a recording

log = get_logger("hosted")


def make_router(app: App) -> APIRouter:
    router = APIRouter(prefix="/hosted", tags=["hosted platforms"])
    settings = app.settings
    elevenlabs = ElevenLabs(
        settings.elevenlabs.webhook_secret,
        settings.elevenlabs.agents,
        settings.elevenlabs.start_secret,
    )
    platforms: list[Platform] = [
        elevenlabs,
        Vapi(settings.vapi.webhook_secret),
        Retell(settings.retell.api_key),
        Bland(settings.bland.webhook_secret),
    ]
    for platform in platforms:
        _add_webhook_route(router, app, platform)
    _add_start(router, app, elevenlabs)
    return router


def _add_start(router: APIRouter, app: App, platform: ElevenLabs) -> None:
    @router.post(
        "/elevenlabs/start",
        summary="The briefing for a new call at elevenlabs, as dynamic variables",
    )
    async def post_start(request: Request) -> dict[str, object]:
        if not platform.has_start_key:
            raise HTTPException(
                503, f"{platform.name} is not set up here: set {platform.start_setting}"
            )
        if not platform.is_start_genuine(request.headers):
            log.warning("webhook refused", platform=platform.name)
            raise HTTPException(403, f"the secret is not {platform.name}'s")
        event = parse_event(await request.body())
        variables: dict[str, object] = {}
        if platform.is_ours(event):  # a call of another agent gets no briefing of ours
            call = platform.read_start(event, app.settings.agent_id, app.clock.now())
            _, briefing = await app.phone.brief(call)
            variables |= briefing_variables(briefing, app.settings.zone)
        return {
            "type": "conversation_initiation_client_data",
            "dynamic_variables": variables,
        }


def _add_webhook_route(router: APIRouter, app: App, platform: Platform) -> None:
    @router.post(
        f"/{platform.name}",
        summary=f"A finished call from {platform.name}",
        name=f"post_{platform.name}",
    )
    async def post_event(request: Request) -> dict[str, str | None]:
        if not platform.has_key:
            raise HTTPException(
                503, f"{platform.name} is not set up here: set {platform.setting}"
            )
        raw = await request.body()
        row = await run_in_threadpool(_take_in, app, platform, request.headers, raw)
        return {"id": row.live.id if row else None}


def _take_in(
    app: App, platform: Platform, headers: Mapping[str, str], raw: bytes
) -> CallRow | None:
    """Verifies, parses and seals a finished call: megabytes, so not on the event loop."""
    if not platform.is_genuine(headers, raw, app.clock.now()):
        log.warning("webhook refused", platform=platform.name)
        raise HTTPException(403, f"the signature is not {platform.name}'s")
    call = platform.read_call(parse_event(raw), app.settings.agent_id)
    return ingest_call(app.journal, call)[0] if call else None
