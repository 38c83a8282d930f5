"""`apply(state, act) -> state`: how each act of a call changes what is asked for."""

import re
from collections.abc import Callable
from datetime import date

from aftercall.english.text import Plain
from aftercall.english.words import load_patterns, stems
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.asking import ask
from aftercall.llm.rules.offers import (
    answer_offer,
    correct,
    decline,
    withdraw,
)
from aftercall.llm.rules.state import (
    ACTED_ON,
    MAX_CONFIRMED,
    MAX_DETAILS,
    MAX_SLOTS,
    MAX_TOLD,
    NOTHING,
    TAKEN_UP,
    UNKNOWN,
    Item,
    Offer,
    RequestState,
    close,
    find_match,
    find_named,
    put,
    put_right,
    take_day,
    touch,
    with_detail,
)
from aftercall.llm.rules.titles import find_person

_CUES = load_patterns("aftercall.llm.rules", "state")
MAX_DENIED_WORDS = 3
LEFT_OUT_REACH = 7  # turns back in which an agent may say that something is left out
_PROMISED = re.compile(
    r"(?:and |so )*(?:i|we|they|he|she|it|the \S+) (?:will|am going to)\b"
)


def apply(state: RequestState, act: Act) -> RequestState:
    """The state after one more clause."""
    if act.speaker == "agent":
        return _hear_agent(state, act)
    is_new_turn = state.last_seq != act.seq
    after = _hear_caller(state, act)
    days = after.days_of(act.clause.plain)
    is_asking = act.clause.is_question and act.kind not in _CHANGES
    earlier_question = NOTHING if is_new_turn else state.question
    earlier_day = None if is_new_turn else after.last_day
    return after._replace(
        told=_add_told(after, act),
        last_clause=act.clause.plain,
        last_seq=act.seq,
        last_day=days[-1] if days else earlier_day,
        question=act.clause.plain if is_asking else earlier_question,
    )


def _add_told(state: RequestState, act: Act) -> tuple[tuple[int, Plain], ...]:
    """With the clause, if it says what the call is about."""
    matter = act.matter
    tells = act.kind in ("tell", "own") and not act.is_bare and len(matter.words) > 1
    is_empty = not stems(matter.text) or _CUES["introduces"].fullmatch(matter.text)
    return (
        state.told
        if is_empty or not tells
        else (*state.told, (act.seq, matter))[-MAX_TOLD:]
    )


def _hear_agent(state: RequestState, act: Act) -> RequestState:
    """What the agent offers, refuses, says back or asks, and which days they put forward.

    A new topic ("anything else?") closes the one before.
    """
    text = act.clause.text
    if act.seq != state.last_seq:
        state = _begin_agent_turn(state, act)
    days = state.days_of(act.clause.plain)
    state = _propose(state, act, days)
    if act.kind == "refuse":
        return _refuse(state, act)
    if act.kind == "offer":
        state = _take_up(state, act, has_day=bool(days))
        offer = Offer(act.matter, act.seq)
        about = find_match(state, act.matter.text, state.current)
        return state._replace(offer=offer, current=about)
    if match := _CUES["left_out"].match(text):
        return _leave_out(state, act, match["what"])
    state = state._replace(agent_said=(*state.agent_said, act.clause.plain))
    state = _take_up(state, act, has_day=bool(days))
    state = _say_back(state, act, days)
    if _CUES["new_topic"].search(text):
        return state._replace(current=-1, told=(), offer=None, proposed=None)
    return _be_asked(state, act) if act.clause.is_question else state


def _leave_out(state: RequestState, act: Act, what: str) -> RequestState:
    """ "All right, no coach": the agent says back what the caller no longer wants."""
    known = find_named(state, what)
    if known < 0 or state.items[known].turns[-1] < act.seq - LEFT_OUT_REACH:
        return state
    for item in state.items:
        is_just_off = item.off is not None and item.off.seq == act.seq - 1
        if is_just_off and stems(what) & item.topic:
            return state
    return close(state, known, act)


def _begin_agent_turn(state: RequestState, act: Act) -> RequestState:
    """An offer stands only while the caller asks back about it."""
    return state._replace(
        offer=state.offer if state.question.words else None,
        proposed=None,
        asks_day=False,
        asks_detail=False,
        agent_said=(),
        last_seq=act.seq,
    )


def _propose(state: RequestState, act: Act, days: list[date]) -> RequestState:
    """Days that an agent puts forward, not those it promises or tells when asked."""
    is_question = act.clause.is_question or act.kind == "offer"
    is_told = not is_question and _answers(state)
    if not days or is_told or _PROMISED.match(act.clause.text):
        return state
    slots = (*(state.slots if state.proposed else ()), *days)
    return state._replace(
        proposed=days[-1], proposed_seq=act.seq, slots=slots[-MAX_SLOTS:]
    )


def _say_back(state: RequestState, act: Act, days: list[date]) -> RequestState:
    """Keeps how the agent said a request back: it often names what the caller only points to."""
    about = stems(act.clause.text)
    is_aside = act.clause.is_question or bool(_CUES["aside"].search(act.clause.text))
    if not about or is_aside:
        return state
    fresh = [at for at, item in enumerate(state.items) if _was_just_said(item, act)]
    named = [at for at in fresh if about & state.items[at].about]
    dated = [at for at, item in enumerate(state.items) if item.due and item.due in days]
    meant = named or fresh or dated
    if len(meant) != 1:
        return state
    item = state.items[meant[0]]
    confirmed = (*item.confirmed, act.clause.plain.said)[-MAX_CONFIRMED:]
    items = list(state.items)
    items[meant[0]] = item._replace(confirmed=confirmed)
    return state._replace(items=tuple(items))


