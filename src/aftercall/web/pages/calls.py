"""Calls: the list with its filters, and one call with everything about it."""

import json
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.errors import RefusedInput
from aftercall.journal.store import CallRow
from aftercall.journal.view import call_json, find_interrupted_turns, read_live_turns
from aftercall.memory.visibility import redact_call, redact_turns
from aftercall.model.facts import Fact
from aftercall.model.passages import SearchScope
from aftercall.model.reading import CATEGORIES, REQUEST_KINDS
from aftercall.model.turns import Event, Turn
from aftercall.postcall.runner import rerun
from aftercall.web.page_store import (
    CallFilter,
    find_recording_file,
    parse_caller,
    parse_cursor,
    to_cursor,
)
from aftercall.web.pages.context import WHO, PageContext

PAGE_SIZE = 50
MIN_YEAR, MAX_YEAR = 1970, 2999
MAX_SEARCH_HITS = 200


def make_router(context: PageContext) -> APIRouter:
    router = context.make_router("/calls")
    change = [Depends(context.view.auth.require_change_access)]

    @router.get("", response_class=HTMLResponse)
    def get_calls(
        request: Request, asked: Annotated[CallListQuery, Depends()]
    ) -> HTMLResponse:
        rows: list[CallRow] = []
        wanted, problem = asked.to_filter(context)
        if not problem:
            before = parse_cursor(asked.before or None)
            rows = context.store.list_calls(wanted, limit=PAGE_SIZE, before=before)
        has_older = len(rows) == PAGE_SIZE
        return context.view.render_page(
            request,
            "calls.html",
            lines=context.make_listings(rows),
            asked=asked,
            problem=problem,
            sources=context.store.list_sources(),
            older=asked.link(to_cursor(rows[-1])) if has_older else None,
        )

    @router.get("/{call_id}", response_class=HTMLResponse)
    def get_call(request: Request, call_id: str) -> HTMLResponse:
        values = _call_values(context, context.app.store.get(call_id))
        return context.view.render_page(request, "call.html", **values)

    @router.get("/{call_id}/steps", response_class=HTMLResponse)
    def get_steps(request: Request, call_id: str) -> HTMLResponse:
        """The steps alone; an open page polls them."""
        (line,) = context.make_listings([context.app.store.get(call_id)])
        return context.view.render_page(request, "parts/steps.html", line=line)

    @router.get("/{call_id}/raw", response_class=HTMLResponse)
    def get_raw(request: Request, call_id: str) -> HTMLResponse:
        app = context.app
        row = app.store.get(call_id)
        secrets = app.facts.list_confided_words(call_id)
        call = redact_call(call_json(app.store, app.archive, row), secrets)
        text = json.dumps(call, indent=2, ensure_ascii=False)
        return context.view.render_page(request, "raw.html", row=row, text=text)

    @router.get("/{call_id}/recordings/{recording_id}")
    def get_recording(call_id: str, recording_id: str) -> FileResponse:
        """The audio; range requests are supported."""
        file = find_recording_file(context.app, call_id, recording_id)
        return FileResponse(file, headers={"Cache-Control": "private, no-store"})

    @router.post("/{call_id}/rerun/{step}", dependencies=change)
    async def post_rerun(call_id: str, step: str) -> RedirectResponse:
        await run_in_threadpool(rerun, context.app.step_runner, call_id, step)
        return RedirectResponse(f"/calls/{call_id}#steps", 303)

    _add_missed_routes(router, context)
    return router


def _add_missed_routes(router: APIRouter, context: PageContext) -> None:
    """What a person found in the call and the reader did not."""
    change = [Depends(context.view.auth.require_change_access)]
    corrections = context.app.corrections

    @router.post("/{call_id}/requests", dependencies=change)
    async def post_request(
        call_id: str,
        title: Annotated[str, Form()],
        kind: Annotated[str, Form()] = "task",
        due: Annotated[str, Form()] = "",
        person: Annotated[str, Form()] = "",
        turn: Annotated[list[int], Form(max_length=100)] = [],  # noqa: B006 - FastAPI copies it
    ) -> RedirectResponse:
        told: dict[str, Any] = {
            "kind": kind,
            "due": due,
            "person": person,
            "turns": turn,
        }
        add = partial(corrections.add_request, call_id, title, WHO, **told)
        await run_in_threadpool(add)
        return RedirectResponse(f"/calls/{call_id}", 303)

    @router.post("/{call_id}/facts", dependencies=change)
    async def post_fact(
        call_id: str,
        text: Annotated[str, Form()],
        turn: Annotated[int, Form()],
        category: Annotated[str, Form()] = "person",
    ) -> RedirectResponse:
        add = partial(corrections.add_fact, turn=turn, category=category)
        await run_in_threadpool(add, call_id, text, WHO)
        return RedirectResponse(f"/calls/{call_id}", 303)


