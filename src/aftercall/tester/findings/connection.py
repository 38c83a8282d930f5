"""What the line did: calls that were not answered, broken lines, lost sound, events that came
twice or not at all.
"""

from collections import Counter
from collections.abc import Iterator

from aftercall.tester.finding import CallView, Finding, Severity
from aftercall.tester.scenario import Who

_OUTCOMES: dict[str, tuple[Severity, Who, str]] = {
    "busy": ("major", "unknown", "the number was busy"),
    "no-answer": ("major", "unknown", "nobody answered"),
    "failed": ("major", "line", "the call could not be connected"),
    "voicemail": ("major", "unknown", "a mailbox answered"),
}
LOST_SHARE = 0.05


def find(view: CallView) -> Iterator[Finding]:
    record = view.record
    if record.outcome != view.scenario.outcome:
        severity, who, text = _OUTCOMES.get(
            record.outcome,
            ("major", "agent", "the call was answered, which it should not have been"),
        )
        yield view.finding(
            f"outcome_{record.outcome.replace('-', '_')}",
            severity,
            who,
            text,
            detail=record.outcome,
        )
        return
    if record.ended_by == "line" and view.plan.hangs_up_after is None:
        yield view.finding("line_broke", "major", "line", f"the line broke: {record.end_why}")
    if record.ended_by == "limit":
        yield view.finding(
            "ran_on", "major", _blame_limit(view), f"the call ran into its limit ({record.end_why})"
        )
    yield from _lost(view)
    counts = Counter(event.kind for event in record.events)
    for kind, text in (
        ("duplicate_event", "came twice"),
        ("missing_event", "never came"),
        ("late_event", "came out of order"),
    ):
        if counts[kind]:
            yield view.finding(kind, "minor", "line", f"{counts[kind]} events {text}")


def _blame_limit(view: CallView) -> Who:
    if any(fault.severity != "info" for fault in view.tester_faults):
        return "tester"
    return "agent"


def _lost(view: CallView) -> Iterator[Finding]:
    lost = sum(event.kind == "frame_lost" for event in view.record.events) * 0.02
    spoken = sum(span.seconds for span in view.record.caller_spans)
    if spoken and lost / spoken > LOST_SHARE:
        yield view.finding(
            "sound_lost",
            "minor",
            "line",
            f"{100 * lost / spoken:.0f} % of what the caller said was lost on the line",
        )
