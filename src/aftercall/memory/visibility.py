"""How far each fact may go, and masking of secrets.

A fact is shared, private or secret. The level that a reader gave can be raised here, never lowered.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from aftercall.english.masking import ValueMask
from aftercall.english.secrets import Secret, find_secrets, make_mask, mask
from aftercall.english.text import MASK
from aftercall.english.words import remember
from aftercall.model.calls import Call, Speaker, Turn
from aftercall.model.facts import LEVELS
from aftercall.model.reading import FactDraft, Visibility
from aftercall.settings.sections import MemorySettings

# By category or topic; any other is shared.
DEFAULT_VISIBILITY: dict[str, Visibility] = {
    "confided": "secret",
    "medical": "secret",
    "credentials": "secret",
    "financial": "secret",
    "operational": "private",
}
REDACTION_CHAR = "•"
_TOPICS: dict[str, re.Pattern[str]] = {
    "credentials": re.compile(
        r"\b(?:pass ?words?|pass ?phrase|pass ?code|pin(?: number| code)?|cvv|cvc|(?:api"
        "|access|secret|private|"
        r"recovery) (?:key|token|code)|"
        r"security (?:code|word|answer|question))\b.{0,40}?(?:\bis\b|\bare\b|:|=|\d{3,})",
        re.I,
    ),
    "financial": re.compile(
        r"\b(?:iban|sort code|routing number|account number|card number|social security|ssn"
        r"|tax (?:id|number))\b|"
        r"\bi (?:earn|make|owe) \D{0,12}\d|\b(?:my|our) (?:salary|income|debts?|savings"
        r"|mortgage)\b|"
        r"\b(?:bankrupt\w*|in debt|credit score)\b",
        re.I,
    ),
    "medical": re.compile(
        r"\b(?:diagnos\w+|prescri\w+|chemo\w*|antidepress\w+|biops\w+|miscarriage|abortion"
        r"|suicid\w+|hiv|rehab|psychiatr\w+|"
        r"(?:test|blood|scan) results?|medications?|overdose)\b",
        re.I,
    ),
    "operational": re.compile(
        r"\b(?:workflows?|run ?books?|deployments?|cron ?jobs?|on-?call rota|internal process"
        r"|escalation path)\b",
        re.I,
    ),
}
_FIGURE = re.compile(r"\d")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2} ?(?:[A-Z0-9]{4} ?){3,7}\b", re.I)
_LONG_NUMBER = re.compile(r"(?<!\d)(?:\d[ -]?){13,19}(?!\d)")
_NAME = re.compile(r"(?<=\w )(?!I['’])[A-Z][\w'’-]+")
_NUMBER = re.compile(r"\d[\d -]{2,}\d|\d{3,}")


def to_secrets(words: Iterable[str]) -> list[Secret]:
    """The words of secret facts as secrets to mask: whole, and each name and number in them."""
    pieces: list[str] = []
    for said in words:
        pieces += [said, *_NAME.findall(said), *_NUMBER.findall(said)]
    return [
        Secret(1, piece, piece, "person")
        for piece in dict.fromkeys(pieces)
        if piece.strip()
    ]


def find_call_secrets(call: Call, drafts: Iterable[FactDraft]) -> list[Secret]:
    """The secrets of a call that the rules find, and those that the reader marked."""
    marked = [draft.words for draft in drafts if draft.visibility == "secret"]
    return [*find_secrets(call.turns), *to_secrets(marked)]


def classify(
    draft: FactDraft, secrets: list[Secret], settings: MemorySettings
) -> Visibility:
    """The highest level that the reader, the settings or the rules give a draft."""
    texts = {draft.text, draft.words}
    names = {
        draft.category,
        *(topic for text in texts for topic in find_sensitive_topics(text)),
    }
    levels = [draft.visibility, *(get_level(name, settings) for name in names)]
    if any(has_secret(text, secrets) for text in texts):
        levels.append("secret")
    named = match_words(settings.secret_words)
    if named and any(map(named.search, texts)):
        levels.append("secret")
    return max(levels, key=LEVELS.index)


def get_level(name: str, settings: MemorySettings) -> Visibility:
    """The level of a category or topic."""
    return settings.visibility.get(name) or DEFAULT_VISIBILITY.get(name, "shared")


def find_sensitive_topics(text: str) -> list[str]:
    found = [name for name, pattern in _TOPICS.items() if pattern.search(text)]
    if _FIGURE.search(text) and (_IBAN.search(text) or _has_card_number(text)):
        found.append("financial")
    # With its full stop: so it stands in the call, where it has been taken apart already.
    said = text if text.endswith((".", "?", "!")) else f"{text}."
    turn = Turn.model_construct(seq=1, speaker="caller", text=said)
    if find_secrets((turn,)):
        found.append("confided")
    return found


def has_secret(text: str, secrets: list[Secret]) -> bool:
    return mask(text, secrets) != text


def mask_secrets(text: str, secrets: list[Secret]) -> str:
    """The text with secrets and card numbers masked."""
    return _redact(text, make_mask(tuple(secret.value for secret in secrets)))


def _redact(text: str, mask: ValueMask) -> str:
    masked = _LONG_NUMBER.sub(_mask_card, mask.apply(text))
    return re.sub(f"{MASK}+", REDACTION_CHAR * 3, masked)


def _mask_card(match: re.Match[str]) -> str:
    return MASK if _is_card(match.group()) else match.group()


def match_words(phrases: Iterable[str]) -> re.Pattern[str] | None:
    """Matches any of the phrases, with anything but letters and figures between their words."""
    split = [re.findall(r"\w+", phrase) for phrase in phrases]
    found = [r"\W+".join(map(re.escape, words)) for words in split if words]
    return re.compile(rf"(?<!\w)(?:{'|'.join(found)})(?!\w)", re.I) if found else None


def _is_card(number: str) -> bool:
    """The Luhn check of card numbers."""
    digits = [int(digit) for digit in reversed(number) if digit.isdecimal()]
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _has_card_number(text: str) -> bool:
    return any(_is_card(match.group()) for match in _LONG_NUMBER.finditer(text))


def redact_call(call: dict[str, Any], confided: Sequence[str] = ()) -> dict[str, Any]:
    """Mask the secrets in `call_json`; `confided` are words of it that memory holds as secrets."""
    said = [(turn["speaker"], turn["text"]) for turn in call["turns"]]
    mask = _find_mask(tuple(said), tuple(confided))
    masked = [turn | {"text": _redact(turn["text"], mask)} for turn in call["turns"]]
    return call | {"turns": masked, "events": _redact_values(call["events"], mask)}


def redact_turns(
    turns: tuple[Turn, ...], confided: Sequence[str] = ()
) -> tuple[Turn, ...]:
    said = [(turn.speaker, turn.text) for turn in turns]
    mask = _find_mask(tuple(said), tuple(confided))
    shown = [(turn, _redact(turn.text, mask)) for turn in turns]
    return tuple(
        turn if text == turn.text else turn.model_copy(update={"text": text})
        for turn, text in shown
    )


def _find_mask_of(
    said: tuple[tuple[Speaker, str], ...], confided: tuple[str, ...]
) -> ValueMask:
    turns = [
        Turn.model_construct(seq=seq, speaker=speaker, text=text)
        for seq, (speaker, text) in enumerate(said, 1)
    ]
    secrets = (*find_secrets(turns), *to_secrets(confided))
    return ValueMask(secret.value for secret in secrets)


# An open page shows the same call every second.
_find_mask = remember(_find_mask_of, max_answers=8)


def _redact_values(value: Any, mask: ValueMask) -> Any:
    if isinstance(value, str):
        return _redact(value, mask)
    if isinstance(value, dict):
        return {name: _redact_values(inner, mask) for name, inner in value.items()}
    return (
        [_redact_values(inner, mask) for inner in value]
        if isinstance(value, list)
        else value
    )
