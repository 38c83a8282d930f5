"""Work: what was asked for and promised, what became of it, and what waits for a decision."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.audit.store import Deed
from aftercall.model.followups import State
from aftercall.web.pages.desk import WHO, Desk
from aftercall.work import handover

PAGE = 100
SHELVES: dict[str, tuple[State, ...]] = {
    "waiting for you": ("held",),
    "in trouble": ("failed", "broken"),
    "under way": ("open", "doing"),
    "done": ("done",),
    "let go": ("refused", "withdrawn", "expired"),
}
Decision = Literal["approve", "reject", "retry"]
_DEEDS: dict[str, Deed] = {"approve": "approved", "reject": "rejected", "retry": "retried"}


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(prefix="/followups", dependencies=[Depends(desk.view.door.admit)], include_in_schema=False)
    change = [Depends(desk.view.door.admit_change)]
    work = desk.app.work

    @router.get("", response_class=HTMLResponse)
    def get_work(request: Request, shelf: Annotated[str, Query(max_length=40)] = "") -> HTMLResponse:
        shown = {name: states for name, states in SHELVES.items() if not shelf or name == shelf} or SHELVES
        rows = {name: [row for state in states for row in work.followups.page(limit=PAGE, state=state)] for name, states in shown.items()}
        return desk.view.page(request, "work.html", shelves=rows, names=list(SHELVES), shelf=shelf, dead=work.deliveries.dead())

    @router.get("/{followup_id}", response_class=HTMLResponse)
    def get_followup(request: Request, followup_id: str) -> HTMLResponse:
        row = work.followups.get(followup_id)
        history, sent = work.followups.history(followup_id), work.deliveries.of_followup(followup_id)
        return desk.view.page(request, "followup.html", row=row, history=history, deliveries=sent, name=desk.name_of(row.caller))

    @router.post("/deliveries/resend", dependencies=change)
    async def post_resend(key: Annotated[str, Form()]) -> RedirectResponse:
        await run_in_threadpool(desk.app.audit.note, WHO, "resent", key)
        await run_in_threadpool(handover.resend, work, key)
        return RedirectResponse("/followups", 303)

    @router.post("/{followup_id}/{decision}", dependencies=change)
    async def post_decision(followup_id: str, decision: Decision, back: Annotated[str, Form()] = "/followups") -> RedirectResponse:
        await run_in_threadpool(desk.app.audit.note, WHO, _DEEDS[decision], followup_id)
        await run_in_threadpool(getattr(handover, decision), work, followup_id, WHO)
        return RedirectResponse(back if back in ("/", "/followups") else f"/followups/{followup_id}", 303)

    return router
