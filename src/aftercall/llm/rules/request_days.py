"""The day of a request: a small model chooses among the days that are named around it.

It looks at each day by itself: how near to the request it was said, by whom, with which words, and
whether it was the last one (`request_days.json`). `tools/train_reader.py` makes the same features
when it trains.
"""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import date

from aftercall.english.words import stems
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.clause_model import generalise, load_clause_model
from aftercall.llm.rules.judgement import YES, RequestTalk
from aftercall.llm.rules.state import HeardDay, Item, RequestState
from aftercall.model.calls import Speaker

LIKELY = 0.38  # how likely a day must be the request's
FOLLOWED = 0.2  # … where who followed the talk clause by clause took it for that
ASKED = (
    0.3  # confidence of what may have been asked for: from there on the talk is of it
)
FAR = 4  # turns
MAX_BEFORE, MAX_AFTER = 12, 24  # days named before and after the ask that are looked at
NEAR_ITEMS = 6  # requests before and after it
NEAR_CLAUSES = 12  # of the same turn, or up to the next one
MAX_WORDS = 30
MAX_WORDS_BEFORE = 12
_SPEAKERS: tuple[Speaker, Speaker] = ("caller", "agent")
_VERBS = frozenset(("is", "are", "would", "could", "can", "do", "does", "did", "will"))


def choose_days(talk: RequestTalk) -> RequestState:
    """The state with the day of each open request: the likeliest one, or none."""
    model = load_clause_model("request_days")
    items = list(talk.state.items)
    for index, item in enumerate(items):
        if item.status == "open":
            named = NamedDays(talk, index)
            likely = {
                day: model.weigh(named.list_features(day))[YES] for day in named.days
            }
            items[index] = item._replace(due=_choose(likely, item.due))
    return talk.state._replace(items=tuple(items))


def _choose(likely: dict[date, float], followed: date | None) -> date | None:
    best = max(likely, key=likely.__getitem__, default=None)
    if best is not None and likely[best] >= LIKELY:
        return best
    is_kept = followed is not None and likely.get(followed, 0.0) >= FOLLOWED
    return followed if is_kept else None


