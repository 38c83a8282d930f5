"""The last word on each request: whether it is one, a part of another, and of which kind.

Four small models look at a request when the whole call is known (`requests.json`,
`request_parts.json` and `request_kinds.json`; `request_clauses.json` tells which clauses say what
it is about). `tools/train_reader.py` makes the same features when it trains them.

`request_clauses.json`:
| label | the clause, of the caller or of the agent … |
|---|---|
| names | names what is wanted |
| tells | says something else of the request |
| other | is about another request, about what was given up, or about nothing that is wanted |
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from aftercall.english.clauses import POINTERS
from aftercall.english.dates import find_dates
from aftercall.english.text import Plain, normalise
from aftercall.english.words import load_patterns, remember, stems, stems_of
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.agreements import find_end, name_end
from aftercall.llm.rules.clause_model import (
    YES,
    Labels,
    load_clause_model,
    mark,
    named,
)
from aftercall.llm.rules.state import (
    ACTED_ON,
    Item,
    RequestState,
    RequestTalk,
    asked_in,
    find_whole,
    put_right,
)
from aftercall.llm.rules.titles import (
    introduces,
    names_other_day,
    told_in,
    without_opening,
)
from aftercall.model.reading import RequestKind

REQUESTED = 0.6  # how likely it must be one; told as a confidence of ACTED_ON
PART = 0.2  # how likely it must be a part of the request before it
DOUBTED = 0.4  # below, "could you …" is none: it was called off, or is part of another
PLAIN = 0.85  # how sure a pattern must be to need no model
MAX_FEATURED_WORDS = 40
CALLED_OFF = (
    0.5  # how likely later words must call it off for "could you …" to need a model
)
ASKED_APART = 0.95  # how sure a pattern must be that it is a request of its own
_AGREES = load_patterns("aftercall.llm.rules", "state")["agrees"]
NAMED_KINDS: tuple[RequestKind, ...] = ("issue", "note", "reminder")


def judge(talk: RequestTalk) -> RequestState:
    """The state with what the models say of each open request."""
    items = list(talk.state.items)
    for index, item in enumerate(items):
        if item.status == "open":
            kinds = load_clause_model("request_kinds").weigh(
                list_kind_features(talk, index)
            )
            sure = load_clause_model("requests").weigh(
                list_request_features(talk, index)
            )
            items[index] = item._replace(
                kind=_choose_kind(item, kinds),
                confidence=_weigh(talk, item, sure[YES]),
            )
    for index, item in enumerate(items):
        whole = find_whole(talk.state, index) if item.status == "open" else -1
        if whole >= 0 and _is_part(talk, items, whole, index):
            items[whole] = _join(items[whole], item)
            items[index] = item._replace(status="part")
    return talk.state._replace(items=tuple(items))


def _is_part(talk: RequestTalk, items: list[Item], whole: int, index: int) -> bool:
    """Not of what is no request, and not what is plainly asked for."""
    first = items[whole]
    is_plain = talk.state.items[index].confidence >= ASKED_APART
    if first.status != "open" or first.confidence < ACTED_ON or is_plain:
        return False
    features = list_part_features(talk, whole, index)
    return load_clause_model("request_parts").weigh(features)[YES] >= PART


def _choose_kind(item: Item, kinds: Labels) -> RequestKind:
    """The model's; but who says "open a bug" or "remind me" means it."""
    if item.kind in NAMED_KINDS and not item.is_fault:
        return item.kind
    return cast(RequestKind, max(kinds, key=kinds.__getitem__))


def _weigh(talk: RequestTalk, item: Item, sure: float) -> float:
    """What is asked plainly stands; "could you …" needs a model that does not rule it out.

    Nor does one overrule an agent who says all of it back. Where the reply tells nothing, or no
    more than "noted", the model knows too little to rule out what was likely asked.
    """
    reply = talk.find_reply(item.turns[-1])
    is_noted = len(reply) == 1 and bool(_AGREES.fullmatch(reply[0].text))
    told = frozenset() if is_noted else _stems_of(reply)
    is_said_back = len(item.topic) > 1 and item.topic <= told
    is_taken = not told or is_said_back or item.plainness >= ASKED_APART
    is_plain = item.plainness >= PLAIN and (is_taken or sure >= DOUBTED)
    is_plain = is_plain or (item.confidence >= PLAIN and not told)
    end = find_end(talk, item) if is_plain else None
    is_ended = end is not None and end.ends >= CALLED_OFF
    if is_plain and not is_ended:
        sure = max(sure, REQUESTED)
    if sure < REQUESTED:
        return sure * ACTED_ON / REQUESTED
    return ACTED_ON + (sure - REQUESTED) * (1 - ACTED_ON) / (1 - REQUESTED)


