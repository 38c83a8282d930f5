"""The web server: one process for webhooks, media, API and pages."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from aftercall import __version__, telemetry
from aftercall.app import App
from aftercall.clock import with_timeout
from aftercall.config import LoadedConfig
from aftercall.db.upgrade import can_use, current_revision
from aftercall.errors import (
    AftercallError,
    DatabaseOutdated,
    DatabaseUnreachable,
    RefusedInput,
)
from aftercall.log import get_logger
from aftercall.model.calls import problem_to_refusal
from aftercall.phone.telnyx import MAX_BODY_BYTES as MAX_TELNYX_BYTES
from aftercall.phone.twilio import MAX_BODY_BYTES as MAX_TWILIO_BYTES
from aftercall.running import read_gauges, running
from aftercall.web import (
    api,
    api_overview,
    documents,
    hosted,
    live,
    sockets,
    telnyx,
    twilio,
)
from aftercall.web.api_models import RefusalAnswer
from aftercall.web.auth import BrowserAuth, GuessLimit, LoginNeeded
from aftercall.web.limits import (
    MAX_PAGE_BYTES,
    BodyRule,
    OriginFilter,
    RequestLimits,
    answer_http_error,
    get_route,
    require_json,
    wants_page,
)
from aftercall.web.live_feed import LiveFeed
from aftercall.web.page_store import PageStore
from aftercall.web.pages import (
    calls,
    memory,
    people,
    site,
    tests,
    today,
    work,
)
from aftercall.web.pages.context import PageContext, TemplateRenderer
from aftercall.web.routes import LazyRoute, add_section
from aftercall.web.users import SessionStore, UserStore

RETRY_AFTER_S = 5.0
READY_TIMEOUT_S = 2.0  # then the database counts as away; balancers wait little longer
STOPPING = "the process is about to stop and takes no new calls"

log = get_logger("web")


def make_server(app: App, loaded: LoadedConfig | None = None) -> FastAPI:
    """All routes, in front of them the limits."""
    telnyx_calls = telnyx.make_calls(app)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with running(app):
            yield
            if telnyx_calls is not None:
                await telnyx_calls.close()
            await app.phone.close()

    server = FastAPI(
        title="Aftercall",
        version=__version__,
        summary="The call ends; the work doesn't.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from elsewhere; pages/site.py serves /docs
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        responses={"default": {"model": RefusalAnswer, "description": "A refusal"}},
    )
    server.state.intake = app.phone.intake
    server.add_middleware(OriginFilter, public_url=app.settings.public_url)
    sessions = SessionStore(app.database, app.settings, app.clock)
    users = UserStore(app.database, app.clock)
    auth = BrowserAuth(app.settings, sessions, users, GuessLimit(app.clock))
    needs_token = [Depends(auth.api), Depends(require_json)]
    router = server.router
    router.route_class = LazyRoute
    guarded = add_section(router, dependencies=needs_token)
    for part in (api, api_overview, live, documents):
        part.add_routes(guarded, app)
    sockets.add_sockets(router, app, auth)
    live.add_socket(router, app, auth)
    sockets.add_carrier_sockets(router, app)
    twilio.add_routes(router, app)
    telnyx.add_routes(router, app, telnyx_calls)
    hosted.add_routes(router, app)
    view = TemplateRenderer(auth, app.settings.zone, partial(work.describe_done, app))
    _add_pages(server, app, view, loaded)
    _add_error_answers(server, view)
    _add_probes(server, app)
    _add_limits(server, app, auth, view)
    return server


def _add_limits(
    server: FastAPI, app: App, auth: BrowserAuth, view: TemplateRenderer
) -> None:
    async def check_known(request: Request) -> None:
        if not await auth.is_allowed(request):
            await auth.api(request)

    private = [
        path
        for path in ("/metrics", "/openapi.json")
        if path not in app.settings.web.open
    ]
    rules = (
        BodyRule("/api/calls", api.MAX_BODY_BYTES, auth.api),
        BodyRule("/api/live", live.MAX_BODY_BYTES, auth.api),
        BodyRule("/api/", MAX_PAGE_BYTES, auth.api),
        BodyRule("/v1/", documents.MAX_BODY_BYTES, auth.api),
        BodyRule("/twilio/", MAX_TWILIO_BYTES),
        BodyRule("/telnyx/", MAX_TELNYX_BYTES),
        BodyRule("/hosted/elevenlabs/", hosted.MAX_START_BYTES),
        BodyRule("/hosted/bland/", hosted.MAX_START_BYTES),
        BodyRule("/hosted/", hosted.MAX_BODY_BYTES),
        *(BodyRule(path, 0, check_known) for path in private),
    )
    is_https = (app.settings.public_url or "").startswith("https:")
    server.add_middleware(
        RequestLimits,
        rules=rules,
        is_known=auth.is_allowed,
        is_https=is_https,
        show_error=view.render_error,
    )


def _add_pages(
    server: FastAPI, app: App, view: TemplateRenderer, loaded: LoadedConfig | None
) -> None:
    store = PageStore(app.database)
    server.state.feed = LiveFeed(store, app.phone.is_audible)
    pages = APIRouter(include_in_schema=False, route_class=LazyRoute)
    pages.routes = server.routes
    context = PageContext(app, pages, view, store, server.state.feed, loaded)
    view.add_global("first_steps", partial(site.list_first_steps, context))
    view.add_global("called", context.find_title)
    view.add_global("is_overdue", context.is_overdue)
    for page in (today, calls, people, memory, work, tests, site):
        page.add_routes(context)
    server.mount("/static", HashedFiles(packages=[("aftercall.web", "static")]))
    server.add_exception_handler(LoginNeeded, site.redirect_to_login)


class HashedFiles(StaticFiles):
    """Files that a browser may keep when their address holds their hash."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if scope["query_string"].startswith(b"v=") and response.status_code == 200:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def _add_probes(server: FastAPI, app: App) -> None:
    @server.get("/healthz", tags=["operations"], summary="The process is up")
    async def get_healthz() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @server.get("/readyz", tags=["operations"], summary="The process can take calls")
    async def get_readyz() -> dict[str, str]:
        if not app.phone.intake.is_open:
            raise HTTPException(503, STOPPING)
        if await _is_database_away(app):
            return {"status": "ready", "database": "away"}
        return {"status": "ready"}

    @server.get(
        "/metrics",
        tags=["operations"],
        summary="Prometheus text",
        response_class=PlainTextResponse,
    )
    def get_metrics() -> bytes:
        return telemetry.start().render(partial(read_gauges, app))


