"""Tests: runs are started, scheduled and followed; their trend, verdicts, findings and calls, and
two runs side by side.

The pages read the report files and do not import the tester.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from aftercall import test_runs
from aftercall.errors import NotFound
from aftercall.model.json_fields import Json
from aftercall.settings import Settings
from aftercall.test_runs import PROGRESS_FILE, REPORT_FILE, REQUEST_FILE
from aftercall.web.auth import Who
from aftercall.web.pages.context import PageContext

PAGE_SIZE = 50
TREND_RUNS = 30
POLL_INTERVAL_S = 2
MAX_KNOWN_ROWS = 1_000
UNFINISHED = ("running", "waiting")
_ID = re.compile(r"[0-9A-Z]{26}")
# The report is one file with inline style, script and sound; the sandbox lets it load nothing
# else and keeps it from our pages.
_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; img-src data:; media-src data:"
)


@dataclass(frozen=True)
class TestRunRow:
    """One run in the list. Its state is passed, failed, running, waiting, broken (its report
    could not be made) or unfinished (cut short on the command line).
    """

    id: str
    target: str
    state: str
    started_at: str = ""
    runs: int = 0
    passed: int = 0
    failed: int = 0
    latency_ms: int | None = None
    note: str = ""


@dataclass(frozen=True)
class TestOutcomeRow:
    """One scenario of one run."""

    scenario: str
    verdict: str
    latency_s: float | None
    findings: list["TestFindingRow"]
    call_ids: list[str]


@dataclass(frozen=True)
class TestFindingRow:
    kind: str
    severity: str
    text: str
    expected: str
    at_s: float
    call_id: str
    turns: tuple[int, ...]

    @property
    def clock(self) -> str:
        return f"{int(self.at_s) // 60}:{int(self.at_s) % 60:02}"


def add_routes(context: PageContext) -> None:
    router = context.add_section("/tests")
    folder = context.app.settings.home / test_runs.FOLDER

    @router.get("", response_class=HTMLResponse)
    async def get_tests(request: Request, agent: str = "") -> HTMLResponse:
        """Runs of all agents; the trend of one, else of the last one that was tested twice."""
        settings = context.app.settings
        values = await run_in_threadpool(_read_list, folder, agent)
        return context.view.render_page(
            request,
            "tests.html",
            **values,
            schedules=await test_runs.list_schedules(),
            agents=test_runs.list_agents(settings),
            scenarios=await run_in_threadpool(_list_scenarios, settings),
            weekdays=test_runs.WEEKDAYS,
            zone=settings.zone.key,
        )

    @router.get("/list", response_class=HTMLResponse)
    def get_list(request: Request, agent: str = "") -> HTMLResponse:
        """The runs again, for a page on which one is going on."""
        values = _read_list(folder, agent)
        return context.view.render_page(request, "parts/test_runs.html", **values)

    _add_starting_routes(router, context)
    _add_reading_routes(router, context, folder)
    _add_call_routes(router, context, folder)


def _add_starting_routes(router: APIRouter, context: PageContext) -> None:
    """What an operator may do: start a run, schedule it, end a schedule."""
    app = context.app
    operate = context.require("operator")

    @router.post("", dependencies=operate)
    async def post_run(
        who: Who,
        agent: Annotated[str, Form(max_length=500)],
        scenarios: Annotated[str, Form(max_length=2_000)] = "",
        runs: Annotated[int, Form()] = 1,
        when: Annotated[str, Form(max_length=20)] = "now",
        at: Annotated[str, Form(max_length=5)] = "",
    ) -> RedirectResponse:
        """Starts a run now, or puts it on a schedule."""
        asked = test_runs.make_request(app.settings, agent, scenarios, runs)
        if when == "now":
            run_id = await test_runs.start_run(asked)
            await run_in_threadpool(app.audit.record, who, "tested", run_id)
            return context.answer_done("/tests", "started")
        name = await test_runs.add_schedule(asked, when, at)
        await run_in_threadpool(app.audit.record, who, "scheduled", name)
        return context.answer_done("/tests", "scheduled")

    @router.post("/schedules/{name}/remove", dependencies=operate)
    async def post_remove(who: Who, name: str) -> RedirectResponse:
        await test_runs.remove_schedule(name)
        await run_in_threadpool(app.audit.record, who, "removed", name)
        return context.answer_done("/tests", "removed")


def _add_reading_routes(router: APIRouter, context: PageContext, folder: Path) -> None:
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
        return context.view.render_page(
            request,
            "run.html",
            run=run,
            outcomes=outcomes,
            longest=max((one.latency_s or 0.0 for one in outcomes), default=0.0) or 1.0,
            others=[
                row
                for row in _list_rows(folder)
                if row.state in ("passed", "failed") and row.id != run_id
            ],
        )

    @router.get("/{run_id}/report")
    def get_report(run_id: str) -> FileResponse:
        read_run(folder, run_id)
        headers = {"Content-Security-Policy": _REPORT_POLICY}
        return FileResponse(folder / run_id / "report.html", headers=headers)


def _add_call_routes(router: APIRouter, context: PageContext, folder: Path) -> None:
    """One call of a run, and its sound."""
    operate = context.require("operator")

    @router.get("/{run_id}/calls/{call_id}", response_class=HTMLResponse)
    def get_test_call(request: Request, run_id: str, call_id: str) -> HTMLResponse:
        run = read_run(folder, run_id)
        result, call = _find_call(run, call_id)
        findings = [one for one in _findings(result) if one.call_id == call_id]
        marked = {turn for one in findings for turn in one.turns}
        return context.view.render_page(
            request,
            "test_call.html",
            run=run,
            result=result,
            call=call,
            findings=findings,
            marked=marked,
            has_sound=(folder / run_id / "calls" / f"{call_id}.wav").is_file(),
        )

    @router.get("/{run_id}/calls/{call_id}/sound", dependencies=operate)
    def get_sound(run_id: str, call_id: str) -> FileResponse:
        """Both sides, with what a report leaves out: for operators."""
        _find_call(read_run(folder, run_id), call_id)
        sound = folder / run_id / "calls" / f"{call_id}.wav"
        if not sound.is_file():
            raise NotFound("this test call has no sound")
        return FileResponse(sound, media_type="audio/wav")


def _read_list(folder: Path, agent: str) -> Json:
    """The runs, newest first, and the trend of one agent, oldest first."""
    rows = _list_rows(folder)
    finished = [row for row in rows if row.latency_ms is not None or row.runs]
    times = Counter(row.target for row in finished)  # newest first
    targets = list(times)
    if agent not in times:
        again = (name for name, count in times.items() if count > 1)
        agent = next(again, next(iter(times), ""))
    trend = [row for row in finished if row.target == agent][TREND_RUNS - 1 :: -1]
    is_going_on = any(row.state in UNFINISHED for row in rows)
    return {
        "rows": rows[:PAGE_SIZE],
        "targets": targets,
        "agent": agent,
        "trend": trend,
        "poll_s": POLL_INTERVAL_S if is_going_on else 0,
    }


def _list_rows(folder: Path) -> list[TestRunRow]:
    names = list_run_ids(folder, REPORT_FILE, PROGRESS_FILE, REQUEST_FILE)
    return [_read_row(folder / name) for name in names[: 2 * PAGE_SIZE]]


def list_run_ids(folder: Path, *files: str) -> list[str]:
    """The runs that have one of these files, newest first."""
    found = {path.parent.name for file in files for path in folder.glob(f"*/{file}")}
    return sorted(filter(_ID.fullmatch, found), reverse=True)


def _read_row(folder: Path) -> TestRunRow:
    report = folder / REPORT_FILE
    if report.is_file():
        return _read_finished(report, report.stat().st_mtime_ns)
    request: Json = {}
    if (folder / REQUEST_FILE).is_file():
        request = json.loads((folder / REQUEST_FILE).read_bytes())
    target = request.get("agent", "")
    if problem := request.get("problem"):
        return TestRunRow(folder.name, target, "broken", note=problem)
    try:
        lines = (folder / PROGRESS_FILE).read_bytes().splitlines()
        plan = json.loads(lines[0])
    except (FileNotFoundError, IndexError):
        return TestRunRow(folder.name, target, "waiting")
    often = plan["options"]["runs"]
    total = sum(often or scenario["runs"] for scenario in plan["scenarios"])
    return TestRunRow(
        folder.name,
        plan["target"],
        "running" if request else "unfinished",
        plan["started_at"],
        note=f"{len(lines) - 1} of {total} done",
    )


@lru_cache(MAX_KNOWN_ROWS)
def _read_finished(report: Path, _changed_ns: int) -> TestRunRow:
    """A report is long, and never changes."""
    run = json.loads(report.read_bytes())
    latencies = [one.latency_s for one in _outcomes(run) if one.latency_s is not None]
    return TestRunRow(
        run["id"],
        run["target"],
        "failed" if run["failed"] else "passed",
        run["started_at"],
        run["runs"],
        run["passed"],
        run["failed"],
        round(1000 * median(latencies)) if latencies else None,
    )


def _list_scenarios(settings: Settings) -> list[str]:
    """The names to choose from: those of the library and of the own folder."""
    library = resources.files("aftercall") / "tester" / "library"
    own = Path(settings.tester.scenarios or settings.home / "scenarios").expanduser()
    files = [*(Path(item.name) for item in library.iterdir()), *own.glob("*")]
    return sorted({file.stem for file in files if file.suffix in (".yaml", ".yml")})


def read_run(folder: Path, run_id: str) -> Json:
    file = folder / run_id / REPORT_FILE
    if not _ID.fullmatch(run_id) or not file.is_file():
        raise NotFound("there is no such test run; the Tests page lists them")
    data: Json = json.loads(file.read_bytes())
    return data


def _find_call(run: Json, call_id: str) -> tuple[Json, Json]:
    """A call of this run, and the result it belongs to."""
    for result in run["results"]:
        for call in result["calls"]:
            if call["id"] == call_id:
                return result, call
    raise NotFound("there is no such call in this test run")


def _outcomes(run: Json) -> Iterator[TestOutcomeRow]:
    for result in run["results"]:
        measures = [call.get("measures") or {} for call in result["calls"]]
        latencies = [measure.get("latency_p50_s") for measure in measures]
        slowest = max((s for s in latencies if s is not None), default=None)
        yield TestOutcomeRow(
            result["scenario"],
            result["verdict"],
            slowest,
            list(_findings(result)),
            [call["id"] for call in result["calls"]],
        )


def _findings(result: Json) -> Iterator[TestFindingRow]:
    """What went wrong, each with the call and the second that show it."""
    ids = {call["call"]: call["id"] for call in result["calls"]}
    for finding in result["findings"]:
        if finding["severity"] != "info":
            yield TestFindingRow(
                finding["kind"],
                finding["severity"],
                finding["text"],
                finding["expected"],
                finding["at_s"],
                ids.get(finding["call"], ""),
                tuple(finding["turns"]),
            )
