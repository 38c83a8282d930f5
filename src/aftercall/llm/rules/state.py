"""What has been asked for so far in a call: one frozen state, how it is read and changed."""

import itertools
import re
from bisect import bisect_left
from datetime import date
from typing import Literal, NamedTuple

from aftercall.english.clauses import EMPTY_VERBS, POINTERS
from aftercall.english.dates import DateMention, find_dates, may_name_day
from aftercall.english.text import Plain, normalise
from aftercall.english.words import (
    load_patterns,
    overlap_coefficient,
    stems,
    stems_of,
)
from aftercall.llm.rules.acts import UNSURE, Act
from aftercall.llm.rules.titles import introduces, title_of
from aftercall.model.reading import RequestKind

UNKNOWN = 0.45  # confidence of an ask that does not say for what
TAKEN_UP = 0.65  # of what may be one and the agent went on with
PLAIN = 0.9  # of an ask that is addressed to the agent: "can you", "I'd like you to"
ACTED_ON = 0.6  # from here on it is a request
MAY_BE = 0.12  # from here on it may be one
MAX_DETAILS = 8
MAX_CONFIRMED = 2
MAX_TOLD = 16  # clauses kept as what the call is about
MAX_SLOTS = 6
MAX_RECENT = 12  # requests that later words may be about
MIN_SAME_MATTER = 0.5
NOTHING = Plain("", ())
Status = Literal["open", "withdrawn", "refused", "part"]
TO_PERSON = re.compile(
    r"(?:tell|ask|let|text|ring|call|email|message|remind|say to) (?:him|her|them)\b"
)
_BARE_WEEKDAY = re.compile(
    r"(?:this |on |the )?(?!today)\w+day(?: (?:morning|afternoon|evening|lunchtime))?"
)
_BARE_ORDINAL = re.compile(r"(?:on )?(?:the )?\d+(?:st|nd|rd|th)")
# Between two days: the first begins what the second ends …
_RANGE = re.compile(
    r"(?!.*\b(?:or|not|no)\b).*\b(?:to|till|until|through|leaving|and (?:back|start|return)\w*)\b"
)
# … unless something is moved from one to the other.
_MOVES = re.compile(
    r"\b(?:mov|chang|shift|switch|push|swap|postpon|reschedul|rearrang)\w*\b|\binstead\b|\bput\b"
)
_DELIVERS_WORDS = re.compile(
    r"^(?:tell|let|inform|notify|say|pass|ask|note|write|log a note"
    r"|(?:text|message|email|ring|call) (?!me\b|us\b|back\b)\w+"
    r"|(?:put|file|make|leave|add|take|send|(?:give|drop) \S+) (?:a|another) (?:\w+ )?"
    r"(?:note|message))\b"
)


class Item(NamedTuple):
    """Something asked for, as far as it is known."""

    title: str
    words: str
    turns: tuple[int, ...]
    kind: RequestKind
    confidence: float
    topic: frozenset[str]
    due: date | None = None
    person: str | None = None
    details: tuple[str, ...] = ()
    status: Status = "open"
    asked: int = 0
    """The turn in which the caller last asked for it."""
    is_fault: bool = False
    confirmed: tuple[str, ...] = ()
    """How the agent said it back."""
    plainness: float = 0.0
    """How plainly it was asked for, by the patterns alone."""
    agreed: float = 0.0
    """How likely the agent said that it is to be done."""
    agreed_in: frozenset[int] = frozenset()
    """The clauses in which it did."""
    off: Act | None = None
    """What called it off."""

    @property
    def about(self) -> frozenset[str]:
        """Stems of the title and of all that was said with it."""
        return self.topic | stems_of(self.details)

    @property
    def delivers_words(self) -> bool:
        """Notes and messages hold words: days and deeds in them are not asked of us."""
        is_wordy = self.kind in ("note", "message")
        return is_wordy and bool(_DELIVERS_WORDS.match(self.title.lower()))


class Offer(NamedTuple):
    """What the agent offered to do, until the caller answers."""

    matter: Plain
    seq: int


class HeardDay(NamedTuple):
    """A day named in a call: by which of its acts, and where in the clause."""

    place: int
    act: Act
    mention: DateMention


