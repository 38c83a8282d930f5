"""Trains the models of clauses of the reader by rules, and writes their weights.

    python tools/train_reader.py bench/clauses bench/calls HARPER.jsonl

takes folders of marked calls (`*.txt`, see bench/clauses/README.md; below `facts/` only facts are
marked), of labelled calls (`*.json`, see bench/calls/README.md; `KEPT_UNREAD` are left out), and
calls of HarperValleyBank (`*.jsonl`, see docs/reference/labels.md), of which every eighth is taken.
Labelled calls tell which turns a request rests on, not which clause: their clauses are labelled by
a first model, within what the label allows. What the agent says back is learnt first. The requests
that the reader then finds teach the models of requests, parts, kinds and days, and what it takes
for called off that of ends; it finds them in the calls of one group of writers after another, with
models trained on the others. Last comes the model of the clauses that say what a request is about.
It needs scikit-learn, which nothing else here does: `pip install scikit-learn`.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from aftercall.english.clauses import Clause
from aftercall.english.words import clear_caches, stems
from aftercall.labels import HARPER_WORDS
from aftercall.llm.rules import clause_model
from aftercall.llm.rules.clause_model import (
    ASKS,
    OPENING_WORDS,
    SCALE,
    YES,
    AgentClauses,
    ClauseModel,
    LabelHistory,
    Labels,
    ModelName,
    TalkTurn,
    list_features,
)
from aftercall.llm.rules.facts import list_told_features
from aftercall.llm.rules.judgement import (
    NAMES,
    OTHER,
    TELLS,
    RequestClauses,
    judge,
    list_kind_features,
    list_part_features,
    list_request_features,
)
from aftercall.llm.rules.offers import CallingOff
from aftercall.llm.rules.reader import follow_requests, read_requests
from aftercall.llm.rules.request_days import (
    NamedDays,
    choose_days,
    date_weekdays,
    list_spoken,
)
from aftercall.llm.rules.state import Item, RequestTalk, asked_in, find_whole

WEIGHTS = Path(clause_model.__file__).with_name(clause_model.WEIGHTS_FOLDER)
STRENGTH = 0.3  # the inverse of regularisation
JUDGE_STRENGTH = 0.1  # chosen by leaving writers out
DAY_STRENGTH = 0.2  # there are few requests with a day
EARLY_WEIGHT = (
    0.3  # of the days in calls of the first writers, who label them otherwise
)
END_STRENGTH = 0.2  # and few that were called off
UNLABELLED_WEIGHT = 0.5  # of what was called off and is in no label
TOLD_STRENGTH = 0.05
FORBIDDEN_WEIGHT = 3.0  # of a clause with words that may stand in no request
APART_WEIGHT = 0.7  # of one in no turn that a request rests on
MIN_CLAUSES = 2  # in which a feature must be
MIN_WEIGHT = 3  # of SCALE; smaller ones are left out
LABELLED_WEIGHT = 0.7  # of a clause that a first model labelled
LIVE_WEIGHT = (
    0.3  # of a clause once more without the agent's answer, as a live call has it
)
ASKED_WEIGHT = (
    0.2  # of a clause in which an agent asks about a request, or says it back too early
)
OTHER_WEIGHT = (
    0.3  # of a clause without a fact, in calls that were not marked for facts
)
KEPT_UNREAD = (
    "AN",
    "AO",
    "AP",
    "AQ",
    "AR",
    "AS",
    "AT",
    "AU",
    "AV",
)  # writers whose calls are only measured on
HARPER_STEP = 8  # one call of HarperValleyBank in so many
GROUPS = 4  # of writers; each is read by a model of clauses trained on the others
MARKED_WEIGHT = 0.5  # of a request in a call that the model of clauses was trained on
NO = "no"
NO_FACT, FACT = "-", "F"
_MARK = re.compile(r"\[(/|(?:R|D|X|W|Y|NO|O|P|Q|S|F)\d*(?: [^\]]*)?)\]")
_HEAD = re.compile(r"#\s*\d{4}-\d\d-\d\d")
Place = tuple[int, int]
Span = tuple[str, int, int]


@dataclass
class Lesson:
    """A call to learn from: the label of each clause, or the labels it may have."""

    talk: list[TalkTurn]
    labels: dict[Place, str]
    allowed: dict[Place, set[str]]
    requests: list[dict[str, Any]]
    withdrawn: list[dict[str, Any]]
    facts: dict[Place, str]
    """The kind of fact in a clause, "F" where the kind is not marked; "" is not to be learnt."""
    is_of_facts: bool = False
    """Only its facts are marked, and all of them."""


def read_marked(path: Path) -> Iterator[Lesson]:
    lines = path.read_text("utf-8").splitlines()
    starts = [at for at, line in enumerate(lines) if _HEAD.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        said = [
            line.strip() for line in lines[start + 1 : end] if line[:2] in ("A:", "C:")
        ]
        unmarked = [unmark(line[2:].strip()) for line in said]
        talk = [
            to_talk(seq, "agent" if line[0] == "A" else "caller", text)
            for seq, (line, (text, _)) in enumerate(zip(said, unmarked, strict=True), 1)
        ]
        labels, facts = {}, {}
        for at, (_, spans) in enumerate(unmarked):
            for index, label in enumerate(label_clauses(talk[at], spans)):
                labels[at, index] = label
            for index, clause in enumerate(talk[at].clauses):
                facts[at, index] = _find_fact(clause, spans)
        yield Lesson(talk, labels, {}, [], [], facts, "facts" in path.parts)


def _find_fact(clause: Clause, spans: list[Span]) -> str:
    """The kind of fact that most of a clause lies in; secrets are found otherwise."""
    first, last = clause.plain.words[0].start, clause.plain.words[-1].end
    for name, start, end in spans:
        if min(last, end) - max(first, start) > (last - first) / 2 and name[0] == FACT:
            kind = name.split()[1] if " " in name else FACT
            return "" if kind == "secret" else kind
    return NO_FACT


def to_talk(seq: int, speaker: Any, text: str) -> TalkTurn:
    return TalkTurn.from_text(speaker, seq, text)


def unmark(line: str) -> tuple[str, list[Span]]:
    text, spans, at = "", [], 0
    mark, start = "", 0
    for match in _MARK.finditer(line):
        text += line[at : match.start()]
        at = match.end()
        if mark:
            spans.append((mark, start, len(text)))
        mark, start = ("" if match[1] == "/" else match[1]), len(text)
    text += line[at:]
    return text, [*spans, (mark, start, len(text))] if mark else spans


def label_clauses(turn: TalkTurn, spans: list[Span]) -> list[str]:
    """A clause has the mark it lies in; only the first of a mark's clauses asks or accepts.

    One of small words alone asks for nothing.
    """
    labels, seen = [], set()
    for clause, words in zip(turn.clauses, turn.words, strict=True):
        first, last = clause.plain.words[0].start, clause.plain.words[-1].end
        shared = {span: min(last, span[2]) - max(first, span[1]) for span in spans}
        span = max(spans, key=shared.__getitem__, default=None)
        label = "O"
        if span and shared[span] > 0:
            name = re.match("NO|[A-Z]", span[0])
            label = (
                name[0] if name and name[0] in ("R", "D", "X", "W", "Y", "NO") else "O"
            )
            if label == ASKS and OPENING_WORDS.issuperset(words):
                labels.append("O")
                continue
            if span in seen and label in (ASKS, "Y"):
                label = "D"
            seen.add(span)
        labels.append(label)
    return labels


Document = dict[str, Any]


def read_harper(paths: Iterable[Path]) -> Iterator[Document]:
    """Both transcripts of each call as labelled calls; the turn that names the task asks for it."""
    lines = [line for path in paths for line in path.read_text("utf-8").splitlines()]
    for line in lines[::HARPER_STEP]:
        known = json.loads(line)
        word = HARPER_WORDS.get(known["gold"]["task"].get("task_type", ""))
        for turns in (known["call"]["turns"], known.get("machine_turns")):
            spoken = [turn for turn in turns or () if turn["speaker"] == "caller"]
            asking = [turn["seq"] for turn in spoken if word and word in turn["text"]]
            if not turns or bool(word) != bool(asking):
                continue
            task = {"kind": "", "words": [word], "turns": asking[:1]}
            gold = {"requests": [task] if word else [], "facts": []}
            yield {"call": known["call"] | {"turns": turns}, "gold": gold}


def read_labelled(document: Document) -> Lesson:
    turns, gold = document["call"]["turns"], document["gold"]
    talk = [to_talk(turn["seq"], turn["speaker"], turn["text"]) for turn in turns]
    at_seq = {turn["seq"]: at for at, turn in enumerate(turns)}
    facts = _place_facts(talk, at_seq, gold["facts"])
    lesson = Lesson(
        talk, {}, {}, gold["requests"], gold.get("withdrawn", []), facts, True
    )
    for item in (*lesson.requests, *lesson.withdrawn):
        item["turns"] = [at_seq[seq] for seq in item["turns"] if seq in at_seq]
    for at, turn in enumerate(talk):
        for index in range(len(turn.clauses)):
            lesson.allowed[at, index] = {"O"}
    for item in lesson.requests:
        _allow(lesson, item, is_withdrawn=False)
    for item in lesson.withdrawn:
        _allow(lesson, item, is_withdrawn=True)
    return lesson


def _place_facts(
    talk: list[TalkTurn], at_seq: dict[int, int], gold: list[dict[str, Any]]
) -> dict[Place, str]:
    """A fact is in the clauses of its turns that hold most of its words."""
    facts = {
        (at, index): NO_FACT
        for at, turn in enumerate(talk)
        for index in range(len(turn.clauses))
    }
    for fact in gold:
        for at in {at_seq[seq] for seq in fact["turns"] if seq in at_seq}:
            hits = [
                sum(word.lower() in clause.text for word in fact["words"])
                for clause in talk[at].clauses
            ]
            for index, number in enumerate(hits):
                if number and number == max(hits):
                    facts[at, index] = fact["category"]
                elif facts[at, index] == NO_FACT:
                    facts[at, index] = ""
    return facts


def _said_by(lesson: Lesson, item: dict[str, Any]) -> list[int]:
    return [at for at in item["turns"] if lesson.talk[at].speaker == "caller"]


def _allow(lesson: Lesson, item: dict[str, Any], *, is_withdrawn: bool) -> None:
    cited = _said_by(lesson, item)
    is_offered = bool(item["turns"]) and item["turns"][0] not in cited
    for number, at in enumerate(cited):
        if is_withdrawn and number == len(cited) - 1:
            labels = {"W"} if number else {"R", "W"}
        elif number == 0:
            labels = {"Y", "R"} if is_offered else {"R"}
        else:
            labels = {"X", "R"}
        for index in range(len(lesson.talk[at].clauses)):
            lesson.allowed[at, index] |= labels | {"D"}


def walk(lesson: Lesson, model: ClauseModel, *, is_bound: bool) -> dict[Place, Labels]:
    history, found = LabelHistory(), {}
    for place, features, about in _clauses(lesson):
        labels = model.weigh([*features, *history.list_features(place[0], about)])
        if OPENING_WORDS.issuperset(lesson.talk[place[0]].words[place[1]]):
            labels |= {ASKS: 0.0}
        if is_bound:
            allowed = lesson.allowed[place]
            labels = {label: odds for label, odds in labels.items() if label in allowed}
        found[place] = labels
        history.add(place[0], max(labels, key=labels.__getitem__), about)
    return found


_FEATURES: dict[int, list[tuple[Place, list[str], frozenset[str]]]] = {}


def _clauses(lesson: Lesson) -> list[tuple[Place, list[str], frozenset[str]]]:
    if id(lesson) not in _FEATURES:
        _FEATURES[id(lesson)] = [
            ((at, index), features, stems(clause.text))
            for at, index, clause, features in _list_features(lesson)
        ]
    return _FEATURES[id(lesson)]


def _list_features(lesson: Lesson) -> Iterator[tuple[int, int, Clause, list[str]]]:
    agreed = AgentClauses(lesson.talk)
    for at, turn in enumerate(lesson.talk):
        for index, clause in enumerate(turn.clauses):
            if turn.speaker == "caller":
                features = list_features(lesson.talk, at, index)
                features += agreed.list_agreed(at, stems(clause.text))
                yield at, index, clause, features


def relabel(lesson: Lesson, model: ClauseModel) -> None:
    """The likeliest labels that are allowed; each request has a clause that asks for it."""
    bound = walk(lesson, model, is_bound=True)
    free = walk(lesson, model, is_bound=False)
    lesson.labels = {
        place: max(labels, key=labels.__getitem__) for place, labels in bound.items()
    }
    items = [*lesson.requests, *lesson.withdrawn]
    for item in items:
        cited = _said_by(lesson, item)
        if not cited or not lesson.talk[cited[0]].clauses:
            continue
        places = [
            (cited[0], index) for index in range(len(lesson.talk[cited[0]].clauses))
        ]
        is_asked = any(lesson.labels[place] in ("R", "Y") for place in places)
        if (
            is_asked
            and sum(cited[:1] == _said_by(lesson, other)[:1] for other in items) == 1
        ):
            continue
        best = max(places, key=lambda place: _fit(lesson, place, item, free[place]))
        is_offered = item["turns"][0] != cited[0] and free[best]["Y"] > free[best]["R"]
        lesson.labels[best] = "Y" if is_offered else "R"
    for item in lesson.withdrawn:
        cited = _said_by(lesson, item)
        places = [
            (cited[-1], index) for index in range(len(lesson.talk[cited[-1]].clauses))
        ]
        if len(cited) > 1 and places and all(lesson.labels[p] != "W" for p in places):
            lesson.labels[max(places, key=lambda place: free[place]["W"])] = "W"


def _fit(lesson: Lesson, place: Place, item: dict[str, Any], labels: Labels) -> float:
    text = lesson.talk[place[0]].clauses[place[1]].text
    return (
        sum(word.lower() in text for word in item["words"]) + labels["R"] + labels["Y"]
    )


def train(lessons: Iterable[tuple[Lesson, float]]) -> ClauseModel:
    rows: list[list[str]] = []
    labels: list[str] = []
    importance: list[float] = []
    for lesson, weight in lessons:
        history = LabelHistory()
        for place, features, about in _clauses(lesson):
            label = lesson.labels[place]
            before = history.list_features(place[0], about)
            live = [
                name for name in features if not name.startswith(("na", "shares_na"))
            ]
            rows += [[*features, *before], [*live, *before]]
            labels += [label, label]
            importance += [weight, weight * LIVE_WEIGHT]
            history.add(place[0], label, about)
    return _fit_rows(rows, labels, importance)


def train_agreements(documents: Iterable[Document]) -> ClauseModel:
    """Whether a clause of the agent names what is to be done, once it was spoken of."""
    rows: Rows = []
    for document in documents:
        turns, gold = document["call"]["turns"], document["gold"]
        talk = [to_talk(turn["seq"], turn["speaker"], turn["text"]) for turn in turns]
        clauses = AgentClauses(talk)
        for at, index in clauses.places:
            clause = talk[at].clauses[index]
            cited = [
                item["turns"]
                for item in gold["requests"]
                if _names(clause, item) and clause.seq >= min(item["turns"], default=0)
            ]
            is_cited = any(clause.seq in each for each in cited)
            is_agreed = bool(cited) and (is_cited or not clause.is_question)
            is_asked = bool(cited) and not is_agreed
            is_off = any(_names(clause, item) for item in gold.get("withdrawn", ()))
            weight = ASKED_WEIGHT if is_asked or (is_agreed and is_off) else 1.0
            label = YES if is_agreed else NO
            rows.append((clauses.list_features(at, index), label, weight))
        clear_caches()
    return _fit_rows(*_turn_rows(rows))


def _names(clause: Clause, item: dict[str, Any]) -> bool:
    said = clause.plain.said.lower()
    return any(word.lower() in said for word in item["words"])


def train_facts(lessons: Iterable[Lesson]) -> tuple[ClauseModel, ClauseModel]:
    """Whether a clause states a fact that lasts, and of which kind."""
    rows: list[tuple[list[str], str, float]] = []
    for lesson in lessons:
        for (at, index), kind in lesson.facts.items():
            if kind and lesson.talk[at].speaker == "caller":
                features = list_told_features(lesson.talk, at, index)
                is_sure = lesson.is_of_facts or kind != NO_FACT
                rows.append((features, kind, 1.0 if is_sure else OTHER_WEIGHT))
    is_fact = [NO_FACT if kind == NO_FACT else FACT for _, kind, _ in rows]
    kinds = [(row, kind) for row, kind, _ in rows if kind not in (NO_FACT, FACT)]
    importance = [weight for _, _, weight in rows]
    return (
        _fit_rows([row for row, _, _ in rows], is_fact, importance),
        _fit_rows(
            [row for row, _ in kinds], [kind for _, kind in kinds], [1.0] * len(kinds)
        ),
    )


def _fit_rows(
    rows: list[list[str]],
    labels: list[str],
    importance: list[float],
    strength: float = STRENGTH,
) -> ClauseModel:
    counts = Counter(name for row in rows for name in set(row))
    known = sorted(
        name for name, count in counts.items() if count > 2 * MIN_CLAUSES - 1
    )
    columns = {name: column for column, name in enumerate(known)}
    places = [
        (number, columns[name])
        for number, row in enumerate(rows)
        for name in set(row)
        if name in columns
    ]
    shape = (len(rows), len(columns))
    ones = [1.0] * len(places)
    matrix = csr_matrix((ones, tuple(zip(*places, strict=True))), shape=shape)
    regression = LogisticRegression(C=strength, max_iter=120, tol=1e-3)
    regression.fit(matrix, labels, sample_weight=importance)
    is_binary = len(regression.classes_) == 2
    weights = {
        name: scaled
        for name, column in columns.items()
        if max(map(abs, scaled := _scale(regression.coef_[:, column], is_binary)))
        >= MIN_WEIGHT
    }
    return ClauseModel(
        [str(label) for label in regression.classes_],
        _scale(regression.intercept_, is_binary),
        weights,
    )


def _scale(values: Iterable[float], is_binary: bool) -> list[int]:
    """Of two labels the library weighs only the second."""
    scaled = [round(float(value) * SCALE) for value in values]
    return [0, *scaled] if is_binary else scaled


@dataclass
class Wanted:
    """A request as people marked or labelled it."""

    kind: str
    due: str | None
    turns: set[int]
    words: list[str]
    """All of them must be in the request, or, of a marked call, the most of `about`."""
    about: frozenset[str] = frozenset()
    is_withdrawn: bool = False
    of_others: list[str] = field(default_factory=list)
    """Words of the other requests of the call, and of those that were called off."""
    forbidden: list[str] = field(default_factory=list)


AskedCall = tuple[datetime, list[TalkTurn], list[Wanted]]


def list_wanted(document: Document) -> AskedCall:
    """A labelled call and what is asked for in it."""
    started = datetime.fromisoformat(document["call"]["started_at"])
    turns, gold = document["call"]["turns"], document["gold"]
    items = [*gold["requests"], *gold.get("withdrawn", [])]
    talk = [to_talk(turn["seq"], turn["speaker"], turn["text"]) for turn in turns]
    wanted = []
    for item in gold["requests"]:
        want = Wanted(item["kind"], item.get("due"), set(item["turns"]), item["words"])
        words = [
            word for other in items if other is not item for word in other["words"]
        ]
        want.of_others = [word for word in words if word not in want.words]
        want.forbidden = gold.get("not", [])
        wanted.append(want)
    return started, talk, wanted


def list_called_off(document: Document) -> AskedCall:
    """The same with what was called off."""
    started, talk, wanted = list_wanted(document)
    off = [
        Wanted("", None, set(item["turns"]), item["words"], is_withdrawn=True)
        for item in document["gold"].get("withdrawn", ())
    ]
    return started, talk, [*wanted, *off]


def read_wanted(path: Path) -> Iterator[AskedCall]:
    """The marked calls of a file and what is asked for in them."""
    for started, lines in _cut_marked(path):
        talk: list[TalkTurn] = []
        wanted: dict[str, Wanted] = {}
        offers: dict[str, str] = {}
        for seq, line in enumerate(lines, 1):
            text, spans = unmark(line[2:].strip())
            speaker = "agent" if line[0] == "A" else "caller"
            talk.append(to_talk(seq, speaker, text))
            for mark, start, end in spans:
                _take_mark(wanted, offers, seq, mark, text[start:end])
        yield started, talk, list(wanted.values())


def _cut_marked(path: Path) -> Iterator[tuple[datetime, list[str]]]:
    lines = path.read_text("utf-8").splitlines()
    starts = [at for at, line in enumerate(lines) if _HEAD.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        said = [
            line.strip() for line in lines[start + 1 : end] if line[:2] in ("A:", "C:")
        ]
        _, day, time, *_ = (lines[start] + " 12:00").replace("#", "# ").split()
        hour = time if re.fullmatch(r"\d\d:\d\d", time) else "12:00"
        yield datetime.fromisoformat(f"{day}T{hour}:00+00:00"), said


def _take_mark(
    wanted: dict[str, Wanted], offers: dict[str, str], seq: int, mark: str, text: str
) -> None:
    name, *more = mark.split()
    number = name.lstrip("NORDXWYQSFP")
    label = name.removesuffix(number)
    due = next((word[4:] for word in more if word.startswith("due=")), None)
    kind = next((word for word in more if "=" not in word), "")
    if label == "O":
        offers[number] = text
    elif label in ("R", "Y"):
        said = text if label == "R" else offers.get(number, text)
        wanted.setdefault(number, Wanted(kind, due, {seq}, [], stems(said)))
    elif number in wanted:
        wanted[number].turns.add(seq)
        wanted[number].due = due or wanted[number].due
        wanted[number].is_withdrawn = wanted[number].is_withdrawn or label == "W"


def pair_items(talk: RequestTalk, wanted: list[Wanted]) -> dict[int, Wanted]:
    """Which request of a call is which of those that people found in it."""
    pairs: dict[int, Wanted] = {}
    for want in sorted(wanted, key=lambda one: -len(one.words)):
        fits = []
        for index, item in enumerate(talk.state.items):
            if index in pairs or item.status != "open":
                continue
            shared = len(want.turns.intersection(item.turns))
            about = len(want.about & (item.topic | stems(item.words)))
            is_same = _count_words(item, want) == len(want.words)
            is_same = is_same if want.words else bool(about and shared)
            if is_same:
                fits.append((about, shared, -index))
        if fits:
            pairs[-max(fits)[2]] = want
    return pairs


def _count_words(item: Item, want: Wanted) -> int:
    parts = (item.title, *item.details, *item.confirmed, item.person or "", item.words)
    text = " ".join(parts).lower()
    return sum(word.lower() in text for word in want.words)


def pair_turns(
    talk: RequestTalk, wanted: list[Wanted], pairs: dict[int, Wanted]
) -> dict[int, Wanted]:
    """The requests that only share turns with one that people found, told in other words."""
    found = {id(want) for want in pairs.values()}
    near: dict[int, Wanted] = {}
    for want in wanted:
        if id(want) in found or want.is_withdrawn:
            continue
        fits = []
        for index, item in enumerate(talk.state.items):
            shared = len(want.turns.intersection(item.turns))
            if shared and item.status == "open" and index not in (pairs | near):
                about = len(want.about & item.about)
                fits.append((_count_words(item, want), about, shared, -index))
        if fits:
            near[-max(fits)[3]] = want
    return near


Rows = list[tuple[list[str], str, float]]


def _turn_rows(rows: Rows) -> tuple[list[list[str]], list[str], list[float]]:
    """Features, labels and weights apart."""
    features, labels, weights = zip(*rows, strict=True)
    return list(features), list(labels), list(weights)


class JudgementRows:
    """What the models of requests, of their parts and of their kinds learn from."""

    def __init__(self) -> None:
        self._rows: dict[ModelName, Rows] = {
            "requests": [],
            "request_parts": [],
            "request_kinds": [],
        }

    def add(self, talk: RequestTalk, wanted: list[Wanted], weight: float) -> None:
        pairs = pair_items(talk, wanted)
        pairs |= pair_turns(talk, wanted, pairs)
        for index, item in enumerate(talk.state.items):
            if item.status != "open":
                continue
            want = pairs.get(index)
            is_wanted = want is not None and not want.is_withdrawn
            features = list_request_features(talk, index)
            self._add("requests", features, YES if is_wanted else NO, weight)
            if want and want.kind and is_wanted:
                kinds = list_kind_features(talk, index)
                self._add("request_kinds", kinds, want.kind, 1.0)
            whole = find_whole(talk.state, index)
            if whole >= 0:
                is_part = want is None and self._is_part(talk, wanted, whole, index)
                parts = list_part_features(talk, whole, index)
                self._add("request_parts", parts, YES if is_part else NO, 1.0)

    def _is_part(
        self, talk: RequestTalk, wanted: list[Wanted], whole: int, index: int
    ) -> bool:
        first, second = (set(talk.state.items[at].turns) for at in (whole, index))
        about = [one for one in wanted if one.turns & second and not one.is_withdrawn]
        return bool(about and about[0].turns & first)

    def _add(self, name: ModelName, row: list[str], label: str, weight: float) -> None:
        self._rows[name].append((row, label, weight))

    def fit(self) -> dict[ModelName, ClauseModel]:
        return {
            name: _fit_rows(*_turn_rows(rows), JUDGE_STRENGTH)
            for name, rows in self._rows.items()
        }


def read_all(rows: JudgementRows, calls: Iterable[AskedCall], weight: float) -> None:
    """Adds the requests that the reader finds with the models in the tree."""
    for started, turns, wanted in calls:
        rows.add(read_requests(turns, started)[0], wanted, weight)
        clear_caches()


DayChoice = tuple[dict[date, list[str]], str | None, float]


def list_choices(call: AskedCall, weight: float) -> Iterator[DayChoice]:
    """The features of each day that may be a request's, its day, and the request's weight."""
    started, turns, wanted = call
    asked = read_requests(turns, started)[0]
    talk = date_weekdays(asked._replace(state=judge(asked)))
    spoken = list_spoken(talk)
    for index, want in pair_items(talk, wanted).items():
        around = NamedDays(talk.state, spoken, index)
        if around.days:
            features = {day: around.list_features(day) for day in around.days}
            yield features, want.due, weight
    clear_caches()


def train_days(choices: list[DayChoice]) -> ClauseModel:
    """Which of the days named in a call is that of a request, as the reader now finds both.

    The days of a request and "none" share one probability: a day is learnt beside those that it
    was chosen from, and "none" has no features.
    """
    rows = [
        (set(features), want == day.isoformat(), weight, number)
        for number, (days, want, weight) in enumerate(choices)
        for day, features in days.items()
    ]
    counts = Counter(name for features, *_ in rows for name in features)
    known = sorted(name for name, count in counts.items() if count >= 2 * MIN_CLAUSES)
    columns = {name: column for column, name in enumerate(known)}
    places = [
        (row, columns[name])
        for row, (features, *_) in enumerate(rows)
        for name in features
        if name in columns
    ]
    shape = (len(rows), len(columns))
    matrix = csr_matrix(([1.0] * len(places), tuple(zip(*places, strict=True))), shape)
    is_right = np.array([right for _, right, *_ in rows], float)
    importance = np.array([weight for *_, weight, _ in rows])
    group = np.array([number for *_, number in rows])
    starts = np.searchsorted(group, np.arange(len(choices)))

    def weigh(weights: Any) -> tuple[float, Any]:
        """The loss and its slope."""
        scores = matrix @ weights[:-1] + weights[-1]
        wholes = 1 + np.add.reduceat(np.exp(scores), starts)
        errors = importance * (np.exp(scores) / wholes[group] - is_right)
        loss = importance[starts] @ np.log(wholes) - (importance * is_right) @ scores
        loss += weights[:-1] @ weights[:-1] / (2 * DAY_STRENGTH)
        slope = matrix.T @ errors + weights[:-1] / DAY_STRENGTH
        return loss, np.append(slope, errors.sum())

    found = minimize(weigh, np.zeros(len(columns) + 1), jac=True, method="L-BFGS-B")
    *each, bias = found.x
    scaled = {name: _scale([each[at]], True) for name, at in columns.items()}
    weights = {name: pair for name, pair in scaled.items() if pair[1]}
    return ClauseModel([NO, YES], _scale([bias], True), weights)


def train_ends(calls: Iterable[tuple[AskedCall, float]]) -> ClauseModel:
    """Whether the words that called a request off meant it, as the reader now finds both.

    Who asked for two things and let one go still asks for the other.
    """
    rows: Rows = []
    for (started, turns, wanted), weight in calls:
        talk = follow_requests(turns, started)[0]
        standing = [want for want in wanted if not want.is_withdrawn]
        found = {id(want) for want in pair_items(talk, standing).values()}
        missed = [want for want in standing if id(want) not in found]
        for index, item in enumerate(talk.state.items):
            if item.off is None or item.status != "withdrawn":
                continue
            is_open = any(_is_of(want, item) for want in missed)
            is_off = any(want.is_withdrawn and _is_of(want, item) for want in wanted)
            is_near = any(asked_in(item) in want.turns for want in missed)
            features = CallingOff(talk, index, item.off).list_features()
            if is_open or is_off or not is_near:
                sure = weight if is_open or is_off else weight * UNLABELLED_WEIGHT
                rows.append((features, NO if is_open else YES, sure))
        clear_caches()
    return _fit_rows(*_turn_rows(rows), END_STRENGTH)


def _is_of(want: Wanted, item: Item) -> bool:
    is_same = _count_words(item, want) == len(want.words)
    is_about = bool(want.words or want.about & (item.topic | stems(item.words)))
    return is_same and is_about and not want.turns.isdisjoint(item.turns)


def train_clauses(calls: Iterable[AskedCall]) -> ClauseModel:
    """Which clauses say what a request is about, as the reader now finds both."""
    rows: Rows = []
    for started, turns, wanted in calls:
        asked = read_requests(turns, started)[0]
        judged = asked._replace(state=judge(asked))
        talk = judged._replace(state=choose_days(judged))
        pairs = pair_items(talk, wanted)
        for index, want in (pairs | pair_turns(talk, wanted, pairs)).items():
            around = RequestClauses(talk, index)
            for place in around.places:
                clause = around.acts[place].clause
                rows.append((around.list_features(place), *_label_told(clause, want)))
        clear_caches()
    return _fit_rows(*_turn_rows(rows), TOLD_STRENGTH)


def _label_told(clause: Clause, want: Wanted) -> tuple[str, float]:
    """What a clause does for a request, and its weight."""
    said = clause.plain.said.lower()
    if any(word.lower() in said for word in want.forbidden):
        return OTHER, FORBIDDEN_WEIGHT
    if any(word.lower() in said for word in want.words):
        return NAMES, 1.0
    if any(word.lower() in said for word in want.of_others):
        return OTHER, 1.0
    is_cited = clause.seq in want.turns
    return (TELLS, 1.0) if is_cited else (OTHER, APART_WEIGHT)


def save(model: ClauseModel, path: Path) -> None:
    """One feature a line, so that a change of the weights can be looked through."""
    weights = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(list(each), separators=(',', ':'))}"
        for name, each in sorted(model.weights.items())
    )
    head = json.dumps({"labels": list(model.labels), "bias": list(model.bias)})
    path.write_text(f'{head[:-1]}, "weights": {{\n{weights}\n}}}}\n', "utf-8")


def save_all(models: Mapping[ModelName, ClauseModel]) -> None:
    for name, model in models.items():
        save(model, WEIGHTS / f"{name}.json")
        print(f"{name}: {len(model.weights)} features")


def list_files(paths: Iterable[Path], pattern: str) -> list[Path]:
    return [file for path in paths for file in sorted(path.rglob(pattern))]


def writer_of(file: Path) -> str:
    """The letters a labelled call is named by are those of who wrote it."""
    return file.stem.rstrip("0123456789")


def is_later(file: Path) -> bool:
    """Whether a call is of those that came after B to Z."""
    return writer_of(file).startswith("A")


def use(models: Mapping[ModelName, ClauseModel]) -> None:
    """Writes models, and lets the reader read with them."""
    save_all(models)
    clause_model.load_clause_model.cache_clear()


def group_of(file: Path) -> int:
    return sum(map(ord, writer_of(file))) % GROUPS


def main(paths: list[Path]) -> None:
    of_marks = list_files(paths, "*.txt")
    documents = {
        file: json.loads(file.read_text("utf-8"))
        for file in list_files(paths, "[A-Z]*[0-9].json")
        if writer_of(file) not in KEPT_UNREAD
    }
    of_harper = list(read_harper(path for path in paths if path.suffix == ".jsonl"))
    marked = [lesson for file in of_marks for lesson in read_marked(file)]
    asked = {file: list_wanted(document) for file, document in documents.items()}
    called_off = [(list_called_off(document), 1.0) for document in documents.values()]
    asked_of_harper = [list_wanted(document) for document in of_harper]
    groups = [
        [file for file in documents if group_of(file) == group]
        for group in range(GROUPS)
    ]
    others = [[file for file in documents if file not in group] for group in groups]
    unmet = [
        train_agreements(documents[file] for file in files) for files in others
    ]  # of each group, a model that has not met its writers
    agreements = train_agreements(documents.values())
    labelled = {file: read_labelled(document) for file, document in documents.items()}
    harper = [read_labelled(document) for document in of_harper]
    for group, model in zip(groups, unmet, strict=True):
        use({"agreements": model})
        for file in group:
            _clauses(labelled[file])
    use({"agreements": agreements})
    of_requests = [(lesson, 1.0) for lesson in marked if not lesson.is_of_facts]
    first = train(of_requests)
    for lesson in (*labelled.values(), *harper):
        relabel(lesson, first)
    of_requests += [(lesson, LABELLED_WEIGHT) for lesson in harper]

    def train_acts(files: Iterable[Path]) -> ClauseModel:
        more = [(labelled[file], LABELLED_WEIGHT) for file in files]
        return train([*of_requests, *more])

    unmet_acts = [train_acts(files) for files in others]
    whole: dict[ModelName, ClauseModel] = {
        "acts": train_acts(documents),
        "agreements": agreements,
    }
    use(whole)
    of_requests_only = [file for file in of_marks if "facts" not in file.parts]
    marks = [call for file in of_requests_only for call in read_wanted(file)]
    called_off += [(call, MARKED_WEIGHT) for call in marks]
    use({"request_ends": train_ends(called_off)})
    rows = JudgementRows()
    read_all(rows, (*asked_of_harper, *marks), MARKED_WEIGHT)
    for group, acts, model in zip(groups, unmet_acts, unmet, strict=True):
        use({"acts": acts, "agreements": model})
        read_all(rows, (asked[file] for file in group), 1.0)
    facts, kinds = train_facts([*marked, *labelled.values()])
    use({"facts": facts, "fact_kinds": kinds, **rows.fit()})
    choices: list[DayChoice] = []
    for group, acts, model in zip(groups, unmet_acts, unmet, strict=True):
        use({"acts": acts, "agreements": model})
        for file in group:
            weight = 1.0 if is_later(file) else EARLY_WEIGHT
            choices += list_choices(asked[file], weight)
    use({**whole, "request_days": train_days(choices)})
    save_all({"request_clauses": train_clauses(asked.values())})
    print(f"from {len(marked)} marked and {len(labelled)} labelled calls")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    main(parser.parse_args().paths)
