"""`tasks/`: a markdown file a task, and an `.ics` beside it where something is due."""

from datetime import date, datetime, timedelta
from pathlib import Path

from aftercall.clock import Clock
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.model.instants import parse_instant
from aftercall.settings import Settings
from aftercall.work.sinks.text import escape, quote, slug, yaml_string
from aftercall.workspace import files
from aftercall.workspace.paths import Workspace

_PRODUCT = "-//Aftercall//Follow-ups//EN"
_MAX_LINE_OCTETS = 75


def make_calendar(work: SinkWork, made_at: datetime) -> str:
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
        return [
            f"DTSTART:{start:%Y%m%dT%H%M%SZ}",
            f"DTEND:{start + timedelta(minutes=30):%Y%m%dT%H%M%SZ}",
        ]
    day = date.fromisoformat(due)
    return [
        f"DTSTART;VALUE=DATE:{day:%Y%m%d}",
        f"DTEND;VALUE=DATE:{day + timedelta(days=1):%Y%m%d}",
    ]


def _escape(text: str) -> str:
    return (
        text.replace("\\", "\\\\")
        .replace(";", "\\;")
        .replace(",", "\\,")
        .replace("\r", "")
        .replace("\n", "\\n")
    )


def _fold(line: str) -> str:
    """At most 75 octets a line, never through the middle of a character."""
    folded, width = "", 0
    for char in line:
        size = len(char.encode())
        if width + size > _MAX_LINE_OCTETS:
            folded, width = folded + "\r\n ", 1
        folded, width = folded + char, width + size
    return folded


class TasksSink:
    name = "tasks"
    leaves_machine = False
    can_repeat = True

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would write {self._path(work).name}" + (" and an .ics" if work.due else "")

    def deliver(self, work: SinkWork) -> SinkReceipt:
        path = self._path(work)
        now = self._clock.now()
        page = _page(
            work, self._settings.zone.key, f"{now.astimezone(self._settings.zone):%Y-%m-%d}"
        )
        files.edit(
            path, lambda text: page if text is None else text
        )  # a task that is there is its owner's
        if work.due:
            calendar = make_calendar(work, now)
            files.edit(path.with_suffix(".ics"), lambda text: calendar if text is None else text)
        return SinkReceipt(link=str(path.relative_to(self._root(work))))

    def _root(self, work: SinkWork) -> Path:
        return Workspace.from_settings(self._settings, work.agent_id).root

    def _path(self, work: SinkWork) -> Path:
        """Named by its title and its key: the same task is found again, and two of one title
        are two.
        """
        return self._root(work) / "tasks" / f"{slug(work.title)}-{work.key[:8]}.md"


def _page(work: SinkWork, zone: str, today: str) -> str:
    front = {
        "title": work.title,
        "kind": work.kind,
        "status": "open",
        "created": today,
        "due": work.due,
        "zone": zone if work.due else None,
        "waiting_for": work.person,
        "from_call": work.call_id,
        "caller": work.caller,
        "key": work.key,
    }
    lines = [
        "---",
        *(f"{name}: {yaml_string(value)}" for name, value in front.items() if value),
        "---",
        f"# {escape(work.title)}",
    ]
    lines += ["", quote(work.details)] if work.details else []
    lines += ["", "In the caller's words:", "", quote(work.words)] if work.words else []
    return "\n".join(lines) + "\n"
