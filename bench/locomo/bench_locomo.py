"""Which turns a question brings up: evidence recall on LoCoMo or BEAM conversations, against plain
FTS5 on the same rows in one run.

python bench/locomo/bench_locomo.py PATH [--embedder words | openai:MODEL]

PATH is a file of LoCoMo (github.com/snap-research/locomo, CC BY-NC 4.0), or a folder of numbered
BEAM chats (github.com/mohammadtavakoli78/BEAM, chats/100K); then also --chats 1-10 and --roles.

Turns are the corpus, questions of categories 1 to 4 the queries, evidence ids the truth; only
the ten returned turns themselves count. No model. The weights that we ship are shown beside
weights tuned on the other conversations only.
"""

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from aftercall.clock import SystemClock
from aftercall.config import load_config
from aftercall.db.connect import Database
from aftercall.db.upgrade import prepare_database
from aftercall.lab.models import embed
from aftercall.memory.embedding import Embedder, embed_missing, load_embedder
from aftercall.memory.passage_store import make_passages, replace_call
from aftercall.memory.ranking import WEIGHTS, Weights
from aftercall.memory.search import MemorySearch
from aftercall.memory.words import STOP_WORDS, split_words
from aftercall.model.passages import SearchScope
from locomo.conversations import (
    Conversation,
    Question,
    read_beam,
    read_conversations,
)
from tables import met, print_table

Place = tuple[str, int]
Ask = Callable[[Conversation, Question], list[Place]]
RESULTS = 10
_PLAIN = f"SELECT place, text FROM turns WHERE turns MATCH ? ORDER BY bm25(turns) LIMIT {RESULTS}"  # noqa: S608 - a number of our own
AIM_RECALL, AIM_CPU = 0.77, 3.0
GRID: dict[str, tuple[float, ...]] = {
    "whole": (25, 40, 60),
    "dilution": (0.3, 0.6, 0.9),
    "call": (0.2, 0.4, 0.6),
    "pair": (0.4, 0.7, 1.0),
    "speaker": (1.3, 1.6, 2.0),
}


@dataclass(frozen=True)
class Score:
    recall: float
    mrr: float


def score_one(found: Sequence[Place], question: Question) -> Score:
    recall = len(question.evidence.intersection(found)) / len(question.evidence)
    return Score(
        recall,
        next(
            (
                1 / rank
                for rank, place in enumerate(found, 1)
                if place in question.evidence
            ),
            0.0,
        ),
    )


def score(ask: Ask, conversation: Conversation) -> Score:
    return mean(
        [
            score_one(ask(conversation, question), question)
            for question in conversation.questions
        ]
    )


def mean(scores: Sequence[Score], sizes: Sequence[int] | None = None) -> Score:
    sizes = sizes or [1] * len(scores)
    total = sum(sizes)
    recall = (
        sum(score.recall * size for score, size in zip(scores, sizes, strict=True))
        / total
    )
    return Score(
        recall,
        sum(score.mrr * size for score, size in zip(scores, sizes, strict=True))
        / total,
    )


class Plain:
    """What one FTS5 query does: stop words dropped, any word may match, best by BM25.

    A table for each conversation.
    """

    def __init__(
        self, folder: Path, conversations: Sequence[Conversation], *, window: bool
    ) -> None:
        self._drivers = {
            each.name: self._fill(
                folder / f"plain-{window}-{each.name}.db", each, window
            )
            for each in conversations
        }

    def _fill(
        self, file: Path, conversation: Conversation, window: bool
    ) -> sqlite3.Connection:
        driver = sqlite3.connect(file)
        driver.execute("PRAGMA journal_mode=WAL")
        driver.execute(
            "CREATE VIRTUAL TABLE turns USING fts5(text, place UNINDEXED, tokenize='porter "
            "unicode61')"
        )
        for call in conversation.calls:
            texts = ["", *(turn.text for turn in call.turns)]
            said = [
                f"{texts[turn.seq - 1]} {turn.text}" if window else turn.text
                for turn in call.turns
            ]
            driver.executemany(
                "INSERT INTO turns VALUES (?, ?)",
                [(text, f"{call.id} {seq}") for seq, text in enumerate(said, 1)],
            )
            driver.commit()
        return driver

    def ask(self, conversation: Conversation, question: Question) -> list[Place]:
        words = split_words(question.text)
        match = " OR ".join(
            f'"{word}"'
            for word in [word for word in words if word not in STOP_WORDS] or words
        )
        rows = self._drivers[conversation.name].execute(_PLAIN, (match,))
        return [
            (call_id, int(seq))
            for call_id, _, seq in (row[0].partition(" ") for row in rows)
        ]

    def merge(self) -> None:
        for driver in self._drivers.values():
            driver.execute("INSERT INTO turns (turns) VALUES ('optimize')")
            driver.commit()


