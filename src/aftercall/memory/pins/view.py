"""Pins as API and commands show them."""

from typing import Any

from aftercall.model.instants import format_instant
from aftercall.model.pins import Item, PinPage


def pin_json(shown: PinPage) -> dict[str, Any]:
    pin = shown.pin
    return {
        "id": pin.id,
        "agent_id": pin.key.agent_id,
        "caller": pin.key.caller,
        "title": pin.title,
        "state": pin.state,
        "reason": pin.reason,
        "is_decided_by_hand": pin.is_decided_by_hand,
        "note": pin.note,
        "about": shown.about,
        "status": shown.status,
        "open_items": [_item_json(item) for item in shown.open_items],
        "done_items": [_item_json(item) for item in shown.done_items],
        "history": [{"call": each.call_id, "at": format_instant(each.at), "words": each.words} for each in pin.history],
        "terms": list(pin.terms),
        "since": format_instant(pin.since),
        "last_at": format_instant(pin.last_at),
        "changed_at": format_instant(pin.changed_at),
    }


def _item_json(item: Item) -> dict[str, Any]:
    return {"id": item.id, "title": item.title, "state": item.state, "standing": item.standing or item.state, "due": item.due}
