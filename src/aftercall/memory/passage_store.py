"""The SQL of passages: putting them where they are found, and finding those that hold a term.

Writing functions work inside the transaction they are given, so a fact and its passage stand or
fall together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from aftercall.clock import format_instant
from aftercall.db.columns import LEXEMES
from aftercall.db.connect import Database, translated_errors
from aftercall.db.statements import InValues, PreparedStatement, chunked, upsert
from aftercall.db.tables import facts, passage_pages, passage_vectors, passages
from aftercall.memory.ranking import compute_marks
from aftercall.memory.words import to_terms
from aftercall.model.passages import MatchSigns, Passage, SearchScope

PAGE_BITS = 15  # a call has 20,000 turns at most
MAX_AROUND_WORDS = 200  # words kept around a fact, the newest first
MAX_VECTORS = 2_000  # compared in a search through all callers, newest first
MAX_POSTINGS = (
    1_000  # of one term, newest first: bounds the cost of an owner's search through everything
)


_LISTED = InValues(passages.c.ref, "refs")
_ADD = PreparedStatement(insert(passages))
_SAID = PreparedStatement(
    select(
        passages.c.ref, passages.c.n, passages.c.mentions, passages.c.day, passages.c.around
    ).where(_LISTED)
)
_SAY_AGAIN = PreparedStatement(
    update(passages)
    .where(passages.c.n == bindparam("at_n"))
    .values({name: bindparam(f"new_{name}") for name in ("mentions", "day", "around")})
)
_REWORD = (
    update(passages)
    .where(passages.c.n == bindparam("at_n"))
    .values({name: bindparam(f"new_{name}") for name in ("text", "terms", "around")})
)
_ACTIVE = PreparedStatement(
    select(passages.c.n, passages.c.ref, passages.c.agent_id, passages.c.caller).where(
        _LISTED, passages.c.active
    )
)
_RETIRE = PreparedStatement(
    update(passages)
    .where(passages.c.n == bindparam("at_n"))
    .values(
        active=False,
        until=bindparam("new_until", type_=passages.c.until.type),
        shelf=bindparam("new_shelf"),
    )
)
_ENDS = PreparedStatement(
    select(facts.c.id, facts.c.valid_from, facts.c.valid_until).where(InValues(facts.c.id, "refs"))
)
_LOCK_ALL = text(
    "SELECT pg_advisory_xact_lock(hashtextextended(named, 0)) FROM unnest(CAST(:calls AS "
    "text[])) AS named"
)
_NEWEST = PreparedStatement(select(func.max(passages.c.n)))
_DRAW = select(passage_pages.next_value()).select_from(func.generate_series(1, bindparam("count")))


@dataclass(frozen=True)
class _Mentions:
    """What changes of a fact's passage each time it is said."""

    n: int
    mentions: int
    day: int
    around: str

    @classmethod
    def from_passage(cls, n: int, passage: Passage) -> "_Mentions":
        return cls(n, passage.mentions, passage.at.toordinal(), to_terms(passage.around))

    def with_mention(self, passage: Passage) -> "_Mentions":
        words = dict.fromkeys(f"{to_terms(passage.around)} {self.around}".split())
        return _Mentions(
            self.n,
            self.mentions + 1,
            max(self.day, passage.at.toordinal()),
            " ".join(list(words)[:MAX_AROUND_WORDS]),
        )

    def to_values(self) -> dict[str, Any]:
        return {
            "at_n": self.n,
            "new_mentions": self.mentions,
            "new_day": self.day,
            "new_around": self.around,
        }


@lru_cache(maxsize=64)
def make_scope_token(agent_id: str, caller: str | None) -> str:
    """Agent and caller as one token; empty for a withheld number, whose calls belong to nobody."""
    return sha256(f"{agent_id}\0{caller}".encode()).hexdigest()[:24] if caller else ""


