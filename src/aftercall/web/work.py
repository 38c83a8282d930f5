"""The JSON API over follow-ups and health."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query

from aftercall.app import App
from aftercall.web.queries import parse_caller, refuse_unknown_query
from aftercall.work import deliver
from aftercall.work.health import report_json
from aftercall.work.view import change_json, delivery_json, followup_json

WHO = "the API"
State = Literal[
    "open",
    "held",
    "doing",
    "done",
    "failed",
    "refused",
    "withdrawn",
    "expired",
    "unknown",
    "broken",
]


def make_router(app: App) -> APIRouter:
    router = APIRouter(
        prefix="/api", tags=["follow-ups"], dependencies=[Depends(refuse_unknown_query)]
    )

    @router.get(
        "/followups",
        summary=(
            "Requests and promises, newest first, of one `caller` or all; `next` continues the list"
        ),
    )
    def get_followups(
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        state: State | None = None,
        before: str | None = None,
        caller: str | None = None,
    ) -> dict[str, Any]:
        rows = app.work.followups.page(
            limit=limit, state=state, before=before, caller=parse_caller(caller)
        )
        return {
            "followups": [followup_json(row) for row in rows],
            "next": rows[-1].id if len(rows) == limit else None,
        }

    @router.get(
        "/followups/{followup_id}",
        summary="One request or promise, with its history and deliveries",
    )
    def get_followup(followup_id: str) -> dict[str, Any]:
        row = app.work.followups.get(followup_id)
        history = [change_json(change) for change in app.work.followups.history(followup_id)]
        return followup_json(row) | {
            "history": history,
            "deliveries": [delivery_json(d) for d in app.work.deliveries.of_followup(row.id)],
        }

    @router.post("/followups/{followup_id}/approve", summary="Let a held request be done")
    def post_approve(followup_id: str) -> dict[str, Any]:
        return followup_json(deliver.approve(app.work, followup_id, WHO))

    @router.post("/followups/{followup_id}/reject", summary="Decide that it is not to be done")
    def post_reject(followup_id: str) -> dict[str, Any]:
        return followup_json(deliver.reject(app.work, followup_id, WHO))

    @router.post("/followups/{followup_id}/retry", summary="Try a failed request again")
    def post_retry(followup_id: str) -> dict[str, Any]:
        return followup_json(deliver.retry(app.work, followup_id, WHO))

    @router.get("/health", summary="Whether every call of the last three days came to its end")
    def get_health() -> dict[str, Any]:
        return report_json(app.report_health())

    return router
