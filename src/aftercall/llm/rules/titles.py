"""How a request is titled, its kind and its person; and how a call is summed up."""

import re
from collections.abc import Iterable
from datetime import date

from aftercall.english.dates import find_dates
from aftercall.english.language import LANGUAGES
from aftercall.english.names import take_name
from aftercall.english.secrets import is_confided
from aftercall.english.text import MASK, Plain, normalise
from aftercall.english.words import (
    compile_pattern,
    load_patterns,
    stems,
    vocabulary,
    word_class,
)
from aftercall.llm.rules.acts import Act
from aftercall.model.reading import (
    Profile,
    Promise,
    Request,
    RequestKind,
    UnclearRequest,
    WithdrawnRequest,
)

_PATTERNS = load_patterns("aftercall.llm.rules", "titles")

MAX_TITLE_CHARS = 120
_ARTICLE = re.compile(r"^(?:an?|the|some|to|for|that|about)\s+", re.I)
_COURTESY = re.compile(
    r"[\s,]+(?:please|thanks|thank you|would you|could you|if (?:you|that|possible|it)\b.*|ok|okay"
    r"|then|as well|for me|you know|or something|or whatever|and|but|so|because|though|when"
    r"|i think)$",
    re.I,
)
# The first kind whose words are in the title decides.
_KINDS: tuple[RequestKind, ...] = (
    "reminder",
    "issue",
    "note",
    "booking",
    "message",
    "other",
)
_REPAIR = compile_pattern(
    r"(?=.*\bfix)(?:.* )?(?:<fault>|<broken>|not working)(?: .*)?"
)
_TO_OTHERS = re.compile(
    r"(?:tell|text|message|inform|notify|email|ring|call|phone) (?!me\b|us\b)\S"
    r"|let (?:\S+ ){1,4}know\b"
)
_ABSENT = _PATTERNS["absent"]
_BEFORE_PERSON = _PATTERNS["before_person"]
_NOT_PERSONS = vocabulary(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may
    june july august september october november december
    """
)


def title_of(matter: Plain) -> str:
    """The matter as a short line in the caller's own words."""
    said = " ".join(matter.said.replace(MASK, "").split()).strip(" ,;:.-")
    said = _ARTICLE.sub("", said)
    while (shorter := _COURTESY.sub("", said)) != said:
        said = shorter
    if len(said) > MAX_TITLE_CHARS:
        said = said[:MAX_TITLE_CHARS].rsplit(" ", 1)[0]
    said = said.strip(" ,;:.-?!")
    return said[:1].upper() + said[1:]


_BEFORE_DAY = frozenset(("on", "for", "by", "before", "from", "at", "until"))
_YOU = re.compile(r"\b(you|your|yours|yourself)\b", re.I)
_ME = {"you": "me", "your": "my", "yours": "mine", "yourself": "myself"}


def to_caller(title: str) -> str:
    """An agent's offer in the caller's words: "put you on the list" is "put me on the list"."""
    return _YOU.sub(lambda match: _ME[match[1].lower()], title)


def drop_other_days(title: str, due: date, today: date) -> str:
    """The title without days that the caller has replaced by another."""
    plain = normalise(title)
    stale = [item for item in find_dates(plain, today) if item.day != due]
    if not stale:
        return title
    dropped = {
        index
        for item in stale
        for index in range(plain.index(item.start), plain.index(item.end - 1) + 1)
    }
    for index in sorted(dropped):
        if index and plain.words[index - 1].norm in _BEFORE_DAY:
            dropped.add(index - 1)
    kept = (word for index, word in enumerate(plain.words) if index not in dropped)
    return Plain(title, tuple(kept)).said or title


def kind_of(text: str, *, is_fault: bool = False) -> RequestKind:
    if is_fault:
        return "task" if _ABSENT.fullmatch(text) else "issue"
    if _TO_OTHERS.match(text):
        return "message"
    found = (kind for kind in _KINDS if _PATTERNS[kind].search(text))
    return next(found, "issue" if _REPAIR.fullmatch(text) else "task")


def find_person(matter: Plain) -> str | None:
    """The person that a request names; only where the transcript writes names large."""
    for match in _BEFORE_PERSON.finditer(matter.text):
        at = matter.index(match.end())
        while at < len(matter.words) and matter.words[at].norm in word_class("title"):
            at += 1
        if (
            at >= len(matter.words)
            or not matter.source[matter.words[at].start].isupper()
        ):
            continue
        name = take_name(matter.slice(at), 0)
        is_common = matter.words[at].norm in word_class("stop")
        if name and not is_common and name.split()[0].lower() not in _NOT_PERSONS:
            return name
    return None


MAX_ITEMS = 5
MAX_TOLD_SENTENCES = 3
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
        if _tells_more(act)
        and not stems(act.matter.text) & refused
        and act.matter.said.lower() not in known
    ]
    return list(dict.fromkeys(text[:1].upper() + text[1:] for text in told))[
        :MAX_TOLD_SENTENCES
    ]


def _tells_more(act: Act) -> bool:
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
