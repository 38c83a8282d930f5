"""Facts that a person put right: changed at once, and found again by every later reading.

A correction counts for what was said before it was made. What the caller says afterwards is new.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, select, update

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
    list_occurrences,
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
        told = first.details if first.old is None else None
        if told and first.call_id == call_id and last.new is not None:
            with suppress(SecretUnreadable):
                text = _open(last.new, vault)
                yield make_missed_draft(text, **told), last.id


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


@dataclass(frozen=True)
class FactCorrections:
    """Changes facts in one transaction, as the only writer of their memory."""

    connection: Connection
    vault: Vault

    def correct(
        self, fact_id: str, key: MemoryKey, text: str | None, who: str, now: datetime
    ) -> Correction:
        """Gives a fact another text; None removes it. Its occurrences stay."""
        lock_memory(self.connection, key)
        fact = next(iter(fetch_facts(self.connection, [fact_id])), None)
        if fact is None:
            raise NotFound(f"there is no fact {fact_id}")
        chain = self._list_corrections(fact)
        if chain and chain[-1].new is None:
            undo = f"`aftercall corrections undo {chain[-1].id}`"
            raise RefusedInput("fact", f"{fact.id} was removed; {undo}")
        disputed = (fact, *self._list_dispute(fact)) if fact.dispute else ()
        correction = Correction(
            *key,
            self._find_first_call(fact),
            "fact",
            chain[0].key if chain else fact.identity,
            old=fact.content,
            new=self.vault.seal(text) if text and fact.is_secret else text,
            who=who,
            at=now,
            details=None if text else {one.id: one.dispute for one in disputed},
        )
        if text is None:
            self._remove(fact, correction.id)
        else:
            self._rewrite(fact, text, correction.id)
        add_correction(self.connection, correction)
        return correction

    def undo(self, correction: Correction) -> Fact | None:
        """The fact as it was; None if it is not in memory any more."""
        key = MemoryKey(correction.agent_id, str(correction.caller))
        lock_memory(self.connection, key)
        chain = list_of_thing(self.connection, correction)
        delete_correction(self.connection, correction)
        before = chain[-2].id if len(chain) > 1 else None
        fact = self._find_corrected(key, correction)
        if fact is None:
            return None
        if correction.is_removal:
            return self._put_back(fact, before, correction.details or {})
        if correction.old is None:
            return self._drop(fact)
        return self._rewrite(fact, _open(correction.old, self.vault), before)

    def _rewrite(self, fact: Fact, text: str, by: str | None) -> Fact:
        claim = _read(text, is_secret=fact.is_secret)
        identity = hash_identity(claim, self.vault)
        if fact.is_active:
            self._refuse_twin(fact, identity)
        return self._save(
            fact,
            content=text,
            summary=to_summary(text),
            identity=identity,
            matching=hash_matching(claim, fact.visibility, self.vault),
            needs_confirmation=False,
            metadata=_mark(fact, by),
        )

    def _remove(self, fact: Fact, by: str | None) -> None:
        """It held on no day. What it had replaced holds on; its own links stay, to be put back."""
        gone = {"is_active": False, "never_true": True, "dispute": None}
        self._save(fact, **gone, valid_until=fact.valid_from, metadata=_mark(fact, by))
        others = self._list_dispute(fact)
        if len(others) == 1:
            self._save(others[0], dispute=None)
        before, after = self._find_neighbours(fact)
        if after:
            self._save(after, supersedes=before.id if before else None)
        if before and after:
            self._save(before, valid_until=after.valid_from, superseded_by=after.id)
        elif before and not self._find_twin(before, before.identity):
            self._save(before, is_active=True, valid_until=None, superseded_by=None)
            doubted = update(facts).where(facts.c.doubt == before.id)
            self.connection.execute(doubted.values(doubt=None))

    def _drop(self, fact: Fact) -> Fact:
        """Of a fact that a person had added, nothing stays, unless it was said again."""
        if fact.occurrence_count > 1:
            return self._save(fact, metadata=_mark(fact, None))
        self._remove(fact, None)
        remove_facts(self.connection, [fact.id])
        for table, column in ((fact_occurrences, "fact_id"), (facts, "id")):
            self.connection.execute(delete(table).where(table.c[column] == fact.id))
        return fact

    def _put_back(
        self, fact: Fact, by: str | None, disputed: Mapping[str, str]
    ) -> Fact:
        """`disputed` names the dispute of each fact that was in one before."""
        others = fetch_facts(self.connection, list(disputed)) if disputed else ()
        for other in others:
            if other.is_active:
                self._save(other, dispute=disputed[other.id])
        before, after = self._find_neighbours(fact)
        if before:
            until = max(fact.valid_from, before.valid_from)
            self._save(
                before, is_active=False, valid_until=until, superseded_by=fact.id
            )
        if after:
            self._save(after, supersedes=fact.id)
        else:
            self._refuse_twin(fact, fact.identity)
        return self._save(
            fact,
            is_active=after is None,
            never_true=False,
            dispute=disputed.get(fact.id),
            valid_until=after.valid_from if after else None,
            metadata=_mark(fact, by),
        )

    def _save(self, fact: Fact, **changes: Any) -> Fact:
        changed = replace(fact, **changes)
        update_facts(self.connection, [changed], self.vault)
        reindex_facts(self.connection, [changed.id])
        return changed

    def _list_corrections(self, fact: Fact) -> list[Correction]:
        by = fact.metadata.get(CORRECTED_BY_KEY)
        agent_id, caller = fact.key
        chains = list_chains(self.connection, agent_id, ("fact",), caller=caller)
        return next((chain for chain in chains if chain[-1].id == by), [])

    def _find_corrected(self, key: MemoryKey, correction: Correction) -> Fact | None:
        shown = correction.old if correction.is_removal else correction.new
        claim = read_secret_claim(_open(shown, self.vault))
        is_same = facts.c.identity == hash_identity(claim, self.vault)
        for fact in self._select(key, is_same):
            if fact.metadata.get(CORRECTED_BY_KEY) == correction.id:
                return fact
        return None

    def _list_dispute(self, fact: Fact) -> list[Fact]:
        """The other facts of its dispute."""
        if fact.dispute is None:
            return []
        is_other = and_(facts.c.dispute == fact.dispute, facts.c.id != fact.id)
        return self._select(fact.key, is_other, facts.c.is_active)

    def _find_neighbours(self, fact: Fact) -> tuple[Fact | None, Fact | None]:
        """What it replaced and what replaced it, as far as they still hang together."""
        links = (fact.supersedes, fact.superseded_by)
        known = self._select(fact.key, facts.c.id.in_([link for link in links if link]))
        found = {one.id: one for one in known}
        before, after = (found.get(link or "") for link in links)
        if before and before.superseded_by not in (None, fact.id, links[1]):
            before = None
        if after and after.supersedes not in (None, fact.id, links[0]):
            after = None
        return before, after

    def _find_twin(self, fact: Fact, identity: str) -> str | None:
        is_twin = and_(facts.c.identity == identity, facts.c.id != fact.id)
        twins = self._select(fact.key, is_twin, facts.c.is_active)
        return twins[0].id if twins else None

    def _refuse_twin(self, fact: Fact, identity: str) -> None:
        if twin := self._find_twin(fact, identity):
            problem = f"is known already, as fact {twin}; remove this one"
            raise RefusedInput("new", problem)

    def _find_first_call(self, fact: Fact) -> str | None:
        said = list_occurrences(self.connection, fact.id)
        return said[0].call_id if said else None

    def _select(self, key: MemoryKey, *wanted: ColumnElement[bool]) -> list[Fact]:
        is_own = and_(facts.c.agent_id == key.agent_id, facts.c.caller == key.caller)
        query = select(facts).where(is_own, *wanted)
        return [to_fact(row) for row in self.connection.execute(query)]


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


def _mark(fact: Fact, by: str | None) -> dict[str, object]:
    marked = fact.metadata | {CORRECTED_BY_KEY: by}
    return {name: value for name, value in marked.items() if value is not None}


def _open(text: str | None, vault: Vault) -> str:
    shown = text or ""
    return vault.open(shown) if is_sealed(shown) else shown


def _read(text: str, *, is_secret: bool) -> Claim:
    return read_secret_claim(text) if is_secret else read_claim(text)