def _join(whole: Item, part: Item) -> Item:
    """A request with what was taken for another one and only says more of it."""
    return whole._replace(
        details=tuple(dict.fromkeys((*whole.details, part.title, *part.details))),
        turns=tuple(sorted({*whole.turns, *part.turns})),
        due=whole.due or part.due,
        agreed_in=whole.agreed_in | part.agreed_in,
        person=whole.person or part.person,
    )


def list_part_features(talk: RequestTalk, whole: int, index: int) -> list[str]:
    """How near two requests are to each other."""
    first = talk.state.items[whole]
    second = talk.state.items[index]
    gap = second.turns[0] - first.turns[-1]
    title = _words(second.title)
    sure = round(second.confidence * 5)
    about = stems(second.title)
    asked = talk.acts[: talk.find_place(second.turns[0])]
    asked = [act for act in asked if act.speaker == "agent"][-1:]
    told = stems(asked[0].clause.text) if asked else frozenset()
    return [
        *named(
            gap=max(-1, min(gap, 4)),
            same=first.turns[0] == second.turns[0],
            shared=min(len(stems(first.title) & about), 2),
            shared_told=min(len(first.about & about), 3),
            shared_all=min(len(first.about & second.about), 4),
            same_kind=first.kind == second.kind,
            sure=sure,
            agreed=(round(first.agreed * 3), round(second.agreed * 3)),
            agreed_apart=(
                bool(second.agreed_in - first.agreed_in),
                bool(first.agreed_in - second.agreed_in),
            ),
            first_sure=round(first.confidence * 5),
            points=not POINTERS.isdisjoint(title),
            length=min(len(title), 10),
            topic=min(len(second.topic), 4),
            same_due=first.due == second.due,
            turns=min(len(first.turns), 4),
            asked=bool(asked and asked[0].clause.is_question),
            asked_shared=min(len(told & first.about), 2),
            first2="_".join(title[:2]),
        ),
        f"kinds:{first.kind}:{second.kind}",
        f"sure:{sure}:{gap <= 0}",
        f"faults:{first.is_fault}:{second.is_fault}",
        f"due:{first.due is not None}:{second.due is not None}",
        f"persons:{first.person is not None}:{second.person is not None}",
        *mark("t", title[:6]),
        *(f"a:{word}" for act in asked for word in _words(act.clause.text)[:6]),
    ]


def list_kind_features(talk: RequestTalk, index: int) -> list[str]:
    """Of the title, of what was said with it, and of who was called."""
    item = talk.state.items[index]
    title = _words(item.title)
    seq = asked_in(item)
    asked = talk.acts[talk.find_place(seq) : talk.find_place(seq + 1)]
    said = [act.clause.plain for act in asked]
    reply = talk.find_reply(seq)
    return [
        *named(
            rule=item.kind,
            fault=item.is_fault,
            due=item.due is not None,
            person=item.person is not None,
            first2="_".join(title[:2]),
        ),
        *mark("t", title),
        *mark("b", _pairs(title)),
        *mark("s", stems(item.title)),
        *mark("d", stems_of(item.details)),
        *mark("c", _texts(said)),
        *mark("r", _texts(reply)),
        *mark("o", _opening(talk.acts)),
    ]


def list_request_features(talk: RequestTalk, index: int) -> list[str]:
    """How plainly it was asked for, and what became of it."""
    state = talk.state
    item = talk.state.items[index]
    start = asked_in(item)
    reply = talk.find_reply(start)
    title = _words(item.title)
    off = find_end(talk, item)
    place = talk.find_place(start + 1)
    told = {act.kind for act in talk.acts[talk.find_place(start) : place]}
    heard = _stems_of(reply)
    before = [act for act in talk.acts[:place] if act.speaker == "caller"]
    told_before = [act.belongs for act in before if act.seq >= start - 2]
    asked = [other.asked for other in state.items if 0 < other.asked <= start]
    said = _stems_of(act.clause.plain for act in before)
    agreed = round(item.agreed * 4)
    return [
        f"sure:{round(item.confidence * 10)}",
        f"sure:{round(item.confidence * 5)}:{item.kind}",
        f"kind:{item.kind}",
        f"fault:{item.is_fault}:{round(item.confidence * 5)}",
        *named(
            turns=min(len(item.turns), 4),
            confirmed=len(item.confirmed),
            agreed=(agreed, item.asked > 0),
            agreed_heard=(agreed, item.asked > 0, min(len(item.topic & said), 3)),
            agreed_before=(item.asked > 0, round(4 * max(told_before, default=0))),
            agreed_near=min(start - max(asked, default=0), 4),
            due=item.due is not None,
            person=item.person is not None,
            details=min(len(item.details), 5),
            topic=min(len(item.topic), 5),
            length=min(len(title), 12),
            place=min(index, 3),
            off=name_end(talk, item, off) if off else "",
            turn=min(start, 5),
            first2="_".join(title[:2]),
        ),
        *mark("told", told),
        *mark("t", title),
        *mark("b", _pairs(title)),
        *mark("r", _texts(reply)),
        f"reply:{'_'.join(_texts(reply)[:2])}",
        f"reply_shared:{min(len(heard & item.about), 3)}",
        *mark("off_reply", _texts(talk.find_reply(off.seq))[:12] if off else ()),
    ]


