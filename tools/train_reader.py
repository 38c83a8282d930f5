"""Trains the model of clauses of the reader by rules, and writes its weights.

    python tools/train_reader.py bench/clauses bench/calls

takes folders of marked calls (`*.txt`, see bench/clauses/README.md) and of labelled calls
(`*.json`, see bench/calls/README.md). Labelled calls tell which turns a request rests on, not
which clause: their clauses are labelled by a first model, within what the label allows.
It needs scikit-learn, which nothing else here does: `pip install scikit-learn`.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.sparse import csr_matrix
from sklearn.linear_model import (
    LogisticRegression,
)

from aftercall.english.stems import stems
from aftercall.llm.rules import clause_model
from aftercall.llm.rules.clause_model import (
    SCALE,
    ClauseModel,
    LabelHistory,
    Labels,
    TalkTurn,
    list_features,
)

WEIGHTS = Path(clause_model.__file__).with_name(clause_model.WEIGHTS_FILE)
STRENGTH = 0.3  # the inverse of regularisation
MIN_CLAUSES = 2  # in which a feature must be
MIN_WEIGHT = 3  # of SCALE; smaller ones are left out
LABELLED_WEIGHT = 0.7  # of a clause that a first model labelled
LIVE_WEIGHT = (
    0.3  # of a clause once more without the agent's answer, as a live call has it
)
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
        labels = {
            (at, index): label
            for at, (_, spans) in enumerate(unmarked)
            for index, label in enumerate(label_clauses(talk[at], spans))
        }
        yield Lesson(talk, labels, {}, [], [])


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
    """A clause has the mark it lies in; only the first of a mark's clauses asks or accepts."""
    labels, seen = [], set()
    for clause in turn.clauses:
        first, last = clause.plain.words[0].start, clause.plain.words[-1].end
        shared = {span: min(last, span[2]) - max(first, span[1]) for span in spans}
        span = max(spans, key=shared.__getitem__, default=None)
        label = "O"
        if span and shared[span] > 0:
            name = re.match("NO|[A-Z]", span[0])
            label = (
                name[0] if name and name[0] in ("R", "D", "X", "W", "Y", "NO") else "O"
            )
            if span in seen and label in ("R", "Y"):
                label = "D"
            seen.add(span)
        labels.append(label)
    return labels


def read_labelled(path: Path) -> Lesson:
    document = json.loads(path.read_text("utf-8"))
    turns, gold = document["call"]["turns"], document["gold"]
    talk = [to_talk(turn["seq"], turn["speaker"], turn["text"]) for turn in turns]
    lesson = Lesson(talk, {}, {}, gold["requests"], gold.get("withdrawn", []))
    at_seq = {turn["seq"]: at for at, turn in enumerate(turns)}
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
            ((at, index), list_features(lesson.talk, at, index), stems(clause.text))
            for at, turn in enumerate(lesson.talk)
            if turn.speaker == "caller"
            for index, clause in enumerate(turn.clauses)
        ]
    return _FEATURES[id(lesson)]


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


def _fit_rows(
    rows: list[list[str]], labels: list[str], importance: list[float]
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
    regression = LogisticRegression(C=STRENGTH, max_iter=120, tol=1e-3)
    regression.fit(matrix, labels, sample_weight=importance)
    weights = {
        name: scaled
        for name, column in columns.items()
        if max(map(abs, scaled := _scale(regression.coef_[:, column]))) >= MIN_WEIGHT
    }
    return ClauseModel(
        [str(label) for label in regression.classes_],
        _scale(regression.intercept_),
        weights,
    )


def _scale(values: Iterable[float]) -> list[int]:
    return [round(float(value) * SCALE) for value in values]


def save(model: ClauseModel, path: Path) -> None:
    """One feature a line, so that a change of the weights can be looked through."""
    weights = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(list(each), separators=(',', ':'))}"
        for name, each in sorted(model.weights.items())
    )
    head = json.dumps({"labels": list(model.labels), "bias": list(model.bias)})
    path.write_text(f'{head[:-1]}, "weights": {{\n{weights}\n}}}}\n', "utf-8")


def main(paths: list[Path], target: Path) -> None:
    marked, labelled = [], []
    for path in paths:
        for file in sorted(path.rglob("*.txt")):
            marked += list(read_marked(file))
        unread = {
            name
            for file in path.rglob("UNREAD")
            for name in file.read_text("utf-8").split()
        }
        labelled += [
            read_labelled(file)
            for file in sorted(path.rglob("[A-Z]*[0-9].json"))
            if file.stem not in unread
        ]
    model = train((lesson, 1.0) for lesson in marked)
    if labelled:
        for lesson in labelled:
            relabel(lesson, model)
        known = [(lesson, LABELLED_WEIGHT) for lesson in labelled]
        model = train([*((lesson, 1.0) for lesson in marked), *known])
    save(model, target)
    print(
        f"{len(marked)} marked and {len(labelled)} labelled calls, "
        f"{len(model.weights)} features: {target.name}"
    )


if __name__ == "__main__":
    given = [Path(name) for name in sys.argv[1:]]
    main(
        [path for path in given if path.suffix != ".json"],
        next((path for path in given if path.suffix == ".json"), WEIGHTS),
    )
