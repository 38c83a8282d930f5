"""Facts that a person put right: changed at once, and found again by every later reading.

A correction counts for what was said before it was made. What the caller says afterwards is new.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, select

from aftercall.db.corrections import (
    Correction,
    add_correction,
    delete_correction,
    list_chains,
    list_of_thing,
)
from aftercall.db.tables import fact_occurrences, facts
from aftercall.errors import NotFound, RefusedInput, SecretUnreadable
from aftercall.memory.claims import Claim, read_claim, read_secret_claim
from aftercall.memory.dedupe import compare
from aftercall.memory.evidence import AcceptedDraft
from aftercall.memory.fact_rows import (
    fetch_facts,
    lock_memory,
    reindex_facts,
    to_fact,
    update_facts,
)
from aftercall.memory.ledger import CORRECTED_BY_KEY, hash_identity, hash_matching
from aftercall.memory.passage_store import remove_facts
from aftercall.memory.vault import Vault, is_sealed
from aftercall.model.facts import Fact, MemoryKey
from aftercall.model.reading import Category, FactDraft, ReadingTrace

BY_A_PERSON = ReadingTrace("a person")
MAX_FACT_CHARS = 1000
MAX_SUMMARY_CHARS = 100


@dataclass(frozen=True)
class CorrectedFact:
    """What was read, and what a person says of it. Without `text` it was never true."""

    correction: Correction
    identity: str
    said: Claim
    text: str | None

    def corrects(self, found: AcceptedDraft, vault: Vault) -> bool:
        if found.evidence.at > self.correction.at:
            return False
        is_same = hash_identity(found.claim, vault) == self.identity
        return is_same or (
            compare(found.claim, self.said, found.draft.category) == "same"
        )

    def apply(self, found: AcceptedDraft) -> AcceptedDraft | None:
        """The draft as the person would have read it. A person has heard it well."""
        if self.text is None:
            return None
        changed = {
            "text": self.text,
            "summary": to_summary(self.text),
            "supersedes": None,
            "duplicate_of": None,
        }
        return replace(
            found,
            draft=found.draft.model_copy(update=changed),
            evidence=replace(found.evidence, transcript_confidence=1.0),
            claim=_read(self.text, is_secret=found.visibility == "secret"),
            correction_id=self.correction.id,
        )


def apply_corrections(
    drafts: Iterable[AcceptedDraft], chains: Iterable[list[Correction]], vault: Vault
) -> list[AcceptedDraft]:
    """The drafts as a person put them right, without those that were removed.

    `chains` are the corrections of their memory.
    """
    corrected = [fact for chain in chains if (fact := _parse_chain(chain, vault))]
    applied = []
    for found in drafts:
        right = next((fact for fact in corrected if fact.corrects(found, vault)), None)
        if kept := right.apply(found) if right else found:
            applied.append(kept)
    return applied


def parse_missed(
    chains: Iterable[list[Correction]], call_id: str, vault: Vault
) -> Iterator[tuple[FactDraft, str]]:
    """The facts that people found in a call themselves, each with its newest correction."""
    for chain in chains:
        first, last = chain[0], chain[-1]
        if first.details and first.call_id == call_id and last.new is not None:
            with suppress(SecretUnreadable):
                text = _open(last.new, vault)
                yield make_missed_draft(text, **first.details), last.id


def make_missed_draft(text: str, category: Category, turn: int) -> FactDraft:
    return FactDraft(
        category=category,
        text=text,
        summary=to_summary(text),
        visibility="shared",  # at least
        confidence=1.0,
        turns=(turn,),
        words="",
    )


def _parse_chain(chain: list[Correction], vault: Vault) -> CorrectedFact | None:
    """None if it was sealed with another key."""
    first, last = chain[0], chain[-1]
    said_first = first.old or first.new
    try:
        said = _open(said_first, vault)
        text = None if last.new is None else _open(last.new, vault)
    except SecretUnreadable:
        return None
    claim = _read(said, is_secret=is_sealed(said_first or ""))
    return CorrectedFact(last, first.key, claim, text)


def correct_fact(
    connection: Connection,
    fact: Fact,
    text: str | None,
    who: str,
    now: datetime,
    vault: Vault,
) -> Correction:
    """Gives a fact another text; None removes it. Its occurrences stay."""
    lock_memory(connection, fact.key)
    fact = _fetch_one(connection, fact.id)
    chain = _list_corrections(connection, fact)
    if chain and chain[-1].new is None:
        raise RefusedInput(
            "fact",
            f"{fact.id} was removed; `aftercall corrections undo {chain[-1].id}`",
        )
    correction = Correction(
        agent_id=fact.key.agent_id,
        caller=fact.key.caller,
        call_id=_find_first_call(connection, fact.id),
        what="fact",
        key=chain[0].key if chain else fact.identity,
        old=fact.content,
        new=vault.seal(text) if text is not None and fact.is_secret else text,
        who=who,
        at=now,
    )
    if text is None:
        _remove(connection, fact, correction.id, vault)
    else:
        _rewrite(connection, fact, text, correction.id, vault)
    add_correction(connection, correction)
    return correction


def undo_fact_correction(
    connection: Connection, correction: Correction, vault: Vault
) -> Fact | None:
    """The fact as it was; None if it is not in memory any more."""
    key = MemoryKey(correction.agent_id, str(correction.caller))
    lock_memory(connection, key)
    chain = list_of_thing(connection, correction)
    delete_correction(connection, correction)
    before = chain[-2].id if len(chain) > 1 else None
    is_removal = correction.new is None
    shown = _open(correction.old if is_removal else correction.new, vault)
    fact = _find_corrected(connection, key, shown, correction.id, vault)
    if fact is None:
        return None
    if is_removal:
        return _put_back(connection, fact, before, vault)
    if correction.old is None:
        return _drop(connection, fact, vault)
    return _rewrite(connection, fact, _open(correction.old, vault), before, vault)


def clean_fact_text(text: str) -> str:
    """One line of plain text."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not line or len(line) > MAX_FACT_CHARS:
        raise RefusedInput(
            "new", f"is empty or longer than {MAX_FACT_CHARS} characters"
        )
    return line