class CallListQuery:
    """The filters of the list; an empty field does not filter."""

    def __init__(
        self,
        q: Annotated[str, Query(max_length=10_000)] = "",
        caller: str = "",
        source: str = "",
        state: Annotated[str, Query(pattern="^(|live|sealing|sealed)$")] = "",
        since: str = "",
        until: str = "",
        before: str = "",
    ) -> None:
        self.q, self.caller, self.source, self.state = (
            q.strip(),
            caller.strip(),
            source,
            state,
        )
        self.since, self.until, self.before = since, until, before

    def to_filter(self, context: PageContext) -> tuple[CallFilter, str]:
        """The filter, and the problem with the input if there is one."""
        try:
            caller = parse_caller(self.caller or None)
            since = _parse_day(self.since, "since")
            until = _parse_day(self.until, "until")
        except RefusedInput as error:
            return CallFilter(), str(error)
        zone = context.app.settings.zone
        wanted = CallFilter(
            caller=caller,
            source=self.source or None,
            state=self.state or None,
            since=datetime.combine(since, time(), zone) if since else None,
            until=datetime.combine(until + timedelta(days=1), time(), zone)
            if until
            else None,
            ids=self._find_call_ids(context, caller) if self.q else None,
        )
        return wanted, ""

    def _find_call_ids(
        self, context: PageContext, caller: str | None
    ) -> tuple[str, ...]:
        """Calls whose turns or summary match the words."""
        where = SearchScope(
            context.app.settings.agent_id, caller, kinds=("turn", "summary")
        )
        hits = context.app.search.find(self.q, where, limit=MAX_SEARCH_HITS, context=0)
        return tuple(dict.fromkeys(str(hit.passage.call_id) for hit in hits))

    def link(self, before: str) -> dict[str, str]:
        """The query of the next page: the same filters from `before` on."""
        fields = vars(self) | {"before": before}
        return {name: value for name, value in fields.items() if value}


def _parse_day(text: str, field: str) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise RefusedInput(field, "is not a date like 2026-02-13") from None
    if not MIN_YEAR <= day.year <= MAX_YEAR:  # the day before or after must be one, too
        raise RefusedInput(field, f"is not a date between {MIN_YEAR} and {MAX_YEAR}")
    return day


def _call_values(context: PageContext, row: CallRow) -> dict[str, Any]:
    app, call_id, conversation = context.app, row.live.id, row.live.conversation
    (line,) = context.make_listings([row])
    late: tuple[Turn, ...] = ()
    events: list[Event] = []
    if row.archive_name is None:
        turns = read_live_turns(app.store, row)
    else:
        call, late = app.archive.read(row.archive_name)
        turns, events = call.turns, list(call.events)
    secrets = app.facts.list_confided_words(call_id)
    return {
        "line": line,
        "row": row,
        "legs": [
            leg
            for leg in context.store.list_legs(conversation)
            if leg.live.id != call_id
        ],
        "events": events,
        "kinds": REQUEST_KINDS,
        "categories": CATEGORIES,
        "turns": redact_turns(turns, secrets),
        "late": redact_turns(late, secrets),
        "cut": find_interrupted_turns(turns, events),
        "facts": _list_facts(app, call_id),
        "followups": app.work.followups.of_conversation(conversation),
        "recordings": app.recordings.list_for_call(call_id),
    }


def _list_facts(app: App, call_id: str) -> list[tuple[Fact, str]]:
    """The facts of this call, each with the words it rests on; a secret comes without words."""
    found = []
    for fact_id in app.facts.list_ids_of_call(call_id):
        fact, words = app.facts.get(fact_id), ""
        if not fact.is_secret:
            said = app.facts.list_occurrences(fact_id)
            words = next((item.words for item in said if item.call_id == call_id), "")
        found.append((fact, words))
    return found
