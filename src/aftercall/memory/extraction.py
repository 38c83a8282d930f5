"""Looking for facts in one finished call: read, sift, compare with what is known, write down,
and say what came of it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.faults import fault_point
from aftercall.llm.reader import Reader
from aftercall.memory.evidence import FilteredDrafts, filter_drafts
from aftercall.memory.key import memory_key
from aftercall.memory.ledger import FactLedger
from aftercall.memory.store import FactStore
from aftercall.model.calls import Call
from aftercall.model.facts import Extraction, MemoryKey
from aftercall.model.reading import ReadingTrace
from aftercall.model.turns import Event
from aftercall.settings import Settings

NO_MEMORY_REASON = "nobody is remembered for this caller"


@dataclass(frozen=True)
class Extractor:
    settings: Settings
    store: FactStore
    clock: Clock

    def extract(self, call: Call, reader: Reader) -> tuple[Extraction, ReadingTrace | None]:
        """Raises what the reader raises, after noting it; whoever asked tries again or gives up."""
        key = memory_key(self.settings, call.agent_id, call.caller)
        if key is None:
            return self._skip(call, reader, NO_MEMORY_REASON)
        if len(call.turns) < self.settings.extraction.min_turns:
            return self._skip(
                call, reader, f"fewer than {self.settings.extraction.min_turns} turns"
            )
        try:
            answer = reader.find_facts(
                call, self.store.list_known(key, self.settings.extraction.known_facts)
            )
        except AftercallError as error:
            self.store.save_extraction(
                Extraction(call.id, self.clock.now(), reader.name, error=error.code)
            )
            raise
        fault_point("facts.after_read")
        sieve = filter_drafts(call, answer.value, self.settings)
        return self._write(key, call, sieve, answer.trace), answer.trace

    def _write(
        self, key: MemoryKey, call: Call, sieve: FilteredDrafts, trace: ReadingTrace
    ) -> Extraction:
        entry = Extraction(
            call.id,
            self.clock.now(),
            trace.reader,
            trace.prompt,
            facts_refused=sieve.refused,
            facts_dropped=sieve.dropped,
        )

        def note(ledger: FactLedger) -> Extraction:
            ledger.briefed_fact_ids = list_briefed_facts(call)
            named = [
                fact_id
                for found in sieve.accepted
                for fact_id in (found.draft.duplicate_of, found.draft.supersedes)
            ]
            ledger.prefetch([found.claim for found in sieve.accepted], named)
            came = Counter(ledger.record(found, call.id, trace) for found in sieve.accepted)
            return replace(
                entry,
                facts_extracted=came["new"],
                facts_updated=came["update"],
                facts_deduplicated=came["again"],
            )

        return self.store.update(key, note, lambda done: done)

    def _skip(self, call: Call, reader: Reader, reason: str) -> tuple[Extraction, None]:
        entry = Extraction(call.id, self.clock.now(), reader.name, reason=reason)
        self.store.save_extraction(entry)
        return entry, None


def limit_per_minute(settings: Settings, reader: Reader) -> int | None:
    """How many calls a minute are searched for facts.

    Rules cost nothing: they are limited only where somebody asked for it.
    """
    is_asked_for = "max_per_minute" in settings.extraction.model_fields_set
    return settings.extraction.max_per_minute if is_asked_for or reader.name != "rules" else None


BRIEFED_EVENT = "briefing.told"


def make_briefed_event(seq: int, at: datetime, fact_ids: Sequence[str]) -> Event:
    """For whoever briefs a call: append this to its record."""
    return Event(seq=seq, kind=BRIEFED_EVENT, at=at, data={"facts": list(fact_ids)})


def list_briefed_facts(call: Call) -> frozenset[str]:
    return frozenset(
        str(fact_id)
        for event in call.events
        if event.kind == BRIEFED_EVENT
        for fact_id in event.data.get("facts", ())
    )
