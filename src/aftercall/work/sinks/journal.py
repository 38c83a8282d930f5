"""`journal/YYYY-MM-DD/`: one entry a conversation, written anew at each run between its two
marks; the rest of the file is people's.
"""

from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path

from aftercall.model.calls import Call
from aftercall.model.followups import FollowUp
from aftercall.settings import Settings
from aftercall.work.sinks.text import escape
from aftercall.workspace import files
from aftercall.workspace.paths import Workspace

BEGIN = "<!-- aftercall: begin -->"
END = "<!-- aftercall: end -->"
NOTHING = "Nothing was asked for."


def write_entry(
    settings: Settings,
    conversation: str,
    legs: Sequence[Call],
    archives: Sequence[str],
    rows: Sequence[FollowUp],
) -> str:
    """Write the entry; returns its path within the workspace.

    The same conversation again is the same file.
    """
    workspace = Workspace.from_settings(settings, legs[0].agent_id)
    began = legs[0].started_at.astimezone(settings.zone)
    path = workspace.root / "journal" / f"{began:%Y-%m-%d}" / f"{began:%H%M}-{conversation}.md"
    entry = "\n".join(_entry(legs, archives, rows, settings.zone))
    title = f"# {began:%H:%M} Call with {escape(legs[-1].caller or 'a withheld number')}"
    files.edit(path, lambda text: replace_block(text, title, entry))
    return str(Path(path).relative_to(workspace.root))


def replace_block(text: str | None, title: str, entry: str) -> str:
    block = f"{BEGIN}\n{entry}\n{END}"
    if text is None:
        return f"{title}\n\n{block}\n"
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{block}{after}" if begin and end else f"{text.rstrip()}\n\n{block}\n"


def _entry(
    legs: Sequence[Call], archives: Sequence[str], rows: Sequence[FollowUp], zone: tzinfo
) -> list[str]:
    lines = ["Calls:"]
    for leg, archive in zip(legs, archives, strict=False):
        spoken = (
            f"{leg.started_at.astimezone(zone):%H:%M:%S} to "
            f"{leg.ended_at.astimezone(zone):%H:%M:%S}"
        )
        lines.append(f"- {spoken}, {leg.end_reason.replace('_', ' ')}: `{archive}`")
    for heading, kind in (("Asked for:", "request"), ("Promised:", "promise")):
        told = [_line(row) for row in rows if row.kind == kind]
        if told or kind == "request":
            lines += ["", heading, *(told or [f"- {NOTHING}"])]
    return lines


def _line(row: FollowUp) -> str:
    due = f", due {row.due}" if row.due else ""
    end = (
        f": {escape(row.link) if row.link and '://' not in row.link else row.link}"
        if row.link
        else f" ({escape(row.reason)})"
        if row.reason
        else ""
    )
    return f"- {escape(row.title)}{due} — {row.standing}{end}"
