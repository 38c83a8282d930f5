"""What a person changes about pinned topics, on the page of the caller they belong to."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from aftercall.errors import RefusedInput
from aftercall.memory.key import memory_key
from aftercall.model.knowledge import MemoryKey
from aftercall.model.pins import PinState
from aftercall.web.pages.desk import WHO, Desk
from aftercall.web.pages.people import known_caller, show_person

TITLE = "pins-title"


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(prefix="/people", dependencies=[Depends(desk.view.door.admit_change)], include_in_schema=False)
    board = desk.app.pins

    @router.post("/{caller}/pins")
    async def post_pin(request: Request, caller: str, topic: Annotated[str, Form()]) -> Response:
        known = known_caller(caller)
        key = _key(desk, known)
        await run_in_threadpool(board.pin, key, topic, desk.app.audit.entry(WHO, "edited", "a pin"))
        return _back(request, known)

    @router.post("/{caller}/pins/{pin_id}/{decision}")
    async def post_decision(request: Request, caller: str, pin_id: str, decision: str) -> Response:
        known = known_caller(caller)
        if decision not in ("pinned", "unpinned"):
            raise RefusedInput("decision", "is not pinned or unpinned")
        await run_in_threadpool(_check, desk, known, pin_id)
        state: PinState = "pinned" if decision == "pinned" else "unpinned"
        await run_in_threadpool(board.decide, pin_id, state, desk.app.audit.entry(WHO, "edited", pin_id))
        return _back(request, known)

    @router.post("/{caller}/pins/{pin_id}")
    async def post_note(
        request: Request,
        caller: str,
        pin_id: str,
        was: Annotated[str, Form()],
        note: Annotated[str, Form()] = "",
        title: Annotated[str, Form()] = "",
    ) -> Response:
        """The words as they were typed; if somebody else wrote meanwhile, nothing is kept and both are shown."""
        known = known_caller(caller)
        await run_in_threadpool(_check, desk, known, pin_id)
        typed = note.replace("\r\n", "\n")
        audit = desk.app.audit.entry(WHO, "edited", pin_id)
        if await run_in_threadpool(board.edit, pin_id, typed, title=title, was=was, audit=audit) is None:
            return await run_in_threadpool(show_person, desk, request, known, pin_typed={pin_id: typed})
        return _back(request, known)

    return router


def _back(request: Request, caller: str) -> Response:
    return RedirectResponse(f"{request.url_for('get_person', caller=caller).path}#{TITLE}", 303)


def _check(desk: Desk, caller: str, pin_id: str) -> None:
    """A pin is changed on the page it stands on."""
    if desk.app.pins.get(pin_id).pin.key != _key(desk, caller):
        raise RefusedInput("pin", "is not this caller's")


def _key(desk: Desk, caller: str) -> MemoryKey:
    key = memory_key(desk.app.settings, desk.app.settings.agent_id, caller)
    if key is None:
        raise RefusedInput("caller", "nobody is remembered here (memory scope `none`)")
    return key