class Ours:
    """The search of the product, in a store for each conversation."""

    def __init__(self, folder: Path, conversations: Sequence[Conversation]) -> None:
        self._databases = {
            each.name: self._fill(folder / f"ours-{each.name}.db", each)
            for each in conversations
        }

    def _fill(self, file: Path, conversation: Conversation) -> Database:
        database = Database(f"sqlite:///{file}")
        prepare_database(database)
        with database.write() as connection:
            for call in conversation.calls:
                replace_call(connection, call.id, make_passages(call), ["turn"])
        return database

    def embed(self, embedder: Embedder) -> int:
        return sum(
            embed_missing(database, embedder) for database in self._databases.values()
        )

    def asking(
        self, weights: Weights = WEIGHTS, embedder: Embedder | None = None
    ) -> Ask:
        searches = {
            name: MemorySearch(database, SystemClock(), weights, embedder)
            for name, database in self._databases.items()
        }

        def ask(conversation: Conversation, question: Question) -> list[Place]:
            where = SearchScope("main", conversation.caller)
            hits = searches[conversation.name].find(
                question.text,
                where,
                limit=RESULTS,
                context=0,
                speaker_names=conversation.voices,
            )
            return [(str(hit.passage.call_id), hit.passage.seq) for hit in hits]

        return ask

    def merge(self) -> None:
        for database in self._databases.values():
            with database.write() as connection:
                connection.exec_driver_sql(
                    "INSERT INTO passages_fts (passages_fts) VALUES ('optimize')"
                )

    def close(self) -> None:
        for database in self._databases.values():
            database.close()


def time_asking(
    ask: Ask, conversations: Sequence[Conversation], rounds: int = 3
) -> float:
    """CPU milliseconds of one question, of the quietest round."""
    spent = []
    for _ in range(rounds):
        begun = time.process_time()
        for conversation in conversations:
            for question in conversation.questions:
                ask(conversation, question)
        spent.append(time.process_time() - begun)
    return (
        min(spent)
        * 1000
        / sum(len(conversation.questions) for conversation in conversations)
    )


def changed(weights: Weights, name: str, value: float) -> Weights:
    fields: dict[str, Any] = {name: value}
    return replace(weights, **fields)


class Tuner:
    """Weights chosen on some conversations and measured on another, each of them in turn."""

    def __init__(self, ours: Ours, conversations: Sequence[Conversation]) -> None:
        self._ours = ours
        self._conversations = conversations
        self._known: dict[Weights, list[Score]] = {}

    def scores(self, weights: Weights) -> list[Score]:
        if weights not in self._known:
            self._known[weights] = [
                score(self._ours.asking(weights), conversation)
                for conversation in self._conversations
            ]
        return self._known[weights]

    def tune_without(self, left_out: int) -> tuple[Score, Score]:
        """The score on those tuned on, and on the one left out.

        Starts from weights that say nothing.
        """
        best = WEIGHTS
        for name, values in GRID.items():
            best = changed(best, name, values[0])
        for name, values in GRID.items():
            best = max(
                (changed(best, name, value) for value in values),
                key=lambda weights: self._seen(weights, left_out).recall,
            )
        return self._seen(best, left_out), self.scores(best)[left_out]

    def _seen(self, weights: Weights, left_out: int) -> Score:
        kept = [
            number for number in range(len(self._conversations)) if number != left_out
        ]
        scores = self.scores(weights)
        return mean(
            [scores[number] for number in kept],
            [len(self._conversations[number].questions) for number in kept],
        )


