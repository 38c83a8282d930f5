"""How a request is titled, its kind and its person; and how a call is summed up.

A title begins with what is to be done, is what is wished for, or is a fault: see `names_deed`. It
says enough if who did not hear the call understands it: see `says_enough`. `tell_items` in
`asking.py` looks for other words where it does not; what still names no deed is told by its kind
and a whole sentence of the caller: see `title_plainly` and `quote_whole`.
"""

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
from aftercall.english.text import MASK, Plain, Word, normalise
from aftercall.english.words import (
    load_patterns,
    stems,
    word_class,
)
from aftercall.model.calls import Turn
from aftercall.model.reading import Reading, Request, RequestKind

_PATTERNS = load_patterns("aftercall.llm.rules", "titles")
_OPENING = load_patterns("aftercall.llm.rules", "acts")["opening"]

MAX_TITLE_CHARS = 120
_ARTICLE = re.compile(r"^(?:an?|the|some|to|for|that|about)\s+", re.I)
_COURTESY = re.compile(
    r"[\s,]+(?:please|thanks|thank you|would you|could you|ok|okay"
    r"|if (?:you (?:can|could|like|want|would|don't)|that's|possible|it's (?:ok|possible))\b.*"
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
_TO_OTHERS = re.compile(
    r"(?:tell|text|message|inform|notify|email|ring|call|phone) (?!me\b|us\b)\S"
    r"|let (?:\S+ ){1,4}know\b"
)
_BEFORE_PERSON = _PATTERNS["before_person"]


def title_of(matter: Plain) -> str:
    """The matter as a short line in the caller's own words.

    Without the article before it and the courtesy after it: "a quote for the roof, if you could"
    is "Quote for the roof".
    """
    said = " ".join(matter.said.replace(MASK, "").split()).strip(" ,;:.-")
    said = _ARTICLE.sub("", said)
    while (shorter := _COURTESY.sub("", said)) != said:
        said = shorter
    if len(said) > MAX_TITLE_CHARS:
        said = said[:MAX_TITLE_CHARS].rsplit(" ", 1)[0]
    said = said.strip(" ,;:.-?!")
    return said[:1].upper() + said[1:]


_DIGIT = re.compile(r"\d")
_BEFORE_DAY = frozenset(("on", "for", "by", "before", "from", "at", "until"))
_YOU = re.compile(r"\b(you|your|yours|yourself)\b(?!['’])", re.I)
_ME = {"you": "me", "your": "my", "yours": "mine", "yourself": "myself"}


def to_caller(title: str) -> str:
    """An agent's offer in the caller's words: "put you on the list" is "put me on the list"."""
    return _YOU.sub(lambda match: _ME[match[1].lower()], title)


def names_other_day(plain: Plain, due: date | None, today: date) -> bool:
    """Whether words are about a day that is not the request's.

    "The 18th" tells the day of the month, "Saturday" no more than that of the week.
    """
    found = find_dates(plain, today)
    if due is None:
        return len({mention.day for mention in found}) > 1
    return any(
        mention.day.day != due.day
        if _DIGIT.search(plain.text, mention.start, mention.end)
        else mention.day.weekday() != due.weekday()
        for mention in found
    )


def drop_other_days(title: str, due: date | None, today: date) -> str:
    """The title without days that the caller has replaced by another.

    "Get a table for this Saturday" is "Get a table" where they agreed on Sunday. "Dripping like
    there's no tomorrow" names no day.
    """
    head, colon, tail = title.partition(": ")
    plain = normalise(head)
    stale = [item for item in find_dates(plain, today) if item.day != due]
    stale = [item for item in stale if not plain.text[: item.start].endswith("no ")]
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
    """The kind that the words of a request name; what names none is a task."""
    if is_fault:
        return "issue"
    if _TO_OTHERS.match(text):
        return "message"
    found = (kind for kind in _KINDS if _PATTERNS[kind].search(text))
    return next(found, "task")


def find_person(matter: Plain) -> str | None:
    """The person that a request names; only where the transcript writes names large."""
    for match in _BEFORE_PERSON.finditer(matter.text):
        at = matter.index(match.end())
        while at < len(matter.words) and matter.words[at].norm in word_class("title"):
            at += 1
        name = take_name(matter.slice(at), 0)
        if name and matter.source[matter.words[at].start].isupper():
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
        _sentence("May be a request", [item.title for item in reading.unclear]),
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


_KIND_TITLES = {"issue": "Fault report", "other": "Request"}
CALLS_BACK = re.compile(r"\b(?:call|ring|phone) (?:me|us)\b|\bcall ?back\b")
_WISHES = re.compile(
    r"(?:i|we)(?: \S+)? (?:need|want|would like|am looking for)\b"
    r"|(?:somebody|someone) (?:needs?|has) to\b"
)
_SUBJECT = re.compile(r"(?:\S+ ){0,3}(?:i|we|you|he|she|it|they|is|are)\b", re.I)
# "at the, not …", "barrel, no, trough": words that the caller did not end.
_UNFINISHED = re.compile(
    r"\b(?:the|an?|for|at|to|of|my|your|and|with|no)[,.]|, (?:no|not|sorry)\b", re.I
)
_ANNOUNCED = EMPTY_VERBS | stems(
    "thing question favour couple quick ring one two three know knows let"
)
MIN_TOLD = 2  # stems of words that say something to who did not hear the call


def told_in(text: str) -> frozenset[str]:
    """Stems that name something, not just that something is asked.

    "Could you do me a quick favour and put one down" names nothing.
    """
    return stems(text) - _ANNOUNCED


_INTRODUCES = load_patterns("aftercall.llm.rules", "state")["introduces"]
MAX_NAMES = 3  # words of a name
MAX_INTRODUCED = 8  # words that only say who calls
_BEFORE_NAME = re.compile(r"(?:it is|this is|i am|(?:\S+ )?calls? me) (?=\S)")
_NAMES_CALLER = re.compile(r"\b(?:my name is|is the name|(?:calling|ringing) from)\b")
# A name or a greeting before a wish that no comma parts from it, as recognisers write:
# "Colin Arkwright I want forty metres", but not "if I want" or "what I need is".
_BEFORE_WISH = re.compile(
    r"(?:(?!(?:if|when|what|where|that|how|why|because|unless|think|said|is|am|are|all|do|did)\b)"
    r"\S+ ){1,5}?(?=(?:i|we) (?:would like|want|need)\b)"
)
# What is wished for stands after it; "I want it stopped" and "I need you to" are no whole thing
# without their beginning.
_WISHED = re.compile(
    r"(?:i|we)(?: \S+)? (?:need|want|wanted|would like|am looking for|am after)(?: to)?"
    r" (?!you|it\b|them|that|this|him|her|some(?:body|one)|my \S+ to|to\b)"
)
_PLEASE = re.compile(r",? please\b", re.I)
_POINTS_AT = load_patterns("aftercall.llm.rules", "state")["points_at"]
# Whom to tell is not what is meant: "tell him the gate is shut" points to nothing.
_TO_WHOM = re.compile(r"(?:tell|ask|remind|text) (?:him|her|them)(?= \S)")
# "Let them know", "make sure the kitchen knows", "give me a shout": whom to tell or to call, and
# nothing of what.
_ONLY_WHOM = re.compile(
    r"(?:.* )?(?:knows?|told|aware)"
    r"|(?:.* )?(?:give (?:me|us) a (?:\S+ )?(?:call|ring|shout|bell|buzz)"
    r"|(?:call|ring|phone) (?:me|us))(?: back| then| as well| please)*"
)
_PROMISES = load_patterns("aftercall.llm.rules", "promises")


def names_caller(plain: Plain) -> bool:
    """Whether words say the caller's name or house in so many words."""
    return _NAMES_CALLER.search(plain.text) is not None


def introduces(plain: Plain) -> bool:
    """Whether words only say who calls, or are a bare name.

    Such words are never the title of a request, nor its beginning. A bare name is found only where
    the transcript writes names large.
    """
    text = plain.text
    words = plain.words
    if _INTRODUCES.fullmatch(text) or names_caller(plain):
        return True
    opened = _BEFORE_NAME.match(text)
    if opened and len(words) <= MAX_INTRODUCED:
        name = plain.after(opened.end())
        if name.cited[:1].isupper():
            return True
    telling = [word for word in words if word.norm not in word_class("stop")]
    is_large = all(plain.source[word.start].isupper() for word in telling)
    return is_large and 1 < len(telling) <= MAX_NAMES


def without_opening(plain: Plain) -> Plain:
    """Words without "and so", "hello" and the like before them.

    "No roses" keeps its "no": without it the words say the opposite.
    """
    opened = _OPENING.match(plain.text)
    is_denied = opened is not None and opened[0].rstrip().endswith("no")
    rest = plain.after(opened.end()) if opened and not is_denied else plain
    return rest if rest.words else plain


def plain_title(title: str) -> str:
    """A title without who calls and without courtesy.

    "Agnieszka Nowak, I would like to cancel, please" is "I would like to cancel".
    """
    plain = without_opening(normalise(_PLEASE.sub("", title)))
    match = _BEFORE_WISH.match(plain.text)
    return title_of(plain.after(match.end()) if match else plain) or title


def take_wish(title: str) -> str:
    """Of a wish only what is wished for.

    "I'd like an hour with Ann" is "An hour with Ann"; "we'd like to come and see the room" is "Come
    and see the room". What is no wish stays as it is.
    """
    plain = normalise(title)
    match = _WISHED.match(plain.text)
    wished = plain.after(match.end()).cited if match else ""
    return wished[:1].upper() + wished[1:] or title


def title_of_promise(plain: Plain) -> str:
    """What the agent promises to do, as the caller would ask for it; "" for no promise.

    "I'll ask Nurse Farrell to phone you with the results" is "Ask Nurse Farrell to phone me with
    the results". Only what the agent will do itself counts: "the driver will ring" is no request.
    """
    match = _PROMISES["promises"].fullmatch(without_opening(plain).text)
    if match is None or match["who"] not in ("i will", "we will"):
        return ""
    what = without_opening(plain).after(match.start("what"))
    is_idle = _PROMISES["idle"].fullmatch(what.text) is not None
    return "" if is_idle else to_caller(title_of(what))


# What an agent says before it says a request back.
_BEFORE_AGREED = re.compile(
    r"(?:(?:so|then|just|great|perfect|right|now|and|ok|to (?:confirm|recap|sum up)"
    r"|(?:to )?read(?:ing)? (?:that |it |this )?back|(?:that|this|it) is"
    r"|(?:i|we) (?:will|have(?: got)?)|you are (?:down|booked|in)(?: in)?(?: for)?)(?= |$) ?)+"
)


def title_of_agreement(plain: Plain) -> str:
    """What the agent says back, as a title; "" for a sentence of its own.

    "So that's a cleaning on Thursday with Priya" is "A cleaning on Thursday with Priya"; "there's a
    large print copy" is nothing to do.
    """
    match = _BEFORE_AGREED.match(plain.text)
    rest = plain.after(match.end()) if match else plain
    said = to_caller(rest.said.replace(MASK, "")).strip(" ,;:.-?!")
    is_whole = len(said) <= MAX_TITLE_CHARS and len(told_in(rest.text)) >= MIN_TOLD
    is_thing = not _SUBJECT.match(rest.text)
    return said[:1].upper() + said[1:] if is_whole and is_thing else ""


def is_deed(title: str) -> bool:
    """Whether a title begins with something to do, or with a wish."""
    plain = normalise(title)
    first = plain.words[0].norm if plain.words else ""
    is_done = first in word_class("deed") or first == "see"
    return is_done or _WISHES.match(plain.text) is not None


def is_pointing_title(title: str) -> bool:
    """Whether only the talk before says what is meant: "renew them", "give me a shout"."""
    text = _TO_WHOM.sub("", normalise(title).text)
    match = _POINTS_AT.match(text)
    points = match is not None and not stems(match["before"]) - EMPTY_VERBS
    return points or _ONLY_WHOM.fullmatch(text) is not None


def says_enough(title: str, kind: RequestKind, person: str | None) -> bool:
    """Whether who did not hear the call understands a title.

    It needs a deed, a wish or a fault, and two words that name something; the person it is for is
    not one of them. A pronoun must not stand for what is wanted.
    """
    if is_pointing_title(title) or not names_deed(title, kind):
        return False
    return len(told_in(title) - stems(person or "")) >= MIN_TOLD


def quote_whole(words: str, turns: Iterable[Turn], refused: frozenset[str]) -> str:
    """The sentence that words stand in, with the next one where it says nothing by itself.

    Of a sentence without end, as recognisers write, the part from these words on; of one that
    also says what was called off, these words.
    """
    text = next((turn.text for turn in turns if words and words in turn.text), words)
    at = text.find(words)
    end = 0
    quoted = ""
    for sentence in split_sentences(text):
        end = text.index(sentence, end) + len(sentence)
        is_wanted = not stems(sentence) & refused and not told_in(quoted)
        if end > at and is_wanted:
            quoted = f"{quoted} {sentence}".strip()
    if words not in quoted:
        quoted = words
    elif quoted.index(words) + len(words) > MAX_QUOTED_CHARS:
        quoted = quoted[quoted.index(words) :]
    return without_opening(normalise(quoted)).said.replace(MASK, "")


def names_deed(title: str, kind: RequestKind) -> bool:
    """Whether a title has a verb and what it is done to, a plain wish or a plain fault."""
    head, _, tail = title.partition(": ")
    plain = normalise(head)
    if not plain.words or _UNFINISHED.search(head) or is_broken_off(plain.text):
        return False
    text = plain.text
    first = plain.words[0]
    is_alone = bool(stems(tail)) and not _UNFINISHED.search(tail)
    if is_deed(head):
        has_object = bool(stems(plain.slice(1).text) - EMPTY_VERBS)
        return (is_alone or has_object) and not first.stop
    if stands_alone(text) or text.startswith("there is"):
        return kind == "issue" and not tail
    is_thing = not plain.vocabulary.isdisjoint(word_class("wanted"))
    return is_thing and len(plain.words) > 1 and not _SUBJECT.match(head)


def title_plainly(request: Request, sentence: str) -> Request:
    """A request whose title names no deed is titled by its kind and what the caller said.

    "The Hollis Trust" says nothing to who reads it; "Booking: “We'd like to see the hall, it's for
    the Hollis Trust”" does.
    """
    if names_deed(request.title, request.kind):
        return request.model_copy(update={"title": take_wish(request.title)})
    name = _KIND_TITLES.get(request.kind, request.kind.capitalize())
    text = normalise(f"{request.title}. {request.words}").text
    if request.kind == "message" and CALLS_BACK.search(text):
        name = "Call back"
    elif request.kind == "message" and request.person:
        name = f"Message for {request.person}"
    title = f"{name}: “{shorten(sentence, MAX_QUOTED_CHARS, placeholder=' …')}”"
    return request.model_copy(update={"title": title})


_UNITS = stems(
    "minutes hours days nights weeks months years pounds dollars euros quid percent miles thirty"
)
_PEOPLE = stems("people adults guests persons seats")
_ANOTHER = re.compile(r"\bmake (?:it|that) \d+$")
_FOR = re.compile(r"\b(?:table|booking|reservation|party) (?:for|of) \d+$")


def count_things(plain: Plain) -> dict[str, Word]:
    """The number of each thing that is counted: "two cakes", "a table for six"."""
    found = {}
    for at, word in enumerate(plain.words):
        if not word.norm.isdecimal():
            continue
        after = plain.slice(at + 1, at + 2).text
        until = plain.slice(0, at + 1).text
        for thing in stems(after) - _UNITS:
            if not thing.isdecimal():
                found["people" if thing in _PEOPLE else thing] = word
        if _FOR.search(until) and not stems(after):
            found["people"] = word
    return found


class LastCounts:
    """How many of each thing were wanted last: "actually, make that eight people".

    "Make that twelve" is put right in the title itself: what was counted before says no more.
    """

    def __init__(self, told: Iterable[tuple[int, Plain]]) -> None:
        self._last: dict[str, tuple[int, str, str]] = {}
        for seq, plain in told:
            if _ANOTHER.search(plain.text):
                self._last.clear()
            for thing, word in count_things(plain).items():
                number = plain.source[word.start : word.end]
                self._last[thing] = (seq, word.norm, number)

    def is_outdated(self, seq: int, plain: Plain) -> bool:
        """Whether another number of the same thing was said after it."""
        counted = count_things(plain).items()
        last = [(word, self._last.get(thing, (0, "", ""))) for thing, word in counted]
        return any(at > seq and norm != word.norm for word, (at, norm, _) in last)

    def update(self, seq: int, title: str) -> str:
        """The title as it was right in a turn, with the last number of each thing."""
        counted = count_things(normalise(title))
        for thing, word in reversed(counted.items()):
            at, norm, number = self._last.get(thing, (0, word.norm, ""))
            if at >= seq and norm != word.norm:
                title = f"{title[: word.start]}{number}{title[word.end :]}"
        return title
