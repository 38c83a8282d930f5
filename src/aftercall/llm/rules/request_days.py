"""The day of a request: a small model chooses among the days that are named around it, or none.

It looks at each day by itself: how near to the request it was said, by whom, with which words, what
was replied, whether it was the last one, and whether more words of this request than of another
stand beside it (`request_days.json`). The days of a request and "none" share one probability.
`tools/train_reader.py` makes the same features when it trains.
"""

import re
from bisect import bisect_left
from datetime import date
from typing import NamedTuple

from aftercall.english.dates import DateMention
from aftercall.english.text import generalise
from aftercall.english.words import stems, stems_of
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.clause_model import YES, load_clause_model, mark, named
from aftercall.llm.rules.state import (
    ACTED_ON,
    HeardDay,
    RequestState,
    RequestTalk,
    asked_in,
    said_of,
)
from aftercall.model.calls import Speaker

NO = "no"
LIKELY = 0.35  # how likely a day must be the request's
LIKELY_TOLD = 0.6  # … where the request is to tell or to note something
TOLD_KINDS = ("note", "message")
MAX_LAST_WORDS = 3  # of a last word that names a day: "by Thursday"
FAR = 4  # turns
MAX_BEFORE = 12  # days named before the ask that are looked at
MAX_AFTER = 24  # … and after it
NEAR_ITEMS = 6  # requests before and after it
NEAR_CLAUSES = 12  # of the same turn
MAX_WORDS = 30
MAX_TITLE_WORDS = 6
MAX_SHARED = 4  # words that are counted
NEAR_TURNS = 2  # between a weekday and its date
_WEEKDAY = re.compile(
    r"(?:on |the |that )?(?!today)\w+day(?:'s)?(?: (?:morning|afternoon|evening|night|lunchtime))?"
)
_DATE = re.compile(r"\d|\b(?:first|second|third)\b")
_PROMISES = re.compile(r"\b(?:i|we) (?:will|shall)\b")
Likely = dict[date, float]


def choose_days(talk: RequestTalk) -> RequestState:
    """The state with the day of each open request, or none."""
    talk = date_weekdays(talk)
    items = list(talk.state.items)
    spoken = list_spoken(talk)
    for index, item in enumerate(items):
        if item.status == "open":
            items[index] = item._replace(due=_choose_day(talk, spoken, index))
    return talk.state._replace(items=tuple(items))


def date_weekdays(talk: RequestTalk) -> RequestTalk:
    """The talk with each bare "Friday" as the Friday whose date is told beside it.

    "It's the Saturday", "so Saturday the twenty-sixth": both are the twenty-sixth.
    """
    dated = [each for each in talk.days if _DATE.search(_said(each))]
    sure = {
        each.mention.day for each in talk.days if not _WEEKDAY.fullmatch(_said(each))
    }
    meant: dict[date | None, date] = {}
    for heard in talk.days:
        day = heard.mention.day
        same = [each for each in dated if each.mention.day.weekday() == day.weekday()]
        turns = {each.mention.day: abs(each.act.seq - heard.act.seq) for each in same}
        nearest = min(turns, key=turns.__getitem__, default=day)
        if day not in sure and turns.get(nearest, FAR) <= NEAR_TURNS:
            meant[day] = nearest
    days = []
    for heard in talk.days:
        day = meant.get(heard.mention.day, heard.mention.day)
        days.append(heard._replace(mention=heard.mention._replace(day=day)))
    items = tuple(
        item._replace(due=meant.get(item.due, item.due)) for item in talk.state.items
    )
    return talk._replace(days=days, state=talk.state._replace(items=items))


def _said(heard: HeardDay) -> str:
    return said_of(heard.mention, heard.act.clause.text)


def _weigh_days(around: "NamedDays") -> Likely:
    """How likely each day is the request's; what is left is how likely it has none."""
    model = load_clause_model("request_days")
    odds = {}
    for day in around.days:
        labels = model.weigh(around.list_features(day))
        odds[day] = labels[YES] / labels[NO]
    whole = 1 + sum(odds.values())
    return {day: odd / whole for day, odd in odds.items()}


