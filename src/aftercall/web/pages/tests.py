"""Tests: the tester's runs in the home, their verdicts and latencies, and two runs side by side.

The pages read the report files and do not import the tester.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, HTMLResponse

from aftercall.errors import NotFound
from aftercall.web.pages.context import PageContext

PAGE_SIZE = 50
_ID = re.compile(r"[0-9A-Z]{26}")
# The report is one file with inline style, script and sound; the sandbox lets it load nothing
# else and keeps it from our pages.
_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; img-src data:; media-src data:"
)


@dataclass(frozen=True)
class TestOutcomeRow:
    """One scenario of one run."""

    scenario: str
    verdict: str
    latency_s: float | None
    findings: int


def make_router(context: PageContext) -> APIRouter:
    router = context.make_router("/tests")
    folder = context.app.settings.home / "tests"

    @router.get("", response_class=HTMLResponse)
    def get_tests(request: Request) -> HTMLResponse:
        runs = [read_run(folder, name) for name in list_run_ids(folder)[:PAGE_SIZE]]
        return context.view.render_page(request, "tests.html", runs=runs)

    @router.get("/compare", response_class=HTMLResponse)
    def get_comparison(
        request: Request, a: Annotated[str, Query()], b: Annotated[str, Query()]
    ) -> HTMLResponse:
        runs = [read_run(folder, a), read_run(folder, b)]
        sides = [
            {outcome.scenario: outcome for outcome in _outcomes(run)} for run in runs
        ]
        names = sorted({*sides[0], *sides[1]})
        rows = [(name, sides[0].get(name), sides[1].get(name)) for name in names]
        return context.view.render_page(
            request, "comparison.html", runs=runs, rows=rows
        )

    @router.get("/{run_id}", response_class=HTMLResponse)
    def get_run(request: Request, run_id: str) -> HTMLResponse:
        run = read_run(folder, run_id)
        outcomes = list(_outcomes(run))
        longest = (
            max((outcome.latency_s or 0.0 for outcome in outcomes), default=0.0) or 1.0
        )
        others = [name for name in list_run_ids(folder)[:PAGE_SIZE] if name != run_id]
        return context.view.render_page(
            request,
            "run.html",
            run=run,
            outcomes=outcomes,
            longest=longest,
            others=others,
        )

    @router.get("/{run_id}/report")
    def get_report(run_id: str) -> FileResponse:
        read_run(folder, run_id)
        headers = {"Content-Security-Policy": _REPORT_POLICY}
        return FileResponse(folder / run_id / "report.html", headers=headers)

    return router


def list_run_ids(folder: Path) -> list[str]:
    names = [path.parent.name for path in folder.glob("*/report.json")]
    return sorted(filter(_ID.fullmatch, names), reverse=True)


def read_run(folder: Path, run_id: str) -> dict[str, Any]:
    file = folder / run_id / "report.json"
    if not _ID.fullmatch(run_id) or not file.is_file():
        raise NotFound("there is no such test run; `aftercall test run` makes one")
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return data


def _outcomes(run: dict[str, Any]) -> Iterator[TestOutcomeRow]:
    for result in run["results"]:
        measures = [call.get("measures") or {} for call in result["calls"]]
        latencies = [measure.get("latency_p50_s") for measure in measures]
        slowest = max((s for s in latencies if s is not None), default=None)
        findings = len(result["findings"])
        yield TestOutcomeRow(result["scenario"], result["verdict"], slowest, findings)
