"""JUnit XML: one case per run of a scenario, so that any CI shows what failed and why."""

import re
from xml.etree.ElementTree import Element, SubElement, tostring

from aftercall.tester.redact import Redactor
from aftercall.tester.report.run import Run, speak_calibration
from aftercall.tester.score import Scored

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(run: Run, redactor: Redactor) -> str:
    skipped = len(run.scored) - run.passed - run.failed
    figures = {
        "tests": str(len(run.scored)),
        "failures": str(run.failed),
        "errors": "0",
        "skipped": str(skipped),
        "time": f"{run.seconds:.3f}",
    }
    suites = Element("testsuites", {"name": "aftercall test", **figures})
    suite = SubElement(suites, "testsuite", {"name": run.target, "timestamp": run.started_at.isoformat(), **figures})
    properties = SubElement(suite, "properties")
    SubElement(properties, "property", name="calibration", value=speak_calibration(run))
    for item in run.scored:
        _add_case(suite, item, redactor)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode")


def _add_case(suite: Element, item: Scored, redactor: Redactor) -> None:
    seconds = sum(record.duration_s for record in item.records)
    case = SubElement(suite, "testcase", classname=item.scenario.name, name=f"run {item.run}", time=f"{seconds:.3f}")
    told = "\n".join(f"[{finding.who}] {finding.severity} {finding.kind}: {finding.text}\n    {finding.quote}" for finding in item.findings)
    if item.verdict == "failed":
        first = item.bugs[0]
        failure = SubElement(case, "failure", message=_clean(first.text, redactor), type=first.kind)
        failure.text = _clean(told, redactor)
    elif item.verdict != "passed":
        SubElement(case, "skipped", message=_clean(f"{item.verdict}: not the agent's doing, or not to be told", redactor))
    SubElement(case, "system-out").text = _clean(
        "\n".join(f"{span.who}: {span.text}" for record in item.records for span in record.spans), redactor
    )


def _clean(text: str, redactor: Redactor) -> str:
    return _NOT_XML.sub("", redactor.clean(text))