def to_summary(text: str) -> str:
    is_short = len(text) <= MAX_SUMMARY_CHARS
    return text if is_short else text[: MAX_SUMMARY_CHARS - 1].rstrip() + "…"


def _rewrite(
    connection: Connection, fact: Fact, text: str, by: str | None, vault: Vault
) -> Fact:
    claim = _read(text, is_secret=fact.is_secret)
    identity = hash_identity(claim, vault)
    if fact.is_active:
        _refuse_twin(connection, fact, identity)
    return _save(
        connection,
        vault,
        fact,
        content=text,
        summary=to_summary(text),
        identity=identity,
        matching=hash_matching(claim, fact.visibility, vault),
        needs_confirmation=False,
        metadata=_mark(fact, by),
    )


def _remove(connection: Connection, fact: Fact, by: str | None, vault: Vault) -> None:
    """It held on no day. What it had replaced holds on; its own links stay, to be put back."""
    save = partial(_save, connection, vault)
    gone = {"is_active": False, "valid_until": fact.valid_from}
    save(fact, **gone, metadata=_mark(fact, by))
    before, after = _find_neighbours(connection, fact)
    if after:
        save(after, supersedes=before.id if before else None)
    if before and after:
        save(before, valid_until=after.valid_from, superseded_by=after.id)
    elif before and not _find_twin(connection, before, before.identity):
        save(before, is_active=True, valid_until=None, superseded_by=None)


def _drop(connection: Connection, fact: Fact, vault: Vault) -> Fact:
    """Of a fact that a person had added, nothing stays, unless it was said again."""
    if fact.occurrence_count > 1:
        return _save(connection, vault, fact, metadata=_mark(fact, None))
    _remove(connection, fact, None, vault)
    remove_facts(connection, [fact.id])
    for table, column in ((fact_occurrences, "fact_id"), (facts, "id")):
        connection.execute(delete(table).where(table.c[column] == fact.id))
    return fact


