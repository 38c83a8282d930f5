"""Where results are: `<home>/tests/<run>/` with the reports and one JSON and WAV file per call.

While a run goes on, `progress.jsonl` has its plan, then a line for each finished scenario run, and
`calls/<id>.jsonl` has the turns of an unfinished call. Every line is synced before the run goes
on: a crash loses no turn, and the run can resume. The bug ledger is beside the runs.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Self

from pydantic import TypeAdapter, ValidationError

from aftercall.disk import lock_file, sync_folder
from aftercall.errors import NotFound, TesterError
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.model.json_fields import Json, pick_fields
from aftercall.speech.sound import read_wav, write_wav
from aftercall.tester.bugs import BugLedger, bug_report
from aftercall.tester.finding import Finding
from aftercall.tester.record import (
    CallLog,
    CallRecord,
    append_lines,
    format_time,
    read_call_log,
    record_json,
    whole_lines,
)
from aftercall.tester.redact import Redactor
from aftercall.tester.report_page import html_page
from aftercall.tester.run_report import RunReport, RunSummary, junit_xml, run_json
from aftercall.tester.scenario import Scenario
from aftercall.tester.score import JudgedExpectation, ScenarioScore, score
from aftercall.tester.statistics import Calibration

PROGRESS = "progress.jsonl"
TREND_RUNS = 9


@dataclass(frozen=True)
class StartedRun:
    """The first line: what is run, with the options of the command."""

    id: str
    target: str
    started_at: datetime
    scenarios: tuple[Scenario, ...]
    calibration: tuple[Calibration, ...]
    options: Json

    def report(self, seconds: float, scored: Sequence[ScenarioScore]) -> RunReport:
        about = (self.id, self.target, self.started_at, seconds)
        return RunReport(*about, tuple(scored), self.calibration)


@dataclass(frozen=True)
class FinishedRun:
    """A further line: one finished scenario run, without its sound, which is in the WAV files."""

    place: int
    run: int
    seconds: float
    records: tuple[CallRecord, ...]
    judged: tuple[JudgedExpectation, ...]


_STARTED = TypeAdapter(StartedRun)
_FINISHED = TypeAdapter(FinishedRun)


def start_run(folder: Path, started: StartedRun) -> None:
    """Writes the plan, whole or not at all."""
    (folder / "calls").mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = folder / (PROGRESS + ".new")
    append_lines(fresh, _STARTED.dump_python(started, mode="json"))
    fresh.replace(folder / PROGRESS)
    sync_folder(folder)
    sync_folder(folder.parent)


class RunLog:
    """A run's progress, locked by one process; opened again, it knows what is finished."""

    def __init__(
        self, folder: Path, save_calls: Callable[[ScenarioScore], None]
    ) -> None:
        self._calls = folder / "calls"
        self._path = folder / PROGRESS
        self._save_calls = save_calls
        self._writing = Lock()

    def __enter__(self) -> Self:
        """Takes the run for this process, and cuts off a line that a crash left half."""
        self._file = self._path.open("r+b")
        if not lock_file(self._file.fileno(), wait=False):
            self._file.close()
            name = self._path.parent.name
            raise TesterError(
                f"the test run {name} is going on in another process"
            ) from None
        self._file.truncate(sum(map(len, whole_lines(self._path))))
        self.started = read_started(self._path)
        self.finished = {
            (item.place, item.run): item for item in read_finished(self._path)
        }
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def seconds(self) -> float:
        """How long the run had taken when its last scenario run finished."""
        return max((item.seconds for item in self.finished.values()), default=0.0)

    async def open_call(
        self, scenario: Scenario, number: int, run: int, now: datetime
    ) -> CallLog:
        """A file for the call, on disk before the phone rings."""
        path = self._calls / f"{new_id()}.jsonl"
        about = {"id": path.stem, "scenario": scenario.name, "call": number, "run": run}
        about["started_at"] = format_time(now)
        await asyncio.to_thread(append_lines, path, about)
        await asyncio.to_thread(sync_folder, self._calls)
        return CallLog(path)

    def find(self, place: int, run: int) -> ScenarioScore | None:
        done = self.finished.get((place, run))
        return restore(self.started, done, self._calls) if done else None

    def record_finished(
        self, place: int, scored: ScenarioScore, seconds: float
    ) -> None:
        """Writes the calls first, then the line that says they are complete."""
        with self._writing:
            self._save_calls(scored)
            fault_point("tester.after_calls")
            silent = tuple(
                replace(item, caller_sound=b"", agent_sound=b"")
                for item in scored.records
            )
            done = FinishedRun(place, scored.run, seconds, silent, scored.judged)
            append_lines(self._path, _FINISHED.dump_python(done, mode="json"))
            fault_point("tester.after_scenario")
            for record in scored.records:
                (self._calls / f"{record.id}.jsonl").unlink(missing_ok=True)

    def remove(self) -> None:
        """Called when the reports are written: nothing is left to resume."""
        self._path.unlink()


