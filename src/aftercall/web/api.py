"""The JSON API: calls, briefing, facts, pins, follow-ups, corrections and health.

Secret facts show only that they exist; the command line reveals them.
"""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.briefing.render import briefing_json
from aftercall.db.corrections import NAMES, CorrectedThing
from aftercall.errors import RefusedInput
from aftercall.journal.journal import ingest_call
from aftercall.journal.recording_files import recordings_json
from aftercall.journal.store import CallRow
from aftercall.journal.view import call_json, row_json
from aftercall.memory.fact_corrections import MAX_FACT_CHARS
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.pins.board import MAX_NOTE_CHARS, MAX_TITLE_CHARS
from aftercall.memory.pins.page import pin_json
from aftercall.memory.search import find_facts, make_key_scope
from aftercall.memory.view import (
    correction_json,
    extraction_json,
    fact_json,
    parse_as_of,
    whole_fact_json,
)
from aftercall.memory.visibility import memory_key, redact_call
from aftercall.model.calls import parse_call_json
from aftercall.model.facts import MemoryKey, PinState
from aftercall.model.followups import FollowUpState
from aftercall.model.reading import Category, RequestKind
from aftercall.postcall.store import steps_json
from aftercall.web.page_store import (
    parse_caller,
    parse_cursor,
    parse_party,
    refuse_unknown_query,
    require_party,
    to_cursor,
)
from aftercall.who.register import remove_claims
from aftercall.work import deliver
from aftercall.work.health import report_json
from aftercall.work.view import change_json, delivery_json, followup_json

MAX_BODY_BYTES = 32 * 1024 * 1024
WHO = "the API"
PageLimit = Annotated[int, Query(ge=1, le=500)]


class NewPin(BaseModel):
    model_config = ConfigDict(extra="forbid")

    caller: str
    topic: str = Field(max_length=MAX_TITLE_CHARS)


class PinEdit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    note: str = Field(
        max_length=MAX_NOTE_CHARS, description="stored as it is; empty removes it"
    )
    title: str = Field(
        default="",
        max_length=MAX_TITLE_CHARS,
        description="a new name; empty keeps the old one",
    )


class MissedRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = Field(max_length=MAX_FACT_CHARS)
    kind: RequestKind = "task"
    due: str | None = Field(default=None, description="a day like 2026-02-17")
    person: str | None = Field(default=None, description="whom it is for")
    turns: list[int] = Field(
        default=[], max_length=100, description="in which it was asked for"
    )


class MissedFact(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=MAX_FACT_CHARS)
    turn: int = Field(description="in which the caller told it")
    category: Category = "person"


class NewCorrection(BaseModel):
    model_config = ConfigDict(extra="forbid")

    what: CorrectedThing
    of: str = Field(
        max_length=200, description="the id of a follow-up or a fact, or a caller"
    )
    new: str | None = Field(
        max_length=MAX_FACT_CHARS, description="null: there is no such thing"
    )


def make_router(app: App) -> APIRouter:
    router = APIRouter(prefix="/api", dependencies=[Depends(refuse_unknown_query)])
    router.include_router(_make_calls_router(app))
    router.include_router(_make_facts_router(app))
    router.include_router(_make_pins_router(app))
    router.include_router(_make_followups_router(app))
    router.include_router(_make_corrections_router(app))
    return router


def _make_calls_router(app: App) -> APIRouter:
    router = APIRouter(tags=["calls"])

    @router.post(
        "/calls",
        status_code=201,
        summary="Hand in a finished call; `verified` and passcode events are not believed",
        responses={200: {"description": "Known already"}},
    )
    async def post_call(request: Request, response: Response) -> dict[str, str]:
        body = await request.body()
        row, is_new = await run_in_threadpool(_seal_posted_call, app, body)
        response.status_code = 201 if is_new else 200
        return {"id": row.live.id}

    @router.get("/calls", summary="Calls, newest first; `next` continues the list")
    def get_calls(
        limit: PageLimit = 50, before: str | None = None, caller: str | None = None
    ) -> dict[str, Any]:
        number = parse_caller(caller)
        rows = app.store.list_page(
            limit=limit, before=parse_cursor(before), caller=number
        )
        following = to_cursor(rows[-1]) if len(rows) == limit else None
        return {"calls": [row_json(row) for row in rows], "next": following}

    @router.get(
        "/calls/{call_id}", summary="One call; secrets are masked unless `reveal`"
    )
    def get_call(call_id: str, reveal: bool = False) -> dict[str, Any]:
        call = call_json(app.store, app.archive, app.store.get(call_id))
        if not reveal:
            call = redact_call(call, app.facts.list_confided_words(call_id))
        call |= {
            "steps": steps_json(app.steps.of_call(call_id)),
            "recordings": recordings_json(app.recordings.list_for_call(call_id)),
            "extraction": extraction_json(app.facts, call_id),
        }
        if reveal:
            app.audit.record(WHO, "revealed", call_id)
        return call

    @router.get(
        "/briefing", summary="The briefing an agent would get if this caller rang now"
    )
    def get_briefing(caller: str, verified: bool = False) -> dict[str, Any]:
        preview = app.composer.preview(parse_party(caller), is_verified=verified)
        return briefing_json(preview, app.settings.zone)

    return router


