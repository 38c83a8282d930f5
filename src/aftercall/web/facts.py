"""The JSON API over facts.

Secrets show only that they are there: opening one takes the command line.
"""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from aftercall.app import App
from aftercall.errors import RefusedInput
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.search import find_facts, make_key_scope
from aftercall.memory.view import fact_json, parse_as_of, whole_fact_json
from aftercall.memory.visibility import memory_key
from aftercall.model.facts import MemoryKey
from aftercall.model.passages import SearchScope
from aftercall.model.reading import Category
from aftercall.web.queries import parse_party, refuse_unknown_query


def make_router(app: App) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["facts"], dependencies=[Depends(refuse_unknown_query)])

    @router.get(
        "/facts", summary="What is believed now, or was `as_of` a day; `next` continues the list"
    )
    def get_facts(
        caller: str | None = None,
        category: Category | None = None,
        q: Annotated[str | None, Query(description="any words; the best facts first")] = None,
        as_of: str | None = None,
        retired: bool = False,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        after: str = "",
    ) -> dict[str, Any]:
        then = parse_as_of("as_of", as_of, app.settings.zone) if as_of else None
        if q is not None:
            where = _where(app, caller, category, then)
            return {
                "facts": [
                    fact_json(fact) for fact in find_facts(app.search, app.facts, q, where, limit)
                ],
                "next": None,
            }
        key = _key(app, caller)
        wanted = FactFilter(
            key=key,
            category=category,
            as_of=then,
            include_retired=retired,
            limit=limit,
            after=after,
            include_group=True,
        )
        facts = app.facts.page(wanted)
        return {
            "facts": [fact_json(fact) for fact in facts],
            "next": facts[-1].id if len(facts) == limit else None,
        }

    @router.get(
        "/facts/{fact_id}", summary="One fact, each time it was said, and the chain it belongs to"
    )
    def get_fact(fact_id: str) -> dict[str, Any]:
        return whole_fact_json(app.facts, fact_id)

    return router


def _where(
    app: App, caller: str | None, category: Category | None, as_of: datetime | None
) -> SearchScope:
    where = make_key_scope(app.settings, app.settings.agent_id, _key(app, caller))
    return replace(where, categories=(category,) if category else (), as_of=as_of)


def _key(app: App, caller: str | None) -> MemoryKey | None:
    if caller is None:
        return None
    key = memory_key(app.settings, app.settings.agent_id, parse_party(caller))
    if key is None:
        raise RefusedInput("caller", "nobody is remembered under this number")
    return key
