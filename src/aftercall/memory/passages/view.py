"""A hit as API and commands show it."""

from typing import Any

from aftercall.model.instants import format_instant
from aftercall.model.passages import Hit, Passage


def hit_json(hit: Hit) -> dict[str, Any]:
    """The words around a fact stay inside: they are there to be found by, not to be shown."""
    beside = {"before": [_passage_json(turn) for turn in hit.before], "after": [_passage_json(turn) for turn in hit.after]}
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
