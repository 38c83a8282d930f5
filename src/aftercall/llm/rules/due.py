"""The day of a request: said with it, asked for, put forward by the agent, or taken back."""

import re
from datetime import date

from aftercall.english.text import Plain
from aftercall.english.words import load_patterns, stems
from aftercall.llm.rules.acts import UNSURE, Act
from aftercall.llm.rules.state import Item, RequestState, add, put, touch
from aftercall.llm.rules.titles import introduces, title_of

_CUES = load_patterns("aftercall.llm.rules", "state")
_CALLS_BACK = re.compile(
    r"(?:ask|tell|get|have) (?:\S+ ){1,3}?(?:to )?(?:call|ring|phone|text|email) (?:me|us)\b"
)
MAX_ASKED_DAY = 5  # words of a question that puts a day forward
DAY_REACH = 6  # turns back in which a request was talked of, for a day to be its day
REACH = 16  # turns back in which the caller told what a day is for


def settle(state: RequestState, act: Act, day: date | None) -> RequestState:
    """A day that the agent put forward and the caller takes is the day of the request.

    Where nothing is asked for yet, taking it is the request.
    """
    item = state.open_item
    if item and item.turns[-1] < act.seq - DAY_REACH:
        return state
    if item:
        taken = touch(item, state.proposed_seq, act.seq)._replace(due=day)
        return state if item.delivers_words else put(state, state.current, taken)
    told = [(seq, plain) for seq, plain in state.told if seq >= act.seq - REACH]
    told = [pair for pair in told if not introduces(pair[1])] or told
    if not told or any(other.due == day for other in state.items):
        return state
    first_seq, first = _main_matter(told)
    near = [plain for _, plain in told if plain is not first]
    booked = Item(
        title=title_of(first),
        words=first.cited,
        turns=tuple(sorted({first_seq, state.proposed_seq, act.seq})),
        kind="booking",
        confidence=UNSURE,
        topic=stems(first.text),
        due=day,
        details=tuple(plain.said for plain in (*near, *state.agent_said)),
    )
    return add(state, booked)


def _main_matter(told: list[tuple[int, Plain]]) -> tuple[int, Plain]:
    """What the caller needs or what is wrong, else the first thing that says something."""
    for pair in told:
        if _CUES["needs"].search(pair[1].text):
            return pair
    for pair in told:
        if len(stems(pair[1].text)) > 1:
            return pair
    return told[0]


def day_of_ask(state: RequestState, act: Act, item: Item) -> date | None:
    """The day that the request itself names; a day inside a message or note is not it."""
    if item.kind == "note":
        return None
    days = state.mentions_of(act.clause.plain)
    if item.delivers_words and not _CALLS_BACK.match(act.matter.text):
        head = " ".join(act.matter.text.split()[:3])
        end = act.clause.text.find(head) + len(head)
        days = [mention for mention in days if mention.start <= end + 1]
    return days[0].day if days else None


def take_day(state: RequestState, act: Act) -> RequestState:
    """A day said around a request is its day where one was asked for, or the words say so."""
    days = state.mentions_of(act.clause.plain)
    is_long_question = act.clause.is_question and len(act.matter.words) > MAX_ASKED_DAY
    if not days or is_long_question or _CUES["farewell"].match(act.matter.text):
        return state
    item = state.open_item
    if state.proposed and item is None:
        return settle(state, act, days[-1].day)._replace(proposed=None)
    is_for_words = state.asks_day or _CUES["due_of_words"].match(act.matter.text)
    if item is None or (item.delivers_words and not is_for_words):
        return state
    if item.turns[-1] < act.seq - DAY_REACH or _CUES["other_day"].match(
        act.matter.text
    ):
        return state
    due = touch(item, act.seq)._replace(due=days[-1].day)
    return put(state, state.current, due)._replace(proposed=None)
