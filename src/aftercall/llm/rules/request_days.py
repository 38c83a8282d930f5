"""The day of a request: a small model chooses among the days that are named around it.

It looks at each day by itself: how near to the request it was said, by whom, with which words, and
whether it was the last one (`request_days.json`). `tools/train_reader.py` makes the same features
when it trains.
"""

from bisect import bisect_left
from datetime import date

from aftercall.english.words import stems
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.clause_model import generalise, load_clause_model
from aftercall.llm.rules.judgement import YES, RequestTalk, mark, named
from aftercall.llm.rules.state import HeardDay, RequestState, asked_in
from aftercall.model.calls import Speaker

LIKELY = 0.38  # how likely a day must be the request's
FOLLOWED = 0.25  # … where who followed the talk clause by clause took it for that
OF_ANOTHER = 0.6  # … where it was taken for that of another request only
PLAINLY = 0.25  # by how much another one must be likelier than that
ASKED = 0.3  # confidence of what may have been asked for: the talk goes on about it
FAR = 4  # turns
MAX_BEFORE = 12  # days named before the ask that are looked at
MAX_AFTER = 24  # … and after it
NEAR_ITEMS = 6  # requests before and after it
NEAR_CLAUSES = 12  # of the same turn
MAX_WORDS = 30


def choose_days(talk: RequestTalk) -> RequestState:
    """The state with the day of each open request: the likeliest one, or none."""
    model = load_clause_model("request_days")
    items = list(talk.state.items)
    for index, item in enumerate(items):
        if item.status == "open":
            around = NamedDays(talk, index)
            likely = {
                day: model.weigh(around.list_features(day))[YES] for day in around.days
            }
            theirs = {each.due for each in talk.state.items}
            items[index] = item._replace(due=_choose(likely, theirs, item.due))
    return talk.state._replace(items=tuple(items))


def _choose(
    likely: dict[date, float], theirs: set[date | None], followed: date | None
) -> date | None:
    """The likeliest; the one that was followed, unless another is plainly likelier.

    Where none was followed, a day that was taken for that of another request needs more.
    """
    best = max(likely, key=likely.__getitem__, default=None)
    kept = likely.get(followed, 0.0) if followed else 0.0
    least = OF_ANOTHER if followed is None and best in theirs else LIKELY
    if best and likely[best] >= least:
        is_plain = kept < FOLLOWED or likely[best] - kept >= PLAINLY
        return best if is_plain else followed
    return followed if kept >= FOLLOWED else None


