"""The web server: one process for webhooks, media, API and pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from aftercall import __version__, telemetry
from aftercall.app import App
from aftercall.config import LoadedConfig
from aftercall.db.upgrade import NEWEST_REVISION, current_revision
from aftercall.errors import AftercallError, DatabaseOutdated, RefusedInput
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
from aftercall.web.auth import BrowserAuth, GuessLimit, LoginNeeded, SessionStore
from aftercall.web.limits import (
    MAX_PAGE_BYTES,
    BodyRule,
    OriginFilter,
    RequestLimits,
    answer_http_error,
    get_route,
    require_json,
)
from aftercall.web.page_store import LiveFeed, PageStore
from aftercall.web.pages import calls, memory, people, site, tests, today, work
from aftercall.web.pages.context import PageContext, TemplateRenderer

log = get_logger("web")


def make_server(app: App, loaded: LoadedConfig | None = None) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with running(app):
            yield
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
    server.add_middleware(OriginFilter, public_url=app.settings.public_url)
    sessions = SessionStore(app.database, app.settings, app.clock)
    auth = BrowserAuth(app.settings, sessions, GuessLimit(app.clock))
    needs_token = [Depends(auth.api), Depends(require_json)]
    for part in (api, api_overview, live, documents):
        server.include_router(part.make_router(app), dependencies=needs_token)
    server.include_router(sockets.make_router(app, auth))
    server.include_router(live.make_socket_router(app, auth))
    server.include_router(sockets.make_carrier_router(app))
    for part in (twilio, telnyx, hosted):
        server.include_router(part.make_router(app))
    _add_pages(server, app, auth, loaded)
    server.add_exception_handler(AftercallError, _answer_error)
    server.add_exception_handler(HTTPException, _answer_http_error)
    server.add_exception_handler(RequestValidationError, _answer_invalid)
    _add_probes(server, app)
    _add_limits(server, app, auth)
    return server


def _add_limits(server: FastAPI, app: App, auth: BrowserAuth) -> None:
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
        BodyRule("/hosted/elevenlabs/start", hosted.MAX_START_BYTES),
        BodyRule("/hosted/", hosted.MAX_BODY_BYTES),
        *(BodyRule(path, 0, check_known) for path in private),
    )
    is_https = (app.settings.public_url or "").startswith("https:")
    server.add_middleware(
        RequestLimits, rules=rules, is_known=auth.is_allowed, is_https=is_https
    )


def _add_pages(
    server: FastAPI, app: App, auth: BrowserAuth, loaded: LoadedConfig | None
) -> None:
    store = PageStore(app.database)
    server.state.feed = LiveFeed(store)
    view = TemplateRenderer(auth, app.settings.zone)
    context = PageContext(app, view, store, server.state.feed, loaded)
    for page in (today, calls, people, memory, work, tests):
        server.include_router(page.make_router(context))
    server.include_router(site.make_router(context, server))
    server.mount("/static", StaticFiles(packages=[("aftercall.web", "static")]))
    server.add_exception_handler(LoginNeeded, site.redirect_to_login)


def _add_probes(server: FastAPI, app: App) -> None:
    @server.get("/healthz", tags=["operations"], summary="The process is up")
    def get_healthz() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @server.get("/readyz", tags=["operations"], summary="The process can take calls")
    async def get_readyz() -> dict[str, str]:
        await run_in_threadpool(_check_ready, app)
        return {"status": "ready"}

    @server.get(
        "/metrics",
        tags=["operations"],
        summary="Prometheus text",
        response_class=PlainTextResponse,
    )
    def get_metrics() -> bytes:
        return telemetry.start().render(partial(read_gauges, app))


def _check_ready(app: App) -> None:
    with app.database.read() as connection:
        current = current_revision(connection)
    if current != NEWEST_REVISION:
        raise DatabaseOutdated(
            f"the database is at revision {current}; run `aftercall db upgrade`"
        )


async def _answer_error(request: Request, error: Exception) -> Response:
    """Turns an error of ours into its status code and one line of JSON."""
    assert isinstance(error, AftercallError)  # noqa: S101 - what it is registered for
    problem = {"code": error.code, "message": str(error)}
    if isinstance(error, RefusedInput):
        problem["field"] = error.field
    log.info("request refused", route=get_route(request.scope), code=error.code)
    return JSONResponse({"error": problem}, status_code=error.http_status)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    """Names the first field that does not fit; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - what it is registered for
    first = error.errors()[0]
    place = first["loc"][1:] or first["loc"]  # without `query` or `body`
    return await _answer_error(request, problem_to_refusal(first | {"loc": place}))


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    return answer_http_error(request.scope, error)
