"""Today: live calls, what waits for a decision, figures, and finished calls; and the live streams.

The page and its stream are made of the same parts. A stream sends a part again when its HTML has
changed; each change is rendered once for all viewers, whose form tokens are put in last.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, TypeVar, cast
from urllib.parse import urlencode

from fastapi import Header, Request
from fastapi.responses import HTMLResponse, StreamingResponse
from markupsafe import Markup

from aftercall.errors import AftercallError
from aftercall.journal.view import read_live_turns
from aftercall.memory.visibility import redact_turns
from aftercall.model.calls import Turn
from aftercall.model.followups import TO_DO, FollowUp
from aftercall.web.auth import get_session
from aftercall.web.figures import SPANS, FigureQuery, Figures, Span
from aftercall.web.live_feed import LiveCallsChanged, LiveEvent, TurnSaid
from aftercall.web.page_store import (
    MAX_WATCHED_ROWS,
    WAITING_STATES,
    CallFilter,
)
from aftercall.web.pages.context import FilterText, PageContext
from aftercall.web.pages.timeline import TimelineRow
from aftercall.web.users import Role, is_enough
from aftercall.work.health import HealthReport

T = TypeVar("T")
MAX_WAITING_ROWS = 6
MAX_FIGURES_AGE_S = 5.0
MAX_LIVE_ROWS = 50
LIVE_TURNS = 6
KEEP_ALIVE_S = 15.0
KEEP_ALIVE_COMMENT = ": still here\n\n"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
WAITING_LINK = f"/followups?{urlencode({'state': WAITING_STATES}, doseq=True)}"
TO_DO_LINK = f"/followups?{urlencode({'state': TO_DO}, doseq=True)}"
PARTS = ("health", "first_run", "waiting", "figures", "finished")
MAX_SHARED_RENDERINGS = 64
FORM_MARK = "where the form token of a session goes"
# What a reason of the health report hints at, and the place on the pages for it.
HEALTH_LINKS = (
    ("--state broken", "/followups?state=broken"),
    ("--state held", "/followups?state=held"),
    ("events undelivered", "/followups#dead-title"),
)


def add_routes(context: PageContext) -> None:
    """The front page and what keeps it fresh."""
    router = context.add_section()
    shared = SharedRenderings()
    counted = CountedFigures(context)

    @router.get("/", response_class=HTMLResponse)
    def get_today(
        request: Request,
        span: Span = "week",
        agent: FilterText = "",
    ) -> HTMLResponse:
        """Live calls, what waits for a person, the newest calls, figures."""
        page = FrontPage(FigureQuery(span, agent or None), request.state.login.role)
        parts = _render_parts(context, counted, page)
        token = context.view.auth.make_csrf_token(get_session(request))
        return context.view.render_page(
            request,
            "today.html",
            live=_list_live(context),
            parts={
                name: Markup(html.replace(FORM_MARK, token))  # noqa: S704 - rendered, escaped
                for name, html in parts.items()
            },
            feed={
                "span": span,
                "agent": agent,
                "seen": ",".join(_digest(parts[name]) for name in PARTS),
            },
            now=context.app.clock.now(),
        )

    @router.get("/live")
    async def get_live(
        request: Request,
        span: Span = "week",
        agent: FilterText = "",
        seen: FilterText = "",
    ) -> StreamingResponse:
        """Every turn as HTML to insert; first the live calls and each part that has changed
        while the page was loading.
        """
        page = FrontPage(FigureQuery(span, agent or None), request.state.login.role)
        render = partial(_render_parts, context, counted, page, is_changed=True)
        return _stream(_stream_all_calls(context, shared, request, page, seen, render))

    @router.get("/calls/{call_id}/live")
    async def get_call_live(
        request: Request,
        call_id: str,
        after: int = 0,
        last_event_id: Annotated[str, Header(pattern=r"^\d{0,9}$")] = "",
    ) -> StreamingResponse:
        """One call from turn `after` on; a browser that reconnects sends the last turn it saw."""
        seen = int(last_event_id) if last_event_id else after
        return _stream(_stream_call(context, shared, request, call_id, seen))


class FrontPage(NamedTuple):
    """What one viewer's page shows; viewers of the same one share its renderings."""

    query: FigureQuery
    role: Role

    @property
    def rights(self) -> dict[str, bool]:
        """For the templates: which buttons to show."""
        return {
            "can_work": is_enough(self.role, "operator"),
            "can_admin": is_enough(self.role, "admin"),
        }