def _stems_of(clauses: Iterable[Plain]) -> frozenset[str]:
    return stems_of(plain.text for plain in clauses)


def _pairs(words: list[str]) -> list[str]:
    return [f"{one}_{two}" for one, two in itertools.pairwise(words)]


def _words(text: str) -> list[str]:
    return normalise(text).general[:MAX_FEATURED_WORDS]


def _texts(clauses: Iterable[Plain]) -> list[str]:
    words = [word for plain in clauses for word in plain.general]
    return words[:MAX_FEATURED_WORDS]


def _opening(acts: list[Act]) -> list[str]:
    """What the agent said first: it often names the house."""
    opened = [act for act in acts[:6] if act.speaker == "agent"]
    return _texts(act.clause.plain for act in opened if act.seq == opened[0].seq)


NAMES = "names"
TELLS = "tells"
OTHER = "other"
ASKED = 0.3  # confidence of what may have been asked for: the talk goes on about it
NEAR_TURNS = 6  # before the ask and after the last turn of a request
MAX_AROUND = 60  # clauses that are looked at
MAX_TOLD_WORDS = 24  # of a clause


class WeighedClause(NamedTuple):
    """A clause near a request, and what it does for it."""

    act: Act
    names: float
    """How likely it names what is wanted."""
    other: float
    """How likely it is about something else."""
    is_ask: bool
    """The request was asked for with it."""
    is_followed: bool
    """Who followed the talk clause by clause took it for a detail."""
    is_own: bool
    """The talk is of this request."""
    is_theirs: bool
    """It asks for another one."""
    plain: Plain
    """As it is told: after the last correction, and without "and so" before it."""

    @property
    def said(self) -> str:
        return self.plain.said


class ClausePlace(NamedTuple):
    """How a clause stands to a request."""

    plain: Plain
    is_ask: bool
    is_taken: bool
    is_confirmed: bool
    topic: str