def add(connection: Connection, fresh: Iterable[Passage]) -> None:
    """Make passages findable. Secrets are left out, whoever hands them in.

    Turns of one call come together.
    """
    found = [passage for passage in fresh if passage.visibility != "secret"]
    turns = [passage for passage in found if passage.kind == "turn"]
    for call_id in dict.fromkeys(passage.call_id for passage in turns):
        (first,) = _next_pages(connection, 1, has_neighbours=True)
        _insert(
            connection,
            [(first + passage.seq, passage) for passage in turns if passage.call_id == call_id],
        )
    others = [passage for passage in found if passage.kind != "turn"]
    if others:
        _insert(connection, zip(_next_pages(connection, len(others)), others, strict=True))


def replace_call(
    connection: Connection,
    call_id: str,
    fresh: Sequence[Passage],
    kinds: Sequence[str] = ("turn", "summary"),
) -> None:
    """The turns and the summary of a call, or one of the two, once however often this is done;
    its facts are left alone.
    """
    _lock_call(connection, call_id)
    connection.execute(
        delete(passages).where(
            passages.c.call_id == call_id, passages.c.ref.is_(None), passages.c.kind.in_(kinds)
        )
    )
    add(connection, fresh)


def replace_summaries(connection: Connection, fresh: Sequence[Passage]) -> None:
    """The summaries of several calls at once, each once however often this is done."""
    named = sorted(str(passage.call_id) for passage in fresh)
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK_ALL, {"calls": named})
    connection.execute(
        delete(passages).where(
            passages.c.call_id.in_(named), passages.c.ref.is_(None), passages.c.kind == "summary"
        )
    )
    add(connection, fresh)


def remove(
    connection: Connection, *, call_id: str = "", refs: Sequence[str] = (), scope: str = ""
) -> int:
    """Forget every passage of a call, of some facts, or of a caller; returns how many there
    were.
    """
    named: list[ColumnElement[bool]] = [passages.c.ref.in_(some) for some in chunked(refs)]
    named += [
        passages.c[name] == value
        for name, value in (("call_id", call_id), ("scope", scope))
        if value
    ]
    return sum(connection.execute(delete(passages).where(part)).rowcount for part in named)


def redact_passages(
    connection: Connection, call_id: str, clean: Callable[[str], str], words: Iterable[str]
) -> int:
    """A call turned out to hold a secret: `clean` takes it out of its passages, and no fact is
    found by its `words` any more.

    Returns how many passages were changed.
    """
    _lock_call(connection, call_id)
    gone = {term for said in words for term in to_terms(said).split()}
    rows = connection.execute(
        select(passages.c.n, passages.c.ref, passages.c.text, passages.c.around).where(
            passages.c.call_id == call_id
        )
    )
    changed = []
    for row in rows.all():
        text_ = row.text if row.ref else clean(row.text)
        around = " ".join(term for term in row.around.split() if term not in gone)
        if (text_, around) != (row.text, row.around):
            changed.append(
                {
                    "at_n": row.n,
                    "new_text": text_,
                    "new_terms": to_terms(text_),
                    "new_around": around,
                }
            )
    if changed:
        connection.execute(
            delete(passage_vectors).where(passage_vectors.c.n.in_([row["at_n"] for row in changed]))
        )
        connection.execute(_REWORD, changed)
    return len(changed)


def record_mentions(connection: Connection, told: Sequence[Passage]) -> None:
    """Facts as they were said: each is one passage however often it is said, and each time adds
    the words around it.
    """
    said = _find_said(connection, dict.fromkeys(str(passage.ref) for passage in told))
    first: dict[str, Passage] = {}
    later = []
    for passage in told:
        ref = str(passage.ref)
        if ref in said or ref in first:
            later.append(passage)
        else:
            first[ref] = passage
    numbers = _next_pages(connection, len(first))
    if first:
        _insert(connection, zip(numbers, first.values(), strict=True))
    places = dict(zip(first, numbers, strict=True))
    again: dict[str, _Mentions] = {}
    for passage in later:
        ref = str(passage.ref)
        before = again.get(ref) or said.get(ref) or _Mentions.from_passage(places[ref], first[ref])
        again[ref] = before.with_mention(passage)
    if again:
        _SAY_AGAIN.execute_many(connection, [each.to_values() for each in again.values()])


