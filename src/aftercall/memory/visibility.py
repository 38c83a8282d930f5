"""How far a fact may go: shared, private or secret.

A reader's level can be raised here, never lowered.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.secrets import Secret, find_secrets, mask
from aftercall.llm.rules.sentences import MASK
from aftercall.memory.words import to_terms
from aftercall.model.calls import Call
from aftercall.model.followups import Trust
from aftercall.model.reading import FactDraft, Visibility
from aftercall.model.turns import Turn
from aftercall.settings.sections import MemorySettings

T = TypeVar("T", bound="_HasVisibility")
MIN_SHARED_TERM_RATIO = 0.6

LEVELS: tuple[Visibility, ...] = ("shared", "private", "secret")
# By category or by topic; what is named in neither is shared.
DEFAULT_VISIBILITY: dict[str, Visibility] = {
    "confided": "secret",
    "medical": "secret",
    "credentials": "secret",
    "financial": "secret",
    "operational": "private",
}
REDACTION_CHAR = "•"
_TOPICS: dict[str, Cue] = {
    "credentials": Cue(
        r"\b(?:pass ?words?|pass ?phrase|pass ?code|pin(?: number| code)?|cvv|cvc|(?:api"
        "|access|secret|private|"
        r"recovery) (?:key|token|code)|"
        r"security (?:code|word|answer|question))\b.{0,40}?(?:\bis\b|\bare\b|:|=|\d{3,})",
    ),
    "financial": Cue(
        r"\b(?:iban|sort code|routing number|account number|card number|social security|ssn"
        r"|tax (?:id|number))\b|"
        r"\bi (?:earn|make|owe) \D{0,12}\d|\b(?:my|our) (?:salary|income|debts?|savings"
        r"|mortgage)\b|"
        r"\b(?:bankrupt\w*|in debt|credit score)\b",
    ),
    "medical": Cue(
        r"\b(?:diagnos\w+|prescri\w+|chemo\w*|antidepress\w+|biops\w+|miscarriage|abortion"
        r"|suicid\w+|hiv|rehab|psychiatr\w+|"
        r"(?:test|blood|scan) results?|medications?|overdose)\b",
    ),
    "operational": Cue(
        r"\b(?:workflows?|run ?books?|deployments?|cron ?jobs?|on-?call rota|internal process"
        r"|escalation path)\b"
    ),
}
_FIGURE = re.compile(r"\d")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2} ?(?:[A-Z0-9]{4} ?){3,7}\b", re.I)
_LONG_NUMBER = re.compile(r"(?<!\d)(?:\d[ -]?){13,19}(?!\d)")


_NAME = re.compile(r"(?<=\w )[A-Z][\w'’-]+")
_NUMBER = re.compile(r"\d[\d -]{2,}\d|\d{3,}")


def to_secrets(words: Iterable[str]) -> list[Secret]:
    """Words that a fact told in confidence rests on, as they are hunted for: whole, in part,
    and the names and numbers in them alone.
    """
    pieces = [
        piece for said in words for piece in (said, *_NAME.findall(said), *_NUMBER.findall(said))
    ]
    return [Secret(1, piece, piece, "person") for piece in dict.fromkeys(pieces) if piece.strip()]


class _HasVisibility(Protocol):
    @property
    def visibility(self) -> Visibility: ...


def find_call_secrets(call: Call, drafts: Iterable[FactDraft]) -> list[Secret]:
    """Every secret of a call that our rules find, and those that the reader marked."""
    return [
        *find_secrets(call.turns),
        *to_secrets(draft.words for draft in drafts if draft.visibility == "secret"),
    ]


def classify(draft: FactDraft, secrets: list[Secret], settings: MemorySettings) -> Visibility:
    topics = {topic for text in {draft.text, draft.words} for topic in find_sensitive_topics(text)}
    levels = [
        settings.visibility.get(name) or DEFAULT_VISIBILITY.get(name, "shared")
        for name in (draft.category, *topics)
    ]
    if (
        has_secret(draft.text, secrets)
        or has_secret(draft.words, secrets)
        or _has_secret_word(draft, settings.secret_words)
    ):
        levels.append("secret")
    return max((draft.visibility, *levels), key=LEVELS.index)


def find_sensitive_topics(text: str) -> list[str]:
    found = [name for name, pattern in _TOPICS.items() if pattern.search(text)]
    if _FIGURE.search(text) and (
        _IBAN.search(text) or any(_is_card(match.group()) for match in _LONG_NUMBER.finditer(text))
    ):
        found.append("financial")
    if any(
        find_secrets(
            (Turn.model_construct(seq=1, speaker="caller", text=text, at=None, confidence=None),)
        )
    ):
        found.append("confided")
    return found


def has_secret(text: str, secrets: list[Secret]) -> bool:
    return mask(text, secrets) != text


def mask_secrets(text: str, secrets: list[Secret]) -> str:
    """The text with what is confided unreadable, for whoever may see the rest."""
    hidden = mask(text, secrets)
    hidden = _LONG_NUMBER.sub(
        lambda match: MASK if _is_card(match.group()) else match.group(), hidden
    )
    return re.sub(f"{MASK}+", REDACTION_CHAR * 3, hidden)


def is_releasable(level: Visibility, trust: Trust, settings: MemorySettings) -> bool:
    """Whether something of this level may be told on the phone: a secret never, the rest by how
    sure we are who is calling.
    """
    return level != "secret" and (
        trust == "verified" or LEVELS.index(level) <= LEVELS.index(settings.release)
    )


def filter_releasable(told: Iterable[T], trust: Trust, settings: MemorySettings) -> list[T]:
    """Of facts, passages or whatever else has a level, those that this caller may hear.

    Briefings and lookups both ask here.
    """
    return [item for item in told if is_releasable(item.visibility, trust, settings)]


def gives_away(text: str, fact: str) -> bool:
    """Whether a text gives away most of what a fact says."""
    words = set(to_terms(fact).split())
    return bool(words) and len(words & set(to_terms(text).split())) >= MIN_SHARED_TERM_RATIO * len(
        words
    )


def max_visibility(level: Visibility, other: Visibility) -> Visibility:
    return max(level, other, key=LEVELS.index)


def _has_secret_word(draft: FactDraft, words: tuple[str, ...]) -> bool:
    said = f"{draft.text} {draft.words}".casefold()
    return any(re.search(rf"\b{re.escape(word.casefold())}\b", said) for word in words if word)


def _is_card(number: str) -> bool:
    """Luhn's check: the last figure of a card's number proves the others."""
    figures = [int(figure) for figure in number if figure.isdecimal()]
    doubled = [
        figure if at % 2 == 0 else sum(divmod(figure * 2, 10))
        for at, figure in enumerate(reversed(figures))
    ]
    return sum(doubled) % 10 == 0


def redact_call(call: dict[str, Any], confided: Sequence[str] = ()) -> dict[str, Any]:
    """`call` as journal/view.py gives it; `confided` are words of it that memory holds as
    secrets.
    """
    turns = tuple(
        Turn.model_construct(seq=seq, speaker=turn["speaker"], text=turn["text"])
        for seq, turn in enumerate(call["turns"], 1)
    )
    confidences = [*find_secrets(turns), *to_secrets(confided)]
    return call | {
        "turns": [
            turn | {"text": mask_secrets(turn["text"], confidences)} for turn in call["turns"]
        ],
        "events": _mask_all(call["events"], confidences),
    }


def redact_turns(turns: tuple[Turn, ...], confided: Sequence[str] = ()) -> tuple[Turn, ...]:
    confidences = [*find_secrets(turns), *to_secrets(confided)]
    return tuple(
        turn.model_copy(update={"text": mask_secrets(turn.text, confidences)}) for turn in turns
    )


def _mask_all(value: Any, confidences: list[Secret]) -> Any:
    if isinstance(value, str):
        return mask_secrets(value, confidences)
    if isinstance(value, dict):
        return {name: _mask_all(inner, confidences) for name, inner in value.items()}
    return [_mask_all(inner, confidences) for inner in value] if isinstance(value, list) else value
