"""Where results lie: `<home>/tests/<run>/` with the report files and one JSON and one WAV per
call; the ledger beside them.

While a run goes on, its folder has what `run_log.py` writes, and its calls as they end.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aftercall.disk import lock_file, sync_folder
from aftercall.errors import NotFound
from aftercall.speech.sound import write_wav
from aftercall.tester.bug_ledger import BugLedger
from aftercall.tester.call_log import read_call_log
from aftercall.tester.record import record_json
from aftercall.tester.redact import Redactor
from aftercall.tester.report.bugs import bug_report
from aftercall.tester.report.machine import junit_xml, run_json
from aftercall.tester.report.page import html_page
from aftercall.tester.report.run import TestRunReport
from aftercall.tester.run_log import (
    PROGRESS,
    RunLog,
    StartedRun,
    read_finished,
    read_started,
    restore,
    start_run,
)
from aftercall.tester.score import ScenarioScore


class RunResults:
    def __init__(self, home: Path) -> None:
        self._folder = home / "tests"

    @contextmanager
    def open_ledger(self) -> Iterator[BugLedger]:
        """Read, changed and saved under a lock: two runs that end together both get their bugs
        in.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "ledger.lock").open("w") as lock:
            lock_file(lock.fileno())
            ledger = BugLedger(self._folder / "ledger.json")
            yield ledger
            ledger.save()

    def save(self, run: TestRunReport, ledger: BugLedger, redactor: Redactor) -> Path:
        """Everything of one run of the suite.

        What may leave is redacted; the calls themselves stay as they were, for their owner
        only.
        """
        folder = self._folder / run.id
        (folder / "calls").mkdir(parents=True, exist_ok=True, mode=0o700)
        for scored in run.scored:
            self._save_calls(folder / "calls", scored)
        for unfinished in (folder / "calls").glob("*.jsonl"):
            if unfinished.with_suffix(".json").exists():
                unfinished.unlink()
        data = run_json(run)
        _write(folder / "raw.json", json.dumps(data, ensure_ascii=False), private=True)
        _write(
            folder / "report.json",
            json.dumps(redactor.clean_data(data), ensure_ascii=False, indent=1),
        )
        _write(folder / "BUG_REPORT.md", bug_report(run, ledger.bugs, redactor))
        _write(folder / "junit.xml", junit_xml(run, redactor))
        _write(folder / "report.html", html_page(run, ledger.bugs, redactor))
        sync_folder(folder)
        return folder

    def start_run(self, started: StartedRun) -> None:
        start_run(self._folder / started.id, started)

    def open_log(self, run_id: str) -> RunLog:
        folder = self._folder / run_id
        return RunLog(folder, lambda scored: self._save_calls(folder / "calls", scored))

    def find_unfinished(self, run_id: str) -> StartedRun:
        """A run that was cut short, by its id, the end of it, or `last`."""
        runs = sorted(
            (path.parent.name for path in self._folder.glob(f"*/{PROGRESS}")), reverse=True
        )
        return read_started(
            self._folder / _pick_run(run_id, runs, "unfinished test run") / PROGRESS
        )

    def _save_calls(self, folder: Path, scored: ScenarioScore) -> None:
        """Calls that are kept already stay as they are."""
        for record, measures in zip(scored.records, scored.measures, strict=True):
            if (folder / f"{record.id}.json").exists():
                continue
            findings = [
                _finding_json(finding)
                for finding in scored.findings
                if finding.call == record.number
            ]
            data = record_json(record) | {
                "verdict": scored.verdict,
                "measures": measures,
                "findings": findings,
            }
            if record.agent_sound:
                _write_bytes(
                    folder / f"{record.id}.wav", write_wav(record.caller_sound, record.agent_sound)
                )
            _write(
                folder / f"{record.id}.json",
                json.dumps(data, ensure_ascii=False, indent=1),
                private=True,
            )
        sync_folder(folder)

    def list_runs(self) -> list[str]:
        """Newest first; those that were cut short, too."""
        found = {
            path.parent.name
            for name in ("raw.json", PROGRESS)
            for path in self._folder.glob(f"*/{name}")
        }
        return sorted(found, reverse=True)

    def read_run(self, run_id: str) -> dict[str, Any]:
        """A run by its id, or `last`, or the end of an id.

        Of one that is not finished, what is there.
        """
        folder = self._folder / _pick_run(run_id, self.list_runs(), "test run")
        if (folder / PROGRESS).exists():
            return _read_unfinished(folder) | {"folder": str(folder), "is_finished": False}
        data: dict[str, Any] = json.loads((folder / "raw.json").read_text("utf-8"))
        return data | {"folder": str(folder), "is_finished": True}

    def read_call(self, call_id: str) -> dict[str, Any] | None:
        """A call by its id, or by the carrier's."""
        paths = [
            path for form in ("json", "jsonl") for path in self._folder.glob(f"*/calls/*.{form}")
        ]
        for path in paths:
            if path.stem == call_id:
                return _read_call(path)
        for path in paths:
            data = _read_call(path)
            if data.get("sid") == call_id:
                return data
        return None


def _pick_run(run_id: str, runs: list[str], what: str) -> str:
    found = runs[:1] if run_id == "last" else [name for name in runs if name.endswith(run_id)]
    if len(found) != 1:
        raise NotFound(
            f"there is no {what} {run_id!r}; `aftercall test show` without an id lists them"
        )
    return found[0]


def _read_unfinished(folder: Path) -> dict[str, Any]:
    """The report so far, and the calls that are not over."""
    started, done = read_started(folder / PROGRESS), read_finished(folder / PROGRESS)
    scored = [
        restore(started, item, folder / "calls")
        for item in sorted(done, key=lambda item: (item.place, item.run))
    ]
    seconds = max((item.seconds for item in done), default=0.0)
    run = TestRunReport(
        started.id, started.target, started.started_at, seconds, tuple(scored), started.calibration
    )
    finished = {record.id for item in done for record in item.records}
    logs = [
        path for path in sorted((folder / "calls").glob("*.jsonl")) if path.stem not in finished
    ]
    return run_json(run) | {"unfinished_calls": [read_call_log(path) for path in logs]}


def _read_call(path: Path) -> dict[str, Any]:
    """What was kept, and where its sound lies."""
    data: dict[str, Any] = (
        read_call_log(path) if path.suffix == ".jsonl" else json.loads(path.read_text("utf-8"))
    )
    sound = path.with_suffix(".wav")
    return data | {"file": str(sound) if sound.is_file() else None}


def _finding_json(finding: Any) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "who": finding.who,
        "text": finding.text,
        "turns": list(finding.turns),
    }


def _write(path: Path, text: str, *, private: bool = False) -> None:
    _write_bytes(path, text.encode("utf-8"), private=private)


def _write_bytes(path: Path, data: bytes, *, private: bool = True) -> None:
    """Under a new name first: a report is whole or not there."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
