"""How far a fact may go: shared, private or secret. A reader's level can be raised here, never lowered."""

import re
from collections.abc import Iterable
from typing import Protocol, TypeVar

from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.secrets import Secret, find_secrets, mask
from aftercall.llm.rules.sentences import MASK
from aftercall.memory.words import to_terms
from aftercall.model.calls import Call
from aftercall.model.followups import Trust
from aftercall.model.reading import FactDraft, Visibility
from aftercall.model.turns import Turn
from aftercall.settings import MemorySettings

T = TypeVar("T", bound="_Levelled")
MOST_OF = 0.6

LEVELS: tuple[Visibility, ...] = ("shared", "private", "secret")
# By category or by topic; what is named in neither is shared.
DEFAULTS: dict[str, Visibility] = {
    "confided": "secret",
    "medical": "secret",
    "credentials": "secret",
    "financial": "secret",
    "operational": "private",
}
BLOT = "•"
_TOPICS: dict[str, Cue] = {
    "credentials": Cue(
        r"\b(?:pass ?words?|pass ?phrase|pass ?code|pin(?: number| code)?|cvv|cvc|(?:api|access|secret|private|"
        r"recovery) (?:key|token|code)|"
        r"security (?:code|word|answer|question))\b.{0,40}?(?:\bis\b|\bare\b|:|=|\d{3,})",
    ),
    "financial": Cue(
        r"\b(?:iban|sort code|routing number|account number|card number|social security|ssn|tax (?:id|number))\b|"
        r"\bi (?:earn|make|owe) \D{0,12}\d|\b(?:my|our) (?:salary|income|debts?|savings|mortgage)\b|"
        r"\b(?:bankrupt\w*|in debt|credit score)\b",
    ),
    "medical": Cue(
        r"\b(?:diagnos\w+|prescri\w+|chemo\w*|antidepress\w+|biops\w+|miscarriage|abortion|suicid\w+|hiv|rehab|psychiatr\w+|"
        r"(?:test|blood|scan) results?|medications?|overdose)\b",
    ),
    "operational": Cue(r"\b(?:workflows?|run ?books?|deployments?|cron ?jobs?|on-?call rota|internal process|escalation path)\b"),
}
_FIGURE = re.compile(r"\d")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2} ?(?:[A-Z0-9]{4} ?){3,7}\b", re.I)
_LONG_NUMBER = re.compile(r"(?<!\d)(?:\d[ -]?){13,19}(?!\d)")


_NAME = re.compile(r"(?<=\w )[A-Z][\w'’-]+")
_NUMBER = re.compile(r"\d[\d -]{2,}\d|\d{3,}")


def confide(words: Iterable[str]) -> list[Secret]:
    """Words that a fact told in confidence rests on, as they are hunted for: whole, in part, and the names and numbers in them alone."""
    pieces = [piece for said in words for piece in (said, *_NAME.findall(said), *_NUMBER.findall(said))]
    return [Secret(1, piece, piece, "person") for piece in dict.fromkeys(pieces) if piece.strip()]


class _Levelled(Protocol):
    @property
    def visibility(self) -> Visibility: ...


def find_confidences(call: Call, drafts: Iterable[FactDraft]) -> list[Secret]:
    """Every secret of a call that our rules find, and those that the reader marked."""
    return [*find_secrets(call.turns), *confide(draft.words for draft in drafts if draft.visibility == "secret")]


def classify(draft: FactDraft, confidences: list[Secret], settings: MemorySettings) -> Visibility:
    topics = {topic for text in {draft.text, draft.words} for topic in topics_of(text)}
    levels = [settings.visibility.get(name) or DEFAULTS.get(name, "shared") for name in (draft.category, *topics)]
    if holds_secret(draft.text, confidences) or holds_secret(draft.words, confidences) or _is_named(draft, settings.secret_words):
        levels.append("secret")
    return max((draft.visibility, *levels), key=LEVELS.index)


def topics_of(text: str) -> list[str]:
    found = [name for name, pattern in _TOPICS.items() if pattern.search(text)]
    if _FIGURE.search(text) and (_IBAN.search(text) or any(_is_card(match.group()) for match in _LONG_NUMBER.finditer(text))):
        found.append("financial")
    if any(find_secrets((Turn.model_construct(seq=1, speaker="caller", text=text, at=None, confidence=None),))):
        found.append("confided")
    return found


def holds_secret(text: str, confidences: list[Secret]) -> bool:
    return mask(text, confidences) != text


def blot_out(text: str, confidences: list[Secret]) -> str:
    """The text with what is confided unreadable, for whoever may see the rest."""
    hidden = mask(text, confidences)
    hidden = _LONG_NUMBER.sub(lambda match: MASK if _is_card(match.group()) else match.group(), hidden)
    return re.sub(f"{MASK}+", BLOT * 3, hidden)


def is_releasable(level: Visibility, trust: Trust, settings: MemorySettings) -> bool:
    """Whether something of this level may be told on the phone: a secret never, the rest by how sure we are who is calling."""
    return level != "secret" and (trust == "verified" or LEVELS.index(level) <= LEVELS.index(settings.release))


def releasable(told: Iterable[T], trust: Trust, settings: MemorySettings) -> list[T]:
    """Of facts, passages or whatever else has a level, those that this caller may hear. Briefings and lookups both ask here."""
    return [item for item in told if is_releasable(item.visibility, trust, settings)]


def carries(text: str, fact: str) -> bool:
    """Whether a text gives away most of what a fact says."""
    words = set(to_terms(fact).split())
    return bool(words) and len(words & set(to_terms(text).split())) >= MOST_OF * len(words)


def raised(level: Visibility, other: Visibility) -> Visibility:
    return max(level, other, key=LEVELS.index)


def _is_named(draft: FactDraft, words: tuple[str, ...]) -> bool:
    said = f"{draft.text} {draft.words}".casefold()
    return any(re.search(rf"\b{re.escape(word.casefold())}\b", said) for word in words if word)


def _is_card(number: str) -> bool:
    """Luhn's check: the last figure of a card's number proves the others."""
    figures = [int(figure) for figure in number if figure.isdecimal()]
    doubled = [figure if at % 2 == 0 else sum(divmod(figure * 2, 10)) for at, figure in enumerate(reversed(figures))]
    return sum(doubled) % 10 == 0
