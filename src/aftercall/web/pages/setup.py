"""Settings: what is configured, what is missing and how to set it, and the doctor's checks."""

from itertools import groupby

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from aftercall.config import Loaded, describe
from aftercall.doctor import examine
from aftercall.web.pages.desk import Desk

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


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(dependencies=[Depends(desk.view.door.admit)], include_in_schema=False)
    loaded = desk.loaded or Loaded(desk.app.settings, describe(desk.app.settings, {}), ())

    @router.get("/settings", response_class=HTMLResponse)
    def get_settings(request: Request) -> HTMLResponse:
        public = (desk.app.settings.public_url or "").rstrip("/")
        webhooks = [(name, f"{public}{path}") for name, path in _WEBHOOKS] if public else []
        sections = [(name, list(values)) for name, values in groupby(loaded.values, lambda value: _section(value.key))]
        audit = desk.app.audit.recent()
        return desk.view.page(request, "settings.html", audit=audit, sections=sections, webhooks=webhooks, checks=list(examine(loaded)))

    return router


def _section(key: str) -> str:
    section, dot, _ = key.partition(".")
    return section if dot else ""
