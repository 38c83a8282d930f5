"""What the agent offers and promises, and what the caller takes, declines, calls off or changes."""

import itertools
import re
from collections.abc import Iterable, Iterator

from aftercall.english.clauses import EMPTY_VERBS, split_plain_sentences
from aftercall.english.text import Plain, normalise
from aftercall.english.words import (
    compile_pattern,
    jaccard_similarity,
    load_patterns,
    overlap_coefficient,
    stems,
    stems_of,
    vocabulary,
)
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.clause_model import YES, load_clause_model, mark, named
from aftercall.llm.rules.state import (
    Item,
    Offer,
    RequestState,
    RequestTalk,
    add,
    asked_in,
    change_number,
    close,
    context_of,
    find_match,
    find_named,
    is_pointing,
    put,
    settle,
    touch,
    with_detail,
    without_part,
)
from aftercall.llm.rules.titles import (
    find_person,
    introduces,
    kind_of,
    title_of,
    to_caller,
    told_in,
)
from aftercall.model.calls import Turn
from aftercall.model.reading import Promise

# An agent that offers these asks what it can do.
_OPEN_OFFERS = EMPTY_VERBS | stems(
    "message list something anything details information start arrange"
)


def answer_offer(state: RequestState, act: Act) -> RequestState:
    """An answer closes the agent's offer or settles the day it put forward."""
    is_denied = state.offer is not None and act.clause.text.startswith("do not ")
    if not act.answer and not is_denied:
        return state
    if act.answer == "no" or is_denied:
        return decline(state, act)._replace(offer=None, proposed=None)
    if state.offer:
        state = accept(state, act, state.offer)
    if state.proposed and not state.days_of(act.clause.plain):
        state = settle(state, act, state.proposed)
    return state._replace(offer=None, proposed=None)


def decline(state: RequestState, act: Act) -> RequestState:
    """A no to what was just asked for calls it off."""
    offer = state.offer
    if offer is None:
        return state
    about = find_match(state, offer.matter.text)
    if about >= 0 and state.items[about].asked == offer.seq - 1:
        return close(state, about, act)._replace(declined_seq=act.seq)
    refused = state.refused | stems(offer.matter.text)
    return state._replace(refused=refused, declined_seq=act.seq)


def accept(state: RequestState, act: Act, offer: Offer) -> RequestState:
    """An offer taken up is a request, or a detail of one that was asked already."""
    known = find_match(state, offer.matter.text)
    item = state.open_item
    if known < 0 and item and _is_offered(item, offer):
        known = state.current
        detailed = with_detail(item, to_caller(offer.matter.said))
        state = put(state, known, detailed)
    elif known < 0 and is_pointing(offer.matter) and item:
        known = state.current
    if known >= 0:
        return put(state, known, touch(state.items[known], offer.seq, act.seq))
    is_open = _is_open_offer(state, offer)
    item = _to_item(state, act, offer)
    if is_open and is_pointing(offer.matter) and item.details:
        title = f"{item.title}: {item.details[-1]}"
        return add(state, item._replace(title=title, topic=stems(title)))
    return state if is_open else add(state, item)


def _is_open_offer(state: RequestState, offer: Offer) -> bool:
    """Whether an agent only asks what it can do: "I can take details for the office".

    Nothing else was told yet, or the offer names nothing.
    """
    is_told = any(not introduces(plain) for _, plain in state.told)
    is_first = not is_told and not state.items
    return is_first or not stems(offer.matter.text) - _OPEN_OFFERS


def _to_item(state: RequestState, act: Act, offer: Offer) -> Item:
    """What the agent offered and the caller took is a request like one that was asked for."""
    days = state.days_of(offer.matter)
    said = [p.said for p in (state.question, *state.agent_said) if p.words]
    return Item(
        title=to_caller(title_of(offer.matter)),
        words=offer.matter.cited,
        turns=(offer.seq, act.seq),
        kind=kind_of(offer.matter.text),
        confidence=0.85 if act.answer == "yes" else 0.7,
        topic=stems(offer.matter.text),
        due=days[-1] if days else None,
        person=find_person(offer.matter),
        details=(*said, *context_of(state, act.seq, 4)),
    )


def _is_offered(item: Item, offer: Offer) -> bool:
    """Whether an offer is about a request: just asked for, being set right, or settled with it."""
    is_mended = item.is_fault and item.turns[-1] >= offer.seq - 2
    return item.asked >= offer.seq - 1 or is_mended or offer.seq in item.turns


