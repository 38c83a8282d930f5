"""What a pin's page says, made from its history and from the work that belongs to it; and whether it should be pinned still."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo

from aftercall.memory.pins.topics import terms_of
from aftercall.model.pins import Item, Mention, Pin, PinPage, PinState, Spoken

OPEN = ("open", "held", "doing", "failed", "unknown", "broken")
QUIET = timedelta(days=14)
"""Work that is done settles a topic once nobody has come back to it for so long: done may mean no more than handed over."""
SETTLED = "the caller said that it is settled"
SPOKEN_OF = "spoken of in {} conversations"
STALE = "not spoken of since {:%d %B %Y}"
WORK_DONE = "what was asked for is done, and nobody came back to it"
COMMON = "many callers speak of it"
MOST_HISTORY = 100
MOST_WEIGHED = 10  # of the first calls, which tell what it is about


def is_about(call: Spoken, pin: Pin) -> bool:
    """By its anchor; or by most of the other terms it goes by."""
    others = set(pin.terms[1:])
    return pin.anchor in call.terms or (len(others) > 1 and len(others & call.terms) * 2 > len(others))


def is_central(call: Spoken, pin: Pin) -> bool:
    return is_about(call, pin) and bool(set(pin.terms) & call.central)


def tells_settled(call: Spoken, pin: Pin) -> bool:
    return is_about(call, pin) and bool(set(pin.terms) & call.settled)


def make_history(pin: Pin, spoken: Sequence[Spoken]) -> tuple[Mention, ...]:
    """The calls that spoke of it; what is too old to be among `spoken` stays as it was written down."""
    fresh = {call.call_id for call in spoken}
    kept = [mention for mention in pin.history if mention.call_id not in fresh]
    found = [Mention(call.call_id, call.conversation, call.at, _best_words(call, pin)) for call in spoken if is_about(call, pin)]
    return tuple(sorted([*kept, *found], key=lambda mention: (mention.at, mention.call_id))[-MOST_HISTORY:])


def judge(pin: Pin, spoken: Sequence[Spoken], items: Iterable[Item], now: datetime, stale_days: int) -> tuple[PinState, str]:
    """How it should stand: a function of what is written down, so that asking again changes nothing."""
    telling = [call for call in spoken if is_central(call, pin) or tells_settled(call, pin)]
    last_at = pin.history[-1].at if pin.history else pin.last_at
    own = items_of(pin, items)
    is_open = any(item.state in OPEN for item in own)
    if telling and tells_settled(telling[-1], pin) and not is_open:
        return "unpinned", SETTLED
    if stale_days and now - last_at > timedelta(days=stale_days):
        return "unpinned", STALE.format(last_at)
    if own and not is_open and now - max(last_at, *(item.changed_at for item in own)) > QUIET:
        return "unpinned", WORK_DONE
    return "pinned", SPOKEN_OF.format(len({mention.conversation for mention in pin.history}))


def items_of(pin: Pin, items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(item for item in items if pin.anchor in item.terms)


def with_terms(items: Iterable[tuple[Item, str]]) -> list[Item]:
    """Items with the terms of their words, by which they belong to a pin."""
    return [replace(item, terms=frozenset(terms_of(words))) for item, words in items]


def make_page(pin: Pin, items: Iterable[Item], zone: tzinfo) -> PinPage:
    own = items_of(pin, items)
    is_open, is_done = (tuple(item for item in own if item.state in states) for states in (OPEN, ("done",)))
    about = max(pin.history[:MOST_WEIGHED], key=lambda mention: _weight(terms_of(mention.words), pin), default=None)
    return PinPage(pin, about.words if about else "", _status(pin, is_open, is_done, zone), is_open, is_done)


def _status(pin: Pin, is_open: Sequence[Item], is_done: Sequence[Item], zone: tzinfo) -> str:
    if pin.state == "unpinned":
        return pin.reason
    last = pin.history[-1] if pin.history else None
    told = f"last spoken of on {last.at.astimezone(zone):%d %B %Y}: {last.words}" if last and last.words else "not spoken of yet"
    ended = Counter(item.standing or item.state for item in is_done)
    counts = ", ".join(f"{count} {name}" for name, count in (("open", len(is_open)), *sorted(ended.items())) if count)
    return f"{told} ({counts})" if counts else told


def _best_words(call: Spoken, pin: Pin) -> str:
    """The sentence that says most of it; of those that say as much, the last one."""
    weighed = [(_weight(sentence.terms, pin), number) for number, sentence in enumerate(call.said)]
    if not weighed or not max(weighed)[0]:
        return ""
    return call.said[max(weighed)[1]].text


def _weight(terms: Iterable[str], pin: Pin) -> int:
    return len(set(pin.terms).intersection(terms))