def _was_just_said(item: Item, act: Act) -> bool:
    return item.status == "open" and item.turns[-1] >= act.seq - 1


def _be_asked(state: RequestState, act: Act) -> RequestState:
    """A question of the agent: what the next answer will be about."""
    named = find_named(state, act.clause.text)
    return state._replace(
        asks_day=bool(_CUES["asks_day"].search(act.clause.text)),
        asks_detail=_asks_detail(state, act),
        current=named if named >= 0 else state.current,
    )


def _asks_detail(state: RequestState, act: Act) -> bool:
    """Whether an agent asks for more about the request; not by the way about something else."""
    text = act.clause.text
    item = state.open_item
    is_of_it = item is not None and bool(stems(text) & item.about)
    is_open = bool(_CUES["asks_more"].match(text)) or len(act.clause.plain.words) <= 4
    return (is_of_it or is_open) and not _CUES["asks_other"].search(text)


def _answers(state: RequestState) -> bool:
    """Whether the caller just asked something else than for a free day."""
    asked = state.question
    is_slot = bool(_CUES["asks_slot"].search(asked.text))
    return bool(asked.words) and not is_slot and not state.days_of(asked)


def _take_up(state: RequestState, act: Act, *, has_day: bool) -> RequestState:
    """An agent that asks on, promises or proposes a day has understood a request as one."""
    item = state.open_item
    if item is None or item.confidence >= ACTED_ON:
        return state
    if item.confidence < UNKNOWN and not has_day:
        return state
    goes_on = has_day or _goes_on(item, act)
    if not goes_on or item.turns[-1] != act.seq - 1:
        return state
    if not act.clause.is_question:
        item = with_detail(item, act.clause.plain.said)
    return put(state, state.current, item._replace(confidence=TAKEN_UP))


def _goes_on(item: Item, act: Act) -> bool:
    """Whether an agent asks on about a request, or promises something of it."""
    text = act.clause.text
    if _PROMISED.match(text) or _CUES["agrees"].match(text):
        return True
    return act.clause.is_question or bool(stems(text) & stems(item.title))


_POINTED = ("do that", "that", "")


def _refuse(state: RequestState, act: Act) -> RequestState:
    """What the agent will not do is not asked for any more."""
    item = state.open_item
    at = state.current
    if item is None:
        return state
    is_meant = bool(stems(act.matter.text) & item.topic) or act.matter.text in _POINTED
    return put(state, at, item._replace(status="refused")) if is_meant else state


def _hear_caller(state: RequestState, act: Act) -> RequestState:
    """An answer to an offer, then what the clause itself does: ask, call off, correct, add."""
    forbidden = _find_forbidden(state, act)
    if forbidden >= 0 and act.kind in ("tell", "correct", "withdraw"):
        return close(state, forbidden, act)
    had_offer = state.offer is not None
    state = answer_offer(state, act)
    if state.offer and act.kind == "withdraw":
        state = decline(state, act)._replace(offer=None, proposed=None)
    if act.kind in ("tell", "correct") and _denies(act) and not had_offer:
        denied = find_named(state, act.matter.text)
        if denied >= 0:
            return close(state, denied, act)
    if act.kind in _CHANGES:
        return _CHANGES[act.kind](state, act)
    if act.kind in _SILENT:
        return state
    state = take_day(state, act)
    return state if act.is_bare else _add_detail(state, act)


_FORBIDS = re.compile(
    r"(?:(?:no|and|but|so|please|then|actually) )*do not (?P<deed>\w+)"
    r"(?: (?:it|them|that|one)\b| .*\b(?:at all|after all|altogether|any ?more|any\w+|nothing)$)"
)
_DEED_WORDS = 3  # at the beginning of a request, in which its verb is
_SILENT = ("hypothetical", "ignore", "hearsay", "own")
_CHANGES: dict[str, Callable[[RequestState, Act], RequestState]] = {
    "withdraw": withdraw,
    "ask": ask,
    "unclear": ask,
    "fault": ask,
    "correct": correct,
}


def _find_forbidden(state: RequestState, act: Act) -> int:
    """ "Don't cancel it": the open request whose deed is forbidden; -1 for none."""
    match = _FORBIDS.match(act.clause.text)
    if match is None:
        return -1
    found = -1
    for at, item in enumerate(state.items):
        asked = (
            " ".join(said.split()[:_DEED_WORDS]) for said in (item.words, *item.details)
        )
        if item.status == "open" and stems(match["deed"]) & stems(" ".join(asked)):
            found = at
    return found


def _denies(act: Act) -> bool:
    """ "No taxi", "no, not the cake"; "no, the cake" is another answer."""
    text = act.matter.text
    is_apart = any(word.stop for word in act.clause.plain.words if word.norm == "no")
    is_short = act.answer == "no" and len(act.matter.words) <= MAX_DENIED_WORDS
    return is_short and (not is_apart or act.clause.text.endswith(f"not {text}"))


def _add_detail(state: RequestState, act: Act) -> RequestState:
    """What the caller says next of a request, or in answer to a question about it."""
    item = state.open_item
    if item is None or len(item.details) >= MAX_DETAILS:
        return state
    is_same_turn = max(item.asked, item.turns[0]) == act.seq
    is_meant = is_same_turn or state.asks_detail or act.answer == "yes"
    matter = put_right(act.matter)
    about = stems(matter.text)
    if not is_meant or not about or about & state.refused:
        return state
    said = put_right(act.clause.plain) if act.answer == "no" else matter  # "no roses"
    updated = touch(item, act.seq)._replace(
        details=(*item.details, said.said),
        person=item.person or find_person(matter),
    )
    return put(state, state.current, updated)
