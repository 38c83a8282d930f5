"""How a request is titled, its kind and its person; and how a call is summed up."""

import re
from collections.abc import Iterable
from datetime import date
from textwrap import shorten

from aftercall.english.clauses import (
    EMPTY_VERBS,
    is_broken_off,
    split_sentences,
    stands_alone,
)
from aftercall.english.dates import find_dates
from aftercall.english.language import LANGUAGES
from aftercall.english.names import take_name
from aftercall.english.text import MASK, Plain, normalise
from aftercall.english.words import (
    compile_pattern,
    load_patterns,
    stems,
    vocabulary,
    word_class,
)
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.state import Item, RequestState
from aftercall.model.calls import Turn
from aftercall.model.reading import Reading, Request, RequestKind

_PATTERNS = load_patterns("aftercall.llm.rules", "titles")
_INTRODUCES = load_patterns("aftercall.llm.rules", "state")["introduces"]
_OPENING = load_patterns("aftercall.llm.rules", "acts")["opening"]

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


def names_other_day(text: str, due: date | None, today: date) -> bool:
    """Whether words are about a day that is not the request's."""
    days = {mention.day.weekday() for mention in find_dates(normalise(text), today)}
    return bool(days - {due.weekday()}) if due else len(days) > 1


def drop_other_days(title: str, due: date | None, today: date) -> str:
    """The title without days that the caller has replaced by another."""
    head, colon, tail = title.partition(": ")
    plain = normalise(head)
    stale = [item for item in find_dates(plain, today) if item.day != due]
    if not stale or due is None:
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
    return (Plain(head, tuple(kept)).said or head) + colon + tail


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


MAX_QUOTED_CHARS = 110
MAX_ITEMS = 5
MAX_TOLD_FACTS = 3


def summarise(reading: Reading) -> str:
    """Built from what was read: what is no request, promise or fact is not told."""
    profile = reading.profile
    who = profile.call_name or profile.name or "The caller"
    if reading.language != "en":
        spoken = LANGUAGES.get(reading.language, reading.language)
        return f"{who} called and spoke {spoken}; the words are in the transcript."
    parts = (
        _sentence(f"{who} asked for", [_dated(item) for item in reading.requests]),
        _sentence("May be a request", [item.words for item in reading.unclear]),
        _sentence("Called off", [item.title for item in reading.withdrawn]),
        _sentence("The agent promised", [item.title for item in reading.promises]),
    )
    text = " ".join(part for part in parts if part)
    facts = [fact.text for fact in reading.facts if fact.visibility != "secret"]
    opening = "Also said" if text else f"{who} said"
    more = _sentence(opening, facts[:MAX_TOLD_FACTS])
    return f"{text} {more}".strip() or f"{who} called; nothing was asked or promised."


def _dated(request: Request) -> str:
    day = f" (by {request.due.isoformat()})" if request.due else ""
    return f"{request.title}{day}"


def _sentence(opening: str, items: list[str]) -> str:
    if not items:
        return ""
    more = f"; and {len(items) - MAX_ITEMS} more" if len(items) > MAX_ITEMS else ""
    return f"{opening}: {'; '.join(items[:MAX_ITEMS])}{more}."


_KIND_TITLES: dict[RequestKind, str] = {
    "booking": "Booking",
    "issue": "Fault report",
    "message": "Message",
    "note": "Note",
    "other": "Request",
    "reminder": "Reminder",
    "task": "Task",
}
_CALLS_BACK = re.compile(r"\b(?:call|ring|phone) (?:me|us)\b|\bcall ?back\b")
_CANCELS = re.compile(r"\bcancel")
_WISHES = re.compile(r"(?:i|we)(?: \S+)? (?:need|want|would like|am looking for)\b")
_SUBJECT = re.compile(r"(?:\S+ ){0,3}(?:i|we|you|he|she|it|they|is|are)\b", re.I)
# "at the, not …", "barrel, no, trough": words that the caller did not end.
_UNFINISHED = re.compile(
    r"\b(?:the|an?|for|at|to|of|my|your|and|with|no)[,.]|, (?:no|not|sorry)\b", re.I
)
# "Put some in the post", "renew them": only the words before say what is meant.
_POINTS_AT = _PATTERNS["points_at"]
_ANNOUNCED = EMPTY_VERBS | stems("thing question favour favor couple quick ring")
_TOLD = ("tell", "own", "fault", "ask", "unclear")
BELONGS = 0.5
MIN_TOLD = 2  # stems of words that say something to who did not hear the call
MAX_TURNS_BACK = 4  # in which the thing may have been named that "it" stands for