class SharedRenderings:
    """What was rendered for one viewer, for the others: one thread renders, all wait for it."""

    def __init__(self) -> None:
        self._tasks: dict[object, asyncio.Task[dict[str, str]]] = {}

    async def get(
        self, key: object, render: Callable[[], dict[str, str]]
    ) -> dict[str, str]:
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(asyncio.to_thread(render))
            self._tasks[key] = task
            if len(self._tasks) > MAX_SHARED_RENDERINGS:
                self._tasks.pop(next(iter(self._tasks)))
        return await asyncio.shield(task)


def _stream(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(
        events, media_type="text/event-stream", headers=STREAM_HEADERS
    )


def _digest(html: str) -> str:
    return blake2b(html.encode(), digest_size=8).hexdigest()


class CountedFigures:
    """Health, figures and what is to do count many rows: a page may get those of some seconds
    ago.
    """

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._kept: dict[object, tuple[float, Any]] = {}

    def read(
        self, query: FigureQuery, *, is_changed: bool
    ) -> tuple[HealthReport, Figures, tuple[dict[str, int], list[FollowUp]]]:
        app = self._context.app
        health = partial(app.report_health, only_open=True)
        figures = partial(self._context.figures.read, query, app.clock.now())
        newest = self._context.store.get_newest_change()
        return (
            self._count("health", health, is_changed=is_changed),
            self._count(query, figures, is_changed=is_changed),
            self._count(("to do", newest), self._read_to_do, is_changed=is_changed),
        )

    def _read_to_do(self) -> tuple[dict[str, int], list[FollowUp]]:
        """The follow-ups in each standing, and the first that are to do."""
        store = self._context.store
        now = self._context.get_local_now()
        return store.count_followups(), store.list_to_do(now, limit=MAX_WAITING_ROWS)

    def _count(self, key: object, count: Callable[[], T], *, is_changed: bool) -> T:
        """Counts anew after a change, and when what was counted is too old."""
        now_s = self._context.app.clock.monotonic()
        at_s, made = self._kept.get(key, (0.0, None))
        if is_changed or made is None or now_s - at_s >= MAX_FIGURES_AGE_S:
            made = count()
            if len(self._kept) >= MAX_SHARED_RENDERINGS:
                self._kept.clear()
            self._kept[key] = (now_s, made)
        return cast(T, made)


def _render_parts(
    context: PageContext,
    counted: CountedFigures,
    page: FrontPage,
    *,
    is_changed: bool = False,
) -> dict[str, str]:
    """The parts around the live calls, with a mark where each session's form token goes."""
    app = context.app
    sealed = context.store.list_calls(
        CallFilter(state="sealed"), limit=MAX_WATCHED_ROWS
    )
    waiting = [
        row
        for state in WAITING_STATES
        for row in app.work.followups.page(
            limit=MAX_WAITING_ROWS, state=state, only_alone=True
        )
    ][:MAX_WAITING_ROWS]
    since = app.clock.now() - timedelta(hours=24)
    report, figures, (counts, to_do) = counted.read(page.query, is_changed=is_changed)
    values = {
        "csrf": FORM_MARK,
        "path": "/",
        **page.rights,
        "finished": context.make_listings(sealed),
        "failed": context.store.list_failed_steps(MAX_WAITING_ROWS),
        "waiting": waiting,
        "count": sum(counts.get(name, 0) for name in WAITING_STATES),
        "waiting_link": WAITING_LINK,
        "to_do": to_do,
        "to_do_count": sum(counts.get(name, 0) for name in TO_DO),
        "to_do_link": TO_DO_LINK,
        **context.describe_rows([*waiting, *to_do]),
        "calls_today": app.health.count_calls(since),
        "troubles": _describe_troubles(report),
        "status": report.status,
        "figures": figures,
        "spans": {span: words for span, (_, words) in SPANS.items()},
    }
    return {
        name: context.view.render_fragment(f"parts/{name}.html", values)
        for name in PARTS
    }


def _describe_troubles(report: HealthReport) -> list[tuple[str, str]]:
    """Each reason in words, and the page that shows it."""
    failed = next((call.id for call in report.calls if call.state == "failed"), "")
    links = (("calls show", f"/calls/{failed}#steps"), *HEALTH_LINKS)
    found = []
    for reason in report.reasons:
        words, _, hint = reason.partition("; ")
        link = next((to for command, to in links if command in hint), "/settings")
        found.append((words, link))
    return found


def _list_live(context: PageContext) -> list[dict[str, object]]:
    """Live calls with their words so far, newest first."""
    rows = context.store.list_calls(CallFilter(state="live"), limit=MAX_LIVE_ROWS)
    live: list[dict[str, object]] = []
    for line in context.make_listings(rows):
        turns = redact_turns(read_live_turns(context.app.store, line.row))
        live.append(
            {
                "line": line,
                "turns": [TimelineRow.from_turn(turn) for turn in turns[-LIVE_TURNS:]],
                "is_audible": context.app.phone.is_audible(line.row.live.id),
            }
        )
    return live


async def _stream_all_calls(
    context: PageContext,
    shared: SharedRenderings,
    request: Request,
    page: FrontPage,
    seen: str,
    render: Callable[[], dict[str, str]],
) -> AsyncIterator[str]:
    """Server-sent events: `live` replaces the list of live calls, `turn-ID` adds a turn, and
    the name of a part replaces that part.
    """
    token = context.view.auth.make_csrf_token(get_session(request))
    digests = dict(zip(PARTS, seen.split(","), strict=False))

    def render_live() -> dict[str, str]:
        values = {"live": _list_live(context), **page.rights}
        return {"live": context.view.render_fragment("parts/live.html", values)}

    async for event in _live_events(context, request):
        if event is None:
            yield KEEP_ALIVE_COMMENT
        elif isinstance(event, TurnSaid):
            yield await _turn_event(context, shared, event.call_id, event.turn)
        elif isinstance(event, LiveCallsChanged):
            version = object() if event.version is None else event.version
            made = await shared.get((version, page.role), render_live)
            yield _format_sse("live", made["live"])
        else:
            made = await shared.get((event.version, page), render)
            for name, html in made.items():
                digest = _digest(html)
                if digests.get(name) != digest:
                    digests[name] = digest
                    yield _format_sse(name, html.replace(FORM_MARK, token))


async def _stream_call(
    context: PageContext,
    shared: SharedRenderings,
    request: Request,
    call_id: str,
    seen: int,
) -> AsyncIterator[str]:
    """The turns of one call, each once, and `over` when it has ended."""
    row = await asyncio.to_thread(context.app.store.get, call_id)
    start = row.live.started_at
    async for event in _live_events(context, request):
        if event is None:
            yield KEEP_ALIVE_COMMENT
            continue
        turns: tuple[Turn, ...] = ()
        if isinstance(event, LiveCallsChanged):
            turns = await asyncio.to_thread(_read_live_turns, context, call_id)
        elif isinstance(event, TurnSaid) and event.call_id == call_id:
            turns = (event.turn,)
        for turn in turns:
            if turn.seq > seen:
                seen = turn.seq
                yield await _turn_event(context, shared, call_id, turn, start)
        if isinstance(event, LiveCallsChanged) and call_id not in event.live_ids:
            yield _format_sse("over", "ended")


def _read_live_turns(context: PageContext, call_id: str) -> tuple[Turn, ...]:
    row = context.app.store.get(call_id)
    return tuple(read_live_turns(context.app.store, row)) if row.state == "live" else ()


async def _live_events(
    context: PageContext, request: Request
) -> AsyncIterator[LiveEvent | None]:
    """The events of the feed, first the live calls; None after each quiet KEEP_ALIVE_S.

    Ends when the browser is logged out.
    """
    feed = context.feed.subscribe()
    following = asyncio.ensure_future(anext(feed, None))
    now = asyncio.get_running_loop().time
    checked_at = now()
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
            if now() - checked_at >= KEEP_ALIVE_S:
                checked_at = now()
                if not await _has_access(context, request):
                    return
            if not done:
                yield None
                continue
            event = following.result()
            if event is None:
                return
            yield event
            following = asyncio.ensure_future(anext(feed, None))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await feed.aclose()


async def _has_access(context: PageContext, request: Request) -> bool:
    try:
        return await context.view.auth.is_still_allowed(request)
    except AftercallError:  # the database is away, and with it everything to show
        return True


async def _turn_event(
    context: PageContext,
    shared: SharedRenderings,
    call_id: str,
    turn: Turn,
    start: datetime | None = None,
) -> str:
    """With a start, the time into the call; else the time of day."""

    def render() -> dict[str, str]:
        (redacted,) = redact_turns((turn,))
        values = {"rows": [TimelineRow.from_turn(redacted)], "start": start}
        html = context.view.render_fragment("parts/turns.html", values)
        return {"turn": _format_sse(f"turn-{call_id}", html, turn.seq)}

    return (await shared.get((call_id, turn.seq, start), render))["turn"]


def _format_sse(name: str, data: str, number: int | None = None) -> str:
    # without a line of data, a browser drops the event
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}" + (f"id: {number}\n\n" if number else "\n")
