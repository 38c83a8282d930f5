"""Short messages about the work itself: to the owner after each conversation, and when something is due."""

from collections.abc import Sequence
from dataclasses import replace

from aftercall.model.followups import FollowUp, Run, Work

_COUNTED = {"done": "done", "passed on": "passed on", "noted": "written down", "held": "waits for approval"}


def notice_key(conversation: str, run: int, sink: str) -> str:
    return f"{conversation}:{run}:notice:{sink}"


def notice_work(run: Run, rows: Sequence[FollowUp], key: str) -> Work:
    """Who called, what was asked, what was done, what waits."""
    requests = [row for row in rows if row.kind == "request"]
    counts = [(sum(row.standing == standing for row in requests), told) for standing, told in _COUNTED.items()]
    told = ", ".join([f"{len(requests)} asked for", *(f"{count} {told}" for count, told in counts if count)])
    return Work(
        key=key,
        purpose="notice",
        kind="note",
        title=f"{run.caller or 'A withheld number'} called: {told if requests else 'nothing asked for'}",
        details="\n".join(_line(row) for row in rows if row.kind == "request" or row.state == "broken"),
        caller=run.caller,
        agent_id=run.agent_id,
        conversation=run.conversation,
        call_id=next(iter(run.legs), ""),
        at=run.ended_at,
    )


def reminder_work(row: FollowUp, sink: str) -> Work:
    return replace(Work.of(row, "reminder", f"{row.key}:reminder:{sink}"), kind="reminder", title=f"Due: {row.title}")


def _line(row: FollowUp) -> str:
    what = f"promised, broken: {row.title}" if row.kind == "promise" else f"{row.standing}: {row.title}"
    if row.state == "held":
        return f"{what} ({row.reason}) — approve with: aftercall followups approve {row.id}"
    return f"{what} ({row.link or row.reason})" if row.link or row.reason else what
