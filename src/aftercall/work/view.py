"""Follow-ups as JSON for API and commands, and as lines for the next call."""

import re
from typing import Any

from aftercall.clock import format_instant
from aftercall.model.followups import Delivery, FollowUp, FollowUpChange
from aftercall.model.people import normalise_caller, split_party
from aftercall.settings import Settings
from aftercall.work.store import FollowUpStore


def followup_json(row: FollowUp) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "request_kind": row.request_kind,
        "title": row.title,
        "details": row.details,
        "person": row.person,
        "due": row.due,
        "state": row.state,
        "standing": row.standing,
        "reason": row.reason,
        "link": row.link,
        "trust": row.trust,
        "sinks": list(row.sinks),
        "conversation": row.conversation,
        "call": row.call_id,
        "agent_id": row.agent_id,
        "caller": row.caller,
        "turns": [{"call": call, "seq": seq} for call, seq in row.turns],
        "words": row.words,
        "fulfilled_by": row.fulfilled_by,
        "remind_at": row.remind_at and format_instant(row.remind_at),
        "created_at": format_instant(row.created_at),
        "changed_at": format_instant(row.changed_at),
    }


def delivery_json(delivery: Delivery) -> dict[str, Any]:
    return {
        "key": delivery.key,
        "sink": delivery.sink,
        "purpose": delivery.purpose,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "reason": delivery.reason,
        "link": delivery.link,
        "response": delivery.response,
        "changed_at": format_instant(delivery.changed_at),
    }


def change_json(change: FollowUpChange) -> dict[str, Any]:
    return {
        "at": format_instant(change.at),
        "who": change.who,
        "what": change.what,
        "note": change.note,
    }


MAX_NEWS_LINES = 10
_ISSUE = re.compile(r"/issues/(\d+)$")
_TOLD = {
    "done": "Done",
    "passed on": "Passed on",
    "noted": "Written down",
    "failed": "Could not be done",
    "refused": "Was not allowed",
    "expired": "Was never approved",
    "held": "Waits for the owner's approval",
}


class FollowUpNews:
    def __init__(self, settings: Settings, followups: FollowUpStore) -> None:
        self._scope = settings.memory.scope
        self._owner = normalise_caller(settings.owner)
        self._followups = followups

    def list_lines(self, agent_id: str, party: str | None) -> tuple[str, ...]:
        """Lines for one party's call. Work of others is included only if memory is shared."""
        if self._scope == "none" or (self._scope == "per_caller" and party is None):
            return ()
        is_owner = party is not None and split_party(party)[0] == self._owner
        rows = self._followups.list_news(
            agent_id,
            party if self._scope == "per_caller" else None,
            limit=MAX_NEWS_LINES,
            with_withheld=is_owner,
        )
        return tuple(_line(row) for row in rows)


def _line(row: FollowUp) -> str:
    number = _ISSUE.search(row.link or "")
    return f"{_TOLD[row.standing]}: {row.title}" + (
        f", number {number[1]}" if number else ""
    )
