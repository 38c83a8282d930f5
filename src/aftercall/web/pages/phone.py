"""Call your agent: a softphone in the page, over `WS /browser/call`."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from aftercall.web.pages.context import PageContext


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter(
        dependencies=[Depends(context.view.auth.require_access)], include_in_schema=False
    )

    @router.get("/phone", response_class=HTMLResponse)
    def get_phone(request: Request) -> HTMLResponse:
        return context.view.render_page(
            request, "phone.html", owner=context.app.settings.owner or ""
        )

    return router
