"""A home with very many calls and facts in it, written in bulk: what benches of size stand on."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, Table, insert

from aftercall.db.connect import Database
from aftercall.db.conversations import answer_delays
from aftercall.db.tables import (
    calls,
    documents,
    fact_occurrences,
    facts,
    followups,
    steps,
)
from aftercall.memory.passage_store import add
from aftercall.model.passages import Passage
from fakes import START

PER_CALLER = 100
CALLS_PER_CALLER = 10
WORDS = 12
BATCH = 20_000
AGENT = "main"
CATEGORIES = ("preference", "decision", "person", "technical", "routine")
STEPS = ("summary", "profile", "identity", "greeting", "index", "facts", "document")
PAID_STEPS = ("summary", "profile", "facts")
STATES = ("done",) * 90 + ("held",) * 3 + ("failed",) * 3 + ("open",) * 3 + ("broken",)


def make_vocabulary(rng: random.Random, size: int = 8_000) -> list[str]:
    """Words that look like words, common ones first."""
    syllables = [
        a + b
        for a in "bdfgklmnprstvz"
        for b in ("a", "e", "i", "o", "u", "an", "or", "el")
    ]
    return list(
        dict.fromkeys(
            "".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(size)
        )
    )


class Speech:
    """Sentences whose words are as uneven as words are."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._words = make_vocabulary(rng)
        self._cumulated = list(
            accumulate(1 / (rank + 10) for rank in range(len(self._words)))
        )

    def seed(self, number: int) -> "Speech":
        """From here on it says what belongs to this number."""
        self._rng.seed(number)
        return self

    def say(self, words: int = WORDS) -> str:
        return " ".join(
            self._rng.choices(self._words, cum_weights=self._cumulated, k=words)
        )