_PROMISING = load_patterns("aftercall.llm.rules", "promises")

_PROMISES = _PROMISING["promises"]
_SPLIT = _PROMISING["split"]
# Said in passing: it binds nobody after the call.
_IDLE = _PROMISING["idle"]
_POINTS = compile_pattern(
    r"\S+(?: \S+)? (?:it|that|them|this|those)(?: .*)?|\S+ (?:have|get) it"
)
_CONDITION = _PROMISING["condition"]
_OWN = ("i", "we", "you")


def find_promises(turns: Iterable[Turn]) -> list[Promise]:
    """From the agent's turns; a promise repeated is one."""
    promises: list[Promise] = []
    for turn in turns:
        if turn.speaker != "agent":
            continue
        before = ""
        for sentence in split_plain_sentences(normalise(turn.text)):
            for words, deed in _deeds(sentence):
                title = title_of(deed)
                if before and _POINTS.fullmatch(deed.text):
                    title = f"{title}: {before}"
                promise = Promise(title=title, turns=(turn.seq,), words=words.cited)
                if title and not _is_known(promise, promises):
                    promises.append(promise)
            before = "" if sentence.ends_with == "?" else sentence.said
    return promises


def _deeds(sentence: Plain) -> Iterator[tuple[Plain, Plain]]:
    """The words of each promise, and its deed with who does it if that is somebody else."""
    if sentence.ends_with == "?" or _CONDITION.search(sentence.text):
        return
    bounds = [
        0,
        *(match.start() for match in _SPLIT.finditer(sentence.text)),
        len(sentence.text),
    ]
    for start, end in itertools.pairwise(bounds):
        piece = sentence.between(start, end)
        match = _PROMISES.search(piece.text)
        if not match or _IDLE.fullmatch(match["what"]):
            continue
        who = match["who"].split()[0]
        first = match.start("what") if who in _OWN else match.start()
        yield piece.after(match.start()), piece.after(first)


def _is_known(promise: Promise, earlier: list[Promise]) -> bool:
    """Whether a promise was made before in nearly the same words."""
    about = stems(promise.words)
    return any(
        jaccard_similarity(about, stems(other.words)) >= 0.75
        and promise.turns != other.turns
        for other in earlier
    )


_CUES = load_patterns("aftercall.llm.rules", "state")
_REASONS = vocabulary(
    "because since as if i we he she they it there my our and but so till"
)
WITHDRAW_REACH = 4  # turns back in which "it" can be called off
STOP_REACH = 6  # turns back in which something can be called off without its name
_ALL = re.compile(
    r"^(?:all of it|everything|all|both|the whole thing|the lot|all of them)\b"
)


def withdraw(state: RequestState, act: Act) -> RequestState:
    """What is named goes; without a name, the request that was talked of last."""
    if _ALL.match(act.matter.text):
        return _withdraw_all(state, act)
    if _keeps(act.matter):
        return state
    head = _head_of(act.matter)
    if about := stems(head) - EMPTY_VERBS:
        known = find_named(state, head)
        rest = without_part(state.items[known], about) if known >= 0 else None
        if known >= 0 and rest is None:
            return close(state, known, act)
        refused = state.refused | stems(head)
        state = state._replace(refused=refused, declined_seq=act.seq)
        return put(state, known, touch(rest, act.seq)) if rest else state
    if state.declined_seq == act.seq:
        return state
    return close(state._replace(told=()), _find_last(state, act), act)


def _keeps(matter: Plain) -> bool:
    """ "Only the cut", "just the cut": whether what stays is named, not what goes."""
    if not matter.words:
        return False
    before = matter.source[: matter.words[0].start]
    is_after = before.lower().endswith(("just ", "only "))
    is_thing = matter.words[0].norm in ("the", "my", "our", "a", "an")
    return matter.words[0].norm == "only" or (is_after and is_thing)


def _withdraw_all(state: RequestState, act: Act) -> RequestState:
    for index, item in enumerate(state.items):
        if item.status == "open":
            state = close(state, index, act)
    return state


