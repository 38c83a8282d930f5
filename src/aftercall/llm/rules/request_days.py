"""The day of a request: a small model chooses among the days that are named around it, or none.

It looks at each day by itself: how near to the request it was said, by whom, with which words, what
was replied, whether it was the last one, and whether more words of this request than of another
stand beside it (`request_days.json`). The days of a request and "none" share one probability.
`tools/train_reader.py` makes the same features when it trains.
"""

import re
from bisect import bisect_left
from datetime import date

from aftercall.english.words import stems
from aftercall.llm.rules.clause_model import generalise, load_clause_model
from aftercall.llm.rules.judgement import YES, RequestTalk, mark, named
from aftercall.llm.rules.state import ACTED_ON, HeardDay, RequestState, asked_in
from aftercall.model.calls import Speaker

NO = "no"
LIKELY = 0.5  # how likely a day must be the request's
AGREED = 0.42  # … where it was followed as that
FOLLOWED = 0.2  # … where it was named last, and followed as that
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
    for index, item in enumerate(items):
        if item.status == "open":
            items[index] = item._replace(due=_choose_day(talk, index))
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
    """The words that name the day."""
    return heard.act.clause.text[heard.mention.start : heard.mention.end]


def _weigh_days(around: "NamedDays") -> Likely:
    """How likely each day is the request's; what is left is how likely it has none."""
    model = load_clause_model("request_days")
    odds = {}
    for day in around.days:
        labels = model.weigh(around.list_features(day))
        odds[day] = labels[YES] / labels[NO]
    whole = 1 + sum(odds.values())
    return {day: odd / whole for day, odd in odds.items()}


def _choose_day(talk: RequestTalk, index: int) -> date | None:
    """The likeliest, if it is likely enough; the last day named, if followed, needs less.

    After "actually, make it Thursday" a call may end before anybody says it back.
    """
    followed = talk.state.items[index].due
    likely = _weigh_days(NamedDays(talk, index))
    if not likely:
        return None
    last = talk.days[-1]
    is_end = last.act.seq == talk.acts[-1].seq
    least = 0.0 if is_end else FOLLOWED
    if last.mention.day == followed and likely.get(followed, -1.0) >= least:
        return followed
    best = max(likely, key=likely.__getitem__)
    least = AGREED if best == followed else LIKELY
    return best if likely[best] >= least else None


class NamedDays:
    """The days that are named around a request."""

    def __init__(self, talk: RequestTalk, index: int) -> None:
        items = talk.state.items
        self._acts = talk.acts
        self._today = talk.state.today
        self._item = items[index]
        start = bisect_left(
            talk.days, asked_in(self._item), key=lambda each: each.act.seq
        )
        self._heard = talk.days[max(0, start - MAX_BEFORE) : start + MAX_AFTER]
        near = items[max(0, index - NEAR_ITEMS) : index + NEAR_ITEMS + 1]
        self._items = [item for item in near if item.status == "open"]
        self._others = [item for item in self._items if item is not self._item]
        self._own = [each for each in self._heard if self._name_topic(each) == "own"]
        self.days = list(dict.fromkeys(_days_of(self._heard)))

    def list_features(self, day: date) -> list[str]:
        """How a day stands to the request, and where, how and by whom it was said."""
        item = self._item
        away = _name_distance((day - self._today).days)
        title = _words(item.title.lower())[:MAX_TITLE_WORDS]
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
        for heard in self._heard:
            if heard.mention.day == day:
                said = [
                    *self._list_place(heard),
                    *self._list_reply(heard),
                    *self._list_words(heard),
                ]
                features += mark(heard.act.speaker, said)
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
        for heard in self._heard:
            if heard.mention.day != day:
                continue
            words = self._find_words(heard)
            shared = len(words & item.about)
            others = [len(words & each.about) for each in self._others]
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

    def _list_place(self, heard: HeardDay) -> list[str]:
        """Where it was said, seen from the request."""
        item = self._item
        act = heard.act
        topic = self._name_topic(heard)
        is_ask = item.words in act.clause.plain.cited or act.matter.cited == item.words
        shared = len(stems(act.clause.text) & item.topic)
        told = self._find_words(heard)
        shared_told = len(told & item.about)
        most = max((len(told & each.about) for each in self._others), default=0)
        return named(
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

    def _name_topic(self, heard: HeardDay) -> str:
        """Whether the talk is of this request, or of one asked for before or after it."""
        first = self._item.turns[0]
        asked = [
            (item.turns[0], item is self._item)
            for item in self._items
            if item is self._item or item.confidence >= ACTED_ON
        ]
        begun = [each for each in asked if each[0] <= heard.act.seq]
        seq, is_own = max(begun, default=(0, False))
        if not begun:
            return "none"
        return "own" if is_own else "before" if seq < first else "after"

    def _list_reply(self, heard: HeardDay) -> list[str]:
        """What the next turn begins with, and whether it names the day again."""
        later = self._acts[heard.place + 1 : heard.place + NEAR_CLAUSES]
        reply = next((act for act in later if act.seq != heard.act.seq), None)
        if reply is None:
            return []
        days = [each.mention.day for each in self._heard if each.act.seq == reply.seq]
        is_same = heard.mention.day in days
        return named(
            reply=(reply.speaker == heard.act.speaker, reply.answer or reply.kind),
            reply_day="same" if is_same else "other" if days else "none",
        )

    def _list_words(self, heard: HeardDay) -> list[str]:
        """What the clause does that names it, and the words around it."""
        act = heard.act
        mention = heard.mention
        text = heard.act.clause.text
        before = _words(text[: mention.start])
        after = _words(text[mention.end :])
        words = _words(text)
        named_as = _words(_said(heard))
        return [
            *named(
                act=act.kind,
                asks=act.clause.is_question,
                answer=act.answer,
                bare=len(before) + len(after) <= 2,
                before=before[-1:],
                before2=before[-2:],
                after=after[:1],
                after2=after[:2],
                first2=words[:2],
            ),
            *mark("u", words[:MAX_WORDS]),
            *mark("said", named_as),
        ]

    def _find_words(self, heard: HeardDay) -> frozenset[str]:
        """Stems of the clauses near it in the same turn."""
        start = max(0, heard.place - NEAR_CLAUSES)
        near = self._acts[start : heard.place + NEAR_CLAUSES]
        said = (act.clause.text for act in near if act.seq == heard.act.seq)
        return stems(" ".join(said))


def _days_of(heard: list[HeardDay], speaker: Speaker | None = None) -> list[date]:
    """The days that were named, by one of the speakers or by both."""
    of_both = speaker is None
    return [
        each.mention.day for each in heard if of_both or each.act.speaker == speaker
    ]


def _limit(number: int) -> int:
    """A number of words; what is beyond `MAX_SHARED` says no more."""
    return max(-MAX_SHARED, min(number, MAX_SHARED))


def _words(text: str) -> list[str]:
    """Words as the model knows them: one for all weekdays, one for all numbers."""
    return [generalise(word) for word in text.split()]


def _name_distance(days: int) -> str:
    """How far off a day is: only the nearest are told apart."""
    if days < 0:
        return "past"
    return str(days) if days < 2 else "week" if days < 8 else "far"
