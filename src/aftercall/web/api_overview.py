"""The JSON API across calls: people, search, statistics, test runs and health."""

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends, Query
from fastapi.responses import Response
from pydantic import Field

from aftercall.app import App
from aftercall.clock import format_instant
from aftercall.errors import RefusedInput
from aftercall.memory.fact_store import hit_json, parse_as_of
from aftercall.memory.search import make_search_scope
from aftercall.model.followups import delivery_json
from aftercall.model.json_fields import Json
from aftercall.model.people import split_party
from aftercall.model.reading import Visibility
from aftercall.privacy.scan import TraceScan
from aftercall.settings.providers import EventType
from aftercall.test_runs import REPORT_FILE
from aftercall.web.api_models import (
    ApiAnswer,
    ApiBody,
    DeliveryAnswer,
    Time,
)
from aftercall.web.page_store import (
    PageStore,
    PersonRow,
    parse_caller,
    refuse_unknown_query,
    require_number,
    require_party,
)
from aftercall.web.pages.tests import list_run_ids, read_run
from aftercall.web.routes import ApiRoute, add_section
from aftercall.work import deliver
from aftercall.work.health import CallHealth, HealthStatus, report_json
from aftercall.workspace import files
from aftercall.workspace.identity_md import find_call_name, map_speaker_names
from aftercall.workspace.paths import Workspace

PassageKind = Literal["turn", "summary", "fact"]
PageLimit = Annotated[int, Query(ge=1, le=500)]


class ErasureOrder(ApiBody):
    confirm: str = Field(description="the caller's number once more")


class PassageAnswer(ApiAnswer):
    """A piece of a call that a search found."""

    kind: str = Field(description="`turn`, `summary` or `fact`")
    call: str | None
    turn: int | None
    fact: str | None
    agent: str
    caller: str | None
    speaker: str | None
    category: str | None
    visibility: Visibility
    at: Time
    until: Time | None
    mentions: int
    text: str


class SearchHitAnswer(PassageAnswer):
    score: float
    before: list[PassageAnswer]
    after: list[PassageAnswer]


class SearchAnswer(ApiAnswer):
    hits: list[SearchHitAnswer]


class CallHealthAnswer(ApiAnswer):
    id: str
    state: CallHealth
    reason: str
    started_at: Time


class LastReconcileAnswer(ApiAnswer):
    finished_at: Time | None
    listed: int
    missing: int
    brought: int
    lost: int = Field(description="calls whose words can no longer be had")
    errors: list[str]


class HealthAnswer(ApiAnswer):
    """Whether every call was worked on."""

    status: HealthStatus
    reasons: list[str]
    counts: dict[str, int] = Field(description="calls by state")
    oldest_pending: Time | None
    broken_promises: int
    held: int
    failed_steps: int
    unsent: int
    queue_depth: int
    last_sweep: Time | None
    last_reconcile: LastReconcileAnswer | None
    calls: list[CallHealthAnswer]


class PersonAnswer(ApiAnswer):
    caller: str
    name: str | None
    calls: int
    last_at: Time


class PersonListAnswer(ApiAnswer):
    people: list[PersonAnswer]
    next: int | None = Field(description="`after` of the next page; null at the end")


class WholePersonAnswer(ApiAnswer):
    caller: str
    name: str | None
    others: list[str] = Field(description="other people who speak from this number")
    profile: str = Field(description="their USER.md, word for word")


class ErasureAnswer(ApiAnswer):
    """A receipt: no number, no name, nothing that was said."""

    id: str
    erased_at: Time
    calls: int
    archive_files: int
    recordings: int
    retired: int
    pages: int
    workflows: int
    rows: dict[str, int]
    scan: TraceScan
    out_of_reach: list[str]
    is_clean: bool


class RunAnswer(ApiAnswer):
    """A run of the tester."""

    id: str
    target: str
    started_at: Time
    runs: int
    passed: int
    failed: int
    seconds: float


class RunListAnswer(ApiAnswer):
    tests: list[RunAnswer]


class WholeRunAnswer(RunAnswer):
    results: list[Json] = Field(
        description="by scenario: verdict, findings, calls with their measures"
    )


class StatisticsAnswer(ApiAnswer):
    """Calls and follow-ups of a span, counted."""

    since: Time
    calls: int
    callers: int
    minutes: float
    by_day: dict[str, int] = Field(description="calls by local day")
    by_source: dict[str, int]
    by_end_reason: dict[str, int]
    followups: dict[str, int] = Field(description="by state")
    to_do: int = Field(description="what is to do now, of any time")


class LoggedEventAnswer(ApiAnswer):
    """What happened, with its subject as it is now."""

    id: str = Field(description="`evt_…`; ids sort by the order of the log")
    type: EventType
    timestamp: Time
    data: Json = Field(
        description="a call, a follow-up or a fact; `is_deleted` if it is gone"
    )


class EventListAnswer(ApiAnswer):
    events: list[LoggedEventAnswer]
    next: str = Field(description="`after` of the next request, also at the end")


class DeliveryListAnswer(ApiAnswer):
    deliveries: list[DeliveryAnswer]


def add_routes(parent: APIRouter, app: App) -> None:
    router = add_section(parent, "/api", [Depends(refuse_unknown_query)])
    _add_people(router, app)
    _add_reports(router, app)
    _add_events(router, app)


