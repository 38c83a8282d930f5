"""Extracts facts from one finished call: read, filter, compare with known facts, write, log."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aftercall.clock import Clock
from aftercall.english.secrets import Secret
from aftercall.errors import AftercallError
from aftercall.faults import fault_point
from aftercall.llm.reader import Reader
from aftercall.memory.evidence import (
    AcceptedDraft,
    Evidence,
    EvidenceFinder,
    clip_context,
)
from aftercall.memory.fact_corrections import (
    BY_A_PERSON,
    apply_corrections,
    apply_decisions,
    parse_missed,
)
from aftercall.memory.fact_store import FactStore, write_log
from aftercall.memory.ledger import FactLedger
from aftercall.memory.visibility import (
    classify,
    find_call_secrets,
    mask_secrets,
    to_secrets,
)
from aftercall.model.calls import BRIEFED_EVENT, Call
from aftercall.model.facts import Extraction, MemoryKey, memory_key
from aftercall.model.reading import FactDraft, ReadingTrace
from aftercall.settings import Settings

NO_MEMORY_REASON = "this caller has no memory"


@dataclass(frozen=True)
class FilteredDrafts:
    """The drafts that are kept, and how many are not."""

    accepted: tuple[AcceptedDraft, ...]
    refused: int
    dropped: int


@dataclass(frozen=True)
class Extractor:
    """Reads the facts out of a sealed call and writes them to memory."""

    settings: Settings
    store: FactStore
    clock: Clock

    def extract(
        self, call: Call, reader: Reader
    ) -> tuple[Extraction, ReadingTrace | None]:
        """Logs an error of the reader and raises it again."""
        key = memory_key(self.settings, call.agent_id, call.caller)
        if key is None:
            return self._skip(call, reader, NO_MEMORY_REASON)
        limits = self.settings.extraction
        if len(call.turns) < limits.min_turns:
            return self._skip(call, reader, f"fewer than {limits.min_turns} turns")
        try:
            answer = reader.find_facts(
                call, self.store.list_known(key, limits.known_facts)
            )
        except AftercallError as error:
            entry = Extraction(call.id, self.clock.now(), reader.name, error=error.code)
            self.store.save_extraction(entry)
            raise
        fault_point("facts.after_read")
        drafts = filter_drafts(call, answer.value, self.settings)
        return self._write(key, call, drafts, answer.trace), answer.trace

    def _write(
        self, key: MemoryKey, call: Call, drafts: FilteredDrafts, trace: ReadingTrace
    ) -> Extraction:
        now = self.clock.now()

        def record(ledger: FactLedger) -> Extraction:
            ledger.briefed_fact_ids = list_briefed_facts(call)
            accepted = apply_corrections(
                drafts.accepted, ledger.corrections, self.store.vault
            )
            missed = self._list_missed(call, ledger)
            ledger.prefetch([*accepted, *missed])
            for draft in missed:
                ledger.record(draft, call.id, BY_A_PERSON)
            outcomes = Counter(
                ledger.record(draft, call.id, trace) for draft in accepted
            )
            ledger.settle_by_caller()
            apply_decisions(ledger)
            return Extraction(
                call_id=call.id,
                extracted_at=now,
                reader=trace.reader,
                prompt_hash=trace.prompt,
                facts_extracted=outcomes["new"],
                facts_updated=outcomes["update"],
                facts_deduplicated=outcomes["again"],
                facts_refused=drafts.refused,
                facts_dropped=drafts.dropped + len(drafts.accepted) - len(accepted),
            )

        return self.store.update(key, record, write_log)

    def _list_missed(self, call: Call, ledger: FactLedger) -> list[AcceptedDraft]:
        """What a person has found in the call and the reader had not."""
        told = parse_missed(ledger.corrections, call.id, self.store.vault)
        return [accept_missed(call, *each, self.settings) for each in told]

    def _skip(self, call: Call, reader: Reader, reason: str) -> tuple[Extraction, None]:
        entry = Extraction(call.id, self.clock.now(), reader.name, reason=reason)
        self.store.save_extraction(entry)
        return entry, None


def limit_per_minute(settings: Settings, reader: Reader) -> int | None:
    """How many calls a minute are searched for facts; None for no limit.

    The rules cost nothing and are limited only if the setting is given.
    """
    is_given = "max_per_minute" in settings.extraction.model_fields_set
    return (
        settings.extraction.max_per_minute
        if is_given or reader.name != "rules"
        else None
    )


def list_briefed_facts(call: Call) -> frozenset[str]:
    """Ids of the facts that the agent was briefed with."""
    fact_ids: set[str] = set()
    for event in call.events:
        if event.kind == BRIEFED_EVENT:
            fact_ids.update(map(str, event.data.get("facts", ())))
    return frozenset(fact_ids)


def filter_drafts(
    call: Call, drafts: Sequence[FactDraft], settings: Settings
) -> FilteredDrafts:
    finder = EvidenceFinder(call)
    found: list[tuple[FactDraft, Evidence]] = []
    refused = dropped = 0
    limits = settings.extraction
    for draft in drafts:
        if len(found) >= limits.max_facts or draft.confidence < limits.min_confidence:
            dropped += 1
        elif (evidence := finder.find(draft)) is None:
            refused += 1
        else:
            found.append((draft, evidence))
    accepted = _accept(finder, found, find_call_secrets(call, drafts), settings)
    return FilteredDrafts(tuple(accepted), refused, dropped)


def accept_missed(
    call: Call, draft: FactDraft, correction_id: str, settings: Settings
) -> AcceptedDraft:
    """A person has heard it: the words need not be the fact's own."""
    said = call.turns[draft.turns[0] - 1]
    context = clip_context(f"{said.speaker} ({said.seq}): {said.text}")
    evidence = Evidence(said.seq, said.seq, said.at, context, 1.0, True)
    drafts = [(draft.model_copy(update={"words": said.text}), evidence)]
    secrets = find_call_secrets(call, [draft])
    (accepted,) = _accept(EvidenceFinder(call), drafts, secrets, settings)
    return replace(accepted, correction_id=correction_id)


def _accept(
    finder: EvidenceFinder,
    found: list[tuple[FactDraft, Evidence]],
    secrets: list[Secret],
    settings: Settings,
) -> list[AcceptedDraft]:
    """A draft that is secret is masked in the context of all the others."""
    levels = [classify(draft, secrets, settings.memory) for draft, _ in found]
    secret_words = []
    for (draft, _), level in zip(found, levels, strict=True):
        if level == "secret":
            secret_words.append(draft.words)
    masked = [*secrets, *to_secrets(secret_words)]
    accepted = []
    for (draft, evidence), level in zip(found, levels, strict=True):
        context = evidence.context
        is_secret = level == "secret"
        if not is_secret:
            context = mask_secrets(context, masked)
        claim = finder.parse_claim(draft.text, is_secret=is_secret)
        accepted.append(AcceptedDraft(draft, evidence, level, context, claim))
    return accepted
