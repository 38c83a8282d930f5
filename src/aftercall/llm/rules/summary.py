"""The call in a few plain sentences: who rang, what was asked, called off, promised, decided
and told.
"""

from collections.abc import Iterable

from aftercall.llm.rules.language import NAMES
from aftercall.model.reading import (
    FactDraft,
    Profile,
    Promise,
    Request,
    WithdrawnRequest,
)

_MOST = 5


def summarise(
    profile: Profile,
    requests: list[Request],
    withdrawn: list[WithdrawnRequest],
    promises: list[Promise],
    facts: list[FactDraft],
    said: Iterable[str] = (),
) -> str:
    """Built from what was read; `said` are sentences of the caller that tell what the call was
    about.
    """
    who = profile.call_name or profile.name or "The caller"
    told = [
        fact.summary
        for fact in facts
        if fact.visibility != "secret"
        and fact.category in ("decision", "action_item", "correction")
    ]
    asked = " ".join(
        (*(f"{request.title} {request.details}" for request in requests), *told)
    ).lower()
    told += [sentence for sentence in said if sentence.lower() not in asked]
    parts = (
        _sentence(f"{who} asked for", (_dated(request) for request in requests)),
        _sentence("Called off", (item.title for item in withdrawn)),
        _sentence("The agent promised", (promise.title for promise in promises)),
    )
    text = " ".join(part for part in parts if part)
    more = _sentence("Also said" if text else f"{who} said", dict.fromkeys(told))
    return f"{text} {more}".strip() or f"{who} called; nothing was asked or promised."


def summarise_foreign(language: str, profile: Profile) -> str:
    who = profile.name or "The caller"
    return f"{who} called and spoke {NAMES.get(language, language)}; the words are in the transcript."


def _dated(request: Request) -> str:
    return (
        f"{request.title} (by {request.due.isoformat()})"
        if request.due
        else request.title
    )


def _sentence(opening: str, items: Iterable[str]) -> str:
    kept = [item for item in items if item]
    if not kept:
        return ""
    more = f"; and {len(kept) - _MOST} more" if len(kept) > _MOST else ""
    return f"{opening}: {'; '.join(kept[:_MOST])}{more}."