def show(ours: Ours, folder: Path, conversations: Sequence[Conversation]) -> None:
    sizes = [len(conversation.questions) for conversation in conversations]
    plain, window = (
        Plain(folder, conversations, window=window) for window in (False, True)
    )
    methods: dict[str, Ask] = {
        "plain FTS5, stop words dropped": plain.ask,
        "FTS5 of each turn and the one before": window.ask,
        "aftercall search": ours.asking(),
    }
    scores = {
        name: [score(ask, conversation) for conversation in conversations]
        for name, ask in methods.items()
    }
    written = {name: time_asking(ask, conversations) for name, ask in methods.items()}
    for store in (plain, window, ours):
        store.merge()
    merged = {name: time_asking(ask, conversations) for name, ask in methods.items()}
    first = next(iter(methods))
    rows = []
    for name in methods:
        total, each = (
            mean(scores[name], sizes),
            " ".join(f"{score.recall:.3f}"[1:] for score in scores[name]),
        )
        costs = [
            f"{cost[name]:.2f} ({cost[name] / cost[first]:.1f} times)"
            for cost in (written, merged)
        ]
        rows.append([name, f"{total.recall:.3f}", f"{total.mrr:.3f}", *costs, each])
    ratio = max(cost[name] / cost[first] for cost in (written, merged))
    rows.append(
        [
            f"aim: ≥ {AIM_RECALL}, ≤ {AIM_CPU:g} times",
            met(total.recall >= AIM_RECALL),
            "",
            met(ratio <= AIM_CPU),
            "",
            "",
        ]
    )
    title = (
        f"Evidence among {RESULTS} turns: {sum(sizes)} questions, {len(sizes)} conversations; "
        "CPU ms as written call by call, and merged"
    )
    print_table(
        title, ["", "recall@10", "MRR", "as written", "merged", "recall of each"], rows
    )


def show_tuning(ours: Ours, conversations: Sequence[Conversation]) -> None:
    tuner = Tuner(ours, conversations)
    shipped = tuner.scores(WEIGHTS)
    rows, unseen = [], []
    for number, conversation in enumerate(conversations):
        tuned_on, left_out = tuner.tune_without(number)
        unseen.append(left_out)
        rows.append(
            [
                conversation.name,
                f"{tuned_on.recall:.3f}",
                f"{left_out.recall:.3f}",
                f"{shipped[number].recall:.3f}",
            ]
        )
    sizes = [len(conversation.questions) for conversation in conversations]
    rows.append(
        [
            "all",
            "",
            f"{mean(unseen, sizes).recall:.3f}",
            f"{mean(shipped, sizes).recall:.3f}",
        ]
    )
    print_table(
        "Tuned on the others, measured on the one left out: recall@10",
        ["left out", "tuned on", "measured", "shipped weights"],
        rows,
    )


def show_meaning(
    ours: Ours, conversations: Sequence[Conversation], embedder: Embedder
) -> None:
    """Vectors fused with the words, at several weights."""
    vectors = ours.embed(embedder)
    if not vectors:
        raise SystemExit("no passage got a vector: nothing is measured")
    sizes = [len(conversation.questions) for conversation in conversations]
    rows = []
    for weight in (0.0, 0.25, WEIGHTS.meaning, 1.0):
        ask = ours.asking(
            changed(WEIGHTS, "meaning", weight), embedder if weight else None
        )
        total = mean(
            [score(ask, conversation) for conversation in conversations], sizes
        )
        rows.append(
            [
                f"{weight:g}" if weight else "words alone",
                f"{total.recall:.3f}",
                f"{total.mrr:.3f}",
            ]
        )
    print_table(
        f"Fused with {vectors:,} vectors of {embedder.name}",
        ["weight of meaning", "recall@10", "MRR"],
        rows,
    )


class Words:
    """An embedder that knows words and no meaning, for seeing that fusion works where no model
    is.
    """

    name = "words"

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]


def main(conversations: list[Conversation], embedder: Embedder | None) -> None:
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        ours = Ours(Path(folder), conversations)
        if embedder:
            show_meaning(ours, conversations, embedder)
            ours.close()
            return
        show(ours, Path(folder), conversations)
        if len(conversations) > 1:
            show_tuning(ours, conversations)
        ours.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument(
        "--embedder",
        default="",
        help="words, or as memory.embedder names one; then only fusion is measured",
    )
    parser.add_argument("--chats", default="1-10", help="of a BEAM folder, first-last")
    parser.add_argument(
        "--roles", default="user,assistant", help="whose messages of BEAM: user"
    )
    arguments = parser.parse_args()
    if arguments.path.is_dir():
        begin, _, end = arguments.chats.partition("-")
        chats = range(int(begin), int(end or begin) + 1)
        told = read_beam(arguments.path, chats, arguments.roles.split(","))
    else:
        told = read_conversations(arguments.path)
    main(
        told,
        Words()
        if arguments.embedder == "words"
        else load_embedder(arguments.embedder, load_config().settings.openai),
    )
