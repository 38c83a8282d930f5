"""The JSON API over calls."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.briefing.render import briefing_json
from aftercall.journal.record import ingest_json
from aftercall.journal.recording_files import recordings_json
from aftercall.journal.view import call_json, row_json
from aftercall.memory.view import extraction_json
from aftercall.memory.visibility import redact_call
from aftercall.postcall.view import steps_json
from aftercall.web.queries import (
    parse_caller,
    parse_cursor,
    parse_party,
    read_body,
    refuse_unknown_query,
    to_cursor,
)

MAX_BODY_BYTES = 32 * 1024 * 1024


def make_router(app: App) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["calls"], dependencies=[Depends(refuse_unknown_query)])

    @router.post(
        "/calls",
        status_code=201,
        summary="Hand in a finished call",
        responses={200: {"description": "Known already"}},
    )
    async def post_call(request: Request, response: Response) -> dict[str, str]:
        row, is_new = await run_in_threadpool(
            ingest_json, app.journal, await read_body(request, MAX_BODY_BYTES)
        )
        response.status_code = 201 if is_new else 200
        return {"id": row.live.id}

    @router.get("/calls", summary="Calls, newest first; `next` continues the list")
    def get_calls(
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        before: str | None = None,
        caller: str | None = None,
    ) -> dict[str, Any]:
        rows = app.store.list_page(
            limit=limit, before=parse_cursor(before), caller=parse_caller(caller)
        )
        return {
            "calls": [row_json(row) for row in rows],
            "next": to_cursor(rows[-1]) if len(rows) == limit else None,
        }

    @router.get(
        "/calls/{call_id}", summary="One call; what was confided is blotted out unless `reveal`"
    )
    def get_call(call_id: str, reveal: bool = False) -> dict[str, Any]:
        steps, recordings = (
            steps_json(app.steps.of_call(call_id)),
            recordings_json(app.recordings.list_for_call(call_id)),
        )
        call = call_json(app.store, app.archive, app.store.get(call_id))
        beside = {
            "steps": steps,
            "recordings": recordings,
            "extraction": extraction_json(app.facts, call_id),
        }
        shown = (
            call if reveal else redact_call(call, app.facts.list_confided_words(call_id))
        ) | beside
        if reveal:
            app.audit.record("the API", "revealed", call_id)
        return shown

    @router.get("/briefing", summary="What an agent would be told if this caller rang now")
    def get_briefing(caller: str, verified: bool = False) -> dict[str, Any]:
        return briefing_json(
            app.composer.preview(parse_party(caller), is_verified=verified), app.settings.zone
        )

    return router
