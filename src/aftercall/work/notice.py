"""Short messages about the work itself: to the owner after each conversation, and when something is due."""

from collections.abc import Sequence

from aftercall.model.followups import FollowUp, Work
from aftercall.settings import Settings

_WAITS = "waits for approval"


def notice_key(conversation: str, run: int, sink: str) -> str:
    return f"{conversation}:{run}:notice:{sink}"


def notice_work(settings: Settings, conversation: str, rows: Sequence[FollowUp], key: str) -> Work:
    """Who called, what was asked, what was done, what waits."""
    first = rows[0]
    requests = [row for row in rows if row.kind == "request"]
    held = sum(row.state == "held" for row in requests)
    done = sum(row.state == "done" for row in requests)
    title = f"{first.caller or 'A withheld number'} called: {len(requests)} asked, {done} done" + (f", {held} {_WAITS}" if held else "")
    lines = [_line(row) for row in rows if row.kind == "request" or row.state == "broken"]
    return Work(
        key=key,
        purpose="notice",
        kind="note",
        title=title,
        details="\n".join(lines),
        caller=first.caller,
        agent_id=first.agent_id,
        conversation=conversation,
        call_id=first.call_id,
        at=first.created_at,
    )


def reminder_work(row: FollowUp, sink: str) -> Work:
    return Work(
        key=f"{row.key}:reminder:{sink}",
        purpose="reminder",
        kind="reminder",
        title=f"Due: {row.title}",
        details=row.details,
        person=row.person,
        due=row.due,
        caller=row.caller,
        agent_id=row.agent_id,
        conversation=row.conversation,
        call_id=row.call_id,
        trust=row.trust,
        at=row.created_at,
    )


def _line(row: FollowUp) -> str:
    what = f"promised, broken: {row.title}" if row.kind == "promise" else f"{row.state}: {row.title}"
    if row.state == "held":
        return f"{what} ({row.reason}) — approve with: aftercall followups approve {row.id}"
    return f"{what} ({row.link or row.reason})" if row.link or row.reason else what