def _add_people(parent: APIRouter, app: App) -> None:
    """Callers, their export and their erasure."""
    router = add_section(parent, "/people", route_class=ApiRoute, tags=["people"])
    pages = PageStore(app.database)

    @router.get("", response_model=PersonListAnswer)
    def list_people(
        limit: PageLimit = 50, after: Annotated[int, Query(ge=0, le=1_000_000)] = 0
    ) -> Json:
        """Callers by their last call, newest first; `next` continues the list."""
        found = pages.list_people(limit=limit, offset=after)
        following = after + limit if len(found) == limit else None
        people = [_person_json(app, person) for person in found]
        return {"people": people, "next": following}

    @router.get("/{caller}", response_model=WholePersonAnswer)
    def find_person(caller: str) -> Json:
        """One caller: their name, their profile, who else speaks from the number."""
        party = require_party(caller)
        workspace = Workspace.from_settings(app.settings)
        person = workspace.find_person(party)
        return {
            "caller": party,
            "name": find_call_name(app.settings, party),
            "others": list(workspace.list_other_persons(split_party(party)[0])),
            "profile": (files.read(person.user) if person else None) or "",
        }

    @router.post(
        "/{caller}/export",
        response_class=Response,
        responses={200: {"content": {"application/zip": {}}}},
    )
    def export_person(caller: str, reveal: bool = False) -> Response:
        """Everything about a caller as a zip file; secrets are masked unless `reveal`."""
        packed = app.exporter.pack(require_number(caller), reveal=reveal)
        return Response(packed, media_type="application/zip")

    @router.post("/{caller}/erase", response_model=ErasureAnswer)
    def erase_person(caller: str, order: Annotated[ErasureOrder, Body()]) -> Json:
        """Erase everything about a caller; the answer is the receipt."""
        number = require_number(caller)
        if parse_caller(order.confirm) != number:
            raise RefusedInput("confirm", "is not this number; nothing was erased")
        return app.eraser.erase(number).to_json()


def _person_json(app: App, person: PersonRow) -> Json:
    """A caller as the API shows them."""
    return {
        "caller": person.caller,
        "name": find_call_name(app.settings, person.caller),
        "calls": person.calls,
        "last_at": format_instant(person.last_at),
    }


def _add_reports(parent: APIRouter, app: App) -> None:
    """Statistics, health and runs of the tester."""
    router = add_section(parent, route_class=ApiRoute, tags=["reports"])
    folder = app.settings.home / "tests"

    @router.get("/search", response_model=SearchAnswer)
    def search(
        q: Annotated[str, Query(min_length=1, max_length=2_000)],
        caller: str | None = None,
        kind: Annotated[list[PassageKind], Query()] = [],  # noqa: B006 - FastAPI copies it
        as_of: str | None = None,
        limit: Annotated[int, Query(ge=1, le=40)] = 10,
    ) -> Json:
        """Turns, summaries and facts by words, best first; of one `caller` or all."""
        party = None if caller is None else require_party(caller)
        then = parse_as_of("as_of", as_of, app.settings.zone) if as_of else None
        scope = make_search_scope(app.settings, party)
        scope = replace(scope, kinds=tuple(kind), as_of=then)
        names = map_speaker_names(app.settings, party)
        hits = app.search.find(q, scope, limit=limit, speaker_names=names)
        return {"hits": [hit_json(hit) for hit in hits]}

    @router.get("/statistics", response_model=StatisticsAnswer)
    def get_statistics(
        days: Annotated[int, Query(ge=1, le=366)] = 30,
    ) -> Json:
        """Calls, callers, minutes and follow-ups of the last days."""
        since = app.clock.now() - timedelta(days=days)
        return PageStore(app.database).count_since(since, app.settings.zone)

    @router.get("/tests", response_model=RunListAnswer)
    def list_tests(limit: PageLimit = 50) -> Json:
        """Test runs, newest first."""
        newest = list_run_ids(folder, REPORT_FILE)[:limit]
        runs = [read_run(folder, run_id) for run_id in newest]
        shown = RunAnswer.model_fields
        return {"tests": [{name: run[name] for name in shown} for run in runs]}

    @router.get("/tests/{run_id}", response_model=WholeRunAnswer)
    def get_test(run_id: str) -> Json:
        """The report of a test run: verdicts, findings, latencies."""
        return read_run(folder, run_id)

    @router.get("/health", response_model=HealthAnswer)
    def get_health() -> Json:
        """Whether every call of the last three days was processed."""
        return report_json(app.report_health())


def _add_events(parent: APIRouter, app: App) -> None:
    """What other programs are told, and what a sink did not take."""
    router = add_section(parent, route_class=ApiRoute, tags=["events"])

    @router.get("/events", response_model=EventListAnswer)
    def list_events(
        limit: PageLimit = 100,
        after: Annotated[str, Query(description="the last id you have seen")] = "",
    ) -> Json:
        """What happened, oldest first. Ask again with `next`: nothing is skipped."""
        found = app.webhooks.log.page(after=after, limit=limit)
        following = found[-1].id if found else after
        told = [app.webhooks.view.to_json(event) for event in found]
        return {"events": told, "next": following}

    @router.get("/deliveries", response_model=DeliveryListAnswer)
    def list_undelivered() -> Json:
        """Events, notices and requests that were given up, oldest first."""
        dead = app.work.deliveries.dead()
        return {"deliveries": [delivery_json(delivery) for delivery in dead]}

    @router.post("/deliveries/{key}/resend", response_model=DeliveryAnswer)
    def resend_delivery(key: str) -> Json:
        """Send it again, under the same key."""
        sent = deliver.resend(app.work, key)
        app.audit.record("the API", "resent", key)
        return delivery_json(sent)
