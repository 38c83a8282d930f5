"""Memory: facts by search, caller, category and day; one fact with every time it was said.

And what people put right in follow-ups, facts and names, with a button to undo it.
"""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.db.corrections import NAMES, CorrectedThing
from aftercall.errors import RefusedInput
from aftercall.memory.fact_corrections import MAX_FACT_CHARS
from aftercall.memory.fact_store import (
    FactFilter,
    correction_json,
    parse_as_of,
    whole_fact_json,
)
from aftercall.memory.ledger import CORRECTED_BY_KEY
from aftercall.memory.search import make_key_scope
from aftercall.memory.visibility import memory_key
from aftercall.model.reading import CATEGORIES
from aftercall.web.page_store import parse_caller, parse_party, require_party
from aftercall.web.pages.context import WHO, PageContext, to_own_path

PAGE_SIZE = 100
MAX_SEARCH_HITS = 30


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter()
    router.include_router(_make_facts_router(context))
    router.include_router(_make_corrections_router(context))
    return router


def _make_facts_router(context: PageContext) -> APIRouter:
    router = context.make_router("/memory")
    change = [Depends(context.view.auth.require_change_access)]

    @router.get("", response_class=HTMLResponse)
    def get_memory(
        request: Request, asked: Annotated[MemoryQuery, Depends()]
    ) -> HTMLResponse:
        try:
            found = asked.search(context)
        except RefusedInput as error:
            found = {"problem": str(error), "facts": [], "hits": []}
        return context.view.render_page(
            request, "memory.html", asked=asked, categories=CATEGORIES, **found
        )

    @router.get("/facts/{fact_id}", response_class=HTMLResponse)
    def get_fact(request: Request, fact_id: str) -> HTMLResponse:
        return _show(context, request, fact_id, reveal=False)

    @router.post("/facts/{fact_id}/reveal", dependencies=change)
    async def post_reveal(request: Request, fact_id: str) -> HTMLResponse:
        shown = await run_in_threadpool(_show, context, request, fact_id, reveal=True)
        await run_in_threadpool(context.app.audit.record, WHO, "revealed", fact_id)
        return shown

    @router.post("/facts/{fact_id}/restore", dependencies=change)
    async def post_restore(fact_id: str) -> RedirectResponse:
        await run_in_threadpool(context.app.corrections.restore, fact_id, WHO)
        return RedirectResponse(f"/memory/facts/{fact_id}", 303)

    @router.post("/facts/{fact_id}/settle", dependencies=change)
    async def post_settle(fact_id: str, both: bool = False) -> RedirectResponse:
        settle = context.app.corrections.settle
        await run_in_threadpool(settle, fact_id, WHO, both=both)
        return RedirectResponse(f"/memory/facts/{fact_id}", 303)

    return router


def _make_corrections_router(context: PageContext) -> APIRouter:
    router = context.make_router("/corrections")
    corrections = context.app.corrections
    change = [Depends(context.view.auth.require_change_access)]

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

    @router.post("/{correction_id}/undo", dependencies=change)
    async def post_undo(
        correction_id: str, back: Annotated[str, Form()] = "/corrections"
    ) -> RedirectResponse:
        await run_in_threadpool(corrections.undo, correction_id, WHO)
        return RedirectResponse(to_own_path(back), 303)

    return router


class MemoryQuery:
    def __init__(
        self,
        q: Annotated[str, Query(max_length=10_000)] = "",
        caller: str = "",
        category: str = "",
        as_of: str = "",
        after: str = "",
    ) -> None:
        self.q, self.caller, self.category = q.strip(), caller.strip(), category
        self.as_of, self.after = as_of, after

    def search(self, context: PageContext) -> dict[str, Any]:
        app, settings = context.app, context.app.settings
        then = parse_as_of("as of", self.as_of, settings.zone) if self.as_of else None
        caller = parse_party(self.caller or None)
        key = memory_key(settings, settings.agent_id, caller) if caller else None
        if self.q:
            scope = make_key_scope(settings, settings.agent_id, key)
            categories = (self.category,) if self.category else ()
            scope = replace(scope, categories=categories, as_of=then)
            hits = app.search.find(self.q, scope, limit=MAX_SEARCH_HITS)
            return {"hits": hits, "facts": [], "problem": ""}
        category: Any = self.category if self.category in CATEGORIES else None
        wanted = FactFilter(
            key=key,
            category=category,
            as_of=then,
            limit=PAGE_SIZE,
            after=self.after,
            include_group=True,
        )
        return {"facts": app.facts.page(wanted), "hits": [], "problem": ""}


def _show(
    context: PageContext, request: Request, fact_id: str, *, reveal: bool
) -> HTMLResponse:
    store = context.app.facts
    fact = whole_fact_json(store, fact_id, reveal=reveal)
    by = fact["metadata"].get(CORRECTED_BY_KEY)
    made = [context.app.corrections.store.get(by)] if by else []
    return context.view.render_page(
        request,
        "fact.html",
        fact=fact,
        chain=store.get_history(fact_id),
        disputed=store.list_dispute(store.get(fact_id)),
        is_revealed=reveal,
        is_removed=any(one.is_removal for one in made),
        corrections=[correction_json(one) for one in made],
    )
