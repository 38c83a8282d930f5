"""What becomes of a request: the agent says it back, or the caller says something that ends it.

"I'm due for a cleaning" asks for nothing; "so that's a cleaning on Thursday" says what is to be
done. The model `agreements` tells how likely a clause of the agent does (`clause_model.py`).
"""

from datetime import date

from aftercall.english.dates import find_dates
from aftercall.english.words import stems
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.state import (
    Item,
    RequestState,
    RequestTalk,
    add,
    asked_in,
    put,
)
from aftercall.llm.rules.titles import (
    is_pointing_title,
    kind_of,
    names_other_day,
    title_of,
    title_of_agreement,
    title_of_promise,
    to_caller,
    told_in,
    without_opening,
)

AGREED = 0.4  # how likely the agent says what is to be done, where nobody asked for it
TAKEN = 0.25  # … where somebody did
MAY_END = 0.2  # how likely a clause must call something off to be looked at


def take_agreements(talk: RequestTalk) -> RequestState:
    """The state with what the agent says back or promises, and nobody asked for in these words.

    "I'm due for a cleaning" asks for nothing; "so that's a cleaning on Thursday" is agreed on.
    """
    state = talk.state
    for place, act in enumerate(talk.acts):
        is_agreed = act.speaker == "agent" and act.belongs >= TAKEN
        is_told = act.kind == "tell" and not act.clause.is_question
        if is_agreed and is_told:
            days = [each.mention.day for each in talk.days if each.place == place]
            state = _agree(state, act, place, days)
    return state


def _agree(state: RequestState, act: Act, place: int, days: list[date]) -> RequestState:
    """A request that is known is agreed on; what is named for the first time is a new one."""
    about = told_in(act.clause.text)
    known = _find_agreed(state, act, about)
    for index in known:
        item = state.items[index]
        agreed = item._replace(
            agreed=max(item.agreed, act.belongs), agreed_in=item.agreed_in | {place}
        )
        state = put(state, index, agreed)
    if known:
        return state
    plain = without_opening(act.clause.plain)
    title = title_of_promise(act.clause.plain) or to_caller(title_of(plain))
    agreed = Item(
        title=title,
        words=act.clause.plain.cited,
        turns=(act.seq,),
        kind=kind_of(title.lower()),
        confidence=act.belongs,
        topic=about,
        due=days[-1] if days else None,
        agreed=act.belongs,
        agreed_in=frozenset((place,)),
    )
    return add(state, agreed) if about and act.belongs >= AGREED else state


def _find_agreed(state: RequestState, act: Act, about: frozenset[str]) -> list[int]:
    """The requests that the words name; else one of which they name a detail.

    What the agent says after one was called off is about something else.
    """
    known = []
    for index, item in enumerate(state.items):
        off = item.off if item.status == "withdrawn" else None
        is_past = off is not None and off.seq < act.seq
        if item.turns[0] <= act.seq and not is_past:
            known.append(index)
    named = [at for at in known if about & state.items[at].topic]
    told = [at for at in known if about & state.items[at].about]
    just = [at for at in known if 0 < state.items[at].asked == act.seq - 1]
    just = [at for at in just if not state.items[at].agreed]
    return named or told[-1:] or (just if len(just) == 1 else [])


def find_end(talk: RequestTalk, item: Item) -> Act | None:
    """What the caller said after they asked for it and may have called it off with.

    Words that called off another request, or name another, are none.
    """
    others = [other for other in talk.state.items if other is not item]
    ended = [other.off for other in others if other.status == "withdrawn"]
    theirs = frozenset[str]().union(*(other.topic for other in others)) - item.topic
    later = [act for act in talk.acts if act.ends >= MAY_END]
    later = [act for act in later if act.seq > asked_in(item) and act not in ended]
    likely = [act for act in later if not stems(act.clause.text) & theirs]
    return max(likely, key=lambda act: act.ends, default=None)


def name_end(talk: RequestTalk, item: Item, end: Act) -> tuple[int, bool, int, int]:
    """How sure the turn is that ends it, and what else speaks for it or against.

    Whether it names the request, how many were asked for in between, and how likely the agent
    still says after it that it is to be done.
    """
    sure = sum(act.ends for act in talk.acts if act.seq == end.seq)
    is_named = bool(stems(end.clause.text) & item.topic)
    asked = [other.asked for other in talk.state.items]
    between = [seq for seq in asked if asked_in(item) < seq <= end.seq]
    agreed = [talk.acts[at] for at in item.agreed_in]
    after = max([act.belongs for act in agreed if act.seq > end.seq], default=0.0)
    return min(int(2 * sure), 4), is_named, min(len(between), 2), round(after * 3)


def title_agreed(talk: RequestTalk, index: int) -> tuple[str, int]:
    """How the agent said a request back last, and when: the thing and its day; or ""."""
    items = talk.state.items
    item = items[index]
    others = (other for at, other in enumerate(items) if at != index)
    shared = frozenset[int]().union(*(other.agreed_in for other in others))
    is_pointing = is_pointing_title(item.title)
    for place in sorted(item.agreed_in - shared, reverse=True):
        act = talk.acts[place]
        plain = act.clause.plain
        is_named = bool(told_in(plain.text) & item.topic) or is_pointing
        is_dated = item.due is None or bool(find_dates(plain, talk.state.today))
        is_other = names_other_day(plain, item.due, talk.state.today)
        title = title_of_promise(plain) or title_of_agreement(plain)
        is_more = bool(told_in(title) - told_in(item.title))
        is_whole = is_named and is_dated and is_more and not is_other
        if is_whole and title:
            return title, act.seq
    return "", item.asked
