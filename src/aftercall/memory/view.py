"""Facts, their occurrences and the log of extraction as API and commands show them.

A secret shows only that it is there.
"""

from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import datetime, time, timedelta, tzinfo
from typing import Any

from aftercall.clock import format_instant, parse_instant
from aftercall.errors import RefusedInput
from aftercall.memory.store import FactFilter, FactStore
from aftercall.model.facts import Extraction, Fact, Occurrence
from aftercall.model.passages import Passage, SearchHit

HIDDEN = "(secret)"
_INNER = ("key", "identity", "matching")


def fact_json(fact: Fact, *, reveal: bool = False) -> dict[str, Any]:
    """`fact` as it comes from the store; with `reveal`, opened by it."""
    shown = {
        field.name: _plain(getattr(fact, field.name))
        for field in fields(fact)
        if field.name not in _INNER
    }
    hidden = {"content": HIDDEN, "summary": HIDDEN} if fact.is_secret and not reveal else {}
    return (
        {"id": fact.id, "agent_id": fact.key.agent_id, "caller": fact.key.caller} | shown | hidden
    )


def occurrence_json(item: Occurrence, *, is_hidden: bool) -> dict[str, Any]:
    shown = {name: _plain(value) for name, value in asdict(item).items()}
    return shown | ({"words": HIDDEN, "context": HIDDEN} if is_hidden else {})


def whole_fact_json(store: FactStore, fact_id: str, *, reveal: bool = False) -> dict[str, Any]:
    """A fact with every time it was said and the chain it belongs to."""
    fact, occurrences = store.get(fact_id), store.list_occurrences(fact_id)
    if reveal:
        fact, occurrences = store.reveal(fact), [store.reveal(item) for item in occurrences]
    is_hidden = fact.is_secret and not reveal
    return fact_json(fact, reveal=reveal) | {
        "occurrences": [occurrence_json(item, is_hidden=is_hidden) for item in occurrences],
        "history": [link.id for link in store.get_history(fact_id)],
    }


def extraction_json(store: FactStore, call_id: str) -> dict[str, Any] | None:
    entry: Extraction | None = store.find_extraction(call_id)
    if entry is None:
        return None
    return {name: _plain(value) for name, value in asdict(entry).items() if name != "call_id"} | {
        "facts": store.list_ids_of_call(call_id)
    }


def export(
    store: FactStore, wanted: FactFilter, *, reveal: bool = False
) -> Iterable[dict[str, Any]]:
    """Every wanted fact whole, page by page."""
    after = ""
    while page := store.page(FactFilter(**(vars(wanted) | {"after": after, "limit": 500}))):
        for fact in page:
            yield whole_fact_json(store, fact.id, reveal=reveal)
        after = page[-1].id


def parse_as_of(name: str, text: str, zone: tzinfo) -> datetime:
    """A day means what was believed at its end; a time needs its zone."""
    try:
        if len(text) == len("2026-05-03"):
            day = datetime.fromisoformat(text).date()
            return parse_instant(
                datetime.combine(day, time(), zone) + timedelta(days=1) - timedelta(milliseconds=1)
            )
        return parse_instant(text)
    except ValueError:
        raise RefusedInput(
            name, "is not a day (2026-05-03) or a time with its zone (2026-05-03T12:00:00Z)"
        ) from None


def _plain(value: Any) -> Any:
    return format_instant(value) if isinstance(value, datetime) else value


def hit_json(hit: SearchHit) -> dict[str, Any]:
    """The words around a fact stay inside: they are there to be found by, not to be shown."""
    beside = {
        "before": [_passage_json(turn) for turn in hit.before],
        "after": [_passage_json(turn) for turn in hit.after],
    }
    return _passage_json(hit.passage) | {"score": round(hit.score, 4)} | beside


def _passage_json(passage: Passage) -> dict[str, Any]:
    return {
        "kind": passage.kind,
        "call": passage.call_id,
        "turn": passage.seq or None,
        "fact": passage.ref,
        "agent": passage.agent_id,
        "caller": passage.caller,
        "speaker": passage.speaker or None,
        "category": passage.category or None,
        "visibility": passage.visibility,
        "at": format_instant(passage.at),
        "until": format_instant(passage.until) if passage.until else None,
        "mentions": passage.mentions,
        "text": passage.text,
    }
