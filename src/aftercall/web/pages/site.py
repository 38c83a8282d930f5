"""The pages around the data: login, settings, the softphone, and the API reference."""

import json
from itertools import groupby
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from aftercall.config import LoadedConfig, describe_settings
from aftercall.doctor import run_checks
from aftercall.log import get_logger
from aftercall.service_checks import list_webhooks
from aftercall.web.auth import SESSION_COOKIE, get_session
from aftercall.web.pages.context import PageContext, to_own_path

TOKEN_PATHS = ("/api/", "/v1/")  # what the API page can try
LOGIN_REFUSED = "That is neither the token nor the password."
LINK_REFUSED = (
    "This link was used or is too old; `aftercall token --link` prints a new one."
)

log = get_logger("pages")


def make_router(context: PageContext, server: FastAPI) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    router.include_router(_make_login_router(context))
    router.include_router(_make_site_router(context, server))
    return router


def _make_login_router(context: PageContext) -> APIRouter:
    auth = context.view.auth
    router = APIRouter(dependencies=[Depends(auth.load_session)])

    def show_login(
        request: Request, to: str, problem: str = "", status: int = 200
    ) -> HTMLResponse:
        return context.view.render_page(
            request, "login.html", status=status, to=to, problem=problem
        )

    @router.get("/login", response_class=HTMLResponse)
    async def get_login(request: Request, to: str = "/", code: str = "") -> Response:
        """The form; with the code of a link, the login itself."""
        target = to_own_path(to)
        if not code:
            return show_login(request, target)
        session_id = await run_in_threadpool(auth.sessions.use_link, code)
        if session_id is None:
            log.warning("login link refused")
            return show_login(request, target, LINK_REFUSED, 401)
        response = RedirectResponse(target, 303)
        auth.set_login_cookies(request, response, session_id)
        return response

    @router.post("/login", dependencies=[Depends(auth.check_csrf)])
    async def post_login(
        request: Request,
        secret: Annotated[str, Form(max_length=1_000)],
        to: Annotated[str, Form()] = "/",
    ) -> Response:
        target = to_own_path(to)
        session_id = await auth.log_in(request, secret)
        if session_id is None:
            log.warning("login refused")
            return show_login(request, target, LOGIN_REFUSED, 401)
        response = RedirectResponse(target, 303)
        auth.set_login_cookies(request, response, session_id)
        return response

    @router.post("/logout", dependencies=[Depends(auth.check_csrf)])
    async def post_logout(request: Request) -> RedirectResponse:
        await run_in_threadpool(auth.sessions.end, get_session(request).id)
        return _redirect_logged_out()

    @router.post(
        "/logout/everywhere", dependencies=[Depends(auth.require_change_access)]
    )
    async def post_logout_everywhere() -> RedirectResponse:
        await run_in_threadpool(auth.sessions.end_all)
        return _redirect_logged_out()

    return router


def _make_site_router(context: PageContext, server: FastAPI) -> APIRouter:
    router = context.make_router()
    settings = context.app.settings
    loaded = context.loaded or LoadedConfig(
        settings, describe_settings(settings, {}), ()
    )

    @router.get("/settings", response_class=HTMLResponse)
    def get_settings(request: Request) -> HTMLResponse:
        sections = groupby(loaded.values, lambda value: _section(value.key))
        return context.view.render_page(
            request,
            "settings.html",
            audit=context.app.audit.list_recent(),
            sections=[(name, list(values)) for name, values in sections],
            webhooks=list_webhooks(settings),
            checks=list(run_checks(loaded)),
        )

    @router.get("/phone", response_class=HTMLResponse)
    def get_phone(request: Request) -> HTMLResponse:
        """A softphone in the page, over `WS /browser/call`."""
        return context.view.render_page(
            request, "phone.html", owner=settings.owner or ""
        )

    @router.get("/docs", response_class=HTMLResponse)
    def get_docs(request: Request) -> HTMLResponse:
        """The API reference from the OpenAPI schema; loads nothing from elsewhere."""
        groups = _operations_by_tag(server.openapi())
        return context.view.render_page(request, "docs.html", groups=groups)

    return router


def _redirect_logged_out() -> RedirectResponse:
    response = RedirectResponse("/login", 303)
    response.delete_cookie(SESSION_COOKIE)
    return response


def _section(key: str) -> str:
    return key.partition(".")[0] if "." in key else ""


async def redirect_to_login(request: Request, _: Exception) -> Response:
    """After the login, the browser returns to the page it asked for."""
    wanted = request.url.path if request.method == "GET" else "/"
    return RedirectResponse(f"/login?{urlencode({'to': wanted})}", 303)


def _operations_by_tag(schema: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            responses = operation["responses"].items()
            shown = {
                "id": operation["operationId"],
                "method": method.upper(),
                "path": path,
                "summary": operation.get("summary", ""),
                "description": operation.get("description", ""),
                "parameters": [
                    parameter
                    for parameter in operation.get("parameters", [])
                    if parameter["in"] in ("path", "query")
                ],
                "takes_token": path.startswith(TOKEN_PATHS),
                "example": _make_example(schema, operation),
                "answers": {code: answer["description"] for code, answer in responses},
            }
            tag = operation.get("tags", ["other"])[0]
            groups.setdefault(tag, []).append(shown)
    return groups


def _make_example(schema: dict[str, Any], operation: dict[str, Any]) -> str:
    """A body to begin with: the required fields, empty; nothing if the route takes no JSON."""
    content = operation.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("schema")
    if body is None:
        return ""
    if name := body.get("$ref"):
        body = schema["components"]["schemas"][name.rpartition("/")[2]]
    empty = {"array": [], "integer": 1, "object": {}, "boolean": False}
    fields = {
        name: empty.get(body["properties"][name].get("type", ""), "")
        for name in body.get("required", body["properties"])
    }
    return json.dumps(fields, indent=2)
