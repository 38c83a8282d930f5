"""`tasks/`: a markdown file a task, and an `.ics` beside it where something is due."""

from pathlib import Path

from aftercall.clock import Clock
from aftercall.model.followups import Receipt, Work
from aftercall.settings import Settings
from aftercall.work.sinks.calendar import make_calendar
from aftercall.work.sinks.text import escape, quote, slug, yaml_string
from aftercall.workspace import files
from aftercall.workspace.paths import Workspace


class TasksSink:
    name = "tasks"
    leaves_machine = False
    can_repeat = True

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    def rehearse(self, work: Work) -> str:
        return f"would write {self._path(work).name}" + (" and an .ics" if work.due else "")

    def deliver(self, work: Work) -> Receipt:
        path = self._path(work)
        now = self._clock.now()
        page = _page(work, self._settings.zone.key, f"{now.astimezone(self._settings.zone):%Y-%m-%d}")
        files.edit(path, lambda text: page if text is None else text)  # a task that is there is its owner's
        if work.due:
            calendar = make_calendar(work, now)
            files.edit(path.with_suffix(".ics"), lambda text: calendar if text is None else text)
        return Receipt(link=str(path.relative_to(self._root(work))))

    def _root(self, work: Work) -> Path:
        return Workspace.of(self._settings, work.agent_id).root

    def _path(self, work: Work) -> Path:
        """Named by its title and its key: the same task is found again, and two of one title are two."""
        return self._root(work) / "tasks" / f"{slug(work.title)}-{work.key[:8]}.md"


def _page(work: Work, zone: str, today: str) -> str:
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
    lines = ["---", *(f"{name}: {yaml_string(value)}" for name, value in front.items() if value), "---", f"# {escape(work.title)}"]
    lines += ["", quote(work.details)] if work.details else []
    lines += ["", "In the caller's words:", "", quote(work.words)] if work.words else []
    return "\n".join(lines) + "\n"
