"""A run as JSON: everything the other forms are made of, except the sound."""

import re
from dataclasses import asdict
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from aftercall.tester.bug_ledger import fingerprint
from aftercall.tester.record import record_json
from aftercall.tester.redact import Redactor
from aftercall.tester.report.run import TestRunReport, rates_of, speak_calibration
from aftercall.tester.score import ScenarioScore


def run_json(run: TestRunReport) -> dict[str, Any]:
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


def _scored_json(run: TestRunReport, item: ScenarioScore) -> dict[str, Any]:
    return {
        "scenario": item.scenario.name,
        "goal": item.scenario.goal,
        "run": item.run,
        "verdict": item.verdict,
        "criteria": [
            {"name": checked.name, "state": checked.state, "evidence": checked.evidence}
            for checked in item.criteria
        ],
        "findings": [
            {"fingerprint": fingerprint(run.target, finding)}
            | asdict(finding)
            | {"turns": list(finding.turns)}
            for finding in item.findings
        ],
        "calls": [
            record_json(record) | {"measures": measures}
            for record, measures in zip(item.records, item.measures, strict=True)
        ],
    }


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(run: TestRunReport, redactor: Redactor) -> str:
    skipped = len(run.scored) - run.passed - run.failed
    figures = {
        "tests": str(len(run.scored)),
        "failures": str(run.failed),
        "errors": "0",
        "skipped": str(skipped),
        "time": f"{run.seconds:.3f}",
    }
    suites = Element("testsuites", {"name": "aftercall test", **figures})
    suite = SubElement(
        suites,
        "testsuite",
        {"name": run.target, "timestamp": run.started_at.isoformat(), **figures},
    )
    properties = SubElement(suite, "properties")
    SubElement(properties, "property", name="calibration", value=speak_calibration(run))
    for item in run.scored:
        _add_case(suite, item, redactor)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode")


def _add_case(suite: Element, item: ScenarioScore, redactor: Redactor) -> None:
    seconds = sum(record.duration_s for record in item.records)
    case = SubElement(
        suite,
        "testcase",
        classname=item.scenario.name,
        name=f"run {item.run}",
        time=f"{seconds:.3f}",
    )
    told = "\n".join(
        f"[{finding.who}] {finding.severity} {finding.kind}: {finding.text}\n    {finding.quote}"
        for finding in item.findings
    )
    if item.verdict == "failed":
        first = item.bugs[0]
        failure = SubElement(case, "failure", message=_clean(first.text, redactor), type=first.kind)
        failure.text = _clean(told, redactor)
    elif item.verdict != "passed":
        SubElement(
            case,
            "skipped",
            message=_clean(f"{item.verdict}: not the agent's doing, or not to be told", redactor),
        )
    SubElement(case, "system-out").text = _clean(
        "\n".join(f"{span.who}: {span.text}" for record in item.records for span in record.spans),
        redactor,
    )


def _clean(text: str, redactor: Redactor) -> str:
    return _NOT_XML.sub("", redactor.clean(text))
