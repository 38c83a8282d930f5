"""What the agent says back or promises: it is agreed on if the caller lets it stand.

"I'm due for a cleaning" asks for nothing; "so that's a cleaning on Thursday" says what is to be
done. The model `agreements` tells how likely a clause of the agent does (`clause_model.py`).
"""

from datetime import date

from aftercall.english.dates import find_dates
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.state import Item, RequestState, RequestTalk, add, put
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


def title_agreed(talk: RequestTalk, index: int) -> str:
    """How the agent said a request back last: the thing and its day, and nothing else; or ""."""
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
            return title
    return ""
