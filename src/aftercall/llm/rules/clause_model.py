"""Linear models that tell what each clause of a caller does: weights from files, no library.

`acts.json`:

| label | the caller … |
|---|---|
| R | asks for something |
| D | says more about a request |
| X | changes something of a request |
| W | calls a request off |
| Y, NO | takes or declines what the agent offers |
| O | says anything else |

`agreements.json` tells whether a clause of the agent says what is to be done: "so that's a cleaning
on Thursday". `facts.json` tells whether a clause states a fact that lasts, `fact_kinds.json` which
kind of fact. They look at the words of a clause, its place, and the talk around it.
`tools/train_reader.py` makes the same features when it trains; their names are in the files of
weights.
"""

import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal

from aftercall.english.clauses import Clause, split_clauses
from aftercall.english.words import (
    add_own_words,
    stem,
    stems,
    stems_of,
    vocabulary,
    word_class,
)
from aftercall.model.calls import Speaker

WEIGHTS_FOLDER = "weights"
ModelName = Literal[
    "acts",
    "agreements",
    "facts",
    "fact_kinds",
    "requests",
    "request_parts",
    "request_kinds",
    "request_days",
    "request_ends",
    "request_clauses",
]
MAY_BE_AGREED = 0.3
SCALE = 50  # weights are kept as whole numbers
FIELD_BITS = 32
FIELD_HALF = 1 << FIELD_BITS - 1
FIELD_MASK = (1 << FIELD_BITS) - 1
Labels = dict[str, float]
NOT_OF_A_REQUEST = "O"
ASKS = "R"
YES = "yes"
_OPENS = ("R", "Y")  # a request is made, an offer is taken
_CONTINUES = ("D", "X")  # more about a request, or something of it changed
_CLOSES = "W"
_CLASSES: dict[str, list[str]] = {}
"""The features of a word by the classes it is of."""
for _name in vocabulary(
    "deed kin people saying fault broken later yes agrees channel feeling health names title"
):
    for _word in word_class(_name):
        _CLASSES.setdefault(_word, []).append(f"c:{_name}")
OPENING_WORDS = vocabulary(
    "hi hello hey good morning afternoon evening day there and also then so but please well right"
)
"""A clause of nothing else asks for nothing: who greets asks with what follows."""
_PROMISING = frozenset(itertools.product(("i", "we"), ("will", "have")))
_DAY_WORDS = vocabulary("<day> <month> <ord> today tomorrow tonight")
_CROSSES_OUT = re.compile(r"\b(?:crossed out|cancelled|canceled|removed|taken off)$")
_FAR = 9  # turns since the last request, where there was none


class ClauseModel:
    """Multinomial logistic regression over names of features.

    The weights of a feature are packed into one whole number, `FIELD_BITS` for each label: one
    addition counts for all labels.
    """

    def __init__(
        self,
        labels: Sequence[str],
        bias: Sequence[int],
        weights: Mapping[str, Sequence[int]],
    ) -> None:
        self.labels = labels
        self.bias = bias
        self.weights = weights
        # half of each field, so that no sum is below zero
        self._start = _pack(bias) + _pack([FIELD_HALF] * len(labels))
        self._packed = {name: _pack(each) for name, each in weights.items()}
        self._shifts = range(0, FIELD_BITS * len(labels), FIELD_BITS)

    def weigh(self, features: Iterable[str]) -> Labels:
        """The probability of each label."""
        total = sum(
            map(self._packed.get, set(features), itertools.repeat(0)), self._start
        )
        sums = [total >> shift & FIELD_MASK for shift in self._shifts]
        top = max(sums)
        odds = [math.exp((each - top) / SCALE) for each in sums]
        whole = sum(odds)
        return dict(zip(self.labels, [odd / whole for odd in odds], strict=True))

    def label_clauses(
        self, talk: Sequence["TalkTurn"], agreed: "AgentClauses"
    ) -> dict[tuple[int, int], Labels]:
        """Of each clause of the caller, by turn and place; each decision bears on the next."""
        history = LabelHistory()
        found = {}
        for at, turn in enumerate(talk):
            if turn.speaker != "caller":
                continue
            for index, clause in enumerate(turn.clauses):
                about = stems(clause.text)
                features = list_features(talk, at, index)
                features += agreed.list_agreed(at, about)
                features += history.list_features(at, about)
                labels = self.weigh(features)
                if OPENING_WORDS.issuperset(turn.words[index]):
                    labels |= {ASKS: 0.0}
                history.add(at, max(labels, key=labels.__getitem__), about)
                found[at, index] = labels
        return found


