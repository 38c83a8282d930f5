"""Today: what goes on, what finished, what waits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import lru_cache, partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from aftercall.journal.view import turns_of
from aftercall.memory.veil import veil_turns
from aftercall.model.turns import Turn
from aftercall.web.live import Changed, Happening, Said
from aftercall.web.pages.desk import Desk
from aftercall.web.store import Filter

RECENT = 12
KEEP_ALIVE_S = 15.0
LATELY = 64
STILL_HERE = ": still here\n\n"
END = object()
Tell = Callable[[str, Turn], str]
STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(dependencies=[Depends(desk.view.door.admit)], include_in_schema=False)
    tell = lru_cache(LATELY)(partial(_turn_event, desk))  # what a hundred viewers look at is written once

    @router.get("/", response_class=HTMLResponse)
    def get_today(request: Request) -> HTMLResponse:
        finished = desk.lines(desk.store.calls(Filter(state="sealed"), limit=RECENT))
        failed = desk.store.failed_steps(RECENT)
        waiting = [row for state in ("held", "broken", "failed") for row in desk.app.work.followups.page(limit=RECENT, state=state)]
        now = desk.app.clock.now()
        health = desk.app.report_health()
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
        """Everything that is spoken, as pieces of the page; first, what the page may have missed while it was loading."""
        return StreamingResponse(_pieces(desk, tell), media_type="text/event-stream", headers=STREAM)

    @router.get("/calls/{call_id}/live")
    async def get_call_live(
        call_id: str, after: int = 0, last_event_id: Annotated[str, Header(pattern=r"^\d{0,9}$")] = ""
    ) -> StreamingResponse:
        """One call from turn `after` on; a browser that was cut off says which turn it saw last."""
        seen = int(last_event_id) if last_event_id else after
        return StreamingResponse(_turns(desk, tell, call_id, seen), media_type="text/event-stream", headers=STREAM)

    return router


def _live(desk: Desk) -> list[dict[str, object]]:
    lines = desk.lines(desk.store.calls(Filter(state="live"), limit=50))
    return [{"line": line, "turns": veil_turns(turns_of(desk.app.store, line.row))[-6:]} for line in lines]


async def _pieces(desk: Desk, tell: Tell) -> AsyncIterator[str]:
    """Server-sent events: `live` replaces the list of live calls, `turn-ID` adds a turn."""
    async for happening in _happenings(desk):
        if happening is None:
            yield STILL_HERE
        elif isinstance(happening, Said):
            yield tell(happening.call_id, happening.turn)
        else:
            live = await asyncio.to_thread(_live, desk)
            yield _event("live", desk.view.fragment("parts/live.html", {"live": live}))


async def _turns(desk: Desk, tell: Tell, call_id: str, seen: int) -> AsyncIterator[str]:
    """The turns of one call, each once, and `over` when it has ended."""
    async for happening in _happenings(desk):
        if happening is None:
            yield STILL_HERE
        elif isinstance(happening, Said):
            if happening.call_id == call_id and happening.turn.seq > seen:
                seen = happening.turn.seq
                yield tell(call_id, happening.turn)
        else:
            row = await asyncio.to_thread(desk.app.store.get, call_id)
            for turn in await asyncio.to_thread(turns_of, desk.app.store, row) if row.state == "live" else ():
                if turn.seq > seen:
                    seen = turn.seq
                    yield tell(call_id, turn)
            if call_id not in happening.live:
                yield _event("over", "ended")


async def _happenings(desk: Desk) -> AsyncIterator[Happening | None]:
    """What the feed tells, beginning with who is on the phone; None when nothing has happened for a while."""
    watching = desk.feed.watch()
    following = asyncio.ensure_future(anext(watching, END))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
            if not done:
                yield None
                continue
            happening = following.result()
            if happening is END or not isinstance(happening, Said | Changed):
                return
            yield happening
            following = asyncio.ensure_future(anext(watching, END))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await watching.aclose()


def _turn_event(desk: Desk, call_id: str, turn: Turn) -> str:
    (veiled,) = veil_turns((turn,))
    return _event(f"turn-{call_id}", desk.view.fragment("parts/turn.html", {"turn": veiled, "start": None}), turn.seq)


def _event(name: str, data: str, number: int | None = None) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"event: {name}\n{lines}" + (f"id: {number}\n\n" if number else "\n")