def restore(started: StartedRun, done: FinishedRun, calls: Path) -> ScenarioScore:
    """Scores the stored records again, which gives the same findings."""
    records = [
        _with_sound(record, calls / f"{record.id}.wav") for record in done.records
    ]
    return score(started.scenarios[done.place], done.run, records, done.judged)


def _with_sound(record: CallRecord, wav: Path) -> CallRecord:
    if not wav.is_file():
        return record
    caller, agent = read_wav(wav)
    return replace(record, caller_sound=caller, agent_sound=agent)


def read_started(path: Path) -> StartedRun:
    try:
        return _STARTED.validate_json(whole_lines(path)[0])
    except (IndexError, ValidationError):
        reason = "the plan of this test run cannot be read; run it anew"
        raise TesterError(f"{path}: {reason}") from None


def read_finished(path: Path) -> list[FinishedRun]:
    return [_FINISHED.validate_json(line) for line in whole_lines(path)[1:]]


class RunResults:
    """The results of a test run, written as they come: a killed run is resumed."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "tests"

    @contextmanager
    def open_ledger(self) -> Iterator[BugLedger]:
        """Locked from reading to saving, so two runs that end together both add their bugs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "ledger.lock").open("w") as lock:
            lock_file(lock.fileno())
            ledger = BugLedger(self._folder / "ledger.json")
            yield ledger
            ledger.save()

    def save(self, run: RunReport, ledger: BugLedger, redactor: Redactor) -> Path:
        """Reports are redacted; raw data and calls are not, and only the owner can read them."""
        folder = self._folder / run.id
        (folder / "calls").mkdir(parents=True, exist_ok=True, mode=0o700)
        for scored in run.scored:
            self._save_calls(folder / "calls", scored)
        for unfinished in (folder / "calls").glob("*.jsonl"):
            if unfinished.with_suffix(".json").exists():
                unfinished.unlink()
        data = run_json(run)
        tested = {item.scenario.name: item.scenario for item in run.scored}.values()
        raw = data | {"scenarios": [item.model_dump(mode="json") for item in tested]}
        _write(folder / "raw.json", json.dumps(raw, ensure_ascii=False), private=True)
        trend = [*self.read_earlier(run.target, run.id), RunSummary.from_json(data)]
        _write(folder / "BUG_REPORT.md", bug_report(run, ledger.bugs, redactor, trend))
        _write(folder / "junit.xml", junit_xml(run, redactor))
        _write(folder / "report.html", html_page(run, ledger.bugs, redactor))
        # last: where it is, the others are
        redacted = json.dumps(redactor.clean_data(data), ensure_ascii=False, indent=1)
        _write(folder / "report.json", redacted)
        sync_folder(folder)
        return folder

    def read_earlier(self, target: str, run_id: str) -> list[RunSummary]:
        """The last finished runs of the same agent before this one, oldest first."""
        found: list[RunSummary] = []
        for name in self._find_runs("raw.json"):
            if name >= run_id or len(found) == TREND_RUNS:
                continue
            data = json.loads((self._folder / name / "raw.json").read_text("utf-8"))
            if data["target"] == target:
                found.insert(0, RunSummary.from_json(data))
        return found

    def start_run(self, started: StartedRun) -> None:
        start_run(self._folder / started.id, started)

    def open_log(self, run_id: str) -> RunLog:
        folder = self._folder / run_id
        return RunLog(folder, lambda scored: self._save_calls(folder / "calls", scored))

    def find_unfinished(self, run_id: str) -> StartedRun:
        """A run that was cut short, by its id, the end of it, or `last`."""
        name = _pick_run(run_id, self._find_runs(PROGRESS), "unfinished test run")
        return read_started(self._folder / name / PROGRESS)

    def _find_runs(self, *files: str) -> list[str]:
        """Runs that have one of these files, newest first."""
        paths = [path for name in files for path in self._folder.glob(f"*/{name}")]
        return sorted({path.parent.name for path in paths}, reverse=True)

    def _save_calls(self, folder: Path, scored: ScenarioScore) -> None:
        """Calls that are saved already stay as they are."""
        for record, measures in zip(scored.records, scored.measures, strict=True):
            if (folder / f"{record.id}.json").exists():
                continue
            found = [
                finding for finding in scored.findings if finding.call == record.number
            ]
            data = record_json(record)
            data["verdict"] = scored.verdict
            data["measures"] = measures
            data["findings"] = [_finding_json(finding) for finding in found]
            if record.agent_sound:
                wav = write_wav(record.caller_sound, record.agent_sound)
                _write_bytes(folder / f"{record.id}.wav", wav)
            text = json.dumps(data, ensure_ascii=False, indent=1)
            _write(folder / f"{record.id}.json", text, private=True)
        sync_folder(folder)

    def list_runs(self) -> list[str]:
        """Newest first, with those that were cut short."""
        return self._find_runs("raw.json", PROGRESS)

    def read_run(self, run_id: str) -> Json:
        """A run by its id, the end of it, or `last`; of an unfinished one, what there is."""
        folder = self._folder / self._pick(run_id)
        if (folder / PROGRESS).exists():
            return _read_unfinished(folder) | {
                "folder": str(folder),
                "is_finished": False,
            }
        data: Json = json.loads((folder / "raw.json").read_text("utf-8"))
        return data | {"folder": str(folder), "is_finished": True}

    def read_scenarios(self, which: str) -> list[Scenario]:
        """The scenarios of a run, or of a call's run: they say what is private in it."""
        path = self._find_call(which)
        folder = path.parent.parent if path else self._folder / self._pick(which)
        if (folder / PROGRESS).exists():
            return list(read_started(folder / PROGRESS).scenarios)
        data = json.loads((folder / "raw.json").read_text("utf-8"))
        return [Scenario.model_validate(item) for item in data.get("scenarios", ())]

    def _pick(self, run_id: str) -> str:
        return _pick_run(run_id, self.list_runs(), "test run")

    def read_call(self, call_id: str) -> Json | None:
        """A call by its id, or by the carrier's id."""
        path = self._find_call(call_id)
        return _read_call(path) if path else None

    def _find_call(self, call_id: str) -> Path | None:
        """By the id of its file, or by the id that the carrier gave it."""
        paths = [
            path
            for form in ("json", "jsonl")
            for path in self._folder.glob(f"*/calls/*.{form}")
        ]
        named = (path for path in paths if path.stem == call_id)
        by_carrier = (path for path in paths if _read_call(path).get("sid") == call_id)
        return next(named, None) or next(by_carrier, None)


