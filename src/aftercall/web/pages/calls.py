"""Calls: the list with its filters, and one call whole."""

import json
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.errors import NotFound, RefusedInput
from aftercall.journal.store import CallRow
from aftercall.journal.view import call_json, find_interrupted_turns, read_live_turns
from aftercall.memory.visibility import redact_call, redact_turns
from aftercall.model.facts import Fact
from aftercall.model.passages import SearchScope
from aftercall.model.turns import Event, Turn
from aftercall.postcall.rerun import rerun
from aftercall.web.page_store import CallFilter
from aftercall.web.pages.context import PageContext
from aftercall.web.queries import parse_caller, parse_cursor, to_cursor

PAGE_SIZE = 50
MAX_SEARCH_HITS = 200


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter(
        prefix="/calls",
        dependencies=[Depends(context.view.auth.require_access)],
        include_in_schema=False,
    )
    change = [Depends(context.view.auth.require_change_access)]

    @router.get("", response_class=HTMLResponse)
    def get_calls(request: Request, asked: Annotated[CallListQuery, Depends()]) -> HTMLResponse:
        wanted, problem = asked.to_filter(context)
        rows = (
            []
            if problem
            else context.store.list_calls(
                wanted, limit=PAGE_SIZE, before=parse_cursor(asked.before or None)
            )
        )
        older = to_cursor(rows[-1]) if len(rows) == PAGE_SIZE else None
        values: dict[str, Any] = {
            "asked": asked,
            "problem": problem,
            "sources": context.store.list_sources(),
            "older": older and asked.link(older),
        }
        return context.view.render_page(
            request, "calls.html", lines=context.make_listings(rows), **values
        )

    @router.get("/{call_id}", response_class=HTMLResponse)
    def get_call(request: Request, call_id: str) -> HTMLResponse:
        return context.view.render_page(
            request, "call.html", **_show(context, context.app.store.get(call_id))
        )

    @router.get("/{call_id}/steps", response_class=HTMLResponse)
    def get_steps(request: Request, call_id: str) -> HTMLResponse:
        """The steps alone, for a page that watches them run."""
        (line,) = context.make_listings([context.app.store.get(call_id)])
        return context.view.render_page(request, "parts/steps.html", line=line)

    @router.get("/{call_id}/raw", response_class=HTMLResponse)
    def get_raw(request: Request, call_id: str) -> HTMLResponse:
        row = context.app.store.get(call_id)
        call = redact_call(
            call_json(context.app.store, context.app.archive, row),
            context.app.facts.list_confided_words(call_id),
        )
        text = json.dumps(call, indent=2, ensure_ascii=False)
        return context.view.render_page(request, "raw.html", row=row, text=text)

    @router.get("/{call_id}/recordings/{recording_id}")
    def get_recording(call_id: str, recording_id: str) -> FileResponse:
        """The audio, in pieces if the player asks for pieces."""
        found = [
            one
            for one in context.app.recordings.list_for_call(call_id)
            if one.id == recording_id and one.path
        ]
        file = context.app.settings.home / str(found[0].path) if found else None
        if file is None or not file.is_file():
            raise NotFound(
                "there is no such recording; `aftercall calls show` tells what became of it"
            )
        return FileResponse(file, headers={"Cache-Control": "private, no-store"})

    @router.post("/{call_id}/rerun/{step}", dependencies=change)
    async def post_rerun(call_id: str, step: str) -> RedirectResponse:
        await run_in_threadpool(rerun, context.app.office, call_id, step)
        return RedirectResponse(f"/calls/{call_id}#steps", 303)

    return router


class CallListQuery:
    """The filters of the list, as the form sends them: an empty field asks for nothing."""

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
        self.q = q.strip()
        self.caller, self.source, self.state, self.since, self.until, self.before = (
            caller.strip(),
            source,
            state,
            since,
            until,
            before,
        )

    def to_filter(self, context: PageContext) -> tuple[CallFilter, str]:
        """What to look for, or what is wrong with what was typed."""
        try:
            caller = parse_caller(self.caller or None)
            zone = context.app.settings.zone
            since = _day(self.since, "since")
            until = _day(self.until, "until")
        except RefusedInput as error:
            return CallFilter(), str(error)
        begin = datetime.combine(since, time(), zone) if since else None
        end = datetime.combine(until + timedelta(days=1), time(), zone) if until else None
        ids = self._said(context, caller) if self.q else None
        return CallFilter(
            caller, None, self.source or None, self.state or None, begin, end, ids
        ), ""

    def _said(self, context: PageContext, caller: str | None) -> tuple[str, ...]:
        """Calls in which it was said."""
        where = SearchScope(context.app.settings.agent_id, caller, kinds=("turn", "summary"))
        hits = context.app.search.find(self.q, where, limit=MAX_SEARCH_HITS, context=0)
        return tuple(dict.fromkeys(str(hit.passage.call_id) for hit in hits))

    def link(self, before: str) -> dict[str, str]:
        fields = {
            "q": self.q,
            "caller": self.caller,
            "source": self.source,
            "state": self.state,
            "since": self.since,
            "until": self.until,
        }
        return {name: value for name, value in (fields | {"before": before}).items() if value}


def _day(text: str, field: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise RefusedInput(field, "is not a date like 2026-02-13") from None


def _show(context: PageContext, row: CallRow) -> dict[str, Any]:
    (line,) = context.make_listings([row])
    late: tuple[Turn, ...] = ()
    if row.archive_name is None:
        turns = read_live_turns(context.app.store, row)
        events: list[Event] = []
    else:
        call, late = context.app.archive.read(row.archive_name)
        turns, events = call.turns, list(call.events)
    legs = [
        leg for leg in context.store.list_legs(row.live.conversation) if leg.live.id != row.live.id
    ]
    followups = context.app.work.followups.of_conversation(row.live.conversation)
    confided = context.app.facts.list_confided_words(row.live.id)
    shown: dict[str, Any] = {
        "turns": redact_turns(turns, confided),
        "late": redact_turns(late, confided),
        "cut": find_interrupted_turns(turns, events),
        "facts": _facts(context, row.live.id),
        "followups": followups,
    }
    shown["recordings"] = context.app.recordings.list_for_call(row.live.id)
    return shown | {"line": line, "row": row, "events": events, "legs": legs}


def _facts(context: PageContext, call_id: str) -> list[tuple[Fact, str]]:
    """What this call told us, each with the words it rests on; a secret's words stay away."""
    found = [
        context.app.facts.get(fact_id) for fact_id in context.app.facts.list_ids_of_call(call_id)
    ]
    return [(fact, "" if fact.is_secret else _words(context, fact.id, call_id)) for fact in found]


def _words(context: PageContext, fact_id: str, call_id: str) -> str:
    return next(
        (
            item.words
            for item in context.app.facts.list_occurrences(fact_id)
            if item.call_id == call_id
        ),
        "",
    )
