"""What the agent offers: taken up, it is a request; declined, it is none."""

import re

from aftercall.english.stems import stems
from aftercall.english.text import Plain
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.asking import join_fault
from aftercall.llm.rules.due import settle
from aftercall.llm.rules.state import (
    EMPTY_VERBS,
    Item,
    Offer,
    RequestState,
    add,
    close,
    context_of,
    find_match,
    is_pointing,
    put,
    touch,
    with_detail,
)
from aftercall.llm.rules.titles import find_person, kind_of, title_of, to_caller

# An agent that offers these asks what it can do.
_OPEN_OFFERS = EMPTY_VERBS | stems(
    "message list something anything details information start arrange"
)
_QUESTION_LEAD = re.compile(
    r"^(?:and |so |but |ok )*(?:do (?:i|we|you)(?: guys)? (?:get|have|do)|is there|are there"
    r"|have you(?: got)?|can i have) (?:a |an |any |the )?"
)


def answer_offer(state: RequestState, act: Act) -> RequestState:
    """An answer closes the agent's offer or settles the day it put forward."""
    offer = state.offer
    if not act.answer:
        return state
    if act.answer == "no":
        return decline(state, act)._replace(offer=None, proposed=None)
    is_need = offer is not None and offer.is_need and not act.is_bare
    if offer and not is_need:
        state = accept(state, act, offer)
    if state.proposed and not state.days_of(act.clause.plain):
        state = settle(state, act, state.proposed)
    return state._replace(offer=None, proposed=None)


def decline(state: RequestState, act: Act) -> RequestState:
    """A no to what was just asked for, or to "do you still want", calls it off."""
    offer = state.offer
    if offer is None:
        return state
    about = find_match(
        state, offer.matter.text, state.current if offer.is_still else -1
    )
    is_asked = about >= 0 and state.items[about].asked == offer.seq - 1
    if offer.is_still or is_asked:
        return close(state, about, act)._replace(declined_seq=act.seq)
    named, item = stems(offer.matter.text), state.open_item
    is_just_asked = item is not None and item.asked == offer.seq - 1
    is_of_it = item is not None and bool(
        named & item.about or is_pointing(offer.matter)
    )
    return state._replace(
        refused=state.refused | named,
        declined_seq=0 if is_just_asked and is_of_it else act.seq,
    )


def accept(state: RequestState, act: Act, offer: Offer) -> RequestState:
    """An offer taken up is a request, or a detail of one that was asked already."""
    known, item = find_match(state, offer.matter.text), state.open_item
    if known < 0 and item and _is_offered(item, offer):
        known = state.current
        detailed = with_detail(item, to_caller(offer.matter.said))
        state = put(state, known, detailed)
    elif known < 0 and is_pointing(offer.matter):
        offer = _resolve_pointer(state, act, offer)
        known = state.current if is_pointing(offer.matter) and item else -1
    if known >= 0:
        return put(state, known, touch(state.items[known], offer.seq, act.seq))
    is_open = not stems(offer.matter.text) - _OPEN_OFFERS
    item = _to_item(state, act, offer)
    if is_open and is_pointing(offer.matter) and item.details:
        title = f"{item.title}: {item.details[-1]}"
        return add(state, item._replace(title=title, topic=stems(title)))
    return state if is_open else join_fault(state, item)


def _resolve_pointer(state: RequestState, act: Act, offer: Offer) -> Offer:
    """ "Would you like to book that?": what the agent or the caller just spoke of."""
    about = [p for p in state.agent_said if _is_new_matter(p, state.open_item)]
    if about and not state.question.words:
        return offer._replace(matter=about[-1])
    asked = _QUESTION_LEAD.sub("", state.question.text, count=1)
    if not stems(asked):
        return offer
    start = len(state.question.text) - len(asked)
    return offer._replace(matter=state.question.after(start), seq=act.seq - 2)


def _to_item(state: RequestState, act: Act, offer: Offer) -> Item:
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


def _is_new_matter(plain: Plain, item: Item | None) -> bool:
    """Whether an agent's clause, to which its offer points, is about something new."""
    about = stems(plain.text)
    return len(about) > 1 and not (item and about & item.about)


def _is_offered(item: Item, offer: Offer) -> bool:
    """Whether an offer is about a request: just asked for, being set right, or settled with it."""
    is_mended = item.is_fault and item.turns[-1] >= offer.seq - 2
    return item.asked >= offer.seq - 1 or is_mended or offer.seq in item.turns
