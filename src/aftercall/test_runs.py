"""Test runs that people start or schedule on the pages.

A durable workflow runs `aftercall test run` as a child process, so that a run takes no time from
the audio of live calls. The child inherits a lock: if this process dies, the next one waits for
the child and goes on where it ended. The durable engine keeps the schedules; a scheduled run has
its time in its workflow's id, so several processes start it once.
"""

import asyncio
import json
import os
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypedDict

from dbos import DBOS, SetWorkflowID
from pydantic import SecretStr

from aftercall import durable
from aftercall.config import list_settings
from aftercall.disk import lock_file, replace_synced
from aftercall.errors import NotFound, RefusedInput
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.log import get_logger
from aftercall.model.json_fields import Json
from aftercall.settings import Settings

QUEUE = "aftercall.tests"
FOLDER, REQUEST_FILE, REPORT_FILE = "tests", "request.json", "report.json"
PROGRESS_FILE, LOCK_FILE = "progress.jsonl", "run.lock"
OWN_AGENTS = ("receptionist", "practice")
LOCK_POLL_S = 1.0
MAX_RUNS = 20
MAX_PROBLEM_CHARS = 500
NICENESS = 10  # live calls go first
# What the child has to know; a key is a section or a setting.
PASSED_SETTINGS = (
    "home",
    "public_url",
    "timezone",
    "receptionist",
    "openai",
    "twilio",
    "telnyx",
    "tester",
)
WEEKDAYS = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)
_SCENARIO = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")

log = get_logger("tests")


class RunRequest(TypedDict):
    """What a person asked to be run."""

    agent: str
    scenarios: list[str]
    runs: int


class TestSchedule(NamedTuple):
    name: str
    request: RunRequest
    when: str


def list_agents(settings: Settings) -> list[str]:
    """The agents that the pages may call: our own, and those that the settings name."""
    named = (name.strip() for name in settings.tester.agents.split(","))
    return list(dict.fromkeys([*OWN_AGENTS, *filter(None, named)]))


def make_request(
    settings: Settings, agent: str, scenarios: str, runs: int
) -> RunRequest:
    """Checks what was typed: a name cannot be a file, nor an agent of somebody else."""
    if agent not in list_agents(settings):
        raise RefusedInput("agent", "is not one that tester.agents names")
    names = scenarios.replace(",", " ").split() or ["all"]
    if not all(map(_SCENARIO.fullmatch, names)):
        raise RefusedInput("scenarios", "is not a list of names, or `all`")
    if not 1 <= runs <= MAX_RUNS:
        raise RefusedInput("runs", f"is not a number from 1 to {MAX_RUNS}")
    return {"agent": agent, "scenarios": names, "runs": runs}


# One for each process, as the durable engine is.
_settings: Settings | None = None


def opened_settings() -> Settings:
    if _settings is None:
        raise RuntimeError("test runs have not been opened")
    return _settings


def open_test_runs(settings: Settings) -> None:
    """Call this before the durable engine starts."""
    global _settings
    _settings = settings
    durable.register_queue(QUEUE, 1)


def close_test_runs() -> None:
    """Call this after the durable engine has stopped."""
    global _settings
    _settings = None


@durable.workflow("aftercall.test_run")
async def run_requested(_scheduled_at: datetime | str, request: Json) -> None:
    run_id = await note_request(request)
    await run_child(run_id, request)


@durable.step("aftercall.note_test_run", attempts=3)
async def note_request(request: Json) -> str:
    """The id of the run, once its request is on disk."""
    run_id = str(request.get("id") or new_id())
    folder = opened_settings().home / FOLDER / run_id
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write_request(folder, request)
    return run_id


