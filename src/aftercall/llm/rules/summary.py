"""The call in a few plain sentences: who rang, what was asked, called off, promised and told."""

from collections.abc import Iterable

from aftercall.english.language import LANGUAGES
from aftercall.english.secrets import is_confided
from aftercall.english.stems import stems
from aftercall.english.text import MASK
from aftercall.llm.rules.acts import Act
from aftercall.model.reading import (
    Profile,
    Promise,
    Request,
    UnclearRequest,
    WithdrawnRequest,
)

MAX_ITEMS = 5
MAX_TOLD = 3
MIN_TOLD_STEMS = 2
MAX_TOLD_WORDS = 25


def summarise(
    profile: Profile,
    requests: Iterable[Request],
    unclear: Iterable[UnclearRequest],
    withdrawn: Iterable[WithdrawnRequest],
    promises: Iterable[Promise],
    told: Iterable[str],
) -> str:
    """Built from what was read; `told` says in the caller's words what the call was about."""
    who = profile.call_name or profile.name or "The caller"
    parts = (
        _sentence(f"{who} asked for", [_dated(request) for request in requests]),
        _sentence("May be a request", [item.words for item in unclear]),
        _sentence("Called off", [item.title for item in withdrawn]),
        _sentence("The agent promised", [promise.title for promise in promises]),
    )
    text = " ".join(part for part in parts if part)
    more = _sentence("Also said" if text else f"{who} said", list(told))
    return f"{text} {more}".strip() or f"{who} called; nothing was asked or promised."


def summarise_foreign(language: str, profile: Profile) -> str:
    who = profile.name or "The caller"
    spoken = LANGUAGES.get(language, language)
    return f"{who} called and spoke {spoken}; the words are in the transcript."


def find_told(acts: Iterable[Act], asked: str, refused: frozenset[str]) -> list[str]:
    """Sentences in which the caller tells something that no request holds already."""
    known = asked.lower()
    told = [
        act.matter.said
        for act in acts
        if _tells(act)
        and not stems(act.matter.text) & refused
        and act.matter.said.lower() not in known
    ]
    return list(dict.fromkeys(text[:1].upper() + text[1:] for text in told))[:MAX_TOLD]


def _tells(act: Act) -> bool:
    if (act.speaker, act.kind) != ("caller", "tell") or act.clause.is_question:
        return False
    is_hidden = MASK in act.clause.text or is_confided(act.clause.text)
    is_short = len(act.matter.words) <= MAX_TOLD_WORDS
    return is_short and not is_hidden and len(stems(act.matter.text)) >= MIN_TOLD_STEMS


def _dated(request: Request) -> str:
    return (
        f"{request.title} (by {request.due.isoformat()})"
        if request.due
        else request.title
    )


def _sentence(opening: str, items: list[str]) -> str:
    if not items:
        return ""
    more = f"; and {len(items) - MAX_ITEMS} more" if len(items) > MAX_ITEMS else ""
    return f"{opening}: {'; '.join(items[:MAX_ITEMS])}{more}."