def _pack(values: Sequence[int]) -> int:
    return sum(value << FIELD_BITS * index for index, value in enumerate(values))


@cache
def load_clause_model(name: ModelName) -> ClauseModel:
    text = (
        files(__package__).joinpath(WEIGHTS_FOLDER, f"{name}.json").read_text("utf-8")
    )
    kept = json.loads(text)
    add_own_words(feature.rpartition(":")[2] for feature in kept["weights"])
    return ClauseModel(kept["labels"], kept["bias"], kept["weights"])


@dataclass(frozen=True)
class TalkTurn:
    """A turn with its clauses, and their words with days and numbers as classes."""

    speaker: Speaker
    clauses: list[Clause]
    words: list[list[str]]
    stems: frozenset[str]
    features: dict[int, list[str]] = field(default_factory=dict)
    """Of its clauses, made once: several models look at them."""

    @cached_property
    def ending(self) -> list[str]:
        """Features of what is said next: the last clause of this turn."""
        said = self.words[-1]
        features = [*mark("pa", said[:14]), join("paf", said[:2])]
        return [*features, join("paf3", said[:3])]

    @cached_property
    def opening(self) -> list[str]:
        """Features of what was said before: how this turn takes it up."""
        features = mark("na", [word for said in self.words[:2] for word in said[:10]])
        features += [join("naf", self.words[0][:2]), join("nal", self.words[-1][:3])]
        return [*features, "naq"] if self.clauses[-1].is_question else features

    @cached_property
    def promises(self) -> bool:
        pairs = (pair for words in self.words for pair in itertools.pairwise(words))
        return not _PROMISING.isdisjoint(pairs)

    @classmethod
    def from_text(cls, speaker: Speaker, seq: int, text: str) -> "TalkTurn":
        clauses = split_clauses(seq, text)
        words = [clause.plain.general for clause in clauses]
        about = stems_of(clause.text for clause in clauses)
        return cls(speaker, clauses, words, about)


@dataclass
class LabelHistory:
    """What the clauses before were taken for, as far as it tells something of the next one."""

    turn: int = -1
    last: str = "^"
    """The label before, in the same turn."""
    prior: str = "-"
    """The last label that was of a request."""
    open_requests: int = 0
    last_turn: int = -_FAR
    about: frozenset[str] = frozenset()
    current: frozenset[str] = frozenset()

    def list_features(self, turn: int, about: frozenset[str]) -> list[str]:
        """How the clause stands to the requests before it."""
        if turn != self.turn:
            self.turn = turn
            self.last = "^"
        since = turn - self.last_turn if self.last_turn >= 0 else _FAR
        return [
            f"h:last:{self.last}",
            f"h:prior:{self.prior}",
            f"h:n:{min(self.open_requests, 3)}",
            f"h:since:{min(since, 4)}",
            f"h:shares:{min(len(about & self.about), 2)}",
            f"h:shares_cur:{min(len(about & self.current), 2)}",
            f"h:lastprior:{self.last}:{self.prior}",
        ]

    def add(self, turn: int, label: str, about: frozenset[str]) -> None:
        """Takes a label of the next clause into account."""
        self.last = label
        is_new = label in _OPENS
        if is_new or label in _CONTINUES:
            self.current = about if is_new else self.current | about
            self.about |= about
        change = is_new - (label == _CLOSES)
        self.open_requests = max(0, self.open_requests + change)
        if label != NOT_OF_A_REQUEST:
            self.prior = label
            self.last_turn = turn