def _find_last(state: RequestState, act: Act) -> int:
    """The request that "forget that" means; -1 where it means something else."""
    named = state.last_clause.text if state.last_seq == act.seq else ""
    heard = stems_of(plain.text for plain in state.agent_said)
    if stems(named) - heard and _CUES["nouns"].match(named):
        return find_match(state, named)
    if "one" in act.matter.vocabulary and len(state.items) == 1:
        # "skip that one": one of the things named, not all that was asked for
        return -1
    reach = WITHDRAW_REACH if act.matter.words else STOP_REACH
    touched = state.open_item.turns[-1] if state.open_item else 0
    return state.current if touched >= max(1, act.seq - reach) else -1


def _head_of(matter: Plain) -> str:
    """The few words that name what is meant; the reason that follows is none of them."""
    words = matter.words
    for at, word in enumerate(words, 1):
        if word.stop or at == len(words) or words[at].norm in _REASONS:
            return matter.slice(0, at).text
    return ""


ENDED = 0.5  # how likely a request must be called off to stay so
_CANCELS = re.compile(r"(?:.* )?(?P<deed>(?:cancel|stop|remove|delete|take|strike) .+)")


# "Forget the bay", "don't do the return": something is named that goes.
_NAMED_OFF = re.compile(
    r"(?:.* )?(?:do not \w+|forget|leave|scrap|never mind) (?P<what>(?:the|that|my|our|your) \w.*)"
)


def reopen(talk: RequestTalk) -> RequestState:
    """The state with what was called off only by its looks open again.

    When the whole call is known, a small model tells whether the words that called a request off
    meant it, or a part of it, or something else (`request_ends.json`). What the caller told of
    ("I've a table for six") and then cancels was not asked for before: to cancel it is.
    """
    model = load_clause_model("request_ends")
    items = list(talk.state.items)
    for index, item in enumerate(items):
        off = item.off if item.status == "withdrawn" else None
        if off is None:
            continue
        if item.is_fault and (match := _CANCELS.fullmatch(off.clause.text)):
            deed = title_of(off.clause.plain.between(*match.span("deed")))
            asked = item._replace(title=f"{deed}: {item.title}", kind="task")
            items[index] = asked._replace(plainness=off.plainness, status="open")
            continue
        calling_off = CallingOff(talk, index, off)
        sure = model.weigh(calling_off.list_features())[YES]
        if calling_off.is_of_another or sure < ENDED:
            items[index] = item._replace(status="open")
    return talk.state._replace(items=tuple(items))


