"""A date as an iCalendar file (RFC 5545) that every calendar opens."""

from datetime import date, datetime, timedelta

from aftercall.model.followups import Work
from aftercall.model.instants import parse_instant

_PRODUCT = "-//Aftercall//Follow-ups//EN"
_LONGEST_LINE = 75


def make_calendar(work: Work, made_at: datetime) -> str:
    due = work.due or ""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        f"PRODID:{_PRODUCT}",
        "BEGIN:VEVENT",
        f"UID:{work.key.partition(':')[0]}@aftercall",
        f"DTSTAMP:{made_at:%Y%m%dT%H%M%SZ}",
        *_times(due),
        f"SUMMARY:{_escape(work.title)}",
        *([f"DESCRIPTION:{_escape(work.details)}"] if work.details else []),
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        f"DESCRIPTION:{_escape(work.title)}",
        "TRIGGER:PT0S" if "T" in due else "TRIGGER:PT9H",
        "END:VALARM",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    return "".join(_fold(line) + "\r\n" for line in lines)


def _times(due: str) -> list[str]:
    if "T" in due:
        start = parse_instant(due)
        return [f"DTSTART:{start:%Y%m%dT%H%M%SZ}", f"DTEND:{start + timedelta(minutes=30):%Y%m%dT%H%M%SZ}"]
    day = date.fromisoformat(due)
    return [f"DTSTART;VALUE=DATE:{day:%Y%m%d}", f"DTEND;VALUE=DATE:{day + timedelta(days=1):%Y%m%d}"]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\r", "").replace("\n", "\\n")


def _fold(line: str) -> str:
    """At most 75 octets a line, never through the middle of a character."""
    folded, width = "", 0
    for char in line:
        size = len(char.encode())
        if width + size > _LONGEST_LINE:
            folded, width = folded + "\r\n ", 1
        folded, width = folded + char, width + size
    return folded
