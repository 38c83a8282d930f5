"""A run as JSON: everything the other forms are made of, except the sound."""

from dataclasses import asdict
from typing import Any

from aftercall.tester.ledger import fingerprint
from aftercall.tester.record import record_json
from aftercall.tester.report.run import Run, rates_of
from aftercall.tester.score import Scored


def run_json(run: Run) -> dict[str, Any]:
    rates = rates_of(run)
    return {
        "schema": 1,
        "id": run.id,
        "target": run.target,
        "started_at": run.started_at.isoformat().replace("+00:00", "Z"),
        "seconds": round(run.seconds, 3),
        "passed": run.passed,
        "failed": run.failed,
        "runs": len(run.scored),
        "rates": asdict(rates) if rates else None,
        "calibration": [item.as_json() for item in run.calibration],
        "results": [_scored_json(run, item) for item in run.scored],
    }


def _scored_json(run: Run, item: Scored) -> dict[str, Any]:
    return {
        "scenario": item.scenario.name,
        "goal": item.scenario.goal,
        "run": item.run,
        "verdict": item.verdict,
        "criteria": [{"name": checked.name, "state": checked.state, "evidence": checked.evidence} for checked in item.criteria],
        "findings": [
            {"fingerprint": fingerprint(run.target, finding)} | asdict(finding) | {"turns": list(finding.turns)}
            for finding in item.findings
        ],
        "calls": [record_json(record) | {"measures": measures} for record, measures in zip(item.records, item.measures, strict=True)],
    }
