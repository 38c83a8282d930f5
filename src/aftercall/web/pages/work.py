"""Work: requests and promises, what became of them, and what waits for a decision."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.db.corrections import FOLLOWUPS
from aftercall.memory.fact_store import correction_json
from aftercall.model.followups import FollowUp, FollowUpState
from aftercall.model.reading import REQUEST_KINDS
from aftercall.web.pages.context import WHO, PageContext
from aftercall.work import deliver
from aftercall.work.store import FollowUpStore

PREVIEW_ROWS, PAGE_ROWS = 15, 50  # of a shelf among the others, and of one shelf alone
SHELVES: dict[str, tuple[FollowUpState, ...]] = {
    "waiting for you": ("held",),
    "may be requests": ("unclear",),
    "in trouble": ("failed", "broken"),
    "under way": ("open", "doing"),
    "outcome unknown": ("unknown",),
    "done or noted": ("done",),
    "let go": ("refused", "withdrawn", "expired"),
}
Decision = Literal["approve", "reject", "retry"]


def make_router(context: PageContext) -> APIRouter:
    router = context.make_router("/followups")
    change = [Depends(context.view.auth.require_change_access)]
    work = context.app.work

    @router.get("", response_class=HTMLResponse)
    def get_work(
        request: Request,
        shelf: Annotated[str, Query(max_length=40)] = "",
        before: Annotated[str, Query(max_length=40)] = "",
    ) -> HTMLResponse:
        if shelf in SHELVES:
            shelves = {shelf: _read_shelf(work.followups, shelf, PAGE_ROWS, before)}
        else:
            shelf = ""
            shelves = {
                name: _read_shelf(work.followups, name, PREVIEW_ROWS)
                for name in SHELVES
            }
        dead, names = work.deliveries.dead(), list(SHELVES)
        return context.view.render_page(
            request, "work.html", shelves=shelves, names=names, shelf=shelf, dead=dead
        )

    @router.get("/{followup_id}", response_class=HTMLResponse)
    def get_followup(request: Request, followup_id: str) -> HTMLResponse:
        row = work.followups.get(followup_id)
        chains = work.corrections.list_chains(row.agent_id, FOLLOWUPS, [row.key])
        newest = [chain[-1] for chain in chains]
        return context.view.render_page(
            request,
            "followup.html",
            row=row,
            kinds=REQUEST_KINDS,
            corrections=[correction_json(one) for one in newest],
            is_removed=any(one.is_removal for one in newest),
            history=work.followups.history(followup_id),
            deliveries=work.deliveries.of_followup(followup_id),
            name=context.find_name(row.caller),
        )

    @router.post("/deliveries/resend", dependencies=change)
    async def post_resend(key: Annotated[str, Form()]) -> RedirectResponse:
        await run_in_threadpool(deliver.resend, work, key)
        await run_in_threadpool(context.app.audit.record, WHO, "resent", key)
        return RedirectResponse("/followups", 303)

    @router.post("/{followup_id}/{decision}", dependencies=change)
    async def post_decision(
        followup_id: str,
        decision: Decision,
        back: Annotated[str, Form()] = "/followups",
    ) -> RedirectResponse:
        await run_in_threadpool(getattr(deliver, decision), work, followup_id, WHO)
        to = back if back in ("/", "/followups") else f"/followups/{followup_id}"
        return RedirectResponse(to, 303)

    return router


@dataclass(frozen=True)
class FollowUpPage:
    """A part of a shelf, newest first; `rest` is the cursor of the next part, if there is one."""

    items: list[FollowUp]
    rest: str


def _read_shelf(
    followups: FollowUpStore, shelf: str, limit: int, before: str = ""
) -> FollowUpPage:
    found = [
        item
        for state in SHELVES[shelf]
        for item in followups.page(limit=limit + 1, state=state, before=before or None)
    ]
    found.sort(key=lambda item: item.id, reverse=True)
    return FollowUpPage(
        found[:limit], found[limit - 1].id if len(found) > limit else ""
    )