def retire(connection: Connection, ends: Mapping[str, datetime]) -> None:
    """These facts no longer hold: found only by a search as of an instant before their end."""
    moved = [
        {
            "at_n": n,
            "new_until": ends[ref],
            "new_shelf": _shelf_tokens(agent_id, caller, active=False),
        }
        for n, ref, agent_id, caller in _ACTIVE.fetch(connection, {"refs": ends})
    ]
    if moved:
        _RETIRE.execute_many(connection, moved)


def fetch_fact_ends(connection: Connection, refs: Sequence[str]) -> dict[str, datetime]:
    """When facts that are believed no longer ceased to hold, as the facts themselves tell;
    where they do not, they never held.
    """
    return {
        fact_id: until or since for fact_id, since, until in _ENDS.fetch(connection, {"refs": refs})
    }


@dataclass(frozen=True)
class PassageSnapshot:
    """One unchanging view of the database, to read passages from."""

    is_postgres: bool
    run: Callable[[str, tuple[Any, ...]], list[Any]]


@contextmanager
def open_snapshot(database: Database) -> Iterator[PassageSnapshot]:
    """On SQLite by the driver itself: a search is a few quick reads, and the layers between
    would cost as much again.
    """
    if database.dialect == "postgresql":
        with database.read() as connection:
            yield PassageSnapshot(
                True, lambda sql, values: list(connection.exec_driver_sql(sql, values))
            )
        return
    with translated_errors(), closing(database.engine.raw_connection()) as pooled:
        driver: Any = pooled.driver_connection
        driver.execute("BEGIN")  # ended when the connection goes back
        yield PassageSnapshot(False, lambda sql, values: driver.execute(sql, values).fetchall())


def find_postings(
    snapshot: PassageSnapshot, terms: Sequence[str], phrases: Sequence[str], scope: SearchScope
) -> list[list[int]]:
    """For each term the passages that hold it, within one caller's rows: the cost is theirs,
    not the store's.
    """
    if not terms:
        return []
    conditions, values = _filter(scope, phrases, snapshot.is_postgres)
    one = _POSTGRES if snapshot.is_postgres else _SQLITE_JOINED if conditions else _SQLITE
    ask = _tsquery if snapshot.is_postgres else _match
    shelves = _shelves(scope)
    given = tuple(value for term in terms for value in (ask(term, shelves), *values))
    one = one.format(conditions, _ordered(scope, snapshot.is_postgres))
    rows = snapshot.run(" UNION ALL ".join([one] * len(terms)), given)
    return [list(map(int, row[0].split(","))) if row[0] else [] for row in rows]


def fetch_passages(
    snapshot: PassageSnapshot,
    numbers: Iterable[int],
    scope: SearchScope,
    phrases: Sequence[str] = (),
) -> list[MatchSigns]:
    """Those of the numbers that may be found. Other callers' rows are never among them."""
    conditions, values = _filter(scope, phrases, snapshot.is_postgres)
    whose, owners = _whose(scope, snapshot.is_postgres)
    # The list is one value, so that the statement stays the same and is prepared once.
    listed = list(numbers) if snapshot.is_postgres else f"[{','.join(map(str, numbers))}]"
    statement = (
        f"{_PICK_POSTGRES if snapshot.is_postgres else _PICK_SQLITE} AND {whose}{conditions}"
    )
    return list(map(MatchSigns._make, snapshot.run(statement, (listed, *owners, *values))))


def find_unembedded(connection: Connection, model: str, limit: int) -> list[tuple[int, str]]:
    vectors = select(passage_vectors.c.n).where(passage_vectors.c.model == model)
    query = (
        select(passages.c.n, passages.c.text)
        .where(passages.c.n.not_in(vectors), passages.c.text != "")
        .order_by(passages.c.n)
    )
    return [(row.n, row.text) for row in connection.execute(query.limit(limit))]


