"""The JSON API: calls, recordings, facts, pins, follow-ups and corrections.

`api_models.py` says what each route takes and answers; `api_overview.py` has people and reports.
"""

from dataclasses import replace
from functools import partial
from mimetypes import guess_type
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.briefing.render import briefing_json
from aftercall.db.corrections import NAMES
from aftercall.errors import RefusedInput
from aftercall.journal.journal import ingest_call
from aftercall.journal.recording_files import RecordingFolder, recordings_json
from aftercall.journal.store import CallRow
from aftercall.journal.view import call_json, row_json
from aftercall.memory.fact_store import (
    FactFilter,
    correction_json,
    extraction_json,
    fact_json,
    parse_as_of,
    whole_fact_json,
)
from aftercall.memory.pins.store import pin_json
from aftercall.memory.search import find_facts, make_key_scope
from aftercall.memory.visibility import redact_call
from aftercall.model.calls import Call, parse_call_json
from aftercall.model.facts import MemoryKey, PinState, memory_key
from aftercall.model.followups import (
    FollowUpState,
    change_json,
    delivery_json,
    followup_json,
)
from aftercall.model.json_fields import Json
from aftercall.model.reading import Category
from aftercall.postcall.store import steps_json
from aftercall.web import api_models as models
from aftercall.web.api_models import describe_body
from aftercall.web.page_store import (
    PageStore,
    find_recording_file,
    parse_caller,
    parse_cursor,
    parse_party,
    parse_skip,
    refuse_unknown_query,
    require_party,
    to_cursor,
)
from aftercall.web.routes import ApiRoute, add_section
from aftercall.who.register import remove_claims
from aftercall.work import deliver

MAX_BODY_BYTES = 32 * 1024 * 1024
WHO = "the API"
PageLimit = Annotated[int, Query(ge=1, le=500)]


def add_routes(parent: APIRouter, app: App) -> None:
    router = add_section(parent, "/api", [Depends(refuse_unknown_query)])
    for add in (
        *(_add_calls, _add_recordings, _add_facts),
        *(_add_pins, _add_followups, _add_corrections),
    ):
        add(router, app)


def _add_calls(parent: APIRouter, app: App) -> None:
    router = add_section(parent, route_class=ApiRoute, tags=["calls"])

    @router.post(
        "/calls",
        response_model=models.IdAnswer,
        status_code=201,
        responses={200: {"description": "Known already", "model": models.IdAnswer}},
        openapi_extra=describe_body(Call),
    )
    async def add_call(request: Request, response: Response) -> dict[str, str]:
        """Hand in a finished call; `verified` and passcode events are not believed."""
        body = await request.body()
        with app.load.ingesting():
            seal = partial(run_in_threadpool, _seal_posted_call, app, body)
            row, is_new = await app.journal.outage.watch(seal)
        response.status_code = 201 if is_new else 200
        return {"id": row.live.id}

    @router.get("/calls", response_model=models.CallListAnswer)
    def list_calls(
        limit: PageLimit = 50, before: str | None = None, caller: str | None = None
    ) -> Json:
        """Calls, newest first; `next` continues the list."""
        number = parse_caller(caller)
        rows = app.store.list_page(
            limit=limit, before=parse_cursor(before), caller=number
        )
        following = to_cursor(rows[-1]) if len(rows) == limit else None
        return {"calls": [row_json(row) for row in rows], "next": following}

    @router.get("/calls/{call_id}", response_model=models.WholeCallAnswer)
    def get_call(call_id: str, reveal: bool = False) -> Json:
        """One call; secrets are masked unless `reveal`."""
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

    @router.get("/briefing", response_model=models.BriefingAnswer)
    def get_briefing(caller: str, verified: bool = False) -> Json:
        """The briefing an agent would get if this caller rang now."""
        preview = app.composer.preview(parse_party(caller), is_verified=verified)
        return briefing_json(preview, app.settings.zone)


def _seal_posted_call(app: App, raw: bytes) -> tuple[CallRow, bool]:
    app.load.check_queue()
    call = parse_call_json(raw)
    if not app.settings.calls.believe_posted:
        call = remove_claims(call)
    return ingest_call(app.journal, call)