class RequestState(NamedTuple):
    today: date
    items: tuple[Item, ...] = ()
    current: int = -1
    offer: Offer | None = None
    proposed: date | None = None
    proposed_seq: int = 0
    slots: tuple[date, ...] = ()
    """The days that the agent put forward last."""
    asks_day: bool = False
    asks_detail: bool = False
    told: tuple[tuple[int, Plain], ...] = ()
    """What the caller told since the last request, by turn."""
    last_clause: Plain = NOTHING
    last_seq: int = 0
    last_day: date | None = None
    question: Plain = NOTHING
    """What the caller asked last."""
    agent_said: tuple[Plain, ...] = ()
    """The clauses of the agent's turn that are no offer."""
    declined_seq: int = 0
    """The turn in which the caller last declined an offer."""
    refused: frozenset[str] = frozenset()

    @property
    def open_item(self) -> Item | None:
        """The request that is talked of, unless it is settled otherwise."""
        if not 0 <= self.current < len(self.items):
            return None
        item = self.items[self.current]
        return item if item.status == "open" else None

    def refused_beside(self, item: Item) -> frozenset[str]:
        """Stems of what was called off or declined, as far as a request does not name it."""
        closed = ("withdrawn", "refused")
        topics = (other.topic for other in self.items if other.status in closed)
        return self.refused.union(*topics) - item.topic

    @property
    def anchor(self) -> date | None:
        """The day talked of."""
        due = self.open_item.due if self.open_item else None
        opened = [item.due for item in self.items if item.due and item.status == "open"]
        known = (None, *self.slots[-1:], *opened)
        return self.last_day or due or self.proposed or known[-1]

    def mentions_of(self, plain: Plain) -> list[DateMention]:
        """The days in a clause, of a range the first; a day is the one that the agent offered."""
        text = plain.text
        if not may_name_day(text):
            return []
        found = find_dates(plain, self.today, self.anchor)
        if len(found) == 2 and _RANGE.search(text[found[0].end : found[1].start]):
            found = found[1:] if _MOVES.search(text) else found[:1]
        return [self._as_offered(mention, text) for mention in found]

    def _as_offered(self, mention: DateMention, text: str) -> DateMention:
        """ "Friday" or "the 14th" is the one that was offered or spoken of, if there is one.

        "By Friday" is the next one.
        """
        said = said_of(mention, text)
        day = mention.day
        if _BARE_WEEKDAY.fullmatch(said):
            known = (*self.slots, self.anchor or day)
            same = [slot for slot in known if slot.weekday() == day.weekday()]
        elif _BARE_ORDINAL.fullmatch(said):
            same = [slot for slot in self.slots if slot.day == day.day]
        else:
            same = []
        return mention._replace(day=same[0]) if same else mention

    def days_of(self, plain: Plain) -> list[date]:
        return [mention.day for mention in self.mentions_of(plain)]


def said_of(mention: DateMention, text: str) -> str:
    """The words that name a day, with the "by" before them."""
    start = mention.start
    is_limit = text[max(0, start - 3) : start] == "by "
    return text[start - 3 * is_limit : mention.end]


class RequestTalk(NamedTuple):
    """A call as far as its requests are concerned."""

    acts: list[Act]
    state: RequestState
    days: list[HeardDay]

    def find_place(self, seq: int) -> int:
        """The place of the first act of a turn, or of the turns after it."""
        return bisect_left(self.acts, seq, key=lambda act: act.clause.seq)

    def find_reply(self, seq: int) -> list[Plain]:
        """What the agent said next after a turn."""
        later = itertools.islice(self.acts, self.find_place(seq + 1), None)
        by_turn = itertools.groupby(later, lambda act: (act.seq, act.speaker))
        replies = (acts for (_, speaker), acts in by_turn if speaker == "agent")
        return [act.clause.plain for act in next(replies, ())]


def put(state: RequestState, index: int, item: Item) -> RequestState:
    items = (*state.items[:index], item, *state.items[index + 1 :])
    return state._replace(items=items, current=index)


def add(state: RequestState, item: Item) -> RequestState:
    """The state with one more request; what was told so far belongs to it."""
    items = (*state.items, item)
    return state._replace(items=items, current=len(items) - 1, told=())