def _seal_posted_call(app: App, raw: bytes) -> tuple[CallRow, bool]:
    call = parse_call_json(raw)
    if not app.settings.calls.believe_posted:
        call = remove_claims(call)
    return ingest_call(app.journal, call)


def _make_facts_router(app: App) -> APIRouter:
    router = APIRouter(tags=["facts"])

    @router.get(
        "/facts",
        summary="Facts that hold now, or held `as_of` a day; `next` continues the list",
    )
    def get_facts(
        caller: str | None = None,
        category: Category | None = None,
        q: Annotated[
            str | None, Query(description="any words; the best facts first")
        ] = None,
        as_of: str | None = None,
        retired: bool = False,
        limit: PageLimit = 100,
        after: str = "",
    ) -> dict[str, Any]:
        then = parse_as_of("as_of", as_of, app.settings.zone) if as_of else None
        key = None if caller is None else _require_key(app, caller)
        if q is not None:
            scope = make_key_scope(app.settings, app.settings.agent_id, key)
            scope = replace(
                scope, categories=(category,) if category else (), as_of=then
            )
            facts = find_facts(app.search, app.facts, q, scope, limit)
            return {"facts": [fact_json(fact) for fact in facts], "next": None}
        wanted = FactFilter(
            key=key,
            category=category,
            as_of=then,
            include_retired=retired,
            limit=limit,
            after=after,
            include_group=True,
        )
        facts = app.facts.page(wanted)
        following = facts[-1].id if len(facts) == limit else None
        return {"facts": [fact_json(fact) for fact in facts], "next": following}

    @router.get(
        "/facts/{fact_id}", summary="One fact, each time it was said, and its chain"
    )
    def get_fact(fact_id: str) -> dict[str, Any]:
        return whole_fact_json(app.facts, fact_id)

    return router


def _make_pins_router(app: App) -> APIRouter:
    router = APIRouter(tags=["pins"])

    def set_state(pin_id: str, state: PinState) -> dict[str, Any]:
        audit = app.audit.make_writer(WHO, "edited", pin_id)
        return pin_json(app.pins.get(app.pins.set_state(pin_id, state, audit).id))

    @router.get(
        "/pins", summary="Topics that a caller keeps coming back to, pinned ones first"
    )
    def get_pins(caller: Annotated[str, Query()]) -> dict[str, Any]:
        pages = app.pins.list_pages(_require_key(app, caller))
        return {"pins": [pin_json(page) for page in pages]}

    @router.post("/pins", summary="Pin a topic by hand")
    def post_pin(new: Annotated[NewPin, Body()]) -> dict[str, Any]:
        key = _require_key(app, new.caller)
        audit = app.audit.make_writer(WHO, "edited", "a pin")
        return pin_json(app.pins.get(app.pins.pin_topic(key, new.topic, audit).id))

    @router.get(
        "/pins/{pin_id}",
        summary="One topic: its summary, its state, what is open, its calls",
    )
    def get_pin(pin_id: str) -> dict[str, Any]:
        return pin_json(app.pins.get(pin_id))

    @router.post("/pins/{pin_id}/pin", summary="Pin it again, by hand")
    def post_pin_again(pin_id: str) -> dict[str, Any]:
        return set_state(pin_id, "pinned")

    @router.post(
        "/pins/{pin_id}/unpin", summary="Unpin it; new mentions do not pin it again"
    )
    def post_unpin(pin_id: str) -> dict[str, Any]:
        return set_state(pin_id, "unpinned")

    @router.post("/pins/{pin_id}/edit", summary="Write a note on it, or rename it")
    def post_edit(pin_id: str, edit: Annotated[PinEdit, Body()]) -> dict[str, Any]:
        audit = app.audit.make_writer(WHO, "edited", pin_id)
        app.pins.edit(pin_id, edit.note, title=edit.title, audit=audit)
        return pin_json(app.pins.get(pin_id))

    return router