def _add_facts(parent: APIRouter, app: App) -> None:
    router = add_section(parent, route_class=ApiRoute, tags=["facts"])

    @router.get("/facts", response_model=models.FactListAnswer)
    def list_facts(
        caller: str | None = None,
        category: Category | None = None,
        q: Annotated[
            str | None, Query(description="any words; the best facts first")
        ] = None,
        as_of: str | None = None,
        retired: bool = False,
        limit: PageLimit = 100,
        after: str = "",
    ) -> Json:
        """Facts that hold now, or held `as_of` a day; `next` continues the list."""
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

    @router.get("/facts/{fact_id}", response_model=models.WholeFactAnswer)
    def get_fact(fact_id: str) -> Json:
        """One fact, each time it was said, and its chain."""
        return whole_fact_json(app.facts, fact_id)

    @router.post(
        "/facts/{fact_id}/retire",
        response_model=models.CorrectionAnswer,
        status_code=201,
    )
    def retire_fact(
        fact_id: str, retired: Annotated[models.RetiredFact, Body()]
    ) -> Json:
        """It is no longer true; undo it as a correction."""
        made = app.corrections.retire(fact_id, WHO, retired.since)
        return correction_json(made)


def _add_pins(parent: APIRouter, app: App) -> None:
    router = add_section(parent, route_class=ApiRoute, tags=["pins"])

    def set_state(pin_id: str, state: PinState) -> Json:
        audit = app.audit.make_writer(WHO, "edited", pin_id)
        return pin_json(app.pins.get(app.pins.set_state(pin_id, state, audit).id))

    @router.get("/pins", response_model=models.PinListAnswer)
    def list_pins(caller: Annotated[str, Query()]) -> Json:
        """Topics that a caller keeps coming back to, pinned ones first."""
        pages = app.pins.list_pages(_require_key(app, caller))
        return {"pins": [pin_json(page) for page in pages]}

    @router.post("/pins", response_model=models.PinAnswer)
    def add_pin(new: Annotated[models.NewPin, Body()]) -> Json:
        """Pin a topic by hand."""
        key = _require_key(app, new.caller)
        audit = app.audit.make_writer(WHO, "edited", "a pin")
        return pin_json(app.pins.get(app.pins.pin_topic(key, new.topic, audit).id))

    @router.get("/pins/{pin_id}", response_model=models.PinAnswer)
    def get_pin(pin_id: str) -> Json:
        """One topic: its summary, its state, what is open, its calls."""
        return pin_json(app.pins.get(pin_id))

    @router.post("/pins/{pin_id}/pin", response_model=models.PinAnswer)
    def pin_again(pin_id: str) -> Json:
        """Pin it again, by hand."""
        return set_state(pin_id, "pinned")

    @router.post("/pins/{pin_id}/unpin", response_model=models.PinAnswer)
    def unpin(pin_id: str) -> Json:
        """Unpin it; new mentions do not pin it again."""
        return set_state(pin_id, "unpinned")

    @router.post("/pins/{pin_id}/edit", response_model=models.PinAnswer)
    def edit_pin(pin_id: str, edit: Annotated[models.PinEdit, Body()]) -> Json:
        """Write a note on it, or rename it."""
        audit = app.audit.make_writer(WHO, "edited", pin_id)
        app.pins.edit(pin_id, edit.note, title=edit.title, audit=audit)
        return pin_json(app.pins.get(pin_id))


def _add_followups(parent: APIRouter, app: App) -> None:
    router = add_section(parent, route_class=ApiRoute, tags=["follow-ups"])
    pages = PageStore(app.database)

    @router.get("/followups", response_model=models.FollowUpListAnswer)
    def list_followups(
        limit: PageLimit = 50,
        state: FollowUpState | Literal["to do"] | None = None,
        before: str | None = None,
        caller: str | None = None,
    ) -> Json:
        """Requests and promises, newest first, what is `to do` by day; `next` continues."""
        number = parse_caller(caller)
        if state == "to do":
            now = app.clock.now().astimezone(app.settings.zone)
            skip = parse_skip(before)
            rows = pages.list_to_do(now, limit=limit, caller=number, skip=skip)
            last = f"{skip + limit}"
        else:
            rows = app.work.followups.page(
                limit=limit, state=state, before=before, caller=number
            )
            last = rows[-1].id if rows else ""
        following = last if len(rows) == limit else None
        return {"followups": [followup_json(row) for row in rows], "next": following}

    @router.get("/followups/{followup_id}", response_model=models.WholeFollowUpAnswer)
    def get_followup(followup_id: str) -> Json:
        """One request or promise, with its history and deliveries."""
        row = app.work.followups.get(followup_id)
        history = app.work.followups.history(followup_id)
        deliveries = app.work.deliveries.of_followup(row.id)
        return followup_json(row) | {
            "history": [change_json(change) for change in history],
            "deliveries": [delivery_json(delivery) for delivery in deliveries],
        }

    @router.post(
        "/followups/{followup_id}/approve", response_model=models.FollowUpAnswer
    )
    def approve_followup(followup_id: str) -> Json:
        """Approve a held request."""
        return followup_json(deliver.approve(app.work, followup_id, WHO))

    @router.post(
        "/followups/{followup_id}/reject", response_model=models.FollowUpAnswer
    )
    def reject_followup(followup_id: str) -> Json:
        """Reject or settle it."""
        return followup_json(deliver.reject(app.work, followup_id, WHO))

    @router.post("/followups/{followup_id}/done", response_model=models.FollowUpAnswer)
    def finish_followup(followup_id: str) -> Json:
        """Say that a person has done it."""
        return followup_json(app.corrections.mark_done(followup_id, WHO))

    @router.post("/followups/{followup_id}/retry", response_model=models.FollowUpAnswer)
    def retry_followup(followup_id: str) -> Json:
        """Try a failed request again."""
        return followup_json(deliver.retry(app.work, followup_id, WHO))


