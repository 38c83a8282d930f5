"""Memory: what is remembered, searched and as of a day; one fact with every time it was said."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.errors import RefusedInput
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.search import make_key_scope
from aftercall.memory.view import parse_as_of, whole_fact_json
from aftercall.memory.visibility import memory_key
from aftercall.model.facts import MemoryKey
from aftercall.model.reading import CATEGORIES
from aftercall.web.pages.context import WHO, PageContext
from aftercall.web.queries import parse_party

PAGE_SIZE = 100


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter(
        prefix="/memory",
        dependencies=[Depends(context.view.auth.require_access)],
        include_in_schema=False,
    )
    change = [Depends(context.view.auth.require_change_access)]

    @router.get("", response_class=HTMLResponse)
    def get_memory(request: Request, asked: Annotated[MemoryQuery, Depends()]) -> HTMLResponse:
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
        await run_in_threadpool(
            context.app.facts.restore,
            fact_id,
            context.app.audit.make_writer(WHO, "restored", fact_id),
        )
        return RedirectResponse(f"/memory/facts/{fact_id}", 303)

    return router


class MemoryQuery:
    """What the form of the page asks for."""

    def __init__(
        self,
        q: Annotated[str, Query(max_length=10_000)] = "",
        caller: str = "",
        category: str = "",
        as_of: str = "",
        after: str = "",
    ) -> None:
        self.q, self.caller, self.category, self.as_of, self.after = (
            q.strip(),
            caller.strip(),
            category,
            as_of,
            after,
        )

    def search(self, context: PageContext) -> dict[str, Any]:
        app = context.app
        then = parse_as_of("as of", self.as_of, app.settings.zone) if self.as_of else None
        key = self._key(context)
        if self.q:
            categories = (self.category,) if self.category else ()
            where = replace(
                make_key_scope(app.settings, app.settings.agent_id, key),
                categories=categories,
                as_of=then,
            )
            return {"hits": app.search.find(self.q, where, limit=30), "facts": [], "problem": ""}
        category: Any = self.category if self.category in CATEGORIES else None
        facts = app.facts.page(
            FactFilter(
                key=key,
                category=category,
                as_of=then,
                limit=PAGE_SIZE,
                after=self.after,
                include_group=True,
            )
        )
        return {"facts": facts, "hits": [], "problem": ""}

    def _key(self, context: PageContext) -> MemoryKey | None:
        caller = parse_party(self.caller or None)
        return (
            memory_key(context.app.settings, context.app.settings.agent_id, caller)
            if caller
            else None
        )


def _show(context: PageContext, request: Request, fact_id: str, *, reveal: bool) -> HTMLResponse:
    fact = whole_fact_json(context.app.facts, fact_id, reveal=reveal)
    chain = context.app.facts.get_history(fact_id)
    return context.view.render_page(
        request, "fact.html", fact=fact, chain=chain, is_revealed=reveal
    )
