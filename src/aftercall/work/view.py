"""Follow-ups as API and commands show them."""

from typing import Any

from aftercall.model.followups import Delivery, FollowUp, FollowUpChange
from aftercall.model.instants import format_instant


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
