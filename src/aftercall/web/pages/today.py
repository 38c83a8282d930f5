"""Today: what goes on, what finished, what waits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from aftercall.journal.view import turns_of
from aftercall.memory.veil import veil_turns
from aftercall.web.live import Changed, Happening
from aftercall.web.pages.desk import Desk
from aftercall.web.store import Filter
from aftercall.work.health.report import report

RECENT = 12
KEEP_ALIVE_S = 15.0
STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(dependencies=[Depends(desk.view.door.admit)], include_in_schema=False)

    @router.get("/", response_class=HTMLResponse)
    def get_today(request: Request) -> HTMLResponse:
        finished = desk.lines(desk.store.calls(Filter(state="sealed"), limit=RECENT))
        failed = desk.store.failed_steps(RECENT)
        waiting = [row for state in ("held", "broken", "failed") for row in desk.app.work.followups.page(limit=RECENT, state=state)]
        now = desk.app.clock.now()
        health = report(desk.app.health, now, desk.app.settings.reconnect_window_s)
        shown: dict[str, Any] = {
            "live": _live(desk),
            "finished": finished,
            "failed": failed,
            "waiting": waiting,
            "health": health,
            "now": now,
        }
        return desk.view.page(request, "today.html", **shown)

    @router.get("/live")
    async def get_live() -> StreamingResponse:
        """Everything that is spoken, as pieces of the page."""
        return StreamingResponse(_pieces(desk), media_type="text/event-stream", headers=STREAM)

    @router.get("/calls/{call_id}/live")
    async def get_call_live(call_id: str) -> StreamingResponse:
        return StreamingResponse(_pieces(desk, call_id), media_type="text/event-stream", headers=STREAM)

    return router


def _live(desk: Desk) -> list[dict[str, object]]:
    lines = desk.lines(desk.store.calls(Filter(state="live"), limit=50))
    return [{"line": line, "turns": veil_turns(turns_of(desk.app.store, line.row))[-6:]} for line in lines]


async def _pieces(desk: Desk, call_id: str | None = None) -> AsyncIterator[str]:
    """Server-sent events: `live` replaces the list of live calls, `turn-ID` adds a turn, `over` says that this call ended."""
    watching = desk.feed.watch()
    yield ": here\n\n"
    following = asyncio.ensure_future(anext(watching, None))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
            if not done:
                yield ": still here\n\n"
                continue
            happening = following.result()
            if happening is None:
                return
            if piece := await _piece(desk, happening, call_id):
                yield piece
            following = asyncio.ensure_future(anext(watching, None))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await watching.aclose()


async def _piece(desk: Desk, happening: Happening, call_id: str | None) -> str | None:
    if isinstance(happening, Changed):
        if call_id is None:
            live = await asyncio.to_thread(_live, desk)
            return _event("live", desk.view.fragment("parts/live.html", {"live": live}))
        return None if call_id in happening.live else _event("over", "ended")
    if call_id not in (None, happening.call_id):
        return None
    (turn,) = veil_turns((happening.turn,))
    return _event(f"turn-{happening.call_id}", desk.view.fragment("parts/turn.html", {"turn": turn, "start": None}))


def _event(name: str, data: str) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"event: {name}\n{lines}\n"