class CallingOff:
    """The words that called a request off, as they stand to it and to the talk around them.

    Features, as they are named in the file of weights:

    | feature | what it tells |
    |---|---|
    | kind, sure_kind | of which kind the request is, and how surely it was one |
    | fault | it was told as something wrong, not asked for |
    | plain | how plainly it was asked for |
    | details, due | how much was said of it, and whether it has a day |
    | act | who called it off, and what the clause does by itself |
    | length | how many words the clause has |
    | what | what is named: the request, a detail, another request, something new, nothing |
    | what_act, what_length | the same, by how it was said |
    | gap, since | turns since the request was spoken of, and since it was asked for |
    | share | how much of the request the words name |
    | more | they name another request more than this one |
    | left, left_out | what the agent leaves out in reply: "no plumber, then" |
    | reply, reply_matter | the agent names the request in reply, or what was called off |
    | later_agent | the agent names the request after that |
    | agreed | the agent, after that, still says that it is to be done |
    | before, turn | the caller spoke of it in the same turn |
    | w, b | words: of the clause, and before it |
    """

    def __init__(self, talk: RequestTalk, index: int, off: Act) -> None:
        self._item = talk.state.items[index]
        self._off = off
        self._others = [*talk.state.items[:index], *talk.state.items[index + 1 :]]
        self._detail = self._item.about - self._item.topic
        turn = [act for act in talk.acts if act.seq == off.seq]
        self._turn = turn
        self._place = turn.index(off)
        later = [act for act in talk.acts if act.seq > off.seq]
        self._later = [act for act in later if act.speaker == "agent"]
        reply = [act for act in self._later if act.seq == self._later[0].seq]
        self._reply = turn if off.speaker == "agent" else reply
        before = [act for act in talk.acts if act.seq <= off.seq]
        self._heard = _about(act for act in before if act.speaker == "caller")
        left_out = (_CUES["left_out"].match(act.clause.text) for act in self._reply)
        self._left = stems_of(match["what"] for match in left_out if match)

    @property
    def is_of_another(self) -> bool:
        """ "No. Forget the bay", "leave it" and "no bay, then": it names another."""
        if stems(_head_of(self._off.matter)) - EMPTY_VERBS:
            return False
        meant = self._left & self._heard
        for act in self._turn:
            match = _NAMED_OFF.match(act.clause.text)
            if match and act is not self._off:
                meant |= stems(match["what"])
        return bool(meant) and not meant & self._item.topic

    def list_features(self) -> list[str]:
        item = self._item
        off = self._off
        before = self._turn[: self._place]
        return [
            *named(
                kind=item.kind,
                sure_kind=(round(item.confidence * 5), item.kind),
                fault=item.is_fault,
                plain=round(item.plainness * 5),
                details=min(len(item.details), 4),
                due=item.due is not None,
                act=(off.speaker, off.kind, off.answer),
                length=min(len(off.clause.plain.words), 10),
            ),
            *self._list_named(),
            *self._list_talk(before),
            *mark("w", off.clause.plain.general),
            *mark(
                "b", [word for act in before for word in act.clause.plain.general][-8:]
            ),
        ]

    def _list_named(self) -> list[str]:
        """What the words name: the request, a detail of it, another one, or something new."""
        item = self._item
        off = self._off
        what = self._name(stems(off.matter.text) - EMPTY_VERBS)
        said = stems(off.clause.text)
        touched = [seq for seq in item.turns if seq < off.seq]
        gap = min(off.seq - max(touched, default=off.seq), 6)
        others = (len(said & other.topic) for other in self._others)
        is_pattern = off.plainness > 0
        return named(
            what=what,
            what_act=(what, off.kind, is_pattern),
            what_length=(what, min(len(off.matter.words), 4)),
            gap=gap,
            since=min(off.seq - asked_in(item), 6),
            share=(what, round(4 * overlap_coefficient(said, item.topic))),
            more=max(others, default=0) > len(said & item.topic),
        )

    def _list_talk(self, before: list[Act]) -> list[str]:
        """Whether the request is spoken of around the words, and what the agent leaves out."""
        topic = self._item.topic
        matter = stems(self._off.matter.text) - EMPTY_VERBS
        heard = _about(self._reply)
        return named(
            left=(self._name(self._left), self._name(matter)),
            left_out=self._name(self._left),
            reply=min(len(heard & topic), 2),
            reply_matter=min(len(heard & matter), 2),
            later_agent=min(len(_about(self._later) & topic), 3),
            agreed=round(4 * max(self._list_agreed(), default=0)),
            before=(bool(before), bool(_about(before) & topic)),
            turn=min(len(_about(self._turn) & topic), 3),
        )

    def _list_agreed(self) -> list[float]:
        """How likely the agent, after that, still says that it is to be done."""
        topic = self._item.topic
        return [act.belongs for act in self._later if told_in(act.clause.text) & topic]

    def _name(self, about: frozenset[str]) -> str:
        others = frozenset[str]().union(*(other.topic for other in self._others))
        places = {"own": self._item.topic, "detail": self._detail, "other": others}
        shared = (name for name, known in places.items() if about & known)
        return next(shared, "new" if about else "none")


def _about(acts: Iterable[Act]) -> frozenset[str]:
    return stems_of(act.clause.text for act in acts)


def correct(state: RequestState, act: Act) -> RequestState:
    """ "Make it Friday", "make that twelve": another day or number of the request talked of."""
    said = state.last_clause.text if state.last_seq == act.seq else ""
    named = find_named(state, f"{said} {act.clause.text}")
    if named >= 0:
        state = state._replace(current=named)
    elif state.open_item is None:
        opened = (at for at, other in enumerate(state.items) if other.status == "open")
        state = state._replace(current=max(opened, default=-1))
    item = state.open_item
    if item is None:
        return state
    days = state.days_of(act.clause.plain)
    if days and not item.delivers_words:
        item = touch(item, act.seq)._replace(due=days[-1])
    elif not _is_offered_number(state, act) and (
        changed := change_number(item, act.matter)
    ):
        item = touch(changed, act.seq)
    return put(state, state.current, item)._replace(offer=None, proposed=None)


def _is_offered_number(state: RequestState, act: Act) -> bool:
    """ "Eight" after "at eight or at one?": an hour that the agent named counts nothing."""
    heard = frozenset[str]().union(*(plain.vocabulary for plain in state.agent_said))
    numbers = [word.norm for word in act.matter.words if word.norm.isdecimal()]
    return any(number in heard for number in numbers)
