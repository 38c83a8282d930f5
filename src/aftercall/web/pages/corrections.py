"""Corrections: what people put right in follow-ups, facts and names, and how to undo it."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.db.corrections import NAMES, CorrectedThing
from aftercall.errors import RefusedInput
from aftercall.memory.fact_corrections import MAX_FACT_CHARS
from aftercall.memory.view import correction_json
from aftercall.model.reading import RequestKind
from aftercall.web.pages.context import WHO, PageContext, to_own_path
from aftercall.web.queries import parse_caller, require_party

PAGE_SIZE = 100


def make_router(context: PageContext) -> APIRouter:
    router = context.make_router("/corrections")
    corrections = context.app.corrections

    @router.get("", response_class=HTMLResponse)
    def get_corrections(
        request: Request,
        caller: str = "",
        before: Annotated[str, Query(max_length=40)] = "",
    ) -> HTMLResponse:
        made = corrections.store.page(
            limit=PAGE_SIZE, caller=parse_caller(caller or None), before=before or None
        )
        return context.view.render_page(
            request,
            "corrections.html",
            corrections=[correction_json(one) for one in made],
            caller=caller,
            rest=made[-1].id if len(made) == PAGE_SIZE else "",
        )

    _add_changes(router, context)
    return router


def _add_changes(router: APIRouter, context: PageContext) -> None:
    corrections = context.app.corrections
    change = [Depends(context.view.auth.require_change_access)]

    @router.post("", dependencies=change)
    async def post_correction(
        what: Annotated[CorrectedThing, Form()],
        of: Annotated[str, Form(max_length=200)],
        new: Annotated[str, Form(max_length=MAX_FACT_CHARS)] = "",
        is_removal: Annotated[bool, Form()] = False,
        back: Annotated[str, Form()] = "/corrections",
    ) -> RedirectResponse:
        """An empty day or name is none; a request or a fact is removed by its own button."""
        whose = require_party(of) if what in NAMES else of
        value = new.strip() or None
        if value is None and what in ("request", "fact") and not is_removal:
            raise RefusedInput("new", "is empty")
        await run_in_threadpool(corrections.correct, what, whose, value, WHO)
        return RedirectResponse(to_own_path(back), 303)

    @router.post("/requests", dependencies=change)
    async def post_request(
        call_id: Annotated[str, Form(max_length=200)],
        title: Annotated[str, Form(max_length=MAX_FACT_CHARS)],
        kind: Annotated[RequestKind, Form()],
        due: Annotated[str, Form(max_length=40)] = "",
        turn: Annotated[list[int], Form(max_length=100)] = [],  # noqa: B006 - FastAPI copies it
    ) -> RedirectResponse:
        """A request that the reader has missed."""
        add = partial(
            corrections.add_request, call_id, title, WHO, kind=kind, due=due, turns=turn
        )
        await run_in_threadpool(add)
        return RedirectResponse(f"/calls/{call_id}", 303)

    @router.post("/{correction_id}/undo", dependencies=change)
    async def post_undo(
        correction_id: str, back: Annotated[str, Form()] = "/corrections"
    ) -> RedirectResponse:
        await run_in_threadpool(corrections.undo, correction_id, WHO)
        return RedirectResponse(to_own_path(back), 303)