class NamedDays:
    """The days that are named around a request."""

    def __init__(self, talk: RequestTalk, index: int) -> None:
        items = talk.state.items
        self._acts = talk.acts
        self._today = talk.state.today
        self._item = items[index]
        self._asked = asked_in(items[index])
        start = bisect_left(talk.days, self._asked, key=lambda each: each.act.seq)
        self._heard = talk.days[max(0, start - MAX_BEFORE) : start + MAX_AFTER]
        near = items[max(0, index - NEAR_ITEMS) : index + NEAR_ITEMS + 1]
        self._items = [item for item in near if item.status == "open"]
        self._others = [item for item in self._items if item is not self._item]

    @property
    def days(self) -> list[date]:
        return list(dict.fromkeys(_days_of(self._heard)))

    def list_features(self, day: date) -> list[str]:
        """How a day stands to the request, and where, how and by whom it was said."""
        kind = self._item.kind
        away = _name_distance((day - self._today).days)
        features = [
            *named(
                n=min(len(self.days), 4),
                kind=kind,
                words=self._item.delivers_words,
                away=away,
                kind_away=(kind, away),
                items=min(len(self._items), 4),
            ),
            *self._list_followed(day),
            *self._list_order(day),
        ]
        for heard in self._heard:
            if heard.mention.day == day:
                said = (*self._list_place(heard), *self._list_words(heard))
                features += [f"{heard.act.speaker}:{name}" for name in said]
        return features

    def _list_followed(self, day: date) -> list[str]:
        """Whether who follows the talk clause by clause takes the day for that of the request."""
        item = self._item
        taken = "this" if item.due == day else "other" if item.due else "none"
        return named(
            taken=taken,
            taken_kind=(taken, item.kind),
            taken_words=(taken, item.delivers_words),
            of_other=(taken, any(other.due == day for other in self._others)),
        )

    def _list_order(self, day: date) -> list[str]:
        """Who named it, and whether it was the last day named: at all, or of the request."""
        heard = self._heard
        at = [at for at, each in enumerate(heard) if each.mention.day == day]
        own = [each for each in heard if self._name_topic(each) == "own"]
        told = [each for each in own if not each.act.clause.is_question]
        by_caller = _days_of(heard, "caller")
        by_agent = _days_of(heard, "agent")
        told_by_caller, told_by_agent = (
            _days_of(told, "caller"),
            _days_of(told, "agent"),
        )
        of_own = _days_of(own)
        return named(
            by=(day in by_caller, day in by_agent),
            count=min(len(at), 4),
            last_own=(of_own[-1:] == [day], day in of_own),
            own=(min(len(set(of_own)), 3), day in of_own),
            last_told=(told_by_caller[-1:] == [day], told_by_agent[-1:] == [day]),
            later=min(len(set(_days_of(heard[at[-1] + 1 :]))), 2),
            last_by=heard[at[-1]].act.speaker,
            first_by=heard[at[0]].act.speaker,
            place=min(self.days.index(day), 4),
        )

    def _list_place(self, heard: HeardDay) -> list[str]:
        """Where it was said, seen from the request."""
        item = self._item
        act = heard.act
        topic = self._name_topic(heard)
        is_ask = item.words in act.clause.plain.cited or act.matter.cited == item.words
        said = stems(act.clause.text)
        told = stems(" ".join(each.clause.text for each in self._find_turn(heard)))
        shared = len(said & item.topic)
        shared_told = len(told & item.about)
        more = _compare(shared, [len(said & each.topic) for each in self._others])
        more_told = _compare(
            shared_told, [len(told & each.about) for each in self._others]
        )
        return named(
            gap=max(-FAR, min(act.seq - self._asked, FAR)),
            within=act.seq in item.turns,
            ask=is_ask,
            ask_kind=(is_ask, item.kind),
            topic=topic,
            topic_asks=(topic, act.clause.is_question),
            shared=min(shared, 2),
            shared_told=min(shared_told, 3),
            more=more,
            more_told=more_told,
            topic_more=(topic, more_told),
        )

    def _name_topic(self, heard: HeardDay) -> str:
        """Whether the talk is of this request, or of one asked for before or after it."""
        asked = [
            (asked_in(item), item is self._item)
            for item in self._items
            if item.confidence >= ASKED and asked_in(item) <= heard.act.seq
        ]
        if not asked:
            return "none"
        seq, is_own = max(asked)
        return "own" if is_own else "before" if seq < self._asked else "after"

    def _list_words(self, heard: HeardDay) -> list[str]:
        """What the clause does that names it, and the words around it."""
        act = heard.act
        mention = heard.mention
        text = heard.act.clause.text
        before = _words(text[: mention.start])
        after = _words(text[mention.end :])
        words = _words(text)
        named_as = _words(text[mention.start : mention.end])
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

    def _find_turn(self, heard: HeardDay) -> list[Act]:
        """The clauses near it in the same turn."""
        start = max(0, heard.place - NEAR_CLAUSES)
        near = self._acts[start : heard.place + NEAR_CLAUSES]
        return [act for act in near if act.seq == heard.act.seq]


def _days_of(heard: list[HeardDay], speaker: Speaker | None = None) -> list[date]:
    """The days that were named, by one of the speakers or by both."""
    of_both = speaker is None
    return [
        each.mention.day for each in heard if of_both or each.act.speaker == speaker
    ]


def _compare(own: int, others: list[int]) -> str:
    """Whether words are of this request, of another, or of none."""
    most = max(others, default=0)
    return "more" if own > most else "less" if own < most else "same"


def _words(text: str) -> list[str]:
    return [generalise(word) for word in text.split()]


def _name_distance(days: int) -> str:
    if days < 0:
        return "past"
    return str(days) if days < 2 else "week" if days < 8 else "far"
