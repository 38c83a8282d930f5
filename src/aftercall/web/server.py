"""The web server: one process for webhooks, media, API and pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from aftercall import __version__
from aftercall.app import App
from aftercall.db.revision import NEWEST, current_revision
from aftercall.errors import AftercallError, DatabaseOutdated, RefusedInput
from aftercall.log import get_logger
from aftercall.running import running
from aftercall.web import api, browser, carrier, hosted, media, pages
from aftercall.web.auth import Guard

log = get_logger("web")


def make_server(app: App) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with running(app):
            yield

    server = FastAPI(title="Aftercall", version=__version__, lifespan=lifespan, summary="The call ends; the work doesn't.")
    guard = Guard(app.settings.api_token)
    server.include_router(api.make_router(app), dependencies=[Depends(guard)])
    server.include_router(browser.make_router(app, guard))
    server.include_router(carrier.make_router(app))
    server.include_router(media.make_router(app))
    server.include_router(hosted.make_router(app))
    server.include_router(pages.make_router())
    server.add_exception_handler(AftercallError, _answer_error)
    server.add_exception_handler(HTTPException, _answer_http_error)
    _add_probes(server, app)
    return server


def _add_probes(server: FastAPI, app: App) -> None:
    @server.get("/healthz", tags=["operations"], summary="The process is up")
    def get_healthz() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @server.get("/readyz", tags=["operations"], summary="The process can take calls")
    async def get_readyz() -> dict[str, str]:
        await run_in_threadpool(_check_ready, app)
        return {"status": "ready"}

    @server.get("/metrics", tags=["operations"], summary="Prometheus text", response_class=PlainTextResponse)
    def get_metrics() -> str:
        help_line = "# HELP aftercall_live_calls Calls going on in this process."
        return f"{help_line}\n# TYPE aftercall_live_calls gauge\naftercall_live_calls {len(app.journal.live)}\n"


def _check_ready(app: App) -> None:
    with app.database.read() as connection:
        current = current_revision(connection)
    if current != NEWEST:
        raise DatabaseOutdated(f"the database is at revision {current}; run `aftercall db upgrade`")


async def _answer_error(request: Request, error: Exception) -> Response:
    """The edge of a request: what went wrong, as one line."""
    assert isinstance(error, AftercallError)  # noqa: S101 - what it is registered for
    problem = {"code": error.code, "message": str(error)}
    if isinstance(error, RefusedInput):
        problem["field"] = error.field
    log.info("request refused", path=request.url.path, code=error.code)
    return JSONResponse({"error": problem}, status_code=error.http_status)


async def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    return JSONResponse({"error": {"code": f"http.{error.status_code}", "message": error.detail}}, error.status_code, error.headers)
