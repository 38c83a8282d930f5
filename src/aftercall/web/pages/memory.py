"""Memory: facts by search, caller, category and day; one fact with every time it was said.

Search everywhere: people by a name or a part of their number, requests by their title, everything
else by the words of memory's search. The filters are the address; each is a chip to take off.

And what people put right in follow-ups, facts and names, with a button to undo it.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

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
from aftercall.memory.ranking import parse_query
from aftercall.memory.search import make_key_scope
from aftercall.memory.words import split_words, to_term
from aftercall.model.facts import SHARED_CALLER, memory_key
from aftercall.model.json_fields import Json
from aftercall.model.passages import Kind
from aftercall.model.reading import CATEGORIES
from aftercall.web.auth import Who
from aftercall.web.page_store import parse_caller, parse_party, require_party
from aftercall.web.pages.context import (
    FilterText,
    FormIds,
    FormText,
    PageContext,
)
from aftercall.web.pages.people import list_people

MAX_HITS = 30
MAX_OTHERS = 8  # people and requests above the hits
SearchPart = Literal["", "people", "requests", "said", "facts"]
PARTS: dict[SearchPart, str] = {
    "": "everything",
    "people": "people",
    "requests": "requests and promises",
    "said": "what was said",
    "facts": "facts",
}
KINDS: dict[str, tuple[Kind, ...]] = {
    "": (),
    "said": ("turn", "summary"),
    "facts": ("fact",),
}
_WORD = re.compile(r"[\w'’]+")


@dataclass(frozen=True)
class TextPart:
    """A piece of a text; `is_hit` if it is one of the words looked for."""

    text: str
    is_hit: bool


def mark_words(text: str, query: str) -> list[TextPart]:
    """The text in pieces: words that match the query in any of their forms, and the rest."""
    terms = set(parse_query(query).terms)
    parts: list[TextPart] = []
    end = 0
    for match in _WORD.finditer(text):
        if any(to_term(word) in terms for word in split_words(match.group().lower())):
            parts += [
                TextPart(text[end : match.start()], is_hit=False),
                TextPart(match.group(), is_hit=True),
            ]
            end = match.end()
    return [part for part in (*parts, TextPart(text[end:], is_hit=False)) if part.text]


class EverythingQuery:
    """The words and the filters; an empty one does not filter."""

    def __init__(
        self,
        q: Annotated[str, Query(max_length=10_000)] = "",
        part: SearchPart = "",
        caller: FilterText = "",
        since: Annotated[str, Query(max_length=40)] = "",
        until: Annotated[str, Query(max_length=40)] = "",
    ) -> None:
        self.q = q.strip()
        self.part = part
        self.caller = caller.strip()
        self.since = since
        self.until = until

    def link(self, **changed: str) -> str:
        """The address with other filters."""
        fields = vars(self) | changed
        return f"/search?{urlencode({name: value for name, value in fields.items() if value})}"

    @property
    def chips(self) -> list[tuple[str, str]]:
        """What is filtered, and the address without it."""
        words = {"caller": "of ", "since": "since ", "until": "until "}
        return [
            (word + value, self.link(**{name: ""}))
            for name, word in words.items()
            if (value := getattr(self, name))
        ]


def _add_search(context: PageContext) -> None:
    """One search over words, facts, requests, people."""
    router = context.add_section("/search")

    @router.get("", response_class=HTMLResponse)
    def get_search(
        request: Request, asked: Annotated[EverythingQuery, Depends()]
    ) -> HTMLResponse:
        """Hits by kind, with the words marked."""
        found: Json = {"hits": [], "people": [], "rows": [], "problem": ""}
        if asked.q:
            try:
                found |= _search(context, asked)
            except RefusedInput as error:
                found["problem"] = str(error)
        return context.view.render_page(
            request,
            "search.html",
            asked=asked,
            find=asked.q,
            parts=PARTS,
            mark=partial(mark_words, query=asked.q),
            **found,
        )


def _search(context: PageContext, asked: EverythingQuery) -> Json:
    """A number counts as the words of its caller, so it finds what they said last."""
    app = context.app
    settings = context.app.settings
    caller = parse_party(asked.caller or None)
    found: Json = {}
    if asked.part in ("", "people") and not caller:
        found["people"] = list_people(context, asked.q, MAX_OTHERS)
    if asked.part in ("", "requests"):
        limit = MAX_HITS if asked.part else MAX_OTHERS
        rows = app.work.followups.page(
            limit=limit, title=asked.q, caller=caller and caller.split("#")[0]
        )
        found["rows"] = rows
        found["times"] = context.store.list_call_times({row.call_id for row in rows})
    if asked.part in KINDS:
        key = memory_key(settings, settings.agent_id, caller) if caller else None
        scope = replace(
            make_key_scope(settings, settings.agent_id, key),
            kinds=KINDS[asked.part],
            since=_find_end("since", asked.since, context, days_before=1),
            before=_find_end("until", asked.until, context),
        )
        found["hits"] = app.search.find(asked.q, scope, limit=MAX_HITS)
    return found


def _find_end(
    name: str, text: str, context: PageContext, days_before: int = 0
) -> datetime | None:
    """The end of a day; `days_before`: of one that many days earlier."""
    if not text:
        return None
    end = parse_as_of(name, text, context.app.settings.zone)
    return end - timedelta(days=days_before)


PAGE_SIZE = 100
MAX_SEARCH_HITS = 30


def add_routes(context: PageContext) -> None:
    _add_search(context)
    _add_facts(context)
    _add_corrections(context)


def _add_facts(context: PageContext) -> None:
    """The list of facts and one fact."""
    router = context.add_section("/memory")
    facts = context.app.facts

    @router.get("", response_class=HTMLResponse)
    def get_memory(
        request: Request, asked: Annotated[MemoryQuery, Depends()]
    ) -> HTMLResponse:
        """Facts newest first, or what a search finds."""
        try:
            found = asked.search(context)
        except RefusedInput as error:
            found = {"problem": str(error), "facts": [], "hits": []}
        listed = found["facts"]
        callers = {fact.key.caller for fact in listed} - {SHARED_CALLER}
        return context.view.render_page(
            request,
            "memory.html",
            asked=asked,
            categories=CATEGORIES,
            names={caller: context.find_name(caller) for caller in callers},
            chains={
                fact.id: facts.get_history(fact.id)
                for fact in listed
                if fact.supersedes or fact.superseded_by
            },
            days=_list_days(context, asked.as_of),
            mark=partial(mark_words, query=asked.q),
            **found,
        )

    @router.get("/facts/{fact_id}", response_class=HTMLResponse)
    def get_fact(request: Request, fact_id: str) -> HTMLResponse:
        return _show(context, request, fact_id, reveal=False)

    _add_fact_changes(router, context)


def _add_fact_changes(router: APIRouter, context: PageContext) -> None:
    """Reveal, correct, retire, restore and settle."""
    operate = context.require("operator")
    audit = context.app.audit

    @router.post("/facts/{fact_id}/reveal", dependencies=operate)
    async def post_reveal(who: Who, request: Request, fact_id: str) -> HTMLResponse:
        shown = await run_in_threadpool(_show, context, request, fact_id, reveal=True)
        await run_in_threadpool(audit.record, who, "revealed", fact_id)
        return shown

    @router.post("/facts/{fact_id}/restore", dependencies=operate)
    async def post_restore(who: Who, fact_id: str) -> RedirectResponse:
        made = await run_in_threadpool(context.app.corrections.restore, fact_id, who)
        return context.answer_done(f"/memory/facts/{fact_id}", "corrected", [made.id])

    @router.post("/facts/{fact_id}/retire", dependencies=operate)
    async def post_retire(
        who: Who, fact_id: str, since: Annotated[str, Form(max_length=10)] = ""
    ) -> RedirectResponse:
        retire = context.app.corrections.retire
        made = await run_in_threadpool(retire, fact_id, who, since)
        return context.answer_done(f"/memory/facts/{fact_id}", "corrected", [made.id])

    @router.post("/facts/{fact_id}/settle", dependencies=operate)
    async def post_settle(
        who: Who, fact_id: str, both: bool = False
    ) -> RedirectResponse:
        settle = context.app.corrections.settle
        made = await run_in_threadpool(settle, fact_id, who, both=both)
        return context.answer_done(f"/memory/facts/{fact_id}", "corrected", [made.id])


def _add_corrections(context: PageContext) -> None:
    """What people put right, with undo."""
    router = context.add_section("/corrections")
    corrections = context.app.corrections
    operate = context.require("operator")

    @router.get("", response_class=HTMLResponse)
    def get_corrections(
        request: Request,
        caller: str = "",
        before: Annotated[str, Query(max_length=40)] = "",
    ) -> HTMLResponse:
        """Every correction, newest first."""
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

    @router.post("", dependencies=operate)
    async def post_correction(
        who: Who,
        what: Annotated[CorrectedThing, Form()],
        of: Annotated[str, Form(max_length=200)],
        new: Annotated[str, Form(max_length=MAX_FACT_CHARS)] = "",
        is_removal: Annotated[bool, Form()] = False,
        back: FormText = "/corrections",
    ) -> RedirectResponse:
        """An empty day or name is none; a request or a fact is removed by its own button."""
        whose = require_party(of) if what in NAMES else of
        value = new.strip() or None
        if value is None and what in ("request", "fact") and not is_removal:
            raise RefusedInput("new", "is empty")
        made = await run_in_threadpool(corrections.correct, what, whose, value, who)
        return context.answer_done(back, "corrected", [made.id])

    @router.post("/undo", dependencies=operate)
    async def post_undo(
        who: Who,
        of: FormIds,
        back: FormText = "/corrections",
    ) -> RedirectResponse:
        """Several corrections, the newest first."""
        for correction_id in sorted(set(of), reverse=True):
            await run_in_threadpool(corrections.undo, correction_id, who)
        return context.answer_done(back, "undo")


class MemoryQuery:
    """Whose facts, as of when, of which category."""

    def __init__(
        self,
        q: Annotated[str, Query(max_length=10_000)] = "",
        caller: str = "",
        category: str = "",
        as_of: str = "",
        after: str = "",
    ) -> None:
        self.q = q.strip()
        self.caller = caller.strip()
        self.category = category
        self.as_of = as_of
        self.after = after

    def search(self, context: PageContext) -> Json:
        app = context.app
        settings = context.app.settings
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
            is_newest_first=True,
        )
        return {"facts": app.facts.page(wanted), "hits": [], "problem": ""}


def _list_days(context: PageContext, as_of: str) -> Json:
    """For the slider: the day of the first fact, how many days ago it was, and which is shown."""
    zone = context.app.settings.zone
    first = context.store.get_first_fact_at()
    today = context.app.clock.now().astimezone(zone).date()
    day = min(first.astimezone(zone).date(), today) if first else today
    count = at = (today - day).days
    with suppress(ValueError):
        at = min(count, max(0, (date.fromisoformat(as_of) - day).days))
    return {"first": day.isoformat(), "count": count, "at": at}


def _show(
    context: PageContext, request: Request, fact_id: str, *, reveal: bool
) -> HTMLResponse:
    """One fact with every time it was told, and its line in time."""
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