async def _is_database_away(app: App) -> bool:
    """Raises if its schema is not for this version.

    Calls are answered without it and kept on disk: a balancer must go on sending them. One that
    hangs is left alone from here on until it answers.
    """
    outage = app.journal.outage
    if outage.is_active:
        return True
    reading = asyncio.to_thread(_read_revision, app)
    try:
        current = await with_timeout(app.clock, READY_TIMEOUT_S, reading)
    except (TimeoutError, DatabaseUnreachable) as error:
        outage.start(DatabaseUnreachable(f"the database: {error}"))
        return True
    if not can_use(current):
        raise DatabaseOutdated(
            f"the database is at revision {current}; run `aftercall db upgrade`"
        )
    return False


def _read_revision(app: App) -> str | None:
    with app.database.read() as connection:
        return current_revision(connection)


def _add_error_answers(server: FastAPI, view: TemplateRenderer) -> None:
    """Errors are pages for people and one line of JSON for programs."""

    async def answer_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, AftercallError)  # noqa: S101 - what it is registered for
        problem = {"code": error.code, "message": str(error)}
        if isinstance(error, RefusedInput):
            problem["field"] = error.field
        log.info("request refused", route=get_route(request.scope), code=error.code)
        if wants_page(request.scope):
            return view.render_error(request, error.http_status, str(error))
        headers = {}
        if error.retryable and (error.http_status == 503 or error.retry_after_s):
            wait_s = error.retry_after_s or RETRY_AFTER_S
            headers["Retry-After"] = str(math.ceil(wait_s))
        return JSONResponse({"error": problem}, error.http_status, headers)

    async def answer_invalid(request: Request, error: Exception) -> Response:
        """Names the first field that does not fit; what was sent is not repeated."""
        assert isinstance(error, RequestValidationError)  # noqa: S101 - what it is registered for
        first = error.errors()[0]
        place = first["loc"][1:] or first["loc"]  # without `query` or `body`
        return await answer_error(request, problem_to_refusal(first | {"loc": place}))

    async def answer_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
        return answer_http_error(request.scope, error, view.render_error)

    server.add_exception_handler(AftercallError, answer_error)
    server.add_exception_handler(HTTPException, answer_http)
    server.add_exception_handler(RequestValidationError, answer_invalid)
