"""Today: live calls, recent calls, and what waits for a decision; and the live streams."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from aftercall.errors import AftercallError
from aftercall.journal.view import read_live_turns
from aftercall.memory.visibility import redact_turns
from aftercall.model.turns import Turn
from aftercall.web.page_store import CallFilter, LiveCallsChanged, LiveEvent, TurnSaid
from aftercall.web.pages.context import PageContext

MAX_RECENT_ROWS = 12
MAX_LIVE_ROWS = 50
LIVE_TURNS = 6
KEEP_ALIVE_S = 15.0
KEEP_ALIVE_COMMENT = ": still here\n\n"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
WAITING_STATES = ("held", "unclear", "broken", "failed")


def make_router(context: PageContext) -> APIRouter:
    router = context.make_router()

    @router.get("/", response_class=HTMLResponse)
    def get_today(request: Request) -> HTMLResponse:
        app = context.app
        sealed = context.store.list_calls(
            CallFilter(state="sealed"), limit=MAX_RECENT_ROWS
        )
        waiting = [
            row
            for state in WAITING_STATES
            for row in app.work.followups.page(limit=MAX_RECENT_ROWS, state=state)
        ]
        return context.view.render_page(
            request,
            "today.html",
            live=_list_live(context),
            finished=context.make_listings(sealed),
            failed=context.store.list_failed_steps(MAX_RECENT_ROWS),
            waiting=waiting,
            health=app.report_health(),
            now=app.clock.now(),
        )

    @router.get("/live")
    async def get_live(request: Request) -> StreamingResponse:
        """Every turn as HTML to insert; first the live calls, which may have changed while the
        page was loading.
        """
        return _stream(_stream_all_calls(context, request))

    @router.get("/calls/{call_id}/live")
    async def get_call_live(
        request: Request,
        call_id: str,
        after: int = 0,
        last_event_id: Annotated[str, Header(pattern=r"^\d{0,9}$")] = "",
    ) -> StreamingResponse:
        """One call from turn `after` on; a browser that reconnects sends the last turn it saw."""
        seen = int(last_event_id) if last_event_id else after
        return _stream(_stream_call(context, request, call_id, seen))

    return router


def _stream(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(
        events, media_type="text/event-stream", headers=STREAM_HEADERS
    )


def _list_live(context: PageContext) -> list[dict[str, object]]:
    rows = context.store.list_calls(CallFilter(state="live"), limit=MAX_LIVE_ROWS)
    live: list[dict[str, object]] = []
    for line in context.make_listings(rows):
        turns = redact_turns(read_live_turns(context.app.store, line.row))
        live.append({"line": line, "turns": turns[-LIVE_TURNS:]})
    return live


async def _stream_all_calls(
    context: PageContext, request: Request
) -> AsyncIterator[str]:
    """Server-sent events: `live` replaces the list of live calls, `turn-ID` adds a turn."""
    async for event in _live_events(context, request):
        if event is None:
            yield KEEP_ALIVE_COMMENT
        elif isinstance(event, TurnSaid):
            yield _turn_event(context, event.call_id, event.turn)
        else:
            live = await asyncio.to_thread(_list_live, context)
            html = context.view.render_fragment("parts/live.html", {"live": live})
            yield _format_sse("live", html)


async def _stream_call(
    context: PageContext, request: Request, call_id: str, seen: int
) -> AsyncIterator[str]:
    """The turns of one call, each once, and `over` when it has ended."""
    async for event in _live_events(context, request):
        if event is None:
            yield KEEP_ALIVE_COMMENT
            continue
        turns: tuple[Turn, ...] = ()
        if isinstance(event, LiveCallsChanged):
            turns = await asyncio.to_thread(_read_live_turns, context, call_id)
        elif event.call_id == call_id:
            turns = (event.turn,)
        for turn in turns:
            if turn.seq > seen:
                seen = turn.seq
                yield _turn_event(context, call_id, turn)
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


def _turn_event(context: PageContext, call_id: str, turn: Turn) -> str:
    (redacted,) = redact_turns((turn,))
    html = context.view.render_fragment(
        "parts/turn.html", {"turn": redacted, "start": None}
    )
    return _format_sse(f"turn-{call_id}", html, turn.seq)


def _format_sse(name: str, data: str, number: int | None = None) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"event: {name}\n{lines}" + (f"id: {number}\n\n" if number else "\n")
