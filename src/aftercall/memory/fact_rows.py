"""The rows of facts and their occurrences: what a ledger reads, and what it changed.

Secrets are sealed before they are written. Every change of a fact changes its passage too, so that
search finds what memory holds.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from aftercall.db.corrections import DECISION, list_memory_chains
from aftercall.db.statements import InValues, PreparedStatement, insert_into, lock_name
from aftercall.db.tables import fact_occurrences, facts, passages
from aftercall.encryption import Vault, is_sealed
from aftercall.faults import fault_point
from aftercall.model.facts import Fact, MemoryKey, Occurrence
from aftercall.model.passages import Passage

if TYPE_CHECKING:  # loaded by who writes: to list facts takes no reading of English
    from aftercall.memory.ledger import FactLedger

# the count is always taken from the occurrences
_NOT_UPDATED = ("id", "occurrence_count")
_UPDATE = PreparedStatement(
    update(facts)
    .where(facts.c.id == bindparam("new_id"))
    .values(
        {
            column.name: bindparam(f"new_{column.name}", type_=column.type)
            for column in facts.c
            if column.name not in _NOT_UPDATED
        }
    )
)
_INSERT = PreparedStatement(insert(facts))
_BY_ID = PreparedStatement(select(facts).where(InValues(facts.c.id, "ids")))
_KNOWN_OCCURRENCES = PreparedStatement(
    select(
        fact_occurrences.c.fact_id,
        fact_occurrences.c.call_id,
        fact_occurrences.c.first_turn,
    ).where(InValues(fact_occurrences.c.call_id, "calls"))
)
_COUNT_OCCURRENCES = PreparedStatement(
    update(facts)
    .where(InValues(facts.c.id, "ids"))
    .values(
        occurrence_count=select(func.count())
        .where(fact_occurrences.c.fact_id == facts.c.id)
        .scalar_subquery()
    )
)
OccurrenceKey = tuple[str, str, int]  # fact, call, first turn


@cache
def _insert_occurrences(dialect: str) -> PreparedStatement:
    return PreparedStatement(
        insert_into(fact_occurrences, dialect).on_conflict_do_nothing()
    )


@cache
def _select_outlines(names: tuple[str, ...]) -> PreparedStatement:
    is_key = facts.c.agent_id == bindparam("agent_id")
    is_key &= facts.c.caller == bindparam("caller")
    columns = (facts.c[name] for name in names)
    with_terms = select(*columns, passages.c.terms).outerjoin(
        passages, passages.c.ref == facts.c.id
    )
    return PreparedStatement(with_terms.where(is_key).order_by(facts.c.id))


def to_fact(row: Sequence[Any]) -> Fact:
    values = dict(zip(facts.c.keys(), row, strict=True))
    key = MemoryKey(values.pop("agent_id"), values.pop("caller"))
    return Fact(key=key, **values)


def fetch_facts(connection: Connection, fact_ids: Iterable[str]) -> list[Fact]:
    return [to_fact(row) for row in _BY_ID.fetch(connection, {"ids": fact_ids})]


def list_occurrences(connection: Connection, fact_id: str) -> list[Occurrence]:
    said = fact_occurrences.c
    query = (
        select(fact_occurrences)
        .where(said.fact_id == fact_id)
        .order_by(said.at, said.id)
    )
    return [Occurrence(**row._mapping) for row in connection.execute(query)]


def open_ledger(connection: Connection, key: MemoryKey, vault: Vault) -> "FactLedger":
    """Locks the memory until the transaction ends."""
    from aftercall.memory.candidates import FactOutline
    from aftercall.memory.ledger import FactLedger

    lock_name(connection, *key)
    rows = _select_outlines(FactOutline._fields[:-1]).fetch(connection, key._asdict())
    outlines = map(FactOutline._make, rows)
    ledger = FactLedger(
        key, outlines, lambda fact_ids: fetch_facts(connection, fact_ids), vault
    )
    chains = list_memory_chains(connection, *key)
    ledger.corrections = [chain for chain in chains if chain[0].what == "fact"]
    decided = [one for chain in chains for one in chain if one.what == DECISION]
    ledger.decisions = sorted(decided, key=lambda one: one.id)
    return ledger


def save_ledger(connection: Connection, ledger: "FactLedger", vault: Vault) -> None:
    created = set(ledger.created)
    changed = [ledger.facts[fact_id] for fact_id in sorted(ledger.changed - created)]
    if changed:
        update_facts(connection, changed, vault)
        fault_point("facts.after_retire")
    said: dict[OccurrenceKey, Occurrence] = {}
    for item in ledger.occurrences:
        said.setdefault((item.fact_id, item.call_id, item.first_turn), item)
    if created:
        times = Counter(fact_id for fact_id, _, _ in said)
        rows = [
            _to_row(ledger.facts[fact_id], vault) | {"occurrence_count": times[fact_id]}
            for fact_id in ledger.created
        ]
        _INSERT.execute_many(connection, rows)
    added = _add_occurrences(connection, ledger, said, vault)
    if said_again := sorted({fact_id for fact_id, _, _ in said} - created):
        _COUNT_OCCURRENCES.execute(connection, {"ids": said_again})
    changed_ids = sorted(ledger.reindexed)
    if secret := [one for one in changed_ids if ledger.facts[one].is_secret]:
        _seal_occurrences(connection, secret, vault)
    _add_passages(connection, ledger, added)
    reindex_facts(connection, changed_ids)
    if ledger.dropped:
        _delete_facts(connection, ledger.dropped)


def update_facts(connection: Connection, changed: Iterable[Fact], vault: Vault) -> None:
    rows = [_to_row(fact, vault) for fact in changed]
    renamed = [{f"new_{name}": value for name, value in row.items()} for row in rows]
    _UPDATE.execute_many(connection, renamed)


def reindex_facts(connection: Connection, fact_ids: Sequence[str]) -> None:
    """After some occurrences were deleted: count and index these facts by the others."""
    from aftercall.memory import passage_store

    if not fact_ids:
        return
    _COUNT_OCCURRENCES.execute(connection, {"ids": fact_ids})
    passage_store.remove_facts(connection, fact_ids)
    open_facts = [
        fact for fact in fetch_facts(connection, fact_ids) if not fact.is_secret
    ]
    said = [
        _to_passage(fact, item)
        for fact in open_facts
        for item in list_occurrences(connection, fact.id)
    ]
    passage_store.record_mentions(connection, said)
    retired = [fact.id for fact in open_facts if not fact.is_active]
    passage_store.retire_facts(connection, retired)


def _add_occurrences(
    connection: Connection,
    ledger: "FactLedger",
    said: Mapping[OccurrenceKey, Occurrence],
    vault: Vault,
) -> list[Occurrence]:
    """Add the new ones only: a call that is read again adds nothing."""
    calls = sorted({item.call_id for item in said.values()})
    known = (
        set(_KNOWN_OCCURRENCES.fetch(connection, {"calls": calls})) if calls else set()
    )
    added = [item for key, item in said.items() if key not in known]
    if added:
        rows = []
        for item in added:
            is_secret = ledger.facts[item.fact_id].is_secret
            rows.append(
                _seal(vars(item), ("words", "context"), vault)
                if is_secret
                else vars(item)
            )
        _insert_occurrences(connection.dialect.name).execute_many(connection, rows)
    return added


def _seal_occurrences(
    connection: Connection, fact_ids: Sequence[str], vault: Vault
) -> None:
    """A fact has become secret: seal its earlier occurrences too."""
    said = fact_occurrences.c
    query = select(said.id, said.words, said.context).where(said.fact_id.in_(fact_ids))
    for row in connection.execute(query).all():
        words = {"words": row.words, "context": row.context}
        sealed = _seal(words, tuple(words), vault)
        connection.execute(
            update(fact_occurrences).where(said.id == row.id).values(sealed)
        )


def _add_passages(
    connection: Connection, ledger: "FactLedger", added: Iterable[Occurrence]
) -> None:
    from aftercall.memory import passage_store

    said = []
    retired = dict.fromkeys(ledger.retired)
    for item in added:
        fact = ledger.facts[item.fact_id]
        if not fact.is_secret:
            said.append(_to_passage(fact, item))
        if not fact.is_active:
            retired[fact.id] = None
    if said:
        passage_store.record_mentions(connection, said)
    open_ids = [one for one in retired if not ledger.facts[one].is_secret]
    if open_ids:
        passage_store.retire_facts(connection, open_ids)


def _delete_facts(connection: Connection, fact_ids: Sequence[str]) -> None:
    from aftercall.memory import passage_store

    passage_store.remove_facts(connection, fact_ids)
    for column in (fact_occurrences.c.fact_id, facts.c.id):
        connection.execute(delete(column.table).where(column.in_(fact_ids)))


def _to_row(fact: Fact, vault: Vault) -> dict[str, Any]:
    row = dict(vars(fact))
    row["agent_id"], row["caller"] = row.pop("key")
    return _seal(row, ("content", "summary"), vault) if fact.is_secret else row


def _seal(row: Mapping[str, Any], names: Iterable[str], vault: Vault) -> dict[str, Any]:
    sealed = dict(row)
    for name in names:
        if not is_sealed(row[name]):
            sealed[name] = vault.seal(row[name])
    return sealed


def _to_passage(fact: Fact, item: Occurrence) -> Passage:
    """The fact as it was said once, with the words around it. Never of a secret."""
    return Passage(
        kind="fact",
        agent_id=fact.key.agent_id,
        caller=fact.key.caller,
        call_id=item.call_id,
        text=fact.content,
        at=min(item.at, fact.valid_from),  # a correction holds from before it was said
        seq=item.first_turn,
        ref=fact.id,
        category=fact.category,
        visibility=fact.visibility,
        around=item.context,
    )
