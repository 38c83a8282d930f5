"""What a person changes about pinned topics, on the page of the caller they belong to."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from aftercall.errors import RefusedInput
from aftercall.memory.visibility import memory_key
from aftercall.model.facts import MemoryKey, PinState
from aftercall.web.pages.context import WHO, PageContext
from aftercall.web.pages.people import parse_known_party, show_person

TITLE = "pins-title"


def make_router(context: PageContext) -> APIRouter:
    router = APIRouter(
        prefix="/people",
        dependencies=[Depends(context.view.auth.require_change_access)],
        include_in_schema=False,
    )
    board = context.app.pins

    @router.post("/{caller}/pins")
    async def post_pin(request: Request, caller: str, topic: Annotated[str, Form()]) -> Response:
        known = parse_known_party(caller)
        key = _key(context, known)
        await run_in_threadpool(
            board.pin_topic, key, topic, context.app.audit.make_writer(WHO, "edited", "a pin")
        )
        return _redirect_to_person(request, known)

    @router.post("/{caller}/pins/{pin_id}/{decision}")
    async def post_decision(request: Request, caller: str, pin_id: str, decision: str) -> Response:
        known = parse_known_party(caller)
        if decision not in ("pinned", "unpinned"):
            raise RefusedInput("decision", "is not pinned or unpinned")
        await run_in_threadpool(_check, context, known, pin_id)
        state: PinState = "pinned" if decision == "pinned" else "unpinned"
        await run_in_threadpool(
            board.set_state, pin_id, state, context.app.audit.make_writer(WHO, "edited", pin_id)
        )
        return _redirect_to_person(request, known)

    @router.post("/{caller}/pins/{pin_id}")
    async def post_note(
        request: Request,
        caller: str,
        pin_id: str,
        was: Annotated[str, Form()],
        note: Annotated[str, Form()] = "",
        title: Annotated[str, Form()] = "",
    ) -> Response:
        """The words as they were typed; if somebody else wrote meanwhile, nothing is kept and
        both are shown.
        """
        known = parse_known_party(caller)
        await run_in_threadpool(_check, context, known, pin_id)
        typed = note.replace("\r\n", "\n")
        audit = context.app.audit.make_writer(WHO, "edited", pin_id)
        if (
            await run_in_threadpool(board.edit, pin_id, typed, title=title, was=was, audit=audit)
            is None
        ):
            return await run_in_threadpool(
                show_person, context, request, known, pin_typed={pin_id: typed}
            )
        return _redirect_to_person(request, known)

    return router


def _redirect_to_person(request: Request, caller: str) -> Response:
    return RedirectResponse(f"{request.url_for('get_person', caller=caller).path}#{TITLE}", 303)


def _check(context: PageContext, caller: str, pin_id: str) -> None:
    """A pin is changed on the page it stands on."""
    if context.app.pins.get(pin_id).pin.key != _key(context, caller):
        raise RefusedInput("pin", "is not this caller's")


def _key(context: PageContext, caller: str) -> MemoryKey:
    key = memory_key(context.app.settings, context.app.settings.agent_id, caller)
    if key is None:
        raise RefusedInput("caller", "nobody is remembered here (memory scope `none`)")
    return key
