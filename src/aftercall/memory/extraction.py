"""Looking for facts in one finished call: read, sift, compare with what is known, write down, and say what came of it."""

from collections import Counter
from dataclasses import dataclass, replace

from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.faults import reach
from aftercall.llm.reader import Reader
from aftercall.memory.key import memory_key
from aftercall.memory.ledger import Ledger
from aftercall.memory.sifting import Sieve, sift
from aftercall.memory.store import FactStore
from aftercall.memory.told import facts_told
from aftercall.model.calls import Call
from aftercall.model.knowledge import Extraction, MemoryKey
from aftercall.model.reading import Trace
from aftercall.settings import Settings

NOBODY = "nobody is remembered for this caller"


@dataclass(frozen=True)
class Extractor:
    settings: Settings
    store: FactStore
    clock: Clock

    def extract(self, call: Call, reader: Reader) -> tuple[Extraction, Trace | None]:
        """Raises what the reader raises, after noting it; whoever asked tries again or gives up."""
        key = memory_key(self.settings, call.agent_id, call.caller)
        if key is None:
            return self._skip(call, reader, NOBODY)
        if len(call.turns) < self.settings.extraction.min_turns:
            return self._skip(call, reader, f"fewer than {self.settings.extraction.min_turns} turns")
        try:
            answer = reader.find_facts(call, self.store.known(key, self.settings.extraction.known_facts))
        except AftercallError as error:
            self.store.write_log(Extraction(call.id, self.clock.now(), reader.name, error=error.code))
            raise
        reach("facts.after_read")
        sieve = sift(call, answer.value, self.settings)
        return self._write(key, call, sieve, answer.trace), answer.trace

    def _write(self, key: MemoryKey, call: Call, sieve: Sieve, trace: Trace) -> Extraction:
        entry = Extraction(call.id, self.clock.now(), trace.reader, trace.prompt, facts_refused=sieve.refused, facts_dropped=sieve.dropped)

        def note(ledger: Ledger) -> Extraction:
            ledger.told = facts_told(call)
            named = [fact_id for found in sieve.kept for fact_id in (found.draft.duplicate_of, found.draft.supersedes)]
            ledger.prepare([found.claim for found in sieve.kept], named)
            came = Counter(ledger.note(found, call.id, trace) for found in sieve.kept)
            return replace(entry, facts_extracted=came["new"], facts_updated=came["update"], facts_deduplicated=came["again"])

        return self.store.change(key, note, lambda done: done)

    def _skip(self, call: Call, reader: Reader, reason: str) -> tuple[Extraction, None]:
        entry = Extraction(call.id, self.clock.now(), reader.name, reason=reason)
        self.store.write_log(entry)
        return entry, None


def limit_per_minute(settings: Settings, reader: Reader) -> int | None:
    """How many calls a minute are searched for facts. Rules cost nothing: they are limited only where somebody asked for it."""
    is_asked_for = "max_per_minute" in settings.extraction.model_fields_set
    return settings.extraction.max_per_minute if is_asked_for or reader.name != "rules" else None
