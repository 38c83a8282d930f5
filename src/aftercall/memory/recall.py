"""What an agent may look up in the middle of a call: this caller's memory, and nothing that was told in confidence."""

from dataclasses import dataclass, replace

from aftercall.memory.key import memory_key
from aftercall.memory.search import Search
from aftercall.memory.store import FactStore
from aftercall.memory.visibility import LEVELS, carries, is_releasable, releasable
from aftercall.model.followups import Trust
from aftercall.model.knowledge import SHARED, Fact, MemoryKey
from aftercall.model.passages import Hit, Where
from aftercall.settings import Settings

MOST = 5
LOOKED_AT = 20
LONGEST = 300


@dataclass(frozen=True)
class Recall:
    settings: Settings
    search: Search
    facts: FactStore

    def find(self, agent_id: str, party: str | None, trust: Trust, query: str) -> list[str]:
        """A few short lines, best first, each with its day. Nobody is remembered: nothing is found."""
        where = where_of(self.settings, agent_id, party)
        if where is None:
            return []
        found = self.search.find(query, where, limit=LOOKED_AT, context=0)
        return [self._line(hit, agent_id, party) for hit in self._release(found, trust)[:MOST]]

    def _release(self, found: list[Hit], trust: Trust) -> list[Hit]:
        """What this caller may hear: nothing above their trust, nor a turn or summary that gives such a fact away."""
        allowed = {id(passage) for passage in releasable((hit.passage for hit in found), trust, self.settings.memory)}
        kept = [hit for hit in found if id(hit.passage) in allowed]
        said_in = {hit.passage.call_id for hit in kept if hit.passage.call_id}
        levels = [level for level in LEVELS if level != "secret" and not is_releasable(level, trust, self.settings.memory)]
        withheld = self.facts.told_in(sorted(said_in), levels) if said_in and levels else []
        return [hit for hit in kept if not any(carries(hit.passage.text, told) for told in withheld)]

    def _line(self, hit: Hit, agent_id: str, party: str | None) -> str:
        passage = hit.passage
        day = passage.at.astimezone(self.settings.zone)
        other_agent = f" (heard by {passage.agent_id})" if passage.agent_id != agent_id else ""
        other_call = f" (call of {passage.caller})" if passage.caller not in (party, SHARED, None) else ""
        who = f"{passage.speaker} said: " if passage.speaker else ""
        return f"{day.day} {day:%B %Y}{other_agent}{other_call}, {who}{passage.text[:LONGEST]}"


def find_facts(search: Search, store: FactStore, query: str, where: Where, limit: int) -> list[Fact]:
    """Facts that fit, best first, as the ledger has them."""
    hits = search.find(query, replace(where, kinds=("fact",)), limit=limit, context=0)
    return [store.get(hit.passage.ref) for hit in hits if hit.passage.ref]


def where_of(settings: Settings, agent_id: str, party: str | None) -> Where | None:
    """What a call of this party may search; None where nobody is remembered."""
    key = memory_key(settings, agent_id, party)
    return where_of_key(settings, agent_id, key) if key else None


def where_of_key(settings: Settings, agent_id: str, key: MemoryKey | None) -> Where:
    """What is searched of one memory, or, for the owner, of every caller of the agent; with the facts of the agent's group."""
    caller = None if key is None or key.caller == SHARED else key.caller
    return Where(agent_id, caller, group=settings.memory.list_others_in_group(agent_id))
