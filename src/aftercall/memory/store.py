"""The SQL of facts.

Secrets are sealed on the way in and opened only where somebody asks for it by name.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from aftercall.db.connect import Database
from aftercall.db.stale_briefings import invalidate_briefing
from aftercall.db.statements import InValues, PreparedStatement
from aftercall.db.tables import extraction_log, fact_occurrences, facts
from aftercall.errors import NotFound, SecretUnreadable
from aftercall.faults import fault_point
from aftercall.memory.claims import Claim, read_claim, read_secret_claim
from aftercall.memory.ledger import FactFingerprint, FactLedger, FactOutline
from aftercall.memory.passage_index import FactIndex, FactPassage
from aftercall.memory.vault import Vault, is_sealed
from aftercall.model.facts import Extraction, Fact, Gist, MemoryKey, Occurrence
from aftercall.model.reading import Category, KnownFact, Visibility

T = TypeVar("T")
Write = Callable[[Connection], None]


def _write_over(
    fresh: sqlite.Insert | postgresql.Insert, key: str
) -> sqlite.Insert | postgresql.Insert:
    """A row takes the place of an older one with its key."""
    return fresh.on_conflict_do_update(
        index_elements=[key],
        set_={column.name: column for column in fresh.excluded if column.name != key},
    )


_KEPT = ("id", "occurrence_count")  # the second is counted from the occurrences, never written
_CHANGE = PreparedStatement(
    update(facts)
    .where(facts.c.id == bindparam("new_id"))
    .values(
        {
            column.name: bindparam(f"new_{column.name}", type_=column.type)
            for column in facts.c
            if column.name not in _KEPT
        }
    )
)
_ADD = PreparedStatement(insert(facts))
_OF = (facts.c.agent_id == bindparam("agent_id"), facts.c.caller == bindparam("caller"))
_OUTLINE = PreparedStatement(
    select(*(facts.c[name] for name in FactOutline._fields)).where(*_OF).order_by(facts.c.id)
)
_WHOLE = PreparedStatement(select(facts).where(InValues(facts.c.id, "ids")))
_SAID_IN = PreparedStatement(
    select(
        fact_occurrences.c.fact_id, fact_occurrences.c.call_id, fact_occurrences.c.first_turn
    ).where(InValues(fact_occurrences.c.call_id, "calls"))
)
_COUNT = PreparedStatement(
    update(facts)
    .where(InValues(facts.c.id, "ids"))
    .values(
        occurrence_count=select(func.count())
        .where(fact_occurrences.c.fact_id == facts.c.id)
        .scalar_subquery()
    )
)
_TELL = PreparedStatement(
    select(facts.c.id, facts.c.category, facts.c.content)
    .where(*_OF, facts.c.is_active, facts.c.visibility != "secret")
    .order_by(facts.c.last_seen_at.desc())
    .limit(bindparam("most"))
)
_INSERTS: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
_OCCUR = {
    name: PreparedStatement(fresh(fact_occurrences).on_conflict_do_nothing())
    for name, fresh in _INSERTS.items()
}
_LOG = {
    name: PreparedStatement(_write_over(fresh(extraction_log), "call_id"))
    for name, fresh in _INSERTS.items()
}
_GIST = [facts.c[name] for name in Gist.__dataclass_fields__]
MAX_ATTEMPTS = 5
MAX_PAGE_SIZE = 10_000


@dataclass(frozen=True)
class FactFilter:
    """Which facts to list; without `as_of` those believed now.

    With `of_group` also the `shared` facts that other agents of the group heard from the same
    caller.
    """

    key: MemoryKey | None = None
    agent_id: str | None = None
    category: Category | None = None
    visibility: Visibility | None = None
    as_of: datetime | None = None
    include_retired: bool = False
    limit: int = 100
    after: str = ""
    include_group: bool = False


@dataclass(frozen=True)
class _MemoryFacts:
    """One memory as a ledger reads it, within the transaction that will change it."""

    connection: Connection
    key: MemoryKey
    vault: Vault

    def list_outlines(self) -> list[FactOutline]:
        return list(map(FactOutline._make, _OUTLINE.fetch(self.connection, self.key._asdict())))

    def fetch(self, fact_ids: Collection[str]) -> Iterator[Fact]:
        return map(_to_fact, _WHOLE.fetch(self.connection, {"ids": fact_ids}))

    def parse_claim(self, fact: Fact) -> Claim | None:
        if not fact.is_secret:
            return read_claim(fact.content)
        try:
            return read_secret_claim(self.vault.open(fact.content))
        except SecretUnreadable:  # of another key: it stays, and nothing is compared with it
            return None

    def make_fingerprint(self, claim: Claim, is_secret: bool) -> FactFingerprint:
        """The identity is always a keyed hash: a fact that becomes secret keeps it."""
        matching = claim.matching
        hashed = self.vault.hash("matching", matching) if matching and is_secret else matching
        return FactFingerprint(self.vault.hash("identity", claim.identity), hashed)


class FactStore:
    def __init__(
        self,
        database: Database,
        vault: Vault,
        index: FactIndex,
        list_others: Callable[[str], Sequence[str]] = lambda _: (),
    ) -> None:
        """`list_others` gives the other agents of an agent's group."""
        self._database = database
        self._list_others = list_others
        self._vault = vault
        self._index = index

    def update(
        self,
        key: MemoryKey,
        work: Callable[[FactLedger], T],
        log: Callable[[T], Extraction | None] = lambda _: None,
        audit: Write = lambda connection: None,
    ) -> T:
        """Do `work` on one memory, alone; what it changed and the logs of it are written
        together, or not at all.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return self._change(key, work, log, audit)
            except IntegrityError:  # a twin slipped in between: look again, and find it
                if attempt == MAX_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _change(
        self,
        key: MemoryKey,
        work: Callable[[FactLedger], T],
        log: Callable[[T], Extraction | None],
        audit: Write,
    ) -> T:
        with self._database.write() as connection:
            self._lock(connection, key)
            ledger = FactLedger(key, _MemoryFacts(connection, key, self._vault))
            done = work(ledger)
            self._save(connection, ledger)
            for agent_id in (key.agent_id, *self._list_others(key.agent_id)):
                invalidate_briefing(connection, agent_id, key.caller)
            if entry := log(done):
                self._log(connection, entry)
            audit(connection)
            fault_point("facts.before_commit")
        fault_point("facts.after_commit")
        return done

    def save_extraction(self, entry: Extraction) -> None:
        with self._database.write() as connection:
            self._log(connection, entry)

    def find_extraction(self, call_id: str) -> Extraction | None:
        with self._database.read() as connection:
            row = connection.execute(
                select(extraction_log).where(extraction_log.c.call_id == call_id)
            ).one_or_none()
        return Extraction(**row._mapping) if row else None

    def list_known(self, key: MemoryKey, limit: int) -> list[KnownFact]:
        """What a reader may be told: believed now, never a secret, the freshest first."""
        with self._database.read() as connection:
            rows = _TELL.fetch(connection, key._asdict() | {"most": limit})
        return [
            KnownFact(id=fact_id, category=category, text=content)
            for fact_id, category, content in rows
        ]

    def list_recent(self, key: MemoryKey, limit: int) -> list[Gist]:
        """What an agent may be told: believed now, never a secret, the last said first.

        Of what two agents of a group were told of one attribute, the last said counts.
        """
        query = select(*_GIST).where(
            self._of_group(key), facts.c.is_active, facts.c.visibility != "secret"
        )
        with self._database.read() as connection:
            found = [
                Gist(*row)
                for row in connection.execute(
                    query.order_by(facts.c.last_seen_at.desc()).limit(limit)
                )
            ]
        heard_last: dict[str, str] = {}
        for fact in found:
            for mark in filter(None, (fact.identity, fact.matching)):
                heard_last.setdefault(mark, fact.agent_id)
        return [
            fact
            for fact in found
            if all(
                heard_last.get(mark or "", fact.agent_id) == fact.agent_id
                for mark in (fact.identity, fact.matching)
            )
        ]

    def page(self, wanted: FactFilter) -> list[Fact]:
        query = (
            select(facts)
            .order_by(facts.c.id)
            .limit(min(wanted.limit, MAX_PAGE_SIZE))
            .where(facts.c.id > wanted.after)
        )
        if wanted.key:
            query = query.where(
                self._of_group(wanted.key) if wanted.include_group else and_(*_of(wanted.key))
            )
        for name in ("agent_id", "category", "visibility"):
            if value := getattr(wanted, name):
                query = query.where(facts.c[name] == value)
        if wanted.as_of:
            until = facts.c.valid_until
            query = query.where(
                facts.c.valid_from <= wanted.as_of, or_(until.is_(None), until > wanted.as_of)
            )
        elif not wanted.include_retired:
            query = query.where(facts.c.is_active)
        return self._facts(query)

    def get(self, fact_id: str) -> Fact:
        found = self._facts(select(facts).where(facts.c.id == fact_id))
        if not found:
            raise NotFound(
                f"there is no fact {fact_id}; `aftercall facts list` shows those there are"
            )
        return found[0]

    def get_history(self, fact_id: str) -> list[Fact]:
        """The chain that this fact is a link of, oldest first."""
        fact = self.get(fact_id)
        chain, seen = [fact], {fact.id}
        for earlier in (True, False):
            link = fact
            while (
                other := link.supersedes if earlier else link.superseded_by
            ) and other not in seen:
                link = self.get(other)
                seen.add(other)
                chain.insert(0 if earlier else len(chain), link)
        return chain

    def list_occurrences(self, fact_id: str) -> list[Occurrence]:
        with self._database.read() as connection:
            return _occurrences(connection, fact_id)

    def list_confided_words(self, *call_ids: str) -> list[str]:
        """The words of these calls that secret facts rest on, opened: for hiding them elsewhere."""
        said = fact_occurrences.c
        query = (
            select(said.words)
            .join(facts, facts.c.id == said.fact_id)
            .where(said.call_id.in_(call_ids), facts.c.visibility == "secret")
        )
        with self._database.read() as connection:
            sealed = [str(row.words) for row in connection.execute(query)]
        with suppress(SecretUnreadable):
            return [self._vault.open(words) for words in sealed]
        return []

    def redact_occurrences(self, call_id: str, clean: Callable[[str], str]) -> None:
        """Take a secret of this call out of what facts that are none keep of it."""
        said = fact_occurrences.c
        open_ones = select(said.id, said.context).join(facts, facts.c.id == said.fact_id)
        with self._database.write() as connection:
            rows = connection.execute(
                open_ones.where(said.call_id == call_id, facts.c.visibility != "secret")
            ).all()
            for row in rows:
                if (hushed := clean(row.context)) != row.context:
                    connection.execute(
                        update(fact_occurrences).where(said.id == row.id).values(context=hushed)
                    )

    def list_words_in_calls(
        self, call_ids: Sequence[str], levels: Sequence[Visibility]
    ) -> list[str]:
        """The words that facts of these levels rest on in these calls, and the facts themselves."""
        said = fact_occurrences.c
        query = select(said.words, facts.c.content).join(facts, facts.c.id == said.fact_id)
        with self._database.read() as connection:
            rows = connection.execute(
                query.where(said.call_id.in_(call_ids), facts.c.visibility.in_(levels))
            ).all()
        return [text for row in rows for text in (row.words, row.content)]

    def list_ids_of_call(self, call_id: str) -> list[str]:
        """Ids of the facts that rest on this call."""
        query = (
            select(fact_occurrences.c.fact_id)
            .where(fact_occurrences.c.call_id == call_id)
            .distinct()
            .order_by(fact_occurrences.c.fact_id)
        )
        with self._database.read() as connection:
            return [str(row.fact_id) for row in connection.execute(query)]

    def reveal(self, item: T) -> T:
        """A fact or an occurrence with its secrets opened."""
        values = {
            name: self._vault.open(value)
            for name, value in vars(item).items()
            if isinstance(value, str) and is_sealed(value)
        }
        return replace(item, **values) if values else item  # type: ignore[type-var]

    def restore(self, fact_id: str, audit: Write = lambda connection: None) -> Fact:
        key = self.get(fact_id).key
        return self.update(key, lambda ledger: ledger.restore(fact_id), audit=audit)

    def _of_group(self, key: MemoryKey) -> ColumnElement[bool]:
        """The facts of a memory, and the `shared` ones of the same caller that other agents of
        the group heard.
        """
        heard = and_(
            facts.c.agent_id.in_(self._list_others(key.agent_id)),
            facts.c.caller == key.caller,
            facts.c.visibility == "shared",
        )
        return or_(and_(*_of(key)), heard) if self._list_others(key.agent_id) else and_(*_of(key))

    def _lock(self, connection: Connection, key: MemoryKey) -> None:
        """One writer at a time for a memory. SQLite's writers wait for each other anyway."""
        if connection.dialect.name == "postgresql":
            connection.execute(
                text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"),
                {"key": "\n".join(key)},
            )

    def _save(self, connection: Connection, ledger: FactLedger) -> None:
        created = set(ledger.created)
        known = [ledger.facts[fact_id] for fact_id in sorted(ledger.changed - created)]
        if known:
            _CHANGE.execute_many(
                connection,
                [
                    {f"new_{name}": value for name, value in self._row(fact).items()}
                    for fact in known
                ],
            )
            fault_point("facts.after_retire")
        once: dict[tuple[str, str, int], Occurrence] = {}
        for item in ledger.occurrences:
            once.setdefault((item.fact_id, item.call_id, item.first_turn), item)
        if created:
            times = Counter(fact_id for fact_id, _, _ in once)
            rows = [
                self._row(ledger.facts[fact_id]) | {"occurrence_count": times[fact_id]}
                for fact_id in ledger.created
            ]
            _ADD.execute_many(connection, rows)
        fresh = self._add_occurrences(connection, ledger, once)
        if again := sorted({fact_id for fact_id, _, _ in once} - created):
            _COUNT.execute(connection, {"ids": again})
        self._seal_occurrences(connection, ledger.made_secret)
        self._update_index(connection, ledger, fresh)

    def _add_occurrences(
        self,
        connection: Connection,
        ledger: FactLedger,
        once: Mapping[tuple[str, str, int], Occurrence],
    ) -> list[Occurrence]:
        """Only those that are new: a call that is read again says nothing again."""
        calls_read = sorted({item.call_id for item in once.values()})
        there = set(_SAID_IN.fetch(connection, {"calls": calls_read})) if calls_read else set()
        fresh = [item for key, item in once.items() if key not in there]
        if fresh:
            rows = [
                self._sealed(vars(item), ("words", "context"), ledger.facts[item.fact_id].is_secret)
                for item in fresh
            ]
            _OCCUR[connection.dialect.name].execute_many(connection, rows)
        return fresh

    def _seal_occurrences(self, connection: Connection, fact_ids: Sequence[str]) -> None:
        """A fact has become secret, and so has what was written down with it before."""
        if not fact_ids:
            return
        said = fact_occurrences.c
        query = select(said.id, said.words, said.context).where(said.fact_id.in_(fact_ids))
        for row in connection.execute(query).all():
            sealed = self._sealed(
                {"words": row.words, "context": row.context}, ("words", "context"), True
            )
            connection.execute(
                update(fact_occurrences).where(fact_occurrences.c.id == row.id).values(sealed)
            )

    def _update_index(
        self, connection: Connection, ledger: FactLedger, fresh: Iterable[Occurrence]
    ) -> None:
        if gone := (*ledger.made_secret, *ledger.restored):
            self._index.remove(connection, gone)
        again = [item for fact_id in ledger.restored for item in _occurrences(connection, fact_id)]
        said = [(ledger.facts[item.fact_id], item) for item in (*fresh, *again)]
        passages = [_passage(fact, item) for fact, item in said if not fact.is_secret]
        if passages:
            self._index.add(connection, passages)
        past = dict.fromkeys(
            (*ledger.retired, *(fact.id for fact, _ in said if not fact.is_active))
        )
        if retired := [fact_id for fact_id in past if not ledger.facts[fact_id].is_secret]:
            self._index.retire(connection, retired)

    def _row(self, fact: Fact) -> dict[str, Any]:
        row = dict(vars(fact))
        agent_id, caller = row.pop("key")
        return self._sealed(
            row | {"agent_id": agent_id, "caller": caller}, ("content", "summary"), fact.is_secret
        )

    def _sealed(
        self, row: Mapping[str, Any], names: Sequence[str], is_secret: bool
    ) -> dict[str, Any]:
        if not is_secret:
            return dict(row)
        return {
            **row,
            **{
                name: row[name] if is_sealed(row[name]) else self._vault.seal(row[name])
                for name in names
            },
        }

    def _log(self, connection: Connection, entry: Extraction) -> None:
        _LOG[connection.dialect.name].execute(connection, vars(entry))

    def _facts(self, query: Select[Any]) -> list[Fact]:
        with self._database.read() as connection:
            return [_to_fact(row) for row in connection.execute(query)]