def _add_corrections(parent: APIRouter, app: App) -> None:
    router = add_section(parent, route_class=ApiRoute, tags=["corrections"])

    @router.get("/corrections", response_model=models.CorrectionListAnswer)
    def list_corrections(
        limit: PageLimit = 50, before: str | None = None, caller: str | None = None
    ) -> Json:
        """What people put right, newest first; `next` continues the list."""
        number = parse_caller(caller)
        made = app.corrections.store.page(limit=limit, before=before, caller=number)
        following = made[-1].id if len(made) == limit else None
        return {
            "corrections": [correction_json(one) for one in made],
            "next": following,
        }

    @router.post(
        "/corrections", response_model=models.CorrectionAnswer, status_code=201
    )
    def add_correction(new: Annotated[models.NewCorrection, Body()]) -> Json:
        """Put a request, a fact or a name right, or say that a request is `done`."""
        of = require_party(new.of) if new.what in NAMES else new.of
        return correction_json(app.corrections.correct(new.what, of, new.new, WHO))

    @router.post(
        "/calls/{call_id}/requests",
        response_model=models.CorrectionAnswer,
        status_code=201,
    )
    def add_missed_request(
        call_id: str, missed: Annotated[models.MissedRequest, Body()]
    ) -> Json:
        """Add a request that the reader has missed; it is held."""
        made = app.corrections.add_request(call_id, who=WHO, **missed.model_dump())
        return correction_json(made)

    @router.post(
        "/calls/{call_id}/facts",
        response_model=models.CorrectionAnswer,
        status_code=201,
    )
    def add_missed_fact(
        call_id: str, missed: Annotated[models.MissedFact, Body()]
    ) -> Json:
        """Add a fact that the reader has missed."""
        made = app.corrections.add_fact(call_id, who=WHO, **missed.model_dump())
        return correction_json(made)

    @router.post(
        "/corrections/{correction_id}/undo", response_model=models.CorrectionAnswer
    )
    def undo_correction(correction_id: str) -> Json:
        """Make it as it was before."""
        return correction_json(app.corrections.undo(correction_id, WHO))


def _add_recordings(parent: APIRouter, app: App) -> None:
    router = add_section(
        parent,
        "/calls/{call_id}/recordings",
        route_class=ApiRoute,
        tags=["recordings"],
    )

    @router.get("", response_model=models.RecordingListAnswer)
    def list_recordings(call_id: str) -> Json:
        """The recordings of a call, and how far each is."""
        found = app.recordings.list_for_call(app.store.get(call_id).live.id)
        return {"recordings": recordings_json(found)}

    @router.get(
        "/{recording_id}",
        response_class=StreamingResponse,
        responses={200: {"content": {"audio/wav": {}, "audio/mpeg": {}}}},
    )
    def get_recording(call_id: str, recording_id: str) -> StreamingResponse:
        """The audio of a recording, decrypted; this is logged."""
        file = find_recording_file(app, call_id, recording_id)
        app.audit.record(WHO, "revealed", recording_id)
        kind = guess_type(file.name)[0] or "application/octet-stream"
        blocks = RecordingFolder.from_settings(app.settings).read_blocks(file)
        return StreamingResponse(blocks, media_type=kind)


def _require_key(app: App, caller: str) -> MemoryKey:
    key = memory_key(app.settings, app.settings.agent_id, parse_party(caller))
    if key is None:
        raise RefusedInput("caller", "no memory is kept for this number")
    return key
