"""What a run of the suite writes while it goes on, so that a crash loses no turn and the run
can be resumed.

`progress.jsonl` has the run's plan, then a line for each scenario run that is over.
`calls/<id>.jsonl` has the turns of a call that is not over. Every line is synced before the run
goes on.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from aftercall.disk import lock_file, sync_folder
from aftercall.errors import TesterError
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.speech.sound import read_wav
from aftercall.tester.calibrate import Calibration
from aftercall.tester.call_log import CallLog, append_lines, whole_lines
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.score import JudgedExpectation, ScenarioScore, score

PROGRESS = "progress.jsonl"


@dataclass(frozen=True)
class StartedRun:
    """The first line: what is run. `options` are those of the command, to go on with."""

    id: str
    target: str
    started_at: datetime
    scenarios: tuple[Scenario, ...]
    calibration: tuple[Calibration, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class FinishedRun:
    """A further line: one scenario run that is over. Its sound is in the calls' WAV files."""

    place: int
    run: int
    seconds: float
    records: tuple[CallRecord, ...]
    judged: tuple[JudgedExpectation, ...]


_STARTED = TypeAdapter(StartedRun)
_FINISHED = TypeAdapter(FinishedRun)


def start_run(folder: Path, started: StartedRun) -> None:
    """The plan is written whole, or not at all."""
    (folder / "calls").mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = folder / (PROGRESS + ".new")
    append_lines(fresh, _STARTED.dump_python(started, mode="json"))
    fresh.replace(folder / PROGRESS)
    sync_folder(folder)
    sync_folder(folder.parent)


class RunLog:
    """A run's progress, held by one process at a time; opened again, it knows what is finished."""

    def __init__(self, folder: Path, save_calls: Callable[[ScenarioScore], None]) -> None:
        self._calls = folder / "calls"
        self._path = folder / PROGRESS
        self._save_calls = save_calls
        self._writing = Lock()

    def __enter__(self) -> Self:
        self._file = self._path.open("r+b")
        if not lock_file(self._file.fileno(), wait=False):
            self._file.close()
            raise TesterError(
                f"the test run {self._path.parent.name} is going on in another process"
            )
        self._file.truncate(sum(map(len, whole_lines(self._path))))
        self.started = read_started(self._path)
        self.finished = {(item.place, item.run): item for item in read_finished(self._path)}
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def seconds(self) -> float:
        """How long the run had taken when the last of its scenario runs was over."""
        return max((item.seconds for item in self.finished.values()), default=0.0)

    async def open_call(self, scenario: Scenario, number: int, run: int, now: datetime) -> CallLog:
        path = self._calls / f"{new_id()}.jsonl"
        started_at = now.isoformat().replace("+00:00", "Z")
        about = {
            "id": path.stem,
            "scenario": scenario.name,
            "call": number,
            "run": run,
            "started_at": started_at,
        }
        await asyncio.to_thread(append_lines, path, about)
        await asyncio.to_thread(sync_folder, self._calls)
        return CallLog(path)

    def find(self, place: int, run: int) -> ScenarioScore | None:
        done = self.finished.get((place, run))
        return restore(self.started, done, self._calls) if done else None

    def record_finished(self, place: int, scored: ScenarioScore, seconds: float) -> None:
        """The calls first, then the line that says they are whole."""
        with self._writing:
            self._save_calls(scored)
            fault_point("tester.after_calls")
            silent = tuple(
                replace(item, caller_sound=b"", agent_sound=b"") for item in scored.records
            )
            done = FinishedRun(place, scored.run, seconds, silent, scored.judged)
            append_lines(self._path, _FINISHED.dump_python(done, mode="json"))
            fault_point("tester.after_scenario")
            for record in scored.records:
                (self._calls / f"{record.id}.jsonl").unlink(missing_ok=True)

    def remove(self) -> None:
        """The reports are written: what was needed to go on is not needed any more."""
        self._path.unlink()


def restore(started: StartedRun, done: FinishedRun, calls: Path) -> ScenarioScore:
    """Scored again from what was kept: the same records give the same findings."""
    records = [_with_sound(record, calls / f"{record.id}.wav") for record in done.records]
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
        raise TesterError(
            f"{path}: the plan of this test run cannot be read; run it anew"
        ) from None


def read_finished(path: Path) -> list[FinishedRun]:
    return [_FINISHED.validate_json(line) for line in whole_lines(path)[1:]]