def store_vectors(connection: Connection, model: str, vectors: Iterable[tuple[int, bytes]]) -> None:
    """A vector of another model gives way. A passage that went away in the meantime gets none."""
    given = dict(vectors)
    there = connection.execute(select(passages.c.n).where(passages.c.n.in_(list(given)))).scalars()
    for n in list(there):
        upsert(connection, passage_vectors, {"n": n}, {"model": model, "vector": given[n]})


def fetch_vectors(
    snapshot: PassageSnapshot, model: str, scope: SearchScope
) -> list[tuple[int, bytes]]:
    """Nearness is compared with all of a caller's rows; without a caller with the newest of the
    agent's.
    """
    conditions, values = _filter(scope, (), snapshot.is_postgres)
    whose, owners = _whose(scope, snapshot.is_postgres)
    active = "" if scope.as_of else " AND p.active"
    newest = "" if scope.caller else f" ORDER BY p.n DESC LIMIT {MAX_VECTORS}"
    statement = (
        f"SELECT p.n, v.vector FROM passages p JOIN passage_vectors v ON v.n = p.n "  # noqa: S608 - our own names
        f"WHERE {whose} AND v.model = {_mark(snapshot.is_postgres)}{active}{conditions}{newest}"
    )
    return [(row[0], row[1]) for row in snapshot.run(statement, (*owners, model, *values))]


_COLUMNS = ", ".join(f"p.{name}" for name in MatchSigns._fields)
_PICK_SQLITE = f"SELECT {_COLUMNS} FROM json_each(?) j CROSS JOIN passages p ON p.n = j.value"  # noqa: S608 - our own names
_PICK_POSTGRES = f"SELECT {_COLUMNS} FROM passages p WHERE p.n = ANY(%s)"  # noqa: S608 - our own names
_SQLITE = (
    "SELECT group_concat(rowid) FROM (SELECT rowid FROM passages_fts WHERE passages_fts MATCH "
    "?{}{})"
)
_SQLITE_JOINED = (
    "SELECT group_concat(n) FROM (SELECT p.n FROM passages_fts JOIN passages p ON p.n = "
    "passages_fts.rowid WHERE passages_fts MATCH ?{}{})"
)
_POSTGRES = (
    "SELECT string_agg(CAST(n AS text), ',') FROM "  # noqa: S608 - our own names
    f"(SELECT n FROM passages p WHERE {LEXEMES} @@ CAST(%s AS tsquery){{}}{{}}) AS found"
)


def _ordered(where: SearchScope, is_postgres: bool) -> str:
    """A caller's rows are few.

    An owner's search through everything stops after the newest; reading backwards costs half as
    much again.

    The sum keeps Postgres from walking the whole table backwards by its key instead of asking
    the index.
    """
    if where.caller:
        return ""
    return f" ORDER BY {'n + 0' if is_postgres else 'passages_fts.rowid'} DESC LIMIT {MAX_POSTINGS}"


def _mark(is_postgres: bool) -> str:
    return "%s" if is_postgres else "?"


def _match(term: str, shelves: Sequence[str]) -> str:
    listed = " OR ".join(f'"{shelf}"' for shelf in shelves)
    return f'shelf:({listed}) AND {{terms around}}:"{term}"'


def _tsquery(term: str, shelves: Sequence[str]) -> str:
    listed = " | ".join(f"'@{shelf}'" for shelf in shelves)
    return f"({listed}) & '{term}'"


def _whose(where: SearchScope, is_postgres: bool) -> tuple[str, list[str]]:
    """Whose rows they are, as SQL on the table `p`, and its values."""
    agents = (where.agent_id, *where.group)
    listed = ", ".join([_mark(is_postgres)] * len(agents))
    if where.caller:
        return f"p.scope IN ({listed})", [
            make_scope_token(agent_id, where.caller) for agent_id in agents
        ]
    return f"p.agent_id IN ({listed})", list(agents)