def _pick_run(run_id: str, runs: list[str], what: str) -> str:
    """The one run that an id, or the end of one, names."""
    found = (
        runs[:1]
        if run_id == "last"
        else [name for name in runs if name.endswith(run_id)]
    )
    if len(found) != 1:
        hint = "`aftercall test show` without an id lists them"
        raise NotFound(f"there is no {what} {run_id!r}; {hint}")
    return found[0]


def _read_unfinished(folder: Path) -> Json:
    """The report so far, and the unfinished calls."""
    started, done = read_started(folder / PROGRESS), read_finished(folder / PROGRESS)
    done.sort(key=lambda item: (item.place, item.run))
    scored = [restore(started, item, folder / "calls") for item in done]
    run = started.report(max((item.seconds for item in done), default=0.0), scored)
    finished = {record.id for item in done for record in item.records}
    paths = sorted((folder / "calls").glob("*.jsonl"))
    logs = [path for path in paths if path.stem not in finished]
    return run_json(run) | {"unfinished_calls": [read_call_log(path) for path in logs]}


def _read_call(path: Path) -> Json:
    """The call, and the path of its sound."""
    data: Json = (
        read_call_log(path)
        if path.suffix == ".jsonl"
        else json.loads(path.read_text("utf-8"))
    )
    sound = path.with_suffix(".wav")
    return data | {"file": str(sound) if sound.is_file() else None}


def _finding_json(finding: Finding) -> Json:
    return pick_fields(finding, "kind severity who text turns")


def _write(path: Path, text: str, *, private: bool = False) -> None:
    _write_bytes(path, text.encode("utf-8"), private=private)


def _write_bytes(path: Path, data: bytes, *, private: bool = True) -> None:
    """Writes under a new name first: a report is complete or missing."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(
        fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o644
    )
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