def list_features(turns: Sequence[TalkTurn], at: int, index: int) -> list[str]:
    """The features of one clause of the caller, without history."""
    features = [
        *list_fact_features(turns, at, index),
        f"turn:{min(at, 4)}",
        f"tleft:{min(len(turns) - at - 1, 3)}",
    ]
    agent = _find_other(turns, at, 1)
    if agent is None or not agent.words:
        return features
    # how the agent answers often shows what it took the words for
    shared = len(stems(turns[at].clauses[index].text) & agent.stems)
    features += [*agent.opening, f"shares_na:{min(shared, 3)}"]
    if agent.promises:
        features += ["na_promises", f"na_promises:{min(shared, 2)}"]
    return features


def list_fact_features(turns: Sequence[TalkTurn], at: int, index: int) -> list[str]:
    """Without what comes after: a fact is one whatever the agent answers."""
    turn = turns[at]
    if index in turn.features:
        return turn.features[index]
    features = turn.features[index] = _list_own(turn, index)
    agent = _find_other(turns, at, -1)
    if agent is None or not agent.words:
        return features
    words = turn.words[index]
    features += agent.ending
    if agent.clauses[-1].is_question:
        features += ["paq", f"paq_len:{_size(words)}", f"paq_{words[0]}"]
    if stems(turn.clauses[index].text) & agent.stems:
        features.append("shares_pa")
    if index == 0:
        features.append(join("first_pa", agent.words[-1][:2]))
    return features


def _find_other(turns: Sequence[TalkTurn], at: int, step: int) -> TalkTurn | None:
    """The nearest turn of the other speaker: before it (-1) or after it (1)."""
    place = at + step
    while 0 <= place < len(turns) and turns[place].speaker == turns[at].speaker:
        place += step
    return turns[place] if 0 <= place < len(turns) else None


def _list_own(turn: TalkTurn, index: int) -> list[str]:
    """Words, pairs, stems and word classes of a clause, its place, and its neighbours."""
    clause = turn.clauses[index]
    words = turn.words[index]
    features = ["bias", f"len:{_size(words)}", f"end:{clause.plain.ends_with or '-'}"]
    features += mark("u", words)
    features += [
        f"b:{one}_{two}" for one, two in itertools.pairwise(("^", *words, "$"))
    ]
    features += [f"s:{cut}" for word in words if (cut := stem(word)) != word]
    features += [join("first2", words[:2]), join("first3", words[:3])]
    left = len(turn.clauses) - index - 1
    features += [f"pos:{min(index, 3)}", f"left:{min(left, 3)}"]
    for word in words:
        features += _CLASSES.get(word, ())
    if clause.is_question:
        features.append("q")
    if index:
        before = turn.words[index - 1]
        features += [*mark("pc", before[:8]), join("pcf", before[:2])]
        if turn.clauses[index - 1].sentence == clause.sentence:
            features.append("same_sentence")
    else:
        features.append("pc:-")
    if left:
        after = turn.words[index + 1]
        features += [*mark("nc", after[:6]), join("ncf", after[:2])]
    return features


def _size(words: list[str]) -> str:
    number = len(words)
    if number < 6:
        return str(number)
    return "6-9" if number < 10 else "10-16" if number < 17 else "17+"


