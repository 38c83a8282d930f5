"""`tasks` and `people`: markdown in the workspace; also the journal entry of a conversation.

Spoken words are quoted and escaped, so they cannot pass for structure.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path

from aftercall.clock import Clock, parse_instant
from aftercall.model.calls import Call
from aftercall.model.followups import FollowUp, SinkReceipt, SinkWork
from aftercall.settings import Settings
from aftercall.workspace import files
from aftercall.workspace.markdown import escape
from aftercall.workspace.paths import Workspace

MAX_SLUG_CHARS = 60  # in any script fewer bytes than a file name may have
NOTES_HEADING = "## Notes"
BEGIN = "<!-- aftercall: begin -->"
END = "<!-- aftercall: end -->"
NOTHING = "Nothing was asked for."
_NOT_WORDS = re.compile(r"[\W_]+")
_MAX_ICS_LINE_OCTETS = 75


def slug(text: str) -> str:
    """A file name of lower-case letters and digits of any script: no path, no dot."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return (
        _NOT_WORDS.sub("-", plain).strip("-")[:MAX_SLUG_CHARS].strip("-") or "untitled"
    )


def quote(text: str) -> str:
    """A block quote: a heading, a rule or front matter in it stays plain words."""
    return "\n".join(f"> {escape(line)}" for line in text.splitlines())


def make_mark(work: SinkWork) -> str:
    """An invisible comment by which a sink finds what it wrote before."""
    return f"<!-- aftercall: {work.key[:32]} -->"


class WorkspaceSink:
    """Writes files of the workspace, which stay on this machine."""

    leaves_machine = False
    can_repeat = True

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    def _workspace(self, work: SinkWork) -> Workspace:
        return Workspace.from_settings(self._settings, work.agent_id)


class TasksSink(WorkspaceSink):
    """`tasks/`: a markdown file a task, and an `.ics` file beside it if it has a due date."""

    name = "tasks"

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would write {self._path(work).name}" + (
            " and an .ics" if work.due else ""
        )

    def deliver(self, work: SinkWork) -> SinkReceipt:
        """Leaves a file that exists as it is: its owner may have edited it."""
        path = self._path(work)
        now = self._clock.now()
        zone = self._settings.zone
        page = _task_page(work, zone.key, f"{now.astimezone(zone):%Y-%m-%d}")
        files.edit(path, lambda text: page if text is None else text)
        if work.due:
            calendar = make_calendar(work, now)
            files.edit(
                path.with_suffix(".ics"),
                lambda text: calendar if text is None else text,
            )
        return SinkReceipt(link=str(path.relative_to(self._workspace(work).root)))

    def _path(self, work: SinkWork) -> Path:
        """The key keeps two tasks of one title apart."""
        return (
            self._workspace(work).root
            / "tasks"
            / f"{slug(work.title)}-{work.key[:8]}.md"
        )


def _task_page(work: SinkWork, zone: str, today: str) -> str:
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
    # A JSON string is a YAML string with nothing left to interpret.
    values = [
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in front.items()
        if value
    ]
    lines = ["---", *values, "---", f"# {escape(work.title)}"]
    if work.details:
        lines += ["", quote(work.details)]
    if work.words:
        lines += ["", "In the caller's words:", "", quote(work.words)]
    return "\n".join(lines) + "\n"


def make_calendar(work: SinkWork, made_at: datetime) -> str:
    due = work.due or ""
    title = _escape_ics(work.title)
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Aftercall//Follow-ups//EN",
        "BEGIN:VEVENT",
        f"UID:{work.key.partition(':')[0]}@aftercall",
        f"DTSTAMP:{made_at:%Y%m%dT%H%M%SZ}",
        *_calendar_times(due),
        f"SUMMARY:{title}",
        *([f"DESCRIPTION:{_escape_ics(work.details)}"] if work.details else []),
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        f"DESCRIPTION:{title}",
        "TRIGGER:PT0S" if "T" in due else "TRIGGER:PT9H",
        "END:VALARM",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    return "".join(_fold_ics(line) + "\r\n" for line in lines)


def _calendar_times(due: str) -> tuple[str, str]:
    if "T" in due:
        start = parse_instant(due)
        end = start + timedelta(minutes=30)
        return f"DTSTART:{start:%Y%m%dT%H%M%SZ}", f"DTEND:{end:%Y%m%dT%H%M%SZ}"
    day = date.fromisoformat(due)
    next_day = day + timedelta(days=1)
    return f"DTSTART;VALUE=DATE:{day:%Y%m%d}", f"DTEND;VALUE=DATE:{next_day:%Y%m%d}"


def _escape_ics(text: str) -> str:
    text = re.sub(r"([\\;,])", r"\\\1", text)
    return text.replace("\r", "").replace("\n", "\\n")


