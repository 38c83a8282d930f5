"""The state and the page of a pin, from its history and the work that belongs to it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from aftercall.clock import format_instant
from aftercall.memory.pins.topics import iter_terms
from aftercall.model.facts import (
    Pin,
    PinItem,
    PinMention,
    PinPage,
    PinState,
    SpokenTopic,
)

OPEN_STATES = ("open", "held", "doing", "failed", "unknown", "broken")
QUIET_PERIOD = timedelta(days=14)
"""Finished work settles a topic that was not mentioned for so long: the work may only have been
handed over.
"""
SETTLED_REASON = "the caller said that it is settled"
SPOKEN_OF_REASON = "spoken of in {} conversations"
STALE_REASON = "not spoken of since {:%d %B %Y}"
WORK_DONE_REASON = "what was asked for is done, and nobody came back to it"
COMMON_REASON = "many callers speak of it"
MAX_HISTORY_MENTIONS = 100
MAX_ABOUT_MENTIONS = 10  # the first mentions say what a topic is about


def is_about(call: SpokenTopic, pin: Pin) -> bool:
    """Whether the call has the anchor of the pin, or most of its other terms."""
    if pin.anchor in call.terms:
        return True
    others = set(pin.terms[1:])
    return len(others) > 1 and len(others & call.terms) * 2 > len(others)


def is_central(call: SpokenTopic, pin: Pin) -> bool:
    return is_about(call, pin) and bool(set(pin.terms) & call.central)


def is_settled(call: SpokenTopic, pin: Pin) -> bool:
    return is_about(call, pin) and bool(set(pin.terms) & call.settled)


def make_history(pin: Pin, spoken: Sequence[SpokenTopic]) -> tuple[PinMention, ...]:
    """The calls that mention it. Mentions too old to be in `spoken` stay."""
    spoken_ids = {call.call_id for call in spoken}
    mentions = [mention for mention in pin.history if mention.call_id not in spoken_ids]
    for call in spoken:
        if is_about(call, pin):
            words = _find_best_words(call, pin)
            mentions.append(PinMention(call.call_id, call.conversation, call.at, words))
    mentions.sort(key=lambda mention: (mention.at, mention.call_id))
    return tuple(mentions[-MAX_HISTORY_MENTIONS:])


def choose_state(
    pin: Pin,
    spoken: Sequence[SpokenTopic],
    items: Iterable[PinItem],
    now: datetime,
    stale_days: int,
) -> tuple[PinState, str]:
    """State and reason, from stored data alone: computing it again changes nothing."""
    telling = [
        call for call in spoken if is_central(call, pin) or is_settled(call, pin)
    ]
    last_at = pin.history[-1].at if pin.history else pin.last_at
    own = list_pin_items(pin, items)
    is_open = any(item.state in OPEN_STATES for item in own)
    if telling and is_settled(telling[-1], pin) and not is_open:
        return "unpinned", SETTLED_REASON
    if stale_days and now - last_at > timedelta(days=stale_days):
        return "unpinned", STALE_REASON.format(last_at)
    if own and not is_open:
        changed_at = max(last_at, *(item.changed_at for item in own))
        if now - changed_at > QUIET_PERIOD:
            return "unpinned", WORK_DONE_REASON
    conversations = {mention.conversation for mention in pin.history}
    return "pinned", SPOKEN_OF_REASON.format(len(conversations))


def list_pin_items(pin: Pin, items: Iterable[PinItem]) -> tuple[PinItem, ...]:
    return tuple(item for item in items if pin.anchor in item.terms)


def add_terms(items: Iterable[tuple[PinItem, str]]) -> list[PinItem]:
    """Add the terms that connect an item with a pin."""
    return [replace(item, terms=frozenset(iter_terms(words))) for item, words in items]


def make_page(pin: Pin, items: Iterable[PinItem], zone: tzinfo) -> PinPage:
    own = list_pin_items(pin, items)
    open_items = tuple(item for item in own if item.state in OPEN_STATES)
    done_items = tuple(item for item in own if item.state == "done")
    about = max(
        pin.history[:MAX_ABOUT_MENTIONS],
        key=lambda mention: _count_terms(iter_terms(mention.words), pin),
        default=None,
    )
    status = _make_status(pin, open_items, done_items, zone)
    return PinPage(pin, about.words if about else "", status, open_items, done_items)


def _make_status(
    pin: Pin, open_items: Sequence[PinItem], done_items: Sequence[PinItem], zone: tzinfo
) -> str:
    if pin.state == "unpinned":
        return pin.reason
    status = "not spoken of yet"
    if pin.history and pin.history[-1].words:
        last = pin.history[-1]
        status = f"last spoken of on {last.at.astimezone(zone):%d %B %Y}: {last.words}"
    done = Counter(item.standing or item.state for item in done_items)
    counts = [f"{count} {name}" for name, count in sorted(done.items())]
    if open_items:
        counts.insert(0, f"{len(open_items)} open")
    return f"{status} ({', '.join(counts)})" if counts else status


def _find_best_words(call: SpokenTopic, pin: Pin) -> str:
    """The sentence with most terms of the pin; the last one of several."""
    best, words = 1, ""
    for sentence in call.said:
        count = _count_terms(sentence.terms, pin)
        if count >= best:
            best, words = count, sentence.text
    return words


def _count_terms(terms: Iterable[str], pin: Pin) -> int:
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
