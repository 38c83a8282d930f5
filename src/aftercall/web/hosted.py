"""`POST /hosted/…`: calls of platforms that run them, from the start to the report.

Vapi and Retell send everything to one signed address. ElevenLabs and Bland sign only the report:
their starts and tools have addresses of their own and bring a bearer token. An error on our side
gets a status code that makes the platform deliver again; so does a process at its limits.
"""

from contextlib import nullcontext, suppress
from functools import partial
from typing import Literal

from fastapi import APIRouter, HTTPException, Request
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.bridge.hosted_calls import HostedCalls
from aftercall.bridge.remote_call import RemoteCall
from aftercall.briefing.render import briefing_variables
from aftercall.carrier.media import find_reported_url
from aftercall.errors import CallElsewhere, ConfigError, Overloaded
from aftercall.hosted.adapters import Bland, ElevenLabs, Retell, Vapi
from aftercall.hosted.platform import UNKNOWN_SID, Platform, parse_event
from aftercall.log import get_logger
from aftercall.model.calls import Call, LiveCall
from aftercall.model.json_fields import Json
from aftercall.rest import Headers
from aftercall.web.routes import add_section

MAX_START_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024  # a webhook may carry a recording

ToolName = Literal["search_memory", "take_request"]

log = get_logger("hosted")


def add_routes(parent: APIRouter, app: App) -> None:
    router = add_section(parent, "/hosted", tags=["hosted platforms"])
    settings = app.settings
    elevenlabs = ElevenLabs(
        settings.elevenlabs.webhook_secret,
        settings.elevenlabs.agents,
        settings.elevenlabs.start_secret,
    )
    bland = Bland(settings.bland.webhook_secret, settings.bland.start_secret)
    vapi = Vapi(settings.vapi.webhook_secret, settings.vapi.assistant_id)
    platforms: list[Platform] = [
        elevenlabs,
        vapi,
        Retell(settings.retell.api_key),
        bland,
    ]
    for platform in platforms:
        _add_webhook_route(router, HostedWebhook(app, platform))
    for platform in (elevenlabs, bland):
        _add_token_routes(router, HostedWebhook(app, platform))


class HostedWebhook:
    """What one platform may send, once it is verified.

    The secrets are checked before anything is read. A missing setting is 503 and not 404, so that
    a platform with retries delivers again when the setting is there.
    """

    def __init__(self, app: App, platform: Platform) -> None:
        self._app = app
        self._calls: HostedCalls = app.hosted_calls
        self.platform = platform

    async def answer(self, headers: Headers, raw: bytes) -> Json:
        """What the platform waits for, or the id of the call.

        A report may be megabytes, so it is not read on the event loop. Events that say nothing of
        a call, or that a later version of the platform adds, get 200: any other status would
        be sent again, or would count against the webhook.
        """
        event, report = await run_in_threadpool(self._read, headers, raw)
        if report is not None:
            url = find_reported_url(self.platform.name, event)
            return {"id": await self._take_report(report, url)}
        if self.platform.is_start(event):
            return await self.brief(event)
        if self.platform.read_tool_calls(event, ""):
            return await self.use_tools(event, "")
        if self.platform.is_running(event):
            live = await self._show(self._read_running(event))
            return {"id": live.call.id if live else None}
        return {"id": None}

    async def brief(self, event: Json) -> Json:
        """The briefing, in the platform's form. A call of another agent gets none of ours.

        A call that has its id is opened with it, and briefed once however often it is asked for.
        One beyond `limits.live_calls` is briefed and not opened: the platform runs it anyway.
        """
        variables: dict[str, str | bool] = {}
        if self.platform.is_ours(event):
            call = self._read_running(event)
            live = None
            with suppress(Overloaded):
                live = await self._show(call)
            if live is not None:
                briefing = await live.get_briefing()
            else:
                _, briefing = await self._app.phone.brief(call)
            variables |= briefing_variables(briefing, self._app.settings.zone)
        try:
            return self.platform.answer_start(variables)
        except ConfigError as error:
            raise HTTPException(503, str(error)) from None

    async def use_tools(self, event: Json, name: str) -> Json:
        call = self._read_running(event)
        if not self.platform.is_ours(event):
            raise HTTPException(403, "the call is of another agent")
        used = self.platform.read_tool_calls(event, name)
        self._app.load.check_live_call(call.source, call.sid)
        return self.platform.answer_tools(await self._calls.use_tools(call, used))

    def check_token(self, headers: Headers) -> None:
        platform = self.platform
        if not platform.has_start_key:
            raise HTTPException(
                503, f"{platform.name} is not set up here: set {platform.start_setting}"
            )
        if not platform.is_start_genuine(headers):
            log.warning("webhook refused", platform=platform.name)
            raise HTTPException(403, f"the secret is not {platform.name}'s")

    def _read(self, headers: Headers, raw: bytes) -> tuple[Json, Call | None]:
        """The event, once its signature is proven, and the call that it reports."""
        platform = self.platform
        app = self._app
        if not platform.has_key:
            raise HTTPException(
                503, f"{platform.name} is not set up here: set {platform.setting}"
            )
        if not platform.is_genuine(headers, raw, app.clock.now()):
            log.warning("webhook refused", platform=platform.name)
            raise HTTPException(403, f"the signature is not {platform.name}'s")
        event = parse_event(raw)
        return event, platform.read_call(event, app.settings.agent_id)

    def _read_running(self, event: Json) -> LiveCall:
        now = self._app.clock.now()
        return self.platform.read_running(event, self._app.settings.agent_id, now)

    async def _show(self, call: LiveCall) -> RemoteCall | None:
        if call.sid != UNKNOWN_SID:
            self._app.load.check_live_call(call.source, call.sid)
        return await self._calls.show(call)

    async def _take_report(self, report: Call, recording_url: str | None) -> str:
        """A report that is refused comes again, or `reconcile` brings it.

        One of a call that goes on here is not refused: it ends the call. A database that hangs
        is not waited for: the report gets 503.
        """
        load = self._app.load
        watch = self._app.journal.outage.watch
        live = self._app.phone.remote_calls.find_live(report.source, report.sid)
        try:
            with nullcontext() if live else load.ingesting():
                if not live:
                    await watch(partial(run_in_threadpool, load.check_queue))
                take = partial(self._calls.take_report, report, recording_url)
                call_id, _ = await watch(take)
                return call_id
        except CallElsewhere as error:  # `reconcile` brings it if nobody sends it again
            raise HTTPException(503, str(error)) from None


def _add_webhook_route(router: APIRouter, webhook: HostedWebhook) -> None:
    name = webhook.platform.name

    @router.post(
        f"/{name}",
        summary=f"A call at {name}, while it goes on and when it is over",
        name=f"post_{name}",
    )
    async def post_event(request: Request) -> Json:
        return await webhook.answer(request.headers, await request.body())


def _add_token_routes(router: APIRouter, webhook: HostedWebhook) -> None:
    name = webhook.platform.name

    @router.post(
        f"/{name}/start",
        summary=f"The briefing for a new call at {name}, as variables",
        name=f"post_{name}_start",
    )
    async def post_start(request: Request) -> Json:
        webhook.check_token(request.headers)
        return await webhook.brief(parse_event(await request.body()))

    @router.post(
        f"/{name}/tools/{{tool}}",
        summary=f"The agent at {name} uses one of our tools",
        name=f"post_{name}_tool",
    )
    async def post_tool(tool: ToolName, request: Request) -> Json:
        webhook.check_token(request.headers)
        return await webhook.use_tools(parse_event(await request.body()), tool)
