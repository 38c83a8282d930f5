"""Logging in and out."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from aftercall.log import get_logger
from aftercall.web.browser_auth import SESSION_COOKIE
from aftercall.web.pages.context import PageContext

log = get_logger("pages")


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    door = context.view.auth

    @router.get("/login", response_class=HTMLResponse)
    def get_login(request: Request, to: str = "/") -> HTMLResponse:
        return context.view.render_page(request, "login.html", to=_to_own_path(to), problem="")

    @router.post("/login", dependencies=[Depends(door.check_csrf)])
    async def post_login(
        request: Request,
        secret: Annotated[str, Form(max_length=1_000)],
        to: Annotated[str, Form()] = "/",
    ) -> Response:
        visit = await run_in_threadpool(door.log_in, request, secret)
        if visit is None:
            log.warning("a login was refused")
            return context.view.render_page(
                request,
                "login.html",
                status=401,
                to=_to_own_path(to),
                problem="That is neither the token nor the password.",
            )
        response = RedirectResponse(_to_own_path(to), 303)
        door.set_session_cookie(response, visit, is_https=request.url.scheme == "https")
        return response

    @router.post("/logout", dependencies=[Depends(door.check_csrf)])
    async def post_logout() -> RedirectResponse:
        response = RedirectResponse("/login", 303)
        response.delete_cookie(SESSION_COOKIE)
        return response

    return router


def _to_own_path(to: str) -> str:
    """Only to a page of ours: `//elsewhere` and `/\\elsewhere` are other people's."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/"


async def send_to_login(request: Request, _: Exception) -> Response:
    """The edge of a page that needs a login; what was asked for comes after it."""
    wanted = request.url.path if request.method == "GET" else "/"
    return RedirectResponse(f"/login?{urlencode({'to': wanted})}", 303)