@durable.step("aftercall.run_tests")
async def run_child(run_id: str, request: Json) -> None:
    settings = opened_settings()
    folder = settings.home / FOLDER / run_id
    with (folder.parent / LOCK_FILE).open("w") as lock:
        while not lock_file(lock.fileno(), wait=False):  # noqa: ASYNC110 - another process has it
            await asyncio.sleep(LOCK_POLL_S)
        if (folder / REPORT_FILE).exists():
            return  # by the child of a process that died
        child = await asyncio.create_subprocess_exec(
            *_make_command(folder, request),
            env=os.environ | _make_environment(settings),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(lock.fileno(),),
            start_new_session=True,  # Ctrl-C at the server is not for it
        )
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
        fault_point("tests.after_start")
        try:
            _, said = await child.communicate()
        finally:
            if child.returncode is None:  # the server stops; the next one goes on
                child.terminate()
                await child.wait()
    if not (folder / REPORT_FILE).exists():
        lines = said.decode("utf-8", "replace").strip().splitlines() or ["no report"]
        problem = lines[-1].removeprefix("aftercall: ")[:MAX_PROBLEM_CHARS]
        _write_request(folder, request | {"problem": problem})
        log.warning("a test run failed", run=run_id, code=child.returncode)


def _write_request(folder: Path, request: Json) -> None:
    replace_synced(folder / REQUEST_FILE, json.dumps(request).encode())


def _make_command(folder: Path, request: Json) -> list[str]:
    command = [sys.executable, "-m", "aftercall", "test", "run"]
    if (folder / PROGRESS_FILE).exists():
        return [*command, "--resume", folder.name]
    command += ["--id", folder.name, "--agent", request["agent"]]
    command += ["--runs", str(request["runs"])]
    return command + [
        part for name in request["scenarios"] for part in ("--scenario", name)
    ]


def _make_environment(settings: Settings) -> dict[str, str]:
    """The settings of this process, wherever they came from, as the child reads them."""
    made = {}
    for key, env, field in list_settings():
        section, _, name = key.partition(".")
        value = getattr(settings, section)
        value = getattr(value, name) if name else value
        if section in PASSED_SETTINGS and value != field.default and value is not None:
            secret = value.get_secret_value() if isinstance(value, SecretStr) else value
            made[env] = str(secret)
    return made


async def start_run(request: RunRequest) -> str:
    """Starts a run now, or after the one that is going on; returns its id."""
    run_id = new_id()
    with SetWorkflowID(f"tests:{run_id}"):
        asked = {**request, "id": run_id}
        await durable.start_workflow(QUEUE, 1, run_requested, "", asked)
    return run_id


async def add_schedule(request: RunRequest, when: str, at: str) -> str:
    """`when` is hour, day or a weekday; `at` is the time of day in the configured zone.

    Returns the schedule's name.
    """
    clock = _CLOCK.fullmatch(at)
    if clock is None:
        raise RefusedInput("at", "is not a time of day such as 03:30")
    hour, minute = int(clock[1]), int(clock[2])
    crons = {"hour": f"{minute} * * * *", "day": f"{minute} {hour} * * *"}
    for number, name in enumerate(WEEKDAYS, 1):
        crons[name] = f"{minute} {hour} * * {number % 7}"
    if when not in crons:
        raise RefusedInput("when", "is not hour, day or a weekday")
    words = f"every hour at :{minute:02}" if when == "hour" else f"every {when} at {at}"
    for known in await list_schedules():
        if (known.request, known.when) == (request, words):
            raise RefusedInput("when", "is on the schedule already")
    name = new_id()
    await DBOS.create_schedule_async(
        schedule_name=name,
        workflow_fn=run_requested,
        schedule=crons[when],
        context={**request, "when": words},
        cron_timezone=opened_settings().zone.key,
        queue_name=QUEUE,
    )
    return name


async def list_schedules() -> list[TestSchedule]:
    if not durable.is_launched():
        return []
    found = []
    for schedule in await DBOS.list_schedules_async():
        context = schedule["context"]
        request = RunRequest(
            agent=context["agent"], scenarios=context["scenarios"], runs=context["runs"]
        )
        name = schedule["schedule_name"]
        found.append(TestSchedule(name, request, context["when"]))
    return sorted(found)


async def remove_schedule(name: str) -> None:
    if name not in [schedule.name for schedule in await list_schedules()]:
        raise NotFound("there is no such schedule; it may have been removed")
    await DBOS.delete_schedule_async(name)
