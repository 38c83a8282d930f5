"""Reads passages for a search: which ones hold a term, their rows, and their vectors.

All reads of one search see one snapshot of the database, and only the passages of its scope.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aftercall.clock import format_instant
from aftercall.db.connect import Database, translated_errors
from aftercall.memory.passage_store import make_scope_token, make_shelf
from aftercall.model.passages import MatchSigns, Passage, SearchScope

MAX_VECTORS = 2_000  # compared in a search through all callers, newest first
# Of one term, newest first. Bounds the cost of an owner's search through all callers.
MAX_POSTINGS = 1_000

_SIGNS = ", ".join(f"p.{name}" for name in MatchSigns._fields)
_PASSAGE_FIELDS = list(Passage.__dataclass_fields__)
# The words around a fact are indexed, not shown.
_PASSAGE_COLUMNS = [
    "''" if name == "around" else f"p.{name}" for name in _PASSAGE_FIELDS
]
_PASSAGE = ", ".join(["p.n", *_PASSAGE_COLUMNS])
_INSTANTS = [_PASSAGE_FIELDS.index(name) for name in ("at", "until")]
_FETCH_SQLITE = "SELECT {} FROM json_each(?) j CROSS JOIN passages p ON p.n = j.value"
_FETCH_POSTGRES = "SELECT {} FROM passages p WHERE p.n = ANY(%s)"
_POSTINGS_SQLITE = (
    "SELECT p.n, p.marks FROM passages_fts CROSS JOIN passages p ON p.n = passages_fts.rowid "
    "WHERE passages_fts MATCH ?{}{}"
)
# As in the index that the migration makes.
_LEXEMES = (
    "array_to_tsvector(array_remove("
    "string_to_array(shelf || ' ' || terms || ' ' || around, ' '), ''))"
)
_POSTINGS_POSTGRES = (
    "SELECT string_agg(CAST(n AS text), ','), "  # noqa: S608 - our own names
    "string_agg(CAST(marks AS text), ',') FROM "
    f"(SELECT n, marks FROM passages p WHERE {_LEXEMES} @@ CAST(%s AS tsquery){{}}{{}}) AS found"
)


@contextmanager
def open_passages(database: Database) -> Iterator["PassageReader"]:
    """On SQLite the driver is used directly: SQLAlchemy would double the time of a search."""
    if database.dialect == "postgresql":
        with database.read() as connection:
            yield PassageReader(
                lambda sql, values: list(connection.exec_driver_sql(sql, values)), True
            )
        return
    with translated_errors(), closing(database.engine.raw_connection()) as pooled:
        driver: Any = pooled.driver_connection
        driver.execute("BEGIN")  # rolled back when the connection returns to the pool
        yield PassageReader(
            lambda sql, values: driver.execute(sql, values).fetchall(), False
        )


@dataclass(frozen=True)
class PassageReader:
    """Reads passages for search from the index of either database."""

    run: Callable[[str, tuple[Any, ...]], list[Any]]
    is_postgres: bool

    @property
    def mark(self) -> str:
        """The placeholder of a value."""
        return "%s" if self.is_postgres else "?"

    def find_postings(
        self, terms: Sequence[str], phrases: Sequence[str], scope: SearchScope
    ) -> list[dict[int, int]]:
        """For each term, the numbers of the passages that hold it, with their marks."""
        if not terms:
            return []
        conditions, values = self._filter(scope, phrases)
        limit = self._limit(scope)
        shelves = _list_shelves(scope)
        if not self.is_postgres:
            statement = _POSTINGS_SQLITE.format(conditions, limit)
            matches = [_make_fts_match(term, shelves) for term in terms]
            return [dict(self.run(statement, (match, *values))) for match in matches]
        # One round trip for all terms, one row for each.
        statement = _POSTINGS_POSTGRES.format(conditions, limit)
        given: list[Any] = []
        for term in terms:
            given += [_make_tsquery(term, shelves), *values]
        rows = self.run(" UNION ALL ".join([statement] * len(terms)), tuple(given))
        return [
            dict(zip(*(json.loads(f"[{listed}]") for listed in row), strict=True))
            if row[0]
            else {}
            for row in rows
        ]

    def fetch_signs(
        self, numbers: Iterable[int], scope: SearchScope, phrases: Sequence[str] = ()
    ) -> list[MatchSigns]:
        """What ranking needs of the passages with these numbers that the scope allows."""
        return self._fetch(_SIGNS, numbers, scope, phrases)

    def fetch_terms(self, numbers: Sequence[int], scope: SearchScope) -> dict[int, str]:
        """The indexed words of these passages, in their order."""
        return dict(self._fetch("p.n, p.terms", numbers, scope, ())) if numbers else {}

    def fetch_passages(
        self, numbers: Iterable[int], scope: SearchScope
    ) -> dict[int, Passage]:
        """The passages with these numbers that the scope allows, by number."""
        found = {}
        for n, *row in self._fetch(_PASSAGE, numbers, scope, ()):
            for at in _INSTANTS:
                if isinstance(row[at], str):  # SQLite stores instants as text
                    row[at] = datetime.fromisoformat(row[at])
            found[n] = Passage(*row)
        return found

    def _fetch(
        self,
        columns: str,
        numbers: Iterable[int],
        scope: SearchScope,
        phrases: Sequence[str],
    ) -> list[Any]:
        conditions, values = self._filter(scope, phrases)
        owned, owners = self._owned(scope)
        # The list is one value: the statement stays the same text and is prepared once.
        listed = (
            list(numbers) if self.is_postgres else f"[{','.join(map(str, numbers))}]"
        )
        fetch = (_FETCH_POSTGRES if self.is_postgres else _FETCH_SQLITE).format(columns)
        return self.run(f"{fetch} AND {owned}{conditions}", (listed, *owners, *values))

    def fetch_vectors(self, model: str, scope: SearchScope) -> list[tuple[int, bytes]]:
        """All vectors of a caller; without a caller, the newest of the agent."""
        conditions, values = self._filter(scope, ())
        owned, owners = self._owned(scope)
        active = "" if scope.as_of else " AND p.active"
        newest = "" if scope.caller else f" ORDER BY p.n DESC LIMIT {MAX_VECTORS}"
        statement = (
            "SELECT p.n, v.vector FROM passages p "  # noqa: S608 - our own names
            "JOIN passage_vectors v ON v.n = p.n "
            f"WHERE {owned} AND v.model = {self.mark}{active}{conditions}{newest}"
        )
        return [
            (row[0], row[1]) for row in self.run(statement, (*owners, model, *values))
        ]

    def _limit(self, scope: SearchScope) -> str:
        """A caller has few rows; a search through all callers stops after the newest."""
        if scope.caller:
            return ""
        # The sum keeps Postgres from walking the table backwards by its key instead of the index.
        order = "n + 0" if self.is_postgres else "passages_fts.rowid"
        return f" ORDER BY {order} DESC LIMIT {MAX_POSTINGS}"

    def _owned(self, scope: SearchScope) -> tuple[str, list[str]]:
        """The owners of the scope as SQL on the table `p`, with its values."""
        agents = (scope.agent_id, *scope.group)
        listed = ", ".join([self.mark] * len(agents))
        if not scope.caller:
            return f"p.agent_id IN ({listed})", list(agents)
        tokens = [make_scope_token(agent_id, scope.caller) for agent_id in agents]
        return f"p.scope IN ({listed})", tokens

    def _filter(
        self, scope: SearchScope, phrases: Sequence[str]
    ) -> tuple[str, list[Any]]:
        """The other conditions of a search as SQL on the table `p`, with its values."""
        mark = self.mark
        parts: list[str] = []
        values: list[Any] = []
        if scope.group:
            parts.append(
                f"(p.agent_id = {mark} OR (p.kind = 'fact' AND p.visibility = 'shared'))"
            )
            values.append(scope.agent_id)
        for name, allowed in (
            ("kind", scope.kinds),
            ("category", scope.categories),
            ("visibility", scope.visibilities),
        ):
            if allowed:
                parts.append(f"p.{name} IN ({', '.join([mark] * len(allowed))})")
                values += allowed
        for part, instant in (
            (f"p.at >= {mark}", scope.since),
            (f"p.at < {mark}", scope.before),
            (f"p.at <= {mark}", scope.as_of),
            (f"(p.until IS NULL OR p.until > {mark})", scope.as_of),
        ):
            if instant:
                parts.append(part)
                values.append(instant if self.is_postgres else format_instant(instant))
        for phrase in phrases:
            parts.append(f"' ' || p.terms || ' ' LIKE {mark}")
            values.append(f"% {phrase} %")
        return "".join(f" AND {part}" for part in parts), values


def _list_shelves(scope: SearchScope) -> list[str]:
    shelves = [
        make_shelf(agent_id, scope.caller)
        for agent_id in (scope.agent_id, *scope.group)
    ]
    return [*shelves, *(f"old{shelf}" for shelf in shelves)] if scope.as_of else shelves


def _make_fts_match(term: str, shelves: Sequence[str]) -> str:
    listed = " OR ".join(f'"{shelf}"' for shelf in shelves)
    return f'shelf:({listed}) AND {{terms around}}:"{term}"'


def _make_tsquery(term: str, shelves: Sequence[str]) -> str:
    listed = " | ".join(f"'@{shelf}'" for shelf in shelves)
    return f"({listed}) & '{term}'"
