"""What an agent may look up in the middle of a call: this caller's memory, and nothing that was told in confidence."""

from dataclasses import dataclass, replace

from aftercall.memory.key import memory_key
from aftercall.memory.search import Search
from aftercall.memory.store import FactStore
from aftercall.model.calls import LiveCall
from aftercall.model.knowledge import SHARED, Fact
from aftercall.model.passages import Hit, Where
from aftercall.settings import Settings

MOST = 5
LONGEST = 300


@dataclass(frozen=True)
class Recall:
    settings: Settings
    search: Search

    def find(self, call: LiveCall, query: str) -> list[str]:
        """A few short lines, best first, each with its day. Nobody is remembered: nothing is found."""
        where = where_of(self.settings, call.agent_id, call.caller)
        if where is None:
            return []
        return [self._line(hit) for hit in self.search.find(query, where, limit=MOST, context=0)]

    def _line(self, hit: Hit) -> str:
        passage = hit.passage
        day = passage.at.astimezone(self.settings.zone)
        who = f"{passage.speaker} said: " if passage.speaker else ""
        return f"{day.day} {day:%B %Y}, {who}{passage.text[:LONGEST]}"


def find_facts(search: Search, store: FactStore, query: str, where: Where, limit: int) -> list[Fact]:
    """Facts that fit, best first, as the ledger has them."""
    hits = search.find(query, replace(where, kinds=("fact",)), limit=limit, context=0)
    return [store.get(hit.passage.ref) for hit in hits if hit.passage.ref]


def where_of(settings: Settings, agent_id: str, caller: str | None) -> Where | None:
    """What a call with this caller may search; None where nobody is remembered."""
    key = memory_key(settings, agent_id, caller)
    if key is None:
        return None
    return Where(agent_id, None if key.caller == SHARED else key.caller)
