"""Settings: what is configured, what is missing and how to set it, and the doctor's checks."""

from itertools import groupby

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from aftercall.config import LoadedConfig, describe_settings
from aftercall.doctor import run_checks
from aftercall.web.pages.context import PageContext

_WEBHOOKS = (
    ("Twilio: a call comes in", "/twilio/voice"),
    ("Twilio: call status changes", "/twilio/status"),
    ("Twilio: a recording is ready", "/twilio/recording"),
    ("Telnyx: webhook of the application", "/telnyx/events"),
    ("ElevenLabs: post-call webhook", "/hosted/elevenlabs"),
    ("ElevenLabs: conversation initiation", "/hosted/elevenlabs/start"),
    ("Vapi: server URL", "/hosted/vapi"),
    ("Retell: webhook URL", "/hosted/retell"),
    ("Bland: webhook", "/hosted/bland"),
)


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter(
        dependencies=[Depends(context.view.auth.require_access)], include_in_schema=False
    )
    loaded = context.loaded or LoadedConfig(
        context.app.settings, describe_settings(context.app.settings, {}), ()
    )

    @router.get("/settings", response_class=HTMLResponse)
    def get_settings(request: Request) -> HTMLResponse:
        public = (context.app.settings.public_url or "").rstrip("/")
        webhooks = [(name, f"{public}{path}") for name, path in _WEBHOOKS] if public else []
        sections = [
            (name, list(values))
            for name, values in groupby(loaded.values, lambda value: _section(value.key))
        ]
        audit = context.app.audit.list_recent()
        return context.view.render_page(
            request,
            "settings.html",
            audit=audit,
            sections=sections,
            webhooks=webhooks,
            checks=list(run_checks(loaded)),
        )

    return router


def _section(key: str) -> str:
    section, dot, _ = key.partition(".")
    return section if dot else ""