def _make_followups_router(app: App) -> APIRouter:
    router = APIRouter(tags=["follow-ups"])

    @router.get(
        "/followups",
        summary=(
            "Requests and promises, newest first, of one `caller` or all; `next` continues the list"
        ),
    )
    def get_followups(
        limit: PageLimit = 50,
        state: FollowUpState | None = None,
        before: str | None = None,
        caller: str | None = None,
    ) -> dict[str, Any]:
        number = parse_caller(caller)
        rows = app.work.followups.page(
            limit=limit, state=state, before=before, caller=number
        )
        following = rows[-1].id if len(rows) == limit else None
        return {"followups": [followup_json(row) for row in rows], "next": following}

    @router.get(
        "/followups/{followup_id}",
        summary="One request or promise, with its history and deliveries",
    )
    def get_followup(followup_id: str) -> dict[str, Any]:
        row = app.work.followups.get(followup_id)
        history = app.work.followups.history(followup_id)
        deliveries = app.work.deliveries.of_followup(row.id)
        return followup_json(row) | {
            "history": [change_json(change) for change in history],
            "deliveries": [delivery_json(delivery) for delivery in deliveries],
        }

    @router.post("/followups/{followup_id}/approve", summary="Approve a held request")
    def post_approve(followup_id: str) -> dict[str, Any]:
        return followup_json(deliver.approve(app.work, followup_id, WHO))

    @router.post("/followups/{followup_id}/reject", summary="Reject or settle it")
    def post_reject(followup_id: str) -> dict[str, Any]:
        return followup_json(deliver.reject(app.work, followup_id, WHO))

    @router.post("/followups/{followup_id}/retry", summary="Try a failed request again")
    def post_retry(followup_id: str) -> dict[str, Any]:
        return followup_json(deliver.retry(app.work, followup_id, WHO))

    @router.get(
        "/health", summary="Whether every call of the last three days was processed"
    )
    def get_health() -> dict[str, Any]:
        return report_json(app.report_health())

    return router


def _make_corrections_router(app: App) -> APIRouter:
    router = APIRouter(tags=["corrections"])

    @router.get(
        "/corrections",
        summary="What people put right, newest first; `next` continues the list",
    )
    def get_corrections(
        limit: PageLimit = 50, before: str | None = None, caller: str | None = None
    ) -> dict[str, Any]:
        number = parse_caller(caller)
        made = app.corrections.store.page(limit=limit, before=before, caller=number)
        following = made[-1].id if len(made) == limit else None
        return {
            "corrections": [correction_json(one) for one in made],
            "next": following,
        }

    @router.post(
        "/corrections",
        status_code=201,
        summary="Put a request, a fact or a name right",
    )
    def post_correction(new: Annotated[NewCorrection, Body()]) -> dict[str, Any]:
        of = require_party(new.of) if new.what in NAMES else new.of
        return correction_json(app.corrections.correct(new.what, of, new.new, WHO))

    @router.post(
        "/calls/{call_id}/requests",
        status_code=201,
        summary="Add a request that the reader has missed; it is held",
    )
    def post_request(
        call_id: str, missed: Annotated[MissedRequest, Body()]
    ) -> dict[str, Any]:
        made = app.corrections.add_request(call_id, who=WHO, **missed.model_dump())
        return correction_json(made)

    @router.post(
        "/calls/{call_id}/facts",
        status_code=201,
        summary="Add a fact that the reader has missed",
    )
    def post_fact(
        call_id: str, missed: Annotated[MissedFact, Body()]
    ) -> dict[str, Any]:
        made = app.corrections.add_fact(call_id, who=WHO, **missed.model_dump())
        return correction_json(made)

    @router.post(
        "/corrections/{correction_id}/undo", summary="Make it as it was before"
    )
    def post_undo(correction_id: str) -> dict[str, Any]:
        return correction_json(app.corrections.undo(correction_id, WHO))

    return router


def _require_key(app: App, caller: str) -> MemoryKey:
    key = memory_key(app.settings, app.settings.agent_id, parse_party(caller))
    if key is None:
        raise RefusedInput("caller", "no memory is kept for this number")
    return key