def touch(item: Item, *turns: int) -> Item:
    return item._replace(turns=tuple(sorted({*item.turns, *turns})))


def asked_in(item: Item) -> int:
    """The turn in which it was last asked for, or else first spoken of."""
    return item.asked or item.turns[0]


def close(state: RequestState, index: int, act: Act) -> RequestState:
    """A request is called off; the offer that was open is gone with it."""
    if not 0 <= index < len(state.items):
        return state
    item = touch(state.items[index], act.seq)
    closed = item._replace(status="withdrawn", off=act)
    return put(state, index, closed)._replace(offer=None)


def context_of(state: RequestState, seq: int, reach: int) -> tuple[str, ...]:
    """What the caller told just before, for a request that names little itself."""
    used = {detail for item in state.items for detail in item.details}
    near = [plain.said for turn, plain in state.told if turn >= seq - reach]
    return tuple(said for said in near if said not in used)[-3:]


def find_match(
    state: RequestState,
    text: str,
    otherwise: int = -1,
    *,
    minimum: float = MIN_SAME_MATTER,
) -> int:
    """The request that a text is about: the latest of those with the most in common."""
    about = stems(text)
    recent = _list_recent(state)
    shared = [(overlap_coefficient(about, item.topic), at) for at, item in recent]
    best, found = max(shared, default=(0.0, -1))
    if best and best >= minimum:
        return found
    held = [at for at, item in recent if about and about <= item.about]
    return held[-1] if held else otherwise


def find_named(state: RequestState, text: str) -> int:
    """The newest of the requests that share the most words with a text; -1 for none."""
    about = stems(text)
    shared = [(len(about & item.topic), at) for at, item in _list_recent(state)]
    best, found = max(shared, default=(0, -1))
    return found if best else -1


def _list_recent(state: RequestState) -> list[tuple[int, Item]]:
    """The open ones of the last requests, with their places."""
    recent = list(enumerate(state.items))[-MAX_RECENT:]
    return [(at, item) for at, item in recent if item.status == "open"]


def put_right(plain: Plain) -> Plain:
    """ "Gary, no, Garth": the words after the last correction."""
    if "no" not in plain.text:
        return plain
    start = 0
    for at, word in enumerate(plain.words[:-1]):
        is_apart = at > 0 and bool(plain.words[at - 1].stop and word.stop)
        if word.norm == "no" and is_apart:
            start = at + 1
    return plain.slice(start) if start else plain


_PARTS = re.compile(r",? and |, ")


def without_part(item: Item, about: frozenset[str]) -> Item | None:
    """ "A cut and a colour" without the colour; None where nothing else was asked for."""
    title = item.title
    joints = list(_PARTS.finditer(item.title))
    starts = [0, *(joint.start() for joint in joints), len(title)]
    parts = [title[a:b] for a, b in itertools.pairwise(starts)]
    kept = [part for part in parts if not stems(part) & about]
    if kept == parts or parts[:1] != kept[:1] or not stems(kept[0]) - EMPTY_VERBS:
        return None
    pieces = [piece for piece in _PARTS.split(item.words) if not stems(piece) & about]
    details = tuple(text for text in item.details if not stems(text) & about)
    title = "".join(kept)
    return item._replace(
        title=title,
        words=max(pieces, key=len, default=item.words),
        details=details,
        topic=stems(title),
    )


def with_detail(item: Item, said: str) -> Item:
    """Bounded: an agent may go on and on about one request."""
    is_full = len(item.details) >= MAX_DETAILS
    return item if is_full else item._replace(details=(*item.details, said))


def is_pointing(matter: Plain) -> bool:
    """Whether only "it" or "that" says what is meant."""
    points = not POINTERS.isdisjoint(matter.vocabulary)
    return points and not stems(matter.text) - EMPTY_VERBS


_MAX_COUNT_WORDS = 3  # of "twelve", "twelve boxes", "twelve instead"


