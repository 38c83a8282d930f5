"""The JSON API over pinned topics."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from aftercall.app import App
from aftercall.errors import RefusedInput
from aftercall.memory.pins.board import MAX_NOTE_CHARS, MAX_TITLE_CHARS
from aftercall.memory.pins.page import pin_json
from aftercall.memory.visibility import memory_key
from aftercall.model.facts import MemoryKey
from aftercall.web.queries import parse_party, refuse_unknown_query

WHO = "the API"


class NewPin(BaseModel):
    model_config = ConfigDict(extra="forbid")

    caller: str
    topic: str = Field(max_length=MAX_TITLE_CHARS)


class PinEdit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    note: str = Field(max_length=MAX_NOTE_CHARS, description="kept as it is; empty takes it away")
    title: str = Field(
        default="", max_length=MAX_TITLE_CHARS, description="another name; empty leaves it"
    )


def make_router(app: App) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["pins"], dependencies=[Depends(refuse_unknown_query)])

    @router.get("/pins", summary="Topics that a caller keeps coming back to, pinned ones first")
    def get_pins(caller: Annotated[str, Query()]) -> dict[str, Any]:
        return {"pins": [pin_json(shown) for shown in app.pins.list_pages(_key(app, caller))]}

    @router.post("/pins", summary="Pin a topic by hand")
    def post_pin(new: Annotated[NewPin, Body()]) -> dict[str, Any]:
        key = _key(app, new.caller)
        return pin_json(
            app.pins.get(
                app.pins.pin_topic(key, new.topic, app.audit.make_writer(WHO, "edited", "a pin")).id
            )
        )

    @router.get(
        "/pins/{pin_id}",
        summary="One topic: what it is about, how it stands, what is open, its calls",
    )
    def get_pin(pin_id: str) -> dict[str, Any]:
        return pin_json(app.pins.get(pin_id))

    @router.post("/pins/{pin_id}/pin", summary="Pin it again, by hand")
    def post_pin_again(pin_id: str) -> dict[str, Any]:
        return pin_json(
            app.pins.get(
                app.pins.set_state(
                    pin_id, "pinned", app.audit.make_writer(WHO, "edited", pin_id)
                ).id
            )
        )

    @router.post(
        "/pins/{pin_id}/unpin", summary="Unpin it; it stays so however often it is spoken of"
    )
    def post_unpin(pin_id: str) -> dict[str, Any]:
        return pin_json(
            app.pins.get(
                app.pins.set_state(
                    pin_id, "unpinned", app.audit.make_writer(WHO, "edited", pin_id)
                ).id
            )
        )

    @router.post("/pins/{pin_id}/edit", summary="Write a note on it, or name it otherwise")
    def post_edit(pin_id: str, edit: Annotated[PinEdit, Body()]) -> dict[str, Any]:
        app.pins.edit(
            pin_id, edit.note, title=edit.title, audit=app.audit.make_writer(WHO, "edited", pin_id)
        )
        return pin_json(app.pins.get(pin_id))

    return router


def _key(app: App, caller: str) -> MemoryKey:
    key = memory_key(app.settings, app.settings.agent_id, parse_party(caller))
    if key is None:
        raise RefusedInput("caller", "nobody is remembered under this number")
    return key
