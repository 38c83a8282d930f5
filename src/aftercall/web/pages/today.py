"""Today: what goes on, what finished, what waits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import lru_cache, partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from aftercall.journal.view import read_live_turns
from aftercall.memory.visibility import redact_turns
from aftercall.model.turns import Turn
from aftercall.web.live import LiveCallsChanged, LiveEvent, TurnSaid
from aftercall.web.page_store import CallFilter
from aftercall.web.pages.context import PageContext

MAX_RECENT_ROWS = 12
KEEP_ALIVE_S = 15.0
TURN_CACHE_SIZE = 64
KEEP_ALIVE_COMMENT = ": still here\n\n"
END = object()
RenderTurn = Callable[[str, Turn], str]
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter(
        dependencies=[Depends(context.view.auth.require_access)], include_in_schema=False
    )
    tell = lru_cache(TURN_CACHE_SIZE)(
        partial(_turn_event, context)
    )  # what a hundred viewers look at is written once

    @router.get("/", response_class=HTMLResponse)
    def get_today(request: Request) -> HTMLResponse:
        finished = context.make_listings(
            context.store.list_calls(CallFilter(state="sealed"), limit=MAX_RECENT_ROWS)
        )
        failed = context.store.list_failed_steps(MAX_RECENT_ROWS)
        waiting = [
            row
            for state in ("held", "broken", "failed")
            for row in context.app.work.followups.page(limit=MAX_RECENT_ROWS, state=state)
        ]
        now = context.app.clock.now()
        health = context.app.report_health()
        shown: dict[str, Any] = {
            "live": _live(context),
            "finished": finished,
            "failed": failed,
            "waiting": waiting,
            "health": health,
            "now": now,
        }
        return context.view.render_page(request, "today.html", **shown)

    @router.get("/live")
    async def get_live() -> StreamingResponse:
        """Everything that is spoken, as pieces of the page; first, what the page may have
        missed while it was loading.
        """
        return StreamingResponse(
            _stream_all_calls(context, tell), media_type="text/event-stream", headers=STREAM_HEADERS
        )

    @router.get("/calls/{call_id}/live")
    async def get_call_live(
        call_id: str,
        after: int = 0,
        last_event_id: Annotated[str, Header(pattern=r"^\d{0,9}$")] = "",
    ) -> StreamingResponse:
        """One call from turn `after` on; a browser that was cut off says which turn it saw last."""
        seen = int(last_event_id) if last_event_id else after
        return StreamingResponse(
            _stream_call(context, tell, call_id, seen),
            media_type="text/event-stream",
            headers=STREAM_HEADERS,
        )

    return router


def _live(context: PageContext) -> list[dict[str, object]]:
    lines = context.make_listings(context.store.list_calls(CallFilter(state="live"), limit=50))
    return [
        {"line": line, "turns": redact_turns(read_live_turns(context.app.store, line.row))[-6:]}
        for line in lines
    ]


async def _stream_all_calls(context: PageContext, render_turn: RenderTurn) -> AsyncIterator[str]:
    """Server-sent events: `live` replaces the list of live calls, `turn-ID` adds a turn."""
    async for happening in _live_events(context):
        if happening is None:
            yield KEEP_ALIVE_COMMENT
        elif isinstance(happening, TurnSaid):
            yield render_turn(happening.call_id, happening.turn)
        else:
            live = await asyncio.to_thread(_live, context)
            yield _format_sse(
                "live", context.view.render_fragment("parts/live.html", {"live": live})
            )


async def _stream_call(
    context: PageContext, render_turn: RenderTurn, call_id: str, seen: int
) -> AsyncIterator[str]:
    """The turns of one call, each once, and `over` when it has ended."""
    async for happening in _live_events(context):
        if happening is None:
            yield KEEP_ALIVE_COMMENT
        elif isinstance(happening, TurnSaid):
            if happening.call_id == call_id and happening.turn.seq > seen:
                seen = happening.turn.seq
                yield render_turn(call_id, happening.turn)
        else:
            row = await asyncio.to_thread(context.app.store.get, call_id)
            for turn in (
                await asyncio.to_thread(read_live_turns, context.app.store, row)
                if row.state == "live"
                else ()
            ):
                if turn.seq > seen:
                    seen = turn.seq
                    yield render_turn(call_id, turn)
            if call_id not in happening.live_ids:
                yield _format_sse("over", "ended")


async def _live_events(context: PageContext) -> AsyncIterator[LiveEvent | None]:
    """What the feed tells, beginning with who is on the phone; None when nothing has happened
    for a while.
    """
    watching = context.feed.subscribe()
    following = asyncio.ensure_future(anext(watching, END))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
            if not done:
                yield None
                continue
            happening = following.result()
            if happening is END or not isinstance(happening, TurnSaid | LiveCallsChanged):
                return
            yield happening
            following = asyncio.ensure_future(anext(watching, END))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await watching.aclose()


def _turn_event(context: PageContext, call_id: str, turn: Turn) -> str:
    (veiled,) = redact_turns((turn,))
    return _format_sse(
        f"turn-{call_id}",
        context.view.render_fragment("parts/turn.html", {"turn": veiled, "start": None}),
        turn.seq,
    )


def _format_sse(name: str, data: str, number: int | None = None) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"event: {name}\n{lines}" + (f"id: {number}\n\n" if number else "\n")
