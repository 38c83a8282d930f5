"""Requests called off, stopped or changed by the caller."""

import re

from aftercall.english.stems import stem, stems
from aftercall.english.text import Plain
from aftercall.english.words import compile_pattern, load_patterns, vocabulary
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.state import (
    EMPTY_VERBS,
    TO_PERSON,
    Item,
    RequestState,
    add,
    change_number,
    close,
    close_named,
    concerns_person,
    context_of,
    drop_details,
    find_match,
    find_named,
    put,
    touch,
)
from aftercall.llm.rules.titles import title_of

_CUES = load_patterns("aftercall.llm.rules", "state")
_REASONS = vocabulary(
    "because since as if i we he she they it there my our and but so till"
)
_REACHES = re.compile(
    r"^(?:call|ring|phone|text|email|leave|contact|use|write|come|put)\b"
)
_NO_DEED = compile_pattern(
    r"(?!ask|(?:tell|call|ring|text) (?:any|me|us))<deed>"
    r"(?: (?:it|that|this|them|him|her|those|me|anything|any|anybody|anyone))?(?: .*)?"
)
WITHDRAW_REACH = 3  # turns back in which "it" can be called off
STOP_REACH = 6  # turns back in which something can be called off without its name
_STOPPING = re.compile(r"\b(?:any ?more|again|any)\b")
_STOPS = ("stop", "no more", "please stop", "and stop", "and no more")
_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b")
_ALL = re.compile(
    r"^(?:all of it|everything|all|both|the whole thing|the lot|all of them)\b"
)


def withdraw(state: RequestState, act: Act) -> RequestState:
    """What is named goes; without a name, the request that was talked of last."""
    if _ALL.match(act.matter.text):
        return _withdraw_all(state, act)
    head = _head_of(act.matter)
    if stems(head) - EMPTY_VERBS:
        known = find_named(state, head)
        if known < 0:
            return drop_details(state, head)
        return close_named(state, known, head, act)
    if state.declined_seq == act.seq:
        return state
    return close(state._replace(told=()), _find_last(state, act), act)


def _withdraw_all(state: RequestState, act: Act) -> RequestState:
    for index, item in enumerate(state.items):
        if item.status in ("open", "refused"):
            state = close(state, index, act)
    return state


def _find_last(state: RequestState, act: Act) -> int:
    """The request that "forget that" means; -1 where it means something else."""
    named = state.last_clause.text if state.last_seq == act.seq else ""
    if stems(named) and _CUES["nouns"].match(named):
        return find_match(state, named)
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


def stop(state: RequestState, act: Act) -> RequestState:
    """ "Don't order it" calls off; "don't send me any more calendars" asks for an end to it."""
    text = act.matter.text
    known = find_match(state, text, minimum=0.99)
    if known >= 0 and state.items[known].turns[-1] >= act.seq - STOP_REACH:
        return close(state, known, act)
    if _NO_DEED.match(text) and not stems(text) - EMPTY_VERBS:
        return _stop_last(state, act)
    is_running = _STOPPING.search(text) or act.clause.text.startswith(_STOPS)
    is_reach = _REACHES.match(text) and not re.search(r"any ?more", text)
    if not is_running or is_reach or not stems(text):
        return state
    item = Item(
        title=title_of(act.clause.plain),
        words=act.clause.plain.cited,
        turns=(act.seq,),
        kind="other",
        confidence=act.confidence,
        topic=stems(text),
        details=context_of(state, act.seq, 0),
    )
    return add(state, item)


def _stop_last(state: RequestState, act: Act) -> RequestState:
    """ "Don't send anybody", "don't tell her": the last request with such a deed, or the last."""
    verb = stem(act.matter.text.split()[0])
    is_told = bool(TO_PERSON.match(act.matter.text))
    near = [
        (at, item)
        for at, item in enumerate(state.items)
        if item.status == "open" and item.turns[-1] >= act.seq - STOP_REACH
    ]
    same = [
        at
        for at, item in near
        if verb in stems(item.title) or (is_told and concerns_person(item))
    ]
    known = same or [at for at, _ in near]
    return close(state, known[-1], act) if known else state


def take_over(state: RequestState, act: Act) -> RequestState:
    """ "That's on me": what was just taken for a request is the caller's own to do."""
    item = state.open_item
    is_pointer = bool(re.match(r"(?:so |and )?(?:that|it) is ", act.clause.text))
    if item and is_pointer and item.turns[-1] == act.seq:
        return put(state, state.current, item._replace(status="own"))
    return state


def correct(state: RequestState, act: Act) -> RequestState:
    """ "Make it Friday", "twelve, not ten": another day or number of the request talked of."""
    state = _turn_to_day(state, act)
    if act.answer == "no" and (named := _find_denied(state, act)) >= 0:
        return close(state, named, act)
    if state.open_item is None:
        opened = (at for at, other in enumerate(state.items) if other.status == "open")
        state = state._replace(current=max(opened, default=-1))
    item = state.open_item
    if item is None:
        return state
    days = state.days_of(act.clause.plain)
    if days:
        item = touch(item, act.seq)._replace(due=days[-1])
    elif changed := change_number(item, act.matter):
        item = touch(changed, act.seq)
    return put(state, state.current, item)._replace(offer=None, proposed=None)


def _turn_to_day(state: RequestState, act: Act) -> RequestState:
    """ "Not Monday": the request that was put on a Monday is talked of."""
    names = _WEEKDAY.findall(act.clause.text)
    dated = [
        at
        for at, item in enumerate(state.items)
        if item.status == "open" and item.due and f"{item.due:%A}".lower() in names
    ]
    return state._replace(current=dated[-1]) if len(dated) == 1 else state


def _find_denied(state: RequestState, act: Act) -> int:
    """ "No, not the magician": the request for one."""
    is_denied = act.clause.text.endswith(f"not {act.matter.text}")
    head = _head_of(act.matter)
    return find_named(state, head, is_open=True) if is_denied and stems(head) else -1
