"""`people/`: notes on the page of the person they are about, or of the caller who left them."""

from pathlib import Path

from aftercall.clock import Clock
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings import Settings
from aftercall.work.sinks.text import escape, slug
from aftercall.workspace import files
from aftercall.workspace.paths import Workspace

HEADING = "## Notes"


class PeopleSink:
    name = "people"
    leaves_machine = False
    can_repeat = True

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would add a note to {self._path(work).name}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        path = self._path(work)
        mark = f"<!-- aftercall: {work.key[:32]} -->"
        day = f"{self._clock.now().astimezone(self._settings.zone):%Y-%m-%d}"
        told = ": ".join(part for part in (work.title, " ".join(work.details.splitlines())) if part)
        line = f"- {day}: {escape(told)} (call {work.call_id}) {mark}"
        files.edit(path, lambda text: add_note(text, work.person or "Notes", line, mark))
        return SinkReceipt(link=str(path.relative_to(self._workspace(work).root)))

    def _workspace(self, work: SinkWork) -> Workspace:
        return Workspace.from_settings(self._settings, work.agent_id)

    def _path(self, work: SinkWork) -> Path:
        workspace = self._workspace(work)
        if work.person:
            return workspace.root / "people" / f"{slug(work.person)}.md"
        caller = workspace.find_person(work.caller)
        return (caller.folder if caller else workspace.root / "people") / "NOTES.md"


def add_note(text: str | None, title: str, line: str, mark: str) -> str:
    """Under the heading for notes, after the last of them; whatever else stands on the page
    stays as it is.
    """
    page = text or f"# {escape(title)}\n\n{HEADING}\n"
    if mark in page:
        return page
    lines = page.rstrip("\n").split("\n")
    if HEADING not in lines:
        lines += ["", HEADING, ""]
    begin = lines.index(HEADING) + 1
    end = next(
        (number for number in range(begin, len(lines)) if lines[number].startswith("#")), len(lines)
    )
    while end > begin and not lines[end - 1].strip():
        end -= 1
    gap = [] if end > begin else [""]
    return "\n".join([*lines[:end], *gap, line, *lines[end:]]) + "\n"
