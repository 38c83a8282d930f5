"""Calls: the list with its filters, and one call with everything about it."""

import json
import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Header, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.clock import format_duration
from aftercall.encryption import HEADER_BYTES, is_encrypted
from aftercall.errors import RefusedInput
from aftercall.journal.recording_files import RecordingFolder
from aftercall.journal.store import CallRow
from aftercall.journal.view import call_json, read_words
from aftercall.memory.visibility import redact_call, redact_turns
from aftercall.model.calls import Turn
from aftercall.model.followups import FollowUp
from aftercall.model.json_fields import Json
from aftercall.model.passages import SearchScope
from aftercall.model.reading import CATEGORIES, REQUEST_KINDS
from aftercall.postcall.runner import rerun
from aftercall.speech.transcription import tell_format
from aftercall.web.auth import Who
from aftercall.web.page_store import (
    CallFilter,
    find_recording_file,
    parse_caller,
    parse_cursor,
    to_cursor,
)
from aftercall.web.pages.context import FormText, PageContext, format_offset
from aftercall.web.pages.timeline import (
    MadeItem,
    TimelineRow,
    draw_lanes,
    draw_waveform,
    list_made_facts,
    make_timeline,
)

PAGE_SIZE = 50
MIN_YEAR = 1970
MAX_YEAR = 2999
MAX_SEARCH_HITS = 200
MAX_DECODED_BYTES = 32 * 1024 * 1024  # an hour of MP3; the browser holds it decoded
PRIVATE = {"Cache-Control": "private, no-store", "Accept-Ranges": "bytes"}
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")


def add_routes(context: PageContext) -> None:
    router = context.add_section("/calls")
    operate = context.require("operator")

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

    @router.get("/{call_id}/story", response_class=HTMLResponse)
    def get_story(request: Request, call_id: str) -> HTMLResponse:
        """What was said and made, for a page that is open while the work goes on."""
        values = _call_values(context, context.app.store.get(call_id))
        return context.view.render_page(request, "parts/story.html", **values)

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

    @router.post("/{call_id}/rerun/{step}", dependencies=operate)
    async def post_rerun(call_id: str, step: str) -> RedirectResponse:
        await run_in_threadpool(rerun, context.app.step_runner, call_id, step)
        return RedirectResponse(f"/calls/{call_id}#steps", 303)

    _add_recording_routes(router, context)
    _add_missed_routes(router, context)


def _add_recording_routes(router: APIRouter, context: PageContext) -> None:
    operate = context.require("operator")

    @router.get("/{call_id}/recordings/{recording_id}", dependencies=operate)
    def get_recording(
        call_id: str,
        recording_id: str,
        range_: Annotated[str, Header(alias="range")] = "",
    ) -> Response:
        """The audio; range requests are supported."""
        file = find_recording_file(context.app, call_id, recording_id)
        if file.is_file():
            with file.open("rb") as opened:
                head = opened.read(HEADER_BYTES)
            if not is_encrypted(head):
                return FileResponse(file, 200, PRIVATE, tell_format(head)[1])
        return _answer_range(_read_recording(context.app, file), range_)

    @router.get("/{call_id}/recordings/{recording_id}/waveform", dependencies=operate)
    def get_waveform(
        request: Request, call_id: str, recording_id: str, length: float = 0.0
    ) -> HTMLResponse:
        """The loudness of both sides, to lay over the lanes of a call of `length` seconds.

        A compressed recording is decoded and drawn by the browser.
        """
        file = find_recording_file(context.app, call_id, recording_id)
        sound = _read_recording(context.app, file)
        drawn = draw_waveform(sound)
        is_compressed = tell_format(sound)[1] != "audio/wav"
        return context.view.render_page(
            request,
            "parts/waveform.html",
            drawn=drawn,
            length_s=length,
            is_decoded=is_compressed and len(sound) <= MAX_DECODED_BYTES,
            sound_url=f"/calls/{call_id}/recordings/{recording_id}",
        )


