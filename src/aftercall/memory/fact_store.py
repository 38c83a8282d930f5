"""Facts in the database: reading them, and changing one memory in one transaction.

Secrets are stored sealed; only `reveal` and `list_confided_words` open them.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from aftercall.clock import Clock, parse_instant
from aftercall.db.briefing_cache import invalidate_briefing
from aftercall.db.connect import Database
from aftercall.db.corrections import Correction
from aftercall.db.event_log import LoggedEvent, write_events
from aftercall.db.statements import InValues, PreparedStatement, insert_into
from aftercall.db.tables import extraction_log, fact_occurrences, facts
from aftercall.encryption import Vault, is_sealed
from aftercall.errors import NotFound, RefusedInput, SecretUnreadable
from aftercall.faults import fault_point
from aftercall.memory.fact_rows import (
    list_occurrences,
    open_ledger,
    save_ledger,
    to_fact,
)
from aftercall.model.facts import Extraction, Fact, Gist, MemoryKey, Occurrence
from aftercall.model.json_fields import pick_fields
from aftercall.model.passages import Passage, SearchHit
from aftercall.model.reading import Category, KnownFact, Visibility

if TYPE_CHECKING:
    from aftercall.memory.ledger import FactLedger

T = TypeVar("T")
Write = Callable[[Connection], None]
MAX_ATTEMPTS = 5
MAX_PAGE_SIZE = 10_000


@cache
def _log_statement(dialect: str) -> PreparedStatement:
    fresh = insert_into(extraction_log, dialect)
    key = "call_id"
    others = {column.name: column for column in fresh.excluded if column.name != key}
    return PreparedStatement(
        fresh.on_conflict_do_update(index_elements=[key], set_=others)
    )


_KNOWN = PreparedStatement(
    select(facts.c.id, facts.c.category, facts.c.content)
    .where(
        facts.c.agent_id == bindparam("agent_id"), facts.c.caller == bindparam("caller")
    )
    .where(facts.c.is_active, facts.c.visibility != "secret")
    .order_by(facts.c.last_seen_at.desc())
    .limit(bindparam("limit"))
)
_GIST = [facts.c[name] for name in Gist.__dataclass_fields__]


@dataclass(frozen=True)
class FactFilter:
    """Which facts to list; without `as_of`, the active ones, or only the retired ones.

    `include_group` adds `shared` facts that other agents of the group heard from the same caller.
    """

    key: MemoryKey | None = None
    agent_id: str | None = None
    category: Category | None = None
    visibility: Visibility | None = None
    as_of: datetime | None = None
    include_retired: bool = False
    only_retired: bool = False
    limit: int = 100
    after: str = ""
    include_group: bool = False
    is_newest_first: bool = False


class FactStore:
    """Facts as other parts ask for them: lists, one fact with its history, changes by people."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        list_others: Callable[[str], Sequence[str]],
        clock: Clock,
    ) -> None:
        """`list_others` gives the other agents of an agent's group."""
        self._database = database
        self._list_others = list_others
        self._clock = clock
        self.vault = vault

    def update(
        self,
        key: MemoryKey,
        work: "Callable[[FactLedger], T]",
        also: Callable[[Connection, T], None] = lambda connection, done: None,
    ) -> T:
        """Run `work` on one memory as its only writer; `also` writes in the same transaction."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return self._update_once(key, work, also)
            except IntegrityError:
                # another writer added the same fact: the next attempt sees it
                if attempt == MAX_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _update_once(
        self,
        key: MemoryKey,
        work: "Callable[[FactLedger], T]",
        also: Callable[[Connection, T], None],
    ) -> T:
        with self._database.write() as connection:
            ledger = open_ledger(connection, key, self.vault)
            done = work(ledger)
            save_ledger(connection, ledger, self.vault)
            for agent_id in (key.agent_id, *self._list_others(key.agent_id)):
                invalidate_briefing(connection, agent_id, key.caller)
            self._write_events(connection, ledger)
            also(connection, done)
            fault_point("facts.before_commit")
        fault_point("facts.after_commit")
        return done

    def _write_events(self, connection: Connection, ledger: "FactLedger") -> None:
        """Tells new, changed and dropped facts; not one that was only said again."""
        call_ids = {said.fact_id: said.call_id for said in ledger.occurrences}
        now = self._clock.now()
        key = ledger.key
        told = sorted({*ledger.created, *ledger.told, *ledger.dropped})
        write_events(
            connection,
            [
                LoggedEvent("fact.changed", fact_id, now, *key, call_ids.get(fact_id))
                for fact_id in told
            ],
        )

    def list_dispute(self, fact: Fact) -> list[Fact]:
        """The facts of its dispute, newest first; empty if there is none."""
        if fact.dispute is None:
            return []
        query = select(facts).where(
            _is_in_memory(fact.key), facts.c.dispute == fact.dispute
        )
        return self._select(
            query.order_by(facts.c.valid_from.desc(), facts.c.id.desc())
        )

    def save_extraction(self, entry: Extraction) -> None:
        with self._database.write() as connection:
            write_log(connection, entry)

    def find_extraction(self, call_id: str) -> Extraction | None:
        query = select(extraction_log).where(extraction_log.c.call_id == call_id)
        row = self._database.fetch_first(query)
        return Extraction(**row._mapping) if row else None

    def list_known(self, key: MemoryKey, limit: int) -> list[KnownFact]:
        """Active facts for a reader, newest first; never a secret."""
        with self._database.read() as connection:
            rows = _KNOWN.fetch(connection, key._asdict() | {"limit": limit})
        return [KnownFact(id=row[0], category=row[1], text=row[2]) for row in rows]

    def list_recent(self, key: MemoryKey, limit: int) -> list[Gist]:
        """Active facts for a briefing, last said first; never a secret.

        Where two agents of a group heard different values of one attribute, the later one counts.
        """
        query = select(*_GIST).where(
            self._is_in_memory_or_group(key),
            facts.c.is_active,
            facts.c.visibility != "secret",
        )
        newest = query.order_by(facts.c.last_seen_at.desc()).limit(limit)
        found = [Gist(*row) for row in self._database.fetch(newest)]
        last_agent: dict[str, str] = {}
        kept = []
        for fact in found:
            marks = [mark for mark in (fact.identity, fact.matching) if mark]
            agents = [last_agent.setdefault(mark, fact.agent_id) for mark in marks]
            if all(agent_id == fact.agent_id for agent_id in agents):
                kept.append(fact)
        return kept

    def page(self, wanted: FactFilter) -> list[Fact]:
        is_newest_first = wanted.is_newest_first
        fact_id = facts.c.id
        order = fact_id.desc() if is_newest_first else fact_id.asc()
        query = select(facts).order_by(order)
        if wanted.after:
            is_older = fact_id < wanted.after
            is_later = fact_id > wanted.after
            query = query.where(is_older if is_newest_first else is_later)
        if wanted.key and wanted.include_group:
            query = query.where(self._is_in_memory_or_group(wanted.key))
        elif wanted.key:
            query = query.where(_is_in_memory(wanted.key))
        for name in ("agent_id", "category", "visibility"):
            if value := getattr(wanted, name):
                query = query.where(facts.c[name] == value)
        if wanted.as_of:
            until = facts.c.valid_until
            held = or_(until.is_(None), until > wanted.as_of)
            query = query.where(facts.c.valid_from <= wanted.as_of, held)
        elif wanted.only_retired:
            query = query.where(~facts.c.is_active)
        elif not wanted.include_retired:
            query = query.where(facts.c.is_active)
        return self._select(query.limit(min(wanted.limit, MAX_PAGE_SIZE)))

    def get(self, fact_id: str) -> Fact:
        found = self._select(select(facts).where(facts.c.id == fact_id))
        if not found:
            raise NotFound(
                f"there is no fact {fact_id}; `aftercall facts list` lists all facts"
            )
        return found[0]

    def get_history(self, fact_id: str) -> list[Fact]:
        """The chain that this fact belongs to, oldest first."""
        fact = self.get(fact_id)
        seen = {fact.id}
        earlier = self._follow(fact, seen, lambda link: link.supersedes)
        later = self._follow(fact, seen, lambda link: link.superseded_by)
        return [*reversed(earlier), fact, *later]

    def _follow(
        self, fact: Fact, seen: set[str], get_next: Callable[[Fact], str | None]
    ) -> list[Fact]:
        links = []
        while (other := get_next(fact)) and other not in seen:
            seen.add(other)
            fact = self.get(other)
            links.append(fact)
        return links

    def list_occurrences(self, fact_id: str) -> list[Occurrence]:
        with self._database.read() as connection:
            return list_occurrences(connection, fact_id)

    def list_confided_words(self, *call_ids: str) -> list[str]:
        """The opened words of secret facts in these calls, to mask them elsewhere."""
        with self._database.read() as connection:
            rows = _CONFIDED.fetch(connection, {"calls": call_ids})
        sealed = [str(words) for (words,) in rows]
        with suppress(SecretUnreadable):
            return [self.vault.open(words) for words in sealed]
        return []

    def list_words_in_calls(
        self, call_ids: Sequence[str], levels: Sequence[Visibility]
    ) -> list[str]:
        """The facts of these levels in these calls, and the words they rest on."""
        query = _select_said(fact_occurrences.c.words, facts.c.content).where(
            fact_occurrences.c.call_id.in_(call_ids), facts.c.visibility.in_(levels)
        )
        return [part for row in self._database.fetch(query) for part in row]

    def list_ids_of_call(self, call_id: str) -> list[str]:
        """Ids of the facts that rest on this call."""
        said = fact_occurrences.c
        query = select(said.fact_id).where(said.call_id == call_id).distinct()
        return list(self._database.fetch_column(query.order_by(said.fact_id)))

    def redact_occurrences(self, call_id: str, clean: Callable[[str], str]) -> None:
        """Mask a secret of this call in the context of facts that are not secret."""
        said = fact_occurrences.c
        query = _select_said(said.id, said.context).where(
            said.call_id == call_id, facts.c.visibility != "secret"
        )
        with self._database.write() as connection:
            for row in connection.execute(query).all():
                masked = clean(row.context)
                if masked != row.context:
                    change = update(fact_occurrences).where(said.id == row.id)
                    connection.execute(change.values(context=masked))

    def reveal(self, item: T) -> T:
        """A fact or an occurrence with its secrets opened."""
        opened = {
            name: self.vault.open(value)
            for name, value in vars(item).items()
            if isinstance(value, str) and is_sealed(value)
        }
        return replace(item, **opened) if opened else item  # type: ignore[type-var]

    def _is_in_memory_or_group(self, key: MemoryKey) -> ColumnElement[bool]:
        others = self._list_others(key.agent_id)
        if not others:
            return _is_in_memory(key)
        is_shared = and_(
            facts.c.agent_id.in_(others),
            facts.c.caller == key.caller,
            facts.c.visibility == "shared",
        )
        return or_(_is_in_memory(key), is_shared)

    def _select(self, query: Select[Any]) -> list[Fact]:
        return [to_fact(row) for row in self._database.fetch(query)]


def _is_in_memory(key: MemoryKey) -> ColumnElement[bool]:
    return and_(facts.c.agent_id == key.agent_id, facts.c.caller == key.caller)


def _select_said(*columns: ColumnElement[Any]) -> Select[Any]:
    return select(*columns).join(facts, facts.c.id == fact_occurrences.c.fact_id)


_CONFIDED = PreparedStatement(  # asked for by every step of every call
    _select_said(fact_occurrences.c.words).where(
        InValues(fact_occurrences.c.call_id, "calls"), facts.c.visibility == "secret"
    )
)


def write_log(connection: Connection, entry: Extraction) -> None:
    _log_statement(connection.dialect.name).execute(connection, vars(entry))


HIDDEN = "(secret)"
PAGE_SIZE = 500
_INTERNAL = ("key", "identity", "matching")


def fact_json(fact: Fact, *, reveal: bool = False) -> dict[str, Any]:
    """With `reveal`, a fact whose secrets `FactStore.reveal` opened."""
    shown = {"id": fact.id, **pick_fields(fact.key, "agent_id caller")}
    names = " ".join(name for name in vars(fact) if name not in _INTERNAL)
    shown |= pick_fields(fact, f"{names} state")
    if fact.is_secret and not reveal:
        shown |= {"content": HIDDEN, "summary": HIDDEN}
    return shown


def occurrence_json(item: Occurrence, *, is_hidden: bool) -> dict[str, Any]:
    shown = pick_fields(item, " ".join(vars(item)))
    return shown | ({"words": HIDDEN, "context": HIDDEN} if is_hidden else {})


def whole_fact_json(
    store: FactStore, fact_id: str, *, reveal: bool = False
) -> dict[str, Any]:
    """A fact with its occurrences and the chain it belongs to."""
    fact = store.get(fact_id)
    occurrences = store.list_occurrences(fact_id)
    if reveal:
        fact, occurrences = (
            store.reveal(fact),
            [store.reveal(item) for item in occurrences],
        )
    is_hidden = fact.is_secret and not reveal
    return fact_json(fact, reveal=reveal) | {
        "occurrences": [
            occurrence_json(item, is_hidden=is_hidden) for item in occurrences
        ],
        "history": [link.id for link in store.get_history(fact_id)],
        "disputed_with": [
            other.id for other in store.list_dispute(fact) if other.id != fact_id
        ],
    }


def extraction_json(store: FactStore, call_id: str) -> dict[str, Any] | None:
    entry = store.find_extraction(call_id)
    if entry is None:
        return None
    shown = pick_fields(entry, " ".join(vars(entry)))
    del shown["call_id"]
    return shown | {"facts": store.list_ids_of_call(call_id)}


def iter_whole_facts(
    store: FactStore, wanted: FactFilter, *, reveal: bool = False
) -> Iterable[dict[str, Any]]:
    """Every matching fact, read page by page."""
    after = ""
    while page := store.page(replace(wanted, after=after, limit=PAGE_SIZE)):
        for fact in page:
            yield whole_fact_json(store, fact.id, reveal=reveal)
        after = page[-1].id


def parse_as_of(name: str, text: str, zone: tzinfo) -> datetime:
    """A day means its end; a time needs a zone."""
    try:
        if len(text) != len("2026-05-03"):
            return parse_instant(text)
        day = datetime.fromisoformat(text).date()
        next_day = datetime.combine(day, time(), zone) + timedelta(days=1)
        return parse_instant(next_day - timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        raise RefusedInput(
            name,
            "is not a day (2026-05-03) or a time with its zone (2026-05-03T12:00:00Z)",
        ) from None


def hit_json(hit: SearchHit) -> dict[str, Any]:
    """Without the words around a fact: search finds it by them, but they are not shown."""
    return _passage_json(hit.passage) | {
        "score": round(hit.score, 4),
        "before": [_passage_json(turn) for turn in hit.before],
        "after": [_passage_json(turn) for turn in hit.after],
    }


def _passage_json(passage: Passage) -> dict[str, Any]:
    return {
        "kind": passage.kind,
        "call": passage.call_id,
        "turn": passage.seq or None,
        "fact": passage.ref,
        "agent": passage.agent_id,
        "caller": passage.caller,
        "speaker": passage.speaker or None,
        "category": passage.category or None,
        **pick_fields(passage, "visibility at until mentions text"),
    }


def correction_json(correction: Correction) -> dict[str, Any]:
    """A secret only shows that it exists."""
    old = correction.old
    new = correction.new
    return {
        **pick_fields(correction, "id what caller"),
        "call": correction.call_id,
        "old": HIDDEN if is_sealed(old or "") else old,
        "new": HIDDEN if is_sealed(new or "") else new,
        **pick_fields(correction, "who at"),
    }
