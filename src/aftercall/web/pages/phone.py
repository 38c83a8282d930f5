"""Call your agent: a softphone in the page, over `WS /browser/call`."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from aftercall.web.pages.desk import Desk


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(dependencies=[Depends(desk.view.door.admit)], include_in_schema=False)

    @router.get("/phone", response_class=HTMLResponse)
    def get_phone(request: Request) -> HTMLResponse:
        return desk.view.page(request, "phone.html", owner=desk.app.settings.owner or "")

    return router