def _filter(where: SearchScope, phrases: Sequence[str], is_postgres: bool) -> tuple[str, list[Any]]:
    """What must hold beside the shelf, as SQL on the table `p`, and its values."""
    mark = _mark(is_postgres)
    parts: list[str] = []
    values: list[Any] = []
    if where.group:
        parts.append(f"(p.agent_id = {mark} OR (p.kind = 'fact' AND p.visibility = 'shared'))")
        values.append(where.agent_id)
    for name, allowed in (
        ("kind", where.kinds),
        ("category", where.categories),
        ("visibility", where.visibilities),
    ):
        if allowed:
            parts.append(f"p.{name} IN ({', '.join([mark] * len(allowed))})")
            values += allowed
    bounds = (("p.at >= {}", where.since), ("p.at < {}", where.before), ("p.at <= {}", where.as_of))
    for part, instant in (*bounds, ("(p.until IS NULL OR p.until > {})", where.as_of)):
        if instant:
            parts.append(part.format(mark))
            values.append(instant if is_postgres else format_instant(instant))
    for phrase in phrases:
        parts.append(f"' ' || p.terms || ' ' LIKE {mark}")
        values.append(f"% {phrase} %")
    return "".join(f" AND {part}" for part in parts), values


@lru_cache(maxsize=64)
def _shelf(agent_id: str, caller: str | None) -> str:
    return (
        "c" + make_scope_token(agent_id, caller)
        if caller
        else "a" + sha256(agent_id.encode()).hexdigest()[:24]
    )


def _shelves(where: SearchScope) -> list[str]:
    shelves = [_shelf(agent_id, where.caller) for agent_id in (where.agent_id, *where.group)]
    return [*shelves, *(f"old{shelf}" for shelf in shelves)] if where.as_of else shelves


def _shelf_tokens(agent_id: str, caller: str | None, *, active: bool) -> str:
    """Under the agent for its owner, and under the caller for the caller's own calls.

    No term begins with an @.
    """
    places = [_shelf(agent_id, None), *([_shelf(agent_id, caller)] if caller else [])]
    return " ".join(f"@{'' if active else 'old'}{place}" for place in places)


def _lock_call(connection: Connection, call_id: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended(:call, 0))"), {"call": call_id}
        )


def _find_said(connection: Connection, refs: Iterable[str]) -> dict[str, _Mentions]:
    return {ref: _Mentions(*said) for ref, *said in _SAID.fetch(connection, {"refs": refs})}


def _next_pages(connection: Connection, count: int, *, has_neighbours: bool = False) -> list[int]:
    """The first numbers of fresh pages.

    Odd pages are those of turns, whose neighbours count; a fact has one of its own.
    """
    if not count:
        return []
    if connection.dialect.name == "postgresql":
        fresh: Sequence[int] = connection.execute(_DRAW, {"count": count}).scalars().all()
    else:
        ((newest,),) = _NEWEST.fetch(connection, {})
        first = ((newest or 0) >> (PAGE_BITS + 1)) + 1
        fresh = range(first, first + count)
    return [(2 * page + has_neighbours) << PAGE_BITS for page in fresh]


def _insert(connection: Connection, numbered: Iterable[tuple[int, Passage]]) -> None:
    _ADD.execute_many(connection, [_row(n, passage) for n, passage in numbered])


def _row(n: int, passage: Passage) -> dict[str, Any]:
    active = passage.until is None
    terms = to_terms(passage.text)
    return {name: getattr(passage, name) for name in Passage.__dataclass_fields__} | {
        "n": n,
        "scope": make_scope_token(passage.agent_id, passage.caller),
        "shelf": _shelf_tokens(passage.agent_id, passage.caller, active=active),
        "day": passage.at.toordinal(),
        "active": active,
        "marks": compute_marks(passage.text, terms),
        "terms": terms,
        "around": to_terms(passage.around),
    }