class AgentClauses:
    """The clauses of the agent, as far as they tell what is to be done."""

    def __init__(self, talk: Sequence[TalkTurn]) -> None:
        self._talk = talk
        self._first: dict[tuple[Speaker, str], int] = {}
        self._last: dict[tuple[Speaker, str], int] = {}
        for at, turn in enumerate(talk):
            for stem_said in turn.stems:
                said = (turn.speaker, stem_said)
                self._first.setdefault(said, at)
                self._last[said] = at
        model = load_clause_model("agreements")
        self.likely = {
            place: model.weigh(self.list_features(*place))[YES]
            for place in self.places
            if not self._is_crossed_out(*place)
        }
        """How likely each clause says what is to be done, by turn and place."""
        self._agreed = [
            (place[0], stems(talk[place[0]].clauses[place[1]].text), likely)
            for place, likely in self.likely.items()
            if likely >= MAY_BE_AGREED
        ]

    def _is_crossed_out(self, at: int, index: int) -> bool:
        """ "I have crossed out: the cake": what is no longer to be done."""
        before = self._talk[at].clauses[max(0, index - 1)]
        return index > 0 and _CROSSES_OUT.search(before.text) is not None

    def list_agreed(self, at: int, about: frozenset[str]) -> list[str]:
        """What the agent later says is to be done, beside a clause of the caller."""
        later = [each for each in self._agreed if each[0] > at]
        near = [likely for turn, _, likely in later if turn <= at + 2]
        same = [
            (likely, len(about & told)) for _, told, likely in later if about & told
        ]
        likely, shared = max(same, default=(0.0, 0))
        return named(
            na_agreed=round(4 * max(near, default=0.0)),
            na_agreed_same=(round(4 * likely), min(shared, 2)),
        )

    @property
    def places(self) -> list[tuple[int, int]]:
        return [
            (at, index)
            for at, turn in enumerate(self._talk)
            if turn.speaker == "agent"
            for index in range(len(turn.clauses))
        ]

    def list_features(self, at: int, index: int) -> list[str]:
        """Its words, what it shares with the talk, and what the caller said before and after."""
        turn = self._talk[at]
        words = turn.words[index]
        about = stems(turn.clauses[index].text)
        heard = [stem for stem in about if self._first.get(("caller", stem), at) < at]
        said = [stem for stem in about if self._first["agent", stem] < at]
        again = [stem for stem in about if self._last["agent", stem] > at]
        return [
            *_list_own(turn, index),
            *named(
                turn=min(at, 4),
                tleft=min(len(self._talk) - at - 1, 4),
                opens="_".join(turn.words[0][:2]),
                asks=turn.clauses[-1].is_question,
                told=min(len(about), 5),
                heard=min(len(heard), 3),
                said=min(len(said), 3),
                again=min(len(again), 3),
                new=min(len(about.difference(heard, said)), 3),
                day=not _DAY_WORDS.isdisjoint(words),
            ),
            *self._list_caller(at, about),
        ]

    def _list_caller(self, at: int, about: frozenset[str]) -> list[str]:
        """What the caller said last before, and how they answered."""
        before = _find_other(self._talk, at, -1)
        after = _find_other(self._talk, at, 1)
        features = [] if after else ["nx:-"]
        if after and after.words:
            said = after.words[0]
            features += [*mark("nx", said[:6]), join("nxf", said[:2])]
            features.append(f"nxs:{min(len(about & after.stems), 2)}")
        if before and before.words:
            said = before.words[-1]
            features += [*mark("pv", said[:10]), join("pvf", said[:2])]
            features.append(f"pvq:{before.clauses[-1].is_question}")
            features.append(f"pvs:{min(len(about & before.stems), 3)}")
        return features


def named(prefix: str = "", /, **values: object) -> list[str]:
    """Features by name; a prefix tells those of one speaker from those of the other."""
    return [f"{prefix}{name}:{value}" for name, value in values.items()]


def mark(name: str, values: Iterable[str]) -> list[str]:
    """Features of one kind."""
    return [f"{name}:{value}" for value in values]


def join(name: str, words: list[str]) -> str:
    """One feature of several words."""
    return f"{name}:{'_'.join(words)}"