def _add_missed_routes(router: APIRouter, context: PageContext) -> None:
    """What a person found in the call and the reader did not."""
    operate = context.require("operator")
    corrections = context.app.corrections

    @router.get("/{call_id}/missed", response_class=HTMLResponse, dependencies=operate)
    def get_missed(request: Request, call_id: str) -> HTMLResponse:
        """The forms for what the reader has missed."""
        return context.view.render_page(
            request,
            "parts/missed.html",
            call_id=call_id,
            kinds=REQUEST_KINDS,
            categories=CATEGORIES,
            rows=_call_values(context, context.app.store.get(call_id))["rows"],
        )

    @router.post("/{call_id}/requests", dependencies=operate)
    async def post_request(
        who: Who,
        call_id: str,
        title: FormText,
        kind: FormText = "task",
        due: FormText = "",
        person: FormText = "",
        back: FormText = "",
        turn: Annotated[list[int], Form(max_length=100)] = [],  # noqa: B006 - FastAPI copies it
    ) -> RedirectResponse:
        told: Json = {
            "kind": kind,
            "due": due,
            "person": person,
            "turns": turn,
        }
        add = partial(corrections.add_request, call_id, title, who, **told)
        made = await run_in_threadpool(add)
        return context.answer_done(back or f"/calls/{call_id}", "corrected", [made.id])

    @router.post("/{call_id}/facts", dependencies=operate)
    async def post_fact(
        who: Who,
        call_id: str,
        text: FormText,
        turn: Annotated[int, Form()],
        category: FormText = "person",
    ) -> RedirectResponse:
        add = partial(corrections.add_fact, turn=turn, category=category)
        made = await run_in_threadpool(add, call_id, text, who)
        return context.answer_done(f"/calls/{call_id}", "corrected", [made.id])


def _read_recording(app: App, file: Path) -> bytes:
    return RecordingFolder.from_settings(app.settings).read(file)


def _answer_range(sound: bytes, asked: str) -> Response:
    """The whole, or the one range that players ask for: `bytes=100-` or `bytes=100-200`."""
    size = len(sound)
    kind = tell_format(sound)[1]
    found = _RANGE.fullmatch(asked)
    if found is None or int(found[1]) >= size:
        return Response(sound, media_type=kind, headers=PRIVATE)
    first = int(found[1])
    last = min(int(found[2] or size), size - 1)
    headers = PRIVATE | {"Content-Range": f"bytes {first}-{last}/{size}"}
    return Response(sound[first : last + 1], 206, headers, kind)


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
        self.since = since
        self.until = until
        self.before = before

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


def _call_values(context: PageContext, row: CallRow) -> Json:
    """What the page of a call shows: its words with what was made of them in between."""
    app = context.app
    call_id = row.live.id
    conversation = row.live.conversation
    row, call, late = read_words(app.store, app.archive, row)
    (line,) = context.make_listings([row])
    secrets = app.facts.list_confided_words(call_id)
    followups = app.work.followups.of_conversation(conversation)
    asked = [_to_made_item(item, call_id) for item in followups]
    facts = list_made_facts(app.database, call_id)
    rows = make_timeline(call.turns, call.events, [*asked, *facts], secrets)
    end = row.ended_at or app.clock.now()
    length_s = max(1.0, (end - row.live.started_at).total_seconds())
    is_working = line.status == "working"
    is_waiting = row.state == "sealed" and app.work.runs.is_pending(conversation)
    return {
        "line": line,
        "row": row,
        "legs": [
            leg
            for leg in context.store.list_legs(conversation)
            if leg.live.id != call_id
        ],
        "rows": rows,
        "last_seq": len(call.turns),
        "late": [TimelineRow.from_turn(turn) for turn in redact_turns(late, secrets)],
        "moments": {
            one.seq: format_offset(one.at, row.live.started_at) for one in rows
        },
        "lanes": draw_lanes(rows, row.live.started_at, length_s),
        "length_s": length_s,
        "delay": _describe_delays(call.turns),
        "asked": asked,
        "facts": facts,
        "recordings": app.recordings.list_for_call(call_id),
        "is_audible": app.phone.is_audible(call_id),
        "poll_s": 1 if is_working else 3 if is_waiting else 0,
    }


def _to_made_item(item: FollowUp, call_id: str) -> MadeItem:
    seq = min((seq for call, seq in item.turns if call == call_id), default=None)
    made = item.link if item.link and "://" in item.link else ""
    link = f"/followups/{item.id}"
    state = item.told_standing
    return MadeItem(item.kind, item.title, link, state, seq, made)


def _describe_delays(turns: Sequence[Turn]) -> str:
    """The usual and the longest wait for an answer; empty if none was timed."""
    delays = sorted(turn.delay_ms for turn in turns if turn.delay_ms is not None)
    if not delays:
        return ""
    usual = format_duration(delays[len(delays) // 2] / 1_000)
    most = format_duration(delays[-1] / 1_000)
    return f"answers after {usual}, at most {most}"