class NamedDays:
    """The days that are named around a request."""

    def __init__(self, talk: RequestTalk, index: int) -> None:
        items = talk.state.items
        self._acts, self._today = talk.acts, talk.state.today
        self._item, self._asked = items[index], _asked_in(items[index])
        start = bisect_left(talk.days, self._asked, key=lambda each: each.act.seq)
        self._heard = talk.days[max(0, start - MAX_BEFORE) : start + MAX_AFTER]
        near = items[max(0, index - NEAR_ITEMS) : index + NEAR_ITEMS + 1]
        self._items = [item for item in near if item.status == "open"]
        self._others = [item for item in self._items if item is not self._item]

    @property
    def days(self) -> list[date]:
        return list(dict.fromkeys(_days_of(self._heard)))

    def list_features(self, day: date) -> list[str]:
        """How a day stands to the request."""
        kind, away = self._item.kind, _name_distance((day - self._today).days)
        features = [
            f"n:{min(len(self.days), 4)}",
            f"kind:{kind}",
            f"words:{self._item.delivers_words}",
            f"away:{away}",
            f"kind_away:{kind}:{away}",
            f"items:{min(len(self._items), 4)}",
            *self._list_followed(day),
            *self._list_order(day),
        ]
        for heard in self._heard:
            if heard.mention.day == day:
                named = (*self._list_place(heard), *self._list_words(heard))
                features += [f"{heard.act.speaker}:{name}" for name in named]
        return features

    def _list_followed(self, day: date) -> Iterator[str]:
        """Whether who follows the talk clause by clause takes the day for that of the request."""
        item = self._item
        taken = "this" if item.due == day else "other" if item.due else "none"
        yield f"taken:{taken}"
        yield f"taken_kind:{taken}:{item.kind}"
        yield f"taken_words:{taken}:{item.delivers_words}"
        yield f"of_other:{taken}:{any(other.due == day for other in self._others)}"

    def _list_order(self, day: date) -> Iterator[str]:
        """Who named it, and whether it was the last day named: at all, or of the request."""
        heard = self._heard
        mentions = [at for at, each in enumerate(heard) if each.mention.day == day]
        by = [
            _days_of(each for each in heard if each.act.speaker == name)
            for name in _SPEAKERS
        ]
        own = [each for each in heard if self._name_topic(each) == "own"]
        told = [each for each in own if not each.act.clause.is_question]
        last = [
            _days_of(each for each in told if each.act.speaker == name)[-1:] == [day]
            for name in _SPEAKERS
        ]
        of_own = _days_of(own)
        later = set(_days_of(heard[mentions[-1] + 1 :]))
        yield f"last:{heard[-1].mention.day == day}"
        yield f"last_by_each:{by[0][-1:] == [day]}:{by[1][-1:] == [day]}"
        yield f"by:{day in by[0]}:{day in by[1]}"
        yield f"count:{min(len(mentions), 4)}"
        yield f"last_own:{of_own[-1:] == [day]}:{day in of_own}"
        yield f"own:{min(len(set(of_own)), 3)}:{day in of_own}"
        yield f"last_told:{last[0]}:{last[1]}"
        yield f"later:{min(len(later), 2)}"
        yield f"last_by:{heard[mentions[-1]].act.speaker}"
        yield f"first_by:{heard[mentions[0]].act.speaker}"
        yield f"place:{min(self.days.index(day), 4)}"

    def _list_place(self, heard: HeardDay) -> Iterator[str]:
        """Where it was said, seen from the request."""
        item, act, topic = self._item, heard.act, self._name_topic(heard)
        is_ask = item.words in act.clause.plain.cited or act.matter.cited == item.words
        said = stems(act.clause.text)
        told = stems(" ".join(each.clause.text for each in self._find_turn(heard)))
        shared, others = (
            len(said & item.topic),
            [len(said & o.topic) for o in self._others],
        )
        shared_told = len(told & item.about)
        others_told = [len(told & other.about) for other in self._others]
        more = _compare(shared_told, others_told)
        yield f"gap:{max(-FAR, min(act.seq - self._asked, FAR))}"
        yield f"in:{act.seq in item.turns}"
        yield f"ask:{is_ask}"
        yield f"ask_kind:{is_ask}:{item.kind}"
        yield f"topic:{topic}"
        yield f"topic_asks:{topic}:{act.clause.is_question}"
        yield f"shared:{min(shared, 2)}"
        yield f"shared_told:{min(shared_told, 3)}"
        yield f"more:{_compare(shared, others)}"
        yield f"more_told:{more}"
        yield f"topic_more:{topic}:{more}"
        if act.speaker == "agent":
            yield f"tells:{_tells(act)}:{topic}"
            yield f"tells_more:{_tells(act)}:{more}"

    def _name_topic(self, heard: HeardDay) -> str:
        """Whether the talk is of this request, or of one asked for before or after it."""
        asked = [
            (_asked_in(item), item is self._item)
            for item in self._items
            if item.confidence >= ASKED and _asked_in(item) <= heard.act.seq
        ]
        if not asked:
            return "none"
        seq, is_own = max(asked)
        return "own" if is_own else "before" if seq < self._asked else "after"

    def _list_words(self, heard: HeardDay) -> Iterator[str]:
        """The words around it, what it answers, and the answer to it."""
        act, mention, text = heard.act, heard.mention, heard.act.clause.text
        before, after = _words(text[: mention.start]), _words(text[mention.end :])
        words = _words(text)[:MAX_WORDS]
        here = {each.mention.day for each in self._heard if each.place == heard.place}
        yield f"act:{act.kind}"
        yield f"asks:{act.clause.is_question}"
        yield f"answer:{act.answer}"
        yield f"bare:{len(before) + len(after) <= 2}"
        yield f"belongs:{round(act.belongs * 4)}"
        yield f"days:{len(here) > 1}"
        yield f"before:{'_'.join(before[-1:])}"
        yield f"before2:{'_'.join(before[-2:])}"
        yield f"after:{'_'.join(after[:1])}"
        yield f"after2:{'_'.join(after[:2])}"
        yield f"first2:{'_'.join(words[:2])}"
        yield from (f"u:{word}" for word in words)
        yield from (
            f"said:{word}" for word in _words(text[mention.start : mention.end])
        )
        next_acts = self._acts[heard.place : heard.place + NEAR_CLAUSES]
        reply = next((each for each in next_acts if each.seq > act.seq), None)
        if reply:
            yield f"reply:{reply.answer}:{reply.kind}"
            yield f"reply2:{'_'.join(_words(reply.clause.text)[:2])}"
        last_acts = self._acts[max(0, heard.place - NEAR_CLAUSES) : heard.place]
        asked = next((each for each in last_acts[::-1] if each.seq < act.seq), None)
        if asked:
            said = _words(asked.clause.text)[:MAX_WORDS_BEFORE]
            yield f"asked:{asked.clause.is_question}:{'_'.join(said[:2])}"
            yield from (f"p:{word}" for word in said)

    def _find_turn(self, heard: HeardDay) -> list[Act]:
        """The clauses near it in the same turn."""
        start = max(0, heard.place - NEAR_CLAUSES)
        near = self._acts[start : heard.place + NEAR_CLAUSES]
        return [act for act in near if act.seq == heard.act.seq]


def _asked_in(item: Item) -> int:
    return item.asked or item.turns[0]


def _days_of(heard: Iterator[HeardDay] | list[HeardDay]) -> list[date]:
    return [each.mention.day for each in heard]


def _compare(own: int, others: list[int]) -> str:
    """Whether words are of this request, of another, or of none."""
    most = max(others, default=0)
    return "more" if own > most else "less" if own < most else "same"


def _words(text: str) -> list[str]:
    return [generalise(word) for word in text.split()]


def _tells(act: Act) -> bool:
    """Whether an agent says what will be, or says a day back without a verb."""
    words = act.clause.text.split()
    is_promise = words[:1] in (["i"], ["we"], ["you"], ["so"], ["that"])
    return is_promise or _VERBS.isdisjoint(words)


def _name_distance(days: int) -> str:
    if days < 0:
        return "past"
    return str(days) if days < 2 else "week" if days < 8 else "far"
