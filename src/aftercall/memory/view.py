"""Facts, occurrences, extractions and search hits as JSON for the API and the commands.

A secret only shows that it exists.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, time, timedelta, tzinfo
from typing import Any

from aftercall.clock import format_instant, parse_instant
from aftercall.db.corrections import Correction
from aftercall.errors import RefusedInput
from aftercall.memory.fact_store import FactFilter, FactStore
from aftercall.memory.vault import is_sealed
from aftercall.model.facts import Fact, Occurrence
from aftercall.model.passages import Passage, SearchHit

HIDDEN = "(secret)"
PAGE_SIZE = 500
_INTERNAL = ("key", "identity", "matching")


def fact_json(fact: Fact, *, reveal: bool = False) -> dict[str, Any]:
    """With `reveal`, a fact whose secrets `FactStore.reveal` opened."""
    shown = {"id": fact.id, "agent_id": fact.key.agent_id, "caller": fact.key.caller}
    shown |= {
        name: _plain(value)
        for name, value in vars(fact).items()
        if name not in _INTERNAL
    }
    shown["state"] = fact.state
    if fact.is_secret and not reveal:
        shown |= {"content": HIDDEN, "summary": HIDDEN}
    return shown


def occurrence_json(item: Occurrence, *, is_hidden: bool) -> dict[str, Any]:
    shown = {name: _plain(value) for name, value in vars(item).items()}
    return shown | ({"words": HIDDEN, "context": HIDDEN} if is_hidden else {})


def whole_fact_json(
    store: FactStore, fact_id: str, *, reveal: bool = False
) -> dict[str, Any]:
    """A fact with its occurrences and the chain it belongs to."""
    fact, occurrences = store.get(fact_id), store.list_occurrences(fact_id)
    if reveal:
        fact, occurrences = (
            store.reveal(fact),
            [store.reveal(item) for item in occurrences],
        )
    is_hidden = fact.is_secret and not reveal
    return fact_json(fact, reveal=reveal) | {
        "occurrences": [
            occurrence_json(item, is_hidden=is_hidden) for item in occurrences
        ],
        "history": [link.id for link in store.get_history(fact_id)],
        "disputed_with": [
            other.id for other in store.list_dispute(fact) if other.id != fact_id
        ],
    }


def extraction_json(store: FactStore, call_id: str) -> dict[str, Any] | None:
    entry = store.find_extraction(call_id)
    if entry is None:
        return None
    shown = {
        name: _plain(value) for name, value in vars(entry).items() if name != "call_id"
    }
    return shown | {"facts": store.list_ids_of_call(call_id)}


def iter_whole_facts(
    store: FactStore, wanted: FactFilter, *, reveal: bool = False
) -> Iterable[dict[str, Any]]:
    """Every matching fact, read page by page."""
    after = ""
    while page := store.page(replace(wanted, after=after, limit=PAGE_SIZE)):
        for fact in page:
            yield whole_fact_json(store, fact.id, reveal=reveal)
        after = page[-1].id


def parse_as_of(name: str, text: str, zone: tzinfo) -> datetime:
    """A day means its end; a time needs a zone."""
    try:
        if len(text) != len("2026-05-03"):
            return parse_instant(text)
        day = datetime.fromisoformat(text).date()
        next_day = datetime.combine(day, time(), zone) + timedelta(days=1)
        return parse_instant(next_day - timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        raise RefusedInput(
            name,
            "is not a day (2026-05-03) or a time with its zone (2026-05-03T12:00:00Z)",
        ) from None


def _plain(value: Any) -> Any:
    return format_instant(value) if isinstance(value, datetime) else value


def hit_json(hit: SearchHit) -> dict[str, Any]:
    """Without the words around a fact: search finds it by them, but they are not shown."""
    return _passage_json(hit.passage) | {
        "score": round(hit.score, 4),
        "before": [_passage_json(turn) for turn in hit.before],
        "after": [_passage_json(turn) for turn in hit.after],
    }


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


def correction_json(correction: Correction) -> dict[str, Any]:
    """A secret only shows that it exists."""
    old, new = correction.old, correction.new
    return {
        "id": correction.id,
        "what": correction.what,
        "caller": correction.caller,
        "call": correction.call_id,
        "old": HIDDEN if is_sealed(old or "") else old,
        "new": HIDDEN if is_sealed(new or "") else new,
        "who": correction.who,
        "at": format_instant(correction.at),
    }
