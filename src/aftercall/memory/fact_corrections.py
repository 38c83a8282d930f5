"""Facts that a person put right: changed at once, and found again by every later reading.

A correction counts for what was said before it was made. What the caller says afterwards is new.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from aftercall.clock import format_instant, parse_instant
from aftercall.db.corrections import DECISION, Correction
from aftercall.encryption import Vault, is_sealed
from aftercall.errors import RefusedInput, SecretUnreadable
from aftercall.memory.claims import Claim, read_claim, read_secret_claim
from aftercall.memory.dedupe import compare
from aftercall.memory.evidence import AcceptedDraft
from aftercall.memory.ledger import (
    CORRECTED_BY_KEY,
    FactLedger,
    hash_identity,
    hash_matching,
)
from aftercall.model.facts import Fact
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
        first = chain[0]
        last = chain[-1]
        told = first.details if first.old is None else None
        if told and first.call_id == call_id and last.new is not None:
            with suppress(SecretUnreadable):
                text = _open(last.new, vault)
                yield make_missed_draft(text, **told), last.id


def make_missed_draft(text: str, category: Category, turn: int) -> FactDraft:
    """What a person says that the reader has missed; it needs no words as evidence."""
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
    first = chain[0]
    last = chain[-1]
    said_first = first.old or first.new
    try:
        said = _open(said_first, vault)
        text = None if last.new is None else _open(last.new, vault)
    except SecretUnreadable:
        return None
    claim = _read(said, is_secret=is_sealed(said_first or ""))
    return CorrectedFact(last, first.key, claim, text)


def correct_fact(
    ledger: FactLedger, fact: Fact, text: str | None, correction: Correction
) -> Correction:
    """Gives a fact another text; None removes it. Its occurrences stay."""
    by = fact.metadata.get(CORRECTED_BY_KEY)
    chain = next((each for each in ledger.corrections if each[-1].id == by), [])
    if chain and chain[-1].new is None:
        undo = f"`aftercall corrections undo {chain[-1].id}`"
        raise RefusedInput("fact", f"{fact.id} was removed; {undo}")
    key = chain[0].key if chain else fact.identity
    if text is not None:
        _rewrite(ledger, fact, text, correction.id)
        return replace(correction, key=key)
    disputed = dict.fromkeys(ledger.known.list_disputed(fact), fact.dispute)
    _remove(ledger, fact, correction.id)
    return replace(correction, key=key, details=disputed)


def undo_correction(ledger: FactLedger, correction: Correction) -> Fact | None:
    """The fact as it was; None if it is not in memory any more."""
    fact = _find_corrected(ledger, correction)
    if fact is None:
        return None
    chains = [each for each in ledger.corrections if each[-1].id == correction.id]
    before = next((each[-2].id for each in chains if len(each) > 1), None)
    if correction.is_removal:
        _put_back(ledger, fact, before, correction.details or {})
    elif correction.old is not None:
        _rewrite(ledger, fact, _open(correction.old, ledger.vault), before)
    elif fact.occurrence_count > 1:  # a person added it, and it was said again
        ledger.change(fact.id, metadata=_mark(fact, None))
    else:
        _remove(ledger, fact, None)
        ledger.dropped.append(fact.id)
    return fact


def settle_fact(
    ledger: FactLedger, fact_id: str, correction: Correction, *, both: bool
) -> Correction:
    """This fact holds and the others of its dispute do not; or all of them hold."""
    fact = ledger.known.require(fact_id)
    others = [ledger.known.get(one) for one in ledger.known.list_disputed(fact)]
    ledger.settle(fact_id, keep_all=both)
    old = "disputed; all hold" if both else "disputed"
    return _to_decision(fact, others, replace(correction, old=old), both=both)


def restore_fact(
    ledger: FactLedger, fact_id: str, correction: Correction
) -> Correction:
    """It holds again, and what had replaced it stays."""
    fact = ledger.known.require(fact_id)
    by = fact.metadata.get(CORRECTED_BY_KEY)
    newest = [chain[-1] for chain in ledger.corrections]
    if any(one.id == by and one.is_removal for one in newest):
        undo = f"`aftercall corrections undo {by}` puts it back"
        raise RefusedInput("fact", f"{fact_id} was removed by a person; {undo}")
    successor = ledger.known.find(fact.superseded_by)
    ledger.restore(fact_id)
    others = [successor] if successor else []
    return _to_decision(fact, others, replace(correction, old="retired"), both=True)


def retire_fact(
    ledger: FactLedger, fact_id: str, at: datetime, correction: Correction
) -> Correction:
    """It was true until then. What the caller says after this decision is new."""
    fact = ledger.known.require(fact_id)
    if not fact.is_active:
        raise RefusedInput("fact", f"{fact_id} is retired already")
    if fact.dispute:
        raise RefusedInput("fact", f"{fact_id} is disputed: settle that first")
    ledger.retire(fact_id, None, at)
    ledger.reindexed.add(fact_id)
    decided = _to_decision(fact, [], correction, both=False)
    until = {"until": format_instant(at)}
    said = f"no longer true since {at:%Y-%m-%d}"
    return replace(
        decided, old=fact.content, new=said, details=(decided.details or {}) | until
    )


def apply_decisions(ledger: FactLedger) -> None:
    """What a person decided about facts counts again when their calls are read again."""
    newest = {decision.key: decision for decision in ledger.decisions}
    for decision in newest.values():
        fact = decision.until and _find_said(ledger, decision.key, decision.at)
        if fact and fact.is_active and not fact.dispute:
            ledger.retire(fact.id, None, parse_instant(decision.until))
    for decision in ledger.decisions:
        for other in (decision.details or {})["others"]:
            first = _find_said(ledger, decision.key, decision.at)
            second = _find_said(ledger, other, decision.at)
            if first and second:
                _decide_again(ledger, first, second, both=decision.is_for_both)


def _find_said(ledger: FactLedger, identity: str, before: datetime) -> Fact | None:
    """The fact as it was said before then; one that holds, if there is one."""
    said = ledger.known.list_said(identity)
    return next((fact for fact in said if fact.last_seen_at <= before), None)


def _decide_again(ledger: FactLedger, first: Fact, second: Fact, *, both: bool) -> None:
    """Lets the first of two facts stand, or both, whatever was decided before."""
    for fact, by in ((first, second), (second, first)):
        is_wanted = both or fact is first
        if is_wanted and not fact.is_active and fact.superseded_by == by.id:
            ledger.restore(fact.id)
    first, second = ledger.facts[first.id], ledger.facts[second.id]
    if not (first.is_active and second.is_active):
        return
    is_disputed = first.dispute is not None and first.dispute == second.dispute
    if not is_disputed and not both:
        ledger.dispute(second.id, first.id)
    if is_disputed or not both:
        ledger.settle(first.id, keep_all=both)


def is_decided(ledger: FactLedger, one: Fact, other: Fact) -> bool:
    """Whether a person has decided between these two."""
    pair = {one.identity, other.identity}
    return any(
        decision.key in pair and not pair.isdisjoint((decision.details or {})["others"])
        for decision in ledger.decisions
    )


def reopen_decision(ledger: FactLedger, decision: Correction) -> None:
    """The facts are disputed again, or the fact holds again."""
    first = ledger.known.by_identity.get(decision.key)
    if decision.until and not first:
        for fact_id in sorted(ledger.known.retired_by_identity.get(decision.key, ())):
            fact = ledger.known.get(fact_id)
            if fact.superseded_by is None and not fact.never_true:
                ledger.restore(fact_id)
                return
    for identity in (decision.details or {})["others"]:
        retired = ledger.known.retired_by_identity.get(identity, set())
        for fact_id in sorted(retired):
            if first and ledger.known.get(fact_id).superseded_by == first:
                ledger.restore(fact_id)
        other = ledger.known.by_identity.get(identity)
        if first and other:
            ledger.dispute(other, first)


def _to_decision(
    fact: Fact, others: Iterable[Fact], correction: Correction, *, both: bool
) -> Correction:
    """The words of the others are not kept: they may have an end of their own."""
    identities = [one.identity for one in others if one.id != fact.id]
    details = {"others": identities, "both": both}
    return replace(
        correction, key=fact.identity, new=fact.content, details=details, what=DECISION
    )


def _rewrite(ledger: FactLedger, fact: Fact, text: str, by: str | None) -> None:
    """Gives a fact another text, and what is compared of it."""
    claim = _read(text, is_secret=fact.is_secret)
    identity = hash_identity(claim, ledger.vault)
    if fact.is_active:
        _refuse_twin(ledger, fact, identity)
    ledger.change(
        fact.id,
        content=text,
        summary=to_summary(text),
        identity=identity,
        matching=hash_matching(claim.matching, fact.visibility, ledger.vault),
        needs_confirmation=False,
        metadata=_mark(fact, by),
    )
    ledger.reindexed.add(fact.id)


def _remove(ledger: FactLedger, fact: Fact, by: str | None) -> None:
    """It held on no day. What it had replaced holds on; its own links stay, to be put back."""
    others = ledger.known.list_disputed(fact) - {fact.id}
    gone = {"is_active": False, "never_true": True, "dispute": None}
    since = fact.valid_from
    metadata = _mark(fact, by)
    ledger.change(fact.id, **gone, valid_until=since, metadata=metadata)
    ledger.reindexed.add(fact.id)
    if len(others) == 1:
        ledger.change(others.pop(), dispute=None)
    before, after = _find_neighbours(ledger, fact)
    if after:
        ledger.change(after.id, supersedes=before.id if before else None)
    if before and after:
        until = after.valid_from
        ledger.change(before.id, valid_until=until, superseded_by=after.id)
        ledger.reindexed.add(before.id)
    elif before and before.identity not in ledger.known.by_identity:
        ledger.reactivate(before)


def _put_back(
    ledger: FactLedger, fact: Fact, by: str | None, disputed: Mapping[str, str]
) -> None:
    """`disputed` names the dispute of each fact that was in one before."""
    for fact_id, dispute in disputed.items():
        other = ledger.known.find(fact_id)
        if other and other.is_active:
            ledger.change(fact_id, dispute=dispute)
    before, after = _find_neighbours(ledger, fact)
    if before:
        until = max(fact.valid_from, before.valid_from)
        ledger.change(
            before.id, is_active=False, valid_until=until, superseded_by=fact.id
        )
        ledger.reindexed.add(before.id)
    if after:
        ledger.change(after.id, supersedes=fact.id)
    else:
        _refuse_twin(ledger, fact, fact.identity)
    ledger.change(
        fact.id,
        is_active=after is None,
        never_true=False,
        dispute=disputed.get(fact.id),
        valid_until=after.valid_from if after else None,
        metadata=_mark(fact, by),
    )
    ledger.reindexed.add(fact.id)


def _find_corrected(ledger: FactLedger, correction: Correction) -> Fact | None:
    shown = correction.old if correction.is_removal else correction.new
    claim = read_secret_claim(_open(shown, ledger.vault))
    for fact in ledger.known.list_said(hash_identity(claim, ledger.vault)):
        if fact.metadata.get(CORRECTED_BY_KEY) == correction.id:
            return fact
    return None


def _find_neighbours(ledger: FactLedger, fact: Fact) -> tuple[Fact | None, Fact | None]:
    """What it replaced and what replaced it, as far as they still hang together."""
    before = ledger.known.find(fact.supersedes)
    after = ledger.known.find(fact.superseded_by)
    if before and before.superseded_by not in (None, fact.id, fact.superseded_by):
        before = None
    if after and after.supersedes not in (None, fact.id, fact.supersedes):
        after = None
    return before, after


def _refuse_twin(ledger: FactLedger, fact: Fact, identity: str) -> None:
    twin = ledger.known.by_identity.get(identity, fact.id)
    if twin != fact.id:
        problem = f"is known already, as fact {twin}; remove this one"
        raise RefusedInput("new", problem)


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