def _choose_day(
    talk: RequestTalk, spoken: "list[SpokenDay]", index: int
) -> date | None:
    """The likeliest, if it is likely enough; what a call ends with was said back by nobody."""
    item = talk.state.items[index]
    if item.due and item.due == _find_last_word(talk):
        return item.due
    likely = _weigh_days(NamedDays(talk.state, spoken, index))
    best = max(likely, key=likely.__getitem__, default=None)
    is_told = item.kind in TOLD_KINDS and best != item.due
    least = LIKELY_TOLD if is_told else LIKELY
    return best if best and likely[best] >= least else None


def _find_last_word(talk: RequestTalk) -> date | None:
    """The day that the last turn asks for or changes: "no wait, Friday"."""
    if not talk.days or talk.days[-1].act.seq != talk.acts[-1].seq:
        return None
    last = talk.days[-1]
    is_short = len(last.act.clause.plain.words) <= MAX_LAST_WORDS
    is_asked = last.act.kind in ("ask", "correct") or is_short
    return last.mention.day if is_asked else None


class SpokenDay(NamedTuple):
    """A day that was named, and what is the same of it for all requests."""

    day: date
    act: Act
    reply: Act | None
    """What the next turn begins with."""
    told: frozenset[str]
    """Stems of the clauses near it in the same turn."""
    features: list[str]
    """What the clause does that names it, and the words around it."""


def list_spoken(talk: RequestTalk) -> list[SpokenDay]:
    """The days of a call in order, each looked at once whatever the number of requests."""
    spoken = []
    for place, act, mention in talk.days:
        near = talk.acts[max(0, place - NEAR_CLAUSES) : place + NEAR_CLAUSES]
        later = talk.acts[place + 1 : place + NEAR_CLAUSES]
        reply = next((each for each in later if each.seq != act.seq), None)
        told = stems_of(each.clause.text for each in near if each.seq == act.seq)
        features = _list_words(act, mention)
        spoken.append(SpokenDay(mention.day, act, reply, told, features))
    return spoken


def _list_words(act: Act, mention: DateMention) -> list[str]:
    """What the clause does, and the words before, after and of the day."""
    plain = act.clause.plain
    words = plain.general
    first = plain.index(mention.start)
    end = plain.index(mention.end)
    before = words[:first]
    after = words[end:]
    return [
        *named(
            f"{act.speaker}:",
            act=act.kind,
            asks=act.clause.is_question,
            answer=act.answer,
            agreed=round(act.belongs * 4),
            bare=len(before) + len(after) <= 2,
            before=before[-1:],
            before2=before[-2:],
            after=after[:1],
            after2=after[:2],
            first2=words[:2],
        ),
        *mark(f"{act.speaker}:u", words[:MAX_WORDS]),
        *mark(f"{act.speaker}:said", words[first:end]),
    ]


