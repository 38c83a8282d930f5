"""What else was said about a request: by the clauses around it that belong to it."""

import re

from aftercall.english.stems import stems
from aftercall.english.words import load_patterns
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.state import Item, RequestState

MAX_GATHERED = 14  # clauses of one request
MAX_BEFORE = 4  # of them from before it was asked for
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
    others = [other for at, other in enumerate(items) if at != index]
    until = min((_asked_in(o) for o in others if _asked_in(o) > first), default=10**9)
    ends = [o.turns[-1] for o in others if _asked_in(o) < first]
    since = max((seq for seq in ends if seq < first), default=0)
    is_alone = all(_asked_in(other) != first for other in others)
    theirs = " ".join(" ".join((*other.details, other.words)) for other in others)
    before, after = [], []
    for act in said:
        words = act.clause.plain.said
        is_of_turn = act.seq == first and act.kind == "tell" and is_alone
        if words in theirs:
            continue
        if first <= act.seq < until and (act.belongs > BELONGS or is_of_turn):
            after.append(words)
        elif since < act.seq <= first and _leads_up(act):
            before.append(words)
    is_vague = index == 0 or len(item.topic) < FEW_STEMS
    near = before[-MAX_BEFORE:] if is_vague else []
    fresh = [words for words in (*near, *after) if not _is_known(words, item)]
    details = tuple(dict.fromkeys((*item.details, *fresh)))
    return item._replace(details=details[:MAX_GATHERED])


def _leads_up(act: Act) -> bool:
    """Whether it may be what a later request is about."""
    is_told = act.kind in ("tell", "fault") and not act.clause.is_question
    return is_told and not _INTRODUCES.fullmatch(act.matter.text)


def _is_known(words: str, item: Item) -> bool:
    return any(words in detail for detail in item.details)
