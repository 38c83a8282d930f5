"""What else was said about a request: by the clauses around it that belong to it."""

import re

from aftercall.english.stems import stems
from aftercall.english.words import load_patterns
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.state import Item, RequestState

MAX_GATHERED = 14  # clauses of one request
MAX_OPENING = 2  # of them from where its matter was opened
MAX_BEFORE = 3  # of them from just before it was asked for
FEW_STEMS = 2  # a request that names less is told by what was said before it
BELONGS = 0.35
_INTRODUCES = load_patterns("aftercall.llm.rules", "state")["introduces"]
_CIVIL = re.compile(
    r"(?:hi|hello|hey|morning|good \w+|yes|no|ok|thanks?|thank you|cheers|bye|right|well|so|oh"
    r"|listen|look|sorry|please|anyway)(?: (?:there|you|then|so much|very much|love|dear|mate))*"
)


def gather_details(state: RequestState, acts: list[Act]) -> RequestState:
    """The state with the clauses that tell more of each open request."""
    said = [act for act in acts if act.speaker == "caller" and _tells(act)]
    items = [
        _with_details(state.items, index, said)
        if item.status == "open" and not item.delivers_words
        else item
        for index, item in enumerate(state.items)
    ]
    return state._replace(items=tuple(items))


def _tells(act: Act) -> bool:
    return bool(stems(act.clause.text)) and not _CIVIL.fullmatch(act.clause.text)


def _asked_in(item: Item) -> int:
    return item.asked or item.turns[0]


def _with_details(items: tuple[Item, ...], index: int, said: list[Act]) -> Item:
    item = items[index]
    first = _asked_in(item)
    others = [
        other
        for at, other in enumerate(items)
        if at != index and other.status == "open"
    ]
    theirs = " ".join(" ".join((*other.details, other.words)) for other in others)
    said = [act for act in said if act.clause.plain.said not in theirs]
    after = [act for act in said if act.seq >= first and _is_of(act, first, others)]
    since = _last_before(first, others)
    before = [
        act
        for act in said
        if since < act.seq <= first and act not in after and _leads_up(act)
    ]
    is_vague = index == 0 or len(item.topic) < FEW_STEMS
    told = [*(_choose(before) if is_vague else ()), *after]
    fresh = [act.clause.plain.said for act in told if not _is_asked(act, item)]
    new = [words for words in fresh if not _is_known(words, item)]
    details = tuple(dict.fromkeys((*item.details, *new)))
    return item._replace(details=details[:MAX_GATHERED])


def _choose(before: list[Act]) -> list[Act]:
    """How the matter was opened, and what was said just before it was asked for."""
    first, rest = before[:MAX_OPENING], before[MAX_OPENING:]
    return [*first, *rest[-MAX_BEFORE:]]


def _is_of(act: Act, first: int, others: list[Item]) -> bool:
    """Whether a clause belongs to the request asked for in a turn, and to no later one."""
    asked = [_asked_in(other) for other in others]
    if any(first < seq <= act.seq for seq in asked):
        return False
    is_of_turn = act.seq == first and act.kind == "tell" and first not in asked
    return is_of_turn or act.belongs > BELONGS


def _last_before(first: int, others: list[Item]) -> int:
    """The turn in which an earlier request was last talked of."""
    ends = (other.turns[-1] for other in others if _asked_in(other) < first)
    return max((seq for seq in ends if seq < first), default=0)


def _leads_up(act: Act) -> bool:
    """Whether it may be what a later request is about."""
    is_told = act.kind in ("tell", "fault") and not act.clause.is_question
    return is_told and not _INTRODUCES.fullmatch(act.matter.text)


def _is_asked(act: Act, item: Item) -> bool:
    """Whether the title already says it, as it was asked or as it was changed later."""
    about = stems(act.clause.text)
    is_ask = act.kind in ("ask", "correct") and act.seq in item.turns
    return is_ask and len(about - item.topic) * 2 <= len(about)


def _is_known(words: str, item: Item) -> bool:
    return any(words in detail for detail in item.details)