class NamedDays:
    """The days that are named around a request."""

    def __init__(
        self, state: RequestState, spoken: list[SpokenDay], index: int
    ) -> None:
        items = state.items
        self._today = state.today
        self._item = items[index]
        self._about = self._item.about
        start = bisect_left(spoken, asked_in(self._item), key=lambda each: each.act.seq)
        heard = spoken[max(0, start - MAX_BEFORE) : start + MAX_AFTER]
        near = items[max(0, index - NEAR_ITEMS) : index + NEAR_ITEMS + 1]
        near_open = [item for item in near if item.status == "open"]
        self._others = [item for item in near_open if item is not self._item]
        self._theirs = [item.about for item in self._others]
        asked = [item for item in self._others if item.confidence >= ACTED_ON]
        self._asked = [item.turns[0] for item in asked]
        self._heard = [(each, self._name_topic(each)) for each in heard]
        self._own = [each for each, topic in self._heard if topic == "own"]
        self.days = list(dict.fromkeys(_days_of(heard)))

    def list_features(self, day: date) -> list[str]:
        """How a day stands to the request, and where, how and by whom it was said."""
        item = self._item
        away = _name_distance((day - self._today).days)
        title = item.title.lower().split()[:MAX_TITLE_WORDS]
        title = [generalise(word) for word in title]
        features = [
            *named(
                kind=item.kind,
                words=item.delivers_words,
                away=away,
                kind_away=(item.kind, away),
                title2=title[:2],
            ),
            *mark("title", title),
            *self._list_order(day),
            *self._list_shared(day),
        ]
        for heard, topic in self._heard:
            if heard.day == day:
                features += self._list_place(heard, topic)
                features += self._list_reply(heard)
                features += heard.features
        return features

    def _list_order(self, day: date) -> list[str]:
        """Whether it was the last day named, by each of the speakers, and whether it was followed.

        That is: who follows the talk clause by clause takes it for the day of the request.
        """
        item = self._item
        told = [each for each in self._own if not each.act.clause.is_question]
        own = _days_of(self._own)
        by_caller = _days_of(told, "caller")
        by_agent = _days_of(told, "agent")
        last_told = (by_caller[-1:] == [day], by_agent[-1:] == [day])
        taken = "this" if item.due == day else "other" if item.due else "none"
        return named(
            last_own=(own[-1:] == [day], day in own),
            last_told=last_told,
            kind_told=(item.kind, last_told),
            taken=taken,
            taken_told=(taken, last_told),
            of_other=(taken, any(other.due == day for other in self._others)),
        )

    def _list_shared(self, day: date) -> list[str]:
        """Words of the request where the day is named: how many more than of another request.

        Those beside a promise of the agent are counted by themselves.
        """
        item = self._item
        told = []
        asked = []
        promised = [-1]
        for heard, _ in self._heard:
            if heard.day != day:
                continue
            shared = len(heard.told & self._about)
            others = [len(heard.told & about) for about in self._theirs]
            told.append(shared - max(others, default=0))
            clause = stems(heard.act.clause.text)
            others = [len(clause & each.topic) for each in self._others]
            asked.append(len(clause & item.topic) - max(others, default=0))
            is_agent = heard.act.speaker == "agent"
            if is_agent and _PROMISES.search(heard.act.clause.text):
                promised.append(shared)
        return named(
            lead=_limit(max(told)),
            lead_clause=_limit(max(asked)),
            promised=_limit(max(promised)),
        )

    def _list_place(self, heard: SpokenDay, topic: str) -> list[str]:
        """Where it was said, seen from the request."""
        item = self._item
        act = heard.act
        is_ask = item.words in act.clause.plain.cited or act.matter.cited == item.words
        shared = len(stems(act.clause.text) & item.topic)
        shared_told = len(heard.told & self._about)
        most = max([len(heard.told & about) for about in self._theirs], default=0)
        return named(
            f"{act.speaker}:",
            gap=max(-FAR, min(act.seq - item.turns[0], FAR)),
            within=act.seq in item.turns,
            ask=is_ask,
            ask_kind=(is_ask, item.kind),
            topic=topic,
            topic_asks=(topic, act.clause.is_question),
            topic_kind=(topic, item.kind),
            topic_more=(topic, shared_told > most, shared_told < most),
            shared=min(shared, 2),
            shared_told=min(shared_told, 3),
        )

    def _name_topic(self, heard: SpokenDay) -> str:
        """Whether the talk is of this request, or of one asked for before or after it."""
        first = self._item.turns[0]
        seq = heard.act.seq
        others = max([turn for turn in self._asked if turn <= seq], default=0)
        if first <= seq and first >= others:
            return "own"
        return "none" if not others else "before" if others < first else "after"

    def _list_reply(self, heard: SpokenDay) -> list[str]:
        """What the next turn begins with, and whether it names the day again."""
        reply = heard.reply
        if reply is None:
            return []
        days = [each.day for each, _ in self._heard if each.act.seq == reply.seq]
        is_same = heard.day in days
        return named(
            f"{heard.act.speaker}:",
            reply=(reply.speaker == heard.act.speaker, reply.answer or reply.kind),
            reply_day="same" if is_same else "other" if days else "none",
        )


def _days_of(heard: list[SpokenDay], speaker: Speaker | None = None) -> list[date]:
    """The days that were named, by one of the speakers or by both."""
    of_both = speaker is None
    return [each.day for each in heard if of_both or each.act.speaker == speaker]


def _limit(number: int) -> int:
    """A number of words; what is beyond `MAX_SHARED` says no more."""
    return max(-MAX_SHARED, min(number, MAX_SHARED))


def _name_distance(days: int) -> str:
    """How far off a day is: only the nearest are told apart."""
    if days < 0:
        return "past"
    return str(days) if days < 2 else "week" if days < 8 else "far"