def change_number(item: Item, said: Plain) -> Item | None:
    """ "Make that twelve": in place of the only number of the title; no words cite the old one."""
    before = [word for word in normalise(item.title).words if word.norm.isdecimal()]
    after = [word for word in said.words if word.norm.isdecimal()]
    if (len(before), len(after)) != (1, 1) or len(said.words) > _MAX_COUNT_WORDS:
        return None
    old = before[0]
    new = after[0]
    number = said.source[new.start : new.end]
    title = f"{item.title[: old.start]}{number}{item.title[old.end :]}"
    heard = normalise(item.words)
    ends = [at for at, word in enumerate(heard.words, 1) if word.norm == old.norm]
    words = heard.slice(ends[-1]).cited if ends else item.words
    return item._replace(title=title, words=words or item.words, confirmed=())


def find_whole(state: RequestState, index: int) -> int:
    """The request before, of which another may be a part; -1 for none."""
    item = state.items[index]
    asked = item.asked or item.turns[0]
    earlier = [
        at
        for at, other in enumerate(state.items)
        if other.status == "open" and (other.turns[0], at) < (item.turns[0], index)
    ]
    return max(
        earlier,
        key=lambda at: (min(state.items[at].turns[-1], asked), at),
        default=-1,
    )


_CUES = load_patterns("aftercall.llm.rules", "state")
_CALLS_BACK = re.compile(
    r"(?:ask|tell|get|have) (?:\S+ ){1,3}?(?:to )?(?:call|ring|phone|text|email) (?:me|us)\b"
)
MAX_ASKED_DAY = 5  # words of a question that puts a day forward
DAY_REACH = 6  # turns back in which a request was talked of, for a day to be its day
REACH = 16  # turns back in which the caller told what a day is for


def settle(state: RequestState, act: Act, day: date | None) -> RequestState:
    """A day that the agent put forward and the caller takes is the day of the request.

    Where nothing is asked for yet, taking it is the request.
    """
    item = state.open_item
    if item and item.turns[-1] < act.seq - DAY_REACH:
        return state
    if item:
        taken = touch(item, state.proposed_seq, act.seq)._replace(due=day)
        return state if item.delivers_words else put(state, state.current, taken)
    told = [(seq, plain) for seq, plain in state.told if seq >= act.seq - REACH]
    told = [pair for pair in told if not introduces(pair[1])] or told
    if not told or any(other.due == day for other in state.items):
        return state
    first_seq, first = _main_matter(told)
    near = [plain for _, plain in told if plain is not first]
    booked = Item(
        title=title_of(first),
        words=first.cited,
        turns=tuple(sorted({first_seq, state.proposed_seq, act.seq})),
        kind="booking",
        confidence=UNSURE,
        topic=stems(first.text),
        due=day,
        details=tuple(plain.said for plain in (*near, *state.agent_said)),
    )
    return add(state, booked)


def _main_matter(told: list[tuple[int, Plain]]) -> tuple[int, Plain]:
    """What the caller needs or what is wrong, else the first thing that says something."""
    for pair in told:
        if _CUES["needs"].search(pair[1].text):
            return pair
    for pair in told:
        if len(stems(pair[1].text)) > 1:
            return pair
    return told[0]


def day_of_ask(state: RequestState, act: Act, item: Item) -> date | None:
    """The day that the request itself names; a day inside a message or note is not it."""
    if item.kind == "note":
        return None
    days = state.mentions_of(act.clause.plain)
    if item.delivers_words and not _CALLS_BACK.match(act.matter.text):
        head = " ".join(act.matter.text.split()[:3])
        end = act.clause.text.find(head) + len(head)
        days = [mention for mention in days if mention.start <= end + 1]
    return days[0].day if days else None


def take_day(state: RequestState, act: Act) -> RequestState:
    """A day said around a request is its day where one was asked for, or the words say so."""
    days = state.mentions_of(act.clause.plain)
    is_long_question = act.clause.is_question and len(act.matter.words) > MAX_ASKED_DAY
    if not days or is_long_question or _CUES["farewell"].match(act.matter.text):
        return state
    item = state.open_item
    if state.proposed and item is None:
        return settle(state, act, days[-1].day)._replace(proposed=None)
    is_for_words = state.asks_day or _CUES["due_of_words"].match(act.matter.text)
    if item is None or (item.delivers_words and not is_for_words):
        return state
    if item.turns[-1] < act.seq - DAY_REACH or _CUES["other_day"].match(
        act.matter.text
    ):
        return state
    due = touch(item, act.seq)._replace(due=days[-1].day)
    return put(state, state.current, due)._replace(proposed=None)