def reindex_facts(connection: Connection, index: FactIndex, fact_ids: Sequence[str]) -> None:
    """Some of the times that these facts were said are gone: they are counted, and found, by
    those that are left.
    """
    if not fact_ids:
        return
    _COUNT.execute(connection, {"ids": fact_ids})
    index.remove(connection, fact_ids)
    told = [
        fact
        for fact in map(_to_fact, _WHOLE.fetch(connection, {"ids": fact_ids}))
        if not fact.is_secret
    ]
    index.add(
        connection,
        [_passage(fact, item) for fact in told for item in _occurrences(connection, fact.id)],
    )
    index.retire(connection, [fact.id for fact in told if not fact.is_active])


def _occurrences(connection: Connection, fact_id: str) -> list[Occurrence]:
    query = (
        select(fact_occurrences)
        .where(fact_occurrences.c.fact_id == fact_id)
        .order_by(fact_occurrences.c.at, fact_occurrences.c.id)
    )
    return [Occurrence(**row._mapping) for row in connection.execute(query)]


def _of(key: MemoryKey) -> tuple[Any, Any]:
    return facts.c.agent_id == key.agent_id, facts.c.caller == key.caller


def _to_fact(row: Sequence[Any]) -> Fact:
    values = dict(zip(facts.c.keys(), row, strict=True))
    key = MemoryKey(values.pop("agent_id"), values.pop("caller"))
    return Fact(key=key, **values)


def _passage(fact: Fact, item: Occurrence) -> FactPassage:
    return FactPassage(
        fact.id,
        fact.key,
        fact.category,
        fact.visibility,
        item.call_id,
        item.first_turn,
        item.at,
        fact.content,
        item.context,
    )
