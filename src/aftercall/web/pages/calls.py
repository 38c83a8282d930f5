"""Calls: the list with its filters, and one call whole."""

import json
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall.errors import NotFound, RefusedInput
from aftercall.journal.store import CallRow
from aftercall.journal.view import call_json, cut_short, turns_of
from aftercall.memory.veil import veil, veil_turns
from aftercall.model.knowledge import Fact
from aftercall.model.passages import Where
from aftercall.model.turns import Event, Turn
from aftercall.postcall.rerun import rerun
from aftercall.web.pages.desk import Desk
from aftercall.web.queries import cursor_of, parse_caller, parse_cursor
from aftercall.web.store import Filter

PAGE = 50
MOST_HITS = 200


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(prefix="/calls", dependencies=[Depends(desk.view.door.admit)], include_in_schema=False)
    change = [Depends(desk.view.door.admit_change)]

    @router.get("", response_class=HTMLResponse)
    def get_calls(request: Request, asked: Annotated[Asked, Depends()]) -> HTMLResponse:
        wanted, problem = asked.wanted(desk)
        rows = [] if problem else desk.store.calls(wanted, limit=PAGE, before=parse_cursor(asked.before or None))
        older = cursor_of(rows[-1]) if len(rows) == PAGE else None
        values: dict[str, Any] = {"asked": asked, "problem": problem, "sources": desk.store.sources(), "older": older and asked.link(older)}
        return desk.view.page(request, "calls.html", lines=desk.lines(rows), **values)

    @router.get("/{call_id}", response_class=HTMLResponse)
    def get_call(request: Request, call_id: str) -> HTMLResponse:
        return desk.view.page(request, "call.html", **_show(desk, desk.app.store.get(call_id)))

    @router.get("/{call_id}/steps", response_class=HTMLResponse)
    def get_steps(request: Request, call_id: str) -> HTMLResponse:
        """The steps alone, for a page that watches them run."""
        (line,) = desk.lines([desk.app.store.get(call_id)])
        return desk.view.page(request, "parts/steps.html", line=line)

    @router.get("/{call_id}/raw", response_class=HTMLResponse)
    def get_raw(request: Request, call_id: str) -> HTMLResponse:
        row = desk.app.store.get(call_id)
        call = veil(call_json(desk.app.store, desk.app.archive, row), desk.app.facts.confided(call_id))
        text = json.dumps(call, indent=2, ensure_ascii=False)
        return desk.view.page(request, "raw.html", row=row, text=text)

    @router.get("/{call_id}/recordings/{recording_id}")
    def get_recording(call_id: str, recording_id: str) -> FileResponse:
        """The audio, in pieces if the player asks for pieces."""
        found = [one for one in desk.app.recordings.of_call(call_id) if one.id == recording_id and one.path]
        file = desk.app.settings.home / str(found[0].path) if found else None
        if file is None or not file.is_file():
            raise NotFound("there is no such recording; `aftercall calls show` tells what became of it")
        return FileResponse(file, headers={"Cache-Control": "private, no-store"})

    @router.post("/{call_id}/rerun/{step}", dependencies=change)
    async def post_rerun(call_id: str, step: str) -> RedirectResponse:
        await run_in_threadpool(rerun, desk.app.office, call_id, step)
        return RedirectResponse(f"/calls/{call_id}#steps", 303)

    return router


class Asked:
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
        self.caller, self.source, self.state, self.since, self.until, self.before = caller.strip(), source, state, since, until, before

    def wanted(self, desk: Desk) -> tuple[Filter, str]:
        """What to look for, or what is wrong with what was typed."""
        try:
            caller = parse_caller(self.caller or None)
            zone = desk.app.settings.zone
            since = _day(self.since, "since")
            until = _day(self.until, "until")
        except RefusedInput as error:
            return Filter(), str(error)
        begin = datetime.combine(since, time(), zone) if since else None
        end = datetime.combine(until + timedelta(days=1), time(), zone) if until else None
        ids = self._said(desk, caller) if self.q else None
        return Filter(caller, None, self.source or None, self.state or None, begin, end, ids), ""

    def _said(self, desk: Desk, caller: str | None) -> tuple[str, ...]:
        """Calls in which it was said."""
        where = Where(desk.app.settings.agent_id, caller, kinds=("turn", "summary"))
        hits = desk.app.search.find(self.q, where, limit=MOST_HITS, context=0)
        return tuple(dict.fromkeys(str(hit.passage.call_id) for hit in hits))

    def link(self, before: str) -> dict[str, str]:
        fields = {"q": self.q, "caller": self.caller, "source": self.source, "state": self.state, "since": self.since, "until": self.until}
        return {name: value for name, value in (fields | {"before": before}).items() if value}


def _day(text: str, field: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise RefusedInput(field, "is not a date like 2026-02-13") from None


def _show(desk: Desk, row: CallRow) -> dict[str, Any]:
    (line,) = desk.lines([row])
    late: tuple[Turn, ...] = ()
    if row.archive_name is None:
        turns = turns_of(desk.app.store, row)
        events: list[Event] = []
    else:
        call, late = desk.app.archive.read(row.archive_name)
        turns, events = call.turns, list(call.events)
    legs = [leg for leg in desk.store.legs(row.live.conversation) if leg.live.id != row.live.id]
    followups = desk.app.work.followups.of_conversation(row.live.conversation)
    confided = desk.app.facts.confided(row.live.id)
    shown: dict[str, Any] = {
        "turns": veil_turns(turns, confided),
        "late": veil_turns(late, confided),
        "cut": cut_short(turns, events),
        "facts": _facts(desk, row.live.id),
        "followups": followups,
    }
    shown["recordings"] = desk.app.recordings.of_call(row.live.id)
    return shown | {"line": line, "row": row, "events": events, "legs": legs}


def _facts(desk: Desk, call_id: str) -> list[tuple[Fact, str]]:
    """What this call told us, each with the words it rests on; a secret's words stay away."""
    found = [desk.app.facts.get(fact_id) for fact_id in desk.app.facts.of_call(call_id)]
    return [(fact, "" if fact.is_secret else _words(desk, fact.id, call_id)) for fact in found]


def _words(desk: Desk, fact_id: str, call_id: str) -> str:
    return next((item.words for item in desk.app.facts.occurrences(fact_id) if item.call_id == call_id), "")
