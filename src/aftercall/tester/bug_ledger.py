"""The bug ledger: one entry for the same bug in every run, with the fewest steps that show it."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from aftercall.errors import TesterError
from aftercall.tester.finding import Finding
from aftercall.tester.record import format_time
from aftercall.tester.score import ScenarioScore


def fingerprint(target: str, finding: Finding) -> str:
    """Made of the agent, the kind and the detail; not of the call, the words or the scenario."""
    text = f"{target.partition(':')[0]}|{finding.kind}|{finding.detail}"
    return sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Bug:
    """One entry; `steps` is the shortest list of the caller's steps that still shows it."""

    fingerprint: str
    kind: str
    category: str
    severity: str
    text: str
    first_seen: str
    last_seen: str
    seen: int = 0
    runs: int = 0
    scenarios: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    quote: str = ""
    steps: tuple[str, ...] = ()


class BugLedger:
    """A JSON file beside the results, replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bugs: dict[str, Bug] = {}
        self._runs: list[str] = []
        self._read()

    @property
    def bugs(self) -> list[Bug]:
        return sorted(
            self._bugs.values(), key=lambda bug: (bug.last_seen, bug.seen), reverse=True
        )

    def get(self, mark: str) -> Bug | None:
        return self._bugs.get(mark)

    def add(
        self, target: str, run_id: str, scored: Sequence[ScenarioScore]
    ) -> list[Bug]:
        """Adds the bugs of a run, once however often it is added; returns the changed entries."""
        if run_id in self._runs:
            return []
        self._runs.append(run_id)
        touched: dict[str, Bug] = {}
        for item in scored:
            for finding in item.bugs:
                mark = fingerprint(target, finding)
                call = item.record_of(finding)
                seen_at = format_time(call.started_at)
                known = (
                    touched.get(mark)
                    or self._bugs.get(mark)
                    or _new(mark, finding, seen_at)
                )
                touched[mark] = replace(
                    known,
                    last_seen=max(known.last_seen, seen_at),
                    seen=known.seen + 1,
                    runs=known.runs + (mark not in touched),
                    scenarios=tuple(sorted({*known.scenarios, item.scenario.name})),
                    calls=(*known.calls, call.id)[-20:],
                    quote=finding.quote,
                )
        self._bugs |= touched
        return list(touched.values())

    def set_steps(self, mark: str, steps: tuple[str, ...]) -> None:
        known = self._bugs[mark]
        if not known.steps or len(steps) < len(known.steps):
            self._bugs[mark] = replace(known, steps=steps)

    def save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "schema": 1,
            "runs": self._runs,
            "bugs": [asdict(bug) for bug in self.bugs],
        }
        text = json.dumps(data, ensure_ascii=False, indent=1)
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def _read(self) -> None:
        try:
            data: dict[str, Any] = json.loads(self._path.read_text("utf-8"))
            self._runs = list(data.get("runs", ()))
            self._bugs = {bug["fingerprint"]: _read_bug(bug) for bug in data["bugs"]}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError):
            reason = "the bug ledger cannot be read; move it away to begin a new one"
            raise TesterError(f"{self._path}: {reason}") from None


def _read_bug(bug: dict[str, Any]) -> Bug:
    lists = {key: tuple(bug.get(key, ())) for key in ("scenarios", "calls", "steps")}
    return Bug(**{**bug, **lists})


def _new(mark: str, finding: Finding, seen_at: str) -> Bug:
    kind, category = finding.kind, finding.category
    return Bug(mark, kind, category, finding.severity, finding.text, seen_at, seen_at)