class RequestClauses:
    """The clauses near a request: which of them say what it is about.

    A clause is looked at by itself. The features tell

    - where it stands: how many turns and clauses from the ask, and whether the talk was then of
      this request, of one before it or of one after it;
    - what it shares: with the words of the request, with those of others and with what was called
      off; whether the other side says the same things;
    - what it does: asks, tells, answers or introduces, names the day of the request or another,
      and how the next clause goes on;
    - its words.

    Those of the caller and those of the agent have weights of their own.
    """

    def __init__(self, talk: RequestTalk, index: int) -> None:
        items = talk.state.items
        self._today = talk.state.today
        self._item = items[index]
        self._asked = asked_in(self._item)
        near = items[max(0, index - NEAR_TURNS) : index + NEAR_TURNS + 1]
        self._others = [
            item for item in near if item is not self._item and item.status == "open"
        ]
        self._refused = talk.state.refused_beside(self._item)
        self._asked_too = {item.words for item in self._others}
        said = ((*item.details, item.words) for item in self._others)
        self._theirs = " ".join(itertools.chain.from_iterable(said))
        first = min(self._asked, self._item.turns[0]) - NEAR_TURNS
        last = self._item.turns[-1] + NEAR_TURNS
        start = talk.find_place(first)
        self.acts = talk.acts[start : talk.find_place(last + 1)]
        asks = [at for at, act in enumerate(self.acts) if self._is_ask(act)]
        self._ask = asks[0] if asks else talk.find_place(self._asked) - start
        before = max(0, self._ask - MAX_AROUND)
        self.acts = self.acts[before : self._ask + MAX_AROUND]
        self._ask = min(self._ask, MAX_AROUND)
        self._agreed = {place - start - before for place in self._item.agreed_in}
        self._heard = [told_in(act.clause.text) for act in self.acts]
        self._details = "\n".join(self._item.details)
        self._confirmed = "\n".join(self._item.confirmed)
        self._by_speaker = {"caller": set[str](), "agent": set[str]()}
        for act, told in zip(self.acts, self._heard, strict=True):
            self._by_speaker[act.speaker] |= told
        self._thin = min(len(told_in(self._item.title)), 3)
        topics = [each.topic for each in self._others]
        self._their_topics = frozenset[str]().union(*topics)
        near_items = (*self._others, self._item)
        asked_too = [item for item in near_items if item.confidence >= ASKED]
        self._asked_items = [(asked_in(one), one is self._item) for one in asked_too]
        self._around = {place: self._look(place) for place in self.places}

    @property
    def places(self) -> list[int]:
        """The clauses that say something, and the one that asks."""
        return [at for at, told in enumerate(self._heard) if told or at == self._ask]

    def weigh(self) -> Iterator[WeighedClause]:
        model = load_clause_model("request_clauses")
        for place in self.places:
            act = self.acts[place]
            around = self._around[place]
            labels = model.weigh(self.list_features(place))
            yield WeighedClause(
                act,
                names=labels[NAMES],
                other=labels[OTHER],
                is_ask=around.is_ask,
                is_followed=around.is_taken or around.is_confirmed,
                is_own=self._is_own(act, around.topic),
                is_theirs=act.matter.cited in self._asked_too,
                plain=without_opening(around.plain),
            )

    def _look(self, place: int) -> ClausePlace:
        act = self.acts[place]
        plain = put_right(act.clause.plain)
        return ClausePlace(
            plain,
            is_ask=self._is_ask(act),
            is_taken=plain.said in self._details,
            is_confirmed=plain.said in self._confirmed or place in self._agreed,
            topic=self._name_topic(act),
        )

    def _is_ask(self, act: Act) -> bool:
        words = self._item.words
        return words in act.clause.plain.cited or act.matter.cited == words

    def list_features(self, place: int) -> list[str]:
        """Where a clause was said, seen from the request, what it shares with it, and its words."""
        act = self.acts[place]
        item = self._item
        about = self._heard[place]
        plain, is_ask, is_taken, is_confirmed, topic = self._around[place]
        gap = max(-4, min(act.seq - self._asked, 5))
        away = max(-5, min(place - self._ask, 6))
        is_within = act.seq in item.turns
        other_side = "agent" if act.speaker == "caller" else "caller"
        echoes = len(about & self._by_speaker[other_side])
        shared = min(len(about & item.topic), 2)
        return [
            *_list_clause(act, *self.acts[place + 1 : place + 2]),
            *named(
                f"{act.speaker}:",
                gap=gap,
                away=(away, act.seq == self._asked),
                within=is_within,
                ask=is_ask,
                topic=topic,
                gap_topic=(gap, topic, is_within),
                kind_of=(item.kind, is_ask, gap),
                shared=shared,
                thin=(self._thin, shared, min(len(about), 3)),
                taken=is_taken,
                confirmed=is_confirmed,
                taken_shared=(is_taken, is_confirmed, shared),
                theirs=(plain.said in self._theirs, is_taken),
                others=(
                    min(len(about & self._their_topics - item.topic), 2),
                    shared > 0,
                ),
                refused=(bool(about & self._refused), shared > 0),
                echo=min(echoes, 3),
                echo_shared=(min(echoes, 2), shared),
                day=self._name_day(plain),
            ),
        ]

    def _name_day(self, plain: Plain) -> str:
        if names_other_day(plain, self._item.due, self._today):
            return "other"
        has_day = bool(find_dates(plain, self._today))
        return f"{has_day}:{self._item.due is not None}"

    def _is_own(self, act: Act, topic: str) -> bool:
        return topic == "own" or (topic == "none" and act.seq >= self._item.turns[0])

    def _name_topic(self, act: Act) -> str:
        """Whether the talk is of this request, or of one asked for before or after it."""
        asked = [each for each in self._asked_items if each[0] <= act.seq]
        seq, is_own = max(asked, default=(0, False))
        told = "before" if seq < self._asked else "after"
        return "none" if not asked else "own" if is_own else told


@remember
def _list_clause(act: Act, *after: Act) -> list[str]:
    """What a clause does, its words, and what follows it: the same for all requests."""
    words = act.clause.plain.general
    return [
        f"length:{min(len(words), 14)}",
        *named(
            f"{act.speaker}:",
            told=min(len(told_in(act.clause.text)), 5),
            belongs=round(act.belongs * 5),
            act=act.kind,
            asks=act.clause.is_question,
            answer=act.answer,
            introduces=introduces(act.matter),
            next=[(each.speaker, each.answer, each.kind) for each in after],
        ),
        *mark(f"{act.speaker}:u", words[:MAX_TOLD_WORDS]),
    ]