class House:
    def __init__(
        self, facts_in_all: int, seed: int = 1, newest: datetime = START
    ) -> None:
        self.newest = newest
        self.callers = max(1, facts_in_all // PER_CALLER)
        self.facts = facts_in_all
        self.calls = self.callers * CALLS_PER_CALLER
        self.rng = random.Random(seed)
        self.speech = Speech(random.Random(seed))

    def caller(self, number: int) -> str:
        return f"+1555{number % self.callers:07}"

    def call_id(self, number: int) -> str:
        return f"C{number:025}"

    def fill(self, database: Database, *, has_memory: bool = True) -> None:
        """Without memory: calls, their steps and requests only, which is much faster."""
        with database.write() as connection:
            for table, rows in self._call_tables():
                _write(connection, table, rows)
            for table, rows in self._memory_tables() if has_memory else ():
                _write(connection, table, rows)
        if has_memory:
            self._index(database)

    def _call_tables(self) -> Iterator[tuple[Table, Iterator[dict[str, Any]]]]:
        yield calls, (self._call(number) for number in range(self.calls))
        yield (
            steps,
            (
                self._step(number, name)
                for number in range(self.calls)
                for name in STEPS
            ),
        )
        yield followups, (self._followup(number) for number in range(self.calls // 2))
        yield (
            answer_delays,
            (
                self._delay(number, ms)
                for number in range(self.calls)
                for ms in self.rng.sample(range(400, 2_000, 50), 6)
            ),
        )

    def _memory_tables(self) -> Iterator[tuple[Table, Iterator[dict[str, Any]]]]:
        yield documents, (self._document(number) for number in range(self.calls))
        yield facts, (self._fact(number) for number in range(self.facts))
        yield (
            fact_occurrences,
            (self._occurrence(number) for number in range(self.facts)),
        )

    def _at(self, number: int) -> Any:
        """The highest number is the newest; about a year in all."""
        return self.newest - timedelta(
            seconds=(self.calls - number) * 30_000_000 // self.calls
        )

    def _call(self, number: int) -> dict[str, Any]:
        at, ident = self._at(number), self.call_id(number)
        return {
            "id": ident,
            "source": "twilio",
            "sid": f"CA{number:032x}",
            "agent_id": AGENT,
            "direction": "inbound",
            "caller": self.caller(number),
            "whose": self.caller(number),
            "callee": "+15550199",
            "verified": False,
            "started_at": at,
            "ended_at": at + timedelta(seconds=90),
            "end_reason": "caller_hung_up",
            "conversation": ident,
            "resumes": None,
            "metadata": {},
            "state": "sealed",
            "owner": "bench",
            "turn_count": 12,
            "archive_name": f"{ident}.json",
            "archive_sha256": "0" * 64,
            "sealed_at": at + timedelta(seconds=91),
            "postcall": "started",
        }

    def _step(self, number: int, name: str) -> dict[str, Any]:
        state = "failed" if number % 5_000 == 0 and name == "document" else "done"
        result = self.speech.say(30) if name == "summary" else None
        return {
            "call_id": self.call_id(number),
            "name": name,
            "state": state,
            "reason": "" if state == "done" else "the document memory did not answer",
            "attempts": 1,
            "result": result,
            "changed_at": self._at(number),
            "trace": None,
            "reader": "openai:bench" if name in PAID_STEPS else None,
            "cost": 0.001 if name in PAID_STEPS else None,
        }

    def _delay(self, number: int, ms: int) -> dict[str, Any]:
        return {
            "call_id": self.call_id(number),
            "ms": ms,
            "answers": 1,
            "at": self._at(number),
            "agent_id": AGENT,
        }

    def _document(self, number: int) -> dict[str, Any]:
        return {
            "id": f"{number:032x}",
            "agent_id": AGENT,
            "caller": self.caller(number),
            "call_id": self.call_id(number),
            "namespace": "",
            "title": self.speech.say(4),
            "content": self.speech.say(60),
            "source": "aftercall",
            "tags": [],
            "metadata": {},
            "made_at": self._at(number),
            "changed_at": self._at(number),
        }

    def _followup(self, number: int) -> dict[str, Any]:
        at = self._at(2 * number)
        ident = self.call_id(2 * number)
        return {
            "id": f"U{number:025}",
            "key": f"key {number}",
            "kind": "request",
            "request_kind": "task",
            "title": self.speech.say(5),
            "details": self.speech.say(),
            "conversation": ident,
            "call_id": ident,
            "agent_id": AGENT,
            "caller": self.caller(2 * number),
            "turns": [[ident, 2]],
            "words": self.speech.say(),
            "state": self.rng.choice(STATES),
            "reason": "",
            "trust": "unknown",
            "sink": "tasks",
            "created_at": at,
            "changed_at": at,
        }

    def fact_at(self, number: int) -> Any:
        return self._at(number * self.calls // self.facts)

    def fact_id(self, number: int) -> str:
        return f"F{number:025}"

    def content(self, number: int) -> str:
        """The same words for the same fact, wherever it is written."""
        return self.speech.seed(number).say()

    def _fact(self, number: int) -> dict[str, Any]:
        at, content = self.fact_at(number), self.content(number)
        return {
            "id": self.fact_id(number),
            "agent_id": AGENT,
            "caller": self.caller(number),
            "category": CATEGORIES[number % len(CATEGORIES)],
            "content": content,
            "summary": content[:100],
            "visibility": "shared",
            "confidence": 0.9,
            "needs_confirmation": False,
            "first_seen_at": at,
            "last_seen_at": at,
            "valid_from": at,
            "occurrence_count": 1,
            "is_active": True,
            "never_true": False,
            "identity": f"{number:032x}",
            "reader": "bench",
            "metadata": {},
        }

    def _occurrence(self, number: int) -> dict[str, Any]:
        return {
            "id": f"O{number:025}",
            "fact_id": self.fact_id(number),
            "call_id": self.call_id(number * self.calls // self.facts),
            "at": self.fact_at(number),
            "first_turn": 2 + number % 10,
            "last_turn": 2 + number % 10,
            "words": self.content(number),
            "context": "",
            "sentiment": "neutral",
            "confidence": 0.9,
            "reader": "bench",
        }

    def _index(self, database: Database) -> None:
        for first in range(0, self.facts, BATCH):
            with database.write() as connection:
                add(
                    connection,
                    [
                        self._passage(number)
                        for number in range(first, min(first + BATCH, self.facts))
                    ],
                )
        for first in range(0, self.calls, BATCH // 4):
            with database.write() as connection:
                add(
                    connection,
                    [
                        said
                        for number in range(first, min(first + BATCH // 4, self.calls))
                        for said in self._said(number)
                    ],
                )

    def _said(self, number: int) -> Iterator[Passage]:
        """What of a call is searched beside its facts: its summary, and two of its turns."""
        caller, call_id, at = (
            self.caller(number),
            self.call_id(number),
            self._at(number),
        )
        self.speech.seed(-number)
        yield Passage("summary", AGENT, caller, call_id, self.speech.say(30), at)
        for seq, speaker in ((1, "agent"), (2, "caller")):
            yield Passage(
                "turn",
                AGENT,
                caller,
                call_id,
                self.speech.say(),
                at,
                seq=seq,
                speaker=speaker,
            )

    def _passage(self, number: int) -> Passage:
        category = CATEGORIES[number % len(CATEGORIES)]
        at = self.fact_at(number)
        return Passage(
            "fact",
            AGENT,
            self.caller(number),
            None,
            self.content(number),
            at,
            ref=self.fact_id(number),
            category=category,
        )


def _write(
    connection: Connection, table: Table, rows: Iterator[dict[str, Any]]
) -> None:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            connection.execute(insert(table), batch)
            batch = []
    if batch:
        connection.execute(insert(table), batch)