def _put_back(connection: Connection, fact: Fact, by: str | None, vault: Vault) -> Fact:
    save = partial(_save, connection, vault)
    before, after = _find_neighbours(connection, fact)
    if before:
        until = max(fact.valid_from, before.valid_from)
        save(before, is_active=False, valid_until=until, superseded_by=fact.id)
    if after:
        save(after, supersedes=fact.id)
    else:
        _refuse_twin(connection, fact, fact.identity)
    held_until = after.valid_from if after else None
    is_active = after is None
    marked = _mark(fact, by)
    return save(fact, is_active=is_active, valid_until=held_until, metadata=marked)


def _save(connection: Connection, vault: Vault, fact: Fact, **changes: Any) -> Fact:
    changed = replace(fact, **changes)
    update_facts(connection, [changed], vault)
    reindex_facts(connection, [changed.id])
    return changed


def _mark(fact: Fact, by: str | None) -> dict[str, object]:
    marked = fact.metadata | {CORRECTED_BY_KEY: by}
    return {name: value for name, value in marked.items() if value is not None}


def _list_corrections(connection: Connection, fact: Fact) -> list[Correction]:
    by = fact.metadata.get(CORRECTED_BY_KEY)
    agent_id, caller = fact.key
    chains = list_chains(connection, agent_id, ("fact",), caller=caller)
    return next((chain for chain in chains if chain[-1].id == by), [])


def _find_corrected(
    connection: Connection, key: MemoryKey, text: str, by: str, vault: Vault
) -> Fact | None:
    identity = hash_identity(read_secret_claim(text), vault)
    query = select(facts).where(
        facts.c.agent_id == key.agent_id,
        facts.c.caller == key.caller,
        facts.c.identity == identity,
    )
    found = [to_fact(row) for row in connection.execute(query)]
    return next(
        (one for one in found if one.metadata.get(CORRECTED_BY_KEY) == by), None
    )


def _find_neighbours(
    connection: Connection, fact: Fact
) -> tuple[Fact | None, Fact | None]:
    """What it replaced and what replaced it, as far as they still hang together."""
    ids = [link for link in (fact.supersedes, fact.superseded_by) if link]
    found = {one.id: one for one in fetch_facts(connection, ids)} if ids else {}
    before, after = (
        found.get(link or "") for link in (fact.supersedes, fact.superseded_by)
    )
    if before and before.superseded_by not in (None, fact.id, fact.superseded_by):
        before = None
    if after and after.supersedes not in (None, fact.id, fact.supersedes):
        after = None
    return before, after


def _find_twin(connection: Connection, fact: Fact, identity: str) -> str | None:
    query = select(facts.c.id).where(
        facts.c.agent_id == fact.key.agent_id,
        facts.c.caller == fact.key.caller,
        facts.c.identity == identity,
        facts.c.is_active,
        facts.c.id != fact.id,
    )
    twin: str | None = connection.execute(query).scalar()
    return twin


def _refuse_twin(connection: Connection, fact: Fact, identity: str) -> None:
    if twin := _find_twin(connection, fact, identity):
        raise RefusedInput("new", f"is known already, as fact {twin}; remove this one")


def _fetch_one(connection: Connection, fact_id: str) -> Fact:
    found = fetch_facts(connection, [fact_id])
    if not found:
        raise NotFound(f"there is no fact {fact_id}")
    return found[0]


def _find_first_call(connection: Connection, fact_id: str) -> str | None:
    said = fact_occurrences.c
    query = select(said.call_id).where(said.fact_id == fact_id).order_by(said.at)
    call_id: str | None = connection.execute(query.limit(1)).scalar()
    return call_id


def _open(text: str | None, vault: Vault) -> str:
    shown = text or ""
    return vault.open(shown) if is_sealed(shown) else shown


def _read(text: str, *, is_secret: bool) -> Claim:
    return read_secret_claim(text) if is_secret else read_claim(text)
