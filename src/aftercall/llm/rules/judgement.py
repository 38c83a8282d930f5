"""The last word on each request: whether it is one, a part of another, and of which kind.

Three small models look at a request when the whole call is known (`requests.json`,
`request_parts.json` and `request_kinds.json`). `tools/train_reader.py` makes the same features
when it trains them.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple, cast

from aftercall.english.clauses import EMPTY_VERBS, POINTERS
from aftercall.english.text import Plain, normalise
from aftercall.english.words import load_patterns, stems
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.clause_model import Labels, generalise, load_clause_model
from aftercall.llm.rules.state import ACTED_ON, HeardDay, Item, RequestState
from aftercall.llm.rules.titles import CALLS, CALLS_BACK, MIN_TOLD, told_in
from aftercall.model.reading import RequestKind

YES = "yes"
REQUESTED = 0.8  # how likely it must be one; told as a confidence of ACTED_ON
ALONE = 0.5  # confidence from which it is one where nothing else is asked for
PART = 0.15  # how likely it must be a part of the request before it
SURE_OF_KIND = 0.42
SURE_OF_OTHER = 0.6  # where the words of the title tell a kind
DOUBTED = 0.5  # below, "could you …" is none: it was called off, or is part of another
PLAIN = 0.85  # how sure a pattern must be to need no model
MAX_FEATURED_WORDS = 40
ASKED_APART = 0.95  # how sure a pattern must be that it is a request of its own
_CUES = load_patterns("aftercall.llm.rules", "state")
NAMED_KINDS: tuple[RequestKind, ...] = ("issue", "note", "reminder")


class RequestTalk(NamedTuple):
    """A call as far as its requests are concerned."""

    acts: list[Act]
    state: RequestState
    days: list[HeardDay]


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
    return talk.state._replace(items=tuple(_take_only_one(items)))


def _take_only_one(items: list[Item]) -> list[Item]:
    """Who asks for nothing else has rung for the likeliest of what may be a request."""
    standing = [item for item in items if item.status == "open"]
    best = max(standing, key=lambda item: item.confidence, default=None)
    if best is None or not ALONE <= best.confidence < ACTED_ON:
        return items
    taken = best._replace(confidence=ACTED_ON)
    return [taken if item is best else item for item in items]


def _is_part(talk: RequestTalk, items: list[Item], whole: int, index: int) -> bool:
    """Not of what is no request, and not what is plainly asked for."""
    first = items[whole]
    is_plain = talk.state.items[index].confidence >= ASKED_APART
    if first.status != "open" or first.confidence < ACTED_ON or is_plain:
        return False
    features = list_part_features(talk, whole, index)
    return load_clause_model("request_parts").weigh(features)[YES] >= PART


def _choose_kind(item: Item, kinds: Labels) -> RequestKind:
    """The model's, where it is sure; else that of the words in the title.

    Who says "open a bug" or "remind me" means it: no model overrules that.
    """
    if item.kind in NAMED_KINDS and not item.is_fault:
        return item.kind
    best = max(kinds, key=kinds.__getitem__)
    least = SURE_OF_KIND if item.kind == "task" else SURE_OF_OTHER
    return cast(RequestKind, best) if kinds[best] >= least else item.kind


def _weigh(talk: RequestTalk, item: Item, sure: float) -> float:
    """What is asked plainly stands; "could you …" needs a model that does not rule it out.

    Nor does one overrule an agent who says all of it back. Where the reply tells nothing, or no
    more than "noted", the model knows too little to rule out what was likely asked.
    """
    reply = _reply(talk.acts, item.turns[-1])
    is_noted = len(reply) == 1 and bool(_CUES["agrees"].fullmatch(reply[0].text))
    told = frozenset() if is_noted else _stems_of(reply)
    is_said_back = len(item.topic) > 1 and item.topic <= told
    is_taken = not told or is_said_back or item.plainness >= ASKED_APART
    is_plain = item.plainness >= PLAIN and (is_taken or sure >= DOUBTED)
    if is_plain or (item.confidence >= PLAIN and not told):
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
        person=whole.person or part.person,
    )


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


def list_part_features(talk: RequestTalk, whole: int, index: int) -> list[str]:
    """How near two requests are to each other."""
    first, second = talk.state.items[whole], talk.state.items[index]
    gap, title = second.turns[0] - first.turns[-1], _words(second.title)
    sure, about = round(second.confidence * 5), stems(second.title)
    asked = [act for act in talk.acts if act.seq < second.turns[0]]
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
            first_sure=round(first.confidence * 5),
            points=not POINTERS.isdisjoint(title),
            length=min(len(title), 10),
            topic=min(len(second.topic), 4),
            same_due=first.due == second.due,
            turns=min(len(first.turns), 4),
            asked=bool(asked and asked[0].clause.is_question),
            asked_shared=min(len(told & first.about), 2),
            first1="_".join(title[:1]),
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
    asked = {item.asked or item.turns[0]}
    said = [act.clause.plain for act in talk.acts if act.seq in asked]
    reply = _reply(talk.acts, max(asked))
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
        *mark("d", stems(" ".join(item.details))),
        *mark("c", _texts(said)),
        *mark("r", _texts(reply)),
        *mark("o", _opening(talk.acts)),
    ]


def list_request_features(talk: RequestTalk, index: int) -> list[str]:
    """How plainly it was asked for, and what became of it."""
    state, item = talk.state, talk.state.items[index]
    start = item.asked or item.turns[0]
    reply = _reply(talk.acts, start)
    title = _words(item.title)
    later = [act for act in talk.acts if act.speaker == "caller" and act.seq > start]
    off = [act for act in later if act.kind == "withdraw"]
    told = {act.kind for act in talk.acts if act.seq == start}
    heard = _stems_of(reply)
    return [
        f"sure:{round(item.confidence * 10)}",
        f"sure:{round(item.confidence * 5)}:{item.kind}",
        f"kind:{item.kind}",
        f"fault:{item.is_fault}:{round(item.confidence * 5)}",
        *named(
            turns=min(len(item.turns), 4),
            asked=item.asked > 0,
            confirmed=len(item.confirmed),
            due=item.due is not None,
            person=item.person is not None,
            details=min(len(item.details), 5),
            topic=min(len(item.topic), 5),
            length=min(len(title), 12),
            place=min(index, 3),
            items=min(len(state.items), 5),
            off=min(len(off), 2),
            off_shared=any(stems(act.clause.text) & item.topic for act in off),
            closed=sum(other.status != "open" for other in state.items) > 0,
            turn=min(start, 5),
            first2="_".join(title[:2]),
            first1="_".join(title[:1]),
        ),
        *mark("told", told),
        *mark("t", title),
        *mark("b", _pairs(title)),
        *mark("r", _texts(reply)),
        f"reply:{'_'.join(_texts(reply)[:2])}",
        f"reply_shared:{min(len(heard & item.about), 3)}",
    ]


def _stems_of(clauses: Iterable[Plain]) -> frozenset[str]:
    return stems(" ".join(plain.text for plain in clauses))


def named(**values: object) -> list[str]:
    """Features by name."""
    return [f"{name}:{value}" for name, value in values.items()]


def mark(name: str, values: Iterable[str]) -> list[str]:
    """Features of one kind."""
    return [f"{name}:{value}" for value in values]


def _pairs(words: list[str]) -> list[str]:
    return [f"{one}_{two}" for one, two in itertools.pairwise(words)]


def _words(text: str) -> list[str]:
    words = [generalise(word.norm) for word in normalise(text).words]
    return words[:MAX_FEATURED_WORDS]


def _texts(clauses: Iterable[Plain]) -> list[str]:
    words = [generalise(word.norm) for plain in clauses for word in plain.words]
    return words[:MAX_FEATURED_WORDS]


def _reply(acts: list[Act], seq: int) -> list[Plain]:
    """What the agent said next."""
    after = [act for act in acts if act.speaker == "agent" and act.seq > seq]
    return [act.clause.plain for act in after if act.seq == after[0].seq]


def _opening(acts: list[Act]) -> list[str]:
    """What the agent said first: it often names the house."""
    opened = [act for act in acts[:6] if act.speaker == "agent"]
    return _texts(act.clause.plain for act in opened if act.seq == opened[0].seq)


# "Put some in the post", "renew them": only the words before say what is meant.
_POINTS_AT = _CUES["points_at"]
_TOLD = ("tell", "own", "fault", "ask", "unclear")
BELONGS = 0.5
MAX_TURNS_BACK = 4  # in which the thing may have been named that "it" stands for
MAX_CLAUSES_AWAY = 30


def name_items(talk: RequestTalk) -> list[Item]:
    """A title that only points to a thing, or names only whom to tell, says what is meant."""
    told = [act for act in talk.acts if act.speaker == "caller" and act.kind in _TOLD]
    places = {act.matter.cited: at for at, act in reversed(list(enumerate(told)))}
    asked = {item.words for item in talk.state.items}
    named = []
    for item in talk.state.items:
        place, find = places.get(item.words), _choose_finder(item)
        if place is not None and find is not None:
            refused = talk.state.refused_beside(item)
            about = find(item, _said_beside(told, place, refused), asked)
            item = item._replace(
                title=f"{item.title}: {about}" if about else item.title
            )
        named.append(item)
    return named


Finder = Callable[[Item, "SaidBeside", set[str]], str]


class SaidBeside(NamedTuple):
    """What the caller told in the turn of an ask before it, in earlier turns, and after it."""

    before: list[Act]
    earlier: list[Act]
    after: list[Act]


def _choose_finder(item: Item) -> Finder | None:
    """How to find what is meant; None for a title that says it."""
    if ": " in item.title:
        return None
    title = item.title.lower()
    is_told = not (CALLS.match(title) or CALLS_BACK.search(title))
    if item.kind == "message" and is_told:
        is_whole = len(told_in(item.title) - stems(item.person or "")) >= MIN_TOLD
        return None if is_whole else _find_message
    match = _POINTS_AT.match(normalise(item.title).text)
    is_whole = match is None or bool(stems(match["before"]) - EMPTY_VERBS)
    return None if is_whole else _find_thing


def _find_message(item: Item, said: SaidBeside, asked: set[str]) -> str:
    """What to tell somebody follows at once; else it was said before in the same turn."""
    near = (*said.after[:1], *said.before)
    told = [act for act in near if act.matter.cited not in asked]
    return _choose_telling(told[:1], item) or _choose_telling(told, item)


def _find_thing(item: Item, said: SaidBeside, _: set[str]) -> str:
    """The thing was named before, in the same turn or in what was said of a request."""
    return next(filter(None, (_choose_telling(acts, item) for acts in said)), "")


def _said_beside(told: list[Act], at: int, refused: frozenset[str]) -> SaidBeside:
    """Without what was called off or declined; the nearest first."""
    seq = told[at].seq
    turns_back = range(seq - MAX_TURNS_BACK, seq)
    before = told[max(0, at - MAX_CLAUSES_AWAY) : at][::-1]
    after = told[at + 1 : at + 1 + MAX_CLAUSES_AWAY]
    before, after = (
        [act for act in acts if not stems(act.matter.text) & refused]
        for acts in (before, after)
    )
    return SaidBeside(
        [act for act in before if act.seq == seq],
        [act for act in before if act.belongs >= BELONGS and act.seq in turns_back],
        [act for act in after if act.seq == seq],
    )


def _choose_telling(acts: list[Act], item: Item) -> str:
    """What the first turn that names something new says of it."""
    known = stems(item.title)
    told = [act for act in acts if not _CUES["introduces"].fullmatch(act.matter.text)]
    named = [act for act in told if told_in(act.matter.text) - known]
    of_turn = [act for act in named if act.seq == named[0].seq]
    best = max(of_turn, key=lambda act: len(told_in(act.matter.text)), default=None)
    if best is None:
        return ""
    return best.clause.plain.said if best.kind == "own" else best.matter.said
