"""What a pin's page says, made from its history and from the work that belongs to it; and
whether it should be pinned still.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from aftercall.clock import format_instant
from aftercall.memory.pins.topics import iter_terms
from aftercall.model.facts import Pin, PinItem, PinMention, PinPage, PinState, SpokenTopic

OPEN_STATES = ("open", "held", "doing", "failed", "unknown", "broken")
QUIET_PERIOD = timedelta(days=14)
"""Work that is done settles a topic once nobody has come back to it for so long: done may mean
no more than handed over.
"""
SETTLED_REASON = "the caller said that it is settled"
SPOKEN_OF_REASON = "spoken of in {} conversations"
STALE_REASON = "not spoken of since {:%d %B %Y}"
WORK_DONE_REASON = "what was asked for is done, and nobody came back to it"
COMMON_REASON = "many callers speak of it"
MAX_HISTORY_MENTIONS = 100
MAX_ABOUT_MENTIONS = 10  # of the first calls, which tell what it is about


def is_about(call: SpokenTopic, pin: Pin) -> bool:
    """By its anchor; or by most of the other terms it goes by."""
    others = set(pin.terms[1:])
    return pin.anchor in call.terms or (
        len(others) > 1 and len(others & call.terms) * 2 > len(others)
    )


def is_central(call: SpokenTopic, pin: Pin) -> bool:
    return is_about(call, pin) and bool(set(pin.terms) & call.central)


def is_settled(call: SpokenTopic, pin: Pin) -> bool:
    return is_about(call, pin) and bool(set(pin.terms) & call.settled)


def make_history(pin: Pin, spoken: Sequence[SpokenTopic]) -> tuple[PinMention, ...]:
    """The calls that spoke of it; what is too old to be among `spoken` stays as it was written
    down.
    """
    fresh = {call.call_id for call in spoken}
    kept = [mention for mention in pin.history if mention.call_id not in fresh]
    found = [
        PinMention(call.call_id, call.conversation, call.at, _best_words(call, pin))
        for call in spoken
        if is_about(call, pin)
    ]
    return tuple(
        sorted([*kept, *found], key=lambda mention: (mention.at, mention.call_id))[
            -MAX_HISTORY_MENTIONS:
        ]
    )


def choose_state(
    pin: Pin,
    spoken: Sequence[SpokenTopic],
    items: Iterable[PinItem],
    now: datetime,
    stale_days: int,
) -> tuple[PinState, str]:
    """How it should stand: a function of what is written down, so that asking again changes
    nothing.
    """
    telling = [call for call in spoken if is_central(call, pin) or is_settled(call, pin)]
    last_at = pin.history[-1].at if pin.history else pin.last_at
    own = list_pin_items(pin, items)
    is_open = any(item.state in OPEN_STATES for item in own)
    if telling and is_settled(telling[-1], pin) and not is_open:
        return "unpinned", SETTLED_REASON
    if stale_days and now - last_at > timedelta(days=stale_days):
        return "unpinned", STALE_REASON.format(last_at)
    if (
        own
        and not is_open
        and now - max(last_at, *(item.changed_at for item in own)) > QUIET_PERIOD
    ):
        return "unpinned", WORK_DONE_REASON
    return "pinned", SPOKEN_OF_REASON.format(len({mention.conversation for mention in pin.history}))


def list_pin_items(pin: Pin, items: Iterable[PinItem]) -> tuple[PinItem, ...]:
    return tuple(item for item in items if pin.anchor in item.terms)


def add_terms(items: Iterable[tuple[PinItem, str]]) -> list[PinItem]:
    """Items with the terms of their words, by which they belong to a pin."""
    return [replace(item, terms=frozenset(iter_terms(words))) for item, words in items]


def make_page(pin: Pin, items: Iterable[PinItem], zone: tzinfo) -> PinPage:
    own = list_pin_items(pin, items)
    is_open, is_done = (
        tuple(item for item in own if item.state in states) for states in (OPEN_STATES, ("done",))
    )
    about = max(
        pin.history[:MAX_ABOUT_MENTIONS],
        key=lambda mention: _weight(iter_terms(mention.words), pin),
        default=None,
    )
    return PinPage(
        pin, about.words if about else "", _status(pin, is_open, is_done, zone), is_open, is_done
    )


def _status(pin: Pin, is_open: Sequence[PinItem], is_done: Sequence[PinItem], zone: tzinfo) -> str:
    if pin.state == "unpinned":
        return pin.reason
    last = pin.history[-1] if pin.history else None
    told = (
        f"last spoken of on {last.at.astimezone(zone):%d %B %Y}: {last.words}"
        if last and last.words
        else "not spoken of yet"
    )
    ended = Counter(item.standing or item.state for item in is_done)
    counts = ", ".join(
        f"{count} {name}"
        for name, count in (("open", len(is_open)), *sorted(ended.items()))
        if count
    )
    return f"{told} ({counts})" if counts else told


def _best_words(call: SpokenTopic, pin: Pin) -> str:
    """The sentence that says most of it; of those that say as much, the last one."""
    weighed = [(_weight(sentence.terms, pin), number) for number, sentence in enumerate(call.said)]
    if not weighed or not max(weighed)[0]:
        return ""
    return call.said[max(weighed)[1]].text


def _weight(terms: Iterable[str], pin: Pin) -> int:
    return len(set(pin.terms).intersection(terms))


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
        "history": [
            {"call": each.call_id, "at": format_instant(each.at), "words": each.words}
            for each in pin.history
        ],
        "terms": list(pin.terms),
        "since": format_instant(pin.since),
        "last_at": format_instant(pin.last_at),
        "changed_at": format_instant(pin.changed_at),
    }


def _item_json(item: PinItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "title": item.title,
        "state": item.state,
        "standing": item.standing or item.state,
        "due": item.due,
    }