def name_item(item: Item, state: RequestState, acts: list[Act]) -> Item:
    """A title that only points to a thing, or names only whom to tell, says what is meant."""
    is_callback = bool(_CALLS_BACK.search(item.title.lower()))
    says_to_whom = item.kind == "message" and not is_callback
    is_whole = not (_tells_nothing(item) if says_to_whom else _points(item))
    if is_whole or ": " in item.title:
        return item
    refused = state.refused_beside(item)
    said = [act for act in acts if act.speaker == "caller" and act.kind in _TOLD]
    said = [act for act in said if not stems(act.matter.text) & refused]
    at = next((at for at, act in enumerate(said) if act.matter.cited == item.words), -1)
    if at < 0:
        return item
    seq, asked = said[at].seq, {other.words for other in state.items}
    after = [act for act in said[at + 1 :] if act.seq == seq]
    before = [act for act in said[:at] if act.seq == seq][::-1]
    earlier = [act for act in said if seq - MAX_TURNS_BACK <= act.seq < seq][::-1]
    near = [before, [act for act in earlier if act.belongs >= BELONGS], after]
    if says_to_whom:
        told = [act for act in (*after[:1], *before) if act.matter.cited not in asked]
        near = [told[:1], told[1:]]
    named = (_choose_telling(group, stems(item.title)) for group in near)
    about = next(filter(None, named), "")
    return item._replace(title=f"{item.title}: {about}") if about else item


def _tells_nothing(item: Item) -> bool:
    return len(_told_in(item.title) - stems(item.person or "")) < MIN_TOLD


def _points(item: Item) -> bool:
    match = _POINTS_AT.match(normalise(item.title).text)
    return match is not None and not stems(match["before"]) - EMPTY_VERBS


def _choose_telling(acts: list[Act], known: frozenset[str]) -> str:
    """What the first turn that names something new says of it."""
    told = [act for act in acts if not _INTRODUCES.fullmatch(act.matter.text)]
    named = [act for act in told if _told_in(act.matter.text) - known]
    of_turn = [act.matter for act in named if act.seq == named[0].seq]
    return (
        max(of_turn, key=lambda matter: len(_told_in(matter.text))).said
        if named
        else ""
    )


def _told_in(text: str) -> frozenset[str]:
    return stems(text) - _ANNOUNCED


def quote_whole(words: str, turns: Iterable[Turn], refused: frozenset[str]) -> str:
    """The sentence that words stand in, with the next one where it says nothing by itself.

    Of a sentence without end, as recognisers write, the part from these words on; of one that
    also says what was called off, these words.
    """
    text = next((turn.text for turn in turns if words and words in turn.text), words)
    at, end, quoted = text.find(words), 0, ""
    for sentence in split_sentences(text):
        end = text.index(sentence, end) + len(sentence)
        is_wanted = not stems(sentence) & refused and len(_told_in(quoted)) < MIN_TOLD
        if end > at and is_wanted:
            quoted = f"{quoted} {sentence}".strip()
    if words not in quoted:
        quoted = words
    elif quoted.index(words) + len(words) > MAX_QUOTED_CHARS:
        quoted = quoted[quoted.index(words) :]
    plain = normalise(quoted)
    opened = _OPENING.match(plain.text)
    rest = plain.after(opened.end()) if opened else plain
    return (rest if rest.words else plain).said.replace(MASK, "")


def names_deed(title: str, kind: RequestKind) -> bool:
    """Whether a title has a verb and what it is done to, a plain wish or a plain fault."""
    head, _, tail = title.partition(": ")
    plain = normalise(head)
    if not plain.words or _UNFINISHED.search(head) or is_broken_off(plain.text):
        return False
    text, first = plain.text, plain.words[0]
    is_alone = len(stems(tail)) > 1 and not _UNFINISHED.search(tail)
    if first.norm in word_class("deed") or _WISHES.match(text):
        has_object = bool(stems(plain.slice(1).text) - EMPTY_VERBS)
        return (is_alone or has_object) and not first.stop
    if stands_alone(text) or text.startswith("there is"):
        return kind == "issue" and not tail
    is_thing = not plain.vocabulary.isdisjoint(word_class("wanted"))
    return is_thing and len(plain.words) > 1 and not _SUBJECT.match(head)


def title_plainly(item: Item, sentence: str) -> str:
    """The title of a request that names a deed; else its kind, and what the caller said."""
    if names_deed(item.title, item.kind):
        return item.title
    name = _KIND_TITLES[item.kind]
    text = normalise(f"{item.title}. {item.words}").text
    if item.kind == "message" and _CALLS_BACK.search(text):
        name = "Call back"
    elif item.kind == "message" and item.person:
        name = f"Message for {item.person}"
    elif _CANCELS.search(text):
        name = "Cancellation"
    return f"{name}: “{shorten(sentence, MAX_QUOTED_CHARS, placeholder=' …')}”"
