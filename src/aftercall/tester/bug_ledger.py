"""The bug ledger: the same bug is the same entry in every run; first and last seen, where, and
how little it takes to see it.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from aftercall.errors import TesterError
from aftercall.tester.finding import Finding
from aftercall.tester.score import ScenarioScore

_CATEGORIES = {
    "timing": ("slow_answer", "slow_greeting", "no_answer", "never_spoke", "monologue"),
    "turn taking": ("talks_over_caller", "does_not_yield", "broken_off"),
    "repetition": ("asks_again", "says_again", "refusal_loop", "stalls", "echoes"),
    "outcome": (
        "goal_missed",
        "hung_up_early",
        "expectation_missed",
        "probe_failed",
        "judged_missed",
        "ran_on",
    ),
    "trust": ("verification_skipped", "leak", "wrong_name", "forbidden_words"),
    "consistency": ("wrong_weekday", "contradiction", "slot_changed"),
    "speech": ("unspeakable", "other_language", "wrong_pace", "clipping"),
}


def category_of(kind: str) -> str:
    return next((name for name, kinds in _CATEGORIES.items() if kind in kinds), "line")


def fingerprint(target: str, finding: Finding) -> str:
    """The agent, the kind and what it is about: not the call, not the words, not the scenario."""
    return sha256(
        f"{target.partition(':')[0]}|{finding.kind}|{finding.detail}".encode()
    ).hexdigest()[:12]


@dataclass(frozen=True)
class Bug:
    """One entry.

    `steps` is the shortest list of the caller's steps that still shows it, where that was
    looked for.
    """

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
    steps: tuple[str, ...] = field(default=())


class BugLedger:
    """A JSON file beside the results; written whole, under a new name first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bugs: dict[str, Bug] = {}
        self._runs: list[str] = []
        self._read()

    @property
    def bugs(self) -> list[Bug]:
        return sorted(self._bugs.values(), key=lambda bug: (bug.last_seen, bug.seen), reverse=True)

    def get(self, mark: str) -> Bug | None:
        return self._bugs.get(mark)

    def add(self, target: str, run_id: str, scored: Sequence[ScenarioScore]) -> list[Bug]:
        """The bugs of one run of the suite, counted once however often it is added; returns the
        entries it touched.
        """
        if run_id in self._runs:
            return []
        self._runs.append(run_id)
        touched: dict[str, Bug] = {}
        for item in scored:
            for finding in item.bugs:
                mark = fingerprint(target, finding)
                call = next(
                    (record for record in item.records if record.number == finding.call),
                    item.records[-1],
                )
                seen_at = call.started_at.isoformat().replace("+00:00", "Z")
                known = touched.get(mark) or self._bugs.get(mark) or _new(mark, finding, seen_at)
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

    def note_steps(self, mark: str, steps: tuple[str, ...]) -> None:
        known = self._bugs[mark]
        if not known.steps or len(steps) < len(known.steps):
            self._bugs[mark] = replace(known, steps=steps)

    def save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {"schema": 1, "runs": self._runs, "bugs": [asdict(bug) for bug in self.bugs]},
            ensure_ascii=False,
            indent=1,
        )
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
            self._bugs = {
                bug["fingerprint"]: Bug(**{**bug, **_tuples(bug)}) for bug in data["bugs"]
            }
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError):
            raise TesterError(
                f"{self._path}: the bug ledger cannot be read; move it away to begin a new one"
            ) from None


def _tuples(bug: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(bug.get(key, ())) for key in ("scenarios", "calls", "steps")}


def _new(mark: str, finding: Finding, seen_at: str) -> Bug:
    return Bug(
        mark,
        finding.kind,
        category_of(finding.kind),
        finding.severity,
        finding.text,
        seen_at,
        seen_at,
    )