def _fold_ics(line: str) -> str:
    """At most 75 octets a line, never cut inside a character."""
    folded = ""
    width = 0
    for char in line:
        size = len(char.encode())
        if width + size > _MAX_ICS_LINE_OCTETS:
            folded, width = folded + "\r\n ", 1
        folded, width = folded + char, width + size
    return folded


class PeopleSink(WorkspaceSink):
    """`people/`: a note on the page of the person it is about, or of the caller who left it."""

    name = "people"

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would add a note to {self._path(work).name}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        path = self._path(work)
        mark = make_mark(work)
        day = f"{self._clock.now().astimezone(self._settings.zone):%Y-%m-%d}"
        details = " ".join(work.details.splitlines())
        note = ": ".join(part for part in (work.title, details) if part)
        line = f"- {day}: {escape(note)} (call {work.call_id}) {mark}"
        files.edit(
            path, lambda text: add_note(text, work.person or "Notes", line, mark)
        )
        return SinkReceipt(link=str(path.relative_to(self._workspace(work).root)))

    def _path(self, work: SinkWork) -> Path:
        workspace = self._workspace(work)
        if work.person:
            return workspace.root / "people" / f"{slug(work.person)}.md"
        caller = workspace.find_person(work.caller)
        return (caller.folder if caller else workspace.root / "people") / "NOTES.md"


def add_note(text: str | None, title: str, line: str, mark: str) -> str:
    """The page with the note at the end of its notes; the rest of the page stays."""
    page = text or f"# {escape(title)}\n\n{NOTES_HEADING}\n"
    if mark in page:
        return page
    lines = page.rstrip("\n").split("\n")
    if NOTES_HEADING not in lines:
        lines += ["", NOTES_HEADING, ""]
    start = lines.index(NOTES_HEADING) + 1
    end = start
    while end < len(lines) and not lines[end].startswith("#"):
        end += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    gap = [] if end > start else [""]
    return "\n".join([*lines[:end], *gap, line, *lines[end:]]) + "\n"


def is_empty_page(text: str | None) -> bool:
    """Whether nothing but the frame of a page of notes is left."""
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return len(lines) == 2 and lines[0].startswith("# ") and lines[1] == NOTES_HEADING


def write_entry(
    settings: Settings,
    conversation: str,
    legs: Sequence[Call],
    archives: Sequence[str],
    rows: Sequence[FollowUp],
) -> None:
    """Writes `journal/YYYY-MM-DD/`: one entry a conversation, replaced between its two marks.

    The same conversation gets the same file; what people wrote around the marks stays.
    """
    workspace = Workspace.from_settings(settings, legs[0].agent_id)
    began = legs[0].started_at.astimezone(settings.zone)
    path = (
        workspace.root
        / "journal"
        / f"{began:%Y-%m-%d}"
        / f"{began:%H%M}-{conversation}.md"
    )
    entry = "\n".join(_entry_lines(legs, archives, rows, settings.zone))
    title = (
        f"# {began:%H:%M} Call with {escape(legs[-1].caller or 'a withheld number')}"
    )
    files.edit(path, lambda text: replace_block(text, title, entry))


def replace_block(text: str | None, title: str, entry: str) -> str:
    block = f"{BEGIN}\n{entry}\n{END}"
    if text is None:
        return f"{title}\n\n{block}\n"
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return (
        f"{before}{block}{after}" if begin and end else f"{text.rstrip()}\n\n{block}\n"
    )


def _entry_lines(
    legs: Sequence[Call],
    archives: Sequence[str],
    rows: Sequence[FollowUp],
    zone: tzinfo,
) -> list[str]:
    """The lines of one conversation: its calls, then what came of them."""
    lines = ["Calls:"]
    for leg, archive in zip(legs, archives, strict=False):
        start = leg.started_at.astimezone(zone)
        end = leg.ended_at.astimezone(zone)
        reason = leg.end_reason.replace("_", " ")
        lines.append(f"- {start:%H:%M:%S} to {end:%H:%M:%S}, {reason}: `{archive}`")
    requests = [_entry_line(row) for row in rows if row.kind == "request"]
    promises = [_entry_line(row) for row in rows if row.kind == "promise"]
    lines += ["", "Asked for:", *(requests or [f"- {NOTHING}"])]
    if promises:
        lines += ["", "Promised:", *promises]
    return lines


def _entry_line(row: FollowUp) -> str:
    due = f", due {row.due}" if row.due else ""
    end = ""
    if row.link:
        end = f": {row.link if '://' in row.link else escape(row.link)}"
    elif row.reason:
        end = f" ({escape(row.reason)})"
    return f"- {escape(row.title)}{due} — {row.standing}{end}"
